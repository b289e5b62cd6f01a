"""Plans as people write and read them: YAML, or a Markdown checklist."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import yaml

from segue.model.errors import BadPlan
from segue.model.ids import TaskId, slugify
from segue.model.plan import Issue, Plan, Task, TaskStatus
from segue.model.requests import PlanText

_YAML_HINT = "A plan is a list of tasks: `- {id: parser, title: Write the parser, depends_on: [lexer]}`."
_NO_WORDS = (list, dict, set, tuple, bytes)
"""Types that YAML may make of a value other than text; written out, a value that refers to itself has no end."""
_CHECKBOX = re.compile(r"^\s*[-*+] \[(?P<tick>[ xX])\] +(?P<title>\S.*?)\s*$")
_AFTER = re.compile(r"\s*\((?:after|depends on):? +(?P<names>[^()]+)\)$", re.IGNORECASE)
_NAMED = re.compile(r"^(?P<id>[A-Za-z0-9][A-Za-z0-9_.-]*): +(?P<title>\S.*)$")


def read_plan(issue: Issue, text: PlanText | None) -> Plan:
    """Parse the user's plan; without one, return the issue as one task. Raise BadPlan if it cannot be read."""
    if text is None:
        return Plan(tasks=(Task(id=TaskId("issue"), title=issue.title, description=issue.description),))
    return _READERS[text.format](text.text)


def write_plan(tasks: Sequence[Task]) -> str:
    """Write a plan as YAML that `read_plan` reads, without empty fields."""
    return yaml.safe_dump({"tasks": [_table(task) for task in tasks]}, sort_keys=False, allow_unicode=True, width=100)


def to_do(tasks: Sequence[Task], statuses: Mapping[TaskId, TaskStatus]) -> tuple[Task, ...]:
    """Return the tasks that are not completed."""
    return tuple(task for task in tasks if statuses.get(task.id) is not TaskStatus.COMPLETED)


def counted(tasks: Sequence[Task], statuses: Mapping[TaskId, TaskStatus]) -> str:
    """Describe the number of tasks that are not completed, as in "2 new tasks"; they are "new" if others are
    completed."""
    new = to_do(tasks, statuses)
    kind = "task" if len(new) == len(tasks) else "new task"
    return f"{len(new)} {kind}{'' if len(new) == 1 else 's'}"


def _table(task: Task) -> dict[str, Any]:
    """Convert a task to a table for YAML, without empty fields."""
    words: dict[str, Any] = {
        "id": str(task.id),
        "title": task.title,
        "description": task.description,
        "depends_on": [str(need) for need in task.depends_on],
        "expected_failures": list(task.expected_failures),
    }
    return {key: value for key, value in words.items() if value}


def _read_yaml(text: str) -> Plan:
    """Parse a plan as a YAML list, or a table with the list `tasks`; raise BadPlan otherwise."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadPlan(f"The plan is not YAML: {' '.join(str(error).split())}", hint=_YAML_HINT) from error
    except RecursionError as error:
        raise BadPlan("The plan is nested too deeply.", hint=_YAML_HINT) from error
    if isinstance(document, dict):
        document = cast(dict[str, Any], document).get("tasks")
    if not isinstance(document, list):
        raise BadPlan("The plan has no list of tasks.", hint=_YAML_HINT)
    entries = cast(list[Any], document)
    return Plan(tasks=tuple(_task(entry, position) for position, entry in enumerate(entries, 1)))


def _task(entry: object, position: int) -> Task:
    """Convert an entry, a title or a table, to a task; raise BadPlan with its position if it is wrong."""
    if isinstance(entry, str):
        _refuse_untitled(entry, position)
        return Task(id=TaskId(slugify(entry)), title=entry)
    if not isinstance(entry, dict):
        raise BadPlan(f"Task {position} of the plan is neither a text nor a table.", hint=_YAML_HINT)
    table = cast(dict[str, Any], entry)
    if unknown := set(table) - {"id", "title", "description", "depends_on", "expected_failures"}:
        raise BadPlan(f"Task {position} of the plan has an unknown key: {min(map(str, unknown))}.", hint=_YAML_HINT)
    title = (_word(table, "title", position) or _word(table, "id", position)).strip()
    _refuse_untitled(title, position)
    return Task(
        id=TaskId(_word(table, "id", position) or slugify(title)),
        title=title,
        description=_word(table, "description", position),
        depends_on=tuple(TaskId(need) for need in _names(table, "depends_on", position)),
        expected_failures=_names(table, "expected_failures", position),
    )


def _refuse_untitled(title: str, position: int) -> None:
    """Raise BadPlan if the title is blank."""
    if not title.strip():
        raise BadPlan(f"Task {position} of the plan has no title.", hint=_YAML_HINT)


def _word(table: dict[str, Any], key: str, position: int) -> str:
    """Return the field as text, empty if it is missing; raise BadPlan if it is no text."""
    given: Any = table.get(key)
    if isinstance(given, _NO_WORDS):
        raise BadPlan(f"Task {position} of the plan: {key} is no text.", hint=_YAML_HINT)
    return str(given or "")


def _names(table: dict[str, Any], key: str, position: int) -> tuple[str, ...]:
    """Return the field's names, given as one name or a list; empty if it is missing, BadPlan if it is neither."""
    given: Any = table.get(key) or []
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list) or any(isinstance(name, _NO_WORDS) for name in cast(list[Any], given)):
        raise BadPlan(f"Task {position} of the plan: {key} is no list of names.", hint=_YAML_HINT)
    return tuple(str(name) for name in cast(list[Any], given))


def _read_markdown(text: str) -> Plan:
    """Read one task for each open box; the lines below it are its description, and ticked boxes are done."""
    tasks: list[Task] = []
    ticked: set[TaskId] = set()
    lines: list[str] | None = None
    for line in text.splitlines():
        if match := _CHECKBOX.match(line):
            _describe(tasks, lines)
            task = _from_title(match["title"])
            _refuse_untitled(task.title, len(tasks) + 1)
            done = match["tick"] != " "
            ticked |= {task.id} if done else set()
            tasks += [] if done else [task]
            lines = None if done else []
        elif lines is not None and not line.startswith("#"):
            lines.append(line.strip())
    _describe(tasks, lines)
    if not tasks:
        raise BadPlan("The plan has no open task.", hint="Write one as `- [ ] Write the parser`.")
    return Plan(tasks=tuple(_without(task, ticked) for task in tasks))


def _from_title(title: str) -> Task:
    """Convert a checkbox's title to a task; it may begin with an id and end with the tasks it comes after."""
    needs: tuple[TaskId, ...] = ()
    if after := _AFTER.search(title):
        needs = tuple(TaskId(name.strip()) for name in after["names"].split(","))
        title = title[: after.start()]
    if named := _NAMED.match(title):
        return Task(id=TaskId(named["id"]), title=named["title"], depends_on=needs)
    return Task(id=TaskId(slugify(title)), title=title, depends_on=needs)


def _describe(tasks: list[Task], lines: list[str] | None) -> None:
    """Put the collected lines, if any, as description on the last task."""
    if lines and (description := "\n".join(lines).strip()):
        tasks[-1] = replace(tasks[-1], description=description)


def _without(task: Task, done: set[TaskId]) -> Task:
    """Return the task without dependencies on these done tasks."""
    return replace(task, depends_on=tuple(need for need in task.depends_on if need not in done))


_READERS: dict[str, Callable[[str], Plan]] = {"yaml": _read_yaml, "markdown": _read_markdown}
