"""The API, served over real services and records, with tokens that say whom they act for; nothing runs any turns."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp import web

from adapters.api.agent_to_agent.contract import AgentFacts
from adapters.api.operations import Operation
from adapters.api.receiver import ApiReceiver
from adapters.api.resources import place_of
from adapters.api.thread_names import ThreadNames
from adapters.shared.outages import OutageAnswers
from adapters.shared.program_access import ProgramAccessConfig
from adapters.web.config import WebConfig
from adapters.web.sender import WebSender
from bot.accounts.account_services import AccountServices, NoServices
from bot.accounts.ports import Service
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN
from bot.console.access import OperatorAccess
from bot.conversations import Conversations, TurnState
from bot.crypto import NewId
from bot.domain import Message, Notice, Person
from bot.identity.principal import ALL_SCOPES, NotAuthenticated, Principal, Scope
from bot.outbox import Outbox, notice, said
from bot.prices import NO_PRICES
from bot.records import approvals, attempts, connections, deliveries, posts
from bot.records.connections import ConnectionRow
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from bot.rules.counting import RuleCounts
from bot.rules.reports import RuleReports
from bot.usage import UsageReports
from graph.agents import ONLY_DEFAULT
from graph.interrupts import ClarificationAsked
from graph.ports import CallRecord, SignInNeeded, Spoken
from policies.approvers import digest_of
from policies.model import Mode, Tool
from policies.policy_file import parse_policy
from tests.bot.conftest import SetClock
from tests.bot.routing import MAKE, make
from tests.bot.rows import asked
from tests.bot.stubs import NotedEngine, make_console, make_parts, no_tools

ANA, BEN, CHLOE, OLGA = (Person(f"web:{name}", name.capitalize()) for name in ("ana", "ben", "chloe", "olga"))
"""Who asks, who may decide, somebody else, and an operator."""
LAMP = digest_of(MAKE, {"what": "lamp"})
ORIGIN = "https://app.example"
"""Whose pages may use the API."""


class OneService(NoServices):
    """Lets people connect an account at one service. Fills `OutsideServices`."""

    _board = Service("board", "Board", ("read",))

    def service(self, connection: str) -> Service | None:
        """The one."""
        return self._board if connection == "board" else None

    def services(self) -> Sequence[Service]:
        """It alone."""
        return [self._board]


class NotedConversations(Conversations):
    """Counts how often it is asked where a turn stands."""

    whole = 0
    """How often for all of it."""
    short = 0
    """How often only whether anything has changed."""

    async def turn(self, thread_id: str, key: str, reader: Collection[str]) -> TurnState | None:
        """As it is."""
        self.whole += 1
        return await super().turn(thread_id, key, reader)

    async def is_at_rest(self, thread_id: str, key: str) -> bool:
        """As it is."""
        self.short += 1
        return await super().is_at_rest(thread_id, key)

    async def marks(self, thread_id: str, key: str, turn: str) -> tuple[Any, ...]:
        """As they are."""
        self.short += 1
        return await super().marks(thread_id, key, turn)


class AnsweringEngine(NotedEngine):
    """Handles every delivery at once: the bot says what somebody wrote, and decisions let nothing run."""

    def __init__(self, served: ServedApi) -> None:
        super().__init__()
        self._served = served
        self._handling: set[asyncio.Task[None]] = set()
        self.at_work = asyncio.Lock()
        """Whoever holds it lets it handle nothing."""

    def wake(self, thread_id: str) -> None:
        """Handle what there is."""
        super().wake(thread_id)
        task = asyncio.create_task(self._handle(thread_id))
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    async def rest(self) -> None:
        """Wait until all is handled."""
        while self._handling:
            await asyncio.gather(*self._handling)

    async def _handle(self, thread_id: str) -> None:
        async with self.at_work:
            while True:
                async with self._served.database.writing(UNLOCKED) as tx:
                    head = await deliveries.head(tx, thread_id, self._served.clock())
                    if head is None:
                        return
                    if head.kind == "message":
                        await self._served.outbox.say(tx, said(thread_id, Spoken(f"{head.key}.0", head.body["text"])))
                    await deliveries.done(tx, head.key)


@dataclass
class Tokens:
    """Whom which token acts for."""

    people: dict[str, Principal] = field(default_factory=dict)

    def of(self, person: Person, *scopes: Scope) -> str:
        """A token of this person's; without scopes, with all."""
        token = f"{person.name}-{'-'.join(scopes)}"
        self.people[token] = Principal(person, frozenset(scopes) or ALL_SCOPES, "token", key=f"token:{token}")
        return token

    async def principal(self, authorization: str, resources: Collection[str] = ()) -> Principal | NotAuthenticated:
        """Fills `adapters.shared.program_access.Authenticates`."""
        found = self.people.get(authorization.removeprefix("Bearer "))
        return found or NotAuthenticated("The token is not accepted.")

    async def keys_left(self, keys: Collection[str], now: float) -> frozenset[str]:
        """Likewise."""
        return frozenset(each.key for each in self.people.values()) & frozenset(keys)


@dataclass(frozen=True)
class ApiAnswer:
    """What a request got."""

    status: int
    body: Any
    headers: Mapping[str, str]


class ApiUser:
    """Somebody who uses the API with a token; without one as nobody."""

    def __init__(self, served: ServedApi, http: aiohttp.ClientSession, token: str) -> None:
        self.url = served.url
        self.http = http
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> ApiAnswer:
        """One request; its JSON, or its text."""
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, f"{self.url}{path}", json=body, headers=sent) as response:
            text = await response.text()
            is_json = response.content_type.endswith("json")
            return ApiAnswer(response.status, json.loads(text) if is_json else text, response.headers)

    async def get(self, path: str, **headers: str) -> ApiAnswer:
        """Read something."""
        return await self.ask("GET", f"/api/v1/{path}", **headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> ApiAnswer:
        """Do something."""
        return await self.ask("POST", f"/api/v1/{path}", {} if body is None else body, **headers)

    async def delete(self, path: str) -> ApiAnswer:
        """End something."""
        return await self.ask("DELETE", f"/api/v1/{path}")

    @asynccontextmanager
    async def events(self, thread_id: str, last: str = "") -> AsyncIterator[EventReader]:
        """The event stream of a conversation."""
        sent = self.headers | ({"Last-Event-ID": last} if last else {})
        async with self.http.get(f"{self.url}/api/v1/threads/{thread_id}/events", headers=sent) as response:
            yield EventReader(response)


@dataclass(frozen=True)
class StreamedEvent:
    """One event."""

    name: str
    data: Any
    event_id: str


class EventReader:
    """Reads an event stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> StreamedEvent | None:
        """The next event; `None`: the stream has ended."""
        fields: dict[str, str] = {}
        async for line in self.response.content:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "" and "data" in fields:
                return StreamedEvent(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
            fields = fields | {name: value} if name else {}
        return None

    async def until_end(self) -> bool:
        """Wait for the end of the stream."""
        while await self.next() is not None:
            pass
        return True

    async def until(self, name: str) -> list[StreamedEvent]:
        """The events up to the first of this name."""
        seen = []
        while (event := await self.next()) is not None:
            seen.append(event)
            if event.name == name:
                return seen
        raise AssertionError(f"the stream ended before {name}: {seen}")


class ServedApi:
    """The API, and what there is in the records."""

    def __init__(self, database: Database, clock: SetClock, new_id: NewId) -> None:
        self.database, self.clock, self.tokens = database, clock, Tokens()
        self.engine = AnsweringEngine(self)
        self.sender = WebSender(WebConfig("127.0.0.1", 1, secret=b"sixteen bytes or more", people=(ANA, BEN, CHLOE)))
        platforms = {"web": self.sender}
        self.outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.005)
        self.parts = make_parts(
            database,
            self.outbox,
            clock,
            new_id,
            platforms=platforms,
            find_tool=make,
            engine=self.engine,
            outside=AccountServices(OneService()),
            links_an_hour=3,
        )
        self.conversations = NotedConversations(
            database,
            self.parts.directory,
            clock,
            PLAIN,
            queries=self.parts.services.queries,
            is_operator=self._is_operator,
            note_reading=AuditLog(database, clock, PLAIN).read,
        )
        usage = UsageReports(
            database,
            self.parts.directory,
            clock,
            NO_PRICES,
            is_operator=self._is_operator,
            note_reading=AuditLog(database, clock, PLAIN).read,
        )
        console = make_console(database, self.outbox, clock, new_id, engine=self.engine, is_operator=self._is_operator)
        self.policy = parse_policy("version: 1\nrules: []\n", "rules.yaml")
        rules = RuleReports(
            database,
            OperatorAccess(self._is_operator, AuditLog(database, clock, PLAIN).read),
            self.parts.directory,
            clock,
            lambda: self.policy,
            counts=RuleCounts(database),
            agents=ONLY_DEFAULT,
            find_tool=make,
            list_tools=no_tools,
            mode=Mode.DEFAULT,
        )
        self.services = replace(
            self.parts.services, conversations=self.conversations, usage=usage, console=console, rules=rules
        )
        self.url = ""
        self.receiver: ApiReceiver | None = None

    async def _is_operator(self, person: Person) -> bool:
        return person == OLGA

    @property
    def operations(self) -> Sequence[Operation]:
        """All that the API can do."""
        assert self.receiver is not None
        return self.receiver.operations

    # ------------------------------------------------------------------------------- what there is

    async def open(self, thread_id: str, person: Person = ANA) -> None:
        """Somebody begins a conversation."""
        await self.services.inbox.open(place_of(thread_id), person)

    async def write(self, thread_id: str, text: str = "Make a lamp", person: Person = ANA) -> str:
        """Somebody writes in a conversation; the key of the message."""

        key = f"{thread_id}:m{self.clock()}"
        self.clock.move(1)
        owners = frozenset([person.person_id])
        await self.services.inbox.accept(Message(key, place_of(thread_id), person, text, self.clock(), owners=owners))
        await self.engine.rest()
        return key

    async def say(self, thread_id: str, message: str, text: str = "Done.") -> str:
        """The bot answers a message; the id of its post."""
        self.clock.move(1)
        post = said(thread_id, Spoken(f"{message}.9", text))
        await self.post(post)
        return post.key

    async def notify(self, thread_id: str, text: str) -> None:
        """The bot says a sentence of its own."""
        await self.post(notice(f"note {self.clock()}", thread_id, Notice(text)))

    async def post(self, post: NewPost) -> None:
        """Something is shown."""
        async with self.database.writing(UNLOCKED) as tx:
            await self.outbox.say(tx, post)

    async def wait_for(self, thread_id: str, message: str, call: int = 0, **how: Any) -> str:
        """A call waits for Ana or Ben; the approval's id."""
        self.clock.move(1)
        how = {"requesters": (ANA.person_id,), "approvers": (ANA.person_id, BEN.person_id), "digest": LAMP, **how}
        request = asked(f"{message}.{call}.0", **how)
        async with self.database.writing(UNLOCKED) as tx:
            await self.parts.requests.record(tx, thread_id, request)
            row = await approvals.of_call(tx, request.call_id, 1)
        assert row is not None
        return row.approval_id

    async def question(self, thread_id: str, message: str) -> str:
        """The model asks Ana; the question's id."""
        request = ClarificationAsked(call_id=f"{message}.1.0", question="Which lamp?", requester=ANA.person_id)
        async with self.database.writing(UNLOCKED) as tx:
            await self.services.questions.record(tx, thread_id, request)
        return await self._subject(thread_id, "clarification")

    async def sign_in(self, thread_id: str, message: str) -> str:
        """A server sends Ana to a page; the sign-in's id."""
        needed = SignInNeeded("https://board.example.com/start", "Please sign in.")
        return await self.parts.sign_ins.ask(thread_id, f"{message}.2.0", ANA.person_id, "workshop", needed)

    async def outcome(self, thread_id: str, message: str, number: int = 3) -> str:
        """It is not known what came of a call of Ana's; its id."""
        record = CallRecord(
            thread_id,
            f"{message}.{number}.0",
            ANA.person_id,
            Tool("workshop", "make"),
            {"what": "lamp"},
            "d",
            None,
            True,
            None,
        )
        async with self.database.writing(UNLOCKED) as tx:
            attempt_id = f"t{number}"
            await attempts.add(tx, attempt_id, 1, record, approval_id=None, judged=None, now=self.clock())
            await attempts.end(tx, record.call_id, 1, "unknown", now=self.clock(), text=None)
            await self.outbox.say(tx, NewPost(f"outcome:{attempt_id}", thread_id, "outcome", subject=attempt_id))
        return attempt_id

    async def account(self, person: Person = ANA) -> str:
        """Somebody has connected an account; the connection's id."""
        connection_id = f"account of {person.name}".replace(" ", "-")
        row = ConnectionRow(
            connection_id,
            person.person_id,
            "board",
            "Board",
            "a@b.example",
            ["read"],
            "active",
            1,
            "",
            self.clock(),
            None,
        )
        async with self.database.writing(UNLOCKED) as tx:
            await connections.put(tx, row)
        return connection_id

    async def always(self, approval_id: str, person: Person = ANA) -> str:
        """Somebody always allows a call; the id of that."""
        async with self.database.writing(UNLOCKED) as tx:
            row = await approvals.get(tx, approval_id)
            assert row is not None
            await self.parts.standing_approvals.give(
                tx, row, person.person_id, 3600.0, arguments={"what": "lamp"}, digest=LAMP
            )
        return (await self.services.queries.standing_approvals(person))[0].grant_id

    async def _subject(self, thread_id: str, kind: str) -> str:
        async with self.database.reading() as tx:
            rows = [row for row in await posts.of_thread(tx, thread_id, 100) if row.kind == kind]
        return rows[-1].subject or ""


@asynccontextmanager
async def served_api(database: Database, clock: SetClock, new_id: NewId) -> AsyncIterator[ServedApi]:
    """The API on loopback until the block ends."""
    served = ServedApi(database, clock, new_id)
    sender = served.sender
    served.receiver = ApiReceiver(
        ProgramAccessConfig(None, "https://bot.example", (ORIGIN,)),
        served.services,
        served.tokens,
        clock,
        names=ThreadNames(b"key", served.services.conversations),
        hub=sender.hub,
        board=sender.board,
        show_message=sender.show_message,
        messages_a_minute=20,
        hitl_timeout_seconds=5.0,
        agent=AgentFacts(lambda: ["calendar", "tasks"], "https://issuer.example"),
    )
    application = web.Application(middlewares=[OutageAnswers().middleware])
    application.add_routes(served.receiver.routes())
    application.on_shutdown.append(sender.end_streams)
    runner = web.AppRunner(application, shutdown_timeout=1.0)
    await served.outbox.start()
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    served.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield served
    finally:
        await runner.cleanup()
        await served.engine.rest()
        await served.outbox.stop(1.0)
        await sender.close()
        await served.parts.directory.close()
