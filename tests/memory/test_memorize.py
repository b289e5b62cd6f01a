"""Writing of memory entries, on both engines."""

import json
from datetime import timedelta

import anyio
import pytest

from segue.journal import Journal
from segue.memory import Memory
from segue.model import events as e
from segue.model.errors import BadInput, MemoryNotFound, MemoryUnclear, SecretFound, WorkflowNotFound
from segue.model.memories import Keeping, Memorized, Note, RecallQuery
from tests.journal.statements import execute
from tests.journal.workflows import TickingClock, begun
from tests.memory.test_recall import findings_at, with_snapshot

pytestmark = pytest.mark.anyio

RETRIES = "Retries of the payment gateway are capped at five, with exponential delay and full jitter between them."


async def store(memory: Memory, content: str, **more: object) -> Memorized:
    return await memory.memorize(Note(content=content, **more), "new")


async def found_by(memory: Memory, query: str) -> list[str]:
    return [each.text for each in await memory.search(query)]


async def test_an_entry_is_stored_with_its_tag_hash_and_time_to_live(memory: Memory, clock: TickingClock) -> None:
    stored = await store(memory, RETRIES, domain="payments", importance=0.9, tags=("gateway",))
    entry = stored.memory
    assert stored.status == "stored"
    assert entry.tag == "retries-payment-gateway-capped-five_payments_2026"
    assert len(entry.content_sha256) == 64
    assert entry.keeping is Keeping.LONG_TERM
    assert entry.expires_at == entry.created_at + timedelta(days=90)
    assert await memory.get_memory_by_id(entry.id) == entry
    assert await memory.get_memory_by_id(entry.tag) == entry


async def test_an_entry_is_found_by_its_words_labels_and_domain(memory: Memory) -> None:
    await store(memory, RETRIES, domain="payments", tags=("backoff",))
    for query in ("capped retries", "backoff", "payments"):
        assert await found_by(memory, query) == [RETRIES], query
    recalled = await memory.recall(RecallQuery(query="exponential jitter"))
    assert (recalled.verdict, recalled.results[0].kind) == ("recalled", "memory")


async def test_storing_the_same_twice_stores_once(memory: Memory) -> None:
    first, again = await store(memory, RETRIES), await store(memory, RETRIES)
    assert (again.status, again.memory) == ("unchanged", first.memory)


async def stored_at_once(memory: Memory, *notes: Note) -> list[Memorized]:
    done: list[Memorized] = []

    async def store_one(note: Note) -> None:
        done.append(await memory.memorize(note, "new"))

    async with anyio.create_task_group() as tasks:
        for note in notes:
            tasks.start_soon(store_one, note)
    return done


async def test_the_same_stored_by_many_at_once_is_stored_once(memory: Memory) -> None:
    for key in (None, "k1"):
        done = await stored_at_once(memory, *[Note(content=f"{RETRIES} {key}", key=key)] * 12)
        assert sorted(each.status for each in done) == ["stored", *["unchanged"] * 11]
        assert len({each.memory.id for each in done}) == 1


async def test_different_entries_of_one_title_stored_at_once_are_all_kept(journal: Journal, memory: Memory) -> None:
    done = await stored_at_once(memory, *(Note(content=f"On deployment\npart {n}") for n in range(12)))
    assert {each.status for each in done} == {"stored"}
    assert len({each.memory.tag for each in done}) == 12
    assert await execute(journal, "SELECT count(*) FROM memories") == [(12,)]


async def test_a_key_stores_once_and_refuses_other_content(memory: Memory) -> None:
    first = await store(memory, RETRIES, key="k1")
    assert (await store(memory, RETRIES, key="k1")).memory.id == first.memory.id
    with pytest.raises(BadInput, match="k1"):
        await store(memory, "Something else entirely.", key="k1")


async def test_two_entries_of_one_title_get_different_tags(memory: Memory) -> None:
    one, two = await store(memory, "On deployment\nfirst"), await store(memory, "On deployment\nsecond")
    assert (one.memory.tag, two.memory.tag) == ("deployment_general_2026", "deployment-2_general_2026")


async def test_an_entry_is_updated_by_id_or_tag_and_found_by_its_new_words_only(memory: Memory) -> None:
    entry = (await store(memory, RETRIES, importance=0.9)).memory
    await memory.update_memory(entry.id, "The zeppelin lands.")
    changed = (await memory.memorize(Note(content="The airship lands."), "update", entry.tag)).memory
    assert (changed.id, changed.revision, changed.importance) == (entry.id, 3, 0.9)
    assert await found_by(memory, "airship") == ["The airship lands."]
    assert await found_by(memory, "zeppelin") == await found_by(memory, "jitter") == []


async def test_auto_updates_what_is_nearly_the_same(memory: Memory) -> None:
    entry = (await store(memory, RETRIES)).memory
    done = await memory.memorize(Note(content=RETRIES.replace("five", "six")), "auto")
    assert (done.status, done.memory.id) == ("updated", entry.id)


async def test_auto_stores_what_is_new(memory: Memory) -> None:
    await store(memory, RETRIES)
    assert (await memory.memorize(Note(content="The zeppelin lands on Sunday."), "auto")).status == "stored"


async def test_auto_refuses_a_similar_entry(memory: Memory) -> None:
    entry = (await store(memory, RETRIES)).memory
    alike = "Retries of the payment gateway are capped at ten, with linear delay and some jitter between them."
    with pytest.raises(MemoryUnclear, match=entry.tag) as unclear:
        await memory.memorize(Note(content=alike), "auto")
    assert f"segue memorize update {entry.tag}" in unclear.value.hint
    assert "segue memorize new" in unclear.value.hint
    assert await found_by(memory, "linear") == []


async def test_updating_what_does_not_exist_is_refused(memory: Memory) -> None:
    with pytest.raises(MemoryNotFound, match="nobody"):
        await memory.memorize(Note(content=RETRIES), "update", "nobody")


async def test_private_data_is_blocked_and_never_written(journal: Journal, memory: Memory) -> None:
    token = "ghp_" + "a" * 36
    with pytest.raises(SecretFound, match="Nothing was stored") as refused:
        await store(memory, f"Ask jane.doe@acme-corp.com for {token}.")
    assert "a secret (github-token) and an e-mail address" in refused.value.message
    (row,) = await execute(journal, "SELECT operation, outcome, detail FROM memory_log")
    assert (row.operation, row.outcome) == ("new", "blocked")
    assert token not in row.detail + refused.value.message
    assert await execute(journal, "SELECT count(*) FROM memories") == [(0,)]


@pytest.mark.parametrize("field", ["content", "key", "domain", "tags", "tag"])
async def test_a_secret_is_blocked_in_whichever_field_it_stands(journal: Journal, memory: Memory, field: str) -> None:
    secret = "ghp_" + "a" * 36 + "_2026"
    note = Note(**{"content": "harmless", field: (secret,) if field == "tags" else secret})
    for mode in ("new", "auto"):
        with pytest.raises(SecretFound):
            await memory.memorize(note, mode)
    details = await execute(journal, "SELECT detail FROM memory_log")
    assert [json.loads(row.detail) for row in details] == [{"found": "a secret (github-token)"}] * 2


async def test_bad_notes_are_refused(memory: Memory) -> None:
    for complaint, note in {
        "nothing to memorize": Note(content=" "),
        "a NUL": Note(content="x\0y"),
        "holds a NUL": Note(content="x", key="\0"),
        "20,001": Note(content="x" * 20_001),
        "importance": Note(content="x", importance=2.0),
        "topic_context_YYYY": Note(content="x", tag="Just A Tag"),
    }.items():
        with pytest.raises(BadInput, match=complaint):
            await memory.memorize(note, "new")


async def test_a_taken_tag_is_refused_with_a_hint(memory: Memory) -> None:
    await store(memory, RETRIES, tag="retries_payments_2026")
    with pytest.raises(BadInput, match="taken") as refused:
        await store(memory, "Something else entirely.", tag="retries_payments_2026")
    assert refused.value.hint.endswith("segue memorize update retries_payments_2026")


async def test_an_update_to_a_taken_tag_is_refused_and_changes_nothing(journal: Journal, memory: Memory) -> None:
    workflow, _ = await begun(journal)
    await store(memory, RETRIES, tag="retries_payments_2026")
    other = (await store(memory, "The zeppelin lands.", tag="zeppelin_travel_2026")).memory
    for name in (other.id, workflow):
        with pytest.raises(BadInput, match="The tag 'retries_payments_2026' is taken"):
            await memory.memorize(Note(content="It flies.", tag="retries_payments_2026"), "update", name)
    assert await memory.get_memory_by_id(other.id) == other
    same = await memory.memorize(Note(content="It flies.", tag=other.tag), "update", other.id)
    assert (same.status, same.memory.tag) == ("updated", other.tag)


async def test_an_update_without_content_is_refused(memory: Memory) -> None:
    entry = (await store(memory, RETRIES)).memory
    for name in (entry.tag, entry.id):
        with pytest.raises(BadInput, match="CONTENT is missing"):
            await memory.memorize_workflow(name)
    assert await memory.get_memory_by_id(entry.id) == entry
    with pytest.raises(WorkflowNotFound):
        await memory.memorize_workflow("nobody")


async def test_an_entry_is_found_until_it_expires(memory: Memory, clock: TickingClock) -> None:
    for keeping, days in {Keeping.SHORT_TERM: 1, Keeping.WORKING: 7, Keeping.LONG_TERM: 90}.items():
        entry = (await store(memory, RETRIES, keeping=keeping)).memory
        clock.time += timedelta(days=days) - timedelta(minutes=1)
        assert await found_by(memory, "retries") == [RETRIES]
        clock.time += timedelta(minutes=2)
        assert await found_by(memory, "retries") == []
        assert (await memory.recall(RecallQuery(query=entry.tag))).results == ()
        with pytest.raises(MemoryNotFound, match="expired"):
            await memory.get_memory_by_id(entry.id)


async def test_a_persistent_entry_stays_and_grows_stale(memory: Memory, clock: TickingClock) -> None:
    await store(memory, RETRIES, keeping=Keeping.PERSISTENT)
    clock.time += timedelta(days=500)
    (found,) = await memory.search("retries")
    assert found.stale


async def test_an_expired_entry_is_erased_in_the_end(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    entry = (await store(memory, RETRIES, keeping=Keeping.WORKING)).memory
    clock.time += timedelta(days=7 + 181)
    await memory.search("anything")
    assert await execute(journal, "SELECT count(*) FROM memories") == [(0,)]
    assert [each.operation for each in await memory.accesses(entry.id)] == ["new", "expire", "erase"]


async def test_a_deleted_entry_is_gone_and_its_log_is_not(journal: Journal, memory: Memory) -> None:
    entry = (await store(memory, RETRIES)).memory
    assert (await memory.delete(entry.tag)).memory_id == entry.id
    assert await found_by(memory, "retries") == []
    with pytest.raises(MemoryNotFound):
        await memory.delete(entry.id)
    assert [each.operation for each in await memory.accesses(entry.id)] == ["new", "delete"]


async def test_every_operation_is_logged_with_its_hash(memory: Memory) -> None:
    entry = await memory.store_memory(RETRIES)
    await memory.update_memory(entry.id, "The zeppelin lands.")
    await memory.get_memory_by_id(entry.id)
    log = await memory.accesses(entry.id)
    assert [(each.operation, each.outcome) for each in log] == [
        ("new", "stored"),
        ("update", "updated"),
        ("read", "done"),
    ]
    assert log[1].detail["sha256_before"] == log[0].detail["sha256"] == entry.content_sha256


async def test_semantic_search_is_refused(memory: Memory) -> None:
    with pytest.raises(BadInput, match="no vectors"):
        await memory.search("x", semantic=True)


SECTIONS = ["Goal", "State", "Decisions", "Errors", "Changes", "Tests", "Next steps", "Sources"]


async def test_a_workflow_is_kept_once_in_eight_sections(journal: Journal, memory: Memory, clock: TickingClock) -> None:
    workflow, session = await begun(journal)
    slug = (await journal.workflows.get(workflow)).slug
    await with_snapshot(journal, workflow, session, findings_at(clock))
    first = (await memory.memorize_workflow(slug)).memory
    assert [line[3:] for line in first.content.splitlines() if line.startswith("## ")] == SECTIONS
    for words in ("Build it", "Use the kestrel library", "quokka not found", "Wake the iguana", workflow):
        assert words in first.content
    assert first.tag == f"{slug}_workflow_2026"
    assert (first.provenance.workflow_id, first.provenance.session_id) == (workflow, session)
    assert first.provenance.seq == await journal.head(workflow)
    await journal.append(workflow, e.AgentMessage(text="On it goes."), session_id=session)
    again = await memory.memorize_workflow(slug)
    assert (again.status, again.memory.id, again.memory.revision) == ("updated", first.id, 2)


async def test_private_data_is_left_out_of_a_workflows_sections(journal: Journal, memory: Memory) -> None:
    workflow, session = await begun(journal)
    await with_snapshot(journal, workflow, session, None)
    await execute(journal, "UPDATE workflows SET title = 'Mail jane.doe@acme-corp.com'")
    assert "Mail [an e-mail address]" in (await memory.memorize_workflow(workflow)).memory.content
