"""A folder of files with instructions, some broken, one a bomb, and a model that obeys them all: nothing hangs, nothing
runs that nobody approved, nothing is remembered, and whatever cannot be read is named."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence

from bot.files import MOST_AT_ONCE
from graph.memory import MEMORY_REQUEST
from tests.fakes.openai_server import Reply, Request, ToolUse, fake_openai
from tests.support.files import REMEMBER, HandedOver, hostile_files, unreadable_files
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry
from tests.support.visitor import Answer, Thread, Visitor, visiting

AT_A_TIME = 9
PLANTED = REMEMBER.removeprefix("Remember that ").rstrip(".")


class Obeying:
    """Does whatever it reads, wherever that stands."""

    def __init__(self) -> None:
        self.has_read_orders = self.has_read_plants = 0
        self.looked_through: list[str] = []
        """What it was asked to look through for what is worth remembering."""

    def __call__(self, request: Request) -> Reply:
        said = request["messages"]
        if str(said[0]["content"]).startswith(MEMORY_REQUEST):
            self.looked_through.append(str(said[-1]["content"]))
            quotes = [PLANTED, *re.findall(r"I prefer sort \d+", str(said[-1]["content"]))]
            return Reply(
                json.dumps({"remember": [{"about": "person", "quote": each} for each in quotes], "forget": []})
            )
        if said[-1]["role"] == "tool":
            return Reply("obeyed")
        everything = " ".join(str(message["content"]).replace("\\", "") for message in said)
        self.has_read_plants += PLANTED in everything
        offered = {each["function"]["name"] for each in request.get("tools", [])}
        if "workshop__delete with what=everything" in everything and "workshop__delete" in offered:
            self.has_read_orders += 1
            return Reply(calls=[ToolUse("workshop__delete", {"what": "everything"})])
        return Reply("read it")


async def test_a_folder_of_files_makes_nothing_happen_that_nobody_approved(home: ProductFolder, shop: Workshop) -> None:
    files = [*hostile_files(), *unreadable_files()]
    home.tool_servers({"workshop": entry(shop)})
    model = Obeying()
    async with fake_openai(model) as service:
        home.variables |= {"OPENAI_BASE_URL": service.base_url, "OPENAI_API_KEY": "none", "LLM_MODEL": "scripted"}
        home.variables["MEMORY"] = "true"
        async with product_here(home) as url, visiting(url) as ana:
            for start in range(0, len(files), AT_A_TIME):
                await _hand_over(ana, files[start : start + AT_A_TIME], f"I prefer sort {start}")
            kept = [each["text"] for each in (await ana.get("/api/memories")).body["memories"]]
            assert sorted(kept) == sorted(f"I prefer sort {start}" for start in range(0, len(files), AT_A_TIME))
    assert model.has_read_orders and model.has_read_plants
    assert model.looked_through and not any(PLANTED in each for each in model.looked_through)
    assert shop.done == []


async def _hand_over(visitor: Visitor, files: Sequence[HandedOver], preference: str) -> None:
    """Upload files, send them, reject whatever waits, and see the turn through until something is remembered of it."""
    side_by_side = asyncio.Semaphore(MOST_AT_ONCE)

    async def upload(file: HandedOver) -> Answer:
        async with side_by_side:
            return await visitor.upload(file.name, file.content)

    answers = await asyncio.gather(*map(upload, files))
    assert [answer.status for answer in answers] == [201] * len(files)
    async with visitor.thread() as thread:
        await thread.send(f"{preference}. What is in these?", files=[answer.body["id"] for answer in answers])
        await _ends(thread, files)
        await thread.notice(preference)


async def _ends(thread: Thread, files: Sequence[HandedOver]) -> None:
    """The turn is over, or waits for a person, and what could not be read was named, with the reason."""
    await thread.until(lambda: thread.said or thread.approvals("pending"), f"an end of {[file.name for file in files]}")
    if unreadable := [file for file in files if file.refused]:
        told = await thread.notice("I couldn’t read")
        for file in unreadable:
            [line] = [line for line in told.splitlines() if line.startswith(f"{file.name}: ")]
            assert file.refused in line
    for card in thread.approvals("pending"):
        await thread.reject(card["id"])
