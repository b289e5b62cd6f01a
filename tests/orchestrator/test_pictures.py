"""Pictures that people show to an agent: kept, handed over once, and refused where nobody would see them."""

from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from segue.model import events as e
from segue.model.errors import BadInput
from segue.model.pictures import LARGEST, Picture
from segue.model.requests import Shown
from segue.model.views import Prompted
from tests.orchestrator.races import Held
from tests.orchestrator.test_resuming import SCRIPT, paused, session_of, standing_still
from tests.orchestrator.test_workflows import worktree_of
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 100
SKETCH = Shown(name="the\nsketch.png", data=PNG)
SEEN = Picture(name="the sketch.png", media_type="image/png", sha256=sha256(PNG).hexdigest(), size=len(PNG))
WORDS = "Like this, please.\n\n[Picture: the sketch.png]"
NO_PICTURES = "the agent takes no pictures, so neither they nor the words were sent"
BETWEEN_TURNS = "The agent is between two turns, and gets it before the next one."
BLIND = "\ncapabilities: {images: false}\n"


async def show(theatre: Theatre, *shown: Shown, wait: bool = True) -> Prompted:
    with anyio.fail_after(30):
        return await theatre.prompt("build-it", "Like this, please.", wait=wait, images=shown)


def seen(theatre: Theatre) -> list[object]:
    """How many pictures came with what was said, each time that it was."""
    return [each.details.get("images", 0) for each in theatre.diary("prompt") if "Like this" in each["text"]]


async def test_a_picture_comes_with_the_words_and_both_are_told_of_later(between: Theatre) -> None:
    prompted = await show(between, SKETCH)
    [said] = [each for each in await between.events("build-it", e.PromptQueued) if each.task_id is None]
    assert (prompted.status, said.text, said.pictures) == ("sent", WORDS, (SEEN,))
    await standing_still(between)
    assert seen(between) == [1]
    files = await between.orchestrator.session_files(await session_of(between))
    assert "[Picture: the sketch.png]" in Path(files.history).read_text()
    assert (await between.orchestrator.verify("build-it")).verified


async def test_pictures_that_wait_survive_a_restart_and_are_shown_once(theatre: Theatre) -> None:
    async with theatre.open():
        await theatre.begin_until(e.ToolFinished, SCRIPT)
        assert (await show(theatre, SKETCH, wait=False)).status == "waiting"
    assert seen(theatre) == []
    (worktree_of(theatre) / "go").touch()
    async with theatre.open():
        await theatre.resume_until("build-it", "completed")
    assert seen(theatre) == [1]


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        ((Shown(name="notes.png", data=b"words"),), "notes.png is no picture"),
        ((Shown(name="empty.png", data=b""),), "empty.png is no picture"),
        ((Shown(name="wall.png", data=PNG + bytes(LARGEST)),), "wall.png is too large: 5.0 MB"),
        ((SKETCH,) * 6, "5 pictures go with one prompt at most, not 6"),
    ],
)
async def test_unusable_pictures_are_refused_unsent(between: Theatre, shown: tuple[Shown, ...], told: str) -> None:
    await between.until_studied()
    before = (await between.orchestrator.workflow("build-it")).head
    with pytest.raises(BadInput, match=told):
        await show(between, *shown)
    assert (await between.orchestrator.workflow("build-it")).head == before


async def test_an_agent_that_is_known_to_take_no_pictures_is_not_shown_any(opened: Theatre) -> None:
    await paused(opened, BLIND)
    await opened.until_studied()
    before = (await opened.orchestrator.workflow("build-it")).head
    with pytest.raises(BadInput, match="rehearsal takes no pictures"):
        await show(opened, SKETCH)
    assert (await opened.orchestrator.workflow("build-it")).head == before
    assert (await show(opened)).status == "sent"


async def test_pictures_that_an_agent_turns_out_not_to_take_are_given_back_with_their_words(between: Theatre) -> None:
    between.script.write_text(between.script.read_text() + BLIND)
    prompted = await show(between, SKETCH)
    assert (prompted.status, prompted.reason) == ("not_delivered", NO_PICTURES)
    assert [each.reason for each in await between.events("build-it", e.PromptNotSent)] == [NO_PICTURES]
    assert (await between.orchestrator.workflow("build-it")).waiting_messages == 0
    assert (await show(between)).status == "sent"
    await between.until_noted(lambda: bool(seen(between)))
    assert seen(between) == [0]


async def test_reading_pictures_leaves_nothing_to_interrupt(between: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Held(monkeypatch, "read pictures")
    async with anyio.create_task_group() as group:
        group.start_soon(show, between, SKETCH)
        await reading.until_there()
        said = await between.prompt("build-it", "Use tabs.", wait=False, now=True)
        assert (said.interrupted, said.reason) == (False, BETWEEN_TURNS)
        reading.go.set()
    await between.until_prompted(3)
    await standing_still(between)
    assert [each["text"] for each in between.diary("prompt")][-2:] == [WORDS, "Use tabs."]
