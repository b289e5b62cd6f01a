"""Refusal of secrets in the choices for an agent: choices are stored, and storing redacts a secret in them."""

import re
from collections.abc import Iterator

from segue.journal.redaction import redact_text
from segue.model.agents import Choices, McpServer
from segue.model.codec import encode
from segue.model.errors import BadInput

# Only whole parts of a name, since an author, a keyboard or a number of tokens is no secret.
_TELLING = re.compile(
    r"(?i)(?:^|[_-])(?:key|auth|authorization)(?:$|[_-])|(?:api|access|private)_?key|token(?:$|[_-])"
    r"|secret|passw|credential"
)
_REFERENCE = re.compile(r"\$\{\w+\}")
_ASSIGNED = re.compile(r"([\w-]+)=([^&\s]+)")


def refuse_secrets(choices: Choices) -> None:
    """Raise BadInput if a value with a secret's name is not given as `${NAME}`, or anything else in the choices looks
    like a secret; `${NAME}` is filled in at the agent's start."""
    for server in choices.mcp_servers:
        for name, value in _named(server):
            if _TELLING.search(name) and not _REFERENCE.search(value):
                raise _refusal(server, name)
    written = encode(choices).decode()
    if redact_text(written) != written:
        raise BadInput(
            "Something that was chosen for this workflow looks like a secret: a server of tools, or a command.",
            hint="Write ${NAME} in its place, and set NAME in your environment.",
        )


def _named(server: McpServer) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a server's variables, also of those set in its command or URL."""
    yield from server.variables.items()
    for word in (*server.command, server.url):
        yield from ((found[1].lstrip("-"), found[2]) for found in _ASSIGNED.finditer(word))


def _refusal(server: McpServer, name: str) -> BadInput:
    """Build the error that a server's value looks like a secret."""
    variable = re.sub(r"\W", "_", name).upper()
    return BadInput(
        f"The value of {name} for the server {server.name} looks like a secret.",
        hint=f"Write ${{{variable}}} in its place, and set {variable} in your environment.",
    )
