"""Commands, a server and an agent as people have them: work is begun, paused and resumed by nothing but `segue`."""

import os
import subprocess
import sys

from segue.testing.stage import Stage
from tests.equipment.waiting import wait_until

SCRIPT = """
turns:
  - match: Write the lexer
    do: [{{write: {{path: lexer.py, content: "TOKENS = []"}}}}, {{touch: {root}/begun}}, {{wait_for: {root}/go}}]
  - match: Write the parser
    do: [{{write: {{path: parser.py, content: "import lexer"}}}}]
"""
PLAN = "- [ ] Write the lexer\n- [ ] Write the parser\n"
WITHIN = 60.0


def segue(stage: Stage, *words: str) -> str:
    variables = {"SEGUE_REHEARSAL_SCRIPT": str(stage.root / "script.yaml"), "SEGUE_REHEARSAL_HOME": str(stage.root)}
    done = subprocess.run(
        [sys.executable, "-m", "segue", *words],
        cwd=stage.repository,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_work_is_paused_and_resumed_by_commands_alone(stage: Stage) -> None:
    (stage.root / "script.yaml").write_text(SCRIPT.format(root=stage.root))
    plan = stage.root / "plan.md"
    plan.write_text(PLAN)
    stage.up()
    segue(stage, "run", "Build it", "--plan", str(plan), "--agent", "rehearsal", "--permissions", "all", "--detach")
    wait_until((stage.root / "begun").exists)
    assert "the current task is finished first" in segue(stage, "pause", "--no-wait")
    (stage.root / "go").touch()
    paused = segue(stage, "pause")
    assert "✓ Workflow paused (snapshot: ckpt-" in paused
    assert segue(stage, "pause") == paused
    assert "1/2 tasks" in segue(stage, "status")

    resumed = segue(stage, "resume")
    assert "Tasks: 1 done, 1 remaining" in resumed and "the same conversation" in resumed
    assert "▶ Write the parser" in resumed and "▶ Write the lexer" not in resumed
    assert "✓ Build it: 2/2 tasks, 1 session, 2 runs" in resumed
