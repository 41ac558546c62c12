"""The process ends while accounts are refreshed or signed in to: what has asked a service is seen through, the rest is
let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.accounts.flow import BEING_RESTARTED, GoTo, ShowCode
from bot.accounts.only_once import OnlyOnce
from bot.accounts.ports import TokenSet, Unreachable
from bot.domain import Settled
from tests.accounts.stage import ANA, Browser, Stage
from tests.bot.conftest import until


async def sent_to_the_service(stage: Stage) -> tuple[Browser, str]:
    """Ana's browser, and where it was sent."""
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    return browser, went.url


@pytest.fixture
def elsewhere(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Another process is alone with everything. Set when somebody waits for it."""
    waited_for = asyncio.Event()

    @asynccontextmanager
    async def alone(name: str, service: str) -> AsyncIterator[None]:
        waited_for.set()
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(stage.database, "alone", alone)
    return waited_for


async def test_a_refresh_that_a_service_was_asked_for_is_waited_for(stage: Stage) -> None:
    await stage.connect()
    old, service = TokenSet(await stage.access_token() or ""), stage.services_outside
    service.held = asyncio.Event()
    refreshing = asyncio.create_task(stage.tokens.refused(ANA.person_id, "drive", old))
    await until(lambda: service.refreshed)
    refreshing.cancel()
    closing = asyncio.create_task(stage.tokens.close())
    await asyncio.sleep(0)
    assert stage.tokens.is_asking
    assert not closing.done()
    service.held.set()
    await closing
    assert not stage.tokens.is_asking
    assert await stage.access_token() == "secret-access-ana-2"


async def test_one_that_waits_for_another_process_is_not_begun_any_more(stage: Stage, elsewhere: asyncio.Event) -> None:
    refreshing = asyncio.create_task(stage.tokens.refused(ANA.person_id, "drive", TokenSet("old")))
    await elsewhere.wait()
    assert not stage.tokens.is_asking
    await stage.tokens.close()
    with pytest.raises(Unreachable):
        await refreshing
    assert stage.services_outside.refreshed == []


async def test_none_is_begun_when_the_end_has_begun(stage: Stage) -> None:
    await stage.connect()
    old = TokenSet(await stage.access_token() or "")
    await stage.tokens.close()
    with pytest.raises(Unreachable):
        await stage.tokens.refused(ANA.person_id, "drive", old)
    assert stage.services_outside.refreshed == []


async def test_a_sign_in_whose_service_is_asked_comes_to_its_end(stage: Stage) -> None:
    browser, url = await sent_to_the_service(stage)
    service = stage.services_outside
    service.held, flow = asyncio.Event(), stage.parts.flow
    returning = asyncio.create_task(browser.returns(url, code="code-of-ana"))
    await until(lambda: service.asked)
    closing = asyncio.create_task(flow.close())
    await asyncio.sleep(0)
    assert flow.is_asking
    assert not closing.done()
    service.held.set()
    await closing
    page = await returning
    assert isinstance(page, ShowCode)
    assert isinstance(await stage.tells(ANA, page.code), Settled)


async def test_what_a_broken_off_request_has_asked_a_service_for_is_kept(stage: Stage) -> None:
    stage.proofs.providers["chat"] = "Chat"
    stage.restart()
    browser, url = await sent_to_the_service(stage)
    went = await browser.returns(url, code=f"proof-of-{ANA.person_id}")
    assert isinstance(went, GoTo)
    service = stage.services_outside
    service.held = asyncio.Event()
    returning = asyncio.create_task(browser.returns(went.url, code="code-of-ana"))
    await until(lambda: service.asked)
    returning.cancel()
    service.held.set()
    await stage.parts.flow.close()
    assert await stage.access_token() == "secret-access-ana-1"


async def test_who_comes_back_when_the_end_has_begun_may_do_so_again_after_it(stage: Stage) -> None:
    browser, url = await sent_to_the_service(stage)
    await stage.parts.flow.close()
    assert await browser.returns(url, code="code-of-ana") == BEING_RESTARTED
    assert stage.services_outside.exchanged == []
    stage.restart()
    assert isinstance(await browser.returns(url, code="code-of-ana"), ShowCode)


async def test_who_waits_for_another_process_then_is_told_so(stage: Stage, elsewhere: asyncio.Event) -> None:
    browser, url = await sent_to_the_service(stage)
    returning = asyncio.create_task(browser.returns(url, code="code-of-ana"))
    await elsewhere.wait()
    await stage.parts.flow.close()
    assert await returning == BEING_RESTARTED
    assert stage.services_outside.exchanged == []


async def test_nothing_is_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.accounts.only_once.LONGEST_SECONDS", 0.01)
    once = OnlyOnce()

    async def ask() -> None:
        once.asks()
        await asyncio.Event().wait()

    asking = asyncio.create_task(once.seen_through(ask(), "ask"))
    await until(lambda: once.is_asking)
    await once.end()
    with pytest.raises(Unreachable):
        await asking
    assert not once.is_asking
