"""The script that stands beside the pages on plans, reviews and fixers is played as its page says."""

from pathlib import Path

from segue.testing.stage import Stage
from tests.equipment.fork_server import ForkServer

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "rehearsal.md"


def test_the_example_is_planned_advised_and_reviewed_twice(tmp_path: Path) -> None:
    example = PAGE.read_text().split("### A plan, a review and a fixer")[1].split("```yaml\n")[1].split("```")[0]
    choices = {"approve_plan": True, "test_command": "grep split parser.py", "review": "same"}
    tries = {"SEGUE_RETRY_ATTEMPTS": "3"}
    with ForkServer() as fork_server, Stage(tmp_path / "stage", variables=tries, start=fork_server.start) as stage:
        stage.up()
        work = stage.work(example)
        work.begin("Build a calculator", None, choices=choices)
        work.until_status("completed", "review", "paused")
        told = [record.event for record in work.journal()]
        stage.down()
    kinds = [event.kind for event in told if event.kind in ("plan.adopted", "fixer.advised", "review.given")]
    assert kinds == ["plan.adopted", "fixer.advised", "review.given", "review.given"]
    assert [event.passed for event in told if event.kind == "tests.ran"] == [False, False, False, True, True]
