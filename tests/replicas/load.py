"""People whose messages, duplicates and contradicting clicks go to all replicas, and what must be true in the end."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.kills.facts import Facts, check_calls, check_endings, check_inbox, check_shown, facts_at_rest, opened_at
from tests.kills.habits import HABITS, Habit, live
from tests.kills.people import PATIENCE, Ana, Sent
from tests.kills.programs import check_programs
from tests.replicas.crash_points import stale_writes
from tests.replicas.processes import Replica
from tests.replicas.visitors import RoamingVisitor, roaming
from tests.support.product import ProductFolder
from tests.support.visitor import Answer


@dataclass
class Load:
    """People in conversations, each with one browser at each replica."""

    people: Sequence[Ana]
    browser: RoamingVisitor
    refused: list[Answer]
    over: asyncio.Event = field(default_factory=asyncio.Event)
    living: list[asyncio.Task[list[str]]] = field(default_factory=list)

    @property
    def shown(self) -> int:
        """How much has been shown to all of them."""
        return sum(ana.revisions for ana in self.people)

    @property
    def sent(self) -> list[Sent]:
        """What the product has accepted."""
        return [message for ana in self.people for message in ana.sent]

    async def gets_on(self, shown: int, within: float) -> bool:
        """Wait until so much more has been shown; false when it was not, in so many seconds."""
        goal = self.shown + shown
        try:
            async with asyncio.timeout(within):
                while self.shown < goal:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    async def ends(self) -> None:
        """Let everybody come to their end."""
        self.over.set()
        await asyncio.wait(self.living)

    async def check(self, home: ProductFolder, address: str) -> dict[str, Any]:
        """Nothing was lost, nothing ran twice, nothing of an old epoch was written, and every conversation is whole, as
        each replica shows it. Returns figures."""
        shown = [
            (ana, await opened_at(self.browser.http, url, ana.thread.thread_id))
            for ana in self.people
            for url in self.browser.urls
        ]
        facts = await facts_at_rest(home, address)
        check_inbox(facts, self.sent)
        check_calls(facts, self.sent)
        check_programs(facts)
        check_endings(facts, self.sent, [text for ana in self.people for text in ana.thread.said])
        for ana, entries in shown:
            check_shown(entries, ana.sent)
        assert stale_writes(address) == []
        return self._figures(facts)

    def _figures(self, facts: Facts) -> dict[str, Any]:
        unknown = sum(attempt["status"] == "unknown" for attempt in facts.acts())
        effects = facts.effects.total()
        return {"messages": len(self.sent), "effects": effects, "unknown": unknown, "refused": len(self.refused)}


async def _is_asked(ana: Ana, key: str) -> None:
    """A question, answered in words that are sent to both replicas."""
    await ana.say(f"ask {key}")
    await ana.thread.question()
    await ana.say(f"because of {key}", times=2)
    await ana.hears(f'noted {key}: {{"answer": "because of {key}"}}')


_WHAT_WAITS = {
    "deliveries": "SELECT key, kind, tries, due_at, cause FROM deliveries WHERE status <> 'done' AND kind <> 'timer'",
    "jobs": "SELECT id, lock, status, worker_id FROM procrastinate_jobs",
    "workers": "SELECT id, now() - last_heartbeat FROM procrastinate_workers",
    "held": "SELECT name, epoch FROM locks WHERE held",
}


def _what_waits(replicas: Sequence[Replica], address: str) -> str:
    """For whoever has to find out why a test failed. The replicas write to their logs what they wait for."""
    for replica in replicas:
        replica.send(signal.SIGUSR1)
    with _connected(address) as connection:
        found = {name: connection.execute(query).fetchall() for name, query in _WHAT_WAITS.items()}
    return "\n".join(f"{name}: {row}" for name, rows in found.items() for row in rows)


def _connected(address: str) -> psycopg.Connection[Any]:
    for _ in range(100):
        with suppress(psycopg.OperationalError):  # it may have been killed a moment ago
            return psycopg.connect(address)
        time.sleep(0.2)
    return psycopg.connect(address)


ALL_HABITS: tuple[Habit, ...] = (*HABITS, _is_asked)


@asynccontextmanager
async def loaded(replicas: Sequence[Replica], address: str, threads: int, seed: int) -> AsyncIterator[Load]:
    """So many conversations. The block fails when one does, or ends when all have come to their ends."""
    refused: list[Answer] = []
    urls = [replica.url for replica in replicas]
    async with AsyncExitStack() as stack:
        browsers = [await stack.enter_async_context(roaming(order, refused)) for order in (urls, urls[::-1])]
        people = []
        for number in range(threads):
            first, second = browsers if number % 2 else reversed(browsers)
            thread = await stack.enter_async_context(first.thread(within=PATIENCE))
            people.append(Ana(thread, second, random.Random(f"{seed}:{number}")))
        load = Load(people, browsers[0], refused)
        try:
            async with asyncio.TaskGroup() as group:
                load.living += [group.create_task(live(ana, load.over, ALL_HABITS)) for ana in people]
                yield load
                load.over.set()
        except ExceptionGroup:
            print(await asyncio.to_thread(_what_waits, replicas, address))
            await asyncio.sleep(1)  # until they have written it
            raise
