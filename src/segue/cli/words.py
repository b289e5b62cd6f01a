"""Words that several commands need: the ways back with their prices, and failures with what can be done about them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from segue.cli.find import OVER
from segue.cli.output import moment, plain, reason, table

Fields = Mapping[str, Any]

WAYS = {
    "first": "its first conversation",
    "native": "the same conversation",
    "fork": "a copy of the original's conversation",
    "context": "a new conversation that begins with a compiled context",
    "history": "a new conversation that is told the history",
    "fresh": "a fresh conversation",
}
BOUNDS = ("tasks", "seconds", "tokens", "usd")
RESTING = frozenset({"pending", "paused", "review", "failed"})


def progress(view: Fields) -> str:
    if not view["tasks_total"]:
        return "no plan" if view["status"] in OVER else _without_tasks(view)
    return f"{view['tasks_done']} done, {view['tasks_total'] - view['tasks_done']} remaining"


def _without_tasks(view: Fields) -> str:
    return "a plan waits for your word" if view["proposed_plan"] else "no plan yet"


def asked(view: Fields) -> list[str]:
    """What somebody has to say before the work goes on, and how it is said."""
    if not view["asks"]:
        return []
    slug = view["slug"]
    asks = f"? {plain(view['asks'], 400)}"
    if view["status"] == "review":
        return [asks, *(f"  {each}" for each in _on_a_task(slug))]
    return [asks, f"  segue approve {slug}, or: segue reject {slug} 'WHAT IS WRONG'"]


def open_question(view: Fields) -> list[str]:
    """What the agent waits to be told, and how it is told."""
    if not view["question"]:
        return []
    slug = view["slug"]
    return [f"The agent asks: {plain(view['question']['title'])}", f"  segue approve {slug}, or: segue reject {slug}"]


def _on_a_task(slug: str) -> list[str]:
    return [
        f"segue approve {slug}: it is taken as done, and the work goes on",
        f"segue reject {slug} 'WHAT IS WRONG': it is given back, with your words",
        f"segue resume {slug}: it is tried again as it is",
    ]


def proposed(view: Fields) -> list[str]:
    """The plan that waits for a word; that of a workflow which is over waits for none."""
    if view["status"] in OVER:
        return []
    return tasks(view["proposed_plan"], [task["id"] for task in view["tasks"] if task["status"] == "completed"])


def tasks(plan: Sequence[Fields], done: Collection[str] = ()) -> list[str]:
    """A plan as people read it, with what is done already."""
    ticked = [f"{'✓ ' if task['id'] in done else ''}{plain(task['title'])}{_after(task)}" for task in plan]
    return [f"{position}. {task}" for position, task in enumerate(ticked, 1)]


def _after(task: Fields) -> str:
    return f" (after {', '.join(map(plain, task['depends_on']))})" if task["depends_on"] else ""


def limits(said: Fields) -> str:
    """What a workflow may use, as far as anything is said of it."""
    return ", ".join(f"{name} {_bound(said[name])}" for name in BOUNDS if said.get(name) is not None)


def _bound(number: float) -> str:
    """0 is no limit, and the largest that there may be has thirteen digits."""
    return f"{number:,.15g}" if number else "none"


def way(name: str) -> str:
    return WAYS.get(name, name)


def prices(found: Iterable[Fields], taken: str) -> list[str]:
    """A line for each way back: what it costs and how that is known, or why it is closed."""
    rows = [
        (f"{'→' if price['way'] == taken else ' '} {price['way']}", _cost(price), plain(price["note"]))
        for price in found
    ]
    return table(rows, right=(1,))


def _cost(price: Fields) -> str:
    if not price["possible"]:
        return "closed"
    return "unknown" if price["tokens"] is None else f"{price['tokens']:,} tokens"


def cost(account: Fields) -> str:
    """In dollars; more than that where a part of it is unknown."""
    if account["cost_usd"] is None:
        return "unknown"
    at_least = "" if account["complete"] else "at least "
    return f"{at_least}${account['cost_usd']:,.2f}"


def spent(account: Fields) -> str:
    """The cost and how it is known, in a word."""
    return f"{about(account['cost_source'] == 'estimated')}{cost(account)}"


def about(estimated: bool) -> str:
    return "about " if estimated else ""


def failure(view: Fields, slug: str) -> list[str]:
    """What ended the last run and what can be done about it; nothing where that is no matter any more."""
    found = view["failure"]
    if found is None:
        return []
    again = f" It is full again at {moment(found['reset_at'])}." if found["reset_at"] else ""
    remedies = ", ".join(remedy(each, slug, view["agent"]) for each in found["remedies"])
    lines = [f"{found['failure'].replace('_', ' ')}: {reason(found['meaning'])}{again}"]
    return [*lines, f"you can: {remedies}"] if remedies else lines


def remedy(command: str, slug: str, agent: str) -> str:
    """A command as it can be typed, with the name of what it is about."""
    return f"{command} {agent if command.startswith('segue agents') else slug}"


def attempt(retry: Fields) -> str:
    """Which one comes; what is planned anew is the first of its kind, and has no number."""
    return "a new beginning" if retry["of"] == 1 else f"attempt {retry['attempt']} of {retry['of']}"


def retry(view: Fields) -> list[str]:
    """What is tried again by itself, and when."""
    found = view["retry"]
    if found is None:
        return []
    slug, when = view["slug"], moment(found["at"])
    return [f"{attempt(found)} comes by itself at {when} (segue resume {slug}: now; segue pause {slug}: not at all)"]


def rest(view: Fields) -> list[str]:
    """Why a workflow is paused, and how it goes on where nothing else says so."""
    if view["status"] != "paused":
        return []
    why = [f"paused: {reason(view['reason'])}"] if view["reason"] else []
    return why if trouble(view) else [*why, f"go on with: segue resume {view['slug']}"]


def trouble(view: Fields) -> list[str]:
    """The failure of a workflow that rests because of it."""
    return [*failure(view, view["slug"]), *retry(view)] if view["status"] in RESTING else []
