"""What the processes on one PostgreSQL tell each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from bot.records import notifications as module
from bot.records import postgres_connections
from bot.records.notifications import LONGEST_KEY, Notifications
from tests.bot.conftest import until
from tests.support import postgres_cluster
from tests.support.one_way_proxy import proxied
from tests.support.postgres_cluster import break_connections

pytestmark = pytest.mark.postgres
CHANNEL = "countersign_test"


@dataclass
class Listener:
    """One process, and what it has heard."""

    notifications: Notifications
    heard: list[str] = field(default_factory=list)
    missed: int = 0

    def miss(self) -> None:
        self.missed += 1


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", 0.05)
    return postgres_cluster.emptied_database()


async def listening(address: str) -> Listener:
    made = Listener(Notifications(address))
    made.notifications.subscribe(CHANNEL, made.heard.append, made.miss)
    await made.notifications.start()
    await until(lambda: made.missed)
    return made


@pytest.fixture
async def a(address: str) -> AsyncIterator[Listener]:
    made = await listening(address)
    yield made
    await made.notifications.stop()


@pytest.fixture
async def b(address: str) -> AsyncIterator[Listener]:
    made = await listening(address)
    yield made
    await made.notifications.stop()


async def test_everybody_hears_a_key_in_order(a: Listener, b: Listener) -> None:
    a.notifications.tell(CHANNEL, "one", "two")
    a.notifications.tell(CHANNEL, "three", "one")
    await until(lambda: len(b.heard) == 3)
    await until(lambda: len(a.heard) == 3)
    assert a.heard == b.heard == ["one", "two", "three"]


async def test_nobody_hears_what_is_told_on_another_channel(a: Listener, b: Listener) -> None:
    a.notifications.tell("countersign_other", "one")
    a.notifications.tell(CHANNEL, "two")
    await until(lambda: b.heard)
    assert b.heard == ["two"]


async def test_who_waits_for_it_knows_that_it_was_told(a: Listener, b: Listener) -> None:
    assert await a.notifications.tell_now(CHANNEL, "one", 5.0)
    await until(lambda: b.heard)


async def test_who_could_not_hear_learns_that_something_may_be_missed(a: Listener, b: Listener, address: str) -> None:
    missed = b.missed
    break_connections(address)
    await until(lambda: b.missed > missed)
    a.notifications.tell(CHANNEL, "one")
    await until(lambda: "one" in b.heard)


async def test_who_listens_to_a_connection_that_leads_nowhere_learns_soon_that_something_may_be_missed(
    address: str, a: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing ends it, and the same process may reach PostgreSQL by all its others."""
    monkeypatch.setattr(module, "LISTEN_SECONDS", 0.05)
    monkeypatch.setattr(module, "LISTENED_SECONDS", 0.2)
    monkeypatch.setattr(postgres_connections, "CANCEL_SECONDS", 0.1)
    async with proxied(address) as proxy:
        b = await listening(proxy.address)
        missed = b.missed
        proxy.cut_off()
        await until(lambda: b.missed > missed, within=15.0)
        a.notifications.tell(CHANNEL, "one")
        await until(lambda: b.heard == ["one"])
        await b.notifications.stop()


def test_nobody_listens_to_a_connection_that_leads_nowhere_for_more_than_seven_seconds() -> None:
    found_out = module.LISTEN_SECONDS + module.LISTENED_SECONDS + postgres_connections.CANCEL_SECONDS
    assert found_out + module.RECONNECT_SECONDS <= 7.0


async def test_what_could_not_be_told_is_told_later(a: Listener, b: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as away:
        away.setattr(module, "_TELL", "SELECT 1 / 0 FROM unnest(%(channels)s::text[], %(keys)s::text[])")
        assert not await a.notifications.tell_now(CHANNEL, "one", 0.1)
    assert await a.notifications.tell_now(CHANNEL, "two", 10.0)
    await until(lambda: b.heard == ["one", "two"])


async def test_of_what_cannot_be_told_is_told_that_it_was_missed(
    a: Listener, b: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: what waits to be told has a limit."""
    missed = b.missed
    a.notifications.tell(CHANNEL, "x" * (LONGEST_KEY + 1))
    await until(lambda: b.missed == missed + 1)
    a.notifications.tell(CHANNEL, "zero\0")  # PostgreSQL's texts have no such character
    await until(lambda: b.missed == missed + 2)
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    a.notifications.tell(CHANNEL, "one", "two", "three", "four")
    await until(lambda: b.missed == missed + 3)
    assert b.heard == ["one", "two"]


async def test_what_is_left_is_told_before_the_end(a: Listener, b: Listener) -> None:
    a.notifications.tell(CHANNEL, "last")
    await a.notifications.stop()
    await until(lambda: b.heard == ["last"])


async def test_a_defect_of_one_listener_keeps_no_other_from_hearing(address: str, a: Listener) -> None:
    heard: list[str] = []

    def fails(_key: str = "") -> None:
        raise ZeroDivisionError

    two = Notifications(address)
    two.subscribe(CHANNEL, fails, fails)
    two.subscribe(CHANNEL, heard.append, lambda: heard.append("missed"))
    await two.start()
    await until(lambda: heard == ["missed"])
    a.notifications.tell(CHANNEL, "one")
    await until(lambda: heard == ["missed", "one"])
    await two.stop()
