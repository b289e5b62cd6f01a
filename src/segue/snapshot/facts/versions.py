"""The state of version control, read from git commands and what they printed."""

import re
from dataclasses import dataclass, field, replace

from segue.model.facts import ActionFact, CommitFact, Outcome, PullRequestFact
from segue.snapshot.facts.text import clipped, flattened

_COMMIT = re.compile(r"^\[([^\]\s]+(?: HEAD)?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_MESSAGE = re.compile(
    r"\bgit\b[^\n|;&]*\bcommit\b.*?\s-\w*m\s+(?:\"\$\(cat <<-?\s*['\"]?\w+['\"]?\n)?[\"']?([^\n\"]+)", re.DOTALL
)
_HERE = re.compile(r"\bgit\b[^\n|;&]*\bcommit\b[^\n]*<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n\s*(\S[^\n]*)")
_LISTED = re.compile(r"^\W{0,3}([0-9a-f]{7,12}) (?:\([^)]*\) )?(\S.*)$", re.MULTILINE)
_NEW_BRANCH = re.compile(
    r"\bgit (?:-C \S+ )?(?:checkout -[bB]|switch -[cC]|worktree add .*?-b)\s+['\"]?([^\s'\"-][^\s'\"]*)"
)
_SWITCHED = re.compile(r"^(?:Switched to (?:a new )?branch|On branch|Already on) '?([^'\s]+)'?", re.MULTILINE)
_SHOWN = re.compile(r"\bgit (?:branch --show-current|rev-parse --abbrev-ref HEAD)\s*$")
_HALF = re.compile(
    r"^.*(?:CONFLICT \(|could not apply|Automatic merge failed|fix conflicts and then|rebase in progress"
    r"|currently rebasing"
    r"|unmerged paths|You have unmerged|cherry-picking commit|All conflicts fixed but you are still merging).*$",
    re.MULTILINE | re.IGNORECASE,
)
_OPERATION = re.compile(
    r"\bgit\b[^|;&\n]*?\b(merge|rebase|cherry-pick|revert|pull|am|stash (?:pop|apply))\b([^|;&\n]*)"
)
_PROGRESS = re.compile(r"\b(?:Rebasing|Applying) \((\d+/\d+)\)")
_RESOLVES = re.compile(r"\bgit\b[^|;&\n]*\b(?:checkout --(?:ours|theirs)|add|rm|restore)\b[^|;&\n]*")
_ENDED = re.compile(r"\bgit\b[^|;&\n]*\b(?:--abort|--quit|reset --(?:hard|merge))\b")
_CONCLUDED = re.compile(r"Successfully rebased|^Merge made by|^Fast-forward|Already up[ -]to[ -]date", re.MULTILINE)
_COMMITS = re.compile(r"\bgit\b[^\n|;&]*\bcommit\b")
_PUSH = re.compile(r"\bgit\b[^|;&\n]*\bpush\b(?![^|;&\n]*--dry-run)")
_PUSHED = re.compile(r"->|Everything up-to-date|set up to track|^To \S+", re.MULTILINE)
_REJECTED = re.compile(
    r"! \[(?:remote )?rejected\]|error: failed to push|^fatal:|Permission denied|non-fast-forward", re.MULTILINE
)
_REQUEST = re.compile(r"https?://[^\s\"')>]+/(?:pull|merge_requests|pulls)/\d+")
_TITLE = re.compile(r"--title[ =](?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_BASE = re.compile(r"--base[ =]['\"]?([\w./-]+)")
_STATES = (
    (re.compile(r"\bgh pr merge\b"), "merged"), (re.compile(r"\bgh pr close\b"), "closed"),
    (re.compile(r"\bgh pr ready\b(?!.*--undo)"), "open"), (re.compile(r"\bgh pr reopen\b"), "open"),
)  # fmt: skip
_STATE_SHOWN = re.compile(r"\"?state\"?\s*:\s*\"?(OPEN|MERGED|CLOSED)\b", re.IGNORECASE)
MOST_COMMITS, MOST_BRANCHES = 120, 8


_SCRATCH = re.compile(r"\bgit (?:-\S+ )*init\b|\bmktemp\b|\bcd (?:/private)?/tmp\b|\bgit -C (?:/private)?/tmp\b")


def is_scratch(command: str) -> bool:
    """Return True if a command works in a repository made only to try something."""
    return _SCRATCH.search(command) is not None


@dataclass(slots=True)
class Versions:
    """Branches, commits, pushes and pull requests of a session so far."""

    branches: list[str] = field(default_factory=list[str])
    commits: list[CommitFact] = field(default_factory=list[CommitFact])
    requests: dict[str, PullRequestFact] = field(default_factory=dict[str, PullRequestFact])
    half_done: ActionFact | None = None
    pushed_at: int | None = None
    committed_at: int = 0

    def on(self, branch: str) -> None:
        """Note the branch that the work is on now."""
        # A checkout without a branch, as during a rebase, still belongs to the branch before.
        if branch == "HEAD" and self.branches:
            return
        if branch in self.branches:
            self.branches.remove(branch)
        self.branches = [*self.branches[-MOST_BRANCHES:], branch]

    def finished(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Add a finished command: branch, commits, pushes, pull requests and merges that it shows."""
        if is_scratch(command):
            return
        output = output.replace("\r", "\n")
        if "git" in command:
            self._half_done(number, command, outcome, output)
            if made := _NEW_BRANCH.search(command):
                if outcome == "passed":
                    self.on(made[1])
            elif found := _SWITCHED.search(output):
                self.on(found[1])
            elif _SHOWN.search(command.strip()) and re.fullmatch(r"\s*[\w./-]+\s*", output):
                self.on(output.strip())
            self._committed(number, command, outcome, output)
            self._named(output)
            self._pushed(number, command, outcome, output)
        if "gh " in command or "glab " in command or "/pull" in output:
            self._requested(number, command, outcome, output)

    def linked(self, number: int, url: str) -> None:
        """Add a pull request by its address, unless it is known."""
        self.requests.setdefault(url, PullRequestFact(number=number, url=url))

    @staticmethod
    def stopped(output: str) -> bool:
        """Return True if an output shows a conflict, which the state of the merge or rebase covers."""
        return _HALF.search(output) is not None

    @property
    def unpushed(self) -> int | None:
        """Number of commits that were not pushed; None if no push was seen."""
        if self.pushed_at is None:
            return None
        return sum(not commit.pushed for commit in self.commits)

    def _half_done(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Note a merge or rebase that stopped, a step to resolve it, or its end."""
        if _ENDED.search(command) and outcome != "failed":
            self.half_done = None
            return
        stopped = _HALF.search(output) if "commit" not in command or "--continue" in command else None
        operation = _OPERATION.search(command)
        if stopped and (operation or self.half_done or "status" in command):
            what = (
                f"git {operation[1]}{operation[2]}".strip()
                if operation
                else self.half_done.what
                if self.half_done
                else "a merge or rebase"
            )
            found = [flattened(each[0]) for each in _HALF.finditer(output)]
            reached = _PROGRESS.findall(output)
            detail = "; ".join([*(f"at {step}" for step in reached[-1:]), *found[:3]])
            self.half_done = ActionFact(
                number=number, what=clipped(what, 100), outcome="failed", detail=clipped(detail, 260)
            )
        elif self.half_done and outcome == "passed":
            concluded = _CONCLUDED.search(output) or (_COMMIT.search(output) and "rebase" not in self.half_done.what)
            if concluded or ("--continue" in command and not stopped and "rebase" not in command):
                self.half_done = None
            elif step := _RESOLVES.search(command):
                told = f"{self.half_done.detail}; since then `{clipped(flattened(step[0]), 90)}`"
                self.half_done = replace(self.half_done, detail=clipped(told, 420))

    def _committed(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Add the commits that an output shows; a quiet one if the command shows its message and went well."""
        if "commit" not in command and "cherry-pick" not in command and "revert" not in command:
            return
        made = _COMMIT.findall(output)
        for _, name, subject in made:
            self._add(
                CommitFact(number=number, hash=name[:9], subject=clipped(subject.strip(), 140)), "--amend" in command
            )
        if made or outcome == "failed" or "--dry-run" in command or _COMMITS.search(command) is None:
            return
        here, given = _HERE.search(command), _MESSAGE.search(command)
        subject = here[2] if here else given[1] if given else ""
        listed = _LISTED.findall(output)
        name, named = next(
            ((name, line) for name, line in listed if not subject or line.startswith(subject.strip()[:40])), ("", "")
        )
        amends = "--amend" in command
        if not subject and amends and self.commits:
            subject = named or self.commits[-1].subject
        # A quiet commit whose end the command line hides is none until its name was seen.
        if subject and (name or (outcome == "passed" and "nothing to commit" not in output)):
            self._add(CommitFact(number=number, hash=name[:9], subject=clipped(subject.strip(" '\""), 140)), amends)

    def _named(self, output: str) -> None:
        """Complete commits whose name was not printed when they were made."""
        nameless = {commit.subject[:40]: at for at, commit in enumerate(self.commits) if not commit.hash}
        for name, subject in _LISTED.findall(output) if nameless else ():
            if (at := nameless.get(subject.strip()[:40])) is not None:
                self.commits[at] = replace(self.commits[at], hash=name[:9])

    def _add(self, commit: CommitFact, amends: bool) -> None:
        """Add a commit; one that amends replaces the last."""
        if amends and self.commits:
            self.commits.pop()
        self.commits.append(commit)
        self.committed_at = commit.number
        if len(self.commits) > MOST_COMMITS:
            del self.commits[1]

    def _pushed(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Mark all commits as pushed if the output shows a push."""
        if outcome == "failed" or _PUSH.search(command) is None or _REJECTED.search(output):
            return
        if _PUSHED.search(output) or (outcome == "passed" and not output.strip()):
            self.pushed_at = number
            self.commits = [replace(commit, pushed=True) for commit in self.commits]

    def _requested(self, number: int, command: str, outcome: Outcome, output: str) -> None:
        """Add a pull request that was created, or note the new state of a known one."""
        if outcome == "failed":
            return
        urls = list(dict.fromkeys(_REQUEST.findall(output)))
        if re.search(r"\b(?:gh pr|glab mr) create\b", command) and urls:
            title, base = _TITLE.search(command), _BASE.search(command)
            self.requests[urls[-1]] = PullRequestFact(
                number=number,
                url=urls[-1],
                title=clipped((title[1] or title[2] or "") if title else "", 120),
                state="draft" if "--draft" in command else "open",
                base=base[1] if base else "",
            )
            return
        if self.requests:
            last = next(reversed(self.requests))
            named = next((url for url in self.requests if re.search(rf"\b{url.rsplit('/', 1)[1]}\b", command)), last)
            shown = _STATE_SHOWN.search(output) if "gh pr view" in command else None
            state = next(
                (each for pattern, each in _STATES if pattern.search(command)), shown[1].lower() if shown else ""
            )
            if state:
                self.requests[named] = replace(self.requests[named], state=state)
