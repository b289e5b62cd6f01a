"""Options for the work and its limits."""

import re
from collections.abc import Callable
from math import isfinite, nan
from typing import Any, TypeVar

import click

from segue import client
from segue.cli import words
from segue.cli.output import Output
from segue.model.bounds import LONGEST, MOST

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class Duration(click.ParamType[float]):
    """A time such as 90s, 30m, 2h or 1h30m, in seconds; a plain 0 is none at all."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a time such as 1h30m; 0 means no limit, and anything else fails with a usage error."""
        if isinstance(value, float):
            return value
        if value == "0":
            return 0.0
        parts = _TIME.findall(str(value))
        if not parts or "".join(number + unit for number, unit in parts) != value:
            self.fail(f"{value!r} is no time; write it like 90s, 30m, 2h or 1h30m, and 0 for no limit.", param, ctx)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if seconds > LONGEST:
            self.fail(f"{value!r} is too long; {LONGEST / _UNITS['d']:.0f}d at most, and 0 for no limit.", param, ctx)
        return seconds


class Dollars(click.ParamType[float]):
    """An amount of money, which has an end."""

    name = "usd"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return an amount from 0 (no limit) to the largest allowed; anything else fails with a usage error."""
        try:
            amount = float(value)
        except ValueError:
            amount = nan
        if not (isfinite(amount) and amount >= 0):
            self.fail(f"{value!r} is no amount of dollars; write it like 5 or 0.50, and 0 for no limit.", param, ctx)
        if amount > MOST:
            self.fail(f"{value!r} is too much; {MOST} dollars at most, and 0 for no limit.", param, ctx)
        return amount


COUNT = click.IntRange(0, MOST)


def _with(command: F, *options: Callable[[F], F]) -> F:
    """Add options to a command, shown in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def limited(command: F) -> F:
    """Add the options that set limits; each pauses the workflow when it is reached, and 0 means no limit."""
    return _with(
        command,
        click.option("--pause-after", "tasks", type=COUNT, help="Pause after so many tasks."),
        click.option("--max-time", "seconds", type=Duration(), help="Pause after so long: 90s, 30m, 2h."),
        click.option("--max-tokens", "tokens", type=COUNT, help="Pause when so many tokens are used."),
        click.option("--max-cost", "usd", type=Dollars(), help="Pause when it has cost so many dollars."),
    )


def quota(command: F) -> F:
    """Add the option to wait for a used-up quota."""
    return _with(
        command,
        click.option(
            "--wait-for-quota/--no-wait-for-quota",
            default=None,
            help="Go on by itself, or not, when a used-up quota is full again.",
        ),
    )


def working(command: F) -> F:
    """Add the options for finishing a task; the settings are the defaults."""
    return _with(
        command,
        click.option("--test", "test_command", metavar="COMMAND", help="Test the work with it after each task."),
        click.option("--no-test", is_flag=True, help="Do not test the work."),
        click.option("--commit", type=click.Choice(["none", "task"]), help="When Segue commits the work."),
        click.option("--review", metavar="AGENT|same|off", help="The agent that reviews each task."),
        click.option("--review-personas", metavar="A,B", help="Roles of the reviewer: one review for each."),
        click.option("--no-review", is_flag=True, help="Do not review the work."),
        click.option("--review-passes", type=click.IntRange(1, MOST), help="Reviews of a task before you are asked."),
        click.option(
            "--fixer", metavar="AGENT|same|off", help="The agent that is asked for advice when a step keeps failing."
        ),
        quota,
    )


_QUOTA = {True: "a used-up quota is waited for", False: "a used-up quota is not waited for"}
_OFF = {"no_test": ("test_command", "--test", ""), "no_review": ("review", "--review", "off")}
"""Setting that each of them changes, the option that contradicts it, and the value."""
_SETTINGS = {"tasks": "pause_after", "seconds": "max_time", "tokens": "max_tokens", "usd": "max_cost"}


def work_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the given options for the work by the names of the settings; contradictory ones raise UsageError."""
    said = {_SETTINGS.get(name, name): value for name, value in options.items() if value is not None}
    if "review_personas" in said:
        said["review_personas"] = _personas(said["review_personas"])
    for name in ("review", "fixer"):
        if not said.get(name, name).strip():
            raise click.UsageError(f"--{name} must name an agent, or say same or off.")
    for off, (setting, option, value) in _OFF.items():
        if not said.pop(off):
            continue
        if setting in said:
            raise click.UsageError(f"{option} and --{off.replace('_', '-')} exclude each other.")
        said[setting] = value
    return said


def _personas(given: str) -> list[str]:
    """Split a list of personas at its commas; an empty one raises UsageError."""
    personas = [each.strip() for each in given.split(",")]
    if not all(personas):
        raise click.UsageError(f"--review-personas must name at least one, and each between commas, not {given!r}.")
    return personas


def given(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the limits and the quota option from a command's options, and return those that were given."""
    found = {name: options.pop(name) for name in (*_SETTINGS, "wait_for_quota")}
    return {name: value for name, value in found.items() if value is not None}


def change(view: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    """Change a workflow's limits on the server, and return the workflow."""
    return client.call("POST", f"/api/workflows/{view['id']}/limits", limits)


def tell_changed(before: dict[str, Any], after: dict[str, Any], limits: dict[str, Any], out: Output) -> None:
    """Print the changed limits of a workflow that is at work, and what they mean for a requested pause."""
    said = [words.limits(limits), _QUOTA[limits["wait_for_quota"]] if "wait_for_quota" in limits else ""]
    out.say(f"✓ {after['slug']} goes on with other limits: {'; '.join(part for part in said if part)}")
    if after["pause_requested"]:
        out.say("  A pause was asked for, and comes all the same.")
    elif before["pause_requested"]:
        out.say("  The pause that was asked for is withdrawn.")
    out.result(after)
