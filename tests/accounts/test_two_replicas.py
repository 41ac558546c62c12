"""Two replicas with one person's accounts: what both do at once comes out as if one had been first.

Each test fails when nobody locks anything (`locks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.accounts.flow import Connected, GoTo, ShowCode
from bot.accounts.ports import TokenSet
from bot.crypto import NewId
from bot.domain import Settled
from bot.outbox import Outbox
from bot.records import authorizations
from bot.records.postgresql import PostgresDatabase
from tests.accounts.services import FakeServices
from tests.accounts.stage import ANA, BEN, ELSEWHERE, Stage
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.support.replicas import Held, take_locks_out, two_databases, until_done_or_blocked

pytestmark = pytest.mark.postgres


@dataclass
class Replicas:
    """The services, twice, with the same world outside."""

    one: Stage
    other: Stage
    watching: PostgresDatabase
    outside: FakeServices
    monkeypatch: pytest.MonkeyPatch

    def held_before(self, table: str, **kind: Any) -> Held:
        """Stops the first replica there."""
        assert isinstance(self.one.database, PostgresDatabase)
        return Held(self.monkeypatch, self.one.database, table, **kind)

    async def while_a_service_is_asked(self, first: Any, second: Any) -> tuple[Any, Any]:
        """Does the second while the first waits for the service, and lets that answer when both wait."""
        self.outside.held, before = asyncio.Event(), self.outside.asked
        one = asyncio.create_task(first)
        await until_done_or_blocked(one, self.watching, lambda: self.outside.asked > before)
        two = asyncio.create_task(second)
        await until_done_or_blocked(two, self.watching, lambda: self.outside.asked > before + 1)
        self.outside.held.set()
        return await one, await two


@pytest.fixture(
    params=["locked", pytest.param("unlocked", marks=pytest.mark.xfail(strict=True, reason="nobody locks anything"))]
)
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "unlocked":
        take_locks_out(monkeypatch)


@pytest.fixture
async def replicas(
    clock: SetClock,
    new_id: NewId,
    platforms: Mapping[str, RecordingPlatform],
    platform: RecordingPlatform,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Replicas]:
    async with two_databases() as databases:
        outside, stages = FakeServices(), []
        for database in databases:
            outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.0)
            made = Stage(database, outbox, clock, new_id, platform, tmp_path / "none.db")
            made.services_outside = outside
            made.restart()
            stages.append(made)
        await stages[0].set_up()
        for each in stages:
            await each.outbox.stop(0.0)  # nothing is shown, so that only what is tried writes
        yield Replicas(stages[0], stages[1], databases[1], outside, monkeypatch)
        for each in stages:
            await each.tear_down()


async def code_shown(stage: Stage) -> ShowCode:
    """Ana has signed in, and has yet to tell the code."""
    _, link = await stage.asked_and_linked()
    shown = await stage.browser().consents(link, "ana")
    assert isinstance(shown, ShowCode)
    return shown


async def test_no_sign_in_stays_open_that_was_asked_for_while_the_account_was_connected(
    replicas: Replicas, locks: None
) -> None:
    shown = await code_shown(replicas.one)
    asked, told = await replicas.held_before("authorizations").while_first(
        replicas.one.ask(ANA, "m2.0.0", ELSEWHERE), replicas.other.tells(ANA, shown.code), replicas.watching
    )
    assert isinstance(told, Settled)
    assert await replicas.one.status(asked) == "done"
    assert await replicas.one.resumes(ELSEWHERE) == [f"resume:{asked}"]


async def test_two_wrong_codes_at_once_are_two(replicas: Replicas, locks: None) -> None:
    await code_shown(replicas.one)
    await replicas.held_before("authorizations").while_first(
        replicas.one.tells(ANA, "CCCC-CCCC"), replicas.other.tells(ANA, "DDDD-DDDD"), replicas.watching
    )
    async with replicas.watching.reading() as tx:
        (way,) = await authorizations.with_codes(tx)
    assert way.code_tries == 2


async def test_a_code_that_somebody_else_tells_is_of_no_use_any_more_to_anybody(
    replicas: Replicas, locks: None
) -> None:
    """Either its owner was first, or nobody can use it."""
    shown = await code_shown(replicas.one)
    await replicas.held_before("authorizations", kind=sa.Update).while_first(
        replicas.one.tells(BEN, shown.code), replicas.other.tells(ANA, shown.code), replicas.watching
    )
    assert await replicas.one.access_token() is None


async def test_tokens_are_refreshed_once_though_two_need_them(replicas: Replicas, locks: None) -> None:
    """Services that rotate refresh tokens take the second use of one for theft."""
    await replicas.one.connect()
    old = TokenSet(await replicas.one.access_token() or "")
    refreshes = [each.tokens.refused(ANA.person_id, "drive", old) for each in (replicas.one, replicas.other)]
    fresh = await replicas.while_a_service_is_asked(*refreshes)
    assert len(replicas.outside.refreshed) == 1
    assert fresh[0] == fresh[1]


async def test_a_code_of_a_service_is_redeemed_once_though_the_browser_returns_to_both(
    replicas: Replicas, locks: None
) -> None:
    _, link = await replicas.one.asked_and_linked()
    browser = replicas.one.browser()
    went = await browser.opens(link)
    assert isinstance(went, GoTo)
    there = replicas.other.browser()
    there.cookie = browser.cookie
    returns = [each.returns(went.url, code="code-of-ana") for each in (browser, there)]
    pages = await replicas.while_a_service_is_asked(*returns)
    assert len(replicas.outside.exchanged) == 1
    assert [isinstance(page, ShowCode | Connected) for page in pages] == [True, False]
