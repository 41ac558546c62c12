"""Microsoft fails, the process dies: nothing is lost, and what had to be said twice is put right."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from adapters.teams.connector import tokens
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.teams.server import ANA, BEN, FakeTeams
from tests.support.hurried import HURRIED
from tests.support.product import ProductFolder, ProductProcess
from tests.support.product_records import is_recorded
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.support.tools import Workshop
from tests.teams.product.conftest import opened
from tests.teams.product.talk import Talk, words


def said(talk: Talk, text: str) -> int:
    """How often the bot said it."""
    return sum(text in words(m) for m in talk.of_the_bot())


def is_card(body: dict[str, Any]) -> bool:
    """Whether a card is posted, rather than words."""
    return bool(body.get("attachments"))


async def test_a_storm_of_rate_limits_delays_and_loses_nothing(talk: Talk, teams: FakeTeams) -> None:
    for verb in ("send", "update", "member"):
        teams.fail(verb, status=429, retry_after=1, times=1)
    await talk.mentions("use make what=lamp")
    await teams.until(talk.waiting, within=40)
    await talk.clicks(await talk.card(), "approve")
    await teams.until(lambda: said(talk, "made lamp") == 3, within=40)  # on the card, in the answer, in its steps
    assert len(talk.of_the_bot()) == 4


async def test_a_gateway_that_fails_for_a_while_delays_and_loses_nothing(talk: Talk, teams: FakeTeams) -> None:
    teams.fail("send", status=502, times=1)
    teams.fail("send", status=504, times=1)
    teams.fail("send", status=412, times=1)
    await talk.mentions("hello")
    await teams.until(lambda: said(talk, "You said: hello") == 1, within=40)


async def test_while_it_gets_no_token_of_its_own_messages_wait(
    home: ProductFolder, teams: FakeTeams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "AGAIN_AFTER_FAILURE", 0.2)
    teams.fail("token", status=503, times=math.inf)
    async with opened(home, teams) as transport:
        talk = Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
        await talk.mentions("hello")
        await teams.until(lambda: len(teams.calls_of("token")) >= 2)
        teams.faults.clear()
        await teams.until(lambda: said(talk, "You said: hello") == 1, within=60)


async def test_who_cannot_be_looked_up_may_not_decide_now(talk: Talk, teams: FakeTeams, shop: Workshop) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    teams.fail("member", status=500, times=math.inf)
    ben = TeamsPerson(teams, BEN, talk.person.transport)
    answer = await ben.clicks(card, "approve")
    assert answer.status == 200
    assert answer.message
    assert shop.done == []


async def test_killed_between_posting_and_recording_the_second_card_is_removed_when_it_is_seen(
    home: ProductFolder, teams: FakeTeams, shop: Workshop
) -> None:
    process = ProductProcess(home, HURRIED)
    try:
        talk = await _at(process, teams)
        teams.fail("send", drop=True, when=is_card)
        teams.fail("send", status=503, times=math.inf, when=is_card)
        await talk.mentions("use make what=lamp")
        orphan = (await teams.until(talk.waiting, within=30))[0]
        await process.kill()
        teams.faults.clear()
        talk.person.transport = HttpTransport(f"{await process.start()}/api/messages", teams)
        await teams.until(lambda: len(talk.waiting()) >= 2, within=60)
        kept = talk.waiting()[-1]
        await teams.until(lambda: is_recorded(home, kept["id"]), within=30)
        await talk.person.refreshes(orphan)
        await teams.until(lambda: all(m["id"] != orphan["id"] for m in talk.of_the_bot()), within=30)
        await talk.clicks(await talk.card(), "approve")
        await talk.says("Results: made lamp")
        assert shop.done == ["make lamp 1"]
    finally:
        await process.kill()


async def test_killed_while_a_call_waits_it_goes_on_as_if_nothing_had_been(
    home: ProductFolder, teams: FakeTeams, shop: Workshop, model: FakeOpenAI
) -> None:
    process = ProductProcess(home)
    try:
        talk = await _at(process, teams)
        await talk.mentions("use make what=lamp; make what=chair")
        first, second = await talk.card("lamp"), await talk.card("chair")
        await process.kill()
        talk.person.transport = HttpTransport(f"{await process.start()}/api/messages", teams)
        await asyncio.gather(*(talk.clicks(card, "approve") for card in (first, second, first)))
        await talk.says("made lamp", "made chair")
        assert sorted(shop.done) == ["make chair 1", "make lamp 1"]
        assert teams.app_password not in process.log()
    finally:
        await process.kill()


async def _at(process: ProductProcess, teams: FakeTeams) -> Talk:
    transport = HttpTransport(f"{await process.start()}/api/messages", teams)
    return Talk(teams, TeamsPerson(teams, ANA, transport), teams.channel)
