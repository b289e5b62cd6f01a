"""The arithmetic: medians, percentiles, straight lines."""

from collections.abc import Sequence
from math import ceil
from statistics import linear_regression, median


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def slope(values: Sequence[float]) -> float:
    """Return the slope of the line of least squares through the values."""
    return linear_regression(range(len(values)), values).slope


def growth(values: Sequence[float]) -> dict[str, float]:
    """Return the slopes of both halves of the values, and their ratio, which is 1 for a straight line."""
    middle = len(values) // 2
    first, second = slope(values[:middle]), slope(values[middle:])
    return {"first_half": first, "second_half": second, "ratio": second / first}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return minimum, median and count of durations, in milliseconds."""
    return {"min_ms": min(seconds) * 1e3, "median_ms": median(seconds) * 1e3, "count": len(seconds)}
