"""Graph without a model: find TODO comments, and write them to a file if the user allows it."""

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
    # A node with an interrupt is started again after the answer, so it does nothing else. The answer is `True`, `False`
    # or a text; so compare with `True`, and do not accept any non-empty value.
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
