"""Diaries, and the lines they are made of."""

import subprocess
import sys
from pathlib import Path

import pytest

from segue.testing.rehearsal.diary import Diary, read_diary


def kinds(path: Path) -> list[str]:
    return [entry.kind for entry in read_diary(path)]


def test_entries_come_back_as_they_were_written(tmp_path: Path) -> None:
    diary = Diary(tmp_path / "new" / "diary.jsonl")
    diary.write("prompt", prompt_id="prompt-1", text="one\ntwo — drei")
    diary.close()
    [entry] = read_diary(tmp_path / "new" / "diary.jsonl")
    assert (entry.kind, entry["prompt_id"], entry["text"], entry.get("path")) == (
        "prompt",
        "prompt-1",
        "one\ntwo — drei",
        None,
    )
    assert entry.at.tzinfo is not None


def test_a_diary_that_was_never_begun_is_empty(tmp_path: Path) -> None:
    assert read_diary(tmp_path / "diary.jsonl") == []


def test_a_torn_last_line_is_left_out_now_and_when_the_diary_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "diary.jsonl"
    for kind in ("first", "second", "third"):
        diary = Diary(path)
        diary.write(kind)
        diary.close()
        with path.open("ab") as file:
            file.write(b'{"kind": "to')
        assert kinds(path)[-1] == kind
    assert kinds(path) == ["first", "second", "third"]


def test_damage_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "diary.jsonl"
    path.write_text('{"kind": "a", "at": "2026-01-01T00:00:00+00:00"}\n{"kind"\n{}\n')
    with pytest.raises(ValueError, match=r"Line 2 of diary\.jsonl is damaged"):
        read_diary(path)


def test_what_write_returned_from_survives_the_writers_kill(tmp_path: Path) -> None:
    path = tmp_path / "diary.jsonl"
    program = f"""
import os, signal
from pathlib import Path
from segue.testing.rehearsal.diary import Diary
Diary(Path({str(path)!r})).write("last words")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -9
    assert kinds(path) == ["last words"]


def test_two_writers_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    path = tmp_path / "diary.jsonl"
    one, two = Diary(path), Diary(path)
    for number in range(50):
        one.write("one", number=number, text="x" * 5000)
        two.write("two", number=number, text="y" * 5000)
    one.close()
    two.close()
    assert kinds(path) == ["one", "two"] * 50
