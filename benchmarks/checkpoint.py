"""A checkpoint of a large worktree: its git state, and all of its files saved under a hidden ref."""

import subprocess
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.doors import timed
from benchmarks.figures import spread
from segue.snapshot.gather import gather
from segue.workspace import ensure_worktree

FILES = 20_000
IN_A_FOLDER = 20
CHANGED, NEW, IGNORED = 20, 20, 500
TIMES = 10
AIM = 150.0
"""Milliseconds of a warm one, in the middle of all."""
OWNER = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
STATUS = ("--no-optional-locks", "status", "--porcelain=v2", "--untracked-files=all")


async def measure(directory: Path, files: int = FILES, times: int = TIMES) -> dict[str, Any]:
    """Save a worktree, in turns with `git status` alone; another file is changed before each."""
    repository, worktree = directory / "repository", directory / "worktree"
    make_repository(repository, files)
    await ensure_worktree(repository, worktree, "segue/large")
    make_changes(worktree, files)
    first = await checkpoint(worktree, 0)
    pairs = [
        (await checkpoint(worktree, number), timed(["git", "-C", str(worktree), *STATUS]))
        for number in range(1, times + 1)
    ]
    warm = spread([pair[0] for pair in pairs])
    return {
        "files": files,
        "first_ms": first * 1e3,
        "warm": warm,
        "git_status": spread([pair[1] for pair in pairs]),
        "aim_ms": AIM,
        "reached": warm["median_ms"] < AIM,
    }


async def checkpoint(worktree: Path, number: int) -> float:
    (worktree / "changing.txt").write_text(f"{number}\n")
    start = perf_counter()
    workspace = await gather(str(worktree), f"refs/segue/checkpoints/bench-{number}", None)
    seconds = perf_counter() - start
    if workspace.problem:
        raise AssertionError(workspace.problem)
    return seconds


def make_repository(path: Path, files: int) -> None:
    """Create folders of twenty files, in twenty-five areas."""
    for number in range(files):
        file = path / _name(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"value_{number} = {number}\n" * 10)
    (path / ".gitignore").write_text("build/\n*.log\n")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "Begin"]):
        subprocess.run(["git", *OWNER, *command], cwd=path, check=True, capture_output=True)


def make_changes(path: Path, files: int) -> None:
    """Create changed, new, ignored and secret files."""
    for number in range(0, files, max(1, files // CHANGED)):
        (path / _name(number)).write_text("changed\n")
    for number in range(NEW):
        (path / _name(number * IN_A_FOLDER % files)).with_name(f"new_{number}.py").write_text("new\n")
    (path / "build").mkdir()
    for number in range(IGNORED):
        (path / f"build/{number}.o").write_text("made\n")
    (path / ".env").write_text("A=1\n")


def _name(number: int) -> str:
    folder = number // IN_A_FOLDER
    return f"src/area_{folder % 25}/part_{folder}/file_{number}.py"
