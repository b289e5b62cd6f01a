"""Search in past work, on both engines."""

from dataclasses import replace
from datetime import timedelta

import pytest

from segue.journal import Journal, Transaction
from segue.memory import Memory
from segue.model import events as e
from segue.model.checkpoint import Checkpoint, CheckpointType, TaskMark
from segue.model.errors import BadInput, NotFound, WorkflowNotFound
from segue.model.findings import Decision, ErrorRecord, Findings
from segue.model.ids import PromptId, SessionId, TaskId, WorkflowId
from segue.model.memories import RecallQuery, Recollection
from segue.model.plan import TaskStatus
from segue.model.status import Trigger
from tests.journal.statements import execute
from tests.journal.workflows import TickingClock, begun, new_workflow

pytestmark = pytest.mark.anyio

CHATTER = [
    "Let me look at the layout of the project first.",
    "The tests are in the usual place and they all pass.",
    "I will write the documentation at the very end.",
    "The build takes a while, so I go on with the next file.",
]


def say(*texts: str) -> list[e.Event]:
    return [e.AgentMessage(text=text) for text in texts]


async def recall(memory: Memory, query: str, **more: object) -> Recollection:
    return await memory.recall(RecallQuery(query=query, **more))


async def test_words_find_the_message_that_has_them_and_where_it_comes_from(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    at = await journal.append(workflow, *say(*CHATTER[:2]), session_id=session)
    await journal.append(workflow, *say("We cap the retries of the payment gateway at five."), session_id=session)
    await journal.append(workflow, *say(*CHATTER[2:]), session_id=session)
    best = (await recall(memory, "How many retries does the payment gateway get?")).results[0]
    assert (best.kind, best.text) == ("message", "We cap the retries of the payment gateway at five.")
    assert (best.provenance.workflow_id, best.provenance.session_id) == (workflow, session)
    assert best.provenance.seq == at + 1
    assert best.provenance.workflow == (await journal.workflows.get(workflow)).slug
    assert not best.stale


async def test_words_are_found_in_other_forms(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say(*CHATTER, "The connections are pooled by the driver."), session_id=session)
    found = await recall(memory, "connection pooling")
    assert (found.verdict, found.results[0].text) == ("recalled", "The connections are pooled by the driver.")


async def test_identifiers_are_found_whole_and_in_parts(journal: Journal, memory: Memory) -> None:
    written = ("parse_header", "parseHeader", "src/http/parseHeader.ts", "ParseHeader")
    workflow, session = await begun(journal)
    for name in written:
        await journal.append(workflow, *say(*CHATTER, f"It breaks in {name}."), session_id=session)
    for query in ("parse_header", "parseHeader", "parse header", "ParseHeader"):
        found = await recall(memory, query)
        assert found.verdict == "recalled"
        assert {each.text for each in found.results[:4]} == {f"It breaks in {name}." for name in written}, query


async def test_a_path_is_found_by_its_parts(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say(*CHATTER, "I changed services/billing/invoice.py."), session_id=session)
    assert "invoice.py" in (await recall(memory, "billing invoice")).results[0].text


async def test_a_turn_is_found_by_the_text_of_its_neighbours(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    texts = ["Why does the zeppelin importer fail?", "The encoding is latin-1.", *CHATTER]
    await journal.append(workflow, *say(*texts), session_id=session)
    found = await recall(memory, "zeppelin importer encoding")
    assert {each.text for each in found.results[:2]} == set(texts[:2])
    assert all(each.score >= 0.5 for each in found.results[:2])


async def test_neighbours_are_those_of_the_same_workflow(journal: Journal, memory: Memory) -> None:
    (one, first), (other, second) = await begun(journal), await begun(journal)
    await journal.append(one, *say("The zeppelin lands."), session_id=first)
    await journal.append(other, *say("Nothing of that sort."), session_id=second)
    assert {each.provenance.workflow_id for each in (await recall(memory, "zeppelin")).results} == {one}


async def test_every_clipped_kind_of_event_is_found(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal, new_workflow(title="Tame the walrus"))
    await journal.append(
        workflow,
        e.PromptQueued(prompt_id=PromptId("p"), text="Please feed the ocelot."),
        e.UserSpoke(text="Never touch the wombat."),
        e.AgentThought(text="The lemur might be asleep."),
        e.AgentSummarised(text="So far the tapir was moved."),
        e.ToolCalled(call_id="1", title="cat badger.txt", tool="execute", input={"command": "cat gecko.txt"}),
        e.ToolFinished(call_id="1", status="completed", output="otter otter"),
        e.ToolFinished(call_id="2", status="failed", output="no such marmot"),
        e.TodoUpdated(
            entries=(
                e.TodoEntry(content="Comb the alpaca", status="in_progress"),
                e.TodoEntry(content="Wash the panda", status="pending"),
            )
        ),
        e.PermissionAnswered(request_id="r", outcome="denied", by="user", reason="Leave the ferret alone."),
        e.Warned(code="w", message="The heron left."),
        e.IncidentLogged(what="The stork crashed", detail="into the mast"),
        session_id=session,
    )
    expected = {
        "walrus": "issue",
        "ocelot": "prompt",
        "wombat": "prompt",
        "lemur": "thought",
        "tapir": "summary",
        "badger": "tool",
        "gecko": "tool",
        "otter": "output",
        "marmot": "error",
        "alpaca": "todo",
        "ferret": "decision",
        "heron": "error",
        "stork": "error",
    }
    assert {word: (await recall(memory, word)).results[0].kind for word in expected} == expected
    assert (await recall(memory, "panda")).results == ()


async def with_snapshot(journal: Journal, workflow: WorkflowId, session: SessionId, findings: Findings | None) -> None:
    def save(t: Transaction) -> None:
        checkpoint = Checkpoint(
            id=t.checkpoints.next_id(),
            workflow_id=workflow,
            session_id=session,
            session_number=1,
            created_at=t.now,
            type=CheckpointType.PAUSE,
            trigger=Trigger.PAUSE,
            reason="lunch",
            snapshot=True,
            clean_boundary=True,
            after=t.head,
            tasks=(TaskMark(id=TaskId("a"), title="Paint the giraffe", status=TaskStatus.COMPLETED),),
            current_task=None,
            next_task=None,
            git=None,
            commit=None,
            next_steps=("Wake the iguana",),
        )
        t.checkpoints.save(checkpoint, 1)
        if findings is not None:
            t.checkpoints.save_findings(replace(findings, checkpoint_id=checkpoint.id), session)

    await journal.transact(workflow, save)


def findings_at(clock: TickingClock) -> Findings:
    return Findings(
        checkpoint_id="",
        decisions=(
            Decision(
                id="d",
                timestamp=clock.now(),
                task_id=None,
                decision_type="library",
                description="Use the kestrel library",
                rationale="the falcon library is not maintained",
            ),
        ),
        errors=(
            ErrorRecord(
                id="e", timestamp=clock.now(), task_id=None, error_type="command", error_message="quokka not found"
            ),
        ),
    )


async def test_checkpoints_decisions_errors_are_found(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    await with_snapshot(journal, workflow, session, findings_at(clock))
    for word, kind in {
        "giraffe": "checkpoint",
        "iguana": "checkpoint",
        "kestrel": "decision",
        "falcon": "decision",
        "quokka": "error",
    }.items():
        assert (await recall(memory, word)).results[0].kind == kind, word


async def test_the_same_words_are_shown_once(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    for _ in range(3):
        await with_snapshot(journal, workflow, session, findings_at(clock))
    found = await recall(memory, "kestrel library", limit=10)
    assert [each.text for each in found.results].count(
        "Use the kestrel library\nthe falcon library is not maintained"
    ) == 1


async def clippings_of_kind(journal: Journal, kind: str) -> int:
    [(count,)] = await execute(journal, "SELECT count(*) FROM clippings WHERE kind = :kind", kind=kind)
    return count


async def test_repeated_findings_are_clipped_once(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    findings = findings_at(clock)
    for _ in range(3):
        await with_snapshot(journal, workflow, session, findings)
        await recall(memory, "anything")
    for _ in range(3):
        await with_snapshot(journal, workflow, session, findings)
    await recall(memory, "anything")
    assert await clippings_of_kind(journal, "decision") == await clippings_of_kind(journal, "error") == 1


async def with_failure(journal: Journal, workflow: WorkflowId, session: SessionId, clock: TickingClock) -> ErrorRecord:
    """A failed command, and what a study makes of it."""
    output = "Traceback:\nModuleNotFoundError: No module named 'quokka'"
    failed = e.ToolFinished(call_id="1", status="failed", output=output)
    return ErrorRecord(
        id="e",
        timestamp=clock.now(),
        task_id=None,
        error_type="ModuleNotFoundError",
        error_message="ModuleNotFoundError: No module named 'quokka'",
        seq=await journal.append(workflow, failed, session_id=session),
    )


async def test_an_error_is_shown_once_in_its_last_form(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    slug = (await journal.workflows.get(workflow)).slug
    error = await with_failure(journal, workflow, session, clock)
    for known in (error, replace(error, resolution="fixed", resolution_notes="It was installed, and the tests pass.")):
        await with_snapshot(journal, workflow, session, Findings(checkpoint_id="", errors=(known,)))
    by_name = [each for each in (await recall(memory, slug)).results if each.kind == "error"]
    by_words = [each for each in (await recall(memory, "No module named quokka")).results if each.kind == "error"]
    assert len(by_name) == len(by_words) == 1
    assert by_name[0].text.splitlines() == [error.error_message, "fixed", "It was installed, and the tests pass."]


async def test_a_finding_is_cited_by_its_first_event(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    said = await journal.append(workflow, *say("Kestrel it is.", *CHATTER), session_id=session) - len(CHATTER)
    findings = findings_at(clock)
    decision = replace(findings.decisions[0], seq=said)
    await with_snapshot(journal, workflow, session, replace(findings, decisions=(decision,)))
    best = (await recall(memory, "falcon library")).results[0]
    assert (best.kind, best.provenance.seq, best.provenance.session_id) == ("decision", said, session)
    slug = (await journal.workflows.get(workflow)).slug
    assert [each.kind for each in (await recall(memory, f"{slug}#{said}")).results] == ["message", "decision"]


async def test_a_query_with_an_unknown_term_is_not_found(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say(*CHATTER, "The zeppelin lands."), session_id=session)
    found = await recall(memory, "zeppelin moorings")
    assert found.verdict == "not_found"
    assert found.results[0].text == "The zeppelin lands.", "the nearest is shown all the same"
    assert found.results[0].score < 0.75
    nothing = await recall(memory, "moorings")
    assert (nothing.verdict, nothing.results) == ("not_found", ())


async def test_most_of_a_question_makes_several_candidates(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say("red green blue black grey", *CHATTER, "white"), session_id=session)
    found = await recall(memory, "red green blue black white")
    assert found.verdict == "several"
    assert 0.75 <= found.results[0].score < 0.90


async def test_only_results_in_the_band_count_as_found(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    texts = ("red green blue black white", *CHATTER, "red and green", *CHATTER[:2], "green green green")
    await journal.append(workflow, *say(*texts), session_id=session)
    recalled = await recall(memory, "red green blue black white")
    assert (recalled.verdict, recalled.found) == ("recalled", 1)
    assert recalled.results[0].text == "red green blue black white"
    assert len(recalled.results) > 1
    assert all(each.score < 0.90 for each in recalled.results[1:])
    assert (await recall(memory, "green moorings")).found == 0


async def test_new_events_are_found_by_the_next_query(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say("First comes the aardvark."), session_id=session)
    assert (await recall(memory, "aardvark")).verdict == "recalled"
    await journal.append(workflow, *say("Then comes the zebra."), session_id=session)
    assert (await recall(memory, "zebra")).verdict == "recalled"
    assert await journal.read_memories(lambda store: store.index.behind()) == []


async def test_more_events_than_one_step_takes_are_all_found(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say(*(f"number{n} of many" for n in range(350))), session_id=session)
    for n in (0, 99, 100, 349):
        assert (await recall(memory, f"number{n}")).results[0].text == f"number{n} of many"


async def test_a_deleted_index_is_built_again(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say(*CHATTER, "The zeppelin lands."), session_id=session)
    kept = await memory.store_memory("Zeppelins need helium.")
    before = (await recall(memory, "zeppelin")).results
    await journal.write_memories(lambda store: store.index.clear())
    assert (await recall(memory, "zeppelin")).results == before
    assert kept.id in {each.provenance.memory_id for each in before}


async def test_an_index_of_other_rules_is_built_again(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say("The zeppelin lands."), session_id=session)
    await recall(memory, "zeppelin")
    await execute(journal, "UPDATE shelves SET rules = 0")
    await execute(journal, "UPDATE clippings SET text = 'of other rules'")
    assert (await recall(memory, "zeppelin")).results[0].text == "The zeppelin lands."


async def test_a_query_can_be_limited_to_one_workflow(journal: Journal, memory: Memory) -> None:
    (one, first), (other, second) = await begun(journal), await begun(journal)
    await journal.append(one, *say("A zeppelin here."), session_id=first)
    await journal.append(other, *say("A zeppelin there."), session_id=second)
    found = await recall(memory, "zeppelin", workflow=(await journal.workflows.get(other)).slug)
    assert found.results[0].text == "A zeppelin there."
    assert {each.provenance.workflow_id for each in found.results} == {other}
    with pytest.raises(WorkflowNotFound, match="nobody"):
        await recall(memory, "zeppelin", workflow="nobody")


async def test_a_workflow_is_recalled_by_its_name(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    slug = (await journal.workflows.get(workflow)).slug
    await journal.append(workflow, *say("The last word."), session_id=session)
    note = await memory.memorize_workflow(slug)
    found = await recall(memory, slug)
    assert (found.verdict, found.results[0].provenance.memory_id) == ("recalled", note.memory.id)
    assert found.results[1].text == "The last word."
    assert (await recall(memory, session)).results[0].text == "The last word."


async def test_an_event_is_recalled_by_its_number(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    slug = (await journal.workflows.get(workflow)).slug
    long = "\n".join(f"Line {n} of what was said." for n in range(400))
    seq = await journal.append(workflow, *say(long), session_id=session)
    found = await recall(memory, f"{slug}#{seq}", limit=50)
    assert "\n".join(each.text for each in found.results) == long


async def test_a_missing_event_or_one_without_text_is_refused(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    slug = (await journal.workflows.get(workflow)).slug
    silent = await journal.append(workflow, e.TodoUpdated(entries=()), session_id=session)
    for seq in (0, 999, 10**30):
        with pytest.raises(NotFound, match=f"{slug} has no event {seq}") as refused:
            await recall(memory, f"{slug}#{seq}")
        assert f"from 1 to {silent}" in refused.value.hint
    with pytest.raises(NotFound, match="has no words"):
        await recall(memory, f"{slug}#{silent}")


async def test_a_name_is_searched_in_the_given_workflow_only(journal: Journal, memory: Memory) -> None:
    (one, first), (other, second) = await begun(journal), await begun(journal)
    names = [(await journal.workflows.get(each)).slug for each in (one, other)]
    await journal.append(one, *say("The first word."), session_id=first)
    await journal.append(other, *say(f"As was done in {names[0]}."), session_id=second)
    for name in (names[0], first):
        found = await recall(memory, name, workflow=names[1])
        assert {each.provenance.workflow_id for each in found.results} <= {other}, name
    assert (await recall(memory, names[0], workflow=names[1])).results[0].text == f"As was done in {names[0]}."
    assert (await recall(memory, names[0], workflow=one)).results[0].text == "The first word."
    with pytest.raises(WorkflowNotFound, match="nobody"):
        await recall(memory, names[0], workflow="nobody")


async def test_a_workflow_name_of_one_word_does_not_hide_other_results(journal: Journal, memory: Memory) -> None:
    (one, first), (other, second) = await begun(journal, replace(new_workflow(), slug="zeppelin")), await begun(journal)
    await journal.append(one, *say(*CHATTER, *CHATTER[:2], "The end."), session_id=first)
    await journal.append(other, *say("A zeppelin lands."), session_id=second)
    found = (await recall(memory, "zeppelin")).results
    assert found[0].text == "The end."
    assert "A zeppelin lands." in {each.text for each in found}
    assert len(found) == 5
    assert len({(each.provenance.workflow_id, each.text) for each in found}) == 5


async def test_old_work_is_found_with_a_warning(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say("The zeppelin lands."), session_id=session)
    assert not (await recall(memory, "zeppelin")).results[0].stale
    clock.time += timedelta(days=181)
    assert (await recall(memory, "zeppelin")).results[0].stale


async def test_recalling_changes_no_journal_and_is_logged_without_secrets(journal: Journal, memory: Memory) -> None:
    workflow, _ = await begun(journal)
    head = await journal.head(workflow)
    token = "ghp_" + "a" * 36
    found = await recall(memory, f"what about {token}")
    assert await journal.head(workflow) == head
    rows = await execute(journal, "SELECT id, operation, detail FROM memory_log")
    assert [(row.id, row.operation) for row in rows] == [(found.access_log_id, "recall")]
    assert token not in rows[0].detail + found.query


async def test_an_empty_question_is_refused(memory: Memory) -> None:
    for query in ("", "  \n", "\0"):
        with pytest.raises(BadInput, match="nothing to look for"):
            await recall(memory, query)


async def test_no_query_breaks_the_search(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await journal.append(workflow, *say("Some words, and x."), session_id=session)
    for query in ('"', "NEAR(", "*", "(((", "🦭 ∀"):
        assert (await recall(memory, query)).results == (), query
    for query in ("x AND", "text:x", "'; DROP TABLE x", "is it x"):
        assert (await recall(memory, query)).results[0].text == "Some words, and x.", query


async def test_any_output_of_a_tool_is_found(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    output = "zeppelin\0mast \udcff \x1b[31mred " + "x" * 100_000 + " helium"
    await journal.append(workflow, e.ToolFinished(call_id="1", status="completed", output=output), session_id=session)
    for word in ("zeppelin", "mast", "red", "helium"):
        assert (await recall(memory, word)).results[0].kind == "output", word


async def test_a_damaged_checkpoint_hides_nothing_else(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    await with_snapshot(journal, workflow, session, None)
    await journal.append(workflow, *say("The zeppelin lands."), session_id=session)
    await execute(journal, "UPDATE checkpoints SET hash = 'x'")
    assert (await recall(memory, "zeppelin")).verdict == "recalled"
    assert (await recall(memory, "giraffe")).results == ()
