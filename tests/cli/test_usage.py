import json
from dataclasses import replace
from typing import Any

from segue.model.accounts import Account, ModelAccount, SessionAccount, WorkflowAccount
from segue.model.ids import SessionId
from segue.model.status import Role
from tests.server.standin_service import ID, SESSION, SPENT, VIEW, Standin

UNKNOWN = Account(complete=False)
SIDE = SessionId("session-2026-01-02-zzzzzz")


def account() -> WorkflowAccount:
    return WorkflowAccount(
        workflow_id=VIEW.id,
        slug=VIEW.slug,
        account=replace(SPENT, complete=False),
        sessions=(
            SessionAccount(session_id=SESSION.id, number=1, agent="claude", turns=3, account=SPENT),
            SessionAccount(session_id=SIDE, number=None, agent="auggie", turns=1, account=UNKNOWN),
            SessionAccount(session_id=SIDE, number=0, role=Role.REVIEWER, agent="claude", turns=1, account=UNKNOWN),
        ),
        models=(ModelAccount(model="claude-opus-5-5", account=SPENT), ModelAccount(model=None, account=UNKNOWN)),
    )


def test_the_account_of_a_workflow_is_shown_by_session_and_by_model(segue: Any, service: Standin) -> None:
    service.account = account()
    assert segue("usage").stdout == (
        "                                              input   cached   output            cost\n"
        "session 1 (claude, 3 turns)                   1,200   38,000      300           $0.02  estimated\n"
        "session-2026-01-02-zzzzzz (auggie, 1 turn)  unknown  unknown  unknown         unknown\n"
        "reviewer (claude, 1 turn)                   unknown  unknown  unknown         unknown\n"
        "claude-opus-5-5                               1,200   38,000      300           $0.02  estimated\n"
        "a model without a name                      unknown  unknown  unknown         unknown\n"
        "together                                      1,200   38,000      300  at least $0.02  estimated\n"
    )
    shown = json.loads(segue("usage", "add-parser", "--json").stdout)
    assert (shown["workflow_id"], shown["sessions"][1]["account"]["cost_source"]) == (ID, "unknown")


def test_before_any_work_there_is_nothing_to_show(segue: Any, service: Standin) -> None:
    assert segue("usage").stdout == "No agent has been at work on add-parser yet.\n"


def test_what_a_workflow_has_cost_stands_in_the_status(segue: Any, service: Standin) -> None:
    service.views[VIEW.id] = replace(VIEW, spent=SPENT)
    assert "about $0.02" in segue("status").stdout
