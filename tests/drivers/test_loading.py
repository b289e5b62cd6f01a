"""Drivers are found by name, or by where they are."""

import sys

import pytest

from segue.drivers import DRIVERS, EXTRAS, load
from segue.drivers.acp import AcpDriver
from segue.model import errors


@pytest.mark.parametrize("name", [*DRIVERS, "segue.drivers.acp:AcpDriver"])
def test_a_driver_is_found_by_its_name_and_by_its_place(name: str) -> None:
    assert isinstance(load(name), AcpDriver)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_driver_that_is_not_installed_names_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, EXTRAS[name], raising=False)
    with pytest.raises(errors.AgentMissing) as raised:
        load(name)
    assert raised.value.message == f"The driver {name} is not installed; install it with: pip install 'segue[{name}]'"


def test_a_name_that_no_driver_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(errors.BadSettings, match="No driver is called 'telepathy'") as raised:
        load("telepathy")
    assert "acp, amp, api" in raised.value.hint
