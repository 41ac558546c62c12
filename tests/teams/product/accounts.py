"""The product in Teams whose people need accounts for its tools. In the end its secrets are looked for everywhere."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
import structlog
from aiohttp import web

from tests.fakes.oauth import Browser, IdentityFake, Shown, entra_user
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.teams.server import ANA, BEN, CHLOE, IDENTITY_SECRET, TENANT, FakeTeams
from tests.support.notes import ALLOWED, SERVER, Notes, assert_kept_secret, entry, notes_server
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import Answer, HttpTransport
from tests.teams.product.conftest import opened
from tests.teams.product.talk import Json, Talk, buttons, dicts, words

LEARNING = f"use {SERVER}__sign_in"
"""What can be asked before anybody has signed in: nobody knows then what tools there are."""


@dataclass
class AccountStage:
    """What a test of accounts needs."""

    home: ProductFolder
    teams: FakeTeams
    notes: Notes
    model: FakeOpenAI
    links: dict[str, set[str]] = field(default_factory=dict)
    """By the Teams user whom it is for: the secrets of their links."""
    codes: dict[str, set[str]] = field(default_factory=dict)
    """By the Teams user whose browser it was: the codes on its pages."""

    @asynccontextmanager
    async def open_without_learning(self) -> AsyncIterator[HttpTransport]:
        """The running product, in which nobody has signed in yet."""
        async with opened(self.home, self.teams) as transport:
            yield transport

    @asynccontextmanager
    async def open(self) -> AsyncIterator[HttpTransport]:
        """The running product, in which Chloe has found out what tools there are."""
        async with self.open_without_learning() as transport:
            chloe = Talk(self.teams, TeamsPerson(self.teams, CHLOE, transport), self.teams.personal(CHLOE))
            await chloe.mentions(LEARNING)
            await self.signs_in(chloe, "chloe-at-notes")
            await chloe.says("Results:", "write")
            yield transport

    async def link(self, talk: Talk) -> str:
        """The newest link that this person was given, as a button that only they see."""
        given = await self.teams.until(lambda: links_to(talk))
        return self._noted(talk, given[-1])

    async def visits(self, talk: Talk, account: str, link: str = "") -> Shown:
        """Open the link in a browser and agree. `account`: who its user is, at the service and at Entra."""
        link = link or await self.link(talk)
        async with Browser(account) as browser:
            shown = await self.notes.consents(browser, link)
        if 'class="code"' in shown.text:
            self.codes.setdefault(talk.person.user, set()).add(shown.code)
        return shown

    async def signs_in(self, talk: Talk, account: str) -> None:
        """The whole way, where nothing but a code proves who it is: the code is sent as a message in the chat."""
        shown = await self.visits(talk, account)
        if 'class="code"' in shown.text:
            await talk.person.says(talk.person.chat, shown.code)
        await talk.says("connected their notes account")

    async def signs_in_here(self, talk: Talk, account: str) -> None:
        """The whole way, with the form of the card for the code."""
        shown = await self.visits(talk, account)
        await self.teams.until(lambda: _code_card(talk))
        await talk.submits(await talk.opens(_code_card(talk)[-1], "code_dialog"), "enter_code", code=shown.code)

    def readers(self, secret: str) -> set[str]:
        """Who could read it in Teams at any time: addresses, all members of where the bot has posted it."""
        found: set[str] = set()
        for call in self.teams.calls:
            if call.verb in {"send", "update"} and secret in json.dumps(call.body):
                if call.query.get("isTargetedActivity") == "true":
                    found.add(call.body["recipient"]["id"])
                else:
                    members = self.teams.world.conversation(call.conversation).members
                    found |= {self.teams.address(user) for user in members}
        return found

    def look_everywhere(self, log: str) -> None:
        """Each link was for its owner alone, no code was said by the bot, and nothing else is anywhere."""
        for user, links in self.links.items():
            for link in links:
                assert self.readers(link) == {self.teams.address(user)}
        for code in set().union(*self.codes.values()):
            assert self.readers(code) == set(), "the bot has repeated a code"
        public = [m for each in self.teams.world.conversations for m in self.teams.posts(each) if not m["only_for"]]
        shared = [m for m in public if m["conversation"] not in {self.teams.personal(u) for u in self.links}]
        assert_kept_secret(
            self.notes,
            self.home,
            [
                ("what everybody reads", json.dumps(shared, ensure_ascii=False)),
                ("what the model was sent", json.dumps(self.model.requests, ensure_ascii=False)),
                ("the log", log),
            ],
        )

    def _noted(self, talk: Talk, link: str) -> str:
        secret = link.partition("?s=")[2]
        assert secret
        self.notes.secrets.add(secret)
        self.links.setdefault(talk.person.user, set()).add(secret)
        return link


def links_to(talk: Talk) -> list[str]:
    """The links that this person sees, here and in their chat with the bot, oldest first."""
    elsewhere = [] if talk.conversation == talk.person.chat else talk.teams.posts(talk.person.chat)
    return [str(part["url"]) for message in (*elsewhere, *talk.of_the_bot()) for part in _pages(message)]


def _pages(message: Json) -> Iterator[Json]:
    return (part for part in dicts(message["attachments"]) if part.get("type") == "Action.OpenUrl")


def _code_card(talk: Talk) -> list[Json]:
    """The cards that want this person's code."""
    name = talk.teams.world.users[talk.person.user].name
    wanted = f"{name}, your browser shows a code"
    return [m for m in talk.of_the_bot() if "code_dialog" in buttons(m) and wanted in words(m)]


async def card_with(talk: Talk, button: str) -> Json:
    """Wait for a card with this button, as this person sees it."""
    found = await talk.teams.until(lambda: [m for m in talk.of_the_bot() if button in buttons(m)])
    return dict(found[-1])


async def enters(talk: Talk, code: str) -> Answer:
    """Press "Enter code…" on the newest card and submit the form."""
    dialog = await talk.opens(await card_with(talk, "code_dialog"), "code_dialog")
    return await talk.submits(dialog, "enter_code", code=code)


@asynccontextmanager
async def entra(teams: FakeTeams) -> AsyncIterator[str]:
    """Microsoft's login for people and for the bot: its address. Browsers are signed in as `ana` or `ben`."""
    users = {"ana": entra_user(TENANT, ANA), "ben": entra_user(TENANT, BEN)}
    identity = IdentityFake(teams.app_id, teams.app_password, users)

    async def token_of_the_bot(request: web.Request) -> web.Response:
        url = f"{teams.login_url}/{request.match_info['tenant']}/oauth2/v2.0/token"
        form = {name: str(value) for name, value in (await request.post()).items()}
        async with aiohttp.ClientSession() as session, session.post(url, data=form) as answer:
            return web.Response(status=answer.status, text=await answer.text(), content_type=answer.content_type)

    application = web.Application()
    application.add_routes([*identity.routes(), web.post("/{tenant}/oauth2/v2.0/token", token_of_the_bot)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        identity.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield identity.base
    finally:
        await runner.cleanup()


@pytest.fixture
async def stage(
    home: ProductFolder, teams: FakeTeams, model: FakeOpenAI, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[AccountStage]:
    """A bot with a managed identity: it has no client of Entra's, so that codes are what proves who somebody is."""
    async with notes_server() as notes:
        home.tool_servers({SERVER: entry(notes)})
        home.policy(ALLOWED)
        del home.variables["MICROSOFT_APP_PASSWORD"]
        home.variables |= {
            "MICROSOFT_APP_TYPE": "UserAssignedMSI",
            "IDENTITY_ENDPOINT": teams.identity_endpoint,
            "IDENTITY_HEADER": IDENTITY_SECRET,
            "LOG_LEVEL": "debug",
        }
        made = AccountStage(home, teams, notes, model)
        yield made
        assert notes.all_secrets()
        logged = capfd.readouterr()
        made.look_everywhere(logged.out + logged.err)
        structlog.reset_defaults()


def with_client(stage: AccountStage, login_url: str) -> None:
    """The bot's app has a secret, so that Entra proves who somebody is."""
    stage.home.variables |= {
        "MICROSOFT_APP_TYPE": "SingleTenant",
        "MICROSOFT_APP_PASSWORD": stage.teams.app_password,
        "TEAMS_LOGIN_URL": login_url,
    }
