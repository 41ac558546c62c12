"""The switch with which an operator stops everything, in all processes, and lets it go on later.

That it is stopped is a record: a process that starts meanwhile begins nothing, and one that has died had nothing to
say about it. While it is stopped, people's messages and decisions are kept, and nothing comes of them; what was under
way is broken off as by a crash, and goes on as after one (decision 0037).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, cast

import structlog

from bot.audit.log import AuditLog
from bot.crypto import NewId
from bot.domain import AlreadySettled, ClickResult, Clock, Invalid, Notice, Person, Settled
from bot.events import happens
from bot.gateway.thread_ids import delivery_key, gateway_call_of, is_gateway_thread
from bot.ledger import AttemptLedger
from bot.memory_threads import is_memory_thread
from bot.outbox import Outbox, notice
from bot.records import deliveries, halts, threads
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.halts import HaltRow
from bot.records.locks import HALT
from bot.repeated_failures import RepeatedFailure
from bot.task_threads import conversation_of
from bot.turns.engine import BrokenOff, TellKept
from graph.json_values import storable
from policies.model import Tool
from translations import gettext as _
from translations import in_shared_language

if TYPE_CHECKING:  # SQLite has no use for them
    from bot.records.notifications import Notifications
    from bot.records.postgresql import PostgresDatabase

log = structlog.get_logger(__name__)
CHANNEL = "countersign_halts"
LOOK_SECONDS = 1.0
"""Between two looks, for what this process was not told of: all have stopped within twice as long."""
LOOKING_SECONDS = 0.9
"""How long one may take."""
LEFT_SECONDS = 2 * LOOK_SECONDS
"""After which what is left in the middle is nobody's."""
LONGEST_WHY = 200
"""Characters of what the operator gives as the reason: as many as the audit log keeps."""
TOLD_AT_ONCE = 500
"""Conversations that are read at once, of those in which people are told that everything is stopped."""


class Halting(Protocol):
    """What is stopped, and goes on: an engine is."""

    def halt(self, broken_off: BrokenOff, tell_kept: TellKept, at: float) -> None:
        """Break off everything, and begin nothing."""
        ...

    def go_on(self) -> None:
        """Go on."""
        ...


class HaltSwitch:
    """Stops everything, and lets it go on.

    Args:
        find_tool: returns a tool by its full name, `{server}__{tool}`.
        give_up_calls: ends the calls that wait in the middle, at their tool servers, for an answer of a person.
        notifications: by which processes tell each other; `None`: there is only this one. To be made before they are
            started.
    """

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        clock: Clock,
        new_id: NewId,
        *,
        audit: AuditLog,
        ledger: AttemptLedger,
        is_operator: Callable[[Person], Awaitable[bool]],
        find_tool: Callable[[str], Awaitable[Tool | None]],
        give_up_calls: Callable[[], None],
        notifications: Notifications | None = None,
    ) -> None:
        self._database = database
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._audit = audit
        self._ledger = ledger
        self._is_operator = is_operator
        self._find_tool = find_tool
        self._give_up_calls = give_up_calls
        self._notifications = notifications
        self._stopped: list[Halting] = []
        self._look_now = asyncio.Event()
        self._written = 0
        """How often this process has stopped everything or let it go on."""
        self.current: HaltRow | None = None
        """Why nothing runs, as far as this process knows; `None`: it does. For whoever may know."""
        self.is_on = asyncio.Event()
        """Set while nothing runs."""
        self._is_off = asyncio.Event()
        self._is_off.set()
        if notifications is not None:
            notifications.subscribe(CHANNEL, lambda _: self._look_now.set(), self._look_now.set)

    @asynccontextmanager
    async def stopping(self, *stopped: Halting) -> AsyncIterator[None]:
        """Within it, these are stopped and go on as the records say. To be entered before they begin anything."""
        self._stopped = list(stopped)
        async with self._database.reading() as tx:
            self._follow(await halts.open_one(tx))
        tasks = [asyncio.create_task(self._keep_seeing_to_what_is_left(), name="left by a halt")]
        if self._notifications is not None:
            tasks.append(asyncio.create_task(self._keep_looking(), name="halts"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------- the switch

    async def stop(self, operator: Person, why: str) -> ClickResult | None:
        """Stop everything, from now on and in all processes. `None`: this is no operator."""
        if not await self._is_operator(operator):
            return None
        reason = storable(why).strip()
        if not reason:
            return Invalid({"why": _("Required")})
        if len(reason) > LONGEST_WHY:
            return _too_long()
        async with self._database.writing_urgently(HALT) as tx:
            if await halts.open_one(tx) is not None:
                return AlreadySettled(_("Countersign is stopped already."))
            halt = HaltRow(self._new_id(), operator.person_id, storable(operator.name), reason, self._clock())
            await halts.add(tx, halt)
            await self._audit.acted(tx, operator, "stopped everything", of=halt.halt_id, note=reason)
            self._tell_when_written(tx, halt)
        await self._tell_those_who_wait(halt)
        return Settled(_("Stopped."))

    async def go_on(self, operator: Person, why: str, halt_id: str = "") -> ClickResult | None:
        """Let everything go on. `None`: this is no operator.

        Args:
            halt_id: of the stop that the operator means; one that another operator has made since stays. Empty:
                whichever there is.
        """
        if not await self._is_operator(operator):
            return None
        reason = storable(why).strip()
        if len(reason) > LONGEST_WHY:
            return _too_long()
        async with self._database.writing_urgently(HALT) as tx:
            halt = await halts.open_one(tx)
            if halt is not None and halt_id not in ("", halt.halt_id):
                return AlreadySettled(_("Countersign was stopped again since. Look at the new reason first."))
            if halt is None or not await halts.end(tx, halt.halt_id, operator.person_id, reason, self._clock()):
                return AlreadySettled(_("Countersign isn’t stopped."))
            await self._audit.acted(tx, operator, "let everything go on", of=halt.halt_id, note=reason)
            self._tell_when_written(tx, None)
        return Settled(_("Countersign goes on."))

    def _is_in_force(self, halt: HaltRow) -> bool:
        return self.current is not None and self.current.halt_id == halt.halt_id  # each look reads it as another row

    def _tell_when_written(self, tx: Transaction, halt: HaltRow | None) -> None:
        tx.afterwards(lambda: self._follow_own(halt))
        notifications = self._notifications
        if notifications is not None:
            tx.afterwards(lambda: notifications.tell(CHANNEL, "changed"))

    def _follow_own(self, halt: HaltRow | None) -> None:
        self._written += 1
        self._follow(halt)

    def _follow(self, halt: HaltRow | None) -> None:
        before, self.current = self.current, halt
        if halt is not None and before is None:
            log.warning("everything_stopped", by=halt.person_id, why=halt.why)
            self.is_on.set()
            self._is_off.clear()
            for each in self._stopped:
                each.halt(self._broken_off, self.tell, halt.at)
            self._give_up_calls()  # a server may act without the answer
        elif halt is None and before is not None:
            log.warning("everything_goes_on")
            self.is_on.clear()
            self._is_off.set()
            for each in self._stopped:
                each.go_on()

    async def _keep_looking(self) -> None:
        failure, database = RepeatedFailure("halts_not_read"), cast("PostgresDatabase", self._database)
        while True:
            await happens(self._look_now, LOOK_SECONDS)
            self._look_now.clear()
            written = self._written
            try:
                async with asyncio.timeout(LOOKING_SECONDS), database.at_once() as tx:
                    halt = await halts.open_one(tx)
                if written == self._written:  # else what was read may be older than what was written here meanwhile
                    self._follow(halt)
                failure.worked()
            except Exception as error:  # noqa: BLE001  # without the database nothing can begin, and it may be back soon
                failure.failed(error)

    # ------------------------------------------------------------------------------------------- what people are told

    async def tell(self, tx: Transaction, thread_id: str) -> None:
        """Somebody has written or decided something in a thread: while everything is stopped its conversation is told
        so, once. A program that waits for its call is told where it waits."""
        if self.current is None or is_gateway_thread(thread_id):
            return
        with in_shared_language():
            text = _(
                "An operator has stopped Countersign. Messages and decisions are kept; nothing runs until it goes on."
            )
        conversation = conversation_of(thread_id)  # what a task waits for is shown there
        await self._outbox.say(tx, notice(_key(self.current, conversation), conversation, Notice(text)))

    async def _tell_those_who_wait(self, halt: HaltRow) -> None:
        """Of what waits for its turn, or has come to another process meanwhile. One conversation that cannot be told
        keeps no other from being told, and everything is stopped all the same."""
        after = ""
        try:
            while waiting := await self._waiting_after(after):
                for thread_id in dict.fromkeys(map(conversation_of, waiting)):
                    if not self._is_in_force(halt):
                        return
                    await self._try_to_tell(thread_id)
                after = waiting[-1]
        except Exception:  # the records went away: it is stopped all the same
            log.exception("halt_not_told")

    async def _waiting_after(self, thread_id: str) -> Sequence[str]:
        async with self._database.reading() as tx:
            return await deliveries.threads_with_messages(tx, thread_id, TOLD_AT_ONCE)

    async def _try_to_tell(self, thread_id: str) -> None:
        try:
            async with self._database.writing_apart(thread_id) as tx:
                await self.tell(tx, thread_id)
        except Exception:  # the others are told
            log.exception("halt_not_told", thread_id=thread_id)

    async def _broken_off(self, delivery: Delivery) -> None:
        """A delivery was broken off in the middle: of a call that was under way nobody knows what came of it, as after
        a crash, and whoever has asked for it is told why nothing comes."""
        if is_memory_thread(delivery.thread_id):
            return
        await self._lose_calls(delivery, math.inf)
        async with self._database.writing(delivery.thread_id) as tx:
            await self.tell(tx, delivery.thread_id)

    async def _lose_calls(self, delivery: Delivery, begun_before: float) -> bool:
        """Of the calls of a delivery that were under way nobody knows what came. Returns whether there were any."""
        thread_id = delivery.thread_id
        async with self._database.reading() as tx:
            thread = await threads.get(tx, thread_id)
        if is_gateway_thread(thread_id):
            turns = {delivery_key(gateway_call_of(thread_id))}
        else:
            turns = {delivery.key, thread.turn if thread is not None and thread.turn else delivery.key}
        lost = [
            await self._ledger.break_off(thread_id, turn, self._is_repeatable, begun_before=begun_before)
            for turn in turns
        ]
        return any(lost)

    async def _keep_seeing_to_what_is_left(self) -> None:
        """What a process was handling that has died, or that could not write, when everything was stopped: nobody takes
        it over until it goes on. To be begun once all processes that live have stopped."""
        failure = RepeatedFailure("left_by_halt_not_seen_to")
        while True:
            await self.is_on.wait()
            halt = self.current
            await happens(self._is_off, LEFT_SECONDS)
            if halt is None or not self._is_in_force(halt):
                continue
            try:
                await self._see_to_what_is_left(halt)
                failure.worked()
            except Exception as error:  # noqa: BLE001  # the records fail in many ways, and may be back any time
                failure.failed(error)
                continue
            await self._is_off.wait()

    async def _see_to_what_is_left(self, halt: HaltRow) -> None:
        async with self._database.reading() as tx:
            waiting = await deliveries.threads_with_work(tx, self._clock())
        for thread_id in waiting:
            if not self._is_in_force(halt):
                return
            async with self._database.reading() as tx:
                head = await deliveries.head(tx, thread_id, self._clock())
            # What has begun since belongs to who goes on.
            if head is not None and not is_memory_thread(thread_id) and await self._lose_calls(head, halt.at):
                await self._try_to_tell(thread_id)

    async def _is_repeatable(self, server: str, tool: str) -> bool:
        found = await self._find_tool(f"{server}__{tool}")
        return found is not None and found.repeatable


def _too_long() -> Invalid:
    return Invalid({"why": _("Too long")})


def _key(halt: HaltRow, thread_id: str) -> str:
    return f"halted:{halt.halt_id}:{thread_id}"
