"""What a platform says to one process of people, all processes act on (rule 6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from adapters.shared import people_changes
from adapters.shared.people_changes import PeopleChanges
from bot.records import notifications as module
from bot.records.notifications import Notifications
from tests.bot.conftest import until
from tests.support import postgres_cluster
from tests.support.postgres_cluster import break_connections

pytestmark = pytest.mark.postgres


@dataclass
class Process:
    """One of them, and what it has forgotten."""

    notifications: Notifications
    changes: PeopleChanges
    forgotten: list[tuple[str, ...]] = field(default_factory=list)
    everybody: int = 0

    def forget(self, *of: str) -> None:
        self.forgotten.append(of)

    def forget_all(self) -> None:
        self.everybody += 1


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", 0.05)
    return postgres_cluster.emptied_database()


@pytest.fixture
async def processes(address: str) -> AsyncIterator[tuple[Process, Process]]:
    made = []
    for _ in range(2):
        notifications = Notifications(address)
        process = Process(notifications, PeopleChanges(notifications))
        process.changes.hears("chat", process.forget, process.forget_all)
        await notifications.start()
        made.append(process)
    for process in made:
        await until(lambda process=process: process.everybody)
    yield made[0], made[1]
    for process in made:
        await process.notifications.stop()


async def test_what_one_is_told_the_other_forgets(processes: tuple[Process, Process]) -> None:
    one, other = processes
    await one.changes.tell("chat", "T1", "U1")
    await until(lambda: other.forgotten)
    assert other.forgotten == [("T1", "U1")]
    assert one.forgotten == []


async def test_of_a_platform_that_is_not_on_nothing_is_forgotten(processes: tuple[Process, Process]) -> None:
    one, other = processes
    await one.changes.tell("another", "T1", "U1")
    await one.changes.tell("chat", "T1", "U2")
    await until(lambda: other.forgotten)
    assert other.forgotten == [("T1", "U2")]


async def test_where_something_may_have_been_missed_everybody_is_forgotten(
    processes: tuple[Process, Process], address: str
) -> None:
    one, other = processes
    before = other.everybody
    break_connections(address)
    await one.changes.tell("chat", "T1", "U1")
    await until(lambda: other.everybody > before)


async def test_nobody_waits_long_for_the_others(
    processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack waits for three seconds."""
    monkeypatch.setattr(people_changes, "TELL_SECONDS", 0.01)
    one, _ = processes
    await one.notifications.stop()
    await one.changes.tell("chat", "T1", "U1")
