import pytest

from segue.model.errors import BadPlan
from segue.model.ids import TaskId, slugify
from segue.model.plan import Issue, Plan, Task
from segue.model.requests import PlanText
from segue.orchestrator.runtime.plan_text import read_plan

ISSUE = Issue(title="Build a calculator", description="With tests.")


def plan(**needs: str) -> Plan:
    """A plan from `a="b c"`: a waits for b and c."""
    return Plan(
        tasks=tuple(
            Task(id=TaskId(name), title=name, depends_on=tuple(map(TaskId, waits.split())))
            for name, waits in needs.items()
        )
    )


def ids(plan: Plan) -> list[str]:
    return [task.id for task in plan.tasks]


def test_a_cycle_is_refused_with_its_name() -> None:
    with pytest.raises(BadPlan, match="a → b → c → a"):
        plan(a="b", b="c", c="a", d="")


def test_an_unknown_dependency_is_refused_with_its_name() -> None:
    with pytest.raises(BadPlan, match=r"'a' depends on 'nowhere'") as refused:
        plan(a="nowhere", b="")
    assert "a, b" in refused.value.hint


def test_a_task_that_waits_for_itself_is_a_cycle() -> None:
    with pytest.raises(BadPlan, match="a → a"):
        plan(a="a")


def test_two_tasks_of_one_name_are_refused() -> None:
    twin = Task(id=TaskId("a"), title="A")
    with pytest.raises(BadPlan, match="Two tasks"):
        Plan(tasks=(twin, twin))


def test_tasks_become_ready_in_dependency_order() -> None:
    tasks = plan(c="a b", a="", b="a")
    done: list[TaskId] = []
    while (ready := tasks.next_ready(done)) is not None:
        done.append(ready.id)
    assert done == ["a", "b", "c"]


def test_without_a_plan_the_issue_is_one_task() -> None:
    assert read_plan(ISSUE, None).tasks == (
        Task(id=TaskId("issue"), title="Build a calculator", description="With tests."),
    )


def test_yaml_takes_tables_and_plain_titles() -> None:
    text = """
    tasks:
      - {id: lexer, title: Write the lexer, description: Regular expressions.}
      - title: Write the parser
        depends_on: lexer
      - Document it
    """
    tasks = read_plan(ISSUE, PlanText(format="yaml", text=text)).tasks
    assert [(t.id, t.depends_on) for t in tasks] == [
        ("lexer", ()),
        ("write-the-parser", ("lexer",)),
        ("document-it", ()),
    ]
    assert tasks[0].description == "Regular expressions."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tasks: [", "not YAML"),
        ("tasks: 7", "no list of tasks"),
        ("hello", "no list of tasks"),
        ("- [1, 2]", "neither a text nor a table"),
        ("- {titel: typo}", "unknown key: titel"),
        ("- {description: x}", "no title"),
        ("- ''", "Task 1 of the plan has no title"),
        ("- Write it\n- '   '", "Task 2 of the plan has no title"),
        ("- {id: [a], title: x}", "id is no text"),
        ("- {id: a, title: {a: b}}", "title is no text"),
        ("- {title: x, description: [a]}", "description is no text"),
        ("- {title: x, depends_on: [[a]]}", "depends_on is no list of names"),
        pytest.param(f"tasks: {'[' * 5_000}", "nested too deeply", id="brackets"),
        pytest.param("- " * 3_000, "nested too deeply", id="dashes"),
        ("[]", "no tasks"),
    ],
)
def test_an_invalid_yaml_plan_is_refused_with_the_reason(text: str, sentence: str) -> None:
    with pytest.raises(BadPlan, match=sentence) as refused:
        read_plan(ISSUE, PlanText(format="yaml", text=text))
    assert refused.value.hint


def test_a_checkbox_without_a_title_is_no_task() -> None:
    with pytest.raises(BadPlan, match="Task 2 of the plan has no title"):
        read_plan(ISSUE, PlanText(format="markdown", text="- [ ] Write it\n- [ ] (after: write-it)"))


def test_a_checklist_is_a_plan_and_ticked_boxes_are_done() -> None:
    text = """# Plan
- [x] base: Lay the base
- [ ] lexer: Write the lexer (after: base)
  Regular expressions.

- [ ] Write the parser (depends on lexer)
## Notes
not part of a task
"""
    tasks = read_plan(ISSUE, PlanText(format="markdown", text=text)).tasks
    assert [(t.id, t.title, t.depends_on) for t in tasks] == [
        ("lexer", "Write the lexer", ()),
        ("write-the-parser", "Write the parser", ("lexer",)),
    ]
    assert tasks[0].description == "Regular expressions."


def test_a_checklist_without_an_open_box_is_refused() -> None:
    with pytest.raises(BadPlan, match="no open task"):
        read_plan(ISSUE, PlanText(format="markdown", text="- [x] done\nwords"))


@pytest.mark.parametrize(
    ("title", "slug"),
    [("Fix: the *parser*!", "fix-the-parser"), ("日本", "workflow"), ("a" * 80, "a" * 48), ("  -- ", "workflow")],
)
def test_slugs_are_kebab_case_and_never_empty(title: str, slug: str) -> None:
    assert slugify(title) == slug
