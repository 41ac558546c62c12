"""What two replicas do at once comes out as if one had been first. Each test fails when nobody locks anything: that is
tried, too (`locks`).

Rules 1, 3 and 6: of an approval nothing is lost, and nothing runs under one that was given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sqlalchemy as sa

from bot.audit.entries import faults
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN
from bot.crypto import NewId
from bot.domain import AlreadySettled, ConversationReference, Message, Settled
from bot.inbox import Acceptance
from bot.ledger import AttemptLedger
from bot.records import audit, postgresql
from bot.records.database import is_outage
from bot.records.locks import AUDIT
from bot.records.postgres_connections import BoundedConnection
from bot.records.postgresql import LentConnection, PostgresDatabase
from graph.ports import Begun, CallRecord, NotApproved, Succeeded
from policies.approvers import DURATIONS
from tests.audit.test_log import call
from tests.bot.conftest import SetClock, place
from tests.bot.routing import ANA, BEN, CHLOE, LAMP, MAKE, THREAD, Routing
from tests.support.replicas import (
    MOST_CONNECTIONS,
    Held,
    take_locks_out,
    two_databases,
    until_done_or_blocked,
    with_and_without,
)

pytestmark = pytest.mark.postgres
ELSEWHERE = ConversationReference("chat", "chat:w1:room:2", {}, channel="chat:w1:room")
MESSAGE = "m2"
ROOM = "chat:w1:dm"


@dataclass
class Replicas:
    """The services, twice."""

    one: Routing
    other: Routing
    watching: PostgresDatabase
    ledgers: tuple[AttemptLedger, AttemptLedger]


@pytest.fixture(
    params=[None, pytest.param((), marks=pytest.mark.xfail(strict=True, reason="nobody locks anything"))],
    ids=["locked", "unlocked"],
)
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param is not None:
        take_locks_out(monkeypatch, *request.param)


@pytest.fixture
async def replicas(clock: SetClock, new_id: NewId) -> AsyncIterator[Replicas]:
    async with two_databases() as (first, second):
        made = [Routing(database, clock, new_id) for database in (first, second)]
        for each in made:
            await each.outbox.stop(0.0)  # nothing is shown, so that only what is tried writes
        ledgers = [
            AttemptLedger(each.database, each.outbox, clock, new_id, AuditLog(each.database, clock, PLAIN))
            for each in made
        ]
        yield Replicas(made[0], made[1], second, (ledgers[0], ledgers[1]))


@pytest.fixture
def held(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> Holding:
    return Holding(replicas, monkeypatch)


@dataclass
class Holding:
    """Stops the first replica before it writes to a table."""

    replicas: Replicas
    monkeypatch: pytest.MonkeyPatch

    def before(self, table: str, **kind: Any) -> Held:
        database = self.replicas.one.database
        assert isinstance(database, PostgresDatabase)
        return Held(self.monkeypatch, database, table, **kind)


async def supersede(routing: Routing) -> None:
    """As a message does that takes the place of what waits."""
    async with routing.database.writing(THREAD) as tx:
        await routing.parts.open_requests.supersede(tx, THREAD, MESSAGE, "something else was asked")


def record(approval_round: int | None = 1, **how: object) -> CallRecord:
    """The call that waits, about to be made."""
    made = replace(call(MAKE), thread_id=THREAD, digest=LAMP, approval_round=approval_round)
    return replace(made, **how)  # type: ignore[arg-type]


@with_and_without(THREAD)
async def test_what_is_approved_while_it_is_given_up_is_not_lost(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    one, other = replicas.one, replicas.other
    approval_id = await one.ask()
    _, told = await held.before("approvals").while_first(
        supersede(one), other.click(BEN, approval_id), replicas.watching
    )
    how = (type(told), (await one.row(approval_id)).status)
    assert how in {(Settled, "approved"), (AlreadySettled, "superseded")}


@with_and_without(THREAD)
async def test_nothing_begins_under_an_approval_that_is_given_up(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    one, other = replicas.one, replicas.other
    approval_id = await one.ask()
    await one.click(BEN, approval_id)
    begun, _ = await held.before("attempts").while_first(
        replicas.ledgers[0].begin(record()), supersede(other), replicas.watching
    )
    how = (begun, (await one.row(approval_id)).status)
    assert how in {(Begun(1), "approved"), (NotApproved(), "superseded")}


@with_and_without(THREAD)
async def test_two_votes_at_once_are_both_counted(replicas: Replicas, held: Holding, locks: None) -> None:
    one, other = replicas.one, replicas.other
    approval_id = await one.ask(quorum=2)
    await held.before("votes").while_first(
        one.click(BEN, approval_id), other.click(CHLOE, approval_id), replicas.watching
    )
    assert (await one.row(approval_id)).status == "approved"


@with_and_without("person:")
async def test_of_two_standing_approvals_for_the_same_call_one_is_in_force(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    one, other = replicas.one, replicas.other
    ids = [await one.ask(call_id="c1"), await one.ask(call_id="c2", place=ELSEWHERE)]
    an_hour = DURATIONS["1 h"]
    await held.before("grants", kind=sa.Insert).while_first(
        one.click(ANA, ids[0], always_for=an_hour), other.click(ANA, ids[1], always_for=an_hour), replicas.watching
    )
    assert len(await one.services.queries.standing_approvals(ANA)) == 1


@with_and_without("person:")
async def test_nothing_begins_under_a_standing_approval_once_it_is_said_to_be_revoked(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    one, other = replicas.one, replicas.other
    await one.click(ANA, await one.ask(), always_for=DURATIONS["1 h"])
    (given,) = await one.services.queries.standing_approvals(ANA)
    order: list[object] = []

    async def begin() -> None:
        order.append(
            await replicas.ledgers[0].begin(record(None, call_id="c2", requester=ANA.person_id, standing=True))
        )

    async def revoke() -> None:
        order.append(type(await other.services.approvals.revoke_standing_approval(given.grant_id, ANA)))

    await held.before("attempts").while_first(begin(), revoke(), replicas.watching)
    assert order == [Begun(1), Settled]
    again = record(None, call_id="c3", requester=ANA.person_id, standing=True)
    assert await replicas.ledgers[0].begin(again) == NotApproved()


@with_and_without(THREAD)
async def test_two_who_hand_over_at_once_are_both_heard(replicas: Replicas, held: Holding, locks: None) -> None:
    one, other = replicas.one, replicas.other
    approval_id = await one.ask()
    await held.before("approvals").while_first(
        one.hand(BEN, approval_id, CHLOE), other.hand(CHLOE, approval_id, ANA), replicas.watching
    )
    assert set((await one.row(approval_id)).handed_to) == {CHLOE.person_id, ANA.person_id}


@with_and_without(AUDIT)
async def test_two_calls_that_end_at_once_are_two_entries_of_one_chain(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    await replicas.one.ask()
    here, there = record(None, call_id="c1"), record(None, call_id="c2", thread_id=ELSEWHERE.key)
    for ledger, each in zip(replicas.ledgers, (here, there), strict=True):
        assert await ledger.begin(each) == Begun(1)
    made = Succeeded("made")
    first, second = replicas.ledgers
    await held.before("audit").while_first(
        first.finish(here, 1, made), second.finish(there, 1, made), replicas.watching
    )
    async with replicas.watching.reading() as tx:
        links = await audit.links(tx, None, None, after=0, limit=10)
    assert [link.seq for link in links] == [1, 2]
    assert list(faults(links)) == []


@with_and_without(ROOM)
async def test_two_who_begin_a_new_conversation_at_once_get_one_each(
    replicas: Replicas, held: Holding, locks: None, clock: SetClock
) -> None:
    room = place(ROOM, has_threads=False)
    first, second = (
        Acceptance(each.database, clock).accept(Message(key, room, person, "new", clock()))
        for key, each, person in (("m1", replicas.one, ANA), ("m2", replicas.other, BEN))
    )
    accepted = await held.before("deliveries").while_first(first, second, replicas.watching)
    assert {each.thread_id for each in accepted} == {f"{room.key}#1", f"{room.key}#2"}


@with_and_without(THREAD)
async def test_what_is_settled_twice_by_one_click_is_told_the_same(
    replicas: Replicas, held: Holding, locks: None
) -> None:
    """A platform delivers a click again when its answer is late, and the other replica gets it."""
    one, other = replicas.one, replicas.other
    approval_id = await one.ask()
    await one.click(BEN, await one.ask(call_id="earlier"))  # so that who Ben is has been kept
    told = await held.before("approvals").while_first(
        one.click(BEN, approval_id), other.click(BEN, approval_id), replicas.watching
    )
    assert [type(each) for each in told] == [Settled, Settled]
    assert (await one.row(approval_id)).status == "approved"


@pytest.mark.parametrize("method", ["connect", "execute"])
async def test_a_connection_is_lost_by_nobody_who_is_cancelled_while_it_is_made_or_used(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    database, owner = replicas.watching, BoundedConnection
    do, reached = getattr(owner, method), asyncio.Event()
    await database._engine.dispose()

    async def read() -> None:
        async with database.reading() as tx:
            await tx.one(sa.text("SELECT 1"))
            await tx.execute("SELECT 1")

    async def do_and_wait(*given: Any, **named: Any) -> None:
        await do(*given, **named)
        reached.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(owner, method, do_and_wait)
        reading = asyncio.create_task(read())
        await reached.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert database._engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    async with database.writing_apart(THREAD) as tx:
        assert await tx.one(sa.text("SELECT 1")) == (1,)


async def test_what_rests_on_one_thread_is_written_in_the_order_in_which_it_is_begun(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As people see the cards of calls that are made at once: not in the order in which each got a connection."""
    database, order = replicas.one.database, []
    assert isinstance(database, PostgresDatabase)
    lent, slow = database._lent, iter([0.1, 0.05])

    @asynccontextmanager
    async def lent_slowly() -> AsyncIterator[LentConnection]:
        await asyncio.sleep(next(slow, 0.0))
        async with lent() as connection:
            yield connection

    async def write(number: int) -> None:
        async with database.writing(THREAD):
            order.append(number)

    monkeypatch.setattr(database, "_lent", lent_slowly)
    await asyncio.gather(*(write(number) for number in range(8)))
    assert order == list(range(8))


@pytest.mark.parametrize("begin", ["writing", "writing_apart", "writing_urgently"])
async def test_who_waits_for_what_another_process_has_locked_keeps_no_connection_from_others(
    replicas: Replicas, begin: str
) -> None:
    """Rule 2: a process that stands still in the middle of a transaction holds up its thread and no other one, however
    many messages and clicks for it come here meanwhile."""
    database = replicas.watching

    async def write(name: str) -> None:
        async with getattr(database, begin)(name):
            pass

    async with replicas.one.database.writing(THREAD):
        waiting = [asyncio.create_task(write(THREAD)) for _ in range(MOST_CONNECTIONS + 2)]
        await until_done_or_blocked(waiting[0], replicas.one.database)
        async with asyncio.timeout(15):
            await write(ROOM)
            async with database.reading() as tx:
                assert await tx.one(sa.text("SELECT 1")) == (1,)
        assert not any(each.done() for each in waiting)
    await asyncio.gather(*waiting)


async def test_nobody_waits_without_end_for_those_who_wait_for_the_same_lock(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 10: who cannot have their turn in time is refused, and the next one is not."""
    database = replicas.watching

    async def write() -> None:
        async with database.writing_urgently(THREAD):
            pass

    async with replicas.one.database.writing(THREAD):
        monkeypatch.setattr(postgresql, "LOCK_SECONDS", 0.1)  # from now on the server waits for as long as before
        first, second = (asyncio.create_task(write()) for _ in range(2))
        with pytest.raises(sa.exc.TimeoutError) as refused:
            await second
        assert is_outage(refused.value) and not first.done()
    await first
    await write()


async def test_a_transaction_without_a_commit_leaves_nothing_for_the_next_on_its_connection(replicas: Replicas) -> None:
    database = replicas.watching
    number, insert = [0], sa.text("INSERT INTO places (place_key, place, arrived_at) VALUES ('x', '{}', 0)")
    for statement in (sa.text("SELECT nothing"), insert):
        with pytest.raises((sa.exc.ProgrammingError, ZeroDivisionError)):
            async with database.writing_apart(THREAD) as tx:
                await tx.run(statement)
                number[0] //= 0
    async with database.reading() as tx:
        assert tx.driver.info.transaction_status.name == "IDLE"
        assert await tx.one(sa.text("SELECT 1 FROM places WHERE place_key = 'x'")) is None
