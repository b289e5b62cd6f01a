import sys
from pathlib import Path

import pytest

from segue import paths
from segue.model.errors import BadSettings


def test_the_data_directory_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEGUE_HOME", "data")
    assert paths.home() == Path.cwd() / "data"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEGUE_HOME", "~/data")
    assert paths.home() == tmp_path / "data"


@pytest.mark.parametrize(
    ("platform", "data", "expected"),
    [
        ("linux", None, ".local/share/segue"),
        ("linux", "relative", ".local/share/segue"),
        ("linux", "/elsewhere", "/elsewhere/segue"),
        ("darwin", "/elsewhere", "Library/Application Support/segue"),
    ],
)
def test_else_it_is_the_platforms_place_for_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, data: str | None, expected: str
) -> None:
    monkeypatch.delenv("SEGUE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    if data is None:
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_DATA_HOME", data)
    assert paths.home() == tmp_path / expected


def test_the_database_is_a_file_there_or_what_the_user_says(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    assert paths.database_url() == f"sqlite:///{home}/segue.db"
    monkeypatch.setenv("SEGUE_DATABASE_URL", "postgresql://localhost/segue")
    assert paths.database_url() == "postgresql://localhost/segue"


def test_the_data_directory_is_made_private_also_if_it_was_not(home: Path) -> None:
    home.mkdir(mode=0o755)
    assert paths.ensure_home() == home
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_data_directory_that_cannot_be_is_refused_in_a_sentence(home: Path) -> None:
    home.write_text("a file")
    with pytest.raises(BadSettings, match="cannot be used") as refused:
        paths.ensure_home()
    assert "SEGUE_HOME" in refused.value.hint


def test_a_private_file_is_replaced_as_a_whole(home: Path) -> None:
    file = paths.ensure_home() / "server.json"
    paths.write_private(file, b"one")
    paths.write_private(file, b"two")
    assert file.read_bytes() == b"two"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(home.iterdir()) == [file]
