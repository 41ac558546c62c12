"""What the house offers to the inbound side of an adapter: three lanes, none of which waits for a running turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from bot.books import Books
from bot.clock import Clock
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    ClickResult,
    CodeEntry,
    ConnectionView,
    Decision,
    Dismissal,
    Feedback,
    Form,
    FormAnswer,
    GrantView,
    Handover,
    Hidden,
    Message,
    OutcomeChoice,
    Overview,
    Person,
    Place,
    Post,
    Refused,
    Settled,
    Shown,
    SignInReply,
    ThreadSummary,
    ThreadView,
    Unknown,
)
from bot.inbox.editing import Editing
from bot.inbox.engine import Engine
from bot.inbox.resuming import Resuming
from bot.inbox.sessions import current_thread
from bot.masking import PLAIN
from bot.meaning import is_stop
from bot.overviews import Overviews
from bot.platform import Reference
from bot.posts import Posts
from bot.records import attempts, deliveries, posts, threads
from bot.records import feedback as feedback_rows
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.turns import requesters
from bot.voting import keepable, keepable_person
from graph.calls import storable
from policies.redaction import Redactor

COMMENT_LIMIT = 2_000
"""Characters of what a person says about an answer."""
NO_OUTCOME = Unknown("This call does not exist (any more).")


class FrontDesk:
    """Fills `bot.platform.Desk`."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        books: Books,
        outbox: Posts,
        clock: Clock,
        *,
        redactor: Redactor = PLAIN,
    ) -> None:
        self._database = database
        self._engine = engine
        self._books = books
        self._posts = outbox
        self._clock = clock
        self._resuming = Resuming(engine, clock)
        self._editing = Editing(database, books.codes, engine)
        self._overviews = Overviews(database, books.facts, clock, redactor)

    # ------------------------------------------------------------------------------------------- turn lane

    async def accept(self, message: Message) -> bool:
        """Keep a message durably. "Stop" does not queue, and a code is for no record, model or log."""
        if (taken := await self._books.codes.taken(message)) is not None:
            return taken
        if is_stop(message.text):
            async with self._database.reading() as tx:
                if await deliveries.exists(tx, message.key):
                    return False
                thread_id = await current_thread(tx, message.place, message.author.person_id)
            if isinstance(await self.stop(message.key, thread_id or "", message.author, text=message.text), Settled):
                return True
        accepted = await self._books.acceptance.accept(message)
        if accepted.is_new:
            self._engine.wake(accepted.thread_id)
        return accepted.is_new

    async def amend(self, key: str, text: str) -> bool:
        """A message was edited. False: it is being handled or was, so the edit changes nothing."""
        return await self._editing.amend(key, text)

    async def withdraw(self, key: str) -> bool:
        """A message was deleted. False: it is being handled or was, so that changes nothing."""
        return await self._editing.withdraw(key)

    async def arrived(self, key: str, place: Place, greeting: str) -> bool:
        """The bot was brought to a place: greet there, once until it has left."""
        return await self._books.presence.arrived(key, place, greeting)

    async def left(self, place: Place) -> None:
        """The bot was removed from a place: what waits there is given up, and nothing more is posted."""
        await self._books.presence.left(place)

    # ------------------------------------------------------------------------------------------- decide lane

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        """Judge and record a click, per approval. What is looked up for it is looked up before."""
        decision = keepable(decision)
        self._books.facts.meet(decision.person)
        known = await self._books.facts.for_voting(decision.person.person_id, decision.approval_ids)
        results: dict[str, ClickResult] = {}
        settled: dict[str | None, list[str]] = {}
        async with self._database.writing_urgently() as tx:
            await threads.remember(tx, known.described(decision.person), self._clock())
            for approval_id in sorted(set(decision.approval_ids)):  # in which order `approvals.hold` wants them
                results[approval_id] = result = await self._books.voting.decide(tx, decision, approval_id, known)
                if isinstance(result, Settled) and result.final:
                    settled.setdefault(await self._books.approvals.thread_of(tx, approval_id), []).append(approval_id)
                # Statements do not yield, and a hundred approvals may be decided at once.
                await asyncio.sleep(0)
            for thread_id, approval_ids in settled.items():
                await self._resuming.resume(tx, thread_id, *approval_ids)
        return {approval_id: results[approval_id] for approval_id in decision.approval_ids}

    async def answer(self, answer: FormAnswer) -> ClickResult:
        """Record the answer to a clarification."""
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.clarifications.answer_form(tx, answer)
            await self._resuming.resume(tx, thread_id, answer.clarification_id)
        return result

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        """Record that a person does not answer a tool's question."""
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.clarifications.dismiss(tx, dismissal)
            await self._resuming.resume(tx, thread_id, dismissal.clarification_id)
        return result

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        """Check the one-time code of a sign-in; the account is connected when it is right."""
        return await self._books.codes.enter(entry)

    async def disconnect(self, key: str, connection_id: str, person: Person) -> ClickResult:
        """End a connection, its owner only: its tokens are revoked at the service and forgotten."""
        return await self._books.connections.disconnect(connection_id, person)

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        """Record that a person has signed in, or will not."""
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.sign_ins.reply(tx, reply)
            await self._resuming.resume(tx, thread_id, reply.sign_in_id)
        return result

    async def hand_over(self, handover: Handover) -> ClickResult:
        """Somebody who may decide asks another, who may too, to do it: that person gets the card."""
        return await self._books.handing.hand_over(
            replace(handover, to=storable(handover.to), name=storable(handover.name))
        )

    async def take_back(self, key: str, approval_id: str, person: Person) -> ClickResult:
        """The requester does not want the call any more: it is withdrawn."""
        accounts = await self._books.handing.requester_accounts(approval_id, person)
        async with self._database.writing_urgently() as tx:
            result, thread_id = await self._books.handing.take_back(tx, key, approval_id, accounts)
            await self._resuming.resume(tx, thread_id, approval_id)
        return result

    async def revoke(self, grant_id: str, person: Person) -> ClickResult:
        """End a grant; its giver only."""
        return await self._books.grants.revoke(storable(grant_id), person.person_id)

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
            await self._resuming.resume(tx, row.thread_id, row.attempt_id)
        return Settled("Noted.")

    async def feedback(self, feedback: Feedback) -> ClickResult:
        """Record what a person thinks of something the bot said."""
        async with self._database.writing_urgently() as tx:
            if await posts.get(tx, feedback.post_id) is None:
                return Unknown("This answer does not exist (any more).")
            kept = replace(feedback, comment=storable(feedback.comment)[:COMMENT_LIMIT])
            await feedback_rows.keep(tx, kept, self._clock())
        return Settled("Thank you for telling.")

    async def stop(self, key: str, thread_id: str, person: Person, text: str = "") -> ClickResult:
        """End the turn of a thread; its requester only. Breaks off what runs and drops what this person had queued;
        for anybody else it only does the latter."""
        async with self._database.writing_urgently() as tx:
            if await deliveries.exists(tx, key):
                return Settled("Stopped.")
            asked_by = await requesters(tx, thread_id)
            queued = await deliveries.waiting_messages(tx, thread_id)
            mine = [k for k, author in queued if author == person.person_id]
            if not asked_by:
                return Refused("Nothing is running here.")
            if not mine and person.person_id not in asked_by:
                return Refused("Only the person whose request this is can stop it.")
            now = self._clock()
            body = {"person": person.person_id, "name": person.name, "text": text}
            await deliveries.drop(tx, mine)
            await deliveries.add(tx, Delivery(key, thread_id, "stop", body, True, now, now))
            if person.person_id not in asked_by:
                await deliveries.done(tx, key)
                return Settled("What you had written here is not handled any more.")
            await deliveries.drop_resumes(tx, thread_id)
            tx.afterwards(lambda: self._engine.interrupt(thread_id))
            tx.afterwards(lambda: self._engine.wake(thread_id))
        return Settled("Stopped.")

    # ------------------------------------------------------------------------------------------- ask lane

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        """An approval as it is now, if its thread's id, or a place that it was routed to, begins with `within`."""
        return await self._overviews.approval(approval_id, within)

    async def permitted(self, approval_id: str, person: Person) -> bool:
        """Whether this person may decide it now; no, where that could not be found out."""
        return await self._overviews.permitted(approval_id, person)

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        """Where the card of an approval, a question, a sign-in or a broken attempt is shown, in every place."""
        return await self._overviews.shown(subject)

    async def answer_at(self, place: Place, is_it: Callable[[Reference], bool]) -> str | None:
        """Id of the answer, among the newest at a place, whose reference fits."""
        return await self._overviews.answer_at(place, is_it)

    async def is_ours(self, message: str, within: str) -> bool:
        """Whether a message, by the platform's id, is recorded as a post in a place whose key begins with `within`."""
        return await self._overviews.is_ours(message, within)

    async def together(self, approval_id: str, person: Person) -> tuple[ApprovalView, ...]:
        """The approvals that wait in the same thread and that this person may decide, oldest first."""
        return await self._overviews.together(approval_id, person)

    async def question_form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to answer an open question with, for whom it was put to."""
        return await self._overviews.question_form(clarification_id, person)

    async def overview(self, person: Person, within: str) -> Overview:
        """What concerns this person in threads whose id begins with `within`."""
        return await self._overviews.overview(person, within)

    async def asked(self, person: Person) -> tuple[Post, ...]:
        """The cards of approvals that others have asked this person to decide, and that they may decide now."""
        return await self._overviews.asked(person)

    async def grants(self, person: Person) -> tuple[GrantView, ...]:
        """What this person always allows themselves at the moment, the one that ends last first."""
        return await self._books.grants.views(person.person_id)

    async def connections(self, person: Person) -> tuple[ConnectionView, ...]:
        """The accounts that this person has connected, by service."""
        return await self._books.connections.views(person)

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
        return await self._overviews.turns_of(person, within)

    async def current_thread(self, place: Place, person: Person) -> str | None:
        """The thread that this person is in at a place; `None`: there is none yet."""
        async with self._database.reading() as tx:
            return await current_thread(tx, place, person.person_id)

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with."""
        return await self._books.voting.edit_form(approval_id, person)

    async def look(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        """What the masks of a waiting approval hide, for somebody who may decide it; the audit log says who looked."""
        return await self._books.voting.look(approval_id, keepable_person(person))

    async def sign_in_link(self, sign_in_id: str, person: Person) -> str | Refused | Unknown:
        """The link, for its owner only."""
        return await self._books.sign_ins.link(sign_in_id, person)

    async def threads(self, platform: str, limit: int = 100) -> tuple[ThreadSummary, ...]:
        """The newest threads of a platform."""
        return await self._overviews.threads(platform, limit)

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        """A thread as this person may see it, oldest first."""
        return await self._overviews.thread(thread_id, person)
