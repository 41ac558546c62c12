"""What a conversation is handled with, on real records, with stand-ins for the agent and the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

from bot.accounts.office import Inside, Outside, make_office
from bot.approvals.directory import Directory, Facts
from bot.approvals.requests import ApprovalBook
from bot.audit.log import AuditLog
from bot.books import Books
from bot.cards import Cards, FindPlace
from bot.clarifications import ClarificationBook
from bot.clock import Clock
from bot.conversation import Conversation, Surroundings
from bot.grants import GrantBook
from bot.handing import Handing
from bot.ids import NewId
from bot.inbox.accept import Acceptance
from bot.inbox.engine import Engine
from bot.inbox.sessions import Sessions
from bot.introductions import Introductions
from bot.limits import NO_LIMIT, TurnLimit
from bot.masking import PLAIN
from bot.platform import Platform
from bot.posts import Posts
from bot.presence import Presence
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.secrets import Sealer
from bot.voting import FindTool, Voting
from bot.waits import Waits
from graph.ports import Live, Spoken, Unfinished
from graph.running import Agent, Look, Verb
from graph.state import Turn

KEY = b"A" * 43 + b"="
SECRET = "https://accounts.example.com/start?ticket=top-secret-ticket"
REST = Look(delivery=None, verb=None, at_rest=True, waits=(), turn=None, spoken=())


@dataclass
class FragileAgent:
    """An agent that answers, except to the messages it cannot take."""

    unable: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    settles: bool = True
    broken_off: bool = False
    """Whether the thread stands where a process died in a decision's run."""
    gone_on: int = 0

    async def look(self, thread_id: str) -> Look:
        # Some turn there was, or nothing could be decided; whose, the records say.
        before = replace(REST, turn=cast("Turn", dict.fromkeys(Turn.__annotations__, "")))
        return replace(before, at_rest=False, delivery="earlier", verb="resume") if self.broken_off else before

    async def go_on(self, thread_id: str, delivery: str, verb: Verb, live: Live) -> Look:
        self.gone_on += 1
        self.broken_off = False
        return REST

    async def begin(self, turn: Turn, text: str, live: Live, *, background: str = "") -> Look:
        self.begun.append(text)
        if text in self.unable:
            raise RuntimeError(f"cannot take it, see {SECRET}")
        spoken = Spoken(f"{turn['delivery']}.0", f"You said: {text}")
        return replace(REST, delivery=turn["delivery"], verb="run", turn=turn, spoken=(spoken,))

    async def settle(self, thread_id: str, delivery: str, why: str, *, unfinished: Unfinished | None = None) -> Look:
        self.settled.append(why)
        if not self.settles:
            raise RuntimeError("cannot settle either")
        self.broken_off = False
        return REST

    async def prune(self, thread_id: str, look: Look) -> None:
        pass


@dataclass
class NotedEngine:
    """An engine that handles nothing and notes what it is told."""

    woken: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)
    timers_set: int = 0
    begun: set[str] = field(default_factory=set)

    def wake(self, thread_id: str) -> None:
        self.woken.append(thread_id)

    def look_again(self) -> None:
        self.timers_set += 1

    def interrupt(self, thread_id: str) -> None:
        self.interrupted.append(thread_id)

    @asynccontextmanager
    async def held_back(self, thread_id: str) -> AsyncIterator[None]:
        yield

    def has_begun(self, delivery: Delivery) -> bool:
        return delivery.key in self.begun


def make_books(
    database: Database,
    posts: Posts,
    clock: Clock,
    new_id: NewId,
    find_place: FindPlace = lambda _: None,
    *,
    platforms: Mapping[str, Platform] | None = None,
    find_tool: FindTool = lambda _: None,
    engine: Engine | None = None,
    outside: Outside | None = None,
) -> Books:
    """Where questions to people are kept; `platforms` are asked about them."""
    cards = Cards(posts, find_place)
    facts = Facts(database, Directory(platforms or {}, database, clock), clock)
    engine = engine or NotedEngine()
    approvals = ApprovalBook(
        database, posts, cards, clock, new_id, introduce=facts.introduce, timer_set=engine.look_again
    )
    grants = GrantBook(database, clock, new_id)
    audit = AuditLog(database, clock, PLAIN)
    voting = Voting(database, posts, facts, grants, clock, find_tool=find_tool, audit=audit)
    handing = Handing(database, posts, cards, facts, clock)
    questions = ClarificationBook(posts, clock, new_id)
    inside = Inside(database, posts, engine, clock, new_id, Sealer(KEY), platforms or {})
    office = make_office(inside, outside or Outside(), links_an_hour=NO_LIMIT)
    sign_ins = office.sign_ins
    presence = Presence(database, posts, Waits(approvals, questions, sign_ins, posts), clock)
    acceptance = Acceptance(database, Sessions(), clock)
    asked = (approvals, voting, handing, grants, facts, questions, sign_ins, office.codes, office.connections)
    return Books(acceptance, *asked, presence)


def make_conversation(
    database: Database,
    posts: Posts,
    clock: Clock,
    books: Books,
    agent: FragileAgent,
    engine: Engine,
    platforms: Mapping[str, Platform] | None = None,
    turn_limit: TurnLimit | None = None,
) -> Conversation:
    """A conversation with this agent; its live view goes to nobody."""
    waits = Waits(books.approvals, books.clarifications, books.sign_ins, posts)
    introductions = Introductions(database, platforms or {}, clock, books.codes)
    surroundings = Surroundings(
        database,
        cast("Agent", agent),
        posts,
        waits,
        books.clarifications,
        introductions,
        platforms or {},
        clock,
        turn_limit or TurnLimit(clock, per_person=NO_LIMIT, per_thread=NO_LIMIT),
    )
    return Conversation(surroundings, engine)
