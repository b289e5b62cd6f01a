"""What may be said of the work in a repository: by a command, a variable, the repository, or the user's settings."""

from dataclasses import dataclass, fields, replace
from typing import Any, cast

from segue.model.agents import Choices, CommitPolicy, Limits, Review, Verify

OFF = "off"
SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """None is not said, and leaves it to whoever is asked next."""

    agent: str | None = None
    """The agent that works when `segue run` names none."""
    setup: str | None = None
    """A shell command that makes a new worktree ready for work; an empty text is none."""
    test_command: str | None = None
    """A shell command that tests the work after each task; an empty text is none."""
    test_timeout: float | None = None
    """Seconds after which the tests count as hanging, and as failed."""
    commit: CommitPolicy | None = None
    """When Segue commits the work to the workflow's branch: `none` is never, `task` after each task."""
    review: str | None = None
    """Who reviews each task: `off` is nobody, `same` the agent that works, or another agent's name."""
    review_personas: tuple[str, ...] | None = None
    """As whom the reviewer looks, such as `["security", "tester"]`: one review for each."""
    review_passes: int | None = None
    """Reviews of one task before a person decides; at least 1."""
    fixer: str | None = None
    """Who is asked for a fix when a step keeps failing: `off`, `same`, or another agent's name."""
    wait_for_quota: bool | None = None
    """Whether the work goes on by itself when a used-up quota is full again."""
    pause_after: int | None = None
    """Tasks after which the work pauses; 0 is no limit, here and in the next three."""
    max_time: float | None = None
    """Seconds after which the work pauses."""
    max_tokens: int | None = None
    """Tokens after which the work pauses, as far as the agents report them."""
    max_cost: float | None = None
    """US dollars after which the work pauses, as far as the agents report them."""

    @property
    def said(self) -> dict[str, Any]:
        """What was said, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(WorkSettings)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, others: "WorkSettings") -> "WorkSettings":
        """What is said here, and where nothing is, what the others say."""
        return WorkSettings(**{**others.said, **self.said})

    def without(self, others: "WorkSettings") -> "WorkSettings":
        """What is said here and not there."""
        return WorkSettings(**{name: value for name, value in self.said.items() if name not in others.said})

    @property
    def lines(self) -> tuple[str, ...]:
        """What was said, for people to read."""
        return tuple(f"{name} = {_shown(value)}" for name, value in self.said.items())


NOTHING_SAID = WorkSettings()
DEFAULTS = WorkSettings(
    agent="claude",
    test_timeout=600.0,
    commit=CommitPolicy.NONE,
    review=OFF,
    review_personas=("reviewer",),
    review_passes=2,
    fixer=SAME,
    wait_for_quota=False,
)


def choices_of(work: WorkSettings, chosen: Choices) -> Choices:
    """What was chosen, with everything that `work` says in it."""
    work = work.over(DEFAULTS)
    assert work.commit is not None and work.fixer is not None and work.wait_for_quota is not None
    return replace(
        chosen,
        setup=work.setup,
        verify=_verify(work),
        review=_review(work),
        commit=work.commit,
        fixer=work.fixer,
        wait_for_quota=work.wait_for_quota,
        limits=Limits(tasks=work.pause_after, seconds=work.max_time, tokens=work.max_tokens, usd=work.max_cost),
    )


def _verify(work: WorkSettings) -> Verify | None:
    assert work.test_timeout is not None
    return Verify(command=work.test_command, seconds=work.test_timeout) if work.test_command else None


def _review(work: WorkSettings) -> Review | None:
    assert work.review is not None and work.review_personas is not None and work.review_passes is not None
    if work.review == OFF:
        return None
    return Review(agent=work.review, personas=work.review_personas, passes=work.review_passes)


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.12g}"
        case tuple():
            return ", ".join(cast(tuple[str, ...], value))
        case _:
            return str(value) or "none"
