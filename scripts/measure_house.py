"""Print the figures of the code: its size, its language, its interfaces.

    python scripts/measure_house.py [CHECKOUT] [--walk] [--live] [--json]

CHECKOUT is any working tree of this project, this one by default. The figures are read from its source. `--walk` counts
the calls of a pause and a resume, `--live` measures the server, its start and its stop, and the default installation;
both use the virtual environment of the checkout.
"""

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import distributions
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep

HERE = Path(__file__).parent
ROOT = HERE.parent

COUNTED = ("src", "tests", "certify", "benchmarks")
"""Folders whose code lines are counted."""
LEFT_OUT = ("resume/", "snapshot/facts/", "cli/render.py", "cli/output.py", "cli/words.py")
"""Parts of src/segue that the language figures leave out, because they are still to be rewritten."""

OPENING = re.compile(
    r"(What|Whatever|Who|Whoever|Whom|Whose|Whether|Where|Wherever|Of|Those|Some|Somebody|Something)\b"
)
SPEECH = re.compile(
    r"\b(say|says|said|saying|tell|tells|told|telling|hear|hears|heard|hearing|word|words|worded|wording)\b", re.I
)
PERSON = re.compile(r"\b(somebody|nobody|whoever)\b", re.I)
VERBS = frozenset((HERE / "verbs.txt").read_text().split())
AFTER_A_NOUN = re.compile(r"(of|is|are|was|were|has|have|had|whose|which)\b")
"""Second word of a docstring whose first word is a noun, although a verb is spelled like it: "Order of …"."""
SMALL = 5
SHORT = 6
LONG = 10
TIMES = 5

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Docstring:
    """Docstring of a module, class or function, or of an attribute (a string in the line after an assignment)."""

    text: str
    owner: ast.AST

    @property
    def needs_verb(self) -> bool:
        """Docstrings of functions need a verb; a property is a value and begins with a noun."""
        return isinstance(self.owner, FUNCTIONS) and not any("property" in name for name in decorators(self.owner))

    @property
    def is_imperative(self) -> bool:
        first, _, rest = self.text.partition(" ")
        word = re.sub(r"\W+$", "", first).lower()
        is_verb = word in VERBS or word.removeprefix("re") in VERBS
        return is_verb and first[:1].isupper() and not AFTER_A_NOUN.match(rest.lstrip())


@dataclass(frozen=True)
class Module:
    """Source file of a checkout, parsed once."""

    name: str
    """Path below its root, with slashes."""
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> Sequence[Function]:
        return [node for node in self.nodes if isinstance(node, FUNCTIONS)]

    @cached_property
    def docstrings(self) -> Sequence[Docstring]:
        found: list[Docstring] = []
        for node in self.nodes:
            if not isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
                continue
            if text := ast.get_docstring(node):
                found.append(Docstring(text, node))
            for before, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(before, (ast.Assign, ast.AnnAssign)) and (text := literal(after)) is not None:
                    found.append(Docstring(text.strip(), before))
        return found

    @cached_property
    def documentable(self) -> Sequence[ast.ClassDef | Function]:
        """Public classes, and public functions and methods of more than ten lines; nested functions are not public."""
        return [
            node
            for holder in self.nodes
            if isinstance(holder, (ast.Module, ast.ClassDef))
            for node in holder.body
            if (isinstance(node, ast.ClassDef) or (isinstance(node, FUNCTIONS) and length(node) > LONG))
            and not node.name.startswith("_")
        ]

    @cached_property
    def imports(self) -> set[str]:
        """Full names of imported modules; `from a import b` gives a and a.b."""
        names: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return names

    @property
    def code_lines(self) -> int:
        """Lines that hold code: no blank lines, comments or docstrings."""
        lines: set[int] = set()
        skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in skipped and token.type != tokenize.ENDMARKER:
                lines |= set(range(token.start[0], token.end[0] + 1))
        for node in self.nodes:
            if literal(node) is not None:
                lines -= set(range(node.lineno, node.end_lineno + 1))
        text = self.source.splitlines()
        return sum(1 for line in lines if text[line - 1].strip())


def literal(node: ast.AST) -> str | None:
    """Return the text of a statement that is nothing but a string."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def length(function: Function) -> int:
    """Count the lines from `def` to the end, docstring included, decorators not."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def decorators(function: Function) -> list[str]:
    return [ast.unparse(decorator) for decorator in function.decorator_list]


def modules_in(folder: Path) -> list[Module]:
    return [Module(path.relative_to(folder).as_posix(), path.read_text()) for path in sorted(folder.rglob("*.py"))]


def is_rated(name: str) -> bool:
    """Choose the files of src/segue that the language figures count."""
    return not name.startswith(LEFT_OUT)


# ── figures of the source ───────────────────────────────────────────────────────────────────────────


def measure_source(checkout: Path) -> dict[str, object]:
    """Return all figures that need only the source."""
    segue = modules_in(checkout / "src" / "segue")
    tests = modules_in(checkout / "tests")
    rated = [module for module in segue if is_rated(module.name)]
    functions = [function for module in segue for function in module.functions]
    private = list(private_referred_to_once(segue))
    lambdas, queries = reads(segue)
    folders = Counter(str(Path(module.name).parent) for module in segue)
    return {
        "code lines: src + tests + certify + benchmarks": {
            folder: sum(module.code_lines for module in modules_in(checkout / folder)) for folder in COUNTED
        },
        "docstrings, all of src: opening, speech, person": " · ".join(language(segue)),
        "docstrings, rooms under the ratchet: opening, speech, person": " · ".join(language(rated)),
        "function docstrings that begin with an imperative verb": share(
            docstring.is_imperative for module in rated for docstring in module.docstrings if docstring.needs_verb
        ),
        "public classes and functions over ten lines with a docstring": share(
            ast.get_docstring(node) is not None for module in rated for node in module.documentable
        ),
        "reads that hand out a connection: lambdas": lambdas,
        "reads that hand out a connection: named functions": queries,
        "modules outside store and journal that import sqlalchemy": sum(
            any(name.partition(".")[0] == "sqlalchemy" for name in module.imports)
            for module in segue
            if not module.name.startswith(("store/", "journal/"))
        ),
        "modules in the largest folder": "{1} ({0})".format(*folders.most_common(1)[0]),
        "functions": len(functions),
        "functions of five lines or fewer": sum(length(function) <= SMALL for function in functions),
        "private functions with one reference": len(private),
        "private functions with one reference and at most six lines": sum(
            length(function) <= SHORT for function in private
        ),
        "test modules that import internals of the orchestrator": sum(imports_internals(module) for module in tests),
    }


def language(modules: Sequence[Module]) -> list[str]:
    texts = [docstring.text for module in modules for docstring in module.docstrings]
    return [
        share(found)
        for found in (
            [bool(OPENING.match(text)) for text in texts],
            [bool(SPEECH.search(text)) for text in texts],
            [bool(PERSON.search(text)) for text in texts],
        )
    ]


def share(found: Iterator[bool] | Sequence[bool]) -> str:
    values = list(found)
    return f"{100 * sum(values) / max(len(values), 1):.1f} % of {len(values)}"


def private_referred_to_once(modules: Sequence[Module]) -> Iterator[Function]:
    """Yield private functions whose name is used once in the whole tree; two functions of one name share their uses."""
    uses: Counter[str] = Counter()
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
            elif isinstance(node, ast.alias):
                uses[node.name] += 1
    for module in modules:
        for function in module.functions:
            name = function.name
            if name.startswith("_") and not name.startswith("__") and uses[name] == 1:
                yield function


def reads(modules: Sequence[Module]) -> tuple[int, int]:
    """Count calls of `….read(…)` on a journal: with a lambda that takes the connection, and with a named function."""
    lambdas = queries = 0
    for module in modules:
        for node in module.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "read"):
                continue
            first = node.args[0] if node.args else None
            lambdas += isinstance(first, ast.Lambda)
            of_journal = ast.unparse(node.func.value).rpartition(".")[2].lstrip("_") == "journal"
            queries += of_journal and isinstance(first, (ast.Name, ast.Attribute))
    return lambdas, queries


def imports_internals(module: Module) -> bool:
    """Find imports below segue.orchestrator, in tests and their support modules; the package's own names are public."""
    prefix = "segue.orchestrator."
    public = {f"{prefix}Orchestrator", f"{prefix}open_orchestrator"}
    return any(name.startswith(prefix) for name in module.imports - public)


# ── figures of what runs ────────────────────────────────────────────────────────────────────────────


def measure_walk(checkout: Path) -> dict[str, object]:
    """Run walk.py with the Python of the checkout."""
    command = [checkout / ".venv" / "bin" / "python", HERE / "walk.py"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


def measure_live(checkout: Path) -> dict[str, object]:
    """Start and stop a server several times; read its memory when it was left alone for a moment."""
    segue = checkout / ".venv" / "bin" / "segue"
    up: list[float] = []
    down: list[float] = []
    pss: list[float] = []
    for _ in range(TIMES):
        with TemporaryDirectory(prefix="segue-") as home:
            environment = {**os.environ, "SEGUE_HOME": home}
            up.append(timed([segue, "up"], environment))
            sleep(2)
            pss.append(pss_of(json.loads((Path(home) / "server.json").read_text())["pid"]))
            down.append(timed([segue, "down"], environment))
    packages, size = default_installation(checkout)
    return {
        "idle server, PSS": f"{min(pss):.0f} to {max(pss):.0f} MB",
        "segue up": f"median {median(up):.2f} s, min {min(up):.2f} s",
        "segue down": f"median {median(down):.2f} s, min {min(down):.2f} s",
        "default installation": f"{packages} packages, {size / 1e6:.0f} MB",
    }


def timed(command: Sequence[str | Path], environment: Mapping[str, str]) -> float:
    start = perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    return perf_counter() - start


def pss_of(process: int) -> float:
    """Return the megabytes of a process, shared pages counted in part."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1]) / 1024


def default_installation(checkout: Path) -> tuple[int, int]:
    """Count the packages of requirements/run.txt, and the bytes of their files and Segue's own, without byte code."""
    locked = set(re.findall(r"^([\w.-]+)==", (checkout / "requirements" / "run.txt").read_text(), re.MULTILINE))
    paths = [str(path) for path in (checkout / ".venv" / "lib").glob("python*/site-packages")]
    files = [
        Path(str(file.locate()))
        for distribution in distributions(path=paths)
        if re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower() in locked
        for file in distribution.files or ()
    ]
    files += (checkout / "src").rglob("*")
    return len(locked), sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


def main() -> int:
    """Print the figures of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--walk", action="store_true", help="count the calls of a pause and a resume")
    parser.add_argument("--live", action="store_true", help="measure the server and the installation")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    checkout = arguments.checkout.resolve()
    figures = measure_source(checkout)
    figures |= measure_walk(checkout) if arguments.walk else {}
    figures |= measure_live(checkout) if arguments.live else {}
    if arguments.json:
        print(json.dumps(figures, indent=1))  # noqa: T201
        return 0
    for name, figure in figures.items():
        if name.endswith("each round"):
            continue
        if isinstance(figure, dict):
            figure = f"{sum(figure.values()):,} ({', '.join(f'{key} {value:,}' for key, value in figure.items())})"
        print(f"{name:68} {figure}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
