"""Any value of a frozen dataclass, with every field filled in."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    datetime: st.datetimes(datetime(2000, 1, 1), timezones=ZONES),
}


def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type, optional fields included."""
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, NewType):
        return any_of(hint.__supertype__)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.name: any_of(hints[field.name]) for field in fields(hint)})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    inner = get_args(hint)
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            return st.one_of(*map(any_of, inner))
        case origin if origin is Literal:
            return st.sampled_from(inner)
        case origin if origin is tuple:
            return st.lists(any_of(inner[0]), max_size=3).map(tuple)
        case origin if origin is Mapping:
            return st.dictionaries(any_of(inner[0]), any_of(inner[1]), max_size=3)
        case _:
            raise AssertionError(f"no values are known of {hint}")
