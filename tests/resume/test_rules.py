"""The user's rules: kept at every budget, in every language, and apart from orders for the moment."""

import pytest

from segue.model.events import AgentMessage
from segue.model.transcript import Said, UserSaid
from segue.resume.compiler import compile_context
from tests.recordings import edited, facts

ENGLISH = (
    "Never force-push to the release branch.",
    "Do not edit anything under vendor/ by hand.",
    "You must not run migrations against the production database.",
    "Always ask before you delete a file.",
    "Only use the queries.sh helper for SQL, inline SQL is forbidden.",
    "No new dependencies without my approval.",
)
GERMAN = (
    "Niemals direkt auf den Release-Branch pushen.",
    "Unter vendor/ darf nichts von Hand geändert werden.",
    "Keine neuen Abhängigkeiten ohne meine Zustimmung.",
    "Bitte immer erst fragen, bevor eine Datei gelöscht wird.",
)
SPANISH = (
    "Nunca hagas push directo a la rama de release.",
    "No edites nada dentro de vendor/ a mano.",
    "Siempre pregunta antes de borrar un archivo.",
    "Está prohibido usar SQL directo en el código.",
)
JAPANESE = (
    "リリースブランチに直接プッシュしないでください。",
    "vendor/ の中は手で編集しないこと。",
    "ファイルを削除する前に必ず確認してください。",
    "本番データベースに対する移行は禁止です。",
)
NOISE = (
    "The last run looked fine to me, and the numbers match what accounting told us",
    "I was away for an hour; the build server had a hiccup but is back",
    "somebody asked about the fax column again, we can leave that for later",
)


def session(rules: tuple[str, ...], *, buried: bool, turns: int = 120) -> list[Said]:
    said: list[Said] = [UserSaid(text="Build the billing importer: parse the files and write invoices.")]
    for turn in range(turns):
        if turn % 3 == 0 and turn // 3 < len(rules):
            rule = rules[turn // 3]
            text = f"{NOISE[turn % 3].capitalize()}. {rule} Then go on with the importer, {NOISE[turn % 2]}."
            said.append(UserSaid(text=text if buried else rule))
        said.append(AgentMessage(text=f"In reader_{turn} the row {turn} is read twice, because the loop restarts."))
        said += edited(f"c{turn}", f"src/reader_{turn % 9}.py", f"row = {turn}")
        if turn % 7 == 6:
            said.append(UserSaid(text="go on"))
    return said


@pytest.mark.parametrize("budget", [400, 1000, 4000])
@pytest.mark.parametrize("buried", [False, True], ids=["bare", "buried"])
@pytest.mark.parametrize("rules", [ENGLISH, GERMAN, SPANISH, JAPANESE], ids=["en", "de", "es", "ja"])
def test_no_rule_is_lost_at_any_budget(rules: tuple[str, ...], buried: bool, budget: int) -> None:
    text = compile_context(facts(*session(rules, buried=buried)), budget).text
    assert [rule for rule in rules if rule.rstrip(".。") not in text] == []


def test_rules_that_exceed_the_budget_all_stand_and_the_first_line_says_so() -> None:
    rules = [f"Never touch the table named ledger_{n}, it belongs to team {n}." for n in range(90)]
    said = [UserSaid(text="Build it."), *(UserSaid(text=rule) for rule in rules)]
    context = compile_context(facts(*said), 400)
    assert context.text.startswith("The user's rules and the request alone need more than the 400 tokens")
    assert all(rule in context.text for rule in rules)
    assert context.tokens > 400


@pytest.mark.parametrize(
    "order",
    ["commit and push", "ok, run the tests again", "open a PR please", "fix it", "can you look at the log?", "go on"],
)
def test_an_order_for_the_moment_is_no_rule(order: str) -> None:
    (ask,) = facts(UserSaid(text="Build it."), AgentMessage(text="Done."), UserSaid(text=order)).said
    assert ask.constraints == ()


@pytest.mark.parametrize(
    "rule",
    [
        "Don't use mocks for the database.",
        "Let's not touch the public API.",
        "Team Blue owns the schema.",
        "Please keep Python 3.9 compatibility.",
        "Releases have to stay on the 2.x line.",
        "config.toml is off limits.",
    ],
)
def test_a_standing_sentence_is_a_rule(rule: str) -> None:
    (ask,) = facts(UserSaid(text="Build it."), AgentMessage(text="Done."), UserSaid(text=rule)).said
    assert ask.constraints == (rule,)


def test_pasted_text_is_not_the_user_speaking() -> None:
    log = "❯ make lint\n[lint] never use panic in library code\n[lint] ERROR must not import os\n--- FAIL: TestX (0.1s)"
    (ask,) = facts(UserSaid(text="Build it."), AgentMessage(text="Done."), UserSaid(text=log)).said
    assert ask.constraints == ()
    assert "make lint" in ask.pasted


def test_a_rule_of_the_request_stands_where_the_request_had_to_be_cut() -> None:
    filler = "\n\n".join(f"Section {n} explains the format of column {n} at length. " * 8 for n in range(40))
    rule = "Never write to the table customers."
    request = f"Build the importer.\n\n{filler}\n\n{filler[:900]} {rule}"
    assert rule in compile_context(facts(UserSaid(text=request)), 800).text


def test_a_sentence_of_the_agent_that_the_user_repeats_is_a_quotation() -> None:
    proposal = "Keep the old parser as a fallback for a month."
    before: list[Said] = [UserSaid(text="Build it."), AgentMessage(text=f"Two things.\n\n- {proposal}")]
    marked = facts(*before, UserSaid(text=f"> {proposal}\n\nWhy?"))
    plain = facts(*before, UserSaid(text=f"{proposal} Why should we?"))
    assert [ask.constraints for ask in (*marked.said, *plain.said)] == [(), ()]


def test_a_report_that_the_user_passes_on_lays_down_only_what_it_plainly_demands() -> None:
    slow = "It is slow. " * 9
    findings = "\n".join(f"{n}. **Finding {n}** in `f{n}.go`: the loop should keep its order. {slow}" for n in range(9))
    demand = "Never merge this before finding 3 is fixed."
    report = f"Here is a review.\n\n## Findings\n\n{findings}\n\n{demand}\n\nCan you look?"
    (ask,) = facts(UserSaid(text="Build it."), AgentMessage(text="Done."), UserSaid(text=report)).said
    assert ask.constraints == (demand,)
