import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segue import client
from segue.cli.output import moment
from segue.model.ids import Seq, SessionId, WorkflowId
from segue.model.memories import Found, MemoryId, Provenance, RecallQuery, Recollection
from tests.server.standin_service import NOON, Standin

AT = moment(NOON.isoformat())
FOUND = Found(
    kind="message",
    text="The zeppelin lands.\nOn Sunday.",
    excerpt="The zeppelin lands. On Sunday.",
    at=NOON,
    score=0.934,
    stale=False,
    provenance=Provenance(
        workflow_id=WorkflowId("workflow-1"), workflow="fix-mast", session_id=SessionId("session-1"), seq=Seq(12)
    ),
)
ENTRY = Found(
    kind="memory",
    text="Helium, not hydrogen.",
    excerpt="Helium, not hydrogen.",
    at=NOON,
    score=0.5,
    stale=True,
    provenance=Provenance(memory_id=MemoryId("id-1")),
)


class Remembering:
    """A memory that says what the test wrote."""

    def __init__(self, verdict: str, *results: Found) -> None:
        found = len(results[:1]) if verdict != "not_found" else 0
        self.answer = Recollection(verdict=verdict, query="", results=results, found=found, access_log_id=1)
        self.asked: list[RecallQuery] = []

    async def recall(self, question: RecallQuery) -> Recollection:
        self.asked.append(question)
        return self.answer


def test_what_was_found_is_printed_with_where_it_comes_from(segue: Any, service: Standin) -> None:
    service.memory = Remembering("recalled", FOUND, ENTRY)
    assert segue("recall", "zeppelin", "landing", "--limit", "3").stdout == (
        "Recalled 1 passage:\n"
        "\n"
        f"message  fix-mast#12  session-1  {AT}  0.93\n"
        "  The zeppelin lands. On Sunday.\n"
        "\n"
        "The nearest beside:\n"
        "\n"
        f"memory  id-1  {AT}  0.50  (more than 180 days old: check it before you rely on it)\n"
        "  Helium, not hydrogen.\n"
    )
    assert service.memory.asked == [RecallQuery(query="zeppelin landing", limit=3)]


def test_the_whole_text_is_printed_on_request(segue: Any, service: Standin) -> None:
    service.memory = Remembering("recalled", FOUND)
    assert segue("recall", "zeppelin", "--full").stdout.endswith("  The zeppelin lands.\n  On Sunday.\n")


@pytest.mark.parametrize(
    ("verdict", "results", "line"),
    [
        ("several", [FOUND], "1 passage may be meant:"),
        ("not_found", [FOUND], "Nothing in past work has all of this. The nearest:"),
        ("not_found", [], "Nothing in past work has any of these words."),
    ],
)
def test_the_verdict_comes_first(segue: Any, service: Standin, verdict: str, results: list[Found], line: str) -> None:
    service.memory = Remembering(verdict, *results)
    assert segue("recall", "x", "-w", "fix-mast").stdout.splitlines()[0] == line
    assert service.memory.asked[0].workflow == "fix-mast"


def test_programs_get_one_document(segue: Any, service: Standin) -> None:
    service.memory = Remembering("recalled", FOUND)
    document = json.loads(segue("recall", "x", "--json").stdout)
    assert (document["verdict"], document["results"][0]["provenance"]["seq"]) == ("recalled", 12)


def test_a_recall_without_words_is_wrong_use(segue: Any, service: Standin) -> None:
    assert segue("recall").exit_code == 2


@pytest.fixture
def real_server(segue: Any) -> Iterator[None]:
    up = segue("up")
    assert up.exit_code == 0, up.output
    yield
    client.stop_server()
    for process in client._started:
        process.wait()
    client._started.clear()


@pytest.mark.usefixtures("real_server")
def test_memorized_recalled_changed_and_forgotten_by_a_real_server(segue: Any, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("The zeppelin lands on Sunday, weather permitting, at the northern mast.\n")
    stored = json.loads(segue("memorize", "new", f"@{note}", "--keep", "working", "--json").stdout)["memory"]
    again = segue("memorize", "new", "-", typed=note.read_text())
    assert again.stdout.startswith(f"✓ Already stored: {stored['tag']} (working, until ")
    assert stored["id"] in segue("recall", "zeppelin", "mast").stdout
    changed = segue("memorize", "update", stored["tag"], "The airship stays.")
    assert changed.stdout.startswith(f"✓ Updated: {stored['tag']} (working, until ")
    assert segue("recall", stored["tag"]).stdout.endswith("  The airship stays.\n")
    refused = segue("memorize", "auto", "Call +49 151 2345 6789 first.")
    assert (refused.exit_code, "a telephone number" in refused.stderr) == (1, True)
    assert segue("memorize", "forget", stored["tag"]).stdout == f"✓ Forgotten: {stored['id']}\n"
    assert segue("memorize", "update", stored["tag"], "It flies.").exit_code == 1
