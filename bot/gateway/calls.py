"""Calls that other agents make: begun, waited for, taken back, and how they stand.

Each is a row with a thread of its own; the engine has `bot.gateway.handler` work on it, wherever it was begun. Nothing
here knows how a client waits (a request with progress, a task): it asks for a view, and is told when there is a newer
one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from bot.approvals.requests import LearnNames
from bot.crypto import NewId
from bot.domain import Clock, ConversationReference, Person
from bot.events import happens
from bot.gateway.changes import CallChanges
from bot.gateway.thread_ids import delivery_key, gateway_thread_id
from bot.gateway.views import (
    GatewayCaller,
    GatewayCallView,
    GatewayRefusal,
    GatewayResult,
    result_json,
)
from bot.gateway.waits import wait_in
from bot.limits import Beginnings, Window
from bot.platform import Platform
from bot.records import attempts, deliveries, gateway_calls, threads
from bot.records.database import Database, Transaction, is_outage
from bot.records.deliveries import Delivery
from bot.records.gateway_calls import MOST_DROPPED, GatewayCallRow
from bot.records.locks import UNLOCKED
from bot.repeated_failures import RepeatedFailure
from bot.turns.engine import Engine
from graph.json_values import storable, trouble_with
from policies.approvers import digest_of
from policies.judging import Policy
from policies.masking import exceeds
from policies.model import Mode, Tool

if TYPE_CHECKING:  # what takes calls in starts before the graph is imported
    from graph.ports import Directory, Tools
    from graph.state import Turn, TurnOptions

BEGINS = "begins"
"""The step of a call of which nothing was done yet: its state is a `CallAsked`."""
STOPPED = "an operator has stopped Countersign."
TAKEN_BACK = "was taken back by whoever made it"
DROP_SECONDS = 300.0
"""Between two looks for calls of which nothing needs to be known any more."""
MANY_SECONDS = 1.0
"""The same, while there are many."""
HANDED_SECONDS = 25.0
"""Longer than a result may take to be written, which is twice 10 s; after that whoever was writing it has died."""
HANDED_LOOK_SECONDS = 0.5
"""Between two looks at a result that is on its way: it may have arrived between reading its row and waiting."""
MARK_SECONDS = 1.0
"""Between two tries to mark a result as delivered, while the records are away."""
_PAGE = "web:"
_LARGE = 2_000
"""Characters of arguments up to which their digest takes far less than a millisecond."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What one human's programs may do. `NO_LIMIT` for a minute: no limit."""

    calls_a_minute: int
    calls_waiting: int
    """Under way at a time."""


class CallAsked(TypedDict):
    """A call as its caller asked for it."""

    turn: Turn
    name: str
    """The tool's, `{server}__{tool}`."""
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Listing:
    """By what is found out which tools somebody may call (`graph.judging.ListingPorts`)."""

    directory: Directory
    mode: Mode


@dataclass(frozen=True, slots=True)
class _AskedAt:
    """Where a caller is asked privately."""

    person_id: str
    """The account of theirs that is asked there."""
    place: ConversationReference | None
    """`None`: nowhere."""


class GatewayCalls:
    """What the gateway asks for.

    Args:
        tools: of all servers.
        complaint_about: returns what of some arguments does not fit a tool's schema; `None`: nothing.
        policy: returns the one in force.
        mode: the configured one.
        platforms: those that people see: the page only where it is served.
        place: where people are asked whose rule names no place, as `routeTo` has it; `None`: where the caller is.
        changes: tells of calls that have changed.
        learn_names: of those who are asked, since cards name them.
        is_stopped: set while an operator has stopped everything.
    """

    def __init__(
        self,
        database: Database,
        engine: Engine,
        clock: Clock,
        *,
        tools: Tools,
        complaint_about: Callable[[Tool, Mapping[str, Any]], str | None],
        policy: Callable[[], Policy],
        mode: Mode,
        directory: Directory,
        platforms: Mapping[str, Platform],
        new_id: NewId,
        beginnings: Beginnings,
        limits: GatewayLimits,
        place: str | None,
        changes: CallChanges,
        learn_names: LearnNames,
        is_stopped: asyncio.Event,
    ) -> None:
        self._database = database
        self._engine = engine
        self._clock = clock
        self._tools = tools
        self._complaint_about = complaint_about
        self._policy = policy
        self._listing = _Listing(directory, mode)
        self._platforms = platforms
        self._new_id = new_id
        self._beginnings = beginnings
        self._limits = limits
        self._place = place
        self._changes = changes
        self._learn_names = learn_names
        self.is_stopped = is_stopped
        self._began_at = clock()
        self._handed: dict[str, int] = {}
        """Call → to how many clients its result is being written here."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within it, whoever waits learns of what other processes have done, and what is old is dropped."""
        tasks = [
            asyncio.create_task(self._changes.keep_looking(self._database), name="gateway changes"),
            asyncio.create_task(self._keep_dropping(), name="gateway calls dropped"),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_dropping(self) -> None:
        failure = RepeatedFailure("gateway_calls_not_dropped")
        while True:
            try:
                async with self._database.writing_apart(UNLOCKED) as tx:
                    dropped = await gateway_calls.drop_old(tx, self._clock())
                    await attempts.drop_returned(tx, [ledger_call_id(each) for each in dropped])
                failure.worked()
            except Exception as error:  # noqa: BLE001  # only the records can fail here, and may be back any time
                failure.failed(error)
                dropped = ()
            await asyncio.sleep(MANY_SECONDS if len(dropped) == MOST_DROPPED else DROP_SECONDS)

    # ------------------------------------------------------------------------------------------- beginning

    async def tools(self, caller: GatewayCaller) -> Sequence[Tool]:
        """Returns the tools that can be called now, in a stable order, without those that the policy denies to this
        caller whatever the arguments are. Raises what the records raise."""
        from graph.judging import facts_for_listing, not_denied_anyway  # noqa: PLC0415  # imported with the graph

        tools, policy = await self._tools.available(), self._policy()
        turn = self._turn(caller, self._asked_at(caller), "")
        facts = await facts_for_listing(self._listing, policy, turn, tools, self._clock())
        return await not_denied_anyway(policy, tools, facts)

    async def call(
        self, caller: GatewayCaller, tool: Tool, arguments: Mapping[str, Any], *, task_seconds: float | None = None
    ) -> GatewayCallView | GatewayRefusal:
        """Begins a call, or finds the one that it is: the same call of the same human through the same program whose
        result was not delivered yet. Returns when it is on disk; wait for what comes of it with `wait`.

        Args:
            tool: one of `tools`, as its server offers it now.
            arguments: what the program wants to pass; judged, and asked about, as it stands.
            task_seconds: how long the result is to be kept as a task's; `None`: no task is asked for. Of a call that
                has begun already it stays as it was.

        Raises what the records raise; then nothing was begun.
        """
        arguments = dict(arguments)
        if trouble := trouble_with(arguments):
            return GatewayRefusal(f"The call was not made: its arguments held {trouble}.", "bad_arguments")
        is_large = exceeds(arguments, _LARGE)
        kept = await asyncio.to_thread(storable, arguments) if is_large else storable(arguments)
        if kept != arguments:
            told = "The call was not made: its arguments held a NUL character or half of a character."
            return GatewayRefusal(told, "bad_arguments")
        digest = await asyncio.to_thread(digest_of, tool, arguments) if is_large else digest_of(tool, arguments)
        person_id = caller.person.person_id
        known = await self._same(person_id, caller.client, digest)
        if known is not None and not self._is_forgotten(known):
            async with self._database.reading() as tx:
                return await self._view(tx, known)
        if self.is_stopped.is_set():
            return GatewayRefusal(f"The call was not made: {STOPPED} Try again later.", "stopped")
        # Before anybody is asked to approve what cannot be called so.
        look = partial(self._complaint_about, tool, arguments)
        if complaint := await asyncio.to_thread(look) if is_large else look():
            return GatewayRefusal(f"The call was not made: its arguments are not right: {complaint}.", "bad_arguments")
        row, asked_at = self._new(caller, tool, arguments, digest, task_seconds)
        await self._learn_names([asked_at.person_id])
        async with self._database.writing_urgently(row.thread_id) as tx:
            begun = await self._begin(tx, caller, row, asked_at, known)
            if isinstance(begun, GatewayRefusal):
                return begun
            return await self._view(tx, begun)

    async def _same(self, person_id: str, client: str, digest: str) -> GatewayCallRow | None:
        """The same call, of which no result was delivered yet. One whose result is on its way to a client is waited
        for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + HANDED_SECONDS  # the clock of whoever is writing it may be another
        while True:
            async with self._database.reading() as tx:
                known = await gateway_calls.undelivered(tx, person_id, client, digest)
            if known is None or known.handed_at is None:
                return known
            if self._changes.is_alone and known.handed_at < self._began_at:
                return known  # whoever was writing it has died
            left = min(known.handed_at + HANDED_SECONDS - self._clock(), until - loop.time())
            if known.gateway_call_id in self._handed:
                left = HANDED_LOOK_SECONDS  # being written, or marked, by this very process
            if left <= 0:
                return known
            with self._changes.watched(known.gateway_call_id) as changed:
                await happens(changed, min(left, HANDED_LOOK_SECONDS))

    def _is_forgotten(self, row: GatewayCallRow) -> bool:
        """Whether its result waited for too long to be fetched."""
        return row.forgotten_at is not None and row.forgotten_at <= self._clock()

    def _new(
        self, caller: GatewayCaller, tool: Tool, arguments: dict[str, Any], digest: str, task_seconds: float | None
    ) -> tuple[GatewayCallRow, _AskedAt]:
        gateway_call_id, now, asked_at = self._new_id(), self._clock(), self._asked_at(caller)
        turn = self._turn(caller, asked_at, gateway_call_id)
        asked: CallAsked = {"turn": turn, "name": tool.full_name, "arguments": arguments}
        row = GatewayCallRow(
            gateway_call_id=gateway_call_id,
            thread_id=turn["thread_id"],
            person_id=caller.person.person_id,
            client=caller.client,
            server=tool.server,
            tool=tool.name,
            digest=digest,
            status="running",
            step=BEGINS,
            state=dict(asked),
            result=None,
            task_seconds=task_seconds,
            begun_at=now,
            changed_at=now,
        )
        return row, asked_at

    def _turn(self, caller: GatewayCaller, asked_at: _AskedAt, gateway_call_id: str) -> Turn:
        options: TurnOptions = {}
        if self._place is not None:
            options["route_to"] = self._place
        if asked_at.place is None:
            options["asks"] = False
        turn: Turn = {
            "delivery": delivery_key(gateway_call_id),
            "requester": asked_at.person_id,
            "requester_name": caller.person.name,
            "time_zone": caller.person.time_zone,
            "platform": "mcp",
            "channel": "",
            "thread_id": gateway_thread_id(asked_at.person_id, gateway_call_id),
            "client": caller.client,
        }
        if options:
            turn["options"] = options
        return turn

    def _asked_at(self, caller: GatewayCaller) -> _AskedAt:
        """Where a caller is asked: in a chat if they are in one, under the account that they call with if that is."""
        own = caller.person.person_id
        accounts = [own, *sorted(caller.accounts - {own})]
        for person_id in sorted(accounts, key=lambda each: each.startswith(_PAGE)):
            for platform in self._platforms.values():
                place = platform.named_place(person_id)
                if place is not None and place.direct:
                    return _AskedAt(person_id, place)
        return _AskedAt(own, None)

    async def _begin(
        self,
        tx: Transaction,
        caller: GatewayCaller,
        row: GatewayCallRow,
        asked_at: _AskedAt,
        forgotten: GatewayCallRow | None,
    ) -> GatewayCallRow | GatewayRefusal:
        now, person = self._clock(), caller.person
        if forgotten is not None:
            await gateway_calls.delivered(tx, forgotten.gateway_call_id, now)
        if refusal := await self._refusal(tx, caller, row):
            return refusal
        while not await gateway_calls.add(tx, row):  # it was begun at the same moment
            same = await gateway_calls.undelivered(tx, row.person_id, row.client, row.digest)
            if same is not None:
                return same
        place = asked_at.place or ConversationReference("mcp", row.thread_id, direct=True)
        await threads.ensure(tx, row.thread_id, place, "", now, requester=asked_at.person_id)
        if person.name and asked_at.person_id != person.person_id:  # as long as their chat says nothing of them
            await threads.introduce(tx, Person(asked_at.person_id, person.name, person.time_zone, person.locale), now)
        if person.name and person.person_id.startswith(_PAGE):  # what others are called, their platform says
            await threads.remember(tx, person, now)
        key = delivery_key(row.gateway_call_id)
        await deliveries.add(tx, Delivery(key, row.thread_id, "call", {}, False, now, now))
        tx.afterwards(lambda: self._engine.wake(row.thread_id))
        return row

    async def _refusal(self, tx: Transaction, caller: GatewayCaller, row: GatewayCallRow) -> GatewayRefusal | None:
        """Why one more call may not begin now."""
        accounts = sorted({caller.person.person_id, *caller.accounts})
        if await gateway_calls.count_under_way(tx, accounts, self._clock()) >= self._limits.calls_waiting:
            told = (
                f"The call was not made: {self._limits.calls_waiting} calls of yours are under way already, most of "
                "which wait for people. Wait for some of these first."
            )
            return GatewayRefusal(told, "busy")
        window = Window(f"gateway:{accounts[0]}", self._limits.calls_a_minute)
        full = await self._beginnings.count(row.gateway_call_id, [window], tx=tx)
        if full is None:
            return None
        told = (
            f"The call was not made: one person's programs may make {window.most} calls within a minute. Try again in "
            f"{max(1, round(full.wait))} seconds."
        )
        return GatewayRefusal(told, "too_many")

    # ------------------------------------------------------------------------------------------- waiting

    async def view(self, caller: GatewayCaller, gateway_call_id: str) -> GatewayCallView | None:
        """Returns how a call stands; `None`: there is none of that id that this human made through this program, or
        nothing is known of it any more."""
        async with self._database.reading() as tx:
            row = await self._own(tx, caller, gateway_call_id)
            return await self._view(tx, row) if row is not None else None

    async def wait(self, gateway_call_id: str, seen: float, seconds: float) -> GatewayCallView | None:
        """Waits until a call has changed, and returns how it stands.

        Any number may wait at once; waiting costs nothing. It may be cancelled any time, which changes nothing.

        Args:
            seen: `GatewayCallView.changed_at` of what is known already: what has changed since is returned at once.
            seconds: how long to wait at most; what has not changed by then is returned as it was.

        Returns `None` when nothing is known of it (any more). For whoever began it or may see its `view`: it is not
        asked here whose it is.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        with self._changes.watched(gateway_call_id) as changed:
            while True:
                changed.clear()
                async with self._database.reading() as tx:
                    row = await gateway_calls.get(tx, gateway_call_id)
                    if row is None:
                        return None
                    if row.changed_at > seen or loop.time() >= until:
                        return await self._view(tx, row)
                try:
                    async with asyncio.timeout_at(until):
                        await changed.wait()
                except TimeoutError:
                    pass  # it is looked at once more

    async def hand_out(self, view: GatewayCallView) -> None:
        """The result of a call is about to be written to a client. Until that is over (`delivered` or `put_back`), or
        for `HANDED_SECONDS` if this process dies, the same call waits for what becomes of it: who has read a result
        and makes the call again wants a new one.

        Args:
            view: of a call that has ended.
        """
        call = view.gateway_call_id
        if view.handed_at is None or view.handed_at + HANDED_SECONDS / 2 <= self._clock():
            async with self._database.writing_apart(UNLOCKED) as tx:
                await gateway_calls.hand_out(tx, call, self._clock())
        self._handed[call] = self._handed.get(call, 0) + 1  # not before: then nobody would take it back

    async def delivered(self, gateway_call_id: str) -> None:
        """What was handed out was written to a connected client: the same call again is a new one. It is tried until
        the records take it. Raises nothing but what ends it."""
        failure = RepeatedFailure("gateway_result_not_marked")
        while True:
            try:
                async with self._database.writing_apart(UNLOCKED) as tx:
                    await gateway_calls.delivered(tx, gateway_call_id, self._clock())
                break
            except Exception as error:
                if not is_outage(error):
                    raise
                failure.failed(error)
                await asyncio.sleep(MARK_SECONDS)
        self._handed_less(gateway_call_id)
        self._changes.tell(gateway_call_id)

    async def put_back(self, gateway_call_id: str) -> None:
        """What was handed out could not be written. Raises what the records raise."""
        if not self._handed_less(gateway_call_id):
            async with self._database.writing_apart(UNLOCKED) as tx:
                await gateway_calls.hand_out(tx, gateway_call_id, None)
            self._changes.tell(gateway_call_id)

    def _handed_less(self, gateway_call_id: str) -> int:
        """To how many clients it is still being written here."""
        left = self._handed.pop(gateway_call_id, 1) - 1
        if left > 0:
            self._handed[gateway_call_id] = left
        return left

    async def listed(self, caller: GatewayCaller) -> Sequence[GatewayCallView]:
        """Returns the calls of this human through this program that were asked for as tasks and of which anything is
        known, the newest first."""
        accounts = sorted({caller.person.person_id, *caller.accounts})
        async with self._database.reading() as tx:
            rows = await gateway_calls.tasks_of(tx, accounts, caller.client)
            views = [await self._view(tx, row) for row in rows]
        ends = [None if row.failed is None else GatewayResult(row.failed) for row in rows]
        return [replace(view, result=end) for view, end in zip(views, ends, strict=True)]

    # ------------------------------------------------------------------------------------------- taking back

    async def cancel(self, caller: GatewayCaller, gateway_call_id: str) -> GatewayCallView | None:
        """Takes a call back: nobody is asked about it any more, and what was sent is broken off. Only where a client
        says so in as many words (`tasks/cancel`); one that goes away has taken nothing back. Returns how it stands
        then, which is what it was if it had ended; `None` as `view`."""
        async with self._database.reading() as tx:
            row = await self._own(tx, caller, gateway_call_id)
        if row is None:
            return None
        key, now, thread_id = f"cancel:{gateway_call_id}", self._clock(), row.thread_id
        async with self._database.writing_urgently(thread_id) as tx:
            result = GatewayResult(is_error=True, text=await self._taken_back(tx, row))
            if await gateway_calls.cancel(tx, gateway_call_id, result_json(result), now=now):
                await deliveries.drop(tx, [delivery_key(gateway_call_id)])
                await deliveries.drop_resumes(tx, thread_id)
                body = {"person": row.person_id, "name": row.client, "text": ""}
                await deliveries.add(tx, Delivery(key, thread_id, "stop", body, True, now, now))
                tx.afterwards(lambda: self._engine.interrupt(thread_id))
                tx.afterwards(lambda: self._engine.wake(thread_id))
                tx.afterwards(lambda: self._changes.tell(gateway_call_id))
            row = await gateway_calls.get(tx, gateway_call_id) or row
            return await self._view(tx, row)

    async def _taken_back(self, tx: Transaction, row: GatewayCallRow) -> str:
        """What is told of a call that is taken back now: whether it may have been sent by then."""
        waits_for = await wait_in(tx, row.thread_id, self._clock())
        latest = await attempts.latest(tx, ledger_call_id(row.gateway_call_id))
        was_sent = latest is not None and latest.status != "nothing"
        if not was_sent and waits_for is not None and waits_for.kind in {"approval", "sign_in"}:
            return f"The call {TAKEN_BACK}. Nothing was done."
        sent = "had been sent" if was_sent else "may have been sent"
        return f"The call {TAKEN_BACK}. It {sent} by then, and may have taken effect: look before it is made again."

    # ------------------------------------------------------------------------------------------- views

    async def _own(self, tx: Transaction, caller: GatewayCaller, gateway_call_id: str) -> GatewayCallRow | None:
        row = await gateway_calls.get(tx, storable(gateway_call_id))
        if row is None or row.client != caller.client:
            return None
        return row if row.person_id in {caller.person.person_id, *caller.accounts} else None

    async def _view(self, tx: Transaction, row: GatewayCallRow) -> GatewayCallView:
        waits_for = await wait_in(tx, row.thread_id, self._clock()) if row.status == "waiting" else None
        return GatewayCallView(
            gateway_call_id=row.gateway_call_id,
            server=row.server,
            tool=row.tool,
            status="ended" if not row.is_under_way else "waiting" if waits_for is not None else "running",
            begun_at=row.begun_at,
            changed_at=row.changed_at,
            handed_at=row.handed_at,
            waits_for=waits_for,
            result=GatewayResult(**row.result) if row.result is not None else None,
            cancelled=row.status == "cancelled",
            task_seconds=row.task_seconds,
            is_stopped=row.is_under_way and self.is_stopped.is_set(),
        )


def ledger_call_id(gateway_call_id: str) -> str:
    """The id by which the ledger and the approvals know the call: the only one of its turn."""
    return f"{delivery_key(gateway_call_id)}.0.0"
