"""The planner: which way back, and why."""

from dataclasses import dataclass

from segue.model.status import SessionStatus, Way
from segue.state.fold import SessionState
from segue.state.moves import SESSION_ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePlan:
    way: Way
    reason: str


def plan_resume(session: SessionState, native: bool) -> ResumePlan:
    """Native where the conversation can be named, and the agent trusted with it; else a fresh one, and it says so."""
    if session.token is not None and session.status not in SESSION_ENDED:
        if native:
            return ResumePlan(way=Way.NATIVE, reason="the agent's own conversation goes on")
        return ResumePlan(
            way=Way.FRESH,
            reason="this agent may lose a conversation that it is asked to load; a new one starts from Segue's record",
        )
    if session.refused_tokens:
        return ResumePlan(
            way=Way.FRESH, reason="the agent no longer knows its conversation; a new one starts from Segue's record"
        )
    if session.status in SESSION_ENDED:
        return ResumePlan(way=Way.FRESH, reason=f"the last session is {session.status}; a new one takes over")
    if session.status is SessionStatus.CREATED or not session.usage.turns:
        return ResumePlan(way=Way.FIRST, reason="the agent was never reached; it starts for the first time")
    return ResumePlan(way=Way.FRESH, reason="no conversation was recorded; a new one starts from Segue's record")
