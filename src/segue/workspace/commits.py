"""Commits on the user's own branch, with the user's name and hooks, and without secret files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from segue.model.errors import WorkspaceError
from segue.workspace.git import ChangedPath, ask, committed_between, git, head_commit, refusal, status
from segue.workspace.processes import CompletedRun, run_guarded
from segue.workspace.secret_files import is_secret

PATIENCE = 300.0
"""Seconds that hooks may take."""
LONGEST_DIFF = 60_000
"""Maximum characters of a difference that is shown."""
_UNKNOWN = ("tell me who you are", "identity unknown", "no email was given", "no name was given")


@dataclass(frozen=True, slots=True)
class Committed:
    """Commit that was made, and its number of files."""

    commit: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Request for a commit."""

    branch: str
    title: str
    body: str
    environment: Mapping[str, str]
    execution: str


async def commit_all(worktree: Path, wanted: Commit) -> Committed | None:
    """Commit everything but secret files and nested repositories; return None if nothing changed, raise on a wrong
    branch."""
    now = await status(worktree, renames=False)
    if now.branch != wanted.branch:
        raise WorkspaceError(f"The worktree is on {now.branch}, not on {wanted.branch}.", hint="Switch it back.")
    await _stage(worktree, now.entries)
    if (await ask("diff", "--cached", "--quiet", cwd=worktree)).code == 0:
        return None
    done = await _commit(worktree, wanted)
    if done.code != 0:
        raise _refused(done)
    after = await head_commit(worktree)
    assert after is not None, "git has just committed"
    changes = await committed_between(worktree, now.head, after) if now.head else ()
    return Committed(after, len(changes))


async def difference(worktree: Path, before: str, after: str) -> str:
    """Return the difference between two trees as text; a long one is cut."""
    text = await git("diff", "--no-color", "--no-ext-diff", "--no-textconv", before, after, "--", cwd=worktree)
    if len(text) <= LONGEST_DIFF:
        return text
    summary = await git("diff", "--no-color", "--stat", before, after, "--", cwd=worktree)
    return f"{summary[:LONGEST_DIFF]}\n{text[:LONGEST_DIFF]}\n[… {len(text) - LONGEST_DIFF} characters left out …]\n"


async def _stage(worktree: Path, entries: tuple[ChangedPath, ...]) -> None:
    """Stage all changes, and unstage what stays out."""
    left_out = [f":(top,exclude,literal){entry.path.rstrip('/')}" for entry in entries if _stays_out(entry)]
    answer = await ask("add", "--all", "--", ":(top)", *left_out, cwd=worktree)
    if answer.code != 0:
        raise refusal("add", answer)
    if staged := [f":(top,literal){entry.path}" for entry in entries if _stays_out(entry) and entry.staged != "."]:
        await git("reset", "--quiet", "--", *staged, cwd=worktree)


def _stays_out(entry: ChangedPath) -> bool:
    """Return True for a secret file or a nested repository."""
    nested = entry.untracked and entry.path.endswith("/")
    return nested or is_secret(entry.path)


async def _commit(worktree: Path, wanted: Commit) -> CompletedRun:
    """Commit with the user's own git, which runs hooks, signs, and must not invent a name."""
    message = ("-m", wanted.title, *(("-m", wanted.body) if wanted.body else ()))
    return await run_guarded(
        ["git", "-c", "user.useConfigOnly=true", "commit", "--quiet", "--cleanup=whitespace", *message],
        directory=worktree,
        environment={**wanted.environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
        execution=wanted.execution,
        timeout=PATIENCE,
    )


def _refused(done: CompletedRun) -> WorkspaceError:
    """Return the error for a failed commit: no name is configured, a timeout, or the output's end."""
    if any(words in done.output.lower() for words in _UNKNOWN):
        hint = 'Tell git who you are: git config --global user.name "…" and user.email "…".'
        return WorkspaceError("git does not know in whose name to commit.", hint=hint)
    if done.timed_out:
        return WorkspaceError(f"git commit did not finish within {PATIENCE:g} seconds.", hint="Look at the hooks.")
    said = " ".join(done.output.split())[-300:] or f"exit {done.code}"
    return WorkspaceError(f"git commit failed: {said}", hint="Commit by hand, or correct what a hook complains about.")
