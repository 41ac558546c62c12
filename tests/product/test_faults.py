"""Rules 1, 4 and 10: a fault of ours in one call is that call's alone, in the records and for people too."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from adapters.tool_servers.servers import ToolServers
from bot.ledger import AttemptLedger
from tests.support.ports import free_port
from tests.support.product import ProductFolder, product_process
from tests.support.tools import Workshop
from tests.support.visitor import Thread, visiting

BOTH = "use make what=lamp; report what=desk"


async def approve_one(thread: Thread) -> str:
    await thread.send(BOTH)
    (card,) = await thread.waiting()
    await thread.approve(card["id"])
    return str(card["id"])


async def test_an_outcome_that_cannot_be_recorded_is_asked_and_the_other_call_is_recorded(
    at_work: Thread, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = AttemptLedger.finish

    async def finish_most(ledger: AttemptLedger, record: Any, *about: Any) -> None:
        if record.tool.name == "make":
            raise UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed")
        await finish(ledger, record, *about)

    monkeypatch.setattr(AttemptLedger, "finish", finish_most)
    card = await approve_one(at_work)
    (outcome,) = await at_work.until(lambda: at_work.contents("outcome"))
    await at_work.card(card, "approved", result="outcome unknown")
    await at_work.visitor.post(f"/api/outcomes/{quote(outcome['id'], safe='')}", {"id": "click", "choice": "skip"})
    await at_work.says("skipped by ana", "made all of desk")
    assert shop.done == ["make lamp 1"]


async def test_a_call_that_breaks_before_it_is_sent_is_told_to_have_failed(
    at_work: Thread, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = ToolServers.prepared

    def prepare_most(servers: ToolServers, tool: Any, *about: Any) -> Any:
        if tool.name == "make":
            raise KeyError("ours")
        return prepared(servers, tool, *about)

    monkeypatch.setattr(ToolServers, "prepared", prepare_most)
    await approve_one(at_work)
    await at_work.says("something went wrong on our side", "nothing was called", "made all of desk")
    assert shop.done == []


async def test_no_proxy_is_asked_for_what_is_on_this_machine(
    workshop_home: ProductFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")  # where nobody leads on
    monkeypatch.setenv("NO_PROXY", "intranet.example.com")
    async with product_process(workshop_home) as product, visiting(product.url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        await thread.waiting()
