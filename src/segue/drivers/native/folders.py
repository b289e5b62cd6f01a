"""Folders in which agents keep their session files, and the newest file in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from segue.drivers.native import read
from segue.model.errors import BadInput, SegueError, SessionNotFound
from segue.model.events import WorkLocation


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Folder of an agent's session files."""

    variable: str
    """Names the directory, if it is set."""
    below_home: str
    files: str

    def place(self, environment: Mapping[str, str]) -> Path:
        """Return the folder, from the environment."""
        home = environment.get("HOME") or str(Path.home())
        return Path(environment.get(self.variable) or Path(home, self.below_home))


KEEPINGS = {
    "claude": SessionFolder("CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl"),
    "codex": SessionFolder("CODEX_HOME", ".codex", "sessions/*/*/*/rollout-*.jsonl"),
}


def newest(agent: str, environment: Mapping[str, str], directories: Sequence[Path]) -> Path:
    """Return the agent's session file that was written last and worked in one of these directories; raise if none
    did."""
    if agent not in KEEPINGS:
        raise BadInput(
            f"Segue cannot look for sessions of {agent!r}.", hint=f"It knows where these are: {', '.join(KEEPINGS)}."
        )
    keeping = KEEPINGS[agent]
    place = keeping.place(environment)
    files = [(_written(file), file) for file in place.glob(keeping.files)]
    wanted = {str(each) for directory in directories for each in (directory, directory.resolve())}
    for _, file in sorted(files, reverse=True):
        if directory_of(file) in wanted:
            return file
    raise SessionNotFound(
        f"{agent} has no session that worked in {' or '.join(map(str, directories))}.",
        hint=f"Looked for {place / keeping.files} ({len(files)} found). Or give the file: segue import FILE",
    )


def directory_of(file: Path) -> str:
    """Return the directory of a session, or an empty text if the file names none or is no session."""
    try:
        said = (line.said for line in read(file).lines)
        return next((each.directory or "" for each in said if isinstance(each, WorkLocation)), "")
    except SegueError:
        return ""


def _written(file: Path) -> float:
    """Return the time of a file's last change; 0 if it cannot be read."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
