"""What a conversation is handled with, on real records, with stand-ins for the agent and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from bot.approvals import ApprovalBook, FindPlace
from bot.clarifications import ClarificationBook
from bot.clock import Clock
from bot.connections import SignInBook
from bot.conversation import Conversation, Surroundings
from bot.desk import Books
from bot.ids import NewId
from bot.inbox.accept import Acceptance
from bot.inbox.engine import Engine
from bot.inbox.sessions import Sessions
from bot.introductions import Introductions
from bot.platform import Platform
from bot.posts import Posts
from bot.presence import Presence
from bot.records.database import Database
from bot.secrets import Sealer
from bot.waits import Waits
from graph.ports import Live, Spoken
from graph.running import Agent, Look
from graph.state import Turn

SECRET = "https://accounts.example.com/start?ticket=top-secret-ticket"
REST = Look(delivery=None, verb=None, at_rest=True, waits=(), turn=None, spoken=())


@dataclass
class FragileAgent:
    """An agent that answers, except to the messages it cannot take."""

    unable: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    settles: bool = True

    async def look(self, thread_id: str) -> Look:
        return REST

    async def begin(self, turn: Turn, text: str, live: Live, *, background: str = "") -> Look:
        self.begun.append(text)
        if text in self.unable:
            raise RuntimeError(f"cannot take it, see {SECRET}")
        spoken = Spoken(f"{turn['delivery']}.0", f"You said: {text}")
        return replace(REST, delivery=turn["delivery"], verb="run", turn=turn, spoken=(spoken,))

    async def settle(self, thread_id: str, delivery: str, why: str) -> Look:
        self.settled.append(why)
        if not self.settles:
            raise RuntimeError("cannot settle either")
        return REST

    async def prune(self, thread_id: str, look: Look) -> None:
        pass


@dataclass
class NotedEngine:
    """An engine that handles nothing and notes what it is told."""

    woken: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)

    def wake(self, thread_id: str) -> None:
        self.woken.append(thread_id)

    def look_again(self) -> None:
        pass

    def interrupt(self, thread_id: str) -> None:
        self.interrupted.append(thread_id)


def make_books(
    database: Database, posts: Posts, clock: Clock, new_id: NewId, find_place: FindPlace = lambda _: None
) -> Books:
    """Where questions to people are kept."""
    approvals = ApprovalBook(
        database, posts, clock, new_id, find_tool=lambda _: None, find_place=find_place, timer_set=lambda: None
    )
    questions = ClarificationBook(posts, clock, new_id)
    sign_ins = SignInBook(database, posts, clock, new_id, Sealer(b"A" * 43 + b"="))
    presence = Presence(database, posts, Waits(approvals, questions, sign_ins, posts), clock)
    return Books(Acceptance(database, Sessions(), clock), approvals, questions, sign_ins, presence)


def make_conversation(
    database: Database,
    posts: Posts,
    clock: Clock,
    books: Books,
    agent: FragileAgent,
    engine: Engine,
    platforms: Mapping[str, Platform] | None = None,
) -> Conversation:
    """A conversation with this agent; its live view goes to nobody."""
    waits = Waits(books.approvals, books.clarifications, books.sign_ins, posts)
    introductions = Introductions(database, platforms or {}, clock)
    surroundings = Surroundings(
        database, cast("Agent", agent), posts, waits, books.clarifications, introductions, platforms or {}, clock
    )
    return Conversation(surroundings, engine)
