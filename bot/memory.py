"""What is remembered of people and of channels: kept in LangGraph's store, shown to those whom it is about, and deleted
for good when they say so.

A person's memories belong to the account with which they were said; they are in the turns of all accounts that
platforms say are the same human's. A channel's belong to whoever is in it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from langgraph.store.base import PutOp

from bot.approvals.directory import PeopleDirectory
from bot.domain import ClickResult, Clock, Settled, Unknown
from bot.records import threads
from bot.records.database import Database, Transaction
from bot.records.memory_store import MemoryRows, Namespace, StoredValue
from graph.memory import (
    MOST_REMEMBERED,
    MemoryChanges,
    MemoryItem,
    Recalled,
    superseded_by,
    too_many,
)
from translations import gettext as _

log = structlog.get_logger(__name__)
RECALL_SECONDS = 2.0
"""A turn waits no longer for what is remembered: it goes on without."""
_READ = 2 * MOST_REMEMBERED
"""Rows that are read of one person or channel: a few more than are kept, for a moment, where two processes add some."""
_MEMORY = "memory"
_WISHES = (_MEMORY, "wishes")
"""Namespace of what people want, by person id: not to be remembered any more (`off`), or nothing of what they said
before (`since`); and, by person id or channel, the ids of what they had forgotten last (`gone`). Each wish has a row of
its own, so that none takes another's place."""
_MOST_GONE = 20
"""Ids of what was forgotten last that are kept, so that what is done again after a crash does not bring it back."""


@dataclass(frozen=True, slots=True)
class PersonMemories:
    """What somebody is shown of what is remembered of them."""

    items: tuple[MemoryItem, ...]
    """The newest first."""
    is_remembered: bool
    """False: they do not want to be."""
    since: float = 0.0
    """Of what they said before nothing is to be kept: seconds since the epoch."""
    gone: frozenset[str] = frozenset()
    """Ids of what was forgotten last of them, and of the channel in which they write."""


class Memories:
    """What is remembered. Fills `graph.ports.Memory`.

    Args:
        store: `None`: nothing is (MEMORY=false); then nothing is read or kept.
    """

    def __init__(self, store: MemoryRows | None, database: Database, directory: PeopleDirectory, clock: Clock) -> None:
        self._store = store
        self._database = database
        self._directory = directory
        self._clock = clock

    @property
    def is_on(self) -> bool:
        """Whether anything is remembered at all."""
        return self._store is not None

    # ------------------------------------------------------------------------------------------- for a turn

    async def recalled(self, requester: str, channel: str) -> Recalled:
        """What the model of a turn is told. Never raises, cancellation aside: a turn goes on without."""
        try:
            async with asyncio.timeout(RECALL_SECONDS):
                person, of_channel = await self._read(requester, channel)
        except Exception:
            log.exception("memory_not_read")
            return Recalled()
        own = person.items if person.is_remembered else ()
        return Recalled(
            tuple(item.text for item in reversed(own[:MOST_REMEMBERED])),
            tuple(item.text for item in reversed(of_channel[:MOST_REMEMBERED])),
        )

    # ------------------------------------------------------------------------------------------- for people

    async def of_person(self, person_id: str) -> PersonMemories:
        """What is remembered of somebody. Raises what the store raises."""
        person, _of_channel = await self._read(person_id, "")
        return person

    async def of_channel(self, channel: str) -> tuple[MemoryItem, ...]:
        """What is remembered of a channel, the newest first; for people of it alone. Raises what the store raises."""
        if self._store is None or not channel:
            return ()
        async with self._database.reading() as tx:
            found = await self._store.read(tx, [_of_channel(channel)], _WISHES, (), _READ)
        return _items(found, _of_channel(channel))

    async def forget(self, person_id: str, memory_id: str) -> ClickResult:
        """Delete something that is remembered of whoever says so. Raises what the store raises."""
        accounts = await self._accounts(person_id)
        keys = [*map(_gone_of, accounts)]
        return await self._delete_one([_of_person(account) for account in accounts], memory_id, keys)

    async def forget_of_channel(self, channel: str, memory_id: str) -> ClickResult:
        """Delete something that is remembered of a channel, for somebody who is in it. Raises what the store raises."""
        places, keys = ([_of_channel(channel)], [_wishes_of(channel)]) if channel else ([], [])
        return await self._delete_one(places, memory_id, keys)

    async def forget_all(self, person_id: str) -> ClickResult:
        """Delete all that is remembered of whoever says so. Raises what the store raises."""
        accounts = await self._accounts(person_id)
        # First, so that what is under way keeps nothing of what they said before.
        await self._wish(map(_forgotten_of, accounts), {"since": self._clock()})
        await self._delete_all(accounts)
        return Settled(_("I’ve forgotten everything about you."))

    async def stop_remembering(self, person_id: str) -> ClickResult:
        """Remember nothing of somebody from now on, and forget what is remembered. Raises what the store raises."""
        if not self.is_on:
            return _off()
        accounts = await self._accounts(person_id)
        await self._wish(accounts, {"off": True})
        await self._delete_all(accounts)
        return Settled(_("I’ve forgotten everything about you, and won’t remember anything new."))

    async def start_remembering(self, person_id: str) -> ClickResult:
        """Remember somebody again. Raises what the store raises."""
        if not self.is_on:
            return _off()
        await self._wish(await self._accounts(person_id), {"since": self._clock()})
        return Settled(_("I’ll remember what you tell me about yourself."))

    # ------------------------------------------------------------------------------------------- after a turn

    async def known(self, person_id: str, channel: str) -> tuple[PersonMemories, tuple[MemoryItem, ...]]:
        """What is remembered of somebody and of the channel in which they write. Raises what the store raises."""
        return await self._read(person_id, channel)

    async def apply(
        self, changes: MemoryChanges, person_id: str, channel: str, *, name: str, key: str, said_at: float
    ) -> bool:
        """Keep and delete what came of a message; done twice it comes to the same. Returns whether it was done: they
        may not want to be remembered any more. Raises what the store raises.

        Args:
            name: of the person.
            key: of the message.
            said_at: when it was accepted, in seconds since the epoch.
        """
        person, of_channel = await self._read(person_id, channel)
        ids = [memory_id_of(key, number) for number in range(len(changes.remember))]
        if not person.is_remembered or said_at < person.since:
            # A try that was broken off may have kept some after what there was then had been deleted.
            kept_then = {item.memory_id for item in (*person.items, *of_channel)}.intersection(ids)
            places = [_of_person(person_id), *([_of_channel(channel)] if channel else [])]
            await self._write([PutOp(place, each, None) for place in places for each in sorted(kept_then)])
            return False
        # Newer than all that is there: several messages are seen to within a moment.
        now = max([self._clock(), said_at, *(item.at + 1e-6 for item in (*person.items, *of_channel))])
        kept: list[PutOp] = []
        new: dict[Namespace, list[MemoryItem]] = {}
        gone = {*changes.forget}
        for number, (memory_id, each) in enumerate(zip(ids, changes.remember, strict=True)):
            is_of_channel = each.about == "channel"
            namespace = _of_channel(channel) if is_of_channel else _of_person(person_id)
            before = of_channel if is_of_channel else person.items
            # Those of one message in their order.
            item = MemoryItem(memory_id, each.text, now + number / 1e6, name if is_of_channel else "")
            if item.memory_id in person.gone:
                continue  # it was kept before a crash, and has been forgotten since
            gone |= {*superseded_by(each.text, before), each.replaces} & {known.memory_id for known in before}
            kept.append(PutOp(namespace, item.memory_id, {"text": item.text, "at": item.at, "by": item.by}))
            new.setdefault(namespace, []).append(item)
        if not kept and not changes.forget:
            return False
        for known in (person.items, of_channel):
            gone |= set(_saying_the_same(gone, known))
        added = {item.memory_id for items in new.values() for item in items}
        gone -= added
        left = [item for item in (*person.items, *new.get(_of_person(person_id), ())) if item.memory_id not in gone]
        of_channel = (*of_channel, *(new.get(_of_channel(channel), ()) if channel else ()))
        left_in_channel = [item for item in of_channel if item.memory_id not in gone]
        gone |= {*too_many(_once(left)), *too_many(_once(left_in_channel))}
        places = [_of_person(account) for account in await self._accounts(person_id)]
        places += [_of_channel(channel)] if channel else []
        wishes = [_gone_of(person_id), *([_wishes_of(channel)] if channel else [])] if changes.forget else []
        noted = [*sorted(person.gone.difference(changes.forget)), *changes.forget][-_MOST_GONE:]
        await self._write(
            [
                *kept,
                *(PutOp(_WISHES, wish, {"gone": noted}) for wish in wishes),
                *(PutOp(place, each, None) for place in places for each in sorted(gone)),
            ]
        )
        wish, _of_channel_now = await self._read(person_id, channel)
        is_wanted = wish.is_remembered and said_at >= wish.since
        # They said so meanwhile, and what was deleted then did not have these yet.
        late = [each for each in kept if not is_wanted or each.key in wish.gone]
        await self._write([PutOp(each.namespace, each.key, None) for each in late])
        return is_wanted and bool(changes.forget or len(late) < len(kept))

    # ------------------------------------------------------------------------------------------- the store

    async def _read(self, person_id: str, channel: str) -> tuple[PersonMemories, tuple[MemoryItem, ...]]:
        if self._store is None:
            return PersonMemories((), is_remembered=False), ()
        async with self._database.reading() as tx:
            accounts = await threads.accounts_of(tx, person_id)
            if len(accounts) == 1:
                return await self._read_in(tx, self._store, accounts, channel)
        accounts = await self._accounts(person_id)
        async with self._database.reading() as tx:
            return await self._read_in(tx, self._store, accounts, channel)

    async def _read_in(
        self, tx: Transaction, store: MemoryRows, accounts: Sequence[str], channel: str
    ) -> tuple[PersonMemories, tuple[MemoryItem, ...]]:
        own = [_of_person(account) for account in accounts]
        places = [*own, _of_channel(channel)] if channel else own
        keys = [key for account in accounts for key in (account, _forgotten_of(account), _gone_of(account))]
        keys += [_wishes_of(channel)] if channel else []
        found = await store.read(tx, places, _WISHES, keys, len(places) * _READ)
        wishes = [row.value for row in found if row.namespace == _WISHES]
        is_remembered = not any(wish.get("off") for wish in wishes)
        since = max((float(wish.get("since", 0.0)) for wish in wishes), default=0.0)
        gone = frozenset(str(each) for wish in wishes for each in wish.get("gone", ()))
        # Of an account that was not known to be theirs when they had everything forgotten, older ones are there still.
        items = sorted((item for place in own for item in _items(found, place) if item.at >= since), key=_age)
        of_channel = _items(found, _of_channel(channel)) if channel else ()
        return PersonMemories(tuple(items), is_remembered, since, gone), of_channel

    async def _wish(self, keys: Iterable[str], wish: dict[str, Any]) -> None:
        await self._write([PutOp(_WISHES, key, wish) for key in keys])

    async def _delete_one(self, places: Sequence[Namespace], memory_id: str, keys: Sequence[str]) -> ClickResult:
        """`keys`: of the wishes of those whose it is."""
        rows = await self._all_in(places, keys)
        gone = _saying_the_same({memory_id}, [item for place in places for item in _items(rows, place)])
        if not gone:
            return _gone()
        wishes = {
            key: next((row.value for row in rows if (row.namespace, row.key) == (_WISHES, key)), {}) for key in keys
        }
        noted = {key: {**wish, "gone": [*wish.get("gone", ()), *gone][-_MOST_GONE:]} for key, wish in wishes.items()}
        await self._write(
            [
                *(PutOp(_WISHES, key, wish) for key, wish in noted.items()),
                *(PutOp(place, each, None) for place in places for each in gone),
            ]
        )
        return Settled(_("Forgotten."))

    async def _delete_all(self, accounts: Sequence[str]) -> None:
        places = [_of_person(account) for account in accounts]
        while found := await self._all_in(places):  # many processes at once may have added more than are read
            await self._write([PutOp(row.namespace, row.key, None) for row in found])

    async def _all_in(self, places: Sequence[Namespace], keys: Sequence[str] = ()) -> list[StoredValue]:
        if self._store is None or not places:
            return []
        async with self._database.reading() as tx:
            return await self._store.read(tx, places, _WISHES, keys, len(places) * _READ)

    async def _write(self, changes: Sequence[PutOp]) -> None:
        """In one go."""
        if self._store is not None:
            await self._store.write(changes)

    async def _accounts(self, person_id: str) -> tuple[str, ...]:
        """Their person id and those of their other accounts. Platforms are asked only where records say that there are
        others: what was said of them once may be somebody else's address by now."""
        async with self._database.reading() as tx:
            said = await threads.accounts_of(tx, person_id)
        if len(said) < 2:
            return said
        return tuple(sorted(await self._directory.accounts_of(person_id)))


def memory_id_of(key: str, number: int) -> str:
    """Returns the id of a memory.

    Args:
        key: of the message that it was in.
        number: its number among those of that message.
    """
    return hashlib.sha256(f"{key}\n{number}".encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _of_person(person_id: str) -> Namespace:
    return _MEMORY, "person", _label(person_id)


def _of_channel(channel: str) -> Namespace:
    return _MEMORY, "channel", _label(channel)


def _forgotten_of(person_id: str) -> str:
    """Under which stands when somebody had everything forgotten."""
    return f"forgotten {person_id}"


def _gone_of(person_id: str) -> str:
    """Under which stand the ids of what somebody had forgotten last."""
    return f"gone {person_id}"


def _wishes_of(channel: str) -> str:
    """Under which the wishes of a channel stand, beside those of people, by person id."""
    return f"#{channel}"


def _label(text: str) -> str:
    """An id as LangGraph's store takes it: without a full stop, which divides namespaces."""
    return text.replace("%", "%25").replace(".", "%2E")


def _items(rows: Sequence[StoredValue], namespace: Namespace) -> tuple[MemoryItem, ...]:
    items = [
        MemoryItem(row.key, str(row.value["text"]), float(row.value["at"]), str(row.value.get("by", "")))
        for row in rows
        if row.namespace == namespace
    ]
    return tuple(sorted(items, key=_age))


def _age(item: MemoryItem) -> tuple[float, str]:
    return -item.at, item.memory_id


def _saying_the_same(ids: Collection[str], known: Sequence[MemoryItem]) -> list[str]:
    """Those ids that are known, and those of what says the same: when it was said in two conversations at once, it is
    there twice."""
    said = [each for item in known if item.memory_id in ids for each in superseded_by(item.text, known)]
    return list(dict.fromkeys(said))


def _once(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    return list({item.memory_id: item for item in items}.values())


def _gone() -> ClickResult:
    return Unknown(_("That’s forgotten already."))


def _off() -> ClickResult:
    return Unknown(_("I don’t remember anything here: memory is turned off."))
