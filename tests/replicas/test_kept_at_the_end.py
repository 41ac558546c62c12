"""A replica that is to end while PostgreSQL is away: what a service has given it meanwhile cannot be had again."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

import app
from tests.fakes.openai_server import fake_openai
from tests.replicas.cluster import Cluster
from tests.replicas.processes import replicas
from tests.support.brain import obedient
from tests.support.notes import (
    ALLOWED,
    SERVER,
    asked_to_sign_in,
    browser_of,
    entry,
    hold_codes,
    link_of,
    notes_server,
)
from tests.support.product import ProductFolder
from tests.support.two_products import taking_turns
from tests.support.visitor import visiting

pytestmark = [pytest.mark.kills, pytest.mark.long, pytest.mark.timeout(200)]


async def test_an_account_is_kept_though_its_tokens_came_when_postgresql_was_away(
    home: ProductFolder, cluster: Cluster, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica ends later than others do, and no later than it has to."""
    home.policy(ALLOWED)
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(obedient))
        home.variables["OPENAI_BASE_URL"] = model.base_url
        notes = await stack.enter_async_context(notes_server())
        home.tool_servers({SERVER: entry(notes)})
        asked, answers = hold_codes(notes, monkeypatch)
        turns = await stack.enter_async_context(taking_turns())
        running = replicas(home, address, count=1, PUBLIC_URL=turns.url)
        (replica,) = await stack.enter_async_context(running)
        turns.between([replica.url])
        await replica.up()
        ana = await stack.enter_async_context(visiting(replica.url))
        async with ana.thread() as thread:
            await thread.send(f"use {SERVER}__sign_in")
            (card,) = await asked_to_sign_in(thread)
        browser = await stack.enter_async_context(browser_of(ana, "ana-at-notes"))
        consenting = asyncio.create_task(notes.consents(browser, await link_of(notes, ana, card)))
        await asked.wait()
        began = time.monotonic()
        replica.ask_to_end()
        await cluster.kill()
        answers.set()
        while time.monotonic() < began + app.LONGEST_END_SECONDS + 1:
            assert replica.code is None
            await asyncio.sleep(0.1)
        await cluster.start()
        shown = await consenting
        assert await replica.wait() == 0
        assert "end_put_off" in replica.log()
        assert time.monotonic() - began < app.LONGEST_KEEPING_SECONDS / 2
        assert "is connected" in shown.words
        await replica.up()
        account = await ana.get("/api/connections")
        assert [each["service"] for each in account.body["connections"]] == [SERVER]
