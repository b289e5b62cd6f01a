"""kill -9 while a plan is made, and while one waits for a word."""

import json
from pathlib import Path

from segue.model import events as e
from segue.testing.reckoning import reckon
from segue.testing.stage import Stage

PLAN = json.dumps({"tasks": [{"id": "a", "title": "Do A"}, {"id": "b", "title": "Do B", "depends_on": ["a"]}]})


def script(*before: dict[str, object]) -> str:
    plans = {"match": "fenced JSON document", "do": [*before, {"say": f"```json\n{PLAN}\n```"}]}
    return json.dumps({"turns": [plans]})


def test_a_plan_that_waits_survives_the_server_and_is_announced_again(stage: Stage) -> None:
    stage.up()
    work = stage.work(script())
    work.begin("Build it", None)
    before = work.until_status("blocked")
    stage.kill()
    stage.up()
    after = work.view
    assert (after.status, after.proposed_plan) == ("blocked", before.proposed_plan)
    announced = [record.event for record in work.journal() if isinstance(record.event, e.ApprovalAwaited)]
    assert [event.question for event in announced] == ["Is this plan good (2 tasks)?"]
    assert work.processes() == set()
    work.answer("approve")
    assert work.until_status("completed").tasks_done == 2
    assert reckon(stage, work).faults == []


def test_a_server_killed_while_a_plan_is_made_plans_again_when_it_is_told_to(stage: Stage, tmp_path: Path) -> None:
    stage.up()
    go = tmp_path / "go"
    work = stage.work(script({"say": "Hm."}, {"wait_for": str(go)}))
    work.begin("Build it", None)
    work.until(e.PromptAcknowledged)
    stage.kill()
    stage.up()
    assert (work.view.status, work.view.tasks, work.processes()) == ("paused", (), set())
    go.touch()
    work.resume()
    assert len(work.until_status("blocked").proposed_plan) == 2
    work.answer("reject", reason="Once more.")
    assert len(work.until_status("blocked").proposed_plan) == 2
    work.answer("approve")
    assert work.until_status("completed").tasks_done == 2
    asked = [entry for entry in work.agent_diary() if entry.kind == "prompt"]
    assert len(asked) == len({entry["prompt_id"] for entry in asked}) == 5
    assert reckon(stage, work).faults == []
