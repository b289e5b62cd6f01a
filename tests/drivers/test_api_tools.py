"""What the api agent can do in its worktree, and what it cannot do outside of it."""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from segue.drivers.api import tools
from segue.drivers.api.file_root import FileRoot, ToolFailed
from segue.drivers.api.tools import LONGEST_OUTPUT, TOOLS, use
from segue.workspace.processes import EXECUTION, marked

pytestmark = pytest.mark.anyio


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    worktree = tmp_path / "work"
    (worktree / "src").mkdir(parents=True)
    (worktree / "src" / "parser.py").write_text("one\ntwo\nthree\n")
    (worktree / "notes.txt").write_text("one note\n")
    (tmp_path / "secret.txt").write_text("one secret\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret.txt").write_text("one secret\n")
    (worktree / "link.txt").symlink_to(tmp_path / "secret.txt")
    (worktree / "link").symlink_to(tmp_path / "elsewhere")
    return worktree


def _no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def done(worktree: Path, name: str, **arguments: Any) -> str:
    tool = TOOLS[name]
    return await use(tool, tool.read(arguments), FileRoot(worktree))


_TWO = {"find": "two", "replace": "new"}
OUTSIDE = ["../secret.txt", "link.txt", "link/secret.txt", "src/../../secret.txt"]


@pytest.mark.parametrize("path", [*OUTSIDE, "absolute"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("write_file", {"content": "mine"}),
        ("edit_file", {"find": "secret", "replace": "mine"}),
        ("search_files", {"expression": "secret"}),
    ],
)
async def test_files_outside_stay_untouched(worktree: Path, name: str, arguments: dict[str, str], path: str) -> None:
    secret = worktree.parent / "secret.txt"
    path = str(secret) if path == "absolute" else path
    with pytest.raises(ToolFailed, match="is outside of the worktree"):
        await done(worktree, name, path=path, **arguments)
    assert secret.read_text() == "one secret\n"
    assert (worktree.parent / "elsewhere" / "secret.txt").read_text() == "one secret\n"


async def test_a_new_file_below_a_link_is_not_written(worktree: Path) -> None:
    with pytest.raises(ToolFailed, match="is outside"):
        await done(worktree, "write_file", path="link/new/file.txt", content="mine")
    assert not (worktree.parent / "elsewhere" / "new").exists()


@pytest.mark.parametrize("path", [".git", ".git/config", "new/.git", "src/.GIT/hooks/post-commit", "git-link/config"])
@pytest.mark.parametrize(
    ("name", "arguments"), [("write_file", {"content": "mine"}), ("edit_file", {"find": "a", "replace": "mine"})]
)
async def test_files_of_git_are_not_written(worktree: Path, name: str, arguments: dict[str, str], path: str) -> None:
    (worktree / ".git").mkdir()
    (worktree / ".git" / "config").write_text("a")
    (worktree / "git-link").symlink_to(".git")
    with pytest.raises(ToolFailed, match=r"belongs to git, and is changed by git commands only\.$"):
        await done(worktree, name, path=path, **arguments)
    assert (worktree / ".git" / "config").read_text() == "a"
    assert await done(worktree, "write_file", path=".gitignore", content="*.pyc\n") == "Wrote .gitignore."


async def test_a_listing_and_a_search_do_not_follow_links(worktree: Path) -> None:
    assert (await done(worktree, "list_files")).splitlines() == ["link.txt", "notes.txt", "src/parser.py"]
    assert await done(worktree, "search_files", expression="one") == "notes.txt:1:one note\nsrc/parser.py:1:one\n"
    with pytest.raises(ToolFailed, match="is outside"):
        await done(worktree, "list_files", path="link")


@pytest.mark.parametrize("name", [":odd", ":!top", "[o]", "*"])
async def test_a_name_means_nothing_to_git(worktree: Path, name: str) -> None:
    await done(worktree, "write_file", path=f"{name}/f.txt", content="one of them\n")
    assert await done(worktree, "search_files", expression="one", path=name) == f"{name}/f.txt:1:one of them\n"
    assert (
        await done(worktree, "search_files", expression="one", path=f"{name}/f.txt") == f"{name}/f.txt:1:one of them\n"
    )


@pytest.mark.parametrize(("tool", "given"), [("write_file", {"content": "new"}), ("edit_file", _TWO)])
async def test_a_file_is_replaced_as_a_whole_and_keeps_its_rights(
    worktree: Path, tool: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = worktree / "src" / "parser.py"
    file.chmod(0o751)
    (worktree / "inside.py").symlink_to(file)
    with file.open() as before:
        await done(worktree, tool, path="inside.py", **given)
        assert before.read() == "one\ntwo\nthree\n"
    assert "new" in file.read_text() and stat.S_IMODE(file.stat().st_mode) == 0o751
    assert (worktree / "inside.py").is_symlink()
    monkeypatch.setattr(Path, "replace", _no_room)
    with pytest.raises(ToolFailed, match="No space left"):
        await done(worktree, "write_file", path="src/parser.py", content="newer")
    assert [each.name for each in file.parent.iterdir()] == ["parser.py"] and "newer" not in file.read_text()


async def test_a_path_in_the_worktree_may_be_absolute(worktree: Path) -> None:
    assert await done(worktree, "read_file", path=str(worktree / "notes.txt")) == "one note\n"


async def test_a_part_of_a_file_is_read_and_the_rest_is_counted(worktree: Path) -> None:
    assert await done(worktree, "read_file", path="src/parser.py", line=2, limit=1) == "two\n\n[1 more lines]"


async def test_a_written_file_has_its_content_as_it_is_and_its_directories(worktree: Path) -> None:
    await done(worktree, "write_file", path="a/b/c.txt", content="one\r\ntwo — 🌍")
    assert (worktree / "a/b/c.txt").read_bytes() == "one\r\ntwo — 🌍".encode()


async def test_an_edit_replaces_what_stands_there_once_and_nothing_else(worktree: Path) -> None:
    await done(worktree, "edit_file", path="src/parser.py", find="two", replace="2")
    assert (worktree / "src/parser.py").read_text() == "one\n2\nthree\n"
    for find in ("e", "nowhere", ""):
        with pytest.raises(ToolFailed, match="not once"):
            await done(worktree, "edit_file", path="src/parser.py", find=find, replace="x")
    assert (worktree / "src/parser.py").read_text() == "one\n2\nthree\n"


async def test_what_cannot_be_read_says_so(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(worktree / "pipe")
    (worktree / "image").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(tools, "LARGEST_FILE", 10)
    for path, words in (
        ("pipe", "is no file"),
        ("image", "no text"),
        ("gone", "does not"),
        ("src/parser.py", "larger"),
    ):
        with pytest.raises(ToolFailed, match=words):
            await done(worktree, "read_file", path=path)


@pytest.mark.parametrize("path", ["loop", "loop/file.txt", "loop/../link/secret.txt"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("read_file", {}), ("write_file", {"content": "mine"}), ("search_files", {"expression": "one"})],
)
async def test_a_link_without_an_end_is_told_and_nothing_behind_it_is_touched(
    worktree: Path, name: str, arguments: dict[str, str], path: str
) -> None:
    (worktree / "loop").symlink_to("loop")
    # Python 3.13 looks behind such a loop, and says what lies there.
    behind = path.startswith("loop/../") and sys.version_info >= (3, 13)
    with pytest.raises(ToolFailed, match="is outside of" if behind else "Too many levels of symbolic links"):
        await done(worktree, name, path=path, **arguments)
    assert (worktree.parent / "elsewhere" / "secret.txt").read_text() == "one secret\n"


async def test_a_machine_without_git_is_told_to_the_model(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolFailed, match="git was not found"):
        await done(worktree, "search_files", expression="one")


async def test_a_worktree_that_is_gone_is_told_to_the_model(worktree: Path) -> None:
    worktree.rename(worktree.parent / "gone")
    with pytest.raises(ToolFailed, match="work"):
        await done(worktree, "shell", command="pwd")


async def test_a_long_output_is_cut_in_the_middle(worktree: Path) -> None:
    output = await done(worktree, "shell", command="seq 1 20000")
    assert len(output) < LONGEST_OUTPUT + 100
    assert output.startswith("1\n2\n") and output.endswith("19999\n20000\n") and "characters left out" in output


async def test_a_command_that_fails_is_told_with_its_output_and_code(worktree: Path) -> None:
    with pytest.raises(ToolFailed, match="no such thing\n\nExit code 3"):
        await done(worktree, "shell", command="echo no such thing >&2; exit 3")


async def test_commands_start_in_the_worktree_without_the_keys(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-of-the-user")
    output = await done(worktree, "shell", command="pwd; env")
    assert output.startswith(f"{worktree}\n")
    assert "sk-a-secret" not in output and "PATH=" in output


async def test_a_command_that_times_out_ends_with_its_children(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXECUTION, "the-agents-own")
    monkeypatch.setattr(tools, "token_hex", lambda _: "mark")
    with pytest.raises(ToolFailed, match=r"It took longer than 0\.5 seconds, and was ended"):
        await done(worktree, "shell", command="setsid tail -f /dev/null & tail -f /dev/null", timeout=0.5)
    assert marked("the-agents-own-mark") == []


@pytest.mark.parametrize(
    "arguments", [{}, {"command": 1}, {"command": "ls", "timeout": 0}, {"command": "ls", "timeout": 6e9}]
)
def test_arguments_that_do_not_fit_are_refused_with_a_sentence(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed, match="shell cannot be called so: "):
        TOOLS["shell"].read(arguments)


def test_reading_is_free_and_the_rest_is_asked_for() -> None:
    assert {name for name, tool in TOOLS.items() if tool.asks} == {"write_file", "edit_file", "shell"}
