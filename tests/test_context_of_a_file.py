"""`python -m segue.contextfile`: a context from a session that Segue never ran."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from segue.contextfile import main
from tests.recordings.kettle import kettle_session

HEAVY = {"pydantic", "sqlalchemy", "psycopg", "anyio", "asyncio", "fastapi", "acp"}


def test_the_context_and_nothing_else_is_printed(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = kettle_session().write(tmp_path)
    assert main([str(file), "--budget", "1000"]) == 0
    said = capfdbinary.readouterr()
    assert said.out.startswith(b"## Session Resume Context\n")
    assert said.err == b""


def test_the_exam_speaks_on_the_error_stream(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = kettle_session().write(tmp_path)
    assert main([str(file), "--exam"]) == 0
    assert b"exam: " in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("content", "why"), [(None, "does not exist"), (b"", "it is empty"), (b"\0\x01", "JSON lines")]
)
def test_a_file_that_cannot_be_used_gets_a_clear_answer(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], content: bytes | None, why: str
) -> None:
    file = tmp_path / "x.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert main([str(file)]) == 1
    said = capfdbinary.readouterr()
    assert said.out == b""
    assert why in said.err.decode()


def test_it_starts_without_the_engine() -> None:
    code = "import json, sys, segue.contextfile; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert not HEAVY & set(json.loads(done.stdout))


def test_a_last_message_of_one_word_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in (asked("Write the note."), said("NOTE-DONE"))))
    assert main([str(file)]) == 0
    assert "NOTE-DONE" in capsys.readouterr().out


def asked(text: str) -> dict[str, object]:
    return {"type": "user", "message": {"role": "user", "content": text}, "uuid": "1", **PLACE}


def said(text: str) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}, "uuid": "2", **PLACE}


PLACE = {"sessionId": "s", "cwd": "/work", "timestamp": "2026-01-01T00:00:00Z"}
