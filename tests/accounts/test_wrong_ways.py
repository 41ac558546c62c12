"""Every wrong way back from a service is a clear page, and an unchanged database."""

from __future__ import annotations

import asyncio

import pytest

from bot.accounts.flow import FlowProblem, GoTo, ShowCode
from bot.accounts.ports import Denied, GrantRefused, Unreachable
from tests.accounts.stage import ANA, BEN, Browser, Stage, state_of
from tests.bot.conftest import until


async def on_the_way(stage: Stage) -> tuple[Browser, str]:
    """A browser that is at the service; with the address that led it there."""
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    return browser, went.url


def kind(page: object) -> str:
    assert isinstance(page, FlowProblem), page
    return page.kind


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"error": "access_denied"}, "denied"),
        ({"error": "server_error", "error_description": "<script>"}, "service"),
        ({"error": "access_denied", "code": "code-of-ana"}, "denied"),
        ({}, "service"),
        ({"code": ""}, "service"),
        ({"code": "expired"}, "service"),
        ({"state": "", "code": "code-of-ana"}, "unknown"),
        ({"state": "A" * 43, "code": "code-of-ana"}, "unknown"),
    ],
)
async def test_an_answer_that_grants_nothing(stage: Stage, query: dict[str, str], expected: str) -> None:
    browser, url = await on_the_way(stage)
    before = stage.everything()
    page = await stage.parts.flow.back({"state": state_of(url), **query}, cookie=browser.cookie, connection="drive")
    assert kind(page) == expected
    assert "script" not in page.sentence  # type: ignore[union-attr]
    assert stage.everything() == before


@pytest.mark.parametrize("trouble", [Unreachable("x"), GrantRefused("x"), Denied("x")])
async def test_a_service_that_does_not_go_through_with_it(stage: Stage, trouble: Exception) -> None:
    browser, url = await on_the_way(stage)
    before = stage.everything()
    stage.services_outside.trouble = trouble
    assert kind(await browser.returns(url, code="code-of-ana")) in {"service", "denied"}
    assert stage.everything() == before
    stage.services_outside.trouble = None
    assert isinstance(await browser.returns(url, code="code-of-ana"), ShowCode)


async def test_another_browser(stage: Stage) -> None:
    _, url = await on_the_way(stage)
    before = stage.everything()
    for cookie in (None, "", "x" * 43):
        assert kind(await Browser(stage, cookie).returns(url, code="code-of-ana")) == "foreign"
    assert stage.everything() == before
    assert stage.services_outside.exchanged == []


async def test_a_second_browser_cannot_go_on_with_a_link_that_is_in_use(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    first = stage.browser()
    await first.opens(link)
    before = stage.everything()
    assert kind(await stage.browser().opens(link)) == "foreign"
    assert stage.everything() == before
    assert isinstance(await first.opens(link), GoTo)


async def test_an_answer_that_comes_too_late(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    stage.clock.move(900)
    before = stage.everything()
    assert kind(await browser.returns(url, code="code-of-ana")) == "expired"
    assert stage.everything() == before


async def test_the_same_answer_again_connects_nothing_more(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    shown = await browser.returns(url, code="code-of-ana")
    assert isinstance(shown, ShowCode)
    before = stage.everything()
    assert kind(await browser.returns(url, code="code-of-ben")) == "used"
    await stage.tells(ANA, shown.code)
    await stage.outbox.stop(1.0)  # which notes that the card is shown
    after = stage.everything()
    assert before != after
    assert kind(await browser.returns(url, code="code-of-ben")) == "used"
    assert stage.everything() == after
    assert len(stage.services_outside.exchanged) == 1


async def test_the_same_answer_twice_at_a_time_is_exchanged_once(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    stage.services_outside.held = asyncio.Event()
    first = asyncio.create_task(browser.returns(url, code="code-of-ana"))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert kind(await browser.returns(url, code="code-of-ana")) == "used"
    stage.services_outside.held.set()
    assert isinstance(await first, ShowCode)


async def test_an_earlier_answer_is_of_no_use_when_the_sign_in_was_begun_again(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    first, second = await browser.opens(link), await browser.opens(link)
    assert isinstance(first, GoTo)
    assert isinstance(second, GoTo)
    assert kind(await browser.returns(first.url, code="code-of-ana")) == "unknown"
    assert isinstance(await browser.returns(second.url, code="code-of-ana"), ShowCode)


async def test_what_is_begun_again_while_the_service_is_asked_counts_anew(stage: Stage) -> None:
    sign_in_id, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    stage.services_outside.held = asyncio.Event()
    first = asyncio.create_task(browser.returns(went.url, code="code-of-ana"))
    await until(lambda: stage.services_outside.asked)
    await browser.opens(link)
    stage.services_outside.held.set()
    assert kind(await first) == "used"
    assert not (await stage.card(sign_in_id)).code_wanted


async def test_a_link_whose_account_is_connected_is_used(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    shown = await stage.browser().consents(link, "ana")
    assert isinstance(shown, ShowCode)
    await stage.tells(ANA, shown.code)
    assert kind(await stage.browser().opens(link)) == "used"


async def test_the_way_survives_a_restart_between_link_and_callback(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    stage.restart()
    assert isinstance(await browser.returns(url, code="code-of-ana"), ShowCode)


async def test_two_sign_ins_side_by_side_in_one_browser(stage: Stage) -> None:
    browser, url = await on_the_way(stage)
    _, link = await stage.asked_and_linked(BEN, "m7.0.0")
    other = await browser.opens(link)
    assert isinstance(other, GoTo)
    assert isinstance(await browser.returns(url, code="code-of-ana"), ShowCode)
    assert isinstance(await browser.returns(other.url, code="code-of-ben"), ShowCode)


async def test_a_cookie_that_is_not_of_our_making_binds_nothing(stage: Stage) -> None:
    _, link = await stage.asked_and_linked()
    went = await stage.parts.flow.start(link.split("=")[1], visitor=None, cookie="guessable")
    assert isinstance(went, GoTo)
    assert went.cookie != "guessable"


async def test_no_secret_of_the_way_lies_open_anywhere(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    _, link = await stage.asked_and_linked()
    browser = stage.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    during = stage.everything()
    shown = await browser.returns(went.url, code="code-of-ana")
    assert isinstance(shown, ShowCode)
    waiting = stage.everything()
    await stage.tells(ANA, shown.code)
    secrets = [state_of(went.url), "secret-", str(browser.cookie), link.split("=")[1], shown.code, "code-of-"]
    out = capsys.readouterr()
    for text in (during, waiting, stage.everything(), out.out, out.err, repr(went), repr(shown)):
        assert [secret for secret in secrets if secret in text] == []
