"""Selection of an agent's tools, by name and by arguments."""

import json
import shlex
from collections.abc import Mapping
from typing import cast

from segue.testing.model.answers import Call, Shell, Write
from segue.testing.model.dialects.parts import objects, table
from segue.testing.model.exchange import JsonObject

ChosenTool = tuple[str, JsonObject | str]

# Names in agents, the most frequent first.
WRITERS = ("Write", "write_file", "write", "create", "create_file", "save-file")
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command", "launch-process")
_PATHS = ("file_path", "filePath", "path", "absolute_path")
_CONTENTS = ("content", "file_text", "text", "file_content")
# Further arguments that shells require.
_BESIDE = {"description": "Run it", "wait": True, "max_wait_seconds": 600}
# Tool that runs JavaScript, which can call the other tools.
_CODE = "exec"


def choose(wanted: Call | Write | Shell, offered: Mapping[str, JsonObject]) -> ChosenTool | None:
    """Return name and arguments of the call, or None if the agent offers no suitable tool."""
    match wanted:
        case Call(name=name, arguments=arguments):
            names = (name,) if isinstance(name, str) else name
            chosen = next((each for each in names if each in offered), None)
            return (chosen, arguments if isinstance(arguments, str) else dict(arguments)) if chosen else None
        case Write(path=path, content=content):
            print_it = f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"
            return _write(path, content, offered) or _shell(print_it, offered)
        case Shell(command=command):
            return _shell(command, offered)


def _write(path: str, content: str, offered: Mapping[str, JsonObject]) -> ChosenTool | None:
    """Return the call of the first offered tool that writes files, or None."""
    for name in WRITERS:
        takes = _properties(offered.get(name))
        where = next((each for each in _PATHS if each in takes), None)
        what = next((each for each in _CONTENTS if each in takes), None)
        if where and what:
            return name, {where: path, what: content}
    return None


def _shell(command: str, offered: Mapping[str, JsonObject]) -> ChosenTool | None:
    """Return the call of the first offered tool that runs commands, or None."""
    for name in SHELLS:
        takes = _properties(offered.get(name))
        if "cmd" in takes:
            return name, {"cmd": command}
        if "command" in takes:
            words = ["bash", "-c", command] if takes["command"].get("type") == "array" else command
            return name, {"command": words} | {key: value for key, value in _BESIDE.items() if key in takes}
    if _CODE in offered:
        return _CODE, f"text(JSON.stringify(await tools.exec_command({{cmd: {json.dumps(command)}}})));"
    return None


def _properties(schema: JsonObject | None) -> dict[str, JsonObject]:
    """Return the properties of a schema; empty for None."""
    return {name: table(each) for name, each in table(table(schema).get("properties")).items()}


def fitting(schema: JsonObject) -> object:
    """Return a minimal value of a JSON schema, for agents that request JSON."""
    if schema.get("enum"):
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf", "allOf"):
        if choices := objects(schema.get(key)):
            return fitting(choices[0])
    match _type(schema):
        case "object":
            return {name: fitting(each) for name, each in _properties(schema).items()}
        case "array":
            return [fitting(table(schema.get("items")))] if schema.get("minItems") else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "scripted"


def _type(schema: JsonObject) -> str:
    """Return the first type, in lower case: Gemini writes capitals, and JSON schema allows several types."""
    kind: object = schema.get("type", "object")
    return str(cast("list[object]", kind)[0] if isinstance(kind, list) else kind).lower()
