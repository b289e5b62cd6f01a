"""How much a workflow may use before it pauses, as it is given at the command line."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


class Duration(click.ParamType[float]):
    """A time such as 90s, 30m, 2h or 1h30m, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        parts = _TIME.findall(str(value))
        if not parts or "".join(number + unit for number, unit in parts) != value:
            self.fail(f"{value!r} is no time; write it like 90s, 30m, 2h or 1h30m.", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in parts)


def limited(command: F) -> F:
    """The options that set limits; each pauses the workflow when it is reached, and 0 is none."""
    options = (
        click.option("--pause-after", "tasks", type=click.IntRange(min=0), help="Pause after so many tasks."),
        click.option("--max-time", "seconds", type=Duration(), help="Pause after so long: 90s, 30m, 2h."),
        click.option("--max-tokens", "tokens", type=click.IntRange(min=0), help="Pause when so many tokens are used."),
        click.option("--max-cost", "usd", type=click.FloatRange(min=0), help="Pause when it has cost so many dollars."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def given(options: dict[str, Any]) -> dict[str, float]:
    """Those of a command's options that are limits and were given; they are taken out."""
    found = {name: options.pop(name) for name in ("tasks", "seconds", "tokens", "usd")}
    return {name: value for name, value in found.items() if value is not None}
