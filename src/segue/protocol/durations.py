"""Durations as text."""

from datetime import timedelta


def duration(time: timedelta) -> str:
    """Format a duration as `1 h 05 min`, `3 min` or `40 s`; smaller units are left out."""
    seconds = int(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"
