"""Several ways of doing a thing, in turns and in short slices, so that all of them meet the same disk."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.disk import Mode, Slice, SliceWork, look
from benchmarks.figures import percentile

SECONDS = 0.15
"""How long one slice takes."""
ENOUGH = 12
"""Slices of each variant, in each of the disk's modes, after which nothing more is learnt."""

AT_LEAST = 3
"""Slices below which a mode counts as not seen: a single one may be a slip of the looks."""

Variant = Callable[[], Awaitable[SliceWork]]
Variants = Mapping[str, Variant]


async def interleave(directory: Path, variants: Variants, within: float) -> list[Slice]:
    """Round after round, until there is enough in both modes or the time is up."""
    slices: list[Slice] = []
    deadline = perf_counter() + within
    before = look(directory)
    while perf_counter() < deadline and not _enough(slices, variants):
        for name, work in variants.items():
            done = await work()
            after = look(directory)
            slices.append(Slice(variant=name, before=before, after=after, work=done))
            before = after
    return slices


def kept(slices: Iterable[Slice], variant: str, mode: Mode) -> list[SliceWork]:
    return [each.work for each in slices if each.variant == variant and each.mode is mode]


def _enough(slices: Sequence[Slice], variants: Variants) -> bool:
    return all(len(kept(slices, name, mode)) >= ENOUGH for name in variants for mode in Mode)


def coverage(slices: Sequence[Slice]) -> dict[str, int]:
    """Count the slices taken, and those dropped because the disk changed its mode."""
    return {"taken": len(slices), "dropped": sum(each.mode is None for each in slices)}


def rates(slices: Sequence[Slice], variant: str, raw: str = "") -> dict[str, Any]:
    """Return the events per second by mode, and their share of the raw block's rate."""
    return {mode.value: _rate(kept(slices, variant, mode), kept(slices, raw, mode)) for mode in Mode}


def _rate(works: Sequence[SliceWork], raw: Sequence[SliceWork]) -> dict[str, Any] | None:
    if len(works) < AT_LEAST:
        return None
    rate = median(work.rate for work in works)
    return {
        "per_second": rate,
        "group": sum(work.count for work in works) / sum(work.count / work.group for work in works),
        "of_raw": rate / median(work.rate for work in raw) if len(raw) >= AT_LEAST else None,
        "cpu_us": median(work.cpu / work.count for work in works) * 1e6,
        "slices": len(works),
    }


def latencies(slices: Sequence[Slice], variant: str, raw: str = "") -> dict[str, Any]:
    """Return the milliseconds for one event by mode, and their ratio to the raw block."""
    return {mode.value: _latency(kept(slices, variant, mode), kept(slices, raw, mode)) for mode in Mode}


def _latency(works: Sequence[SliceWork], raw: Sequence[SliceWork]) -> dict[str, Any] | None:
    if len(works) < AT_LEAST:
        return None
    own, other = _all(works), _all(raw) if len(raw) >= AT_LEAST else []
    p50, p99 = percentile(own, 0.50), percentile(own, 0.99)
    return {
        "p50_ms": p50 * 1e3,
        "p99_ms": p99 * 1e3,
        "p50_of_raw": p50 / percentile(other, 0.50) if other else None,
        "p99_of_raw": p99 / percentile(other, 0.99) if other else None,
        "events": len(own),
    }


def _all(works: Sequence[SliceWork]) -> list[float]:
    return [latency for work in works for latency in work.latencies]
