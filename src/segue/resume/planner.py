"""The planner: which way back, why, and what each way costs."""

from dataclasses import dataclass

from segue.model.agents import AgentConfiguration
from segue.model.errors import WrongState
from segue.model.events import Price
from segue.model.status import SessionStatus, Way
from segue.state.fold import SessionState
from segue.state.moves import SESSION_ENDED

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb, for prices of texts that no model has counted yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The conversation that a fork comes from, as it is now."""

    session: SessionState
    clean: bool
    """Whether the snapshot of the fork lies between two turns."""
    moved: bool
    """Whether something was said in it after that snapshot."""
    bookmark: str | None = None
    """Where it stood at the snapshot, as the agent itself calls it, if it does: then a copy up to there can be made."""
    tokens: int | None = None
    """Of its context at the snapshot, as the agent counted them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What there is to go back with."""

    session: SessionState
    agent: AgentConfiguration
    """Who goes on: the session's own agent, or another one."""
    budget: int | None = None
    """Tokens of a compiled context, at most; None while there is no snapshot to compile one from."""
    history: str = ""
    """What was said, as a new conversation would be told it."""
    request: int = 0
    """Characters of the prompt that comes next, as far as it is known."""
    goes_back: bool = False
    """Whether the work is taken back to an earlier snapshot."""
    full: str = ""
    """Why the conversation has no room for more work, where that is so."""
    original: Original | None = None
    """What a fork could begin with a copy of."""
    container: str | None = None
    """Why the agent in the container of the session cannot be joined, empty where it can; None where there is none."""

    @property
    def hands_over(self) -> bool:
        return self.agent.name != self.session.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePlan:
    way: Way
    reason: str
    prices: tuple[Price, ...] = ()


def plan_resume(means: Means, wanted: Way | None = None) -> ResumePlan:
    """Choose the first way back that is open, or the wanted one; raise WrongState if that is closed."""
    session = means.session
    if wanted is None and _never_reached(session) and not means.hands_over and not means.goes_back:
        return ResumePlan(way=Way.FIRST, reason="the agent was never reached; it starts for the first time")
    prices = (*_reattach(means), _native(means), *_fork(means), _context(means), _history(means), _fresh(means))
    if wanted is not None:
        return _wanted(wanted, prices)
    # In a full conversation the work would stop again at once, so that way is taken only on request.
    passed_over = Way.NATIVE if means.full and _context(means).possible else None
    chosen = next(price for price in prices if price.possible and price.way is not passed_over)
    closed = [means.full if price.way is passed_over else price.note for price in prices[: prices.index(chosen)]]
    return ResumePlan(way=chosen.way, reason="; ".join([*closed, _REASONS[chosen.way]]), prices=prices)


_REASONS = {
    Way.REATTACH: "the agent never stopped, and is listened to again in its container",
    Way.NATIVE: "the agent's own conversation goes on",
    Way.FORK: "the agent copies its conversation for the fork",
    Way.CONTEXT: "a new conversation begins with a compiled context",
    Way.HISTORY: "a new conversation is told what was said",
    Way.FRESH: "a new conversation starts from the plan and the files",
}


def _wanted(way: Way, prices: tuple[Price, ...]) -> ResumePlan:
    """Return the plan for the wanted way; raise WrongState with the reason if it is closed."""
    price = next((price for price in prices if price.way is way), None)
    if price is None or not price.possible:
        why = price.note if price else f"there is no way called {way}"
        open_ways = ", ".join(price.way for price in prices if price.possible)
        raise WrongState(f"This way back is closed: {why}.", hint=f"Open ways: {open_ways}.")
    return ResumePlan(way=way, reason=f"asked for by the user; {_REASONS[way]}", prices=prices)


def _never_reached(session: SessionState) -> bool:
    """Return True if no agent ever answered in this session, and it continues no other."""
    return session.token is None and not session.refused_tokens and not session.usage.turns and session.parent is None


def _reattach(means: Means) -> tuple[Price, ...]:
    """Return the price of joining the agent in its container; empty if it was in none."""
    if means.container is None:
        return ()
    why_not = means.container
    if means.goes_back:
        why_not = "the agent has gone beyond the snapshot"
    elif means.hands_over:
        why_not = f"the agent in the container is {means.session.agent}"
    return (Price(way=Way.REATTACH, possible=not why_not, tokens=0, note=why_not or "nothing is told again"),)


def _native(means: Means) -> Price:
    """Return the price of the agent's own conversation, closed or not; its tokens may be unknown (None)."""
    session = means.session
    why_not = _no_native(means)
    used = session.usage.context_tokens
    note = "the whole conversation, as the agent last counted it" if used is not None else "the agent never counted it"
    return Price(way=Way.NATIVE, possible=not why_not, tokens=used, note=why_not or note)


def _no_native(means: Means) -> str:
    """Return why the agent's own conversation cannot be continued, or an empty text if it can."""
    session = means.session
    if means.goes_back:
        return "the conversation has gone beyond the snapshot"
    if means.hands_over:
        return f"{means.agent.name} cannot open a conversation of {session.agent}"
    if not means.agent.native_resume:
        return f"{means.agent.name} may lose a conversation that it is asked to load"
    if means.original is not None and session.never_started:
        return "the fork has no conversation of its own yet"
    if session.token is None:
        refused = "the agent did not take its conversation back"
        return refused if session.refused_tokens else "no conversation was recorded"
    if session.status in SESSION_ENDED - {SessionStatus.FAILED}:
        return _ENDED.get(session.status, f"the last session is {session.status}")
    if session.capabilities is not None and not {"load", "resume"} & set(session.capabilities):
        return f"{means.agent.name} says that it cannot go back to a conversation"
    return ""


def _fork(means: Means) -> tuple[Price, ...]:
    """Return the price of copying the original's conversation; empty unless this is a fork without one of its own."""
    original, session = means.original, means.session
    if original is None or session.token is not None or session.refused_tokens or session.usage.turns:
        return ()
    why_not = _no_fork(means, original)
    used = original.tokens if original.moved else original.session.usage.context_tokens
    counted = _UP_TO_THERE if original.moved else "the whole conversation, as the agent last counted it"
    note = counted if used is not None else "the agent never counted it"
    return (Price(way=Way.FORK, possible=not why_not, tokens=used, note=why_not or note),)


_UP_TO_THERE = "the conversation up to the snapshot, as the agent counted it then"


def _no_fork(means: Means, original: Original) -> str:
    """Return why the original's conversation cannot be copied, or an empty text if it can."""
    name, session = means.agent.name, original.session
    if name != session.agent:
        return f"{name} cannot copy a conversation of {session.agent}"
    if not means.agent.native_fork:
        return f"copying a conversation of {name} is switched off"
    if means.session.status in SESSION_ENDED | {SessionStatus.FAILED}:
        return f"the last session is {means.session.status}"
    if session.token is None:
        return "no conversation of the original was recorded"
    if "fork" not in (session.capabilities or ()):
        return f"{name} does not say that it can copy a conversation"
    if not original.clean:
        return "the snapshot lies in the middle of a turn"
    if means.goes_back or (original.moved and original.bookmark is None):
        return "the original's conversation has gone beyond the snapshot"
    return ""


_ENDED = {SessionStatus.EXPIRED: "the last session expired, since nobody came back to it"}


def _context(means: Means) -> Price:
    """Return the price of a compiled context; closed without a snapshot."""
    if means.budget is None:
        return Price(way=Way.CONTEXT, possible=False, tokens=None, note="there is no snapshot yet")
    tokens = means.budget + _tokens(means.request)
    return Price(way=Way.CONTEXT, possible=True, tokens=tokens, note="at most: its budget, and the next request")


def _history(means: Means) -> Price:
    """Return the price of a new conversation with the history; closed if it is switched off or empty."""
    why_not = ""
    if not means.agent.history:
        why_not = f"telling {means.agent.name} the history is switched off"
    elif not means.history:
        why_not = "nothing was said yet"
    tokens = _tokens(len(means.history) + means.request)
    return Price(way=Way.HISTORY, possible=not why_not, tokens=tokens, note=why_not or "estimated from its length")


def _fresh(means: Means) -> Price:
    """Return the price of a new conversation with plan and files alone, which is always open."""
    return Price(way=Way.FRESH, possible=True, tokens=_tokens(means.request), note="estimated from its length")


def _tokens(characters: int) -> int:
    """Return about how many tokens so many characters are, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
