"""Handling a delivery: read the facts, decide, do that one thing, and so on until the delivery has ended.

`bot.turns.decision` decides what to do; everything that is read or written for it is here. Whatever is killed when,
handling the delivery again ends in the same place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

import structlog

from bot.agent_choices import AgentChoices
from bot.approvals.requests import timer_kind
from bot.approvals.retries import given_call_of
from bot.budgets import DailyBudget
from bot.domain import Clock, Notice, Unwelcome
from bot.files import FILES, Files
from bot.forms.values import FormErrors
from bot.limits import TooMany, TurnedOff, TurnLimit
from bot.logs import log_context
from bot.outbox import Outbox, notice, pause_between, said
from bot.plans import Plans, is_task, turn_of_task
from bot.platform import Platform, PostFailed
from bot.questions import Questions
from bot.records import approvals, clarifications, deliveries, threads, waiting
from bot.records.claims import Claim, Overtaken, current_claim
from bot.records.database import Database, Transaction, is_away
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.records.threads import ThreadRow
from bot.records.waiting import Waiting
from bot.rounds import CARD_FIRST, wait_rounds
from bot.task_threads import is_task_thread
from bot.turns.decision import (
    Announce,
    Begin,
    Conclude,
    Continue,
    Expire,
    GiveUp,
    Kept,
    Park,
    PutOff,
    RecordAnswer,
    Remind,
    ReportLoss,
    Resume,
    Say,
    Settle,
    Supersede,
    TakeUp,
    Timer,
    TryLater,
    TurnAway,
    TurnEnding,
    TurnFacts,
    TurnStep,
    Void,
    next_action,
)
from bot.turns.engine import Engine, resume_thread
from bot.turns.failures import (
    MOST_OUTAGE_TRIES,
    after_failure,
    gave_up,
    loss_in_words,
    reference_of,
    regret,
    said_by_service,
    state_lost,
)
from bot.turns.messages import HUMAN, OWNERS, Introductions, NewTurn, Supersedes, announcement, meaning, message_of
from bot.turns.open_requests import OpenRequests
from bot.turns.remembering import to_remember
from bot.usage import keep_usage
from graph.agents import DEFAULT
from graph.citations import named_in_words
from graph.files import CarriedFile
from graph.interrupts import ApprovalAsked
from graph.models import ModelProblem, Trouble
from graph.observing import NOBODY, DeliveryHandled, GraphRun, HandlingEnding, Observer
from graph.options import is_stricter
from graph.ports import Live, Spoken, Unfinished
from graph.running import Agent, ThreadStatus
from graph.state import Silent, Turn
from graph.usage import Usage
from policies.masking import Masker
from translations import gettext as _
from translations import ngettext

log = structlog.get_logger(__name__)


class LiveText:
    """A live view that keeps the text of the newest answer: it is nowhere else until the answer is finished."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._message_id = ""
        self._pieces: list[str] = []
        self.status = live.status
        self.task = live.task
        self.end = live.end
        self.leave = live.leave

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        if message_id != self._message_id:
            self._message_id, self._pieces = message_id, []
        self._pieces.append(delta)
        self._live.text(message_id, delta)

    @property
    def newest(self) -> Spoken | None:
        """The newest answer as far as it was written; None when nothing was."""
        text = "".join(self._pieces)
        return Spoken(self._message_id, text) if text.strip() else None


MOST_AT_REST = 64
"""Threads of which is remembered where their graph came to rest."""
_NOT_REMEMBERED: tuple[ThreadStatus | None, Claim | None] = None, None
_NO_OUTAGE: tuple[str, int, Claim | None] = "", 0, None
NOT_READ = ThreadStatus(delivery=None, verb=None, at_rest=True, interrupts=(), turn=None, spoken=())


@dataclass(slots=True)
class Handling:
    """One try at a delivery: what it has found out and done. Forgotten when the process dies."""

    began: float
    """In seconds since the epoch."""
    accepted: Delivery
    delivery: Delivery
    """What is handled; a message as its platform introduces it, once it has."""
    thread: ThreadRow
    heard: str | None
    """Key of the message before it in its thread."""
    live: LiveText
    broken_off: Spoken | None
    """What was being said in the thread when its run was broken off for this delivery."""
    rested: ThreadStatus | None
    """Where the graph of the thread stands, as far as that is remembered."""
    introduced: bool = False
    status: ThreadStatus = NOT_READ
    """Where the graph of the thread stands."""
    kept: Kept = "before"
    """Whether what the model said, and what the graph asks, is in the records."""
    objection: str = ""
    """Why the message could not be taken as an answer."""
    waits: bool | None = None
    """Whether the thread waits for people, where that was found out in the end."""
    counted: tuple[str, Usage] | None = None
    """The turn of the thread and its usage, as they were kept last."""
    outages: int = 0
    """Tries of it in this process, right before this one, that ended since the records went away."""
    done: list[type[TurnStep]] = field(default_factory=list)
    ran: GraphRun = ""
    begun: Turn | None = None
    """The turn that it has begun."""
    resumed: list[tuple[str, int]] = field(default_factory=list)
    """The approvals by which its turn went on: call and round."""
    ending: TurnEnding | None = None
    """How this try has ended; `None`: it has not."""


@dataclass(slots=True, eq=False)
class TurnHandler:
    """Handles deliveries, one at a time per thread (the engine sees to that)."""

    database: Database
    agent: Agent
    outbox: Outbox
    requests: OpenRequests
    questions: Questions
    plans: Plans
    introductions: Introductions
    platforms: Mapping[str, Platform]
    engine: Engine
    clock: Clock
    turn_limit: TurnLimit
    agents: AgentChoices
    files: Files
    masker: Masker
    begins_turns: bool = True
    """False: no turn begins (`AGENT_ENABLE`); those that have begun go on."""
    remembers: bool = False
    """Whether the words of messages are looked through afterwards for what to remember (`MEMORY`)."""
    budget: DailyBudget | None = None
    """Of whose budgets people are told when most is used; `None`: of none."""
    observer: Observer = NOBODY
    _cut: dict[str, tuple[Handling, float, Claim | None]] = field(default_factory=dict, init=False)
    """Thread → the try that was broken off there, with what was being said in it, until the next delivery is handled;
    when that was; and the claim."""
    _at_rest: OrderedDict[str, tuple[ThreadStatus, Claim | None]] = field(default_factory=OrderedDict, init=False)
    """Thread → where its graph stands since its last delivery was concluded, the latest last; and the claim. Reading
    that back takes 0.5 to 1 ms, of the way from a click to its call. Taken out when the next delivery begins, whatever
    becomes of it: only what is on disk may be remembered, and a failed transaction may have lost checkpoints."""
    _outages: dict[str, tuple[str, int, Claim | None]] = field(default_factory=dict, init=False)
    """Thread → the delivery in which the records went away last, how many tries of it in a row have ended so, and the
    claim."""
    _made_at: float = field(init=False)
    """When the process began to handle deliveries, in seconds since the epoch."""

    def __post_init__(self) -> None:
        self._made_at = self.clock()

    async def handle(self, delivery: Delivery) -> None:
        """See a delivery through: to its effects, or to the next try, or parked.

        Raises only if not even that can be recorded, or the records went away meanwhile, which is no try: what kills
        the process is counted by whoever takes it up.
        """
        with log_context(thread_id=delivery.thread_id, delivery=delivery.key):
            if delivery.kind == "resume":
                await wait_rounds(CARD_FIRST)
            async with self.database.reading() as tx:
                thread, heard = await threads.of_delivery(tx, delivery.thread_id, delivery.key)
            if thread is None:
                await self._park_unknown(delivery)
                return
            live = LiveText(self._live(thread, delivery))
            # What is remembered under another claim is old: another process may have run the thread since.
            claim = current_claim()
            broken_off = self._said_when_cut(delivery, claim)
            rested, rested_under = self._at_rest.pop(delivery.thread_id, _NOT_REMEMBERED)
            rested = rested if _is_as_it_was(claim, rested_under) else None
            failed, outages, failed_under = self._outages.pop(delivery.thread_id, _NO_OUTAGE)
            outages = outages if failed == delivery.key and failed_under is claim else 0
            handling = Handling(
                self.clock(), delivery, delivery, thread, heard, live, broken_off, rested, outages=outages
            )
            handling.counted = _counted(rested) if rested is not None else None
            try:
                while not isinstance(action := next_action(await self._facts(handling)), TurnEnding):
                    await self._step(handling, action)
                    handling.done.append(type(action))
                await self._end(handling, action)
            except asyncio.CancelledError:
                self._cut_short(handling, claim)
                raise
            except Overtaken:
                self._leave(handling)
                raise
            except PostFailed as failure:
                log.warning("platform_not_reached", cause=str(failure), reference=reference_of(delivery))
                await self._end(handling, after_failure(delivery, failure, None, self.masker))
            except ModelProblem as problem:
                said = said_by_service(problem, self.masker)
                log.warning("turn_failed", cause=str(problem), service=said, reference=reference_of(delivery))
                await self._end(handling, after_failure(delivery, problem, live.newest, self.masker))
            except Exception as cause:
                if is_away(cause) and outages < MOST_OUTAGE_TRIES:
                    self._outages[delivery.thread_id] = delivery.key, outages + 1, claim
                    raise  # the engine tries again, once the records are back
                log.exception("delivery_failed", tries=delivery.tries + 1, reference=reference_of(delivery))
                await self._end(handling, after_failure(delivery, cause, None, self.masker))
            finally:
                await self._end_live(handling)
            self.observer.note(_handled(handling, self.clock()))

    def _cut_short(self, handling: Handling, claim: Claim | None) -> None:
        if claim is not None and claim.is_left:
            self._leave(handling)
        else:
            self._cut[handling.delivery.thread_id] = handling, self.clock(), claim

    def _said_when_cut(self, delivery: Delivery, claim: Claim | None) -> Spoken | None:
        """What was being said in the try that was broken off in the thread; `None`: nothing. That try is over if
        something else follows it, and observers are told; else it is made again."""
        handling, ended, cut_under = self._cut.pop(delivery.thread_id, (None, 0.0, None))
        if handling is None or cut_under is not claim:
            return None
        if handling.accepted.key != delivery.key:
            self.observer.note(_cut_off(handling, ended))
        return handling.live.newest

    def _live(self, thread: ThreadRow, delivery: Delivery) -> Live:
        platform = self.platforms.get(thread.place.platform)
        # What an agent says of its task is not shown while it is written: the plan shows how far it is.
        if platform is None or is_task_thread(thread.thread_id):
            return Silent()
        return platform.live(thread.thread_id, thread.place, delivery.body.get("person") or thread.requester or "")

    def _leave(self, handling: Handling) -> None:
        """Another process tells people what becomes of it."""
        handling.live.leave()
        handling.live = LiveText(Silent())

    async def _end_live(self, handling: Handling) -> None:
        waits = handling.waits or False
        try:
            if handling.waits is None:
                async with self.database.reading() as tx:
                    waits = await waiting.anything_in(tx, handling.thread.thread_id)
        finally:
            handling.live.end(waiting=waits)

    # ------------------------------------------------------------------------------------------- the facts

    async def _facts(self, handling: Handling) -> TurnFacts:
        """What is known now. What cannot change the decision any more is not read."""
        delivery = handling.delivery
        facts = TurnFacts(
            delivery,
            steps=len(handling.done),
            taken_up=TakeUp in handling.done,
            ran=any(step in handling.done for step in (Begin, Continue, Resume)),
            settled=Settle in handling.done,
            broken_off=handling.broken_off,
            left_over=delivery.accepted_at < self._made_at or _is_taken_over(),
        )
        if delivery.kind == "stop":
            return facts
        if delivery.kind == "timer":
            facts = replace(facts, timer=await self._timer(delivery))
            if facts.timer != "expired":
                return facts
        if handling.status is NOT_READ:
            handling.status = handling.rested or await self.agent.status(delivery.thread_id)
            if handling.status.delivery == delivery.key or not handling.status.at_rest:
                handling.kept = "perhaps"
        if delivery.kind != "message":
            return await self._row_facts(handling, facts)
        if handling.status.has_begun(delivery.key):
            given_up = handling.status.verb == "settle"
            return replace(facts, progress="given up" if given_up else "begun", at_rest=handling.status.at_rest)
        if not handling.introduced:
            introduced = await self.introductions.of(delivery, handling.thread, handling.heard)
            if isinstance(introduced, Unwelcome):
                return replace(facts, unwelcome=introduced)
            handling.delivery, handling.introduced = introduced, True
        facts = replace(facts, delivery=handling.delivery)
        if Announce not in handling.done and (announced := announcement(handling.delivery)) is not None:
            return replace(facts, announcement=announced)
        facts = await self._row_facts(handling, facts)
        if facts.answered or not facts.at_rest or facts.gave_way or facts.kept == "perhaps" or facts.decided:
            return facts
        if facts.turn == "lost" or facts.objection or not isinstance(facts.meaning, NewTurn | Supersedes):
            return facts
        return replace(facts, refused=await self._refusal(handling))

    async def _timer(self, timer: Delivery) -> Timer:
        if timer_kind(timer) != "expire":
            return "reminds"
        async with self.database.reading() as tx:
            approval = await approvals.get(tx, timer.body["approval"])
        if approval is not None and approval.status == "pending":
            return "expires"
        return "expired" if approval is not None and approval.settled_key == timer.key else "over"

    async def _row_facts(self, handling: Handling, facts: TurnFacts) -> TurnFacts:
        """Where the graph stands, and what the records say about what waits in it or was broken off."""
        status, delivery = handling.status, handling.delivery
        turn: Literal["known", "none", "lost"] = "known"
        if status.turn is None:
            turn = "lost" if handling.thread.turn is not None and Void not in handling.done else "none"
        facts = replace(facts, turn=turn, at_rest=status.at_rest, waits=bool(status.interrupts), kept=handling.kept)
        async with self.database.reading() as tx:
            # Before what is decided: what people decide in between is seen as both, never as neither.
            open_ = await waiting.in_thread(tx, delivery.thread_id) if delivery.kind == "message" else Waiting()
            recorded = await self.requests.answers(tx, status.interrupts) if status.interrupts else {}
            facts = replace(facts, decided={interrupt_id: each.answer for interrupt_id, each in recorded.items()})
            if delivery.kind != "message":
                return facts
            given = any(answer.key == delivery.key for answer in recorded.values())
            tried = given or not status.at_rest or status.delivery == delivery.key or RecordAnswer in handling.done
            tried = tried or bool(open_.plans)  # a question of one of their tasks, by a try before
            answered = tried and await clarifications.answered_by(tx, delivery.key)
            ending = not status.at_rest and (handling.thread.unsettled or status.verb == "settle")
            if not status.at_rest and not ending:
                ending = await waiting.superseded_by(tx, delivery.thread_id, delivery.key)
        requester = status.turn["requester"] if status.turn else handling.thread.requester
        author, addressed = delivery.body["person"], delivery.body["addressed"]
        return replace(
            facts,
            answered=answered,
            ending=ending,
            gave_way=given and not answered,
            objection=handling.objection,
            meaning=meaning(
                author,
                addressed=addressed,
                at=delivery.accepted_at,
                requester=requester,
                waiting=open_,
                is_stricter=status.turn is not None and is_stricter(delivery.body.get("options", {}), status.turn),
                accounts=delivery.body.get(OWNERS, ()),
                answers=given_call_of(delivery) is None and FILES not in delivery.body,
            ),
        )

    async def _refusal(self, handling: Handling) -> TooMany | TurnedOff | None:
        """Why the turn of this message may not begin now. Turns are counted, so that is asked only when nothing else is
        left to decide; a message that has superseded something was counted before."""
        status, delivery = handling.status, handling.delivery
        if is_task(delivery):
            return None  # the turn that it is part of has begun
        if not self.begins_turns:
            return TurnedOff()
        if Supersede in handling.done or (status.delivery, status.verb) == (delivery.key, "settle"):
            return None
        human = delivery.body.get(HUMAN)
        if human is None:  # nobody has introduced them
            async with self.database.reading() as tx:
                human = (await threads.accounts_of(tx, delivery.body["person"]))[0]
        return await self.turn_limit.refusal(delivery.key, human, delivery.thread_id)

    # ------------------------------------------------------------------------------------------- steps

    async def _step(self, handling: Handling, step: TurnStep) -> None:
        """Do what changes the facts."""
        thread_id, key = handling.delivery.thread_id, handling.delivery.key
        match step:
            case Begin():
                handling.ran, body = "began", handling.delivery.body
                if is_task(handling.delivery):
                    turn = turn_of_task(handling.delivery)
                else:
                    turn = _turn_of(handling)
                    agent = await self.agents.for_message(body, handling.thread.place.channel)
                    if agent != DEFAULT:
                        turn["agent"] = agent
                handling.begun = turn
                handling.live.status(_("Thinking…"))
                background = body.get("background", "")
                given = given_call_of(handling.delivery)
                files = await self._files_of(handling)
                async with self._in_time(turn):
                    handling.status = await self.agent.begin(
                        turn, body["text"], handling.live, background=background, files=files, call=given
                    )
            case Continue(verb=verb):
                handling.ran = "went on"
                async with self._in_time(handling.status.turn):
                    handling.status = await self.agent.go_on(thread_id, key, verb, handling.live)
                handling.kept = "perhaps"
            case Resume(answers=answers):
                handling.ran = "resumed"
                live, interrupts = handling.live, handling.status.interrupts
                if is_task_thread(thread_id):
                    async with self.database.writing(thread_id) as tx:
                        await self.plans.goes_on(tx, thread_id)
                async with self._in_time(handling.status.turn):
                    handling.status = await self.agent.resume(thread_id, key, answers, live, interrupts=interrupts)
                handling.kept = "perhaps"
                answered = (each.asked for each in interrupts if each.interrupt_id in answers)
                handling.resumed += [(each.call_id, each.round) for each in answered if isinstance(each, ApprovalAsked)]
            case Settle(why=why, unfinished=unfinished):
                handling.ran = handling.ran or "was ended"
                await self._settle(handling, why, unfinished)
            case RecordAnswer(clarification_id=clarification_id):
                await self._record_answer(handling, clarification_id)
            case _:
                async with self.database.writing(thread_id) as tx:
                    await self._write(tx, handling, step)
                if isinstance(step, Say):
                    handling.kept = "now"

    async def _files_of(self, handling: Handling) -> Sequence[CarriedFile]:
        """What the message was handed over with, read. Raises `PostFailed` when it cannot be had now."""
        if FILES not in handling.delivery.body:
            return ()
        handling.live.status(_("Reading your files…"))
        delivery = handling.delivery
        message = message_of(delivery, handling.thread, delivery.body["text"])
        return await self.files.taken_in(message, delivery.thread_id, deliveries.outages(delivery))

    @asynccontextmanager
    async def _in_time(self, turn: Turn | None) -> AsyncIterator[None]:
        """Within it a run of a turn takes no longer than its agent may; then it is broken off as by "stop". Raises
        `ModelProblem` when it does."""
        seconds = self.agents.timeout_of(turn) if turn is not None else None
        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError:
            if seconds is None or not limit.expired():
                raise
            sentence = ngettext(
                "I stopped after {count} second, the most that this agent may take. Try a smaller request.",
                "I stopped after {count} seconds, the most that this agent may take. Try a smaller request.",
                int(seconds),
            )
            raise ModelProblem(Trouble.TIMED_OUT, sentence=sentence.format(count=int(seconds))) from None

    async def _write(
        self, tx: Transaction, handling: Handling, step: TakeUp | Say | Announce | Supersede | Void | Expire
    ) -> None:
        """The steps that are one transaction."""
        thread_id, key = handling.delivery.thread_id, handling.delivery.key
        status = handling.status
        match step:
            case TakeUp():
                if not handling.outages:
                    await deliveries.count_try(tx, key)
                if handling.kept == "perhaps" or status.has_begun(key):
                    await self._say(tx, thread_id, status)
            case Say():
                await self._say(tx, thread_id, status)
                await self.requests.record(tx, thread_id, status.interrupts)
            case Announce(post=post):
                await self.outbox.say(tx, post)
            case Supersede(why=why):
                if not await self.requests.answers(tx, status.interrupts):
                    await self.requests.supersede(tx, thread_id, key, why)
            case Void():
                await self.requests.void(tx, thread_id, key, state_lost(), turn=handling.thread.turn)
            case Expire():
                await self.requests.on_timer(tx, handling.delivery)

    async def _settle(self, handling: Handling, why: str, unfinished: Unfinished | None) -> None:
        thread_id, key = handling.delivery.thread_id, handling.delivery.key
        left = await self.agent.status(thread_id)
        async with self.database.writing(thread_id) as tx:
            await self.requests.supersede(tx, thread_id, key, why)
            await self._keep_usage(tx, handling, left)  # a turn that begins after it counts from nothing
            ended = await self.requests.ended_plans(tx, left.interrupts)
        handling.status = await self.agent.settle(thread_id, key, why, unfinished=unfinished, plans=ended)
        if handling.status.turn is None and handling.thread.turn is not None:
            # The checkpoints are lost, so the graph did not know what it had to end.
            async with self.database.writing(thread_id) as tx:
                await self.requests.void(tx, thread_id, key, state_lost(), turn=handling.thread.turn)

    async def _record_answer(self, handling: Handling, clarification_id: str) -> None:
        async with self.database.writing(handling.delivery.thread_id) as tx:
            question = await clarifications.get(tx, clarification_id)
            if question is None:
                return
            text = handling.delivery.body["text"]
            answered = await self.questions.answer_text(tx, question, text, handling.delivery.key)
            if answered is True and question.thread_id != handling.delivery.thread_id:  # one of a task
                subject, now = question.clarification_id, self.clock()
                await resume_thread(tx, self.engine, question.thread_id, subject, now=now)
        if isinstance(answered, FormErrors):
            handling.objection = " ".join(answered.errors.values())

    async def _say(self, tx: Transaction, thread_id: str, status: ThreadStatus) -> None:
        """Keep what the model said in the turn; what was kept before stays as it is."""
        for spoken in status.spoken:
            await self.outbox.say(tx, said(thread_id, spoken))

    # ------------------------------------------------------------------------------------------- endings

    async def _end(self, handling: Handling, ending: TurnEnding) -> None:
        """End this try. What follows from a delivery is kept in the transaction that marks it as done."""
        handling.ending = ending
        match ending:
            case Conclude(posts=posts):
                await self._conclude(handling, posts)
            case GiveUp(sentence=sentence, unfinished=unfinished, cause=cause):
                await self._settle(handling, _("The answer couldn’t be finished"), unfinished)
                await self._conclude(handling, (regret(handling.delivery, sentence),), failure=sentence, cause=cause)
            case Park(cause=cause):
                await self._park(handling, cause)
            case _:
                async with self.database.writing(handling.delivery.thread_id) as tx:
                    await self._write_end(tx, handling, ending)

    async def _conclude(
        self, handling: Handling, posts: tuple[NewPost, ...], *, failure: str = "", cause: str = ""
    ) -> None:
        status, thread_id = handling.status, handling.delivery.thread_id
        # Before the transaction, which rests on what is left: what it drops is then never written.
        await self.agent.prune(thread_id, status)
        async with self.database.writing(thread_id) as tx:
            await self._say(tx, thread_id, status)
            await self._keep_usage(tx, handling, status)
            if is_task_thread(thread_id):
                await self._note_task(tx, thread_id, status, failure)
            else:
                await self._warn_of_budgets(tx, status)
                for post in posts:
                    await self.outbox.say(tx, post)
                if self.remembers and not failure:
                    await self._remember_later(tx, handling)
            await self.requests.record(tx, thread_id, status.interrupts)
            if status.turn is not None and not _is_turn_of(handling.thread, status.turn):
                await threads.set_turn(tx, thread_id, status.turn["requester"], status.turn["delivery"])
            await _forget_sources(tx, handling.delivery)
            if cause:
                await deliveries.note_cause(tx, handling.delivery.key, cause)
            handling.waits = await waiting.conclude(tx, thread_id, handling.delivery.key)
        if status is not NOT_READ:
            self._at_rest[thread_id] = status, current_claim()
            if len(self._at_rest) > MOST_AT_REST:
                self._at_rest.popitem(last=False)

    async def _keep_usage(self, tx: Transaction, handling: Handling, status: ThreadStatus) -> None:
        """Keep what the turn has used of language models, unless that is kept already."""
        counted = _counted(status)
        if status.turn is None or not status.usage or counted == handling.counted:
            return
        await keep_usage(tx, status.turn, status.usage, self.clock())

        def note() -> None:
            handling.counted = counted

        tx.afterwards(note)

    async def _warn_of_budgets(self, tx: Transaction, status: ThreadStatus) -> None:
        """Say once a day that most of a budget is used: to the person alone, or in the channel."""
        if self.budget is None or status.turn is None:
            return
        turn = status.turn
        for warning in await self.budget.warnings(tx, turn["requester"], turn["channel"]):
            others_read = turn["channel"] or turn["platform"] not in {"slack", "teams"}
            only_for = turn["requester"] if warning.is_of_person and others_read else None
            told = Notice(warning.sentence)
            await self.outbox.say(tx, notice(warning.key, turn["thread_id"], told, only_for=only_for))

    async def _remember_later(self, tx: Transaction, handling: Handling) -> None:
        """Have the words that the turn began with looked through when nothing else is done, once however often the
        turn is taken up."""
        channel, now = handling.thread.place.channel, self.clock()
        later = to_remember(handling.delivery, handling.status, channel, now)
        if later is not None and await deliveries.add_for_later(tx, later):
            tx.afterwards(lambda: self.engine.wake_when_idle(later.thread_id))

    async def _note_task(self, tx: Transaction, thread_id: str, status: ThreadStatus, failure: str) -> None:
        """Keep how far a task is. What would be said of it to its author is part of what came of it."""
        if failure:
            await self.plans.failed(tx, thread_id, failure)
        elif status.turn is not None:
            answer = next((each for each in reversed(status.spoken) if each.final), None)
            delivery, waits = status.turn["delivery"], bool(status.interrupts)
            if answer is not None and answer.gave_up:
                await self.plans.failed(tx, thread_id, answer.text)
            else:
                # The agent that reads it has other sources: these are named.
                said_last = named_in_words(answer.text, answer.sources) if answer is not None else ""
                await self.plans.at_rest(tx, thread_id, delivery, said_last, waits=waits)

    async def _park(self, handling: Handling, cause: str) -> None:
        log.error("delivery_parked", cause=cause, reference=reference_of(handling.delivery))
        settled = True
        try:
            await self._settle(handling, _("Something went wrong"), None)
        except Exception:
            # The next delivery settles before it does anything; this one must be out of its way first.
            log.exception("parked_thread_not_settled", reference=reference_of(handling.delivery))
            settled = False
        async with self.database.writing(handling.delivery.thread_id) as tx:
            await self._regret(tx, handling.delivery, gave_up())
            await _forget_sources(tx, handling.delivery)
            await deliveries.park(tx, handling.delivery.key, cause)
            if not settled:
                await threads.leave_unsettled(tx, handling.delivery.thread_id)
        log.info("thread_goes_on", settled=settled)

    async def _regret(self, tx: Transaction, delivery: Delivery, sentence: str) -> None:
        if is_task_thread(delivery.thread_id):
            await self.plans.failed(tx, delivery.thread_id, sentence)
        else:
            await self.outbox.say(tx, regret(delivery, sentence))

    async def _park_unknown(self, delivery: Delivery) -> None:
        cause = "its thread is not known"
        log.error("delivery_parked", cause=cause, reference=reference_of(delivery))
        async with self.database.writing(delivery.thread_id) as tx:
            await _forget_sources(tx, delivery)
            await deliveries.park(tx, delivery.key, cause)

    async def _write_end(
        self, tx: Transaction, handling: Handling, ending: TurnAway | Remind | ReportLoss | TryLater | PutOff
    ) -> None:
        """The endings that are one transaction."""
        delivery = handling.accepted
        match ending:
            case TurnAway(post=post):
                await self.outbox.say(tx, post)
                await threads.let_go(tx, delivery.thread_id, delivery.body["person"])
                await _forget_sources(tx, delivery)
                await deliveries.done(tx, delivery.key)
            case Remind():
                await self.requests.on_timer(tx, delivery)
                await deliveries.done(tx, delivery.key)
            case ReportLoss():
                log.error("thread_state_lost", reference=reference_of(delivery))
                thread = handling.thread
                begun = await self.requests.void(tx, thread.thread_id, delivery.key, state_lost(), turn=thread.turn)
                await self._regret(tx, delivery, loss_in_words(begun))
                await _forget_sources(tx, delivery)
                await deliveries.done(tx, delivery.key)
            case TryLater(seconds=seconds, cause=cause):
                await deliveries.retry(tx, delivery.key, self.clock() + seconds, cause)
                tx.afterwards(self.engine.timer_was_set)
            case PutOff(outages=outages, retry_after=retry_after, cause=cause):
                due_at = self.clock() + pause_between(outages, retry_after)
                await deliveries.put_off(tx, delivery, due_at, cause)
                tx.afterwards(self.engine.timer_was_set)


async def _forget_sources(tx: Transaction, delivery: Delivery) -> None:
    """A delivery is over: how its files were fetched is of no use any more, and may be a link that opens them."""
    if FILES in delivery.body:
        await deliveries.forget_sources(tx, delivery.key)


def _turn_of(handling: Handling) -> Turn:
    """The turn that a message begins."""
    body, place = handling.delivery.body, handling.thread.place
    turn = Turn(
        delivery=handling.delivery.key,
        requester=body["person"],
        requester_name=body["name"],
        time_zone=body["time_zone"],
        platform=body.get("via") or place.platform,
        channel=place.channel,
        thread_id=handling.delivery.thread_id,
    )
    if body.get("options"):
        turn["options"] = body["options"]
    return turn


def _handled(handling: Handling, ended: float) -> DeliveryHandled:
    """What whoever measures turns is told of a try."""
    status = handling.status
    answer = next((each.text for each in reversed(status.spoken) if each.final), "")
    ending: HandlingEnding
    trouble = ""
    match handling.ending:
        case GiveUp(trouble=trouble):
            ending = "failed"
        case Park(cause=cause):
            ending, trouble = "parked", cause.partition(":")[0]
        case TryLater(cause=cause) | PutOff(cause=cause):
            ending, trouble = "tried again", cause.partition(":")[0]
        case _:
            ending = "waits" if handling.waits else "done"
    told = _told(handling, status.turn, ending, ended)
    return replace(told, trouble=trouble, said=answer)


def _cut_off(handling: Handling, ended: float) -> DeliveryHandled:
    """The same of one that somebody has stopped: where the graph stands was not read any more."""
    said = handling.live.newest
    told = _told(handling, handling.begun or handling.status.turn, "broken off", ended)
    return replace(told, said=said.text if said is not None else "")


def _told(handling: Handling, turn: Turn | None, ending: HandlingEnding, ended: float) -> DeliveryHandled:
    delivery = handling.accepted
    return DeliveryHandled(
        delivery.key,
        delivery.kind,
        delivery.thread_id,
        handling.thread.place.platform,
        turn,
        handling.ran,
        ending,
        delivery.accepted_at,
        handling.began,
        max(ended - handling.began, 0.0),
        resumed=handling.resumed,
        asked=delivery.body.get("text", ""),
    )


def _counted(status: ThreadStatus) -> tuple[str, Usage] | None:
    """The turn and its usage."""
    return (status.turn["delivery"], status.usage) if status.turn is not None else None


def _is_as_it_was(claim: Claim | None, earlier: Claim | None) -> bool:
    """Whether nobody else can have run the thread since the earlier claim."""
    return claim is earlier or (claim is not None and earlier is not None and claim.follows(earlier))


def _is_taken_over() -> bool:
    """Whether another process may have died in what is handled."""
    claim = current_claim()
    return claim is not None and claim.taken_over


def _is_turn_of(thread: ThreadRow, turn: Turn) -> bool:
    """Whether this is kept of the thread already. As it was read before its delivery was handled: nothing else changes
    whose turn it is meanwhile."""
    return (thread.requester, thread.turn, thread.unsettled) == (turn["requester"], turn["delivery"], False)
