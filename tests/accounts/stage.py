"""People in chat, their browsers, and what can be seen of it from outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bot.accounts.account_services import AccountServices
from bot.accounts.flow import Connected, FlowProblem, GoTo, ShowCode
from bot.accounts.tokens import Safe, TokenStore
from bot.crypto import NewId, Sealer
from bot.domain import CodeEntry, ConversationReference, Message, Notice, Person, SignInView
from bot.limits import Beginnings
from bot.outbox import Outbox
from bot.records import connections, deliveries, sign_ins, threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from graph.ports import AccountNeeded
from tests.accounts.services import FakeProofs, FakeServices
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.stubs import KEY, NotedEngine, make_parts
from tests.support import postgres_cluster

ANA, BEN, EVE = (Person(f"chat:w1:{name}", name.capitalize()) for name in ("ana", "ben", "eve"))
WENDY = Person("web:wendy", "Wendy")
HERE = ConversationReference("chat", "chat:w1:room:1", {"room": "1"})
ELSEWHERE = ConversationReference("chat", "chat:w1:room:2", {"room": "2"})
BASE = "https://bot.example"
NEEDED = AccountNeeded("drive")


@dataclass
class Browser:
    """A browser, with the one cookie that matters here."""

    stage: Stage
    cookie: str | None = None

    async def opens(self, link: str, *, visitor: str | None = None) -> GoTo | FlowProblem:
        """Open a link and press the button."""
        went = await self.stage.parts.flow.start(token_of(link), visitor=visitor, cookie=self.cookie)
        if isinstance(went, GoTo):
            self.cookie = went.cookie
        return went

    async def returns(self, url: str, **query: str) -> GoTo | Connected | ShowCode | FlowProblem:
        """Come back from where a URL led, with what was decided there."""
        return await self.stage.parts.flow.back(
            {"state": state_of(url), **query}, cookie=self.cookie, connection=connection_of(url)
        )

    async def consents(self, link: str, login: str, **how: Any) -> GoTo | Connected | ShowCode | FlowProblem:
        """Open a link and consent at the service under a login."""
        went = await self.opens(link, **how)
        assert isinstance(went, GoTo), went
        return await self.returns(went.url, code=f"code-of-{login}")

    async def proves(self, link: str, person: Person) -> GoTo | Connected | ShowCode | FlowProblem:
        """Open a link and sign in with chat as somebody."""
        went = await self.opens(link)
        assert isinstance(went, GoTo), went
        return await self.returns(went.url, code=f"proof-of-{person.person_id}")


class Stage:
    """The services, with accounts."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        clock: SetClock,
        new_id: NewId,
        platform: RecordingPlatform,
        file: Path,
    ) -> None:
        self.database, self.outbox, self.clock, self.new_id = database, outbox, clock, new_id
        self.platform, self.file = platform, file
        self.services_outside, self.proofs, self.engine = FakeServices(), FakeProofs(), NotedEngine()
        self.key = KEY
        self.links_an_hour = 0
        self.beginnings: Beginnings | None = None
        self.entries = count(1)
        self.changes: list[tuple[str, str]] = []
        """Whose account of what is said to be another one, or none."""
        self.restart()

    def restart(self) -> None:
        """Everything anew but what is on disk, and the world outside."""
        sealer, outside = Sealer(self.key), AccountServices(self.services_outside, self.proofs)
        self.tokens = TokenStore(self.database, self.services_outside, Safe(sealer), self.clock)
        self.parts = make_parts(
            self.database,
            self.outbox,
            self.clock,
            self.new_id,
            platforms={"chat": self.platform, "web": self.platform},
            engine=self.engine,
            outside=outside,
            sealer=sealer,
            address=lambda: BASE,
            changed=self._note_change,
            links_an_hour=self.links_an_hour,
            beginnings=self.beginnings,
        )
        self.services = self.parts.services

    async def _note_change(self, person_id: str, connection: str) -> None:
        self.changes.append((person_id, connection))

    async def set_up(self) -> None:
        async with self.database.writing(UNLOCKED) as tx:
            for place in (HERE, ELSEWHERE, ConversationReference("web", "web:1", {})):
                await threads.ensure(tx, place.key, place, "hello", self.clock())
            for person in (ANA, BEN, EVE, WENDY):
                await threads.remember(tx, person, self.clock())

    async def tear_down(self) -> None:
        await self.outbox.stop(1.0)
        await self.parts.services.connections.close()
        await self.tokens.close()

    def browser(self) -> Browser:
        return Browser(self)

    async def ask(
        self,
        person: Person = ANA,
        call: str = "m1.0.0",
        place: ConversationReference = HERE,
        needed: AccountNeeded = NEEDED,
    ) -> str:
        """A call needs an account; the sign-in's id."""
        return await self.parts.sign_ins.ask(place.key, call, person.person_id, "files", needed)

    async def link(self, sign_in_id: str, person: Person = ANA) -> str:
        found = await self.services.sign_in_links.link(sign_in_id, person.person_id)
        assert isinstance(found, str), found
        return found

    async def asked_and_linked(self, person: Person = ANA, call: str = "m1.0.0", **how: Any) -> tuple[str, str]:
        sign_in_id = await self.ask(person, call, **how)
        return sign_in_id, await self.link(sign_in_id, person)

    async def connect(self, person: Person = ANA, login: str = "ana", call: str = "m1.0.0", **how: Any) -> str:
        """A whole sign-in by code; the sign-in's id."""
        sign_in_id, link = await self.asked_and_linked(person, call, **how)
        shown = await self.browser().consents(link, login)
        assert isinstance(shown, ShowCode), shown
        await self.tells(person, shown.code)
        return sign_in_id

    async def tells(self, person: Person, code: str, key: str = "", sign_in_id: str | None = None) -> Any:
        """Type a code into the form, or as the form of a sign-in."""
        return await self.services.connections.enter_code(
            CodeEntry(key or f"entry {next(self.entries)}", person, code, sign_in_id)
        )

    async def writes(
        self, person: Person, text: str, key: str = "m9", place: ConversationReference = HERE, **how: Any
    ) -> bool:
        return await self.services.inbox.accept(Message(key, place, person, text, self.clock(), **how))

    async def account_counts(self) -> dict[str, int]:
        """How many accounts of each connection work."""
        async with self.database.reading() as tx:
            return dict(await connections.counts(tx))

    async def access_token(self, person: Person = ANA, connection: str = "drive") -> str | None:
        tokens = await self.tokens.current(person.person_id, connection)
        return tokens.access_token if tokens is not None else None

    async def status(self, sign_in_id: str) -> str:
        async with self.database.reading() as tx:
            row = await sign_ins.get(tx, sign_in_id)
        assert row is not None
        return row.status

    async def card(self, sign_in_id: str) -> SignInView:
        shown = await self.services.queries.shown(sign_in_id)
        content = shown[0].post.content
        assert isinstance(content, SignInView)
        return content

    async def resumes(self, place: ConversationReference = HERE) -> list[str]:
        """Keys of what is to be handled in a thread; the bodies of resumes have to be empty."""
        keys = []
        async with self.database.writing(UNLOCKED) as tx:
            while (head := await deliveries.head(tx, place.key, self.clock())) is not None:
                assert head.kind == "resume"
                assert head.body == {}
                keys.append(head.key)
                await deliveries.done(tx, head.key)
        return keys

    def notices(self) -> list[tuple[str | None, str]]:
        """For whom, and what, of the sentences that were posted."""
        posts = [post for post in self.platform.shown.values() if isinstance(post.content, Notice)]
        return [(post.only_for, post.content.text) for post in posts if isinstance(post.content, Notice)]

    def everything(self) -> str:
        """All that is in the database, as text."""
        if postgres_cluster.is_used():
            return postgres_cluster.everything()
        with closing(sqlite3.connect(self.file)) as connection:
            return "\n".join(connection.iterdump())


def token_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["s"][0]


def connection_of(url: str) -> str:
    """To whose address a service is to send the browser back."""
    return parse_qs(urlsplit(url).query)["redirect_uri"][0].partition("/oauth/callback")[2].removeprefix("/")


def state_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["state"][0]
