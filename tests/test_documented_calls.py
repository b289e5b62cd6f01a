"""What the pages tell programs to send is understood by a real server, and what is no number is not."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from segue import client, paths
from segue.model.errors import BadInput
from segue.testing.stage import Stage
from segue.testing.work import Work
from tests.equipment.fork_server import ForkServer

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md"]
PLAN = json.dumps({"tasks": [{"id": "a", "title": "Do A"}]})
SCRIPT = json.dumps({"turns": [{"match": "fenced JSON document", "do": [{"say": f"```json\n{PLAN}\n```"}]}]})


class Call(NamedTuple):
    page: str
    method: str
    path: str
    body: dict[str, Any]


def calls(page: Path) -> Iterator[Call]:
    """Each is a block of its own: the method and the path, and below it the body."""
    for method, path, body in re.findall(r"```http\n([A-Z]+) (\S+)\n(.*?)```", page.read_text(), re.DOTALL):
        yield Call(page.name, method, path, json.loads(body))


DOCUMENTED = [call for page in PAGES for call in calls(page)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    root, settings = tmp_path_factory.mktemp("documented"), 'agent = "rehearsal"\n'
    with ForkServer() as fork_server, Stage(root, settings=settings, start=fork_server.start) as stage:
        stage.up()
        yield stage
        stage.down()


@pytest.fixture
def work(stage: Stage) -> Work:
    return stage.work(SCRIPT)


def begun(stage: Stage, work: Work, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a new workflow, here and with the agent that plays here."""
    return {**body, "repository": str(stage.repository), "environment": work.environment}


@pytest.mark.parametrize("call", DOCUMENTED, ids=lambda call: f"{call.page}:{call.path}")
def test_what_a_page_sends_is_understood(stage: Stage, work: Work, call: Call) -> None:
    if call.path == "/api/workflows":
        view = client.call(call.method, call.path, begun(stage, work, call.body))
        assert view["title"] == call.body["issue"]["title"]
    else:
        work.begin("Build it", None)
        view = work.until_status("blocked")
        answer = client.call(call.method, call.path.replace("NAME", view.slug), call.body)
        assert answer
    client.call("POST", f"/api/workflows/{work.id or view['id']}/cancel", {})


def test_no_page_shows_a_body_that_nobody_sends_here() -> None:
    shown = [f"{page.name}: {line}" for page in PAGES for line in page.read_text().splitlines() if _is_body(line)]
    assert shown == []
    assert len(DOCUMENTED) >= 5


def _is_body(line: str) -> bool:
    """A document of JSON within a sentence."""
    return any(isinstance(_parsed(part), dict) for part in re.findall(r"`(\{\".*?\})`", line))


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


BAD = ["NaN", "Infinity", "-Infinity", "-1", "1e300", "1" + "0" * 400, "1" + "0" * 5000, '"many"', "[1]"]
CHOSEN = ["pause_after", "max_time", "max_tokens", "max_cost", "test_timeout", "review_passes"]


@pytest.mark.parametrize("number", BAD, ids=lambda text: text[:12])
def test_what_is_no_number_is_refused_by_its_name(stage: Stage, work: Work, number: str) -> None:
    name = client.call("POST", "/api/workflows", begun(stage, work, {"issue": {"title": "Bounds"}}))["slug"]
    client.call("POST", f"/api/workflows/{name}/cancel", {})
    before = len(client.call("GET", "/api/workflows")["workflows"])
    for chosen in CHOSEN:
        body = begun(stage, work, {"issue": {"title": "It"}, "choices": {"test_command": "true", "review": "same"}})
        body["choices"][chosen] = "HERE"
        _refused("/api/workflows", body, number)
    for limit in ("tasks", "seconds", "tokens", "usd"):
        _refused(f"/api/workflows/{name}/limits", {limit: "HERE"}, number)
    assert len(client.call("GET", "/api/workflows")["workflows"]) == before


@pytest.mark.parametrize("number", ["NaN", "inf", "-1", "1e300", "9" * 400, "many"])
@pytest.mark.parametrize("query", ["events?after=", "events?wait=", "events?limit=", "context?budget="])
def test_what_is_no_number_is_refused_in_a_query_too(stage: Stage, work: Work, query: str, number: str) -> None:
    work.begin("Build it", None)
    slug = work.until_status("blocked").slug
    path, _, name = query.partition("?")
    with pytest.raises(BadInput):
        client.call("GET", f"/api/workflows/{slug}/{path}", params={name.rstrip("="): number})
    client.call("POST", f"/api/workflows/{work.id}/cancel", {})


def _sent(path: str, body: str) -> tuple[int, Any]:
    """As it stands: the numbers are none that a program could write."""
    server, token = client.find(), paths.token_file().read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{server.address}{path}", body.encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def _refused(path: str, body: dict[str, Any], number: str) -> None:
    status, document = _sent(path, json.dumps(body).replace('"HERE"', number))
    assert status in (400, 422), (path, number, document)
    assert document["message"]
