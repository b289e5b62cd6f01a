import sqlite3
from types import SimpleNamespace

import pytest

from segue.model.errors import UnsupportedPlatform
from segue.store.engines import refuse_unfit_sqlite


def test_the_standard_librarys_sqlite_is_accepted() -> None:
    refuse_unfit_sqlite(sqlite3)


@pytest.mark.parametrize(
    ("version", "searches", "problem"),
    [((3, 50, 0), False, "has no full-text search"), ((3, 33, 0), True, "is too old")],
)
def test_an_unusable_library_is_named_and_why(version: tuple[int, int, int], searches: bool, problem: str) -> None:
    def connect(_name: str) -> SimpleNamespace:
        found = SimpleNamespace(fetchone=lambda: (1,) if searches else None)
        return SimpleNamespace(execute=lambda _query: found, close=lambda: None)

    poor = SimpleNamespace(sqlite_version_info=version, sqlite_version=".".join(map(str, version)), connect=connect)
    with pytest.raises(UnsupportedPlatform, match=problem) as refused:
        refuse_unfit_sqlite(poor)
    assert "SEGUE_DATABASE_URL" in refused.value.hint
