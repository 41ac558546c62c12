"""Checkpoints or records that are lost or damaged: nothing runs, people are told, and the operator knows what to do.

Rule 1: what was accepted takes effect or its author is told. Rule 10: an error reaches people in one sentence.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app import ConfigurationError
from tests.support.planted import COLD
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import visiting

RECORDS, CHECKPOINTS = "countersign.db", "countersign.checkpoints.db"


def files(home: ProductFolder, name: str) -> list[Path]:
    return sorted((home.folder / "data").glob(f"{name}*"))


async def test_an_approval_whose_conversation_is_lost_is_void_and_its_requester_told(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp; make what=chair")
        first, second = await thread.waiting(2)
        thread_id = thread.thread_id
    for file in files(workshop_home, CHECKPOINTS):
        file.unlink()
    with capture_logs() as logs:
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
            await thread.approve(first["id"])
            await thread.notice("what i knew of this conversation is lost", "nothing was run", "reference")
            await thread.card(first["id"], "void", result="lost, so this cannot run any more")
            await thread.card(second["id"], "void")
            await thread.send("use make what=table")
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
            await thread.says("made table")
    assert shop.done == ["make table 1"]
    assert [entry["log_level"] for entry in logs if entry["event"] == "thread_state_lost"] == ["error"]


async def test_a_message_in_a_thread_that_is_lost_begins_anew(workshop_home: ProductFolder, shop: Workshop) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=lamp")
        await thread.says("lamp looks fine")
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    for file in files(workshop_home, CHECKPOINTS):
        file.unlink()
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.send("use look what=chair")
        await thread.says("chair looks fine")
        await thread.card(card["id"], "void")
    assert shop.done == []


async def test_what_waits_is_asked_again_where_the_records_are_older_than_the_checkpoints(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 2: a turn does not begin over one that waits, although a restored copy of the records does not know."""
    older = workshop_home.folder / "older"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send("hello")
        await thread.says("You said: hello")
        thread_id = thread.thread_id
    shutil.copytree(workshop_home.folder / "data", older)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.send("use make what=lamp")
        await thread.waiting()
    for file in files(workshop_home, RECORDS):
        file.unlink()
    for file in older.glob(f"{RECORDS}*"):
        shutil.copy(file, workshop_home.folder / "data")
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.send("hello again")
        await thread.says("You said: hello again")
        (lamp,) = thread.approvals()
        assert lamp["status"] == "superseded"
    assert shop.done == []


@pytest.mark.parametrize("name", [RECORDS, CHECKPOINTS])
async def test_a_damaged_file_stops_the_start_with_what_to_do(home: ProductFolder, name: str) -> None:
    data = home.folder / "data"
    data.mkdir(exist_ok=True)
    (data / name).write_bytes(b"this was a database " * 1_000)
    with pytest.raises(ConfigurationError, match=f"{name} is damaged .*Restore it from a backup, or move it away"):
        async with product_here(home):
            pass
    (data / name).rename(data / "kept-aside")
    async with product_here(home):
        pass


@pytest.mark.parametrize("linked", ["", "data", f"data/{RECORDS}"])
async def test_a_second_process_does_not_start_on_the_same_records(home: ProductFolder, linked: str) -> None:
    """Rule 2: one process at a time takes what waits there. `linked`: what of the second one leads to the first's."""
    home.tool_servers({})
    second = ProductFolder(home.folder / "second" if linked else home.folder, dict(home.variables))
    async with product_here(home):
        if linked:
            (second.folder / linked).parent.mkdir(parents=True)
            (second.folder / linked).symlink_to(home.folder / linked)
        with pytest.raises(ConfigurationError, match="Another Countersign works with"):
            async with product_here(second):
                pass
