"""The process dies before or after each write of a turn in turn, and handling the delivery again ends the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, cast, get_args

import pytest
import sqlalchemy as sa

from bot.domain import Decision, Message, Person
from bot.outbox import said
from bot.records import approvals, clarifications, deliveries, tables, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase
from bot.records.sqlite import SqliteDatabase
from bot.turns.decision import MOST_DEATHS
from graph.interrupts import Asked, ClarificationAsked, InterruptAnswer
from graph.models import ModelProblem, Trouble
from graph.ports import Live, Spoken, Unfinished
from graph.running import PendingInterrupt, RunVerb, ThreadStatus
from graph.state import Turn
from tests.bot.conftest import SetClock
from tests.bot.rows import asked
from tests.bot.services_stage import ANA, BEN, HERE, THREAD, Stage
from tests.bot.stubs import REST, make_turn_handler

OLD_TURN = cast("Turn", dict.fromkeys(Turn.__annotations__, "") | {"delivery": "m0", "requester": ANA.person_id})


NEVER = 1_000_000
Keeps = Literal["each step", "what something rests on"]
"""What of the graph survives the process: all that it did, or what was put to disk for a transaction."""


class DiedError(BaseException):
    """The process is no more."""


@dataclass
class Countdown:
    """Dies when it comes to 0; every write has a point before it and one after it."""

    left: int = NEVER
    task: asyncio.Task[Any] | None = None

    def point(self) -> None:
        if asyncio.current_task() is self.task:
            self.left -= 1
            if self.left < 0:
                self.task = None
                raise DiedError


@dataclass
class SmallGraph:
    """Stands in for the agent: what it does is kept, a run takes three steps, and the process may die between them."""

    countdown: Countdown
    keeps: Keeps = "each step"
    status_now: ThreadStatus = REST
    next: list[Callable[[], None]] = field(default_factory=list)
    """Steps of the run that is under way."""
    begun: list[str] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    problem: ModelProblem | None = None
    deadly: bool = False
    """The process dies whenever the model is to be asked."""
    on_disk: dict[str, Any] = field(default_factory=dict)

    def to_disk(self) -> None:
        """Something rests on it from now on."""
        self.on_disk = {name: copy(getattr(self, name)) for name in ("status_now", "next", "begun", "resumed")}

    def process_died(self) -> None:
        """What nothing rested on may be lost, or not."""
        if self.keeps == "what something rests on":
            for name, value in self.on_disk.items():
                setattr(self, name, copy(value))

    async def status(self, thread_id: str) -> ThreadStatus:
        return self.status_now

    async def begin(
        self, turn: Turn, text: str, live: Live, *, background: str = "", files: object = (), call: Any = None
    ) -> ThreadStatus:
        assert self.status_now.at_rest and not self.status_now.interrupts, "something is open"
        assert turn["delivery"] not in self.begun, "begun twice"
        spoken = Spoken(f"{turn['delivery']}.0", f"You said: {text}")

        def ask_model() -> None:
            if self.deadly:
                raise DiedError
            if self.problem is not None:
                raise self.problem
            self.status_now = replace(self.status_now, spoken=(spoken,))

        def take_in() -> None:
            self.begun.append(turn["delivery"])
            self.status_now = replace(self.status_now, turn=turn, spoken=())

        return await self._run(turn["delivery"], "run", [take_in, ask_model, self._come_to_rest])

    async def resume(
        self, thread_id: str, delivery: str, answers: Mapping[str, InterruptAnswer], live: Live, *, interrupts: object
    ) -> ThreadStatus:
        assert self.status_now.at_rest and answers

        def answer() -> None:
            rest = tuple(i for i in self.status_now.interrupts if i.interrupt_id not in answers)
            self.resumed.extend(f"{i}: {type(a).__name__}" for i, a in answers.items())
            self.status_now = replace(self.status_now, interrupts=rest)

        def speak() -> None:
            spoken = (*self.status_now.spoken, Spoken(f"m0.{len(self.resumed)}", f"Done {len(self.resumed)}."))
            self.status_now = replace(self.status_now, spoken=spoken)

        return await self._run(delivery, "resume", [answer, speak, self._come_to_rest])

    async def go_on(self, thread_id: str, delivery: str, verb: RunVerb, live: Live) -> ThreadStatus:
        assert not self.status_now.at_rest
        return await self._run(delivery, verb, self.next)

    async def settle(
        self, thread_id: str, delivery: str, why: str, *, unfinished: Unfinished | None = None, **_: object
    ) -> Any:
        def end() -> None:
            said = (unfinished.said,) if unfinished else ()
            self.status_now = replace(self.status_now, interrupts=(), spoken=(*self.status_now.spoken, *said))

        if self.status_now.at_rest and not self.status_now.interrupts:
            return self.status_now
        return await self._run(delivery, "settle", [end, self._come_to_rest])

    async def prune(self, thread_id: str, status: ThreadStatus) -> None:
        assert status == self.status_now

    async def _run(self, delivery: str, verb: RunVerb, steps: list[Callable[[], None]]) -> ThreadStatus:
        self.countdown.point()
        self.next = list(steps)
        self.status_now = replace(self.status_now, delivery=delivery, verb=verb, at_rest=False)
        while self.next:
            self.countdown.point()
            self.next[0]()
            del self.next[0]
        self.countdown.point()
        return self.status_now

    def _come_to_rest(self) -> None:
        self.status_now = replace(self.status_now, at_rest=True)

    def waits_for(self, *questions: Asked) -> None:
        """An earlier turn, Ana's, has stopped for these."""
        interrupts = tuple(PendingInterrupt(f"i{n}", question) for n, question in enumerate(questions, start=1))
        self.status_now = replace(
            REST, delivery="m0", verb="run", turn=OLD_TURN, interrupts=interrupts, spoken=(Spoken("m0.0", "I ask."),)
        )


@dataclass
class World:
    """A thread on real records, with a small graph."""

    stage: Stage
    graph: SmallGraph
    countdown: Countdown

    async def writes(self, person: Person = ANA, text: str = "hello", **how: Any) -> None:
        assert await self.stage.write(person, "m1", text, **how)

    async def waits(self, *questions: Asked) -> None:
        """They wait, as the delivery before this one left it."""
        self.graph.waits_for(*questions)
        async with self.stage.database.writing(UNLOCKED) as tx:
            await threads.remember(tx, ANA, self.stage.clock())
            await threads.set_turn(tx, THREAD, ANA.person_id, "m0")
            await self.stage.outbox.say(tx, said(THREAD, self.graph.status_now.spoken[0]))
            for number, question in enumerate(questions, start=1):
                if isinstance(question, ClarificationAsked):
                    await clarifications.add(tx, f"c{number}", THREAD, question, self.stage.clock())
                else:
                    await approvals.add(tx, f"a{number}", THREAD, question, now=0.0, expires_at=None)  # type: ignore[arg-type]

    async def handles_all(self) -> None:
        """Handle what waits, each time with a handler that remembers nothing, until nothing does."""
        for _ in range(10):
            async with self.stage.database.reading() as tx:
                head = await deliveries.head(tx, THREAD, self.stage.clock())
            if head is None:
                return
            await self.handles(head)
        raise AssertionError("it comes to no end")

    async def handles(self, delivery: Delivery) -> None:
        """Handle it, with a handler that remembers nothing."""
        stage = self.stage
        agent = cast("Any", self.graph)
        handler = make_turn_handler(stage.database, stage.outbox, stage.clock, stage.parts, agent, stage.engine)
        task = asyncio.ensure_future(handler.handle(delivery))
        if self.countdown.left >= 0:
            self.countdown.task = task
        await asyncio.wait([task])
        if isinstance(task.exception(), DiedError):
            self.graph.process_died()
        if task.exception() is not None and not isinstance(task.exception(), DiedError):
            raise cast("BaseException", task.exception())

    async def outcome(self) -> dict[str, Any]:
        """Everything that matters in the end."""
        posts, deliveries, approvals = tables.posts, tables.deliveries, tables.approvals
        async with self.stage.database.reading() as tx:
            rows = {
                "deliveries": await tx.all(sa.select(deliveries.c.key, deliveries.c.status).order_by(deliveries.c.seq)),
                "approvals": await tx.all(
                    sa.select(approvals.c.approval_id, approvals.c.status).order_by("approval_id")
                ),
                "questions": await tx.all(sa.select(tables.clarifications.c.question, tables.clarifications.c.status)),
                "posts": await tx.all(sa.select(posts.c.key, posts.c.content).order_by(posts.c.seq)),
                "thread": await tx.all(sa.select(tables.threads.c.requester, tables.threads.c.turn)),
            }
        graph = {
            "begun": self.graph.begun,
            "resumed": self.graph.resumed,
            "interrupts": self.graph.status_now.interrupts,
        }
        return {**{name: [tuple(row) for row in found] for name, found in rows.items()}, **graph}


QUESTION = ClarificationAsked(call_id="m0.0.1", question="Which one?", requester=ANA.person_id)
CALL = asked("m0.0.0", approvers=("any",))


async def plain(world: World) -> None:
    await world.writes()


async def among_people(world: World) -> None:
    await world.waits(CALL)
    await world.writes(text="what do you think, Ben?", addressed=False)


async def told_to_wait(world: World) -> None:
    await world.waits(CALL)
    await world.writes(BEN)


async def superseding(world: World) -> None:
    await world.waits(CALL, QUESTION.model_copy(update={"requester": BEN.person_id}))
    await world.writes(text="something else")


async def answering(world: World) -> None:
    await world.waits(QUESTION)
    await world.writes(text="the red one")


async def deciding(world: World) -> None:
    await world.waits(CALL)
    await world.stage.services.approvals.decide(Decision.alike("click", BEN, ("a1",), "approve"))


async def superseding_after_a_decision(world: World) -> None:
    """One of two is decided, and Ana writes before that was resumed."""
    await world.waits(CALL, asked("m0.0.1", approvers=("any",)))
    await world.writes(text="something else")
    await world.stage.services.approvals.decide(Decision.alike("click", BEN, ("a1",), "approve"))


async def expiring(world: World) -> None:
    await world.waits(CALL)
    async with world.stage.database.writing(UNLOCKED) as tx:
        await deliveries.add(tx, Delivery("expire:a1", THREAD, "timer", {"approval": "a1"}, False, 0.0, 0.0))


async def stopping(world: World) -> None:
    await world.waits(CALL)
    await world.stage.services.inbox.stop("stop", THREAD, ANA)


async def without_checkpoints(world: World) -> None:
    await world.waits(CALL)
    world.graph.status_now = REST
    world.graph.to_disk()
    await world.writes()


async def giving_up(world: World) -> None:
    world.graph.problem = ModelProblem(Trouble.REFUSED)
    await world.writes()


SCENES = [
    plain,
    among_people,
    told_to_wait,
    superseding,
    answering,
    deciding,
    superseding_after_a_decision,
    expiring,
    stopping,
    without_checkpoints,
]


@pytest.fixture(params=get_args(Keeps))
def world(stage: Stage, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> World:
    countdown = Countdown()
    world = World(stage, SmallGraph(countdown, request.param), countdown)
    keep = SqliteDatabase.keep

    async def dying(self: Database, transaction: Transaction, *args: Any, **kwargs: Any) -> Any:
        try:
            countdown.point()
            world.graph.to_disk()
            countdown.point()
        except DiedError as death:
            await self.take_back(transaction, death)
            raise
        on_disk = await keep(self, transaction, *args, **kwargs)
        await asyncio.wait([on_disk])
        countdown.point()
        return on_disk

    monkeypatch.setattr(SqliteDatabase, "keep", dying)
    commit = PostgresDatabase._see_commit_through

    async def dying_here(self: PostgresDatabase, *what: Any) -> None:
        countdown.point()
        world.graph.to_disk()
        countdown.point()
        await commit(self, *what)
        countdown.point()

    monkeypatch.setattr(PostgresDatabase, "_see_commit_through", dying_here)
    return world


async def play(world: World, scene: Callable[[World], Awaitable[None]], left: int) -> dict[str, Any]:
    """The scene from the beginning; the process dies after so many points."""
    async with world.stage.database.writing(UNLOCKED) as tx:
        for table in (tables.deliveries, tables.votes, tables.approvals, tables.clarifications, tables.posts):
            await tx.run(sa.delete(table))
        await tx.run(sa.delete(tables.threads))
        await threads.ensure(tx, THREAD, HERE, "hello", world.stage.clock())
    world.graph = SmallGraph(world.countdown, world.graph.keeps)
    world.countdown.left = NEVER
    await scene(world)
    world.countdown.left = left
    await world.handles_all()
    return await world.outcome()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_it_ends_the_same_wherever_the_process_dies(
    world: World, scene: Callable[[World], Awaitable[None]]
) -> None:
    await world.stage.outbox.stop(1.0)  # nothing is shown, so that only the turn writes
    whole = await play(world, scene, NEVER)
    for point in count():
        assert await play(world, scene, point) == whole, f"died at point {point}"
        if world.countdown.left >= 0:
            break
    assert point > 1


async def test_a_reply_under_another_account_of_whoever_was_asked_is_the_answer(world: World) -> None:
    async def answering_under_another(world: World) -> None:
        await world.waits(QUESTION)
        both = frozenset({ANA.person_id, BEN.person_id})
        reply = Message("m1", HERE, BEN, "the red one", world.stage.clock(), owners=both)
        await world.stage.services.inbox.accept(reply)

    await world.stage.outbox.stop(1.0)
    told = await play(world, answering_under_another, NEVER)
    assert ([each[1] for each in told["questions"]], told["begun"]) == (["answered"], [])


async def test_a_turn_that_cannot_go_on_is_given_up_once_and_its_author_is_told(world: World) -> None:
    await world.stage.outbox.stop(1.0)
    for point in count():
        told = await play(world, giving_up, point)
        assert (told["begun"], told["interrupts"]) == (["m1"], ())
        assert [status for _, status in told["deliveries"]] in (["done"], ["parked"]), f"died at point {point}"
        assert [key for key, _ in told["posts"]] == ["error:m1"]
        if world.countdown.left >= 0:
            break


async def test_a_message_that_kills_the_process_again_and_again_is_parked(world: World) -> None:
    """Although nothing of its run may ever come to be on disk."""
    await world.stage.outbox.stop(1.0)
    world.graph.deadly = True
    await world.writes()
    for _ in range(MOST_DEATHS + 3):
        cast("SetClock", world.stage.clock).move(1.0)
        async with world.stage.database.reading() as tx:
            head = await deliveries.head(tx, THREAD, world.stage.clock())
        if head is None:
            break
        await world.handles(head)
    told = await world.outcome()
    assert [(key, status) for key, status in told["deliveries"]] == [("m1", "parked")]
    assert [key for key, _ in told["posts"]] == ["error:m1"]
