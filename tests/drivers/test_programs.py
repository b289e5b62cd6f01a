"""All agent programs of ours start in the same way."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from candidates import ApiCandidate

from segue.model import errors
from segue.testing.model import Script

pytestmark = pytest.mark.anyio

HEAVY = {"acp", "anyio", "asyncio", "claude_agent_sdk", "langchain_core", "langgraph", "pydantic", "pydantic_ai"}


@pytest.mark.parametrize(
    ("program", "needed"), [("api", set()), ("claude", set()), ("langgraph", set()), ("amp", {"asyncio"})]
)
def test_initialize_is_answered_before_anything_heavy_is_imported(program: str, needed: set[str]) -> None:
    code = f"import sys, segue.drivers.{program}.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert HEAVY & set(done.stdout.split()) == needed


async def test_a_library_that_cannot_be_imported_is_named_when_a_conversation_is_opened(tmp_path: Path) -> None:
    api = ApiCandidate(tmp_path)
    (tmp_path / "pydantic_ai.py").write_text("raise ImportError('broken in half')\n")
    async with api.launch(Script()) as launch:
        broken = replace(launch, environment={**launch.environment, "PYTHONPATH": str(tmp_path)})
        with pytest.raises(errors.AgentExited, match=r"(?s)ended before it was ready.*ImportError: broken in half"):
            async with api.driver.start(broken):
                pass


def test_a_client_that_does_not_introduce_itself_is_answered() -> None:
    command = [sys.executable, "-m", "segue.drivers.api"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for method in ("session/list", "session/dream"):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method}) + "\n")
        process.stdin.flush()
        answers = {each["id"]: each for each in (json.loads(process.stdout.readline()) for _ in range(2))}
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert "sessions" in answers["session/list"]["result"]
    assert answers["session/dream"]["error"]["message"] == "Method not found"
