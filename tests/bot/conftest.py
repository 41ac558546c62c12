"""Records in a file, a clock that tests set, and a platform that writes down what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bot.crypto import NewId
from bot.domain import AccountFacts, Arrival, ConversationReference, FileReference, Introduction, Post, Unwelcome
from bot.outbox import Outbox
from bot.platform import FetchedFile, Reference
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase, postgres_database
from bot.records.sqlite import SqliteDatabase, sqlite_database
from graph.state import Silent
from tests.bot.services_stage import HERE, THREAD, Stage
from tests.support import postgres_cluster
from tests.support.empty_database import empty_database

if TYPE_CHECKING:
    from tests.bot.routing import Routing

BEGINNING = 1_795_000_000.0
"""Seconds since the epoch: some day in 2026."""


@dataclass
class SetClock:
    """A clock that stands still until it is moved."""

    now: float = BEGINNING

    def __call__(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class RecordingPlatform:
    """Takes every post, unless `failures` says otherwise, and writes down what was done."""

    name: str = "chat"
    done: list[tuple[str, str, int]] = field(default_factory=list)
    """Verb, post and revision, in order; of the calls that went well."""
    shown: dict[str, Post] = field(default_factory=dict)
    """By reference, what can be seen."""
    failures: list[Exception] = field(default_factory=list)
    """Raised by the next calls of `send` and `update`, one each, before anything is shown."""
    lost_answers: int = 0
    """So many of the next posts are shown, and then their sender is not told."""
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """By thread, what its posts have to wait for."""
    begun: list[tuple[str, int]] = field(default_factory=list)
    """Post and revision, of all calls."""
    groups: dict[str, dict[str, bool | None]] = field(default_factory=dict)
    """By group and person, whether they are in it; what is missing cannot be found out."""
    channels: dict[str, set[str]] = field(default_factory=dict)
    """By channel, who is in it; what is missing cannot be found out."""
    emails: dict[str, str] = field(default_factory=dict)
    claims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By person, addresses that it does not vouch for."""
    outsiders: set[str] = field(default_factory=set)
    """Who is no full member."""
    names: dict[str, str] = field(default_factory=dict)
    """By person, the address that this platform vouches for."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Person and group, channel or "account": what was looked up."""
    files: dict[str, bytes] = field(default_factory=dict)
    """By name, what was handed over."""
    silent: asyncio.Event | None = None
    """While it is not set, questions about groups get no answer."""

    async def send(self, post: Post) -> Reference:
        await self._take(post)
        reference = {"number": str(len(self.shown) + 1), "messages": [str(len(self.shown) + 1)]}
        self.shown[reference["number"]] = post
        if self.lost_answers:
            self.lost_answers -= 1
            raise ConnectionResetError("the answer was lost")
        self.done.append(("send", post.post_id, post.revision))
        return reference

    async def update(self, post: Post, reference: Reference) -> Reference:
        await self._take(post)
        self.shown[reference["number"]] = post
        self.done.append(("update", post.post_id, post.revision))
        return reference

    async def find(self, post: Post) -> Reference | None:
        found = [number for number, shown in self.shown.items() if shown.post_id == post.post_id]
        return {"number": found[0], "messages": found[:1]} if found else None

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        return Introduction(arrival.message.author, arrival.message.text)

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        self.asked.append((file.name, "file"))
        return FetchedFile(self.files[file.name])

    def live(self, thread_id: str, place: ConversationReference, reader: str) -> Silent:
        return Silent()

    async def in_group(self, person_id: str, group: str) -> bool | None:
        self.asked.append((person_id, group))
        if self.silent:
            await self.silent.wait()
        return self.groups.get(group, {}).get(person_id)

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        self.asked.append((person_id, channel))
        members = self.channels.get(channel) if person_id.startswith(f"{self.name}:") else None
        return None if members is None else person_id in members

    async def account_of(self, person_id: str) -> AccountFacts:
        self.asked.append((person_id, "account"))
        claimed, is_member = self.claims.get(person_id, ()), person_id not in self.outsiders
        return AccountFacts(self.emails.get(person_id, ""), claimed, is_member)

    async def name_of(self, person_id: str) -> str | None:
        return self.names.get(person_id)

    def named_place(self, reference: str) -> ConversationReference | None:
        return place(reference) if reference.startswith("chat:") else None

    async def _take(self, post: Post) -> None:
        self.begun.append((post.post_id, post.revision))
        if post.thread_id in self.held:
            await self.held[post.thread_id].wait()
        if self.failures:
            raise self.failures.pop(0)


async def until(condition: Callable[[], Any], *, within: float = 30.0) -> Any:
    """Wait until something holds, and return it."""
    async with asyncio.timeout(within):
        while not (found := condition()):
            await asyncio.sleep(0.002)
    return found


def place(key: str = "chat:T1", **more: Any) -> ConversationReference:
    """A place on the recording platform."""
    return ConversationReference(**{"platform": "chat", "key": key, "address": {"room": key}, **more})


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def new_id() -> NewId:
    """Ids that can be told apart at a glance: id1, id2…"""
    numbers = count(1)
    return lambda: f"id{next(numbers)}"


@pytest.fixture
def platform() -> RecordingPlatform:
    return RecordingPlatform()


@pytest.fixture
def platforms(platform: RecordingPlatform) -> Mapping[str, RecordingPlatform]:
    return {platform.name: platform}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An open database with the present schema."""
    made: PostgresDatabase | SqliteDatabase
    if postgres_cluster.is_used():
        made = postgres_database(postgres_cluster.emptied_database(), most_connections=10)
    else:
        path = tmp_path / "records.db"
        empty_database(path)
        made = sqlite_database(path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def stage(
    database: Database, clock: SetClock, new_id: NewId, platforms: Mapping[str, RecordingPlatform]
) -> AsyncIterator[Stage]:
    outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.0)
    async with database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, HERE, "hello", clock())
    yield Stage(database, outbox, clock, new_id)
    await outbox.stop(1.0)


@pytest.fixture
async def routing(database: Database, clock: SetClock, new_id: NewId) -> AsyncIterator[Routing]:
    """The services between two platforms."""
    from tests.bot.routing import Routing  # which imports this module

    made = Routing(database, clock, new_id)
    yield made
    await made.outbox.stop(1.0)
