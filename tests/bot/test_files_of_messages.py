"""Files of messages: tried again where their platform does not give them now; how they are had is forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
import sqlalchemy as sa

from adapters.files.reader import ChildFileReader
from bot.crypto import NewId
from bot.domain import ConversationReference, FileReference, Introduction, Message, Notice, Person, Unwelcome
from bot.files import LARGEST_FILE, LARGEST_NOTED, MOST_FETCHES, UNUSED_SECONDS, Files, UploadRefused
from bot.platform import FetchedFile, FileNotFetched, PostFailed
from bot.records import deliveries, files, tables, threads
from bot.records.database import Database
from tests.bot.conftest import RecordingPlatform, SetClock, until
from tests.bot.services_stage import ANA, BEN, HERE, THREAD, Stage
from tests.bot.stubs import FragileAgent, make_turn_handler

LINK = "https://files.example/secret-of-a-link"
FILE = FileReference("a.txt", "text/plain", 5, {"link": LINK})


def message(*handed_over: FileReference, author: Person = ANA, addressed: bool = True) -> Message:
    return Message("m1", HERE, author, "look", 0.0, addressed, files=handed_over)


@dataclass
class Giving(RecordingPlatform):
    """A platform that fails to give a file so many times."""

    failures_to_fetch: list[Exception] = field(default_factory=list)
    fetched: FetchedFile = field(default_factory=lambda: FetchedFile(b"hello"))
    refuses: bool = False

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        if self.failures_to_fetch:
            raise self.failures_to_fetch.pop(0)
        return self.fetched

    async def introduce(self, arrival: object) -> Introduction | Unwelcome:
        return Unwelcome("Not you.") if self.refuses else Introduction(ANA, "look")


@pytest.fixture
def platform() -> Giving:
    return Giving()


@pytest.fixture
async def taking(
    stage: Stage, database: Database, clock: SetClock, new_id: NewId, platforms: Mapping[str, Giving]
) -> AsyncIterator[Files]:
    yield Files(database, ChildFileReader(), platforms, stage.outbox, clock, new_id=new_id)


async def sources(stage: Stage) -> list[object]:
    async with stage.database.reading() as tx:
        rows = await tx.all(sa.select(tables.deliveries.c.body))
    return [each["source"] for row in rows for each in row.body.get("files", ())]


async def told(platform: Giving) -> str:
    def notices() -> list[str]:
        return [post.content.text for post in platform.shown.values() if isinstance(post.content, Notice)]

    return str((await until(notices))[0])


async def test_what_cannot_be_had_now_is_tried_again_and_in_the_end_said(
    stage: Stage, taking: Files, platform: Giving
) -> None:
    """A turn does not wait for hours for one file."""
    platform.failures_to_fetch = [PostFailed("download: http_503")] * MOST_FETCHES
    for tries in range(MOST_FETCHES - 1):
        with pytest.raises(PostFailed):
            await taking.taken_in(message(FILE), THREAD, tries)
    (carried,) = await taking.taken_in(message(FILE), THREAD, MOST_FETCHES - 1)
    assert carried["reason"] == "I couldn’t get it. Send it again later"
    assert "a.txt: I couldn’t get it" in await told(platform)


async def test_what_a_platform_says_of_a_file_only_when_it_is_asked_counts(taking: Files, platform: Giving) -> None:
    unnamed = FileReference("", source={"id": "F1"})
    platform.fetched = FetchedFile(b"a,b\n1,2\n", "table.csv", "text/csv")
    (carried,) = await taking.taken_in(message(unnamed), THREAD)
    assert (carried["name"], "| 1 | 2 |" in carried["text"]) == ("table.csv", True)


async def test_a_file_that_is_not_had_is_said_by_the_name_that_its_platform_knows(
    taking: Files, platform: Giving
) -> None:
    platform.failures_to_fetch = [FileNotFetched("it isn’t kept here", "plan.docx")]
    await taking.taken_in(message(FileReference("", source={"id": "F1"})), THREAD)
    assert "plan.docx: it isn’t kept here" in await told(platform)


async def test_a_file_of_any_size_can_be_noted(stage: Stage, taking: Files) -> None:
    """Teams takes 250 GB, which is more than PostgreSQL's integers."""
    await taking.taken_in(message(replace(FILE, size=250 * 10**9)), THREAD)
    async with stage.database.reading() as tx:
        (row,) = await files.of_message(tx, "m1")
    assert row.size == LARGEST_NOTED


# --------------------------------------------------------------------------------------------- what is not kept


async def test_what_was_uploaded_and_never_sent_is_forgotten_after_an_hour(
    stage: Stage, taking: Files, clock: SetClock
) -> None:
    old = await taking.upload(ANA.person_id, "old.txt", "", b"old")
    clock.move(UNUSED_SECONDS / 2)
    new = await taking.upload(BEN.person_id, "new.txt", "", b"new")
    clock.move(UNUSED_SECONDS / 2 + 1)
    await taking.forget_unused()
    async with stage.database.reading() as tx:
        assert [await files.get(tx, row.file_id) for row in (old, new)] == [None, new]


async def test_nothing_is_kept_of_a_file_whose_conversation_was_deleted_while_it_was_read(
    stage: Stage, taking: Files
) -> None:
    await stage.services.inbox.accept(message(FILE))
    async with stage.database.writing(THREAD) as tx:
        await threads.delete(tx, THREAD, stage.clock())
    assert await taking.taken_in(message(FILE), THREAD) == []
    async with stage.database.reading() as tx:
        assert await files.of_message(tx, "m1") == []


def test_one_person_s_uploads_leave_room_for_those_of_others(taking: Files) -> None:
    with taking.arriving("web:ana", None):
        with pytest.raises(UploadRefused, match="Too many files"), taking.arriving("web:ana", 1):
            pass
        with taking.arriving("web:ben", LARGEST_FILE), taking.arriving("web:chloe", LARGEST_FILE // 4):
            with pytest.raises(UploadRefused), taking.arriving("web:dora", LARGEST_FILE):
                pass
            with taking.arriving("web:dora", 1_000), taking.arriving("web:dora", 1_000):
                pass
    with taking.arriving("web:ana", None):
        pass


# ------------------------------------------------------------------ a link that opens a file is in no record for long


async def test_how_a_file_is_had_is_forgotten_with_a_message_that_is_taken_back(stage: Stage) -> None:
    await stage.services.inbox.accept(message(FILE))
    assert await sources(stage) == [{"link": LINK}]
    assert await stage.services.inbox.withdraw("m1")
    assert await sources(stage) == [{}]


@pytest.mark.parametrize("ending", ["turned away", "given up"])
async def test_how_a_file_is_had_is_forgotten_whatever_becomes_of_the_message(
    stage: Stage, platforms: Mapping[str, Giving], platform: Giving, ending: str
) -> None:
    platform.refuses = ending == "turned away"
    agent = FragileAgent(unable={"look"} if ending == "given up" else set())
    await stage.services.inbox.accept(message(FILE))
    handler = make_turn_handler(stage.database, stage.outbox, stage.clock, stage.parts, agent, stage.engine, platforms)
    while True:
        async with stage.database.reading() as tx:
            head = await deliveries.head(tx, THREAD, 1e12)
        if head is None:
            break
        await handler.handle(head)
    assert await sources(stage) == [{}]
