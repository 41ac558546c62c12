"""The product with its records in PostgreSQL, and what it then needs to be told."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from structlog.testing import capture_logs

from app import ConfigurationError
from bot.records import postgresql
from bot.records.startup import NEWEST_REVISION
from tests.support.newer_schema import OF_THE_NEXT, made_as_before, upgraded_by_the_next
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting

pytestmark = pytest.mark.postgres


@pytest.fixture
def restarted(tmp_path: Path) -> ProductFolder:
    """What another replica has on disk."""
    folder = tmp_path / "restarted"
    folder.mkdir()
    return ProductFolder(folder)


@pytest.mark.parametrize("missing", ["ENCRYPTION_KEY", "PUBLIC_URL"])
async def test_what_several_processes_need_has_to_be_set(home: ProductFolder, missing: str) -> None:
    home.variables[missing] = ""
    with pytest.raises(ConfigurationError, match=f"{missing}: is not set"):
        async with product_here(home):
            pass


async def test_bundled_tool_servers_that_no_other_replica_sees_are_told_of_at_the_start(
    home: ProductFolder,
) -> None:
    with capture_logs() as logged:
        async with product_here(home):
            pass
    (line,) = [line for line in logged if line["event"] == "tool_servers_not_shared"]
    assert line["servers"] == ["calendar", "tasks"]
    assert line["log_level"] == "warning"
    assert "run them over HTTP" in line["note"]


async def test_bundled_tool_servers_over_http_are_shared(home: ProductFolder) -> None:
    home.tool_servers({"tasks": {"url": "http://127.0.0.1:9/mcp"}})
    with capture_logs() as logged:
        async with product_here(home):
            pass
    assert "tool_servers_not_shared" not in {line["event"] for line in logged}


async def test_a_rollout_whose_schema_has_more_is_noticed_neither_by_who_runs_nor_by_who_is_started_again(
    home: ProductFolder, restarted: ProductFolder
) -> None:
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("create a meeting called Standup tomorrow at 9am")
        (before,) = await thread.waiting()
        upgraded_by_the_next(home.database, works_from=NEWEST_REVISION)
        await thread.approve(before["id"])
        await thread.card(before["id"], "approved")
        restarted.variables["DATABASE_URL"] = home.database
        async with product_here(restarted) as other, visiting(other, "ana") as again, again.thread() as new:
            await new.send("create a meeting called Review tomorrow at 10am")
            (after,) = await new.waiting()
            await new.approve(after["id"])
            await new.card(after["id"], "approved")
    made_as_before(home.database)


async def test_a_replica_is_not_started_where_a_newer_version_has_taken_something_away(home: ProductFolder) -> None:
    upgraded_by_the_next(home.database, works_from=OF_THE_NEXT)
    try:
        with pytest.raises(ConfigurationError, match="made by a newer version of Countersign"):
            async with product_here(home):
                pass
    finally:
        made_as_before(home.database)


async def test_a_pooler_that_drops_the_limits_of_connections_is_told_of_at_the_start(
    home: ProductFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for = postgresql.connection_settings
    monkeypatch.setattr(postgresql, "connection_settings", lambda *settings: {**asked_for(*settings), "options": ""})
    with pytest.raises(ConfigurationError, match="a pooler drops the time limits of connections"):
        async with product_here(home):
            pass


async def test_a_start_while_the_tables_are_locked_ends_with_a_sentence(
    home: ProductFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `migrate copy` locks them until it has ended."""
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 0.1)
    with psycopg.connect(home.database) as copying:
        copying.execute("LOCK TABLE replicas IN EXCLUSIVE MODE")
        with pytest.raises(ConfigurationError, match=r"PostgreSQL cannot be used now\. Start again when"):
            async with product_here(home):
                pass
