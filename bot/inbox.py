"""What people write to the bot, kept durably before anything is acknowledged: one row, one commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from bot.accounts.codes import Codes
from bot.agent_choices import AGENT
from bot.conversations import no_conversation
from bot.domain import (
    ClickResult,
    Clock,
    ConversationReference,
    Feedback,
    Invalid,
    Message,
    Notice,
    Person,
    Refused,
    Settled,
    Unknown,
)
from bot.files import FILES, MOST_REFERENCES, as_kept, is_upload, upload_of
from bot.gateway.thread_ids import is_gateway_thread
from bot.outbox import Outbox, notice
from bot.records import clarifications, deliveries, files, posts, thread_owners, threads, waiting
from bot.records.database import Database, Pauses, Transaction, locking_as_found
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.waiting import is_with_us, requesters
from bot.sessions import QUIET_SECONDS, ThreadForMessage, current_thread, thread_for
from bot.task_threads import is_task_thread
from bot.turns.engine import Engine
from bot.turns.messages import OWNERS, is_stop, message_of, why_stopped
from bot.turns.open_requests import OpenRequests
from graph.json_values import storable
from graph.observing import NOBODY, FeedbackGiven, Observer
from translations import gettext as _
from translations import in_shared_language

Kept = Callable[[Transaction, str], Awaitable[None]]
LONGEST_COMMENT = 2_000
"""Characters of what a person says about an answer."""


class Inbox:
    """Takes messages, their changes, and the bot's own comings and goings. Nothing here waits for a running turn."""

    def __init__(
        self,
        database: Database,
        engine: Engine,
        outbox: Outbox,
        clock: Clock,
        *,
        acceptance: Acceptance,
        codes: Codes,
        open_requests: OpenRequests,
        observer: Observer = NOBODY,
    ) -> None:
        self._observer = observer
        self._database = database
        self._acceptance = acceptance
        self._engine = engine
        self._outbox = outbox
        self._codes = codes
        self._open_requests = open_requests
        self._clock = clock

    # ------------------------------------------------------------------------------------------- messages

    async def accept(self, message: Message) -> bool:
        """Keep a message durably; it is handled in its thread's order. "Stop" does not queue, and a one-time code is
        for no record, model or log.

        Returns False when it was accepted before, is in a conversation of somebody else (`Message.owners`), or is none
        of the bot's business: not addressed to it, and not by somebody it is in a conversation with there, or in the
        thread of another agent's call, or of a task of a plan, which is no conversation. Raises what the database
        raises; then nothing was kept.
        """
        if _is_no_conversation(message.place.key):
            return False
        if (taken := await self._codes.taken(message)) is not None:
            return taken
        if is_stop(message.text):
            async with self._database.reading() as tx:
                if await deliveries.exists(tx, message.key):
                    return False
                thread_id = await current_thread(tx, message.place, message.author.person_id)
            stopped = await self.stop(
                message.key, thread_id or "", message.author, text=message.text, accounts=message.owners
            )
            if isinstance(stopped, Settled):
                return True
        accepted = await self._acceptance.accept(message)
        if accepted.is_new:
            self._engine.wake(accepted.thread_id)
        return accepted.is_new

    async def open(self, place: ConversationReference, person: Person) -> None:
        """A person begins a conversation in which nothing has been written yet; it is theirs from now on."""
        async with self._database.writing_urgently(place.key) as tx:
            await threads.ensure(tx, place.key, place, "", self._clock(), requester=None)
            await thread_owners.begin(tx, place.key, person.person_id, self._clock())

    async def amend(self, key: str, text: str) -> bool:
        """A message was edited. Returns False when it is being handled or was: then the edit changes nothing."""

        async def amended(tx: Transaction, message: Delivery) -> None:
            thread = await threads.get(tx, message.thread_id)
            # Edited into a code, it is for no record, model or log, as if it had been written so.
            if thread is not None and await self._codes.take(tx, message_of(message, thread, text)):
                await deliveries.drop(tx, [key])
            else:
                await deliveries.set_body(tx, key, {**message.body, "text": storable(text)})

        return await self._unless_begun(key, amended)

    async def withdraw(self, key: str) -> bool:
        """A message was deleted. Returns False when it is being handled or was: then that changes nothing, but that
        operators cannot have it tried again any more."""

        async def withdrawn(tx: Transaction, _: Delivery) -> None:
            await deliveries.drop(tx, [key])

        if await self._unless_begun(key, withdrawn):
            return True
        async with self._database.reading() as tx:
            parked = await deliveries.parked_one(tx, key)
        if parked is not None:
            async with self._database.writing_urgently(parked.thread_id) as tx:
                await deliveries.give_up(tx, key)
        return False

    async def stop(
        self,
        key: str,
        thread_id: str,
        person: Person,
        text: str = "",
        *,
        newest: str | None = None,
        accounts: Collection[str] = (),
    ) -> ClickResult:
        """End the turn of a thread; its requester only. Breaks off what runs and drops what this person had queued;
        for anybody else it only does the latter. In what is no conversation there is no turn to end.
        `key` names the click or message, `text` is what was written.

        Args:
            newest: key of a message; where something was written after it, or what runs or waits is another turn than
                its own, nothing is stopped.
            accounts: other person ids of the same human, whose requests are this person's too.
        """
        if _is_no_conversation(thread_id):
            return Unknown(_("Nothing to stop here."))
        own = {person.person_id, *accounts}
        async with self._database.writing_urgently(thread_id or UNLOCKED) as tx:
            if await deliveries.exists(tx, key):
                return Settled(_("Stopped."))
            if newest is not None and await deliveries.newest_message(tx, thread_id) != newest:
                return Refused(_("There is a newer message."))
            if newest is not None and not await _is_of_turn(tx, thread_id, newest):
                return Refused(_("Another request is running."))
            asked_by = await requesters(tx, thread_id)
            queued = await deliveries.waiting_messages(tx, thread_id)
            mine = [k for k, author in queued if author in own]
            if not asked_by:
                return Refused(_("Nothing is running here."))
            if not mine and own.isdisjoint(asked_by):
                return Refused(_("Only the person who asked can stop this."))
            now = self._clock()
            # The platform may not have said it here yet, but when their request was handled.
            name = person.name or (await threads.names(tx, [person.person_id]))[person.person_id]
            body = {"person": person.person_id, "name": name, "text": text}
            await deliveries.drop(tx, mine)
            await deliveries.add(tx, Delivery(key, thread_id, "stop", body, True, now, now))
            if own.isdisjoint(asked_by):
                await deliveries.done(tx, key)
                return Settled(_("Your waiting messages were dropped."))
            # Each task is handled in a thread of its own, which would go on until this is handled in the conversation.
            with in_shared_language():
                why = why_stopped(name)
            await self._open_requests.stop_plans(tx, thread_id, key, why)
            await self._break_off(tx, thread_id)
            await self._engine.kept(tx, thread_id)
        return Settled(_("Stopped."))

    async def _break_off(self, tx: Transaction, thread_id: str) -> None:
        """What runs in a thread ends once this is on disk, and what waits to be handled is looked at again."""
        await deliveries.drop_resumes(tx, thread_id)
        tx.afterwards(lambda: self._engine.interrupt(thread_id))
        tx.afterwards(lambda: self._engine.wake(thread_id))

    async def rename(self, thread_id: str, title: str, accounts: Collection[str]) -> ClickResult:
        """Give a conversation another title. `accounts`: all person ids of who asks; for its owner only."""
        if _is_no_conversation(thread_id):
            return no_conversation()
        shown = " ".join(storable(title).split())
        if not shown:
            return Invalid({"title": _("Required")})
        async with self._database.writing_urgently(thread_id) as tx:
            if await thread_owners.owner_of(tx, thread_id) not in accounts:
                return no_conversation()
            await threads.rename(tx, thread_id, shown)
        return Settled(_("Renamed."))

    async def delete(self, key: str, thread_id: str, person: Person, accounts: Collection[str]) -> ClickResult:
        """Delete a conversation: nobody is shown it any more. What runs in it is stopped, and what is asked of people
        there is superseded. Deleting it twice is deleting it once.

        Args:
            key: names the click.
            accounts: all person ids of this human; for the owner of the conversation only.
        """
        if _is_no_conversation(thread_id):
            return no_conversation()
        own = {person.person_id, *accounts}
        async with self._database.writing_urgently(thread_id) as tx:
            if await deliveries.exists(tx, key):
                return Settled(_("Deleted."))
            if await thread_owners.owner_of(tx, thread_id) not in own:
                return no_conversation()
            now = self._clock()
            await threads.delete(tx, thread_id, now)
            await files.drop_of_thread(tx, thread_id)
            await deliveries.give_up_in(tx, thread_id)  # operators are not shown it any more, either
            if await requesters(tx, thread_id):
                await deliveries.drop(tx, [k for k, _author in await deliveries.waiting_messages(tx, thread_id)])
                body = {"person": person.person_id, "name": person.name, "text": ""}
                await deliveries.add(tx, Delivery(key, thread_id, "stop", body, True, now, now))
                with in_shared_language():
                    why = _("The conversation was deleted")
                await self._open_requests.supersede(tx, thread_id, key, why)
                await self._break_off(tx, thread_id)
        return Settled(_("Deleted."))

    async def begin_no_calls(self, thread_id: str, turn: str) -> None:
        """No further tool call begins in a turn, by the key of its delivery, whichever process handles it. A call that
        has begun goes on."""
        key, now = deliveries.without_calls(turn), self._clock()
        async with self._database.writing_urgently(thread_id) as tx:
            if await deliveries.add(tx, Delivery(key, thread_id, "timer", {}, False, now, now)):
                await deliveries.done(tx, key)

    async def feedback(self, feedback: Feedback) -> ClickResult:
        """Record what a person thinks of something the bot said."""
        async with self._database.writing_urgently(UNLOCKED) as tx:  # posts stay, and the last opinion counts
            post = await posts.get(tx, feedback.post_id)
            if post is None:
                return Unknown(_("This answer is no longer available."))
            kept = replace(feedback, comment=storable(feedback.comment)[:LONGEST_COMMENT])
            await threads.keep_feedback(tx, kept, self._clock())
        given = FeedbackGiven(post.key, post.thread_id, kept.person.person_id, kept.verdict, kept.comment)
        self._observer.note(given)
        return Settled(_("Thanks for the feedback."))

    # ------------------------------------------------------------------------------------------- places

    async def arrived(self, key: str, place: ConversationReference, greeting: str) -> bool:
        """The bot was brought to a place: greet there, once until it has left. `key` names the event. Returns False
        when it was there already."""
        async with self._database.writing_urgently(place.key) as tx:
            is_new = await threads.note_place(tx, place, self._clock())
            if is_new:
                hello = notice(f"greeting:{key}", place.key, Notice(greeting), place=place)
                await self._outbox.say(tx, hello)
        return is_new

    async def left(self, place: ConversationReference) -> None:
        """The bot was removed from a place: what waits there is given up, cards of it elsewhere show that, and nothing
        more is posted there."""
        await locking_as_found(self._database.writing_urgently, partial(self._left, place=place), place.key)

    async def _left(self, tx: Transaction, place: ConversationReference) -> None:
        here = await threads.threads_at(tx, place, await _unfinished(tx, f"{place.platform}:"))
        lanes = [place.key, *here]
        tx.needs(*here, *await posts.threads_with_unsent(tx, lanes))
        await threads.forget_place(tx, place)
        pauses = Pauses()
        with in_shared_language():
            why = _("Countersign was removed from this conversation")
        for thread_id in here:
            await self._open_requests.supersede(tx, thread_id, f"left:{place.key}", why)
            await pauses.when_due()
        await posts.give_up_lanes(tx, lanes)

    async def _unless_begun(self, key: str, change: Callable[[Transaction, Delivery], Awaitable[None]]) -> bool:
        """Changes a message, in a transaction in which nobody begins with it. Returns False when somebody has, or there
        is no such message."""
        async with self._database.reading() as tx:
            known = await deliveries.waiting_message(tx, key)
        if known is None:
            return False

        async def changed(tx: Transaction) -> bool:
            message = await deliveries.waiting_message(tx, key)
            if message is None or message.tries > 0 or self._engine.has_begun(message):
                return False
            await change(tx, message)
            return True

        async with self._engine.held_back(known.thread_id):
            return await locking_as_found(self._database.writing_urgently, changed, known.thread_id)


async def _is_of_turn(tx: Transaction, thread_id: str, key: str) -> bool:
    """Whether the turn that runs or waits in a thread is that of a message: it begins it, or has answered in it."""
    messages = await deliveries.waiting_messages(tx, thread_id)
    if messages:
        return messages[0][0] == key
    thread = await threads.get(tx, thread_id)
    if thread is None or thread.turn is None:
        return False
    answered = await clarifications.call_answered_by(tx, key)
    return thread.turn == key or (answered is not None and answered.startswith(f"{thread.turn}."))


async def _unfinished(tx: Transaction, within: str) -> set[str]:
    """The threads, whose ids begin with `within`, in which anything waits for people, for us, or to be shown: few of
    all that there ever were."""
    busy = [*await waiting.threads_of_questions(tx, within), *await deliveries.threads_waiting(tx, within)]
    return {*busy, *await posts.lanes_with_unsent(tx)}


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message that arrived."""

    thread_id: str
    is_new: bool


class Acceptance:
    """Keeps messages as deliveries. Those that arrive while a commit is under way share the next one, as all
    transactions do for which somebody outside waits.

    Args:
        kept: is awaited in the transaction that keeps a message, with its thread.
    """

    def __init__(
        self, database: Database, clock: Clock, *, quiet_seconds: float = QUIET_SECONDS, kept: Kept | None = None
    ) -> None:
        self._database = database
        self._clock = clock
        self._quiet_seconds = quiet_seconds
        self._kept = kept

    async def accept(self, message: Message) -> Accepted:
        """Keep a message; returns when it is on disk. Raises what the database raises."""
        # The names of threads begin with that of their place.
        async with self._database.writing_urgently(message.place.key) as tx:
            return await self._keep(tx, _keepable(message))

    async def _keep(self, tx: Transaction, message: Message) -> Accepted:
        now, author = self._clock(), message.author.person_id
        if not message.place.has_threads and await deliveries.exists(tx, message.key):
            return Accepted("", is_new=False)
        thread = await thread_for(tx, message, now, quiet_seconds=self._quiet_seconds)
        thread_id = thread.thread_id
        owner, is_kept = await thread_owners.owner_and_kept(tx, thread_id) if message.owners else ("", True)
        if owner and owner not in message.owners:
            return Accepted("", is_new=False)  # somebody else's conversation
        if not message.addressed and not await is_with_us(tx, thread_id, author):
            return Accepted("", is_new=False)  # people write to each other: not ours to keep
        is_new = await deliveries.add(tx, message_delivery(message, thread, now))
        if is_new:
            for number, file in enumerate(message.files):
                if is_upload(file):
                    await files.take(tx, upload_of(file), author, thread_id=thread_id, key=message.key, number=number)
            requester = author if message.addressed else None
            title = message.text or ", ".join(file.name for file in message.files)
            await threads.ensure(tx, thread_id, message.place, title, now, requester=requester)
            if not is_kept:
                await thread_owners.begin(tx, thread_id, author, now)
            if self._kept is not None:
                await self._kept(tx, thread_id)
        if message.author.name:  # without a name they are introduced later
            await threads.remember(tx, message.author, now)
        return Accepted(thread_id, is_new)


def _is_no_conversation(thread_id: str) -> bool:
    """Whether people write in a thread through others alone: a call's caller takes it back through the gateway, and
    what is asked in a task of a plan is answered, and the task ended, in the conversation that it belongs to."""
    return is_gateway_thread(thread_id) or is_task_thread(thread_id)


def _keepable(message: Message) -> Message:
    """The message without what no database and no model takes: NUL characters, and halves of surrogate pairs."""
    author = replace(message.author, name=storable(message.author.name))
    handed_over = tuple(replace(file, name=storable(file.name)) for file in message.files[:MOST_REFERENCES])
    return replace(message, author=author, text=storable(message.text), files=handed_over)


def message_delivery(message: Message, thread: ThreadForMessage, now: float) -> Delivery:
    """A message as a row of the inbox."""
    return Delivery(
        key=message.key,
        thread_id=thread.thread_id,
        kind="message",
        body={
            "person": message.author.person_id,
            "name": message.author.name,
            "time_zone": message.author.time_zone,
            "text": message.text,
            "addressed": message.addressed,
            "origin": dict(message.origin),
            "at": message.at,
            "begins": thread.begins,
        }
        | ({"via": message.via} if message.via else {})
        | ({"options": dict(message.options)} if message.options else {})
        | ({AGENT: message.agent} if message.agent else {})
        | ({OWNERS: sorted(message.owners)} if message.owners - {message.author.person_id} else {})
        | ({FILES: as_kept(message.files)} if message.files else {}),
        urgent=False,
        accepted_at=now,
        due_at=now,
    )
