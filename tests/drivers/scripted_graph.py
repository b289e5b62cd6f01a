"""A graph that does what the lines of a file say; each line is a part of a prompt, an act, and what belongs to it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from langgraph.types import interrupt  # pyright: ignore[reportMissingTypeStubs]

RECALL = "tell me what I said"
LINES: dict[str, tuple[str, list[Any]]] = json.loads(Path(os.environ["SEGUE_LANGGRAPH_LINES"]).read_text())


def _act(state: MessagesState) -> tuple[str, list[Any]]:
    said = [str(message.content) for message in state["messages"] if isinstance(message, HumanMessage)]
    if RECALL in said[-1]:
        return "Say", ["\n".join(said[:-1])]
    return next((act for prompt, act in LINES.items() if prompt in said[-1]), ("Say", ["Done."]))


def begin(state: MessagesState) -> dict[str, Any]:
    act, _ = _act(state)
    return {"messages": [AIMessage("Hanging.")]} if act == "Hang" else {}


async def act(state: MessagesState) -> dict[str, Any]:
    match _act(state):
        case "Say", [text]:
            return {"messages": [AIMessage(text)]}
        case "Write", [path, content]:
            if interrupt(f"May I write {path}?") is True:
                Path(path).write_text(content)
            return {}
        case "Hang", _:
            await asyncio.Event().wait()
            return {}
        case "Use", [given, told]:
            used = {"input_tokens": given, "output_tokens": told, "total_tokens": given + told}
            return {"messages": [AIMessage("Used.", usage_metadata=used)]}
        case "Fail", [message]:
            raise RuntimeError(message)
        case other:
            raise AssertionError(f"{other} is not an act of a graph")


builder: Any = StateGraph(MessagesState)
graph = builder.add_node(begin).add_node(act).add_edge(START, "begin").add_edge("begin", "act").add_edge("act", END)
