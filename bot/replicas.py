"""What several processes on one PostgreSQL know of each other: who is there, by which policy each of them judges, when
it is to be read again, and how long services have asked to wait.

Each keeps a row and looks once a second. That is on no way of a message, and costs three statements.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from bot.events import happens
from bot.records import beginnings, replicas
from bot.records.replicas import GONE_SECONDS, ReplicaRow, Seen

if TYPE_CHECKING:
    from bot.policy_in_force import PolicyInForce
    from bot.records.postgresql import PostgresDatabase, PostgresTransaction

log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0
"""Seconds between two looks."""
LOOKING_SECONDS = 5.0
"""How long one may take."""
LEAVING_SECONDS = 1.0
"""How long a process that ends tries to say so: the database may be away."""
SWEPT_EVERY = 30.0
"""Seconds after which a process forgets what is over, in the records."""
DIFFERS_SECONDS = 5.0
"""Seconds for which policies may differ without a word: it takes two until all have read a new one."""
STAGGER_SECONDS = 0.25
"""How much later than the one before it a process goes on after a pause, so that not all do at the same moment."""
MOST_KNOWN = 1_000
"""Processes, also dead ones, of which is remembered how often they have asked for the policy to be read again."""


class SharedPauses:
    """What a service asks one process to wait, all of them wait. Fills `adapters.shared.calls.PauseExchange`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._paused: dict[str, Callable[[str, float], None]] = {}
        """By service."""
        self._known: dict[tuple[str, str], float] = {}
        """Service and line → until when it is paused, as far as its calls know."""
        self._telling: set[asyncio.Task[None]] = set()

    def hears(self, service: str, paused: Callable[[str, float], None]) -> None:
        """`paused` is called with a line and seconds when another process was asked to wait."""
        self._paused[service] = paused

    def asked(self, service: str, line: str, seconds: float) -> None:
        """The service has asked this process to wait. Returns at once."""
        task = asyncio.create_task(self._tell(service, line, seconds), name="pause told")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def look(self, tx: PostgresTransaction, turn: int) -> None:
        """Finds out what others were asked. `turn`: how many processes go on before this one."""
        found = await replicas.asked(tx)
        for each in found:
            of = (each.service, each.line)
            if each.until > self._known.get(of, 0.0) and each.service in self._paused:
                self._paused[each.service](each.line, each.left + turn * STAGGER_SECONDS)
        self._known = {(each.service, each.line): each.until for each in found}

    async def close(self) -> None:
        """Wait for what is being told, but not long."""
        if self._telling:
            _, late = await asyncio.wait(self._telling, timeout=LEAVING_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _tell(self, service: str, line: str, seconds: float) -> None:
        try:
            async with asyncio.timeout(LOOKING_SECONDS), self._database.at_once() as tx:
                kept = await replicas.ask(tx, service, line, seconds)
            known = self._known.get((service, line), 0.0)
            self._known[service, line] = kept.until
            if kept.left > seconds and kept.until > known and service in self._paused:
                self._paused[service](line, kept.left)  # another process was asked to wait for longer
        except Exception as error:  # noqa: BLE001  # the others find it out by themselves
            log.warning("pause_not_told", service=service, cause=type(error).__name__)


@dataclass(slots=True)
class _Others:
    seen: Sequence[Seen] = ()
    at: float = 0.0
    """When they were looked at, by the monotonic clock."""


class ReplicaTable:
    """Keeps the row of this process, and follows the others.

    Args:
        me: this process, as it is when it starts.
        policy: read again when others have been asked to.
        pauses: looked at along with them.
    """

    def __init__(self, database: PostgresDatabase, me: ReplicaRow, policy: PolicyInForce, pauses: SharedPauses) -> None:
        self._database = database
        self._me = me
        self._policy = policy
        self._pauses = pauses
        self._others = _Others()
        self._reloads: dict[str, int] | None = None
        """Process → how often it was asked for a new policy, as far as was followed; `None` before the first look."""
        self._reloading = asyncio.Event()
        self._look_now = asyncio.Event()
        self._differs_since: float | None = None
        self._differs_told = False
        self._swept_at = time.monotonic()
        self._tell: Callable[[], Mapping[str, Any]] = dict
        self._take_up: Callable[[], Awaitable[None]] | None = None
        self._taking_up: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """While the block runs, this process is there for the others. Raises what the driver raises at first."""
        await self.look()
        looking = asyncio.create_task(self._keep_looking(), name="replicas")
        try:
            async with self._policy.reloading_whenever(self._reloading):
                yield
        finally:
            tasks = [looking, *([self._taking_up] if self._taking_up else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._pauses.close()
            await self._leave()

    def reload_asked(self) -> None:
        """Somebody has asked this process for a new policy: all others read theirs again, too."""
        self._me = replace(self._me, reloads=self._me.reloads + 1)
        self._look_now.set()

    def when_one_is_gone(self, take_up: Callable[[], Awaitable[None]]) -> None:
        """`take_up` is called, in each process, when one is there no more; it may have left something behind."""
        self._take_up = take_up

    def tells(self, facts: Callable[[], Mapping[str, Any]]) -> None:
        """From now on this process tells the others how it is: `facts` are JSON, and kept short."""
        self._tell = facts

    def told(self) -> Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """The processes that are there, as `facts` has them, and how each says it is; of an older version nothing."""
        facts, others = self.facts(), {row.replica_id: row.facts for row, _ in self._others.seen}
        return [(each, self._tell() if each["here"] else _read(others.get(each["id"]))) for each in facts]

    def facts(self) -> Sequence[Mapping[str, Any]]:
        """The processes that are there, for `/health-check`; JSON."""
        here = self._mine()
        since = time.monotonic() - self._others.at
        others = [(row, ago + since) for row, ago in self._others.seen if ago + since < GONE_SECONDS]
        return [_facts(here, 0.0, here), *(_facts(row, ago, here) for row, ago in others)]

    async def look(self) -> None:
        """Says that this process is there, and finds out about the others."""
        mine = self._mine()
        async with self._database.at_once() as tx:
            seen = await replicas.seen(tx, mine)
            first = (mine.started_at, mine.replica_id)
            turn = sum((each.row.started_at, each.row.replica_id) < first for each in seen)
            await self._pauses.look(tx, turn)
            if time.monotonic() - self._swept_at >= SWEPT_EVERY:
                self._swept_at = time.monotonic()
                await replicas.sweep(tx)
                await beginnings.sweep(tx)
        before, now = ({row.replica_id for row, _ in each} for each in (self._others.seen, seen))
        self._others = _Others(seen, time.monotonic())
        if before - now and self._take_up is not None and (self._taking_up is None or self._taking_up.done()):
            self._taking_up = asyncio.create_task(self._take_up_left(self._take_up), name="left by others")
        self._follow(seen, mine)
        self._compare(seen, mine)

    def _mine(self) -> ReplicaRow:
        return replace(self._me, policy=self._policy().version, facts=json.dumps(self._tell()))

    def _follow(self, seen: Sequence[Seen], mine: ReplicaRow) -> None:
        """Has the policy read again when somebody has asked another process for that; or, at the start, when they have
        another one: it may have been replaced since it was read here."""
        known = self._reloads
        if known is None:
            wanted = any(row.policy != mine.policy for row, _ in seen)
        else:
            wanted = any(row.reloads > known.get(row.replica_id, 0) for row, _ in seen)
        now = {row.replica_id: row.reloads for row, _ in seen}
        self._reloads = {**(known or {}), **now} if known is None or len(known) < MOST_KNOWN else now
        if wanted:
            self._reloading.set()

    def _compare(self, seen: Sequence[Seen], mine: ReplicaRow) -> None:
        """Says once when policies begin to differ, and when they do no more."""
        elsewhere = {f"{row.host}:{row.process}": row.policy for row, _ in seen if row.policy != mine.policy}
        if not elsewhere:
            if self._differs_told:
                log.info("policy_differs_no_more", version=mine.policy)
            self._differs_since, self._differs_told = None, False
            return
        now = time.monotonic()
        if self._differs_since is None:
            self._differs_since = now
        if now - self._differs_since >= DIFFERS_SECONDS and not self._differs_told:
            self._differs_told = True
            log.warning("policy_differs", version=mine.policy, elsewhere=elsewhere)

    async def _keep_looking(self) -> None:
        failed = False
        while True:
            await happens(self._look_now, LOOK_SECONDS)
            self._look_now.clear()
            try:
                async with asyncio.timeout(LOOKING_SECONDS):
                    await self.look()
                failed = False
            except Exception as error:  # noqa: BLE001  # the database fails in many ways, and may be back any time
                if not failed:
                    log.warning("replicas_not_seen", cause=type(error).__name__)
                failed = True

    async def _take_up_left(self, take_up: Callable[[], Awaitable[None]]) -> None:
        try:
            await take_up()
        except Exception as error:  # noqa: BLE001  # as above; the next start takes it up
            log.warning("nothing_taken_up", cause=type(error).__name__)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(LEAVING_SECONDS), self._database.at_once() as tx:
                await replicas.leave(tx, self._me.replica_id)
        except Exception as error:  # noqa: BLE001  # the others find it out by themselves
            log.debug("replica_not_left", cause=type(error).__name__)


def _read(facts: str | None) -> Mapping[str, Any]:
    told = json.loads(facts) if facts else {}
    return told if isinstance(told, dict) else {}


def _facts(row: ReplicaRow, ago: float, here: ReplicaRow) -> Mapping[str, Any]:
    return {
        "id": row.replica_id,
        "host": row.host,
        "process": row.process,
        "here": row.replica_id == here.replica_id,
        "version": row.version,
        "started": datetime.fromtimestamp(row.started_at, UTC).isoformat(timespec="seconds"),
        "seen_seconds_ago": round(ago, 1),
        "policy": row.policy,
        "policy_differs": row.policy != here.policy,
    }
