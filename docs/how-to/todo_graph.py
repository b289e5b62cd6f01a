"""Finds what is left to do in the code, and writes it down if you let it: a graph that needs no model."""

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

MARK = "# " + "TODO"


class State(MessagesState):
    found: list[str]


def look(state: State) -> dict[str, Any]:
    found = [
        f"{file}:{number}: {line.split(MARK, 1)[1].lstrip(': ')}"
        for file in sorted(Path().rglob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if MARK in line
    ]
    return {"found": found, "messages": [AIMessage(f"{len(found)} things are left to do.")]}


def ask(state: State) -> Command[str]:
    # A node that asks is begun again when it is answered, so it does nothing else. Yes is `True` and no is `False`;
    # whoever answers in words is heard word for word, so look for `True` and not for anything that is not empty.
    answer = interrupt({"question": "Shall I write TODO.md?", "lines": state["found"]})
    return Command(goto="write" if answer is True else "leave")


def write(state: State) -> dict[str, Any]:
    Path("TODO.md").write_text("".join(f"- {line}\n" for line in state["found"]))
    return {"messages": [AIMessage("They are in TODO.md now.")]}


def leave(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("I wrote nothing.")]}


graph = (
    StateGraph(State)
    .add_node(look)
    .add_node(ask, destinations=("write", "leave"))
    .add_node(write)
    .add_node(leave)
    .add_edge(START, "look")
    .add_edge("look", "ask")
    .add_edge("write", END)
    .add_edge("leave", END)
    .compile()
)
