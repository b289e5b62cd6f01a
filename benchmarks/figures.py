"""The arithmetic: medians, percentiles, straight lines."""

from collections.abc import Sequence
from math import ceil
from statistics import linear_regression, median


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def slope(values: Sequence[float]) -> float:
    """By how much the values rise from one to the next: the line of least squares through them."""
    return linear_regression(range(len(values)), values).slope


def growth(values: Sequence[float]) -> dict[str, float]:
    """How fast the values rise in their first half and in their second; the ratio of a straight line is 1."""
    middle = len(values) // 2
    first, second = slope(values[:middle]), slope(values[middle:])
    return {"first_half": first, "second_half": second, "ratio": second / first}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Durations as milliseconds: the best, the usual, and how many were taken."""
    return {"min_ms": min(seconds) * 1e3, "median_ms": median(seconds) * 1e3, "count": len(seconds)}
