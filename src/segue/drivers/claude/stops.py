"""Why Claude stopped, and whether it is asked to go on."""

from collections.abc import Mapping
from dataclasses import dataclass

from claude_agent_sdk import ResultMessage

from segue.drivers.programs.payloads import StopReason

GO_ON = "Go on exactly where you stopped."


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Claude stopped in the middle, and can go on if it is asked to."""

    otherwise: StopReason
    """Why the turn is over if nobody asks."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn came to no end of its own."""

    message: str
    status: int | None = None
    """What the vendor's server answered with."""


Verdict = Ended | Unfinished | Failed

_STOPS: Mapping[str, Verdict] = {
    "end_turn": Ended("end_turn"),
    "stop_sequence": Ended("end_turn"),
    "refusal": Ended("refusal"),
    "model_context_window_exceeded": Ended("max_tokens"),
    "max_tokens": Unfinished("max_tokens"),
    "tool_use": Unfinished("max_turn_requests"),
    "pause_turn": Unfinished("max_turn_requests"),
}
_ERRORS: Mapping[str, Verdict] = {
    "error_max_turns": Ended("max_turn_requests"),
    "error_max_budget_usd": Failed("The budget that was set for this turn is used up."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """How often Claude was asked already in this turn."""

    current_turn: int
    max_turns: int
    tool_calls_this_turn: int = 0
    """Tools that Claude used since it was asked last."""


def should_continue(state: TurnState) -> bool:
    return state.current_turn < state.max_turns


def verdict(result: ResultMessage, *, cancelled: bool) -> Verdict:
    """What the end of one answer means; a reason that is not known ends the turn like any other."""
    if cancelled or (result.terminal_reason or "").startswith("aborted"):
        return Ended("cancelled")
    if result.subtype in _ERRORS:
        return _ERRORS[result.subtype]
    if result.is_error:
        return Failed(_words(result), result.api_error_status)
    return _STOPS.get(result.stop_reason or "", Ended("end_turn"))


def _words(result: ResultMessage) -> str:
    return result.result or "; ".join(result.errors or ()) or f"Claude Code ended the turn with {result.subtype}."
