"""The server is killed, and the agent in its container goes on: it is found and joined again, and nothing twice."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from segue import client
from segue.model import events as e
from segue.model.errors import SegueError
from segue.settings import load
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.containers.engines import IMAGE, REHEARSAL, Engine
from tests.equipment.fork_server import ForkServer
from tests.equipment.waiting import wait_until
from tests.orchestrator.theatre import Theatre

PLAN = "- {id: one, title: Write the first file}\n- {id: two, title: Write the second file, depends_on: [one]}"
HELD = """
turns:
  - match: Task 1 of 2
    do:
      - say: I begin with the first file.
      - write: {{path: one.txt, content: "one\\n"}}
      - touch: {root}/held
      - wait_for: {root}/go
      - say: I went on while nobody listened.
      - write: {{path: also.txt, content: "also\\n"}}
      - touch: {root}/on
      - wait_for: {root}/end
      - say: The first file is there.
  - match: Task 2 of 2
    do:
      - write: {{path: two.txt, content: "two\\n"}}
      - say: The second file is there.
"""
TALKS = """
turns:
  - match: Task 1 of 2
    do:
      - touch: {root}/held
      - wait_for: {root}/go
      - say: The first file is there.
  - match: Use tabs
    do:
      - touch: {root}/on
      - wait_for: {root}/end
      - say: So be it.
  - match: Task 2 of 2
    do: [say: Nothing to do.]
"""
ASKS = """
turns:
  - match: Task 1 of 2
    do:
      - touch: {root}/held
      - run: echo asked > asked.txt
        ask: true
      - say: The first file is there.
  - match: Task 2 of 2
    do: [say: Nothing to do.]
"""

T = TypeVar("T")


class Boxed:
    """A workflow whose agent works in a container."""

    def __init__(self, root: Path, engine: Engine, fork_server: ForkServer, settings: str = "") -> None:
        self.root = root
        self.engine = engine
        container = engine.container(root)
        agent = {"command": list(REHEARSAL), "environment": ["SEGUE_REHEARSAL_*"]}
        box = {"image": container.image, "mounts": list(container.mounts), "network": "none"}
        lines = [
            f"container_engine = {json.dumps(engine.address)}",
            settings,
            "[agents.boxed]",
            *(f"{key} = {json.dumps(value)}" for key, value in agent.items()),
            "[agents.boxed.container]",
            *(f"{key} = {json.dumps(value)}" for key, value in box.items()),
        ]
        self.stage = Stage(root / "stage", settings="\n".join(lines), start=fork_server.start)

    def begin(self, script: str = HELD, permissions: str = "all") -> Work:
        # It is no orphan when it outlives its server, so the stage does not count it.
        self.work = Work(self.root / "work", self.stage.repository, script.format(root=self.root))
        self.work.begin("Build it", PLAN, agent="boxed", permissions=permissions)
        return self.work

    def let(self, word: str) -> None:
        (self.root / word).touch()

    def until_there(self, word: str) -> None:
        wait_until((self.root / word).exists)

    def messages(self) -> str:
        """All that the agent said, as the journal has it."""
        return "".join(each.event.text for each in self.work.journal() if isinstance(each.event, e.AgentMessage))

    def kinds(self, kind: type[T]) -> list[T]:
        return [each.event for each in self.work.journal() if isinstance(each.event, kind)]

    def prompts(self) -> int:
        return sum(entry.kind == "prompt" for entry in self.work.agent_diary())

    def check(self) -> None:
        self.work.drain()
        assert reckon(self.stage, self.work).faults == []
        assert self.engine.containers() == []


@pytest.fixture
def boxed(tmp_path: Path, engine: Engine, fork_server: ForkServer) -> Iterator[Boxed]:
    boxed = Boxed(tmp_path, engine, fork_server)
    with boxed.stage:
        yield boxed


def killed_in_the_middle(boxed: Boxed) -> None:
    boxed.stage.up()
    boxed.begin()
    boxed.work.until(lambda event: isinstance(event, e.ToolFinished))
    boxed.until_there("held")
    boxed.stage.kill()


def test_work_is_done_in_a_container_like_anywhere(boxed: Boxed) -> None:
    boxed.stage.up()
    for word in ("go", "end"):
        boxed.let(word)
    work = boxed.begin()
    work.until_status("completed")
    assert Path(work.view.worktree, "two.txt").read_text() == "two\n"
    boxed.check()


def test_an_agent_that_went_on_is_joined_in_the_middle_of_its_turn(boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    [container] = boxed.engine.containers()
    boxed.let("go")
    boxed.until_there("on")
    boxed.stage.up()
    assert boxed.work.view.status == "paused"
    resumed = boxed.work.resume()
    assert (resumed.way, resumed.reason) == (
        "reattach",
        "the agent never stopped, and is listened to again in its container",
    )
    boxed.let("end")
    boxed.work.until_status("completed")
    said = ["I begin with the first file.", "I went on while nobody listened.", "The first file is there."]
    assert [boxed.messages().count(each) for each in said] == [1, 1, 1]
    assert len(boxed.kinds(e.TurnJoined)) == 1
    assert boxed.prompts() == 2
    assert len({each.execution for each in boxed.kinds(e.AgentStarted)}) == 2 and container["Id"]
    boxed.check()


def test_messages_that_went_out_together_have_all_arrived_when_their_turn_is_joined(boxed: Boxed) -> None:
    boxed.stage.up()
    work = boxed.begin(TALKS)
    boxed.until_there("held")
    said = [work.prompt(text, wait=False).prompt_id for text in ("Use tabs.", "No, use spaces.")]
    boxed.let("go")
    boxed.until_there("on")
    boxed.stage.kill()
    boxed.stage.up()
    assert work.resume().way == "reattach"
    boxed.let("end")
    work.until_status("completed")
    acknowledged = [each.prompt_id for each in boxed.kinds(e.PromptAcknowledged)]
    assert [each for each in acknowledged if each in said] == said
    assert work.view.undelivered == () and boxed.prompts() == 3
    boxed.check()


@pytest.mark.anyio
async def test_an_agent_that_is_silent_when_it_is_joined_is_not_taken_for_one_that_never_came_up(boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    theatre = Theatre(boxed.stage.home, boxed.stage.repository)
    theatre.agents = dict(load(boxed.stage.home / "segue.toml", {}).agents)
    async with theatre.open(container_engine=boxed.engine.address, stall_notice=300.0, silence_watchdog=1e6):
        await theatre.resume("build-it", environment=boxed.work.environment)
        joined = await theatre.event("build-it", e.TurnJoined)
        await theatre.clock.advance(400)
        warned = (await theatre.event("build-it", e.Warned, after=joined.seq)).event
        assert isinstance(warned, e.Warned) and (warned.code, warned.message[:25]) == (
            "stalled",
            "The agent has been silent",
        )
        for word in ("go", "end"):
            boxed.let(word)
        view = await theatre.until("build-it", "completed")
        assert (view.runs, boxed.prompts()) == (2, 2)
    assert boxed.engine.containers() == []


def test_a_turn_that_ended_while_there_was_no_server_is_heard_to_its_end(boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    for word in ("go", "end"):
        boxed.let(word)
    boxed.until_there("on")
    boxed.stage.up()
    assert boxed.work.resume().way == "reattach"
    boxed.work.until_status("completed")
    assert boxed.prompts() == 2
    boxed.check()


def test_an_agent_is_joined_as_often_as_its_server_dies(boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    boxed.stage.up()
    boxed.work.drain()
    boxed.work.resume()
    boxed.work.until(e.TurnJoined)
    boxed.stage.kill()
    boxed.let("go")
    boxed.stage.up()
    assert boxed.work.resume().way == "reattach"
    boxed.let("end")
    boxed.work.until_status("completed")
    assert boxed.messages().count("I went on while nobody listened.") == 1
    assert boxed.prompts() == 2
    boxed.check()


def test_a_question_that_nobody_answered_is_asked_again(boxed: Boxed) -> None:
    boxed.stage.up()
    work = boxed.begin(ASKS, permissions="ask")
    work.until(e.PermissionRequested)
    boxed.stage.kill()
    boxed.stage.up()
    work.drain()
    assert work.resume().way == "reattach"
    work.until(e.PermissionRequested)
    work.answer("approve")
    work.until_status("completed")
    assert Path(work.view.worktree, "asked.txt").read_text() == "asked\n"
    boxed.check()


def test_a_question_that_was_asked_again_is_answered_once(boxed: Boxed) -> None:
    said = "      - say: The first file"
    script = ASKS.replace(said, "      - touch: {root}/on\n      - wait_for: {root}/go\n" + said)
    boxed.stage.up()
    work = boxed.begin(script, permissions="ask")
    work.until(e.PermissionRequested)
    boxed.stage.kill()
    boxed.stage.up()
    work.drain()
    work.resume()
    work.until(e.PermissionRequested)
    work.answer("approve")
    boxed.until_there("on")
    boxed.stage.kill()
    boxed.stage.up()
    boxed.let("go")
    assert work.resume().way == "reattach"
    work.until_status("completed")
    assert len(boxed.kinds(e.PermissionRequested)) == 2
    boxed.check()


def test_an_answer_that_was_written_down_reaches_the_agent_after_all(
    tmp_path: Path, engine: Engine, fork_server: ForkServer
) -> None:
    boxed = Boxed(tmp_path, engine, fork_server)
    with boxed.stage:
        boxed.stage.up(SEGUE_CRASH_AT="permission.answered")
        work = boxed.begin(ASKS, permissions="ask")
        work.until(e.PermissionRequested)
        # The server may die before it has told us so.
        with suppress(SegueError):
            work.answer("approve")
        boxed.stage.mourn()
        boxed.stage.up()
        assert work.resume().way == "reattach"
        work.until_status("completed")
        assert len(boxed.kinds(e.PermissionRequested)) == 1
        boxed.check()


@pytest.mark.parametrize("word", ["cancel", "native"])
def test_whoever_goes_another_way_ends_the_one_that_was_left(word: str, boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    [before] = boxed.engine.containers()
    boxed.stage.up()
    if word == "cancel":
        boxed.work.cancel()
    else:
        for each in ("go", "end"):
            boxed.let(each)
        assert boxed.work.resume(way="native").way == "native"
        boxed.work.until_status("completed")
        assert boxed.prompts() == 3
    assert before["Id"] not in [each["Id"] for each in boxed.engine.containers()]
    boxed.check()


def test_a_container_that_is_gone_leaves_the_agents_own_way_back(boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    [container] = boxed.engine.containers()
    boxed.engine.remove(container["Id"])
    boxed.stage.up()
    for word in ("go", "end"):
        boxed.let(word)
    resumed = boxed.work.resume()
    assert resumed.way == "native"
    assert "its container does not run any more" in resumed.reason
    boxed.work.until_status("completed")
    boxed.check()


def test_on_request_an_agent_is_joined_as_soon_as_there_is_a_server(
    tmp_path: Path, engine: Engine, fork_server: ForkServer
) -> None:
    boxed = Boxed(tmp_path, engine, fork_server, "reattach_at_start = true")
    with boxed.stage:
        killed_in_the_middle(boxed)
        for word in ("go", "end"):
            boxed.let(word)
        boxed.stage.up()
        boxed.work.until_status("completed")
        assert boxed.prompts() == 2
        boxed.check()


def test_a_container_of_another_segue_is_left_alone(
    boxed: Boxed, tmp_path: Path, engine: Engine, fork_server: ForkServer
) -> None:
    killed_in_the_middle(boxed)
    other = Boxed(tmp_path / "other", engine, fork_server)
    other.root.mkdir()
    with other.stage:
        other.stage.up()
        other.stage.down()
    assert [each["State"] for each in engine.containers()] == ["running"]
    boxed.stage.up()
    boxed.work.cancel()
    boxed.check()


@pytest.mark.parametrize("word", ["sweep", "cancel"])
def test_the_container_of_an_agent_that_was_taken_out_of_the_settings_is_ended(word: str, boxed: Boxed) -> None:
    killed_in_the_middle(boxed)
    seconds = 0.2 if word == "sweep" else 300
    address = json.dumps(boxed.engine.address)
    (boxed.stage.home / "segue.toml").write_text(f"container_engine = {address}\nsweep_interval = {seconds}\n")
    boxed.stage.up()
    if word == "cancel":
        boxed.work.cancel()
    wait_until(lambda: boxed.engine.containers() == [])


def test_without_an_engine_nothing_is_begun_and_one_sentence_says_why(tmp_path: Path, fork_server: ForkServer) -> None:
    boxed = Boxed(tmp_path, Engine(f"unix://{tmp_path}/nobody.sock"), fork_server)
    with boxed.stage:
        boxed.stage.up()
        with pytest.raises(SegueError, match=r"^No container engine runs: nothing answers at unix://\S+\.$"):
            boxed.begin()


def test_the_agents_list_says_which_image_and_a_check_introduces_the_agent_there(boxed: Boxed) -> None:
    boxed.stage.up()
    environment = {**os.environ, "SEGUE_REHEARSAL_HOME": str(boxed.root / "agent")}
    listed = client.call("POST", "/api/agents", {"environment": environment})["agents"]
    [own] = [each for each in listed if each["name"] == "boxed"]
    assert own["program"] == f"in the image {IMAGE}"
    checked = client.call("POST", "/api/agents/boxed/check", {"environment": environment}, timeout=60)
    assert (checked["ok"], checked["reported"]) == (True, "rehearsal")
    assert boxed.engine.containers() == []
