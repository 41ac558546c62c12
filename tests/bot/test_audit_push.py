"""The audit log is pushed to a SIEM: every entry, in order, whatever fails and whoever is killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from adapters.siem.collector import EventCollector
from bot.audit.entries import Link
from bot.audit.ocsf import LogSource
from bot.audit.pushing import (
    FIRST_PAUSE,
    HELD_SECONDS,
    LARGEST_BATCH,
    LONGEST_PAUSE,
    LOOK_SECONDS,
    MOST_EVENTS,
    REFUSED_PAUSE,
    AuditPush,
    NotTaken,
    batch_of,
    destination_of,
    pause_after,
)
from bot.records import audit, tables
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from tests.audit.calls import chain, ended
from tests.bot.conftest import BEGINNING, SetClock
from tests.fakes.siem import TOKEN, FakeSiem, Trouble, fake_siem
from tests.support.certificates import certificate_of
from tests.support.replicas import two_databases

HERE = LogSource("1", None)


@pytest.fixture
async def siem() -> AsyncIterator[FakeSiem]:
    async with fake_siem() as running:
        yield running


class Sender:
    """A process that pushes."""

    def __init__(self, database: Database, clock: SetClock, siem: FakeSiem, name: str = "one") -> None:
        self.collector = EventCollector(siem.url, TOKEN)
        destination = destination_of(siem.url)
        self.push = AuditPush(
            database, clock, self.collector, HERE, destination=destination, me=name, chance=lambda: 1.0
        )

    async def sends_all(self) -> None:
        """Look until there is nothing more to do now."""
        while not await self.push.look():
            pass


@pytest.fixture
async def sender(database: Database, clock: SetClock, siem: FakeSiem) -> AsyncIterator[Sender]:
    made = Sender(database, clock, siem)
    yield made
    await made.collector.close()


async def keep(database: Database, links: Sequence[Link]) -> None:
    async with database.writing(UNLOCKED) as tx:
        for link in links:
            await audit.add(tx, link, at=BEGINNING + link.seq)


def entries(count: int) -> list[Link]:
    return chain(*(ended(number) for number in range(1, count + 1)))


def upto(last: int) -> list[int]:
    return list(range(1, last + 1))


# -------------------------------------------------------------------------------------------------- as it should be


async def test_every_entry_is_pushed_once_and_in_order_with_its_hash(
    database: Database, siem: FakeSiem, sender: Sender
) -> None:
    links = entries(2 * MOST_EVENTS + 5)
    await keep(database, links)
    await sender.sends_all()
    assert [event["metadata"]["uid"] for event in siem.events] == [link.hash for link in links]
    assert siem.sizes == [MOST_EVENTS, MOST_EVENTS, 5]
    assert siem.tokens == {f"Bearer {TOKEN}"}


async def test_what_is_written_later_follows_and_nothing_is_sent_while_there_is_nothing(
    database: Database, siem: FakeSiem, sender: Sender
) -> None:
    await sender.sends_all()
    assert siem.sizes == []
    links = entries(5)
    await keep(database, links[:2])
    await sender.sends_all()
    await sender.sends_all()
    await keep(database, links[2:])
    await sender.sends_all()
    assert (siem.numbers, siem.sizes) == (upto(5), [2, 3])


async def test_a_new_destination_gets_the_log_from_its_beginning(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(3))
    await sender.sends_all()
    async with fake_siem() as another:
        second = Sender(database, clock, another)
        await second.sends_all()
        await second.collector.close()
    assert (siem.numbers, another.numbers) == (upto(3), upto(3))


async def test_over_https_nothing_goes_to_whom_this_machine_does_not_trust(
    database: Database, clock: SetClock, tmp_path: Path
) -> None:
    await keep(database, entries(1))
    async with fake_siem(certificate_of("localhost", tmp_path)) as siem:
        sender = Sender(database, clock, siem)
        await sender.sends_all()
        assert siem.sizes == []
        assert "certificate is not trusted" in (await sender.push.health())["problem"]
        await sender.collector.close()


# ----------------------------------------------------------------------------------------------------- what goes wrong


async def test_a_service_that_fails_is_tried_again_after_pauses_that_double(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(1))
    siem.troubles.extend([Trouble(503), Trouble(503), Trouble(500)])
    for pause in (1.0, 2.0, 4.0):
        await sender.sends_all()
        tried = len(siem.sizes)
        clock.move(pause - 0.1)
        await sender.sends_all()
        assert len(siem.sizes) == tried
        clock.move(0.2)
    await sender.sends_all()
    assert siem.numbers == [1]
    assert await sender.push.health() == {
        "pushed": 1,
        "waiting": 0,
        "last": (await sender.push.health())["last"],
        "problem": None,
    }


async def test_a_service_that_asks_to_wait_is_waited_for_also_by_another_process(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(1))
    other = Sender(database, clock, siem, "two")
    siem.troubles.extend([Trouble(429, {"Retry-After": "100"}), Trouble(429, {"Retry-After": "100"})])
    await sender.sends_all()
    await other.sends_all()  # as a process that starts does
    clock.move(99)
    await sender.sends_all()
    await other.sends_all()
    assert len(siem.sizes) == 2
    clock.move(2)
    await other.sends_all()
    assert siem.numbers == [1]
    await other.collector.close()


async def test_a_service_that_says_until_when_by_a_date_is_waited_for(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(1))
    sent, until = "Sat, 28 Nov 2026 23:59:30 GMT", "Sun, 29 Nov 2026 00:01:10 GMT"
    siem.troubles.append(Trouble(503, {"Date": sent, "Retry-After": until}))
    await sender.sends_all()
    clock.move(99)
    await sender.sends_all()
    assert len(siem.sizes) == 1
    clock.move(2)
    await sender.sends_all()
    assert siem.numbers == [1]


@pytest.mark.parametrize("until", ["soon", "Sun, 99 Nov 2026 00:01:10 GMT", "nan", "5, 7"])
async def test_a_service_that_says_nothing_readable_of_when_is_tried_again_as_ever(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender, until: str
) -> None:
    await keep(database, entries(1))
    siem.troubles.append(Trouble(503, {"Retry-After": until}))
    await sender.sends_all()
    clock.move(FIRST_PAUSE)
    await sender.sends_all()
    assert siem.numbers == [1]


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404])
async def test_a_refusal_is_said_and_neither_repeated_at_once_nor_skipped(
    database: Database,
    clock: SetClock,
    siem: FakeSiem,
    sender: Sender,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await keep(database, entries(3))
    siem.troubles.extend([Trouble(status, {"Location": "/elsewhere"})] * 2)
    await sender.sends_all()
    health = await sender.push.health()
    assert (health["pushed"], health["waiting"]) == (0, 3)
    assert str(status) in health["problem"]
    clock.move(REFUSED_PAUSE - 1)
    await sender.sends_all()
    assert len(siem.sizes) == 1
    clock.move(2)
    await sender.sends_all()
    assert capsys.readouterr().out.count("audit_push_refused") == 1
    clock.move(REFUSED_PAUSE + 1)
    await sender.sends_all()
    assert siem.numbers == upto(3)
    assert "audit_push_works_again" in capsys.readouterr().out


async def test_a_process_that_starts_tries_at_once_what_was_refused(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    """Whoever starts it has mended something."""
    await keep(database, entries(1))
    siem.troubles.append(Trouble(401))
    await sender.sends_all()
    again = Sender(database, clock, siem)
    await again.sends_all()
    assert siem.numbers == [1]
    await again.collector.close()


async def test_what_is_too_large_is_sent_in_smaller_parts(database: Database, siem: FakeSiem, sender: Sender) -> None:
    links = entries(9)
    await keep(database, links)
    siem.most = len(batch_of(links[:3], HERE, 0.0)[0])
    await sender.sends_all()
    assert siem.numbers == upto(9)


async def test_a_service_that_takes_little_at_once_and_does_not_say_so_gets_less_each_time(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    """A proxy that cuts large requests off, or a collector that needs longer for them than anybody waits: the same
    request again and again would never be taken."""
    await keep(database, entries(12))
    siem.most_at_once = 3
    for _ in range(8):
        await sender.sends_all()
        clock.move(LONGEST_PAUSE)
    assert siem.numbers == upto(12)
    assert siem.sizes[:3] == [12, 6, 3]


async def test_one_entry_that_is_too_large_stays_and_is_said(
    database: Database, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(2))
    siem.most = 10
    await sender.sends_all()
    assert siem.sizes == [2, 1]
    assert await sender.push.health() == {
        "pushed": 0,
        "waiting": 2,
        "problem": "it refused with 413",
        "failing_since": (await sender.push.health())["failing_since"],
    }


async def test_an_answer_that_is_lost_makes_duplicates_and_no_gap(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(3))
    siem.troubles.append(Trouble(drops=True))
    await sender.sends_all()
    clock.move(LONGEST_PAUSE)
    await sender.sends_all()
    assert siem.numbers == upto(3) * 2


async def test_nobody_there_is_no_harm(database: Database, clock: SetClock) -> None:
    async with fake_siem() as siem:
        sender = Sender(database, clock, siem)
    await keep(database, entries(1))
    assert await sender.push.look() == LOOK_SECONDS
    assert "no connection" in (await sender.push.health())["problem"]
    await sender.collector.close()


# ------------------------------------------------------------------------------------------------ several, and kills


async def test_one_that_is_killed_between_sending_and_writing_it_down_sends_it_again(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(4))
    siem.hold()
    looking = asyncio.create_task(sender.push.look())
    await siem.asked(1)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    siem.go_on()
    again = Sender(database, clock, siem)
    await again.sends_all()
    assert sorted(set(siem.numbers)) == upto(4)
    await again.collector.close()


async def test_another_process_takes_over_once_the_one_that_sent_is_silent(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    links = entries(6)
    await keep(database, links[:3])
    await sender.sends_all()
    await keep(database, links[3:])
    other = Sender(database, clock, siem, "two")
    assert await other.push.look() == LOOK_SECONDS
    assert siem.numbers == upto(3)
    clock.move(HELD_SECONDS + 1)
    await other.sends_all()
    assert siem.numbers == upto(6)
    await other.collector.close()


@pytest.mark.parametrize("trouble", [None, Trouble(429, {"Retry-After": "600"})], ids=["held", "asked to wait"])
async def test_after_a_clock_was_set_back_nobody_waits_for_what_it_said_before(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender, trouble: Trouble | None
) -> None:
    await keep(database, entries(1))
    siem.troubles.extend([] if trouble is None else [trouble, trouble])
    other = Sender(database, clock, siem, "two")
    await other.sends_all()
    await sender.sends_all()
    await keep(database, entries(2)[1:])
    clock.move(-86_400)
    await sender.sends_all()
    assert siem.numbers == upto(2)
    await other.collector.close()


async def test_one_that_was_held_up_and_overtaken_changes_nothing(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(3))
    siem.hold()
    late = asyncio.create_task(sender.push.look())
    await siem.asked(1)
    clock.move(HELD_SECONDS + 1)
    other = Sender(database, clock, siem, "two")
    others = asyncio.create_task(other.sends_all())
    await siem.asked(2)
    siem.go_on()
    await others
    assert await late == LOOK_SECONDS, "it is not the one that sends"
    assert (await sender.push.health())["pushed"] == 3
    await other.collector.close()


@pytest.mark.postgres
async def test_two_replicas_that_push_at_once_leave_no_gap_and_keep_the_order(clock: SetClock, siem: FakeSiem) -> None:
    async with two_databases() as (first, second):
        links = entries(3 * MOST_EVENTS)
        await keep(first, links)
        senders = [Sender(first, clock, siem, "one"), Sender(second, clock, siem, "two")]
        await asyncio.gather(*(each.sends_all() for each in senders))
        assert siem.numbers == upto(len(links))
        for each in senders:
            await each.collector.close()


async def test_at_the_end_what_is_left_is_sent_and_another_process_may_go_on_at_once(
    database: Database, clock: SetClock, siem: FakeSiem, sender: Sender
) -> None:
    links = entries(4)
    async with sender.push.running():
        await keep(database, links[:2])
    assert siem.numbers == upto(2)
    await keep(database, links[2:])
    other = Sender(database, clock, siem, "two")
    await other.sends_all()
    assert siem.numbers == upto(4)
    await other.collector.close()


async def test_the_end_does_not_wait_for_a_service_that_does_not_answer(
    database: Database, siem: FakeSiem, sender: Sender
) -> None:
    await keep(database, entries(1))
    siem.hold()
    async with asyncio.timeout(20), sender.push.running():
        await siem.asked(1)


# --------------------------------------------------------------------------------------------- a log that was touched


async def test_an_entry_that_was_changed_before_it_was_pushed_is_pushed_as_it_is(
    database: Database, siem: FakeSiem, sender: Sender
) -> None:
    first, second, third = entries(3)
    await keep(database, [first, replace(second, entry="{}"), third])
    await sender.sends_all()
    assert [event.get("is_alert", False) for event in siem.events] == [False, True, False]


async def test_a_log_whose_end_was_cut_off_is_said_and_sent_from_its_beginning(
    database: Database, siem: FakeSiem, sender: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written under the old numbers would never be seen otherwise."""
    await keep(database, entries(4))
    await sender.sends_all()
    forged = chain(ended(1), ended(2), ended(9))
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.delete(tables.audit).where(tables.audit.c.seq > 2))
        await audit.add(tx, forged[2], at=BEGINNING)
    await sender.sends_all()
    assert siem.numbers == [*upto(4), *upto(3)]
    assert siem.events[-1]["metadata"]["uid"] == forged[2].hash
    assert "audit_log_changed" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------------------- pure


def test_a_request_is_bounded_in_bytes_and_has_one_event_at_least() -> None:
    long = ended(arguments={"text": "ä" * 3_900})
    links = chain(*(replace(long, call_id=f"m{number}.0.0") for number in range(60)))
    body, sent = batch_of(links, HERE, 0.0)
    assert len(body) <= LARGEST_BATCH
    assert 1 < len(sent) < 60
    assert [json.loads(line)["metadata"]["sequence"] for line in body.splitlines()] == upto(len(sent))


def test_pauses_double_up_to_a_limit_and_are_spread() -> None:
    pauses = [pause_after(NotTaken(""), failures, 1.0) for failures in range(9)]
    assert pauses == [FIRST_PAUSE * 2**n for n in range(6)] + [LONGEST_PAUSE] * 3
    assert pause_after(NotTaken(""), 0, 0.0) == FIRST_PAUSE / 2
    assert pause_after(NotTaken("", refused=True), 0, 0.5) == REFUSED_PAUSE
    assert pause_after(NotTaken("", refused=True, retry_after=7.0), 0, 0.5) == 7.0
