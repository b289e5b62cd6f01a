"""Settings of the work in a repository: from a command, a variable, the repository, or the user's settings file."""

from dataclasses import dataclass, fields, replace
from typing import Any, cast

from segue.model.agents import Choices, CommitPolicy, Limits, Review, Verify

OFF = "off"
SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSettings:
    """Settings of the work on an issue; None is not set, and the next source decides."""

    agent: str | None = None
    """Agent that works if `segue run` names none."""
    setup: str | None = None
    """Shell command that prepares a new worktree; an empty text is none."""
    test_command: str | None = None
    """Shell command that tests the work after each task; an empty text is none."""
    test_timeout: float | None = None
    """Seconds after which the tests are stopped and count as failed."""
    commit: CommitPolicy | None = None
    """Time at which Segue commits the work to the workflow's branch: `none` is never, `task` after each task."""
    review: str | None = None
    """Reviewer of each task: `off` for none, `same` for the agent that works, or the name of another agent."""
    review_personas: tuple[str, ...] | None = None
    """Roles of the reviewer, such as `["security", "tester"]`: one review for each."""
    review_passes: int | None = None
    """Reviews of one task before a person decides; at least 1."""
    fixer: str | None = None
    """Agent that is asked for a fix if a step fails repeatedly: `off`, `same`, or the name of another agent."""
    wait_for_quota: bool | None = None
    """True if the work resumes by itself once an exhausted quota is full again."""
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
        """Return the settings that are set, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(WorkSettings)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, others: "WorkSettings") -> "WorkSettings":
        """Return these settings, completed by `others` for those that are not set."""
        return WorkSettings(**{**others.said, **self.said})

    def without(self, others: "WorkSettings") -> "WorkSettings":
        """Return the settings that are set here and not in `others`."""
        return WorkSettings(**{name: value for name, value in self.said.items() if name not in others.said})

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the settings as lines of text."""
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
    """Return the choices with all settings of the work applied; settings that are not set get the defaults."""
    work = work.over(DEFAULTS)
    assert work.commit is not None and work.fixer is not None and work.wait_for_quota is not None
    assert work.review is not None and work.review_personas is not None and work.review_passes is not None
    assert work.test_timeout is not None
    review = Review(agent=work.review, personas=work.review_personas, passes=work.review_passes)
    return replace(
        chosen,
        setup=work.setup,
        verify=Verify(command=work.test_command, seconds=work.test_timeout) if work.test_command else None,
        review=None if work.review == OFF else review,
        commit=work.commit,
        fixer=work.fixer,
        wait_for_quota=work.wait_for_quota,
        limits=Limits(tasks=work.pause_after, seconds=work.max_time, tokens=work.max_tokens, usd=work.max_cost),
    )


def _shown(value: object) -> str:
    """Return a setting's value as in the settings file; an empty one is `none`."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.12g}"
        case tuple():
            return ", ".join(cast(tuple[str, ...], value))
        case _:
            return str(value) or "none"
