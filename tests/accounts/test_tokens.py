"""Tokens for calls: whose they are, and how they stay fresh."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bot.accounts.ports import GrantRefused, TokenSet, Unreachable
from bot.accounts.tokens import Safe
from bot.crypto import Sealer
from bot.records import connections
from bot.records.locks import UNLOCKED
from graph.ports import AccountNeeded
from tests.accounts.stage import ANA, BEN, Stage
from tests.bot.conftest import until
from tests.bot.stubs import KEY


async def test_each_person_has_their_own(stage: Stage) -> None:
    await stage.connect(ANA, "ana", "1")
    await stage.connect(BEN, "ben", "2")
    assert await stage.access_token(ANA) == "secret-access-ana-1"
    assert await stage.access_token(BEN) == "secret-access-ben-2"
    assert await stage.access_token(ANA, "mail") is None


async def test_they_survive_a_restart(stage: Stage) -> None:
    await stage.connect()
    stage.restart()
    assert await stage.access_token() == "secret-access-ana-1"


async def expiring(stage: Stage, seconds: float) -> None:
    stage.services_outside.lifetime = stage.clock() + seconds
    await stage.connect()
    stage.services_outside.lifetime = stage.clock() + 3600


async def test_they_are_refreshed_ahead_of_expiry(stage: Stage) -> None:
    await expiring(stage, 300)
    assert await stage.access_token() == "secret-access-ana-1"
    stage.clock.move(200)
    assert await stage.access_token() == "secret-access-ana-2"
    assert await stage.access_token() == "secret-access-ana-2"
    assert stage.services_outside.refreshed == ["secret-access-ana-1"]


async def test_many_calls_at_a_time_refresh_once(stage: Stage) -> None:
    await expiring(stage, 60)
    found = await asyncio.gather(*(stage.access_token() for _ in range(8)))
    assert set(found) == {"secret-access-ana-2"}
    assert stage.services_outside.refreshed == ["secret-access-ana-1"]


async def test_a_refresh_is_seen_through_although_its_call_is_broken_off(stage: Stage) -> None:
    await expiring(stage, 60)
    stage.services_outside.held = asyncio.Event()
    call = asyncio.create_task(stage.access_token())
    await until(lambda: stage.services_outside.refreshed)
    call.cancel()
    other = asyncio.create_task(stage.access_token())
    stage.services_outside.held.set()
    assert await other == "secret-access-ana-2"
    assert stage.services_outside.refreshed == ["secret-access-ana-1"]


async def test_tokens_that_cannot_be_refreshed_now_are_used_while_they_are_good(stage: Stage) -> None:
    await expiring(stage, 60)
    stage.services_outside.trouble = Unreachable("away")
    assert await stage.access_token() == "secret-access-ana-1"
    stage.clock.move(61)
    with pytest.raises(Unreachable):
        await stage.access_token()
    stage.services_outside.trouble = None
    assert await stage.access_token() == "secret-access-ana-2"


async def test_a_refresh_that_is_refused_means_signing_in_anew(stage: Stage) -> None:
    await expiring(stage, 60)
    stage.services_outside.trouble = GrantRefused("invalid_grant")
    assert await stage.access_token() is None
    stage.services_outside.trouble = None
    assert await stage.access_token() is None
    assert len(stage.services_outside.refreshed) == 1
    assert [view.working for view in await stage.services.connections.of_person(ANA)] == [False]
    await stage.connect(call="m2.0.0")
    assert await stage.access_token() == "secret-access-ana-2"
    assert [view.working for view in await stage.services.connections.of_person(ANA)] == [True]


async def current(stage: Stage) -> TokenSet:
    tokens = await stage.tokens.current(ANA.person_id, "drive")
    assert tokens is not None
    return tokens


async def test_tokens_that_the_server_did_not_accept_are_refreshed_once_for_all_calls(stage: Stage) -> None:
    await stage.connect()
    old = await current(stage)
    fresh = await asyncio.gather(*(stage.tokens.refused(ANA.person_id, "drive", old) for _ in range(5)))
    assert {tokens.access_token for tokens in fresh if tokens} == {"secret-access-ana-2"}
    assert stage.services_outside.refreshed == ["secret-access-ana-1"]


async def test_they_say_which_sign_in_they_came_of_however_often_they_are_refreshed(stage: Stage) -> None:
    await stage.connect()
    first = await current(stage)
    fresh = await stage.tokens.refused(ANA.person_id, "drive", first)
    assert fresh is not None
    assert first.sign_in == fresh.sign_in == (await current(stage)).sign_in != ""


async def test_tokens_of_another_sign_in_say_so(stage: Stage) -> None:
    """Also of one that has taken the place of the other, in the same row."""
    await stage.connect()
    seen = [(await current(stage)).sign_in]
    stage.clock.move(1)
    await stage.connect(call="m2.0.0", needed=AccountNeeded("drive", 'Bearer error="insufficient_scope"'))
    seen.append((await current(stage)).sign_in)
    (row,) = await stage.services.connections.of_person(ANA)
    await stage.services.connections.disconnect(row.connection_id, ANA)
    await stage.connect(call="m3.0.0")
    seen.append((await current(stage)).sign_in)
    assert len({*seen}) == 3


async def test_what_is_sealed_can_be_read_by_an_earlier_release(stage: Stage) -> None:
    """While one process after the other is upgraded."""
    sealed = Safe(Sealer(KEY)).put_tokens(ANA.person_id, "drive", TokenSet("access", sign_in="of today"))
    kept = Safe(Sealer(KEY)).take(ANA.person_id, "drive", sealed)
    assert kept is not None
    assert "sign_in" not in kept


async def test_what_a_disconnected_account_was_refreshed_to_is_not_kept(stage: Stage) -> None:
    await expiring(stage, 60)
    stage.services_outside.held = asyncio.Event()
    call = asyncio.create_task(stage.access_token())
    await until(lambda: stage.services_outside.refreshed)
    (view,) = await stage.services.connections.of_person(ANA)
    ending = asyncio.create_task(stage.services.connections.disconnect(view.connection_id, ANA))
    await asyncio.sleep(0)
    await until(lambda: stage.parts.services.connections._telling)
    stage.services_outside.held.set()
    assert await call is None
    await ending
    assert await stage.access_token() is None
    assert await stage.services.connections.of_person(ANA) == ()
    assert sorted(stage.services_outside.revoked) == ["secret-access-ana-1", "secret-access-ana-2"]


async def test_a_refusal_of_the_old_tokens_says_nothing_of_an_account_that_was_connected_meanwhile(
    stage: Stage,
) -> None:
    await expiring(stage, 60)
    stage.services_outside.held = asyncio.Event()
    call = asyncio.create_task(stage.access_token())
    await until(lambda: stage.services_outside.refreshed)
    (row,) = await stage.services.connections.of_person(ANA)
    async with stage.database.writing(UNLOCKED) as tx:
        known = await connections.get(tx, row.connection_id)
        assert known is not None
        fresh = stage.services_outside.tokens("anew")
        sealed = Safe(Sealer(KEY)).put_tokens(ANA.person_id, "drive", fresh)
        await connections.put(tx, replace(known, sealed_tokens=sealed))
    stage.services_outside.trouble = GrantRefused("invalid_grant")
    stage.services_outside.held.set()
    assert await call == fresh.access_token
    assert stage.services_outside.revoked == []


async def test_tokens_that_live_for_a_minute_are_not_refreshed_for_each_request(stage: Stage) -> None:
    stage.services_outside.granted_for = 60
    await expiring(stage, 60)
    assert [await stage.access_token() for _ in range(3)] == ["secret-access-ana-1"] * 3
    stage.clock.move(46)
    assert await stage.access_token() == "secret-access-ana-2"
    assert stage.services_outside.refreshed == ["secret-access-ana-1"]


async def test_tokens_of_another_configuration_are_shown_to_nobody(stage: Stage) -> None:
    await stage.connect()
    stage.services_outside.unfit.add("drive")
    assert await stage.access_token() is None
    assert await stage.tokens.refused(ANA.person_id, "drive", TokenSet("secret-access-ana-1")) is None
    assert [view.working for view in await stage.services.connections.of_person(ANA)] == [False]
    assert stage.services_outside.refreshed == []


async def test_another_persons_row_cannot_be_used_for_ones_own(stage: Stage) -> None:
    """Even by somebody who can write to the database but has no key."""
    await stage.connect(BEN, "ben", "1")
    await stage.connect(ANA, "ana", "2")
    async with stage.database.writing(UNLOCKED) as tx:
        ben = await connections.of(tx, BEN.person_id, "drive")
        ana = await connections.of(tx, ANA.person_id, "drive")
        assert ben is not None
        assert ana is not None
        await connections.reseal(tx, ana, ben.sealed_tokens)
    assert await stage.access_token(ANA) is None


async def test_tokens_say_nothing_of_themselves(stage: Stage) -> None:
    await stage.connect()
    assert "secret" not in repr(await current(stage))
