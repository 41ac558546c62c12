"""Somebody comes back from a service when the product ends, and the service is slow."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from bot.turns.engine import ThreadWorkers
from tests.fakes.openai_server import FakeOpenAI
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
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting


async def test_their_browser_is_answered_and_turns_do_not_wait_for_that(
    home: ProductFolder, model: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.policy(ALLOWED)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-nobody", "LLM_MODEL": "any"}
    stop_workers = ThreadWorkers._stop_workers

    async def noted(engine: ThreadWorkers, seconds: float) -> object:
        stopped = await stop_workers(engine, seconds)
        answers.set()
        return stopped

    monkeypatch.setattr(ThreadWorkers, "_stop_workers", noted)
    async with AsyncExitStack() as stack:
        notes = await stack.enter_async_context(notes_server())
        home.tool_servers({SERVER: entry(notes)})
        asked, answers = hold_codes(notes, monkeypatch)
        product = await stack.enter_async_context(AsyncExitStack())
        url = await product.enter_async_context(product_here(home))
        ana = await stack.enter_async_context(visiting(url))
        async with ana.thread() as thread:
            await thread.send(f"use {SERVER}__sign_in")
            (card,) = await asked_to_sign_in(thread)
        browser = await stack.enter_async_context(browser_of(ana, "ana-at-notes"))
        consenting = asyncio.create_task(notes.consents(browser, await link_of(notes, ana, card)))
        await asked.wait()
        await product.aclose()
        shown = await consenting
    assert "is connected" in shown.words
