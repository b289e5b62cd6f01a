"""The demo's last line is counted, not claimed."""

import json
import subprocess
import sys


def test_the_demo_loses_nothing_and_does_nothing_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "segue", "demo", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    workflow, events = result.pop("workflow"), result.pop("events")
    assert workflow.startswith("workflow-")
    assert events > 50
    assert result == {
        "ok": True,
        "tasks_done": 5,
        "sessions": 1,
        "runs": 3,
        "kills": 1,
        "lost": 0,
        "duplicated": 0,
        "orphans": 0,
        "journal_verified": True,
    }
