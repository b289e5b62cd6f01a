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
    """Return the counts of done and remaining tasks, or that there is no plan (yet)."""
    if not view["tasks_total"]:
        return "no plan" if view["status"] in OVER else _without_tasks(view)
    return f"{view['tasks_done']} done, {view['tasks_total'] - view['tasks_done']} remaining"


def _without_tasks(view: Fields) -> str:
    """Return the state of a workflow without tasks: a plan waits for approval, or there is none yet."""
    return "a plan waits for your word" if view["proposed_plan"] else "no plan yet"


def asked(view: Fields) -> list[str]:
    """Return the question that the workflow asks the user, and how to answer it; empty if there is none."""
    if not view["asks"]:
        return []
    slug = view["slug"]
    asks = f"? {plain(view['asks'], 400)}"
    if view["status"] == "review":
        return [asks, *(f"  {each}" for each in _on_a_task(slug))]
    return [asks, f"  segue approve {slug}, or: segue reject {slug} 'WHAT IS WRONG'"]


def open_question(view: Fields) -> list[str]:
    """Return the agent's open question, and how to answer it; empty if there is none."""
    if not view["question"]:
        return []
    slug = view["slug"]
    return [f"The agent asks: {plain(view['question']['title'])}", f"  segue approve {slug}, or: segue reject {slug}"]


def _on_a_task(slug: str) -> list[str]:
    """Return the three answers to a task that failed its tests or reviews."""
    return [
        f"segue approve {slug}: it is taken as done, and the work goes on",
        f"segue reject {slug} 'WHAT IS WRONG': it is given back, with your words",
        f"segue resume {slug}: it is tried again as it is",
    ]


def proposed(view: Fields) -> list[str]:
    """Return the tasks of the plan that waits for approval; empty if the workflow is over."""
    if view["status"] in OVER:
        return []
    return tasks(view["proposed_plan"], [task["id"] for task in view["tasks"] if task["status"] == "completed"])


def tasks(plan: Sequence[Fields], done: Collection[str] = ()) -> list[str]:
    """Return a plan as numbered lines, with a tick at each task in `done`."""
    ticked = [f"{'✓ ' if task['id'] in done else ''}{plain(task['title'])}{_after(task)}" for task in plan]
    return [f"{position}. {task}" for position, task in enumerate(ticked, 1)]


def _after(task: Fields) -> str:
    """Return the ids of the tasks that a task depends on in brackets, or an empty text."""
    return f" (after {', '.join(map(plain, task['depends_on']))})" if task["depends_on"] else ""


def limits(said: Fields) -> str:
    """Return the given limits of a workflow in one line; those that are None are left out."""
    return ", ".join(f"{name} {_bound(said[name])}" for name in BOUNDS if said.get(name) is not None)


def _bound(number: float) -> str:
    """Return a limit as text: 0 is `none`, and up to thirteen digits are kept."""
    return f"{number:,.15g}" if number else "none"


def way(name: str) -> str:
    """Return the description of a way back, or its name if it has none."""
    return WAYS.get(name, name)


def prices(found: Iterable[Fields], taken: str) -> list[str]:
    """Return a line for each way back, with its cost or why it is closed; an arrow marks the one taken."""
    rows = [
        (f"{'→' if price['way'] == taken else ' '} {price['way']}", _cost(price), plain(price["note"]))
        for price in found
    ]
    return table(rows, right=(1,))


def _cost(price: Fields) -> str:
    """Return the tokens of a way: `closed` if impossible, `unknown` if never counted."""
    if not price["possible"]:
        return "closed"
    return "unknown" if price["tokens"] is None else f"{price['tokens']:,} tokens"


def cost(account: Fields) -> str:
    """Return the cost in dollars, `at least` where a part is unknown; `unknown` if nothing is known."""
    if account["cost_usd"] is None:
        return "unknown"
    at_least = "" if account["complete"] else "at least "
    return f"{at_least}${account['cost_usd']:,.2f}"


def spent(account: Fields) -> str:
    """Return the cost, with `about` if it is estimated."""
    return f"{about(account['cost_source'] == 'estimated')}{cost(account)}"


def about(estimated: bool) -> str:
    """Return `about ` for an estimated figure, else an empty text."""
    return "about " if estimated else ""


def failure(view: Fields, slug: str) -> list[str]:
    """Return the failure of the last run and its remedies as lines; empty if there is none."""
    found = view["failure"]
    if found is None:
        return []
    again = f" It is full again at {moment(found['reset_at'])}." if found["reset_at"] else ""
    remedies = ", ".join(remedy(each, slug, view["agent"]) for each in found["remedies"])
    lines = [f"{found['failure'].replace('_', ' ')}: {reason(found['meaning'])}{again}"]
    return [*lines, f"you can: {remedies}"] if remedies else lines


def remedy(command: str, slug: str, agent: str) -> str:
    """Return a remedy as a command to type, with the agent's or the workflow's name."""
    return f"{command} {agent if command.startswith('segue agents') else slug}"


def attempt(retry: Fields) -> str:
    """Return the number of the coming attempt; a retry that is the only one of its kind is `a new beginning`."""
    return "a new beginning" if retry["of"] == 1 else f"attempt {retry['attempt']} of {retry['of']}"


def retry(view: Fields) -> list[str]:
    """Return when the next attempt comes by itself, and how to change that; empty if no retry is scheduled."""
    found = view["retry"]
    if found is None:
        return []
    slug, when = view["slug"], moment(found["at"])
    return [f"{attempt(found)} comes by itself at {when} (segue resume {slug}: now; segue pause {slug}: not at all)"]


def rest(view: Fields) -> list[str]:
    """Return why a workflow is paused, and how to go on if no failure says so; empty if it is not paused."""
    if view["status"] != "paused":
        return []
    why = [f"paused: {reason(view['reason'])}"] if view["reason"] else []
    return why if trouble(view) else [*why, f"go on with: segue resume {view['slug']}"]


def trouble(view: Fields) -> list[str]:
    """Return the failure and retry of a workflow that rests because of it; empty for other statuses."""
    return [*failure(view, view["slug"]), *retry(view)] if view["status"] in RESTING else []
