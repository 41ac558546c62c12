"""What the house offers to the inbound side of an adapter: three lanes, none of which waits for a running turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.approvals import ApprovalBook
from bot.clarifications import ClarificationBook
from bot.clock import Clock
from bot.connections import SignInBook
from bot.inbox.accept import Acceptance
from bot.inbox.engine import Engine
from bot.inbox.sessions import current_thread
from bot.meaning import is_stop
from bot.posts import Posts
from bot.records import attempts, deliveries, posts, threads, waiting
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.views import post_of
from bot.vocabulary import (
    AlreadySettled,
    ClickResult,
    Decision,
    Form,
    FormAnswer,
    Message,
    MessageView,
    OutcomeChoice,
    Person,
    Post,
    Refused,
    Settled,
    SignInReply,
    ThreadSummary,
    ThreadView,
    Unknown,
)

SHOWN = 300
"""Messages and posts of a thread that are shown, the newest of each."""
NO_OUTCOME = Unknown("This call does not exist (any more).")


@dataclass(frozen=True, slots=True)
class Books:
    """Where messages come in and questions to people are kept."""

    acceptance: Acceptance
    approvals: ApprovalBook
    clarifications: ClarificationBook
    sign_ins: SignInBook


class FrontDesk:
    """Fills `bot.platform.Desk`."""

    def __init__(self, database: Database, engine: Engine, books: Books, outbox: Posts, clock: Clock) -> None:
        self._database = database
        self._engine = engine
        self._books = books
        self._posts = outbox
        self._clock = clock
        self._met: set[Person] = set()

    # ------------------------------------------------------------------------------------------- turn lane

    async def accept(self, message: Message) -> bool:
        """Keep a message durably. "Stop" does not queue."""
        if is_stop(message.text):
            async with self._database.reading() as tx:
                if await deliveries.exists(tx, message.key):
                    return False
                thread_id = await current_thread(tx, message.place, message.author.person_id)
            result = await self.stop(message.key, thread_id or "", message.author, text=message.text)
            if isinstance(result, Settled):
                return True
        accepted = await self._books.acceptance.accept(message)
        if accepted.is_new:
            self._engine.wake(accepted.thread_id)
        return accepted.is_new

    # ------------------------------------------------------------------------------------------- decide lane

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        """Judge and record a click, per approval."""
        results: dict[str, ClickResult] = {}
        settled: dict[str | None, str] = {}
        async with self._database.writing_urgently() as tx:
            if decision.person not in self._met:
                await threads.remember(tx, decision.person, self._clock())
                tx.afterwards(lambda: self._met.add(decision.person))
            for approval_id in dict.fromkeys(decision.approval_ids):
                results[approval_id] = result = await self._books.approvals.decide(tx, decision, approval_id)
                if isinstance(result, Settled) and result.final:
                    settled.setdefault(await self._books.approvals.thread_of(tx, approval_id), approval_id)
            for thread_id, approval_id in settled.items():
                await self._resume(tx, thread_id, approval_id)
        return results

    async def answer(self, answer: FormAnswer) -> ClickResult:
        """Record the answer to a clarification."""
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.clarifications.answer_form(tx, answer)
            await self._resume(tx, thread_id, answer.clarification_id)
        return result

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        """Record that a person has signed in, or will not."""
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.sign_ins.reply(tx, reply)
            await self._resume(tx, thread_id, reply.sign_in_id)
        return result

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        """Record what came of an attempt that broke off; its requester only."""
        async with self._database.writing_urgently() as tx:
            row = await attempts.get(tx, choice.outcome_id)
            if row is None:
                return NO_OUTCOME
            if row.requester != choice.person.person_id:
                return Refused("Only the person who asked for this call can say what came of it.")
            if not await attempts.choose(tx, row.attempt_id, choice.choice, choice.person.name, key=choice.key):
                twice = row.settled_key == choice.key
                return Settled("Noted.") if twice else AlreadySettled("This was settled already.")
            await self._posts.show_again(tx, [row.attempt_id, *await self._books.approvals.ids_of(tx, row.call_id)])
            await self._resume(tx, row.thread_id, row.attempt_id)
        return Settled("Noted.")

    async def stop(self, key: str, thread_id: str, person: Person, text: str = "") -> ClickResult:
        """End the turn of a thread; its requester only. Breaks off what runs and drops what this person had queued;
        for anybody else it only does the latter."""
        async with self._database.writing_urgently() as tx:
            if await deliveries.exists(tx, key):
                return Settled("Stopped.")
            requesters = await self._requesters(tx, thread_id)
            queued = await deliveries.waiting_messages(tx, thread_id)
            mine = [k for k, author in queued if author == person.person_id]
            if not requesters:
                return Refused("Nothing is running here.")
            if not mine and person.person_id not in requesters:
                return Refused("Only the person whose request this is can stop it.")
            now = self._clock()
            body = {"person": person.person_id, "name": person.name, "text": text}
            await deliveries.drop(tx, mine)
            await deliveries.add(tx, Delivery(key, thread_id, "stop", body, True, now, now))
            if person.person_id not in requesters:
                await deliveries.done(tx, key)
                return Settled("What you had written here is not handled any more.")
            await deliveries.drop_resumes(tx, thread_id)
            tx.afterwards(lambda: self._engine.interrupt(thread_id))
            tx.afterwards(lambda: self._engine.wake(thread_id))
        return Settled("Stopped.")

    async def _requesters(self, tx: Transaction, thread_id: str) -> frozenset[str]:
        """Whose turn it is in a thread, from what waits for people or is being handled; empty: nobody's."""
        if pending := await waiting.in_thread(tx, thread_id):
            return pending.requesters
        if not await deliveries.is_busy(tx, thread_id):
            return frozenset()
        thread = await threads.get(tx, thread_id)
        author = await deliveries.first_author(tx, thread_id) or (thread.requester if thread else None)
        return frozenset([author] if author else [])

    async def _resume(self, tx: Transaction, thread_id: str | None, settled: str) -> None:
        """Something was settled, once and for all: let its thread go on."""
        if thread_id is None:
            return
        now = self._clock()
        await deliveries.add(tx, Delivery(f"resume:{settled}", thread_id, "resume", {}, False, now, now))
        tx.afterwards(lambda: self._engine.wake(thread_id))

    # ------------------------------------------------------------------------------------------- ask lane

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with."""
        return await self._books.approvals.edit_form(approval_id, person)

    async def sign_in_link(self, sign_in_id: str, person: Person) -> str | Refused | Unknown:
        """The link, for its owner only."""
        return await self._books.sign_ins.link(sign_in_id, person)

    async def threads(self, platform: str, limit: int = 100) -> tuple[ThreadSummary, ...]:
        """The newest threads of a platform."""
        async with self._database.reading() as tx:
            return await threads.newest(tx, platform, limit)

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        """A thread as this person may see it, oldest first."""
        async with self._database.reading() as tx:
            row = await threads.get(tx, thread_id)
            if row is None:
                return None
            messages = await deliveries.messages_of(tx, thread_id, SHOWN)
            kept = [p for p in await posts.of_thread(tx, thread_id, SHOWN) if p.only_for in {None, person.person_id}]
            shown = [post for p in kept if (post := await post_of(tx, p, row.place)) is not None]
        entries: list[MessageView | Post] = sorted([*messages, *shown], key=_time)
        return ThreadView(thread_id, row.title, tuple(entries))


def _time(entry: MessageView | Post) -> float:
    return entry.at
