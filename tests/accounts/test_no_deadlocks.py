"""Whatever two replicas do at once, neither waits for the other for ever: all lock in one order.

One transaction is held before one of its writes, with what it has locked by then; another runs until it is done or has
to wait; then the first goes on. PostgreSQL finds a circle by itself and ends one of the two with an error.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa

from bot.accounts.flow import GoTo, ShowCode
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN
from bot.domain import CodeEntry, Decision, Feedback, Handover
from bot.ledger import AttemptLedger
from bot.records import connections, deliveries, posts, threads, waiting
from bot.records.postgresql import PostgresDatabase
from graph.ports import Begun, CallRecord, SignInNeeded, Succeeded
from policies.approvers import DURATIONS
from tests.accounts.stage import ANA, BEN, ELSEWHERE, EVE, HERE, Stage
from tests.audit.test_log import call, unmade
from tests.bot.conftest import RecordingPlatform
from tests.bot.rows import asked
from tests.support.replicas import take_locks_out, until_done_or_blocked
from tests.support.transactions import Execute, statement_of, wrap_statements

pytestmark = pytest.mark.postgres
NUMBERS = count(1)
PLACES = (HERE, ELSEWHERE)


class Replica:
    """One replica, and what it can do; each act finds something to do whenever it comes."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.database, self.parts = stage, stage.database, stage.parts
        self.services, self.outbox = stage.services, stage.outbox
        self.audit = AuditLog(stage.database, stage.clock, PLAIN)
        self.ledger = AttemptLedger(stage.database, stage.outbox, stage.clock, stage.new_id, self.audit)
        self.chance = random.Random()

    async def ask(self) -> None:
        """Two calls wait, in two threads; what waited before gives way."""
        for place in PLACES:
            async with self.database.writing(place.key) as tx:
                await self.parts.open_requests.supersede(tx, place.key, self._key(), "another was asked for")
                request = asked(self._key(), requesters=(ANA.person_id,), approvers=("any",))
                await self.parts.requests.record(tx, place.key, request)

    async def _waiting(self) -> tuple[str, ...]:
        async with self.database.reading() as tx:
            found = [row.approval_id for place in PLACES for row in (await waiting.in_thread(tx, place.key)).approvals]
        return tuple(found)

    async def decide(self, **how: Any) -> None:
        await self.services.approvals.decide(Decision.alike(self._key(), ANA, await self._waiting(), "approve", **how))

    async def decide_always(self) -> None:
        await self.decide(always_for=DURATIONS["1 h"])

    async def hand_over(self) -> None:
        for approval_id in await self._waiting():
            handover = Handover(self._key(), ANA, approval_id, f"chat:w1:{self._key()}", "New")
            await self.services.approvals.hand_over(handover)

    async def withdraw(self) -> None:
        for approval_id in await self._waiting():
            await self.services.approvals.withdraw_request(self._key(), approval_id, ANA)

    async def leave(self) -> None:
        await self.services.inbox.left(HERE)

    async def arrive(self) -> None:
        await self.services.inbox.arrived(self._key(), HERE, "Hello")

    async def need_account(self) -> None:
        """Two people each need an account in the thread where the other did."""
        for person, place in zip((ANA, BEN), self.chance.sample(PLACES, 2), strict=True):
            await self.stage.ask(person, self._key(), place)

    async def need_link(self) -> None:
        needed = SignInNeeded("https://files.example/start", "please")
        sign_in = self._key()
        await self.parts.sign_ins.ask(HERE.key, sign_in, ANA.person_id, "files", needed)
        await self.parts.sign_ins.completed(sign_in)

    async def connect(self) -> None:
        if code := await self._code():
            await self.stage.tells(ANA, code)

    async def tell_wrong_code(self) -> None:
        await self.services.connections.enter_code(CodeEntry(self._key(), ANA, "CCCC-CCCC"))

    async def tell_code_of_another(self) -> None:
        if code := await self._code():
            await self.stage.tells(BEN, code)

    async def _code(self) -> str | None:
        """A code that Ana's browser shows, unless somebody has overtaken her."""
        _, link = await self.stage.asked_and_linked(ANA, self._key())
        browser = self.stage.browser()
        went = await browser.opens(link)
        shown = await browser.returns(went.url, code="code-of-ana") if isinstance(went, GoTo) else went
        return shown.code if isinstance(shown, ShowCode) else None

    async def disconnect(self) -> None:
        async with self.database.reading() as tx:
            kept = await connections.of(tx, ANA.person_id, "drive")
        if kept is not None:
            await self.services.connections.disconnect(kept.connection_id, ANA)

    async def start(self) -> None:
        await self.services.connections.start()
        await self.services.connections.resealed()

    async def write(self) -> None:
        for person, place in ((ANA, HERE), (BEN, ELSEWHERE)):
            named = replace(person, name=self._key())
            await self.stage.writes(named, "hello", self._key(), place)

    async def write_code(self) -> None:
        await self.stage.writes(ANA, "CCCC-DDDD", self._key())

    async def amend(self) -> None:
        key = self._key()
        await self.stage.writes(ANA, "hello", key)
        await self.services.inbox.amend(key, "DDDD-DDDD")
        async with self.database.writing(HERE.key) as tx:
            await deliveries.done(tx, key)

    async def make_calls(self) -> None:
        for place in PLACES:
            record: CallRecord = replace(call(), thread_id=place.key, call_id=self._key())
            begun = await self.ledger.begin(record)
            assert begun == Begun(1)
            await self.ledger.finish(record, 1, Succeeded("made"))

    async def not_make_a_call(self) -> None:
        await self.audit.not_made(replace(unmade(), thread_id=ELSEWHERE.key, call_id=self._key()))

    async def mark_shown(self) -> None:
        async with self.database.reading() as tx:
            rows = [row for place in PLACES for row in await posts.of_thread(tx, place.key, 20)]
        for row in self.chance.sample(rows, len(rows)):
            self.outbox._shown[row.key] = replace(row, revision=row.revision, reference={"messages": [row.key]})
        if rows:
            await self.outbox._mark_shown()
        assert not self.outbox._shown, "not marked"

    async def think_of_an_answer(self) -> None:
        await self.services.inbox.feedback(Feedback(ANA, "said:nothing", "good"))

    async def learn_names(self) -> None:
        people = [f"chat:w1:{name}" for name in ("x", "y", "z")]
        async with self.database.writing_apart("people") as tx:
            await tx.run(sa.text("DELETE FROM people WHERE person_id IN ('chat:w1:x', 'chat:w1:y', 'chat:w1:z')"))
        await self.parts.directory.learn_names(self.chance.sample(people, 3))

    async def introduce(self) -> None:
        for person, place in ((ANA, ELSEWHERE), (EVE, HERE)):
            async with self.database.writing(place.key) as tx:
                await threads.remember(tx, replace(person, name=self._key()), self.stage.clock())

    def _key(self) -> str:
        return f"k{next(NUMBERS)}"


Act = Callable[[Replica], Awaitable[None]]
ACTS: list[Act] = [act for name, act in vars(Replica).items() if not name.startswith("_")]


class HeldAtWrite:
    """Stops a task before one of its writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.left = 0
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

        def holding(execute: Execute) -> Execute:
            async def held(tx: Any, statement: Any, values: Any = None) -> Any:
                if asyncio.current_task() is self.task and isinstance(
                    statement_of(tx, statement), sa.Insert | sa.Update | sa.Delete
                ):
                    self.left -= 1
                    if self.left == 0:
                        self.reached.set()
                        await self.go_on.wait()
                return await execute(tx, statement, values)

            return held

        wrap_statements(monkeypatch, holding)

    async def pair(self, first: Any, second: Any, writes: int, watching: PostgresDatabase) -> bool:
        """Does both; whether the first had so many writes."""
        self.reached.clear()
        self.go_on.clear()
        self.left = writes
        self.task = one = asyncio.create_task(first)
        reached = asyncio.create_task(self.reached.wait())
        await asyncio.wait([one, reached], return_when=asyncio.FIRST_COMPLETED)
        two = asyncio.create_task(second)
        await until_done_or_blocked(two, watching)
        self.go_on.set()
        reached.cancel()
        await asyncio.gather(one, two)
        return self.left <= 0


@pytest.fixture
async def replicas(two_stages: tuple[Stage, Stage], platform: RecordingPlatform) -> list[Replica]:
    platform.names.update({f"chat:w1:{name}": name for name in ("x", "y", "z")})
    return [Replica(each) for each in two_stages]


async def test_two_replicas_never_wait_for_each_other_for_ever(
    replicas: list[Replica], monkeypatch: pytest.MonkeyPatch, tries: Callable[[int, int], int], seed: int
) -> None:
    chance = random.Random(seed)
    held = HeldAtWrite(monkeypatch)
    one, other = replicas
    one.chance = other.chance = chance
    for _ in range(tries(40, 3000)):
        first, second = chance.choice(ACTS), chance.choice(ACTS)
        await one.ask()
        try:
            await held.pair(first(one), second(other), chance.randint(1, 12), other.database)  # type: ignore[arg-type]
        except Exception as error:
            error.add_note(f"{first.__name__} while {second.__name__}, seed {seed}")
            raise


async def test_that_would_be_noticed(replicas: list[Replica], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two transactions that write to the same rows in two orders."""
    take_locks_out(monkeypatch)
    one, other = replicas
    held = HeldAtWrite(monkeypatch)

    async def remember(replica: Replica, *people: Any) -> None:
        async with replica.database.writing(HERE.key) as tx:
            for person in people:
                await threads.remember(tx, replace(person, name=f"{id(replica)}"), 0.0)

    with pytest.raises(sa.exc.OperationalError, match="deadlock"):
        await held.pair(remember(one, ANA, BEN), remember(other, BEN, ANA), 2, other.database)  # type: ignore[arg-type]
