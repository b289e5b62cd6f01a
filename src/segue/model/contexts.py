"""A resume context as sections, for programs that read it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLine:
    """One line of a context, with the numbers of the lines or events that it comes from."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSection:
    """A part of a context under its title."""

    name: str
    title: str
    lines: tuple[ContextLine, ...]
    left_out: int = 0
    """Items that did not fit."""
    left_out_tokens: int = 0
