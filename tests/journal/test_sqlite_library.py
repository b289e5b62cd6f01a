import sys
from types import SimpleNamespace

import pytest

from segue.model.errors import UnsupportedPlatform
from segue.store.library import can_search, choose_sqlite


def test_the_chosen_library_can_search() -> None:
    assert can_search(choose_sqlite())


@pytest.mark.parametrize(("version", "problem"), [((3, 50, 0), "has no full-text search"), ((3, 40, 0), "is too old")])
def test_a_library_that_cannot_be_used_is_named_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], problem: str
) -> None:
    def connect(_name: str) -> SimpleNamespace:
        nothing = SimpleNamespace(fetchone=lambda: None)
        return SimpleNamespace(execute=lambda _query: nothing, close=lambda: None)

    poor = SimpleNamespace(sqlite_version_info=version, sqlite_version=".".join(map(str, version)), connect=connect)
    monkeypatch.setitem(sys.modules, "sqlite3", poor)
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", poor)
    with pytest.raises(UnsupportedPlatform, match=problem) as refused:
        choose_sqlite()
    assert "SEGUE_DATABASE_URL" in refused.value.hint
