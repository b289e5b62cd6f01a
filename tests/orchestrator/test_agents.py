"""The agents there are, and those whose driver is not installed."""

import pytest

from segue import drivers
from segue.model.agents import AgentConfiguration, Choices, Container, Limits, Review
from segue.model.errors import BadSettings, UnknownAgent
from segue.model.views import AgentCheck, AgentView
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio


async def listed_and_checked(theatre: Theatre, agent: AgentConfiguration) -> tuple[AgentView, AgentCheck]:
    theatre.agents[agent.name] = agent
    async with theatre.open() as play:
        [listed] = [each for each in await play.orchestrator.agents(play.environment) if each.name == agent.name]
        return listed, await play.orchestrator.check_agent(agent.name, play.environment)


async def test_a_missing_driver_names_what_installs_it(theatre: Theatre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers.EXTRAS, "api", ("a_library_that_is_not_there",))
    agent = AgentConfiguration(name="api", command=("sh",), driver="api", install="pip install 'segue[api]'")
    listed, check = await listed_and_checked(theatre, agent)
    assert listed.program is None
    assert (check.ok, check.problem) == (
        False,
        "The driver api is not installed; install it with: pip install 'segue[api]'",
    )


async def test_an_agent_whose_driver_cannot_be_imported_is_refused_before_anything_is_begun(theatre: Theatre) -> None:
    theatre.agents["mine"] = AgentConfiguration(name="mine", command=("sh",), driver="lines_driver:LinesDriver")
    refused = "The driver lines_driver:LinesDriver cannot be used: lines_driver cannot be imported"
    async with theatre.open() as play:
        with pytest.raises(BadSettings, match=f"^{refused}"):
            await play.begin("turns: []", agent="mine")
        assert await play.orchestrator.workflows(None, []) == []
        (listed,) = [each for each in await play.orchestrator.agents(play.environment) if each.name == "mine"]
        assert listed.program is None and listed.problem.startswith(refused)
        check = await play.orchestrator.check_agent("mine", play.environment)
        assert not check.ok and check.problem.startswith(refused) and "PYTHONPATH" in check.hint


async def test_an_agent_that_nobody_knows_may_stand_in_settings_that_the_server_has_not_read(theatre: Theatre) -> None:
    async with theatre.open() as play:
        with pytest.raises(UnknownAgent) as raised:
            await play.orchestrator.check_agent("mine", play.environment)
    assert "rehearsal" in raised.value.hint and "`segue down` first" in raised.value.hint


async def test_a_program_that_an_agents_command_needs_must_be_there_too(theatre: Theatre) -> None:
    agent = AgentConfiguration(name="amp", command=("sh",), needs="no-such-amp", install="npm install -g amp")
    listed, check = await listed_and_checked(theatre, agent)
    assert listed.program is None
    assert (check.problem, check.hint) == (
        "The program no-such-amp was not found.",
        "Install it: npm install -g amp",
    )


class HostDriver(drivers.Driver):
    """One of a user's own, which starts its agents where it stands."""


class BareDriver:
    """One that does not even inherit from ours."""


BOXED = Container(image="mine:1")


@pytest.mark.parametrize("driver", ["HostDriver", "BareDriver"])
async def test_an_agent_with_a_container_in_its_settings_is_not_started_outside(theatre: Theatre, driver: str) -> None:
    path = f"{__name__}:{driver}"
    theatre.agents["mine"] = AgentConfiguration(name="mine", command=("sh",), driver=path, container=BOXED)
    refused = f"The driver {path} starts its agents on this machine, and in no container."
    async with theatre.open() as play:
        with pytest.raises(BadSettings, match=f"^{refused}$"):
            await play.begin("turns: []", agent="mine")
        assert await play.orchestrator.workflows(None, []) == []
        theatre.choices = Choices(review=Review(agent="mine"))
        with pytest.raises(BadSettings, match=f"^{refused}$"):
            await play.begin("turns: []")
        check = await play.orchestrator.check_agent("mine", play.environment)
        assert (check.ok, check.problem) == (False, refused)


async def test_nor_when_it_takes_over_from_another(theatre: Theatre) -> None:
    path = f"{__name__}:HostDriver"
    theatre.agents["mine"] = AgentConfiguration(name="mine", command=("sh",), driver=path, container=BOXED)
    theatre.choices = Choices(limits=Limits(tasks=1))
    async with theatre.open() as play:
        await play.begin("turns: [{match: '', do: [{say: Done.}]}]")
        await play.until("build-it", "paused")
        with pytest.raises(BadSettings, match="in no container"):
            await play.resume("build-it", agent="mine")


def test_segues_own_drivers_take_containers() -> None:
    for name in drivers.DRIVERS:
        drivers.require_containers(name)
