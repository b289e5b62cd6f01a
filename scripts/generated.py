"""Write the generated pages of the documentation, or check that they are up to date (`--check`)."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from fastapi import FastAPI

from segue.cli.app import segue as cli
from segue.protocol import retries
from segue.resume import failures
from segue.server.app import ROUTERS
from segue.settings import page as settings_page

ROOT = Path(__file__).parent.parent
NOTE = "<!-- Written by `make format`; do not edit. -->\n"


def cli_page() -> str:
    """Return the page of all commands, each with its own `--help`."""
    return "\n".join(["# Commands\n", NOTE, EXIT_CODES, *_help(cli, "segue")])


EXIT_CODES = """## Exit codes

`segue run`, `segue resume` and `segue approve` follow the work and end when it stops.

| code | meaning |
|---|---|
| 0 | completed, paused or waiting for your approval (`status` in the last line of `--json`), and after Ctrl-C |
| 1 | refused, with the reason on standard error; the work failed or was cancelled; the server stopped |
| 2 | the command was not understood |
"""


def _help(group: click.Group, path: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _help(command, f"{path} {name}")
        else:
            context = click.Context(command, info_name=f"{path} {name}", max_content_width=100)
            yield f"## {path} {name}\n\n```text\n{command.get_help(context)}\n```\n"


def api_page() -> str:
    """Return the page of all REST endpoints, one row each."""
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    document = app.openapi()
    rows = [
        f"| `{method.upper()} {path}` | {operation.get('description', '')} | {_fields(operation, document)} |"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]
    head = ["| endpoint | effect | query and body |", "|---|---|---|"]
    return "\n".join(["# REST endpoints\n", NOTE, *INTRODUCTION, *head, *rows, ""])


def _fields(operation: dict[str, Any], document: dict[str, Any]) -> str:
    """Return the names of the query parameters, and of the body's fields with the required ones in bold."""
    query = [f"`?{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    for each in (schema, *schema.get("anyOf", [])):
        if "$ref" in each:
            schema = document["components"]["schemas"][each["$ref"].rpartition("/")[2]]
    required = schema.get("required", [])
    body = [f"**`{name}`**" if name in required else f"`{name}`" for name in schema.get("properties", {})]
    return ", ".join([*query, *body])


def failures_page() -> str:
    """Return the written page with current tables between their markers."""
    page = (ROOT / FAILURES).read_text()
    for source, table in TABLES.items():
        begin = BEGIN.format(source)
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
    return page


FAILURES = "docs/reference/failures.md"
BEGIN = "<!-- This table is written by `make format` from {}; do not edit. -->"
TABLES: dict[str, Callable[[], str]] = {
    "resume/failures.py": failures.describe,
    "protocol/retries.py": retries.describe,
}
END = "<!-- End of the table. -->"

INTRODUCTION = [
    "Every request needs the header `Authorization: Bearer <token>`; the token is in the data directory. Errors are",
    "`{code, message, hint}`: 401 without the token, 403 from a foreign page, 404 unknown, 409 wrong state, 422 bad",
    "input, 503 when the database cannot be written. Required fields are bold. The whole schema is at",
    "`/api/openapi.json`.",
    "",
]


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/settings.md": settings_page.describe,
    "docs/reference/cli.md": cli_page,
    "docs/reference/api.md": api_page,
    FAILURES: failures_page,
}


def main() -> int:
    """Write the pages, or with --check report those out of date."""
    check = "--check" in sys.argv
    stale: list[str] = []
    for name, write in PAGES.items():
        path, text = ROOT / name, write().rstrip() + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    if check and stale:
        sys.stderr.write(f"Out of date: {', '.join(stale)}. Run: make format\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
