"""A graph is found by its name, and one that cannot be used is told in a sentence."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

from segue.drivers.langgraph.graphs import NoGraph, find

BUILDER = """
    from typing import TypedDict
    from langgraph.graph import START, MessagesState, StateGraph

    class Two(TypedDict):
        left: str
        right: str

    class One(TypedDict):
        left: str

    def work(state): return {}

    def built(state, **given):
        return StateGraph(state, **given).add_node(work).add_edge(START, "work")

    builder = built(MessagesState)
    graph = builder.compile()
    single = built(Two, input_schema=One).compile()
    double = built(Two)
    number = 7

    def made(): return builder
    def broken(): raise ValueError("no key")
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    (tmp_path / "deep").mkdir()
    (tmp_path / "mine.py").write_text(dedent(BUILDER))
    (tmp_path / "deep" / "beside.py").write_text("from neighbour import graph\n")
    (tmp_path / "deep" / "neighbour.py").write_text(dedent(BUILDER))
    (tmp_path / "wrong.py").write_text("import a_module_that_never_was\n")
    (tmp_path / "leaving.py").write_text("\nraise SystemExit(3)\n")
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["mine:graph", "mine.py:graph", "mine:builder", "mine:made", "deep/beside.py:graph"])
def test_a_graph_is_found_by_its_module_and_by_its_file(name: str, directory: Path) -> None:
    graph = find(name, directory)
    assert set(graph.pregel.nodes) == {"__start__", "work"}
    assert graph.converses
    assert [message.content for message in graph.input("hello")["messages"]] == ["hello"]


@pytest.mark.parametrize("name", ["mine:graph", "deep/beside.py:graph", "wrong:graph"])
def test_a_look_for_a_graph_leaves_no_files_behind(name: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = sorted(directory.rglob("*"))
    with suppress(NoGraph):
        find(name, directory)
    assert sorted(directory.rglob("*")) == before
    assert not sys.dont_write_bytecode


def test_a_graph_with_one_key_takes_the_prompt_there(directory: Path) -> None:
    assert find("mine:single", directory).input("hello") == {"left": "hello"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "No graph is named by '': write module:attribute or path/to/file.py:attribute"),
        ("mine", "No graph is named by 'mine'"),
        ("nowhere:graph", "nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("nowhere.py:graph", "nowhere.py cannot be imported: FileNotFoundError: there is no file"),
        (
            "wrong:graph",
            "wrong cannot be imported: ModuleNotFoundError: No module named 'a_module",
        ),
        ("leaving:graph", "leaving cannot be imported: SystemExit: 3 (leaving.py, line 2)"),
        ("mine:grpah", "mine has no 'grpah'; the graphs in it are: builder, graph, single, double."),
        ("mine:number", "mine:number is a int and no LangGraph graph."),
        ("mine:broken", "mine:broken cannot be made: ValueError: no key (mine.py, line"),
        ("mine:double", "mine:double takes left, right, and a prompt is one text: give it a key 'messages'"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(name: str, sentence: str, directory: Path) -> None:
    with pytest.raises(NoGraph) as raised:
        find(name, directory)
    assert str(raised.value).startswith(sentence)
