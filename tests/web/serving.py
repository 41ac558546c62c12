"""The page served for real: an aiohttp application on a free port of this machine, with stand-in services behind it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Literal

import aiohttp
from aiohttp import web

from adapters.shared.operator_operations import OperatorOperation
from adapters.shared.outages import OutageAnswers
from adapters.web.config import PageFacts, ToolServerFacts, WebConfig
from adapters.web.receiver import WebReceiver
from adapters.web.sender import WebSender
from bot.domain import (
    ApprovalView,
    ClickResult,
    Clock,
    Content,
    ConversationReference,
    GrantView,
    Message,
    MessageView,
    PendingApprovals,
    Person,
    Post,
    Search,
    Settled,
    Shown,
    ThreadSummary,
    ThreadView,
    Unknown,
    system_clock,
)
from bot.gateway.thread_ids import is_gateway_thread
from bot.identity.page_identity import PageIdentity, page_identity
from bot.identity.page_people import PagePeople
from bot.identity.ports import OpenIdSignIn
from bot.identity.sessions import Login
from bot.limits import BeginningsHere
from bot.records.sqlite import sqlite_database
from tests.support.empty_database import empty_database
from tests.support.stand_in_services import NO_APPROVAL, StandInServices, subject_of
from tests.support.views import NOW

FACTS = PageFacts(
    is_demo=True,
    mode="default",
    tool_servers=(
        ToolServerFacts("calendar", "up", 5),
        ToolServerFacts("tasks", "down", 0, "It stopped; starting it again in 4 s."),
    ),
)


class WebServices(StandInServices):
    """With whole conversations, as the page shows them: what changes is changed on the page too."""

    def __init__(self, sender: WebSender) -> None:
        super().__init__("web:", ConversationReference("web", "web:one", direct=True))
        self.sender = sender
        self.entries: dict[str, list[MessageView | Post]] = {}
        self.seen_as: dict[str, Literal["owner", "approver", "operator"] | None] = {}
        """As what somebody sees conversations, where they are not their own; `None`: not at all (any more)."""
        self.of: dict[str, str] = {}
        """Thread → whose it is; the others are everybody's."""
        self.stopped_under: frozenset[str] = frozenset()
        """The accounts that the last stop came with."""
        self.titles: dict[str, str] = {}
        self.deleted: set[str] = set()

    async def post(
        self,
        thread_id: str,
        content: Content,
        *,
        only_for: str | None = None,
        at: float = NOW,
        message_id: str | None = None,
    ) -> Post:
        """Say something in a thread; `message_id`: what the model said in that message."""
        place = ConversationReference("web", key=thread_id, address={"thread": thread_id}, direct=True)
        post_id = f"post-{len(self._posts()) + 1}" if message_id is None else f"said:{message_id}"
        post = Post(post_id, thread_id, place, 1, at, content, only_for)
        self.keep(content)
        self.entries.setdefault(thread_id, []).append(post)
        await self.sender.send(post)
        return post

    async def change(self, content: Content) -> None:
        self.keep(content)
        post = next(post for post in self._posts() if subject_of(post.content) == subject_of(content) != "")
        changed = replace(post, revision=post.revision + 1, content=content)
        entries = self.entries[post.thread_id]
        entries[entries.index(post)] = changed
        await self.sender.update(changed, {})

    async def accept(self, message: Message) -> bool:
        if message.text.strip().upper() == self.code:
            return True
        new = await super().accept(message)
        if new:
            view = MessageView(message.key, message.author.name, message.author.person_id, message.text, message.at)
            self.entries.setdefault(message.place.key, []).append(view)
        return new

    async def stop(self, key: str, thread_id: str, person: Person, *, accounts: Collection[str] = ()) -> ClickResult:
        self.stopped_under = frozenset(accounts)
        self.stopped.append((thread_id, person.person_id))
        self.sender.live(thread_id, ConversationReference("web", thread_id), "web:ana").end(waiting=False)
        return Settled("Stopped.")

    async def standing_approval(self, grant_id: str, person: Person) -> GrantView | Unknown:
        giver, grant = self.given.get(grant_id, ("", None))
        return (
            grant
            if grant is not None and giver == person.person_id
            else Unknown("Standing approval no longer available.")
        )

    async def decidable_with(self, approval_id: str, person: Person) -> tuple[str, ...]:
        posts = {subject_of(post.content): post for post in self._posts() if isinstance(post.content, ApprovalView)}
        asked = posts[approval_id].thread_id
        together = (subject for subject, post in posts.items() if post.thread_id == asked)
        return tuple(each for each in together if self.approvals[each].status == "pending" and self._may(each, person))

    async def cards_that_wait(self) -> tuple[int, int, int, int]:
        cards = [post for post in self._posts() if isinstance(post.content, ApprovalView)]
        return len(cards), 0, sum(post.revision for post in cards), 1

    async def pending(self, person: Person, within: str = "", most: int = 16) -> PendingApprovals:
        views = [(post, post.content) for post in self._posts() if isinstance(post.content, ApprovalView)]
        waiting = [(Shown(post, None), view) for post, view in views if view.status == "pending"]
        return PendingApprovals(
            tuple(shown for shown, view in waiting if person.person_id in view.handed_to),
            0,
            tuple(
                shown
                for shown, view in waiting
                if view.requester_ids == (person.person_id,) and person.person_id not in view.handed_to
            ),
        )

    async def decided_by(self, person: Person, most: int = 16) -> tuple[Shown, ...]:
        views = [(post, post.content) for post in self._posts() if isinstance(post.content, ApprovalView)]
        return tuple(
            Shown(post, None) for post, view in views if person.name in view.decided_by and view.status != "pending"
        )

    async def asked_through_programs(self, person: Person, most: int = 16) -> tuple[Shown, ...]:
        return tuple(
            Shown(post, None)
            for post in self._posts()
            if is_gateway_thread(post.thread_id) and not isinstance(post.content, ApprovalView)
            if getattr(post.content, "status", "") == "open" and self.of.get(post.thread_id) == person.person_id
        )

    async def is_operator(self, person: Person) -> bool:
        return person.person_id == self.operator

    async def holds_for(self, subject: str, person: Person) -> bool:
        return True

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        return tuple(Shown(post, None) for post in self._posts() if subject_of(post.content) == subject)

    async def owned(self, person: Person, limit: int = 100) -> tuple[ThreadSummary, ...]:
        return tuple(
            ThreadSummary(
                thread_id,
                self.titles.get(thread_id) or _title(entries),
                max(entry.at for entry in entries),
                _waiting(entries),
                _questions(entries),
            )
            for thread_id, entries in sorted(self.entries.items(), key=lambda item: -item[1][-1].at)
            if self.of.get(thread_id, person.person_id) == person.person_id and not is_gateway_thread(thread_id)
        )[:limit]

    async def search(self, person: Person, text: str) -> Search:
        return Search(tuple(each for each in await self.owned(person) if text.casefold() in each.title.casefold()))

    async def rename(self, thread_id: str, title: str, accounts: Collection[str]) -> ClickResult:
        self.titles[thread_id] = title
        return Settled("Renamed.")

    async def delete(self, key: str, thread_id: str, person: Person, accounts: Collection[str]) -> ClickResult:
        if thread_id not in self.entries:
            return Unknown("There is no such conversation here.")
        del self.entries[thread_id]
        self.deleted.add(thread_id)
        return Settled("Deleted.")

    async def owners_for(self, thread_id: str, person: Person) -> frozenset[str] | None:
        return frozenset([person.person_id])

    async def accounts_of(self, person: Person) -> frozenset[str]:
        return frozenset([person.person_id, "chat:ana"])

    async def card(self, approval_id: str, person: Person) -> ApprovalView | Unknown:
        return self.approvals.get(approval_id, NO_APPROVAL)

    async def seen_among(self, approval_ids: Collection[str], person: Person) -> frozenset[str]:
        return frozenset(approval_ids)

    async def message(self, thread_id: str, key: str) -> MessageView | None:
        entries = (entry for entry in self.entries.get(thread_id, []) if isinstance(entry, MessageView))
        return next((entry for entry in entries if entry.key == key), None)

    async def view(self, thread_id: str, person: Person) -> ThreadView | Unknown:
        seen_as = self.seen_as.get(person.person_id, "owner")
        if seen_as is None or thread_id in self.deleted:
            return Unknown("There is no such conversation here.")
        entries = self.entries.get(thread_id, [])
        seen = [e for e in entries if isinstance(e, MessageView) or e.only_for in (None, person.person_id)]
        return ThreadView(thread_id, _title(entries) if entries else "", tuple(seen), seen_as)

    def _posts(self) -> list[Post]:
        return [entry for entries in self.entries.values() for entry in entries if isinstance(entry, Post)]


def _title(entries: list[MessageView | Post]) -> str:
    return next((entry.text for entry in entries if isinstance(entry, MessageView)), "A conversation")


def _waiting(entries: list[MessageView | Post]) -> int:
    return _questions(entries) + sum(
        1 for e in entries if isinstance(e, Post) and getattr(e.content, "status", "") == "pending"
    )


def _questions(entries: list[MessageView | Post]) -> int:
    return sum(1 for e in entries if isinstance(e, Post) and getattr(e.content, "status", "") == "open")


@dataclass(frozen=True, slots=True)
class Product:
    """The page, served."""

    url: str
    sender: WebSender
    receiver: WebReceiver
    services: WebServices
    identity: PageIdentity | None = None
    """Where somebody has to sign in."""


KEY = b"a2V5IG9mIHRoZSBwYWdlIGluIHRlc3RzLCBub2JvZHk="
"""A Fernet key."""


@asynccontextmanager
async def identity_on_records(
    login: Login = "local",
    open_id: OpenIdSignIn | None = None,
    clock: Clock = system_clock,
    address: str = "",
    domains: Collection[str] = (),
) -> AsyncIterator[PageIdentity]:
    """Who people are, in records of their own."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "records.db"
        empty_database(file)
        database = sqlite_database(file)
        await database.open()
        try:
            yield page_identity(
                database,
                PagePeople(login, issuers=frozenset({open_id.issuer} if open_id else ()), domains=frozenset(domains)),
                clock,
                KEY,
                beginnings=BeginningsHere(monotonic),
                address=lambda: address,
                open_id=open_id,
            )
        finally:
            await database.close()


@asynccontextmanager
async def serve(
    *,
    port: socket.socket | None = None,
    open_id: OpenIdSignIn | None = None,
    clock: Clock = system_clock,
    domains: Collection[str] = (),
    console: Sequence[OperatorOperation] = (),
    is_stopped: Callable[[], bool] = lambda: False,
    **changes: Any,
) -> AsyncIterator[Product]:
    """Serve the page until the block ends.

    Args:
        port: One to use again (`kept_port`), where browsers have kept the page's files.
        changes: Those of the configuration.
    """
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(kept_port() if port is None else port.dup())
        number = listening.getsockname()[1]
        config = replace(WebConfig(host="127.0.0.1", port=number, secret=KEY), **changes)
        identity = None
        if config.needs_sign_in:
            address = config.public_url or f"http://127.0.0.1:{number}"
            identity = await stack.enter_async_context(
                identity_on_records(config.login, open_id, clock, address, domains)
            )
        sender = WebSender(config, identities=identity.identities if identity else None)
        services = WebServices(sender)
        receiver = WebReceiver(
            sender,
            services.services,
            lambda: FACTS,
            clock=clock,
            identity=identity,
            console=console,
            is_stopped=is_stopped,
        )
        application = web.Application(middlewares=[OutageAnswers().middleware])
        application.add_routes(receiver.routes())
        runner = web.AppRunner(application, shutdown_timeout=2)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        try:
            yield Product(f"http://127.0.0.1:{number}", sender, receiver, services, identity)
        finally:
            await receiver.stop()
            await runner.cleanup()


def kept_port() -> socket.socket:
    """A free port of this machine, which stays free for whoever has it until it is closed."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", 0))
    return bound


class Browser:
    """What a browser with the page open sends: cookies, and the session's token with everything that changes things."""

    def __init__(self, http: aiohttp.ClientSession, product: Product) -> None:
        self.http = http
        self.product = product
        self.token = ""

    async def hello(self) -> dict[str, Any]:
        """Begin, or look up, the session."""
        async with self.http.get(f"{self.product.url}/api/session") as response:
            body: dict[str, Any] = await response.json()
        self.token = body["csrf"]
        return body

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and body of a reading."""
        async with self.http.get(f"{self.product.url}{path}", headers=headers) as response:
            return response.status, await response.json()

    async def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and body of an action."""
        headers = {"X-CSRF-Token": self.token} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(f"{self.product.url}{path}", json=body, headers=headers) as response:
            return response.status, await response.json()


@asynccontextmanager
async def browser_of(product: Product, person: str | None = None) -> AsyncIterator[Browser]:
    """A browser with a session, as that person (`web:ben`) or the first one."""
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of IP addresses, as real browsers keep them
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=30)) as http:
        browser = Browser(http, product)
        await browser.hello()
        if person is not None:
            status, _ = await browser.post("/api/session", {"person": person})
            assert status == 200
        yield browser
