"""Accounts that grow old: tokens expire, are refused and revoked, and the bot is killed in between."""

from __future__ import annotations

import pytest

from tests.bot.conftest import until
from tests.product.accounts import AccountStage, stage
from tests.support.notes import asked_for_link, asked_to_sign_in, browser_of, link_of, signs_in
from tests.support.ports import free_port
from tests.support.product import product_here, product_process
from tests.support.visitor import Thread

__all__ = ["stage"]


async def write(thread: Thread, what: str) -> None:
    """Have something written with an account that is connected."""
    await thread.send(f"use notes__write what={what}")
    await thread.says(f"ana-at-notes wrote {what}")


async def connect(stage: AccountStage, thread: Thread) -> None:
    """Ana's first call, with its sign-in."""
    await thread.send("use notes__sign_in")
    await signs_in(stage.notes, thread, "ana-at-notes")
    await thread.says("signed in")


async def test_an_expired_token_is_refreshed_without_a_word(stage: AccountStage) -> None:
    async with product_here(stage.home) as url, stage.writing(url, "ana") as ana:
        await connect(stage, ana)
        refreshed = stage.notes.server.count("POST /token")
        stage.notes.server.expire("ana-at-notes")
        await write(ana, "milk")
        assert stage.notes.server.count("POST /token") == refreshed + 1
        await write(ana, "bread")
        assert stage.notes.server.count("POST /token") == refreshed + 1
        assert len(ana.contents("sign_in")) == 1
    assert stage.notes.written == [("ana-at-notes", "milk"), ("ana-at-notes", "bread")]


async def test_tokens_that_live_shorter_than_we_refresh_ahead_are_refreshed_before_every_call(
    stage: AccountStage,
) -> None:
    stage.notes.server.seconds = 60
    async with product_here(stage.home) as url, stage.writing(url, "ana") as ana:
        await connect(stage, ana)
        for what in ("one", "two"):
            await write(ana, what)
        assert len(ana.contents("sign_in")) == 1
    assert len(stage.notes.written) == 2


async def test_a_refused_refresh_asks_for_a_new_sign_in_and_the_call_goes_on_once(stage: AccountStage) -> None:
    async with product_here(stage.home) as url, stage.writing(url, "ana") as ana:
        await connect(stage, ana)
        stage.notes.server.forget("ana-at-notes")
        await ana.send("use notes__write what=milk")
        (anew,) = await asked_to_sign_in(ana)
        assert stage.notes.written == []
        assert (await ana.visitor.get("/health-check")).body["connections"] == {}
        await signs_in(stage.notes, ana, "ana-at-notes")
        await ana.says("ana-at-notes wrote milk")
        assert anew["id"] in {each["id"] for each in await asked_to_sign_in(ana, "done", 2)}
    assert stage.notes.written == [("ana-at-notes", "milk")]


async def test_a_disconnected_account_is_revoked_at_the_service_and_used_no_more(stage: AccountStage) -> None:
    async with product_here(stage.home) as url, stage.writing(url, "ana") as ana, stage.writing(url, "ben") as ben:
        await connect(stage, ana)
        (connection,) = (await ana.visitor.get("/api/connections")).body["connections"]
        assert (await ben.visitor.get("/api/connections")).body["connections"] == []
        assert (await ben.visitor.delete(f"/api/connections/{connection['id']}")).status == 403
        assert (await ana.visitor.delete(f"/api/connections/{connection['id']}")).status == 200
        assert stage.notes.server.count("POST /revoke") >= 1
        assert "ana-at-notes" not in {token.subject for token in stage.notes.server.tokens.values()}
        await ana.send("use notes__write what=milk")
        await asked_to_sign_in(ana)
        assert stage.notes.written == []


async def test_a_session_with_an_account_ends_with_it(stage: AccountStage) -> None:
    server = stage.notes.server
    async with product_here(stage.home) as url, stage.writing(url, "ana") as ana:
        await connect(stage, ana)
        await write(ana, "milk")
        (connection,) = (await ana.visitor.get("/api/connections")).body["connections"]
        ended = server.count("DELETE /mcp")
        assert (await ana.visitor.delete(f"/api/connections/{connection['id']}")).status == 200
        await until(lambda: server.count("DELETE /mcp") > ended)


@pytest.mark.kills
async def test_a_restart_between_the_link_and_the_callback_loses_nothing(stage: AccountStage) -> None:
    stage.home.variables["PORT"] = str(free_port())
    async with product_process(stage.home) as product, stage.writing(product.url, "ana") as ana:
        await stage.learn_the_tools(product.url)
        await ana.send("use notes__write what=milk")
        (sign_in,) = await asked_to_sign_in(ana)
        link = await link_of(stage.notes, ana.visitor, sign_in)
        await product.kill()
        await product.start()
        async with browser_of(ana.visitor, "ana-at-notes") as browser:
            browser.stop_at = f"{product.url}/oauth/callback"
            stopped = await stage.notes.consents(browser, link)
            await product.kill()
            await product.start()
            browser.stop_at = ""
            shown = await browser.open(stopped.url)
            assert "is connected" in shown.words
        await ana.says("ana-at-notes wrote milk")
        await product.kill()
        await product.start()
        await write(ana, "bread")
        assert (await asked_for_link(ana.visitor, sign_in)).status == 403
    assert stage.notes.written == [("ana-at-notes", "milk"), ("ana-at-notes", "bread")]
