"""Account of a workflow: usage and cost of each session and each model.

Costs that the agent reports are used first, then the bundled prices for models in the table. Any other cost stays
unknown; it is not guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

from segue.model.accounts import (
    Account,
    CostSource,
    ModelAccount,
    ModelUsage,
    SessionAccount,
    WorkflowAccount,
    known_sum,
)
from segue.model.ids import SessionId, WorkflowId
from segue.protocol import windows
from segue.protocol.windows import TokenCounts
from segue.state.fold import SessionState, WorkflowState


def account_of(workflow_id: WorkflowId, state: WorkflowState) -> WorkflowAccount:
    """Return the account of a workflow, in total, by session and by model; sessions without any work are left out."""
    sessions = sessions_of(state)
    models = [each for session in sessions for each in session.models]
    return WorkflowAccount(
        workflow_id=workflow_id,
        slug=state.slug,
        account=total(session.account for session in sessions),
        sessions=sessions,
        models=tuple(
            ModelAccount(model=model, account=total(each.account for each in models if each.model == model))
            for model in dict.fromkeys(each.model for each in models)
        ),
    )


def sessions_of(state: WorkflowState) -> tuple[SessionAccount, ...]:
    """Return the accounts of all sessions with turns or usage, in the order of the state."""
    return tuple(
        session_account(session_id, session)
        for session_id, session in state.sessions.items()
        if session.usage.turns or session.models
    )


def total(accounts: Iterable[Account]) -> Account:
    """Add up accounts; a figure is None only if all parts are unknown, and the sum is complete only if all parts
    are."""
    return reduce(_plus, accounts, Account())


def session_account(session_id: SessionId, session: SessionState) -> SessionAccount:
    """Return the account of one session, in total and by model; incomplete if it had turns without usage."""
    models = tuple(
        ModelAccount(model=model or None, account=_priced(session, model, usage))
        for model, usage in _named(session.models).items()
    )
    account = total(each.account for each in models) if models else Account(complete=not session.usage.turns)
    return SessionAccount(
        session_id=session_id,
        number=session.number,
        role=session.role,
        agent=session.agent,
        turns=session.usage.turns,
        account=account,
        models=models,
    )


def _named(models: Mapping[str, ModelUsage]) -> Mapping[str, ModelUsage]:
    """Add the cost without a model name to the only model, if there is exactly one; else return the usage unchanged."""
    named = {name: usage for name, usage in models.items() if name}
    nameless = models.get("")
    if nameless is None or nameless.input_tokens is not None or len(named) != 1:
        return models
    return {
        name: replace(usage, cost_usd=known_sum((usage.cost_usd, nameless.cost_usd))) for name, usage in named.items()
    }


def _priced(session: SessionState, model: str, usage: ModelUsage) -> Account:
    """Return a model's account, with the reported cost if the agent reports any, else an estimate if the prices are
    known."""
    # The reported cost is that of the whole conversation, all models included.
    reported = session.usage.cost_usd is not None
    usd = usage.cost_usd if reported else _estimated(model, usage)
    source: CostSource = "reported" if reported else "estimated"
    return Account(
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usd,
        cost_source="unknown" if usd is None else source,
        complete=reported or usd is not None,
    )


def _estimated(model: str, usage: ModelUsage) -> float | None:
    """Return the model's cost by the table of prices; None if tokens or price are unknown."""
    if usage.input_tokens is None or usage.output_tokens is None or usage.last_on is None:
        return None
    tokens = TokenCounts(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cached_tokens if usage.cache_known else None,
        largest_request=usage.fullest,
    )
    return windows.cost(model, tokens, usage.last_on)


_DOUBT: dict[CostSource, int] = {"unknown": 0, "reported": 1, "estimated": 2}


def _plus(one: Account, other: Account) -> Account:
    """Add two accounts; unknown figures are left out of the sums."""
    return Account(
        input_tokens=known_sum((one.input_tokens, other.input_tokens)),
        cached_tokens=known_sum((one.cached_tokens, other.cached_tokens)),
        output_tokens=known_sum((one.output_tokens, other.output_tokens)),
        cost_usd=known_sum((one.cost_usd, other.cost_usd)),
        # A sum is as certain as the less certain of its known parts.
        cost_source=max(one.cost_source, other.cost_source, key=_DOUBT.__getitem__),
        complete=one.complete and other.complete,
    )
