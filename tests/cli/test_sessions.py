import json
from dataclasses import replace
from typing import Any

import pytest

from segue.cli.output import moment
from segue.model.checkpoint import Usage
from segue.model.errors import CheckpointNotFound
from segue.model.ids import SessionId, WorkflowId
from segue.model.status import Carrying, Failure, Role, RuntimeStatus, SessionStatus, WorkflowStatus
from segue.model.views import FailureView
from tests.server.standin_service import ID, NOON, SESSION, VIEW, Standin

AT = moment(NOON.isoformat())
SECOND = replace(
    SESSION,
    id=SessionId("session-2026-01-02-zzzzzz"),
    number=2,
    status=SessionStatus.SUSPENDED,
    waiting_for=None,
    reason="no quota",
    parent=SESSION.id,
    token=None,
    refused_tokens=("token-2", "token-3"),
    capabilities=None,
    carrying=Carrying.NEEDED,
    compactions=2,
    context_tokens_new=12_000,
    usage=Usage(),
    failure=FailureView(
        failure=Failure.TOKEN_REJECTED,
        meaning="The agent does not know its conversation any more.",
        remedies=("segue resume", "segue resume --native"),
    ),
    runtime=replace(SESSION.runtime, status=RuntimeStatus.ENDED, alive=False, dropped_events=3),
    way_back=None,
)


def test_sessions_are_listed_in_columns(segue: Any, service: Standin) -> None:
    service.details = [SESSION, SECOND]
    assert segue("sessions", "list").stdout == (
        "   session                    agent      status                            runs  context                 "
        "        started\n"
        "1  session-2026-01-02-abcdef  rehearsal  waiting for input (for a prompt)     2  40,000 of 200,000 tokens"
        f" (20%)  {AT}\n"
        "2  session-2026-01-02-zzzzzz  rehearsal  suspended                            2  unknown                 "
        f"        {AT}\n"
    )
    listed = json.loads(segue("sessions", "list", "add-parser", "--json").stdout)
    assert [session["id"] for session in listed["sessions"]] == [SESSION.id, SECOND.id]


def test_who_only_helps_is_called_by_its_role(segue: Any, service: Standin) -> None:
    service.details = [SESSION, replace(SECOND, number=0, role=Role.REVIEWER)]
    assert segue("sessions", "list").stdout.splitlines()[2].startswith("reviewer  session-2026-01-02-zzzzzz")
    shown = segue("sessions", "show", "session-zzzzzz").stdout
    assert shown.startswith("A reviewer of add-parser (session-2026-01-02-zzzzzz)\n")


@pytest.mark.parametrize("name", [[], ["add-parser"], [ID], [SESSION.id], ["session-abcdef"]])
def test_a_session_is_shown_by_its_own_name_or_by_its_workflows(segue: Any, service: Standin, name: list[str]) -> None:
    assert segue("sessions", "show", *name).stdout == (
        "Session 1 of add-parser (session-2026-01-02-abcdef)\n"
        "  status     waiting for input (for a prompt)\n"
        "  agent      rehearsal\n"
        f"  started    {AT}\n"
        "  runs       2\n"
        f"  process    pid 4711, alive, last seen {AT}\n"
        "  execution  attempt-1, generation 2\n"
        "  token      token-1\n"
        "  can        load, resume\n"
        "  context    40,000 of 200,000 tokens (20%)\n"
        "  used       1 turn, 2 tool calls, 1,200 tokens in, 300 out, 38,000 from the cache\n"
        "  cost       about $0.02\n"
        "  way back   the same conversation: the agent's own conversation goes on\n"
        "             → native   40,000 tokens  the whole conversation, as the agent last counted it\n"
        "               context   4,000 tokens  at most: its budget, and the next request\n"
        "               history         closed  nothing was said yet\n"
        "               fresh          unknown  estimated from its length\n"
    )


def test_a_session_in_trouble_shows_what_happened_and_what_can_be_done(segue: Any, service: Standin) -> None:
    service.details = [SESSION, SECOND]
    assert segue("sessions", "show", "session-zzzzzz").stdout == (
        "Session 2 of add-parser (session-2026-01-02-zzzzzz)\n"
        "  status       suspended: no quota\n"
        "  agent        rehearsal\n"
        f"  started      {AT}\n"
        "  runs         2\n"
        "  follows      session-2026-01-02-abcdef\n"
        f"  process      pid 4711, gone, last seen {AT}\n"
        "  execution    attempt-1, generation 2\n"
        "  dropped      3 events of a dead process, which nobody wrote down\n"
        "  token        none\n"
        "  refused      token-2, token-3\n"
        "  can          unknown\n"
        "  history      it has yet to be told what was said before it\n"
        "  context      unknown\n"
        "  new          12,000 tokens since the last refresh\n"
        "  used         0 turns, 0 tool calls, 0 tokens in, 0 out\n"
        "  compactions  2 (the agent replaced its conversation by a summary)\n"
        "  failure      token rejected: The agent does not know its conversation any more.\n"
        "               you can: segue resume add-parser, segue resume --native add-parser\n"
        "  way back     none: there is nothing to bring back\n"
    )


def test_a_session_is_shown_as_json(segue: Any, service: Standin) -> None:
    assert json.loads(segue("sessions", "show", "--json").stdout)["token"] == "token-1"


def test_a_session_that_nobody_knows_is_refused(segue: Any, service: Standin) -> None:
    result = segue("sessions", "show", "session-nobody")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "No session has the id session-nobody." in result.stderr


def test_a_workflow_may_be_called_like_a_session(segue: Any, service: Standin) -> None:
    service.views[ID] = replace(VIEW, slug="session-handling")
    assert segue("sessions", "show", "session-handling").stdout.startswith("Session 1 of session-handling (")


def test_a_workflow_that_never_began_has_no_session_to_show(segue: Any, service: Standin) -> None:
    pending = replace(VIEW, id=WorkflowId("w2"), slug="later", status=WorkflowStatus.PENDING, session=None)
    service.views[pending.id] = pending
    result = segue("sessions", "show", "later")
    assert result.stderr == "segue: later has no session yet.\n  Begin it with: segue resume later\n"


def test_the_files_of_a_session_are_written_anew(segue: Any, service: Standin) -> None:
    assert segue("sessions", "show", "--files").stdout == (
        "✓ 3 entries; what was there before was right\n  h.jsonl\n  s.json\n"
    )


def test_a_fork_says_where_it_is_and_how_it_goes_on(segue: Any, service: Standin) -> None:
    result = segue("sessions", "fork", "session-abcdef", "--from", "001")
    assert result.stdout == (
        "✓ Forked at ckpt-2026-01-02-001 as add-parser-fork: Add a parser\n"
        "  Worktree /data/worktrees/add-parser-fork on branch segue/add-parser-fork\n"
        "  Tasks: 1 done, 1 remaining\n"
        "  ! The snapshot does not hold these, so the fork has none: .env\n"
        "  Go on with: segue resume add-parser-fork\n"
    )
    request = service.request("fork")
    assert (service.asked[-1][1], request.snapshot, request.agent) == (SESSION.id, "001", None)


def test_a_fork_is_started_only_if_that_is_asked_for(segue: Any, service: Standin) -> None:
    forked = json.loads(segue("sessions", "fork", "--agent", "codex", "--title", "Again", "--json").stdout)
    assert (forked["workflow"]["title"], forked["parent"]) == ("Again", SESSION.id)
    assert not any(asked[0] == "resume" for asked in service.asked)
    result = segue("sessions", "fork", "add-parser", "--start")
    assert result.stdout.endswith("  It is at work. Watch it with: segue logs --follow add-parser-fork\n")
    assert service.asked[-1][:2] == ("resume", "workflow-2026-01-02-forked")
    assert [request.to_start for what, *_, request in service.asked if what == "fork"] == [False, True]


def test_a_snapshot_that_nobody_knows_is_refused(segue: Any, service: Standin) -> None:
    service.refusals["fork"] = CheckpointNotFound("This workflow has no checkpoint '009'.")
    result = segue("sessions", "fork", "--from", "009")
    assert (result.exit_code, result.stderr) == (1, "segue: This workflow has no checkpoint '009'.\n")
