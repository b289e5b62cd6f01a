"""Drivers are found by name, or by where they are."""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from segue.drivers import DRIVERS, EXTRAS, load
from segue.drivers.acp import AcpDriver
from segue.model import errors


class Hidden:
    """Finds nothing else, and says of some modules that they are not there."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def find_spec(self, name: str, *_: object) -> None:
        if name in self._modules:
            raise ModuleNotFoundError(name)


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    for module in modules:
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Hidden(*modules), *sys.meta_path])


@pytest.mark.parametrize("name", [*DRIVERS, "segue.drivers.acp:AcpDriver"])
def test_a_driver_is_found_by_its_name_and_by_its_place(name: str) -> None:
    assert isinstance(load(name), AcpDriver)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_driver_names_the_command_that_installs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, *EXTRAS[name])
    with pytest.raises(errors.AgentMissing) as raised:
        load(name)
    assert raised.value.message == f"The driver {name} is not installed; install it with: pip install 'segue[{name}]'"


@pytest.mark.parametrize(
    ("name", "module"), [(name, module) for name in EXTRAS for module in EXTRAS[name] if len(EXTRAS[name]) > 1]
)
def test_a_partial_driver_names_what_is_missing(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, module)
    with pytest.raises(errors.AgentMissing) as raised:
        load(name)
    assert raised.value.message == (
        f"The driver {name} is installed in part only, without {module}; install it with: pip install 'segue[{name}]'"
    )


@pytest.mark.parametrize("name", EXTRAS)
def test_each_package_of_an_extra_is_looked_for(name: str) -> None:
    promised = [each for each in requires("segue") or () if each.endswith(f"extra == '{name}'")]
    names = [word for each in promised for word in re.findall(r"[\w-]+", each.split("<")[0])]
    assert len(EXTRAS[name]) == len(names), f"{names} are promised, and {EXTRAS[name]} are looked for"


def test_a_look_for_what_is_installed_imports_none_of_it() -> None:
    look = (
        "import sys; from segue import drivers; before = set(sys.modules)\n"
        "assert [drivers.missing(name) for name in drivers.EXTRAS] == [[], [], []]\n"
        "print([name for name in set(sys.modules) - before if sys.modules[name].__spec__.origin])"
    )
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lines_driver:LinesDriver", "lines_driver cannot be imported: No module named 'lines_driver'"),
        ("wrong:Mine", r"wrong cannot be imported: invalid syntax \(wrong.py, line 1\)"),
        ("leaving:Mine", "leaving cannot be imported: SystemExit"),
        ("segue.drivers.acp:LinesDriver", "segue.drivers.acp has no 'LinesDriver'"),
    ],
)
def test_a_broken_driver_says_why(name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong.py").write_text("here is no Python\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(errors.BadSettings, match=f"^The driver {name} cannot be used: {reason}.$") as raised:
        load(name)
    assert "PYTHONPATH" in raised.value.hint


def test_a_name_that_no_driver_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(errors.BadSettings, match="No driver is called 'telepathy'") as raised:
        load("telepathy")
    assert "acp, amp, api" in raised.value.hint
