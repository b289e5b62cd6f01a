"""Check that no package's language gets worse than scripts/ratchet.toml allows; `--tighten` writes better figures.

Each figure of a package is a count that may fall and never rise:

- opening: docstrings that begin with What, Who, Whether, Where, Of, Those, Some
- speech: docstrings with a form of say, tell, hear, word
- person: docstrings with somebody, nobody, whoever
- not_imperative: docstrings of functions that do not begin with a verb of scripts/verbs.txt, in the imperative
- undocumented: public classes, and public functions over ten lines, without a docstring
"""

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from measure_house import OPENING, PERSON, ROOT, SPEECH, Module, is_rated, modules_in

TABLE = Path(__file__).with_suffix(".toml")
NAMES = ("opening", "speech", "person", "not_imperative", "undocumented")
HEAD = "# Highest counts allowed in each package; see ratchet.py. Written by: python scripts/ratchet.py --tighten\n"

Figures = dict[str, int]


def findings(module: Module) -> Iterator[tuple[str, int, str]]:
    """Yield the figure, the line and the text of each place that is counted."""
    for docstring in module.docstrings:
        line = getattr(docstring.owner, "lineno", 1)
        first = docstring.text.splitlines()[0]
        if OPENING.match(docstring.text):
            yield "opening", line, first
        if found := SPEECH.search(docstring.text):
            yield "speech", line, f"{found[0]!r} in: {first}"
        if found := PERSON.search(docstring.text):
            yield "person", line, f"{found[0]!r} in: {first}"
        if docstring.needs_verb and not docstring.is_imperative:
            yield "not_imperative", line, first
    for node in module.documentable:
        if ast.get_docstring(node) is None:
            yield "undocumented", node.lineno, node.name


def package_of(module: Module) -> str:
    return module.name.partition("/")[0].removesuffix(".py")


def measure(modules: list[Module]) -> dict[str, Figures]:
    packages: dict[str, Figures] = defaultdict(lambda: dict.fromkeys(NAMES, 0))
    for module in modules:
        figures = packages[package_of(module)]
        for name, _, _ in findings(module):
            figures[name] += 1
    return dict(sorted(packages.items()))


def faults(current: Mapping[str, Figures], allowed: Mapping[str, Figures]) -> Iterator[str]:
    """Name each figure that is worse than allowed; a new package is allowed nothing."""
    for package, figures in current.items():
        for name, count in figures.items():
            most = allowed.get(package, {}).get(name, 0)
            if count > most:
                yield f"{package}: {name} is {count}, allowed are {most}"


def tightened(current: Mapping[str, Figures], allowed: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return the better of the two figures for each package that exists."""
    return {
        package: {name: min(count, allowed.get(package, {}).get(name, 0)) for name, count in figures.items()}
        for package, figures in current.items()
    }


def as_toml(packages: Mapping[str, Figures]) -> str:
    tables = (
        "\n".join([f"[{package}]", *(f"{name} = {count}" for name, count in figures.items() if count)])
        for package, figures in packages.items()
        if any(figures.values())
    )
    return f"{HEAD}\n" + "\n\n".join(tables) + "\n"


def main() -> int:
    """Check the figures; return 1 if one is worse than allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tighten", action="store_true", help="write the figures that became better")
    parser.add_argument("--list", metavar="PREFIX", help="print the places counted in files that begin so: server/app")
    arguments = parser.parse_args()
    modules = [module for module in modules_in(ROOT / "src" / "segue") if is_rated(module.name)]
    if arguments.list is not None:
        for module in modules:
            if module.name.startswith(arguments.list):
                for name, line, text in findings(module):
                    print(f"src/segue/{module.name}:{line}: {name}: {text}")  # noqa: T201
        return 0
    current, allowed = measure(modules), tomllib.loads(TABLE.read_text())
    if arguments.tighten:
        TABLE.write_text(as_toml(tightened(current, allowed)))
    worse = list(faults(current, allowed))
    if worse:
        sys.stderr.write("\n".join([*worse, "Find the places with: python scripts/ratchet.py --list PACKAGE", ""]))
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
