"""Candidates of the conformance suite, and its checks."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from unittest import SkipTest

from segue.drivers import Agent, Capabilities, Driver, Launch
from segue.testing.conformance.acts import Act, Line


class Candidate(Protocol):
    """Driver with an agent that plays the acts of a check. The author of a driver writes this."""

    @property
    def driver(self) -> Driver: ...

    @property
    def plays(self) -> frozenset[type[Act]]:
        """The acts its agent can be made to play; checks that need others are skipped."""
        ...

    def cast(self, *lines: Line) -> AbstractAsyncContextManager[Launch]:
        """Prepare the agent for these lines. Within the context it may be started several times, in one home."""
        ...

    async def remembers(self, agent: Agent, words: str) -> bool:
        """Play a turn that shows whether the agent remembers this text of an earlier prompt."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that every driver does."""

    run: Callable[[Candidate], Awaitable[None]]
    needs: frozenset[type[Act]]

    async def __call__(self, candidate: Candidate) -> None:
        """Run the check; raise SkipTest if the agent cannot play what it needs, AssertionError if it fails."""
        if missing := self.needs - candidate.plays:
            raise SkipTest(f"its agent does not play {', '.join(sorted(act.__name__ for act in missing))}")
        await self.run(candidate)

    def __str__(self) -> str:
        return self.run.__name__


def needs(*acts: type[Act]) -> Callable[[Callable[[Candidate], Awaitable[None]]], Check]:
    """Return a decorator that makes a check which an agent passes by playing these acts."""
    return lambda run: Check(run=run, needs=frozenset(acts))


def able(capabilities: Capabilities, name: str) -> None:
    """Raise SkipTest unless the agent has this capability."""
    if not getattr(capabilities, name):
        raise SkipTest(f"its agent does not offer: {name}")


def ensure(holds: bool, sentence: str) -> None:
    """Raise AssertionError with this message unless the condition holds."""
    if not holds:
        raise AssertionError(sentence)
