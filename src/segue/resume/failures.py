"""What follows when an agent does not do its part: one table, one policy.

Nothing here starts anything. A failure leaves the work where a person can go on, says what happened and what can be
done about it, and never goes on with a fresh conversation by itself. What is tried again stands in `protocol.retries`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from segue.model.errors import AgentError, SegueError, WorktreeMissing
from segue.model.status import Failure, SessionStatus, WorkflowStatus


class Remedy(StrEnum):
    """What a person can do, as a command."""

    RESUME = "segue resume"
    START_FRESH = "segue resume --fresh"
    TRY_AGAIN = "segue resume --native"
    WORKSPACE_ONLY = "segue resume --workspace-only"
    CHECK = "segue agents check"
    WAIT = "segue resume --wait-for-quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What becomes of the session, the workflow and the token, and what the user can do."""

    session: SessionStatus | None
    """None is the state before the start that failed; a first start becomes failed, and so does its workflow, if it is
    not tried again."""
    workflow: WorkflowStatus = WorkflowStatus.PAUSED
    keeps_token: bool = True
    """A token that is not kept in use is kept in the list of refused ones."""
    meaning: str
    remedies: tuple[Remedy, ...]


_LOST = (Remedy.RESUME, Remedy.START_FRESH, Remedy.TRY_AGAIN, Remedy.WORKSPACE_ONLY)
_KEPT = (Remedy.RESUME, Remedy.START_FRESH, Remedy.WORKSPACE_ONLY)

POLICIES: Mapping[Failure, Policy] = {
    Failure.TOKEN_REJECTED: Policy(
        session=SessionStatus.WAITING_FOR_INPUT,
        workflow=WorkflowStatus.REVIEW,
        keeps_token=False,
        meaning="The agent does not know its conversation any more.",
        remedies=_LOST,
    ),
    Failure.OTHER_CONVERSATION: Policy(
        session=SessionStatus.WAITING_FOR_INPUT,
        workflow=WorkflowStatus.REVIEW,
        keeps_token=False,
        meaning="The agent answered with another conversation than the one asked for, so nothing was resumed.",
        remedies=_LOST,
    ),
    Failure.TRANSCRIPT_CORRUPT: Policy(
        session=SessionStatus.WAITING_FOR_INPUT,
        workflow=WorkflowStatus.REVIEW,
        keeps_token=False,
        meaning="The agent's own record of the conversation is damaged; asking again would fail again.",
        remedies=_LOST,
    ),
    Failure.TRANSPORT_LOST: Policy(
        session=None, meaning="The connection to the agent broke; its process was ended.", remedies=_KEPT
    ),
    Failure.PROCESS_EXITED: Policy(session=None, meaning="The agent's process ended by itself.", remedies=_KEPT),
    Failure.HANDSHAKE_TIMEOUT: Policy(
        session=None, meaning="The agent was started and did not answer in time.", remedies=(*_KEPT, Remedy.CHECK)
    ),
    Failure.HANDSHAKE_FAILED: Policy(
        session=None, meaning="The agent was started and did not answer as an agent.", remedies=(*_KEPT, Remedy.CHECK)
    ),
    Failure.QUOTA: Policy(
        session=SessionStatus.SUSPENDED,
        meaning=(
            "The quota is used up, or too much was asked in a short time. "
            "It is waited for only if you chose so (`--wait-for-quota`). Fewer agents at the same time "
            "(`agents_at_once`) ask for less."
        ),
        remedies=(Remedy.WAIT, *_KEPT),
    ),
    Failure.LOGIN_REQUIRED: Policy(
        session=None, meaning="The agent's vendor wants you to log in.", remedies=(Remedy.CHECK, *_KEPT)
    ),
    Failure.NOT_RESTORED: Policy(
        session=None,
        meaning="The conversation came back without the model, mode or servers chosen for it, so no prompt was sent.",
        remedies=(Remedy.RESUME, Remedy.WORKSPACE_ONLY, Remedy.CHECK),
    ),
    Failure.WORKTREE_MISSING: Policy(
        session=SessionStatus.FAILED,
        workflow=WorkflowStatus.FAILED,
        meaning="The worktree is gone, and no branch is left to make it from.",
        remedies=(Remedy.RESUME,),
    ),
    Failure.PROGRAM_MISSING: Policy(
        session=None, meaning="The agent's program is not installed.", remedies=(Remedy.CHECK, Remedy.RESUME)
    ),
    Failure.NEVER_ANSWERED: Policy(
        session=None, meaning="The agent came up and never reacted to its prompt.", remedies=(*_KEPT, Remedy.CHECK)
    ),
    Failure.OTHER: Policy(session=None, meaning="The agent could not go on.", remedies=_KEPT),
}


def failure_of(error: SegueError) -> Failure:
    """Return the kind of failure of an error; OTHER unless it is an agent's or a missing worktree."""
    return error.failure if isinstance(error, AgentError | WorktreeMissing) else Failure.OTHER


# ── the page of the documentation ───────────────────────────────────────────────────────────────────


def describe() -> str:
    """Return the table of all failures and their policies in `docs/reference/failures.md`."""
    head = "| failure | what it means | session | workflow | token | what you can do |\n|---|---|---|---|---|---|"
    return "\n".join([head, *(_row(failure, policy) for failure, policy in POLICIES.items())])


def _row(failure: Failure, policy: Policy) -> str:
    """Return one failure and its policy as a row of the table."""
    session = f"`{policy.session}`" if policy.session else "as before the start; `suspended` in the middle of a turn"
    workflow = f"`{policy.workflow}`" + ("" if policy.session else "; a first start that is not tried again: `failed`")
    token = "kept" if policy.keeps_token else "kept as refused, not used again unless you ask"
    remedies = ", ".join(f"`{remedy}`" for remedy in policy.remedies)
    return f"| `{failure}` | {policy.meaning} | {session} | {workflow} | {token} | {remedies} |"
