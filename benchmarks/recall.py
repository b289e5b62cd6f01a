"""How well past work is found again: by the scorer of the data folder, and how long a search takes anywhere."""

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import data, sample_sessions
from benchmarks.figures import spread

ROOT = Path(__file__).parent.parent
PLUGIN = "benchmarks.recall_plugin:build"
TURNS, SEARCHES, BEST = 5_000, 200, 10
KINDS = ("user", "todo", "commit", "symbol")

_LOCOMO = re.compile(r"^LoCoMo recall @5 @10 @25 @50: (\S+) (\S+) (\S+) (\S+) \| p50 (\S+) ms", re.MULTILINE)
_CODE = re.compile(r"^code, (\w+): hit @1 @10: (\S+) (\S+) \(n=(\d+)\)", re.MULTILINE)
_CODE_TIME = re.compile(r"^code p50 (\S+) ms", re.MULTILINE)

Search = Callable[[str, int], Sequence[int]]


async def measure(directory: Path, turns: int = TURNS, searches: int = SEARCHES) -> dict[str, Any]:
    return {"synthetic": made_up(turns, searches), "recorded": data.or_why_not(recorded)}


def made_up(turns: int, searches: int) -> dict[str, Any]:
    """Time searches over generated turns."""
    module, _, name = PLUGIN.partition(":")
    build: Callable[[list[str]], Search] = getattr(import_module(module), name)
    search = build(sample_sessions.turns(turns))
    return {"turns": turns} | spread([_seconds(search, question) for question in sample_sessions.questions(searches)])


def _seconds(search: Search, question: str) -> float:
    start = perf_counter()
    search(question, BEST)
    return perf_counter() - start


def recorded() -> dict[str, Any]:
    """Run the scorer with Segue's search and with its own baseline."""
    scorer = data.folder("recall.py", "recall-code.json.xz", "locomo") / "recall.py"
    ours = data.printed_by([sys.executable, scorer, "--plugin", PLUGIN], ROOT)
    baseline = data.printed_by([sys.executable, scorer], ROOT)
    return {"ours": read_scores(ours), "baseline": read_scores(baseline)}


def read_scores(printed: str) -> dict[str, Any]:
    """Parse the output of `recall.py`: a line for LoCoMo, one for each kind of query over code, and their time."""
    locomo, code, time = _LOCOMO.search(printed), _CODE.findall(printed), _CODE_TIME.search(printed)
    if locomo is None or time is None or {found[0] for found in code} != set(KINDS):
        raise ValueError(f"recall.py printed something else:\n{printed[:400]}")
    return {
        "locomo": {"at_10": float(locomo[2]), "p50_ms": float(locomo[5])},
        "code": {kind: {"at_1": float(one), "at_10": float(ten), "count": int(n)} for kind, one, ten, n in code},
        "code_p50_ms": float(time[1]),
    }
