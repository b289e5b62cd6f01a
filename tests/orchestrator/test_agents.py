"""The agents there are, and those whose driver is not installed."""

from dataclasses import replace

import pytest

from segue import drivers
from segue.model.agents import AgentConfiguration
from segue.orchestrator import agents
from tests.orchestrator.theatre import Theatre

pytestmark = pytest.mark.anyio


async def test_an_agent_whose_driver_is_not_installed_is_missing_and_says_what_installs_it(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(drivers.EXTRAS, "api", ("a_library_that_is_not_there",))
    async with theatre.open() as play:
        agent = AgentConfiguration(name="api", command=("sh",), driver="api", install="pip install 'segue[api]'")
        house = replace(play.house, agents={"api": agent})
        [listed] = agents.agents(house, play.environment)
        check = await agents.check(house, "api", play.environment)
    assert listed.program is None
    assert (check.ok, check.problem) == (
        False,
        "The driver api is not installed; install it with: pip install 'segue[api]'",
    )


async def test_a_program_that_an_agents_command_needs_must_be_there_too(theatre: Theatre) -> None:
    async with theatre.open() as play:
        agent = AgentConfiguration(name="amp", command=("sh",), needs="no-such-amp", install="npm install -g amp")
        house = replace(play.house, agents={"amp": agent})
        [listed] = agents.agents(house, play.environment)
        check = await agents.check(house, "amp", play.environment)
    assert listed.program is None
    assert (check.problem, check.hint) == (
        "The program no-such-amp was not found.",
        "Install it: npm install -g amp",
    )
