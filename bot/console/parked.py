"""What was given up after it had failed too often, or had killed the process: operators have it tried again, or give
it up for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.audit.log import AuditLog
from bot.console.access import OperatorAccess
from bot.domain import AlreadySettled, ClickResult, Clock, Person, Refused, Settled, Unknown
from bot.files import FILES
from bot.records import deliveries, thread_owners, threads, waiting
from bot.records.database import Database, Transaction, locking_as_found
from bot.records.deliveries import Delivery, ParkedRow
from bot.task_threads import conversation_of, is_task_thread
from bot.turns.engine import Engine
from bot.turns.failures import reference_to
from translations import gettext as _

MOST_PARKED = 100
"""Of one answer."""
LONGEST_TEXT = 300
"""Characters of a message in the list."""
NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class Parked:
    """A delivery that was given up."""

    key: str
    thread_id: str
    kind: str
    person_id: str
    person: str
    """Name of whose message it is; empty: it is none."""
    text: str
    cause: str
    at: float
    """When it was accepted."""
    tries: int
    reference: str
    """What people were told."""
    why_not: str
    """Why it cannot be tried again; empty: it can."""


@dataclass(frozen=True, slots=True)
class ParkedPage:
    """Those that were accepted last first."""

    parked: Sequence[Parked]
    following: str
    """Before what the next page begins; empty: this is the last one."""


class ParkedDeliveries:
    """Reads them, for operators, and does what they say."""

    def __init__(
        self, database: Database, access: OperatorAccess, audit: AuditLog, engine: Engine, clock: Clock
    ) -> None:
        self._database = database
        self._access = access
        self._audit = audit
        self._engine = engine
        self._clock = clock

    async def listed(self, operator: Person, before: int = NEWEST, limit: int = MOST_PARKED) -> ParkedPage | None:
        """What was given up; `None`: this is no operator.

        Args:
            before: as `ParkedPage.following` of the page before.
        """
        if not await self._access.looks(operator, "what is parked"):
            return None
        async with self._database.reading() as tx:
            found = await deliveries.parked(tx, before, limit + 1)
        shown = [_parked(row) for row in found[:limit]]
        return ParkedPage(shown, str(found[limit - 1].seq) if len(found) > limit else "")

    async def retry(self, operator: Person, key: str) -> ClickResult | None:
        """Have it tried again, as if its author had sent it once more; `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None

        async def retry(tx: Transaction) -> ClickResult:
            row = await deliveries.parked_one(tx, key)
            if row is None:
                return _gone()
            tx.needs(row.thread_id)
            if why_not := why_not_again(row):
                return Refused(why_not)
            if refused := await self._in_the_way(tx, row.thread_id):
                return refused
            now = self._clock()
            if row.kind == "memory":
                await deliveries.again(tx, key, now)
            else:
                await deliveries.give_up(tx, key)
                body = {**row.body, "begins": None}
                again = Delivery(await self._new_key(tx, key), row.thread_id, "message", body, False, now, now)
                await deliveries.add(tx, again)
            await self._audit.acted(tx, operator, "had a delivery tried again", of=key, thread_id=row.thread_id)
            tx.wakes(row.thread_id)
            tx.afterwards(lambda: self._engine.wake(row.thread_id))
            return Settled(_("Trying again."))

        return await locking_as_found(self._database.writing_urgently, retry)

    async def give_up(self, operator: Person, key: str) -> ClickResult | None:
        """Give it up for good: it is listed no more. `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None

        async def give_up(tx: Transaction) -> ClickResult:
            row = await deliveries.parked_one(tx, key)
            if row is None:
                return _gone()
            tx.needs(row.thread_id)
            await deliveries.give_up(tx, key)
            await self._audit.acted(tx, operator, "gave a delivery up", of=key, thread_id=row.thread_id)
            return Settled(_("Given up."))

        return await locking_as_found(self._database.writing_urgently, give_up)

    async def _in_the_way(self, tx: Transaction, thread_id: str) -> ClickResult | None:
        """Why it cannot be tried again now: it would take the place of what waits."""
        conversation = conversation_of(thread_id)
        thread = await threads.get(tx, conversation)
        if thread is None or await thread_owners.owner_of(tx, conversation) == thread_owners.DELETED:
            return Unknown(_("The conversation isn’t there any more."))
        if await waiting.in_thread(tx, thread_id):
            return AlreadySettled(_("Something in this conversation is still waiting. Retry when that’s settled."))
        return None

    async def _new_key(self, tx: Transaction, key: str) -> str:
        """The key of the message that is sent once more: platforms read theirs from the end of it."""
        original, number = (key.split(":", 2)[2], int(key.split(":", 2)[1])) if key.startswith(_AGAIN) else (key, 1)
        while await deliveries.exists(tx, f"{_AGAIN}{number + 1}:{original}"):
            number += 1
        return f"{_AGAIN}{number + 1}:{original}"


_AGAIN = "again:"


def why_not_again(row: ParkedRow) -> str:
    """Returns why a delivery cannot be tried again; empty: it can. Pure."""
    if row.kind == "memory":
        return ""
    if row.kind == "call":
        return _("The program that made this call was told that it was given up, and can make it again.")
    if row.kind != "message" or is_task_thread(row.thread_id):
        return _("What it belonged to was ended when it was given up. Its author can ask again.")
    if row.body.get(FILES):
        return _("It came with files, which aren’t kept. Its author can send it again.")
    return ""


def _parked(row: ParkedRow) -> Parked:
    return Parked(
        key=row.key,
        thread_id=row.thread_id,
        kind=row.kind,
        person_id=str(row.body.get("person", "")),
        person=str(row.body.get("name", "")),
        text=str(row.body.get("text", ""))[:LONGEST_TEXT],
        cause=row.cause or "",
        at=row.accepted_at,
        tries=row.tries,
        reference=reference_to(row.key),
        why_not=why_not_again(row),
    )


def _gone() -> AlreadySettled:
    return AlreadySettled(_("It isn’t parked any more."), gone=True)
