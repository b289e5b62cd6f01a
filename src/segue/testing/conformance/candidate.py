"""Who is examined, and what an examination is."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from unittest import SkipTest

from segue.drivers import Agent, Capabilities, Driver, Launch
from segue.testing.conformance.acts import Act, Line


class Candidate(Protocol):
    """A driver, with an agent that does what it is told. This is what its author writes."""

    @property
    def driver(self) -> Driver: ...

    @property
    def plays(self) -> frozenset[type[Act]]:
        """The acts its agent can be made to play; checks that need others are skipped."""
        ...

    def cast(self, *lines: Line) -> AbstractAsyncContextManager[Launch]:
        """What starts the agent on these lines. Within the context it may be started several times, in one home."""
        ...

    async def remembers(self, agent: Agent, words: str) -> bool:
        """Take a turn that shows whether the agent has these words of an earlier prompt in mind."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that every driver does."""

    run: Callable[[Candidate], Awaitable[None]]
    needs: frozenset[type[Act]]

    async def __call__(self, candidate: Candidate) -> None:
        """An `AssertionError` says what is wrong; a `SkipTest`, that the agent cannot show it."""
        if missing := self.needs - candidate.plays:
            raise SkipTest(f"its agent does not play {', '.join(sorted(act.__name__ for act in missing))}")
        await self.run(candidate)

    def __str__(self) -> str:
        return self.run.__name__


def needs(*acts: type[Act]) -> Callable[[Callable[[Candidate], Awaitable[None]]], Check]:
    """A check that an agent passes by playing these acts."""
    return lambda run: Check(run=run, needs=frozenset(acts))


def able(capabilities: Capabilities, name: str) -> None:
    """Skip what the agent says that it cannot do."""
    if not getattr(capabilities, name):
        raise SkipTest(f"its agent does not offer: {name}")


def ensure(holds: bool, sentence: str) -> None:
    """Like `assert`, which would need a test runner to say what is wrong."""
    if not holds:
        raise AssertionError(sentence)
