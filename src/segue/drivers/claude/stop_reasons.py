"""Reasons why Claude stopped, and whether it is asked to go on."""

from collections.abc import Mapping
from dataclasses import dataclass

from claude_agent_sdk import ResultMessage

from segue.drivers.skeleton.payloads import StopReason

GO_ON = "Go on exactly where you stopped."


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The turn is over."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class TurnUnfinished:
    """Claude stopped in the middle, and can go on if it is asked to."""

    otherwise: StopReason
    """Reason of the turn's end if Claude is not asked to go on."""


@dataclass(frozen=True, slots=True)
class TurnBroken:
    """The turn came to no end of its own."""

    message: str
    status: int | None = None
    """HTTP status of the vendor's answer."""


TurnOutcome = TurnOver | TurnUnfinished | TurnBroken

_STOPS: Mapping[str, TurnOutcome] = {
    "end_turn": TurnOver("end_turn"),
    "stop_sequence": TurnOver("end_turn"),
    "refusal": TurnOver("refusal"),
    "model_context_window_exceeded": TurnOver("max_tokens"),
    "max_tokens": TurnUnfinished("max_tokens"),
    "tool_use": TurnUnfinished("max_turn_requests"),
    "pause_turn": TurnUnfinished("max_turn_requests"),
}
_ERRORS: Mapping[str, TurnOutcome] = {
    "error_max_turns": TurnOver("max_turn_requests"),
    "error_max_budget_usd": TurnBroken("The budget that was set for this turn is used up."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """Count of requests to Claude in this turn."""

    current_turn: int
    max_turns: int
    tool_calls_this_turn: int = 0
    """Tools that Claude used since it was asked last."""


def should_continue(state: TurnState) -> bool:
    """Return True if the turn may ask Claude to continue once more."""
    return state.current_turn < state.max_turns


def outcome_of(result: ResultMessage, *, cancelled: bool) -> TurnOutcome:
    """Return the outcome of one answer: over, unfinished or broken; an unknown reason ends the turn as usual."""
    if cancelled or (result.terminal_reason or "").startswith("aborted"):
        return TurnOver("cancelled")
    if result.subtype in _ERRORS:
        return _ERRORS[result.subtype]
    if result.is_error:
        message = result.result or "; ".join(result.errors or ())
        return TurnBroken(message or f"Claude Code ended the turn with {result.subtype}.", result.api_error_status)
    return _STOPS.get(result.stop_reason or "", TurnOver("end_turn"))
