"""Choices that are made when a conversation is opened: its mode, its model and its MCP servers."""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from segue.drivers import Capabilities, Launch
from segue.drivers.acp.updates import is_object
from segue.model.agents import McpServer
from segue.model.events import JsonObject

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_MOST_NAMED = 20


class CannotChoose(Exception):
    """The agent does not have the chosen value; the message lists the values that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Values that the agent offers for a choice, and the request that makes the choice."""

    values: Mapping[str, str]
    """Its own ids, and the names it shows to people."""
    current: str | None
    method: str
    fields: Mapping[str, str]
    value_field: str
    open: bool = False
    """True if other values are accepted too: our own agent programs mark an option whose values cannot be listed."""

    def find(self, wanted: str) -> str | None:
        """Return the offered value with this id or name, in any case of letters; None if it is not offered."""
        if self.open or wanted in self.values or wanted == self.current:
            return wanted
        return next((value for value, name in self.values.items() if name.lower() == wanted.lower()), None)

    def request(self, value: str) -> JsonObject:
        """Return the parameters of the request that chooses this value."""
        return {**self.fields, self.value_field: value}


ChoiceKind = Literal["mode", "model"]
_BLINDLY: dict[ChoiceKind, tuple[str, str]] = {
    "mode": ("session/set_mode", "modeId"),
    "model": ("session/set_model", "modelId"),
}


def choice(kind: ChoiceKind, wanted: str, answer: object, *, blindly: bool) -> tuple[str, JsonObject] | None:
    """Return the request that makes a choice, None if it is made already; raise CannotChoose if it is not offered. An
    agent whose `answer` names no choices, as after a restore, is asked `blindly`."""
    offers = list(_offers(kind, answer if is_object(answer) else {}))
    for offer in offers:
        if (value := offer.find(wanted)) is not None:
            return None if value == offer.current else (offer.method, offer.request(value))
    if not offers and blindly:
        method, field = _BLINDLY[kind]
        return method, {field: wanted}
    raise CannotChoose(_sentence(kind, wanted, offers))


def current(kind: ChoiceKind, answer: object) -> str | None:
    """Return the agent's current value for a choice, or None if it names none."""
    offers = _offers(kind, answer if is_object(answer) else {})
    return next((offer.current for offer in offers if offer.current is not None), None)


def _sentence(kind: ChoiceKind, wanted: str, offers: list[Offer]) -> str:
    """Return the message that a value is not offered, with the offered ones."""
    if not offers:
        return f"The agent lets nobody choose its {kind}, and {wanted!r} was chosen."
    named = list(dict.fromkeys(value for offer in offers for value in offer.values))
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"The agent has no {kind} {wanted!r}. It has: {', '.join(named[:_MOST_NAMED])}{more}."


def _offers(kind: ChoiceKind, answer: JsonObject) -> Iterator[Offer]:
    """Yield the values offered for a choice in an answer, in its two forms: options, and modes or models."""
    yield from _config_options(kind, answer)
    state = answer.get(f"{kind}s")
    if is_object(state):
        method, field = _BLINDLY[kind]
        id_field = "id" if kind == "mode" else "modelId"
        yield Offer(
            values=_named(state.get(f"available{kind.title()}s"), id_field),
            current=_text(state.get(f"current{kind.title()}Id")),
            method=method,
            fields={},
            value_field=field,
        )


def _config_options(kind: ChoiceKind, answer: JsonObject) -> Iterator[Offer]:
    """Yield the values that the answer's configuration options offer for a choice."""
    for option in answer.get("configOptions") or ():
        if is_object(option) and option.get("category") == kind and option.get("type", "select") == "select":
            yield Offer(
                values=_named(option.get("options"), "value"),
                current=_text(option.get("currentValue")),
                method="session/set_config_option",
                fields={"configId": str(option.get("id"))},
                value_field="value",
                open=_is_open(option),
            )


def _is_open(option: JsonObject) -> bool:
    """Return True if our own agent program marks an option as taking any value."""
    meta = option.get("_meta")
    ours = meta.get("segue") if is_object(meta) else None
    return is_object(ours) and ours.get("open") is True


def _named(given: object, id_field: str) -> dict[str, str]:
    """Map ids to names; options may stand in groups."""
    named: dict[str, str] = {}
    for each in _objects(given):
        if isinstance(each.get("options"), list):
            named |= _named(each["options"], id_field)
        elif isinstance(each.get(id_field), str):
            named[each[id_field]] = str(each.get("name", ""))
    return named


def _objects(given: object) -> list[JsonObject]:
    """Return the objects in a list; an empty list for any other value."""
    items: list[object] = given if isinstance(given, list) else []  # pyright: ignore[reportUnknownVariableType]
    return [each for each in items if is_object(each)]


def _text(value: object) -> str | None:
    """Return the value if it is text, else None."""
    return value if isinstance(value, str) else None


# ── servers of tools ────────────────────────────────────────────────────────────────────────────────


def servers(launch: Launch, capabilities: Capabilities) -> list[JsonObject]:
    """Return the MCP servers in the protocol's form; raise CannotChoose if the agent does not take a transport."""
    takes = {"stdio": True, "http": capabilities.mcp_http, "sse": capabilities.mcp_sse}
    for server in launch.mcp_servers:
        if not takes[server.transport]:
            raise CannotChoose(f"The agent takes no MCP server over {server.transport}, and {server.name!r} is one.")
    return [_server(server, launch.environment) for server in launch.mcp_servers]


def _server(server: McpServer, environment: Mapping[str, str]) -> JsonObject:
    """Return one MCP server in the protocol's form, with the caller's variables filled in."""
    given = [
        {"name": name, "value": _filled(server.name, value, environment)} for name, value in server.variables.items()
    ]
    if server.transport != "stdio":
        url = _filled(server.name, server.url, environment)
        return {"type": server.transport, "name": server.name, "url": url, "headers": given}
    # The protocol wants an absolute path, and not every agent looks for one itself.
    program = shutil.which(server.command[0], path=environment.get("PATH")) or server.command[0]
    arguments = [_filled(server.name, word, environment) for word in server.command[1:]]
    return {"name": server.name, "command": program, "args": arguments, "env": given}


def _filled(server: str, value: str, environment: Mapping[str, str]) -> str:
    """Replace `${NAME}` by the caller's variables; raise CannotChoose if one is not set."""

    def fill(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise CannotChoose(f"The MCP server {server!r} needs the variable {found[1]}, which is not set.")
        return environment[found[1]]

    return _VARIABLE.sub(fill, value)
