"""The graph that is certified: a model and its tools in turns, as most are, with the scripted model behind it."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage, convert_to_openai_messages
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt


def _tool(name: str, *fields: str) -> dict[str, Any]:
    takes = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    return {"type": "function", "function": {"name": name, "parameters": takes}}


TOOLS = [_tool("write_file", "path", "content"), _tool("shell", "command")]


def model(state: MessagesState) -> dict[str, Any]:
    """Ask the scripted model for the next message."""
    body = {"model": "scripted", "messages": convert_to_openai_messages(state["messages"]), "tools": TOOLS}
    asked = urllib.request.Request(
        os.environ["SCRIPTED_MODEL"], json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as response:
        answer = json.load(response)
    said, used = answer["choices"][0]["message"], answer["usage"]
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
        for call in said.get("tool_calls") or ()
    ]
    tokens = {"input_tokens": used["prompt_tokens"], "output_tokens": used["completion_tokens"]}
    usage: Any = {**tokens, "total_tokens": sum(tokens.values())}
    return {"messages": [AIMessage(said.get("content") or "", tool_calls=calls, usage_metadata=usage)]}


def tools(state: MessagesState) -> dict[str, Any]:
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(_use(call["name"], call["args"]), tool_call_id=call["id"]) for call in calls]}


def _use(name: str, given: dict[str, str]) -> str:
    if name == "write_file":
        Path(given["path"]).write_text(given["content"])
        return "Written."
    if interrupt({"question": "May this run?", "command": given["command"]}) is not True:
        return "The user refused this."
    done = subprocess.run(["bash", "-c", given["command"]], capture_output=True, text=True)
    return done.stdout + done.stderr


def after(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


graph = (
    StateGraph(MessagesState)
    .add_node(model)
    .add_node(tools)
    .add_edge(START, "model")
    .add_conditional_edges("model", after, ["tools", END])
    .add_edge("tools", "model")
    .compile()
)
