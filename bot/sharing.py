"""What processes share that are on one PostgreSQL, and a process on SQLite has by itself."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.crypto import random_id
from bot.domain import Clock, system_clock
from bot.limits import Beginnings, BeginningsHere
from bot.policy_in_force import PolicyInForce
from bot.records.database import Database

if TYPE_CHECKING:
    from bot.replicas import ReplicaTable, SharedPauses


@dataclass(frozen=True, slots=True)
class SharedState:
    """The clock, what is counted, and, where there may be others, what is known of them."""

    clock: Clock
    beginnings: Beginnings
    pauses: SharedPauses | None = None
    replicas: ReplicaTable | None = None


def for_one_process() -> SharedState:
    """All of it is in this process's memory."""
    return SharedState(system_clock, BeginningsHere(system_clock))


@asynccontextmanager
async def sharing(database: Database, policy: PolicyInForce, version: str) -> AsyncIterator[SharedState]:
    """All of it is in PostgreSQL. `version`: of the program. Raises what the driver raises."""
    # SQLite has no use for these.
    from bot.records.beginnings import SharedBeginnings  # noqa: PLC0415
    from bot.records.clock import database_clock  # noqa: PLC0415
    from bot.records.postgresql import PostgresDatabase  # noqa: PLC0415
    from bot.records.replicas import ReplicaRow  # noqa: PLC0415
    from bot.replicas import ReplicaTable, SharedPauses  # noqa: PLC0415

    if not isinstance(database, PostgresDatabase):
        raise TypeError("only PostgreSQL can be shared")
    async with database_clock(database) as clock:
        me = ReplicaRow(random_id(), socket.gethostname(), os.getpid(), version, "", 0, clock())
        pauses = SharedPauses(database)
        replicas = ReplicaTable(database, me, policy, pauses)
        async with replicas.kept():
            yield SharedState(clock, SharedBeginnings(database), pauses, replicas)
