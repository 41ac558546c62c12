"""One delivery → run or resume → posts. Whatever is killed when, handling the delivery again ends in the same place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from bot.beginnings import announcement, asks_only_for_that
from bot.clock import Clock
from bot.domain import Notice, Unwelcome
from bot.endings import Endings
from bot.engine import Engine
from bot.failing import STATE_LOST, Failing
from bot.failures import MAX_DEATHS, for_author, reference_of
from bot.forms import FormErrors
from bot.introductions import Introductions
from bot.limits import TurnLimit
from bot.logs import log_context
from bot.meaning import AnswersClarification, Ignored, NewTurn, Supersedes, ToldToWait, meaning, told_to_wait
from bot.outbox import Outbox, notice
from bot.platform import Platform, PostFailed
from bot.questions import Questions
from bot.records import clarifications, deliveries, threads, waiting
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.threads import ThreadRow
from bot.waits import Settlement, Waits
from bot.written import Written
from graph.models import ModelProblem
from graph.ports import Live, Spoken, Unfinished
from graph.running import Agent, Look, Verb
from graph.state import Silent, Turn

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a conversation is handled with."""

    database: Database
    agent: Agent
    outbox: Outbox
    waits: Waits
    clarifications: Questions
    introductions: Introductions
    platforms: Mapping[str, Platform]
    clock: Clock
    turn_limit: TurnLimit


class Conversation:
    """Handles deliveries, one at a time per thread (the engine sees to that)."""

    def __init__(self, surroundings: Surroundings, engine: Engine) -> None:
        self._s = s = surroundings
        self._endings = Endings(s.database, s.agent, s.outbox, s.waits)
        self._failing = Failing(self._endings, s.database, s.outbox, s.waits, engine=engine, clock=s.clock)

        self._broken_off: dict[str, Spoken] = {}
        """By thread, what was being said when its run was broken off, until the next delivery is handled there."""

    async def handle(self, delivery: Delivery) -> None:
        """See a delivery through: to its effects, or to the next try, or parked. Raises only if not even that can be
        recorded."""
        with log_context(thread_id=delivery.thread_id, delivery=delivery.key):
            async with self._s.database.reading() as tx:
                thread = await threads.get(tx, delivery.thread_id)
            if thread is None:
                await self._failing.park(delivery, None, "its thread is not known")
                return
            live = Written(self._live(delivery, thread))
            if delivery.kind != "stop":
                self._broken_off.pop(delivery.thread_id, None)
            try:
                await self._handle(delivery, thread, live)
            except asyncio.CancelledError:
                if live.newest is not None:
                    self._broken_off[delivery.thread_id] = live.newest
                raise
            except PostFailed as failure:
                await self._failing.after_outage(delivery, thread, failure)
            except ModelProblem as problem:
                log.warning("turn_failed", cause=str(problem), reference=reference_of(delivery))
                await self._failing.give_up(delivery, problem, live.newest)
            except Exception as cause:
                log.exception("delivery_failed", tries=delivery.tries + 1, reference=reference_of(delivery))
                await self._failing.after_failure(delivery, thread, cause)
            finally:
                await self._end(delivery.thread_id, live)

    async def _end(self, thread_id: str, live: Live) -> None:
        waits = False
        try:
            async with self._s.database.reading() as tx:
                waits = await waiting.anything_in(tx, thread_id)
        finally:
            live.end(waiting=waits)

    async def _handle(self, delivery: Delivery, thread: ThreadRow, live: Live) -> None:
        match delivery.kind:
            case "message":
                await self._message(delivery, thread, live)
            case "resume":
                await self._resume(delivery, live)
            case "timer":
                await self._timer(delivery, live)
            case "stop":
                await self._stop(delivery)

    # ------------------------------------------------------------------------------------------- a message

    async def _message(self, delivery: Delivery, thread: ThreadRow, live: Live) -> None:
        key = delivery.key
        look = await self._s.agent.look(delivery.thread_id)
        if look.has_begun(key):
            await self._endings.conclude(delivery, await self._taken_up_again(delivery, look, live))
            return
        introduced = await self._s.introductions.of(delivery, thread)
        if isinstance(introduced, Unwelcome):
            told = for_author(f"unwelcome:{delivery.key}", delivery, introduced.text)
            await self._endings.turn_away(delivery, told)
            return
        delivery = introduced
        if (announced := announcement(delivery)) is not None:
            if asks_only_for_that(delivery):
                await self._endings.conclude(delivery, look, announced)
                return
            async with self._s.database.writing() as tx:
                await self._s.outbox.say(tx, announced)
        settled = await self._settled(look)
        settler = any(s.key == key for s in settled.values())
        tried_before = settler or look.delivery == key or not look.at_rest
        if tried_before and await self._was_an_answer(delivery):
            await self._resume(delivery, live)
            return
        if not look.at_rest:
            look = await self._after_break(delivery, thread, look, live)
            settled = await self._settled(look)
        if settler:
            # The process died after this message had superseded what was open.
            await self._endings.settle(delivery, _something_new(delivery))
            await self._begin(delivery, thread, live)
            return
        if settled or tried_before:
            # An earlier try of this message may have let the turn before it come to its end, and died before saying so.
            await self._keep(delivery, look)
            look = await self._resume_settled(delivery, look, live)
        await self._interpret(delivery, thread, look, live)

    async def _interpret(self, delivery: Delivery, thread: ThreadRow, look: Look, live: Live) -> None:
        author, addressed = delivery.body["person"], delivery.body["addressed"]
        if look.turn is None and thread.turn is not None:
            async with self._s.database.writing() as tx:
                await self._s.waits.void(tx, delivery.thread_id, delivery.key, STATE_LOST)
        async with self._s.database.reading() as tx:
            open_ = await waiting.in_thread(tx, delivery.thread_id)
            human = (await threads.accounts_of(tx, author))[0]
        requester = look.turn["requester"] if look.turn else thread.requester
        meant = meaning(author, addressed=addressed, requester=requester, waiting=open_)
        if isinstance(meant, NewTurn | Supersedes):
            refused = self._s.turn_limit.refusal(delivery.key, human, delivery.thread_id)
            if refused is not None:
                said = [for_author(f"limit:{delivery.key}", delivery, refused.sentence)] if refused.sentence else []
                await self._endings.conclude(delivery, look, *said)
                return
        match meant:
            case NewTurn() if not look.waits:
                await self._begin(delivery, thread, live)
            case AnswersClarification(clarification_id=clarification_id):
                answered = await self._answer(delivery, clarification_id)
                look = await self._resume_settled(delivery, look, live)
                if isinstance(answered, FormErrors):
                    sentence = " ".join(answered.errors.values())
                    await self._endings.conclude(delivery, look, for_author(f"form:{delivery.key}", delivery, sentence))
                elif answered:
                    await self._endings.conclude(delivery, look)
                else:
                    await self._interpret(delivery, thread, look, live)
            case Supersedes() if await self._superseded(delivery, look):
                await self._endings.settle(delivery, _something_new(delivery))
                await self._begin(delivery, thread, live)
            case NewTurn() | Supersedes():
                # Somebody has decided since we looked, or the records are a copy older than the checkpoints and do not
                # know what waits. A turn begun over it would lose what was approved, and leave calls without answers,
                # which no model's service takes.
                await self._keep(delivery, look)
                look = await self._resume_settled(delivery, look, live)
                await self._interpret(delivery, thread, look, live)
            case ToldToWait():
                told = for_author(f"wait:{delivery.key}", delivery, told_to_wait(open_))
                await self._endings.conclude(delivery, look, told)
            case Ignored():
                await self._endings.conclude(delivery, look)

    async def _answer(self, delivery: Delivery, clarification_id: str) -> bool | FormErrors:
        """Take the message as the answer; false when a form was submitted since we looked. A tool's question may not
        take it."""
        async with self._s.database.writing() as tx:
            question = await clarifications.get(tx, clarification_id)
            if question is None:
                return False
            return await self._s.clarifications.answer_text(tx, question, delivery.body["text"], delivery.key)

    async def _was_an_answer(self, delivery: Delivery) -> bool:
        """Whether the process died after this message had answered a question: then it is no message of its own."""
        async with self._s.database.reading() as tx:
            return await clarifications.answered_by(tx, delivery.key)

    async def _after_break(self, delivery: Delivery, thread: ThreadRow, look: Look, live: Live) -> Look:
        """Bring to rest what was broken off before this message began.

        What came before was seen through, or parked and settled. So if nothing was left unsettled here, it was this
        message itself, in an earlier try: settling, or letting run what had been decided, which may not be lost.
        """
        async with self._s.database.reading() as tx:
            settling = look.verb == "settle" or await waiting.superseded_by(tx, delivery.thread_id, delivery.key)
        if settling or thread.unsettled:
            return await self._endings.settle(delivery, "a turn that was broken off")
        return await self._taken_up_again(delivery, look, live)

    async def _superseded(self, delivery: Delivery, look: Look) -> bool:
        """Give up all that is open; false when somebody has decided since we looked: what was approved runs first."""
        async with self._s.database.writing() as tx:
            if await self._s.waits.settled(tx, look.waits):
                return False
            await self._s.waits.supersede(tx, delivery.thread_id, delivery.key, _something_new(delivery))
        return True

    async def _begin(self, delivery: Delivery, thread: ThreadRow, live: Live) -> None:
        body = delivery.body
        turn = Turn(
            delivery=delivery.key,
            requester=body["person"],
            requester_name=body["name"],
            time_zone=body["time_zone"],
            platform=thread.place.platform,
            channel=thread.place.channel,
            thread_id=delivery.thread_id,
        )
        live.status("Thinking…")
        background = body.get("background", "")
        look = await self._s.agent.begin(turn, body["text"], live, background=background)
        await self._endings.conclude(delivery, look)

    async def _timer(self, delivery: Delivery, live: Live) -> None:
        async with self._s.database.writing() as tx:
            goes_on = await self._s.waits.ring(tx, delivery)
            if not goes_on:
                # A reminder, or settled long ago. What is unfinished in the thread now belongs to a later delivery.
                await deliveries.done(tx, delivery.key)
        if goes_on:
            await self._resume(delivery, live)

    # ------------------------------------------------------------------------------------------- going on

    async def _resume(self, delivery: Delivery, live: Live) -> None:
        look = await self._s.agent.look(delivery.thread_id)
        if look.turn is None:
            # Something was decided, so there was a turn: its checkpoints are gone.
            await self._failing.state_lost(delivery)
            return
        if not look.at_rest:
            look = await self._taken_up_again(delivery, look, live)
        await self._endings.conclude(delivery, await self._resume_settled(delivery, look, live))

    async def _resume_settled(self, delivery: Delivery, look: Look, live: Live) -> Look:
        """Resume every pending interrupt whose row is settled, until none is left, and keep what was said to that: the
        delivery may go on to begin a turn of its own."""
        while settled := await self._settled(look):
            answers = {interrupt_id: s.answer for interrupt_id, s in settled.items()}
            look = await self._s.agent.resume(delivery.thread_id, delivery.key, answers, live)
            await self._keep(delivery, look)
        return look

    async def _keep(self, delivery: Delivery, look: Look) -> None:
        """What was said, and what is asked; what was kept before stays as it is."""
        async with self._s.database.writing() as tx:
            await self._endings.say(tx, delivery.thread_id, look)
            await self._s.waits.record(tx, delivery.thread_id, look.waits)

    async def _taken_up_again(self, delivery: Delivery, look: Look, live: Live) -> Look:
        """Continue what a dead process left; a delivery that kills it again and again is parked."""
        async with self._s.database.writing() as tx:
            await deliveries.count_try(tx, delivery.key)
            # What comes next is shown while it is written: what was said before it may not come after it.
            await self._endings.say(tx, delivery.thread_id, look)
        if delivery.tries >= MAX_DEATHS:
            raise RuntimeError("the process died in this delivery too often")
        verb: Verb = "run" if look.has_begun(delivery.key) else "resume"
        while not look.at_rest:
            look = await self._s.agent.go_on(delivery.thread_id, delivery.key, verb, live)
        return look

    async def _settled(self, look: Look) -> Mapping[str, Settlement]:
        if not look.waits:
            return {}
        async with self._s.database.reading() as tx:
            return await self._s.waits.settled(tx, look.waits)

    # ------------------------------------------------------------------------------------------- stopping

    async def _stop(self, delivery: Delivery) -> None:
        said = self._broken_off.pop(delivery.thread_id, None)
        unfinished = Unfinished(said, "stopped here") if said else None
        why = f"{delivery.body['name']} stopped the turn"
        look = await self._endings.settle(delivery, why, unfinished=unfinished)
        stopped = notice(f"stopped:{delivery.key}", delivery.thread_id, Notice("Stopped."))
        await self._endings.conclude(delivery, look, stopped)

    def _live(self, delivery: Delivery, thread: ThreadRow) -> Live:
        platform = self._s.platforms.get(thread.place.platform)
        reader = delivery.body.get("person") or thread.requester or ""
        return platform.live(thread.thread_id, thread.place, reader) if platform else Silent()


def _something_new(delivery: Delivery) -> str:
    return f"{delivery.body['name']} wrote something new"
