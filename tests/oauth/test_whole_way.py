"""From the link to a token that the server takes: browser, pages, records and services, all real."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from aiohttp import web

from adapters.oauth.chat_identity import ChatProofs, SlackLogin
from adapters.oauth.pages import sign_in_routes
from bot.accounts.ports import TokenSet
from bot.domain import Person
from bot.records import threads
from bot.records.locks import UNLOCKED
from graph.ports import AccountNeeded
from tests.accounts import stage as stages
from tests.accounts.conftest import clock, database, new_id, platform, platforms, stage
from tests.accounts.stage import ANA, BEN, HERE, Stage
from tests.fakes.oauth import Browser, IdentityFake, ProtectedServer, identity_provider, protected_server, slack_user
from tests.oauth.parts import Kept, at, proves, services

__all__ = ["clock", "database", "new_id", "platform", "platforms", "stage"]

SLACK_ANA, SLACK_EVE = Person("slack:T1:UANA", "Ana"), Person("slack:T1:UEVE", "Eve")
USERS = {"ana": slack_user("T1", "UANA"), "eve": slack_user("T1", "UEVE")}
NEEDED = AccountNeeded("notes", "Bearer")


@dataclass
class Product:
    """The stage with the real outside."""

    stage: Stage
    server: ProtectedServer
    slack: IdentityFake
    base: str

    async def link(self, person: Person, call: str = "m1.0.0") -> tuple[str, str]:
        return await self.stage.asked_and_linked(person, call, needed=NEEDED)

    def records(self) -> list[str]:
        """What is in the database, but for the posts and where they are, which goes out in the background."""
        posted = ('INSERT INTO "posts"', 'INSERT INTO "post_messages"')
        return [line for line in self.stage.everything().splitlines() if not line.startswith(posted)]

    async def tokens(self, person: Person) -> TokenSet | None:
        return await self.stage.tokens.current(person.person_id, "notes")

    async def whose(self, person: Person) -> str | None:
        """Whose account the bot acts with for a person, as the server sees it."""
        tokens = await self.tokens(person)
        return self.server.who(tokens.access_token) if tokens else None


@pytest.fixture
async def product(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Product]:
    async with protected_server() as server, identity_provider(USERS) as slack, serving(stage) as base:
        monkeypatch.setattr(stages, "BASE", base)
        kept = Kept()
        stage.services_outside = services(at(server), kept=kept, clock=stage.clock)  # type: ignore[assignment]
        login = SlackLogin(slack.client_id, slack.client_secret, f"{slack.base}/api/")
        stage.proofs = ChatProofs([login])  # type: ignore[assignment]
        stage.restart()
        async with stage.database.writing(UNLOCKED) as tx:
            for person in (SLACK_ANA, SLACK_EVE):
                await threads.remember(tx, person, stage.clock())
        yield Product(stage, server, slack, base)


@asynccontextmanager
async def serving(stage: Stage) -> AsyncIterator[str]:
    """The routes, over whichever flow the stage has at the moment: it may be restarted."""

    class Current:
        def __getattr__(self, name: str) -> object:
            return getattr(stage.parts.flow, name)

    application = web.Application()
    application.add_routes(sign_in_routes(Current(), proves(None), secure=False))  # type: ignore[arg-type]
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def not_in(product: Product, secrets: Sequence[str]) -> bool:
    everything = product.stage.everything()
    return not [secret for secret in secrets if secret in everything]


async def test_without_proof_the_code_in_the_chat_connects(product: Product) -> None:
    sign_in_id, link = await product.link(ANA)
    async with Browser("ana") as browser:
        shown = await browser.press(await browser.open(link))
    assert shown.status == 200, shown.words
    assert await product.whose(ANA) is None
    token, code = link.partition("?s=")[2], shown.query["code"]
    assert not_in(product, [token, code, shown.query["state"], shown.code, *product.server.tokens])
    await product.stage.tells(ANA, shown.code)
    assert await product.whose(ANA) == "ana"
    assert await product.stage.status(sign_in_id) == "done"
    assert len(await product.stage.resumes()) == 1
    assert not_in(product, [token, *product.server.tokens, *product.server.refresh_tokens])


async def test_with_proof_the_way_ends_connected(product: Product) -> None:
    sign_in_id, link = await product.link(SLACK_ANA)
    async with Browser("ana") as browser:
        page = await browser.open(link)
        assert "Slack confirms that you are Ana" in page.words
        shown = await browser.press(page)
    assert "is connected" in shown.words
    assert shown.visited[1].startswith(product.slack.base)
    assert await product.whose(SLACK_ANA) == "ana"
    assert await product.stage.status(sign_in_id) == "done"


async def test_the_attackers_link_in_the_victims_browser_ends_before_the_service(product: Product) -> None:
    sign_in_id, link = await product.link(SLACK_EVE)
    async with Browser("ana") as victim:
        shown = await victim.press(await victim.open(link))
    assert shown.status == 403, shown.words
    assert product.server.asked == []
    assert product.server.tokens == {}
    assert await product.whose(SLACK_EVE) is None
    assert await product.stage.status(sign_in_id) == "open"


async def test_the_attackers_link_without_proof_connects_nothing_by_itself(product: Product) -> None:
    _, link = await product.link(BEN)
    async with Browser("ana") as victim:
        shown = await victim.press(await victim.open(link))
    assert len(shown.code) == 9
    assert await product.whose(BEN) is None
    await product.stage.tells(ANA, shown.code)  # the victim's own chat account is not the link's
    assert await product.whose(BEN) is None
    assert await product.whose(ANA) is None


async def test_a_restart_between_the_link_and_the_callback_changes_nothing(product: Product) -> None:
    _, link = await product.link(SLACK_ANA)
    async with Browser("ana", stop_at=f"{product.base}/oauth/callback") as browser:
        stopped = await browser.press(await browser.open(link))
        product.stage.restart()
        browser.stop_at = ""
        shown = await browser.open(stopped.url)
    assert "is connected" in shown.words
    assert await product.whose(SLACK_ANA) == "ana"


async def test_a_second_browser_cannot_bring_the_answer_back(product: Product) -> None:
    _, link = await product.link(ANA)
    async with Browser("ana", stop_at=f"{product.base}/oauth/callback") as first, Browser("eve") as second:
        stopped = await first.press(await first.open(link))
        before = product.records()
        assert (await second.open(stopped.url)).status == 403
        assert product.records() == before
        first.stop_at = ""
        assert (await first.open(stopped.url)).status == 200


@pytest.mark.parametrize("change", [("state", "forged"), ("iss", "https://evil.example"), ("code", "forged")])
async def test_a_forged_answer_connects_nothing(product: Product, change: tuple[str, str]) -> None:
    _, link = await product.link(ANA)
    async with Browser("ana", stop_at=f"{product.base}/oauth/callback") as browser:
        stopped = await browser.press(await browser.open(link))
        browser.stop_at = ""
        before = product.records()
        async with browser.session.get(
            f"{product.base}/oauth/callback/notes", params=stopped.query | dict([change])
        ) as response:
            assert response.status >= 400
        assert product.records() == before
    assert await product.whose(ANA) is None


async def test_an_answer_counts_once(product: Product) -> None:
    _, link = await product.link(SLACK_ANA)
    async with Browser("ana") as browser:
        shown = await browser.press(await browser.open(link))
        before = product.records()
        again = await browser.open(shown.url)
        assert again.status in (404, 409)
        assert (await browser.open(link)).status in (404, 409)
        assert product.records() == before


async def test_a_no_at_the_service_is_told_and_changes_nothing(product: Product) -> None:
    _, link = await product.link(ANA)
    product.server.denying = True
    async with Browser("ana") as browser:
        shown = await browser.press(await browser.open(link))
        assert (shown.status, "Nothing was connected" in shown.words) == (403, True)
        product.server.denying = False
        assert len((await browser.press(await browser.open(link))).code) == 9


async def test_previews_of_the_link_use_nothing_up(product: Product) -> None:
    _, link = await product.link(ANA)
    before = product.records()
    async with Browser() as preview:
        for _ in range(5):
            assert (await preview.open(link)).status == 200
    assert product.records() == before
    assert product.server.log == []


async def test_expired_tokens_are_renewed_and_a_refused_renewal_asks_again(product: Product) -> None:
    _, link = await product.link(SLACK_ANA)
    async with Browser("ana") as browser:
        await browser.press(await browser.open(link))
    product.stage.clock.now += 3601
    first = await product.tokens(SLACK_ANA)
    assert first is not None
    assert product.server.count("POST /token") == 2
    assert product.server.who(first.access_token) == "ana"
    product.server.forget("ana")
    assert await product.stage.tokens.refused(SLACK_ANA.person_id, "notes", first) is None
    assert await product.stage.ask(SLACK_ANA, "m2.0.0", HERE, NEEDED) != ""
