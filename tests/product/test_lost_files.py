"""Checkpoints or records that are lost or damaged: nothing runs, people are told, and the operator knows what to do.

Rule 1: what was accepted takes effect or its author is told. Rule 10: an error reaches people in one sentence.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server.fastmcp import Context
from pydantic import BaseModel
from structlog.testing import capture_logs

from app import ConfigurationError
from tests.support.planted import COLD
from tests.support.product import ProductFolder, product_here
from tests.support.product_records import forget_checkpoints
from tests.support.tools import Workshop
from tests.support.visitor import Thread, visiting

Json = dict[str, Any]

RECORDS, CHECKPOINTS = "countersign.db", "countersign.checkpoints.db"


class Sure(BaseModel):
    """What the tool wants to know."""

    sure: bool


def files(home: ProductFolder, name: str) -> list[Path]:
    return sorted((home.folder / "data").glob(f"{name}*"))


async def test_an_approval_whose_conversation_is_lost_is_void_and_its_requester_told(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp; make what=chair")
        first, second = await thread.waiting(2)
        thread_id = thread.thread_id
    forget_checkpoints(workshop_home)
    with capture_logs() as logs:
        async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
            await thread.approve(first["id"])
            await thread.notice("the state of this conversation is lost; nothing more was run", "reference")
            await thread.card(first["id"], "void", result="No longer valid: The state of this conversation is lost")
            await thread.card(second["id"], "void")
            await thread.send("use make what=table")
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
            await thread.says("made table")
    assert shop.done == ["make table 1"]
    assert [entry["log_level"] for entry in logs if entry["event"] == "thread_state_lost"] == ["error"]


Goes = Callable[[Thread, Json], Awaitable[Any]]


async def answered(thread: Thread, question: Json) -> None:
    await thread.answer_form(question["id"], {"sure": True})
    told = await thread.notice("the state of this conversation is lost")
    assert "Check workshop › pay before you retry." in told


async def written(thread: Thread, _question: Json) -> None:
    await thread.send("use look what=chair")
    await thread.says("chair looks fine")


async def stopped(thread: Thread, _question: Json) -> None:
    await thread.stop()
    await thread.notice("stopped")


@pytest.mark.parametrize("goes_on", [answered, written, stopped])
async def test_what_a_call_did_that_waited_in_the_middle_is_unknown_when_its_conversation_is_lost(
    workshop_home: ProductFolder, shop: Workshop, goes_on: Goes
) -> None:
    """Rule 4: it had acted before it asked, so nobody is told that nothing was run, nor waits for its end."""

    async def pay(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        """Pay for something, then ask whether that was meant."""
        shop.done.append(f"pay for {what}")
        await ctx.elicit("Was that meant?", Sure)
        return "paid"

    shop.server.tool()(pay)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use pay what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        question = await thread.question()
        thread_id = thread.thread_id
    forget_checkpoints(workshop_home)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await goes_on(thread, question)
        await thread.card(card["id"], "approved", result="outcome unknown")
        (outcome,) = thread.contents("outcome")
        assert (outcome["status"], outcome["tool"]) == ("superseded", "pay")
        assert "nothing was run" not in " ".join(thread.notices).lower()
    assert shop.done == ["pay for lamp"]


async def test_no_card_waits_for_a_sign_in_of_a_conversation_that_is_lost(workshop_home: ProductFolder) -> None:
    """Rule 4: what did nothing before its conversation was lost is shown as that."""
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make_with_account what=lamp")
        (card,) = await thread.waiting()
        await thread.approve(card["id"])
        await thread.card(card["id"], "approved", result="waiting for a sign-in")
        thread_id = thread.thread_id
    forget_checkpoints(workshop_home)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.send("use look what=chair")
        await thread.says("chair looks fine")
        await thread.card(card["id"], "approved", result="nothing was done")


async def test_a_message_in_a_thread_that_is_lost_begins_anew(workshop_home: ProductFolder, shop: Workshop) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use look what=lamp")
        await thread.says("lamp looks fine")
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    forget_checkpoints(workshop_home)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.send("use look what=chair")
        await thread.says("chair looks fine")
        await thread.card(card["id"], "void")
    assert shop.done == []


@pytest.mark.sqlite  # PostgreSQL keeps both in one database, which is restored as a whole
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


@pytest.mark.sqlite
@pytest.mark.parametrize("name", [RECORDS, CHECKPOINTS, "countersign.memory.db"])
async def test_a_damaged_file_stops_the_start_with_what_to_do(home: ProductFolder, name: str) -> None:
    home.variables["MEMORY"] = "true"
    data = home.folder / "data"
    data.mkdir(exist_ok=True)
    (data / name).write_bytes(b"this was a database " * 1_000)
    with pytest.raises(ConfigurationError, match=f"{name} is damaged .*Restore it from a backup, or move it away"):
        async with product_here(home):
            pass
    (data / name).rename(data / "kept-aside")
    async with product_here(home):
        pass


@pytest.mark.sqlite  # several processes use one PostgreSQL
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
