"""Rule 7: the data folder, where the key and all that was said lie, is for its owner alone; so are exports."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.crypto import kept_key
from bot.data_folder import folder_lock, private_folder
from bot.records.locks import UNLOCKED
from bot.records.startup import open_records


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_whatever_is_made_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "data"
    with folder_lock(folder):
        kept_key(folder)
        async with open_records(folder / "countersign.db") as records:
            async with records.database.writing(UNLOCKED) as tx:
                tx.connection.exec_driver_sql("INSERT INTO people VALUES ('p', 'n', 'UTC', 'en', '', 1)")
            found = {path.name: mode(path) for path in folder.iterdir()}
    assert mode(folder) == 0o700
    assert {"lock", "encryption.key", "countersign.db", "countersign.db-wal", "countersign.checkpoints.db"} <= set(
        found
    )
    assert set(found.values()) == {0o600}


def test_what_others_could_read_before_is_taken_from_them_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    for name in ("countersign.db", "countersign.db-wal", "calendar.db", "encryption.key"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    with capture_logs() as logged:
        private_folder(folder)
    assert mode(folder) == 0o700
    assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert {line["was"] for line in logged} == {"755", "644"}
    with capture_logs() as logged:
        private_folder(folder)
    assert logged == []


def test_a_link_in_the_folder_leaves_what_it_leads_to_alone(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "data"
    folder.mkdir()
    elsewhere.touch()
    elsewhere.chmod(0o644)
    (folder / "link").symlink_to(elsewhere)
    private_folder(folder)
    assert mode(elsewhere) == 0o644


@pytest.mark.parametrize("kind", ["the current folder", "one above it", "a shared one"])
def test_a_folder_that_is_not_for_this_alone_keeps_its_mode_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = tmp_path / "project"
    (folder / "below").mkdir(parents=True)
    folder.chmod(0o1777 if kind == "a shared one" else 0o755)
    if kind != "a shared one":
        monkeypatch.chdir(folder if kind == "the current folder" else folder / "below")
    before = mode(folder)
    with capture_logs() as logged:
        private_folder(folder)
    assert mode(folder) == before
    assert [line["event"] for line in logged] == ["data_folder_not_private"]


async def test_the_records_are_private_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("countersign.db", "countersign.db-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    async with open_records(tmp_path / "countersign.db"):
        assert {mode(path) for path in tmp_path.glob("countersign*")} == {0o600}
