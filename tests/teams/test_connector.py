from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web

from adapters.shared.calls import CallFailed
from adapters.shared.http import HttpAnswer
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import Activity, TeamsLocation
from tests.fakes.teams.server import ANA, BEN, TENANT, FakeTeams, fake_teams
from tests.fakes.teams.world import APP_ID
from tests.support.moments import Moments

HELLO = {"type": "message", "text": "hello"}


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@asynccontextmanager
async def connected(
    teams: FakeTeams,
    moments: Moments | None = None,
    *,
    config: TeamsConfig | None = None,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    jitter: float = 1.0,
) -> AsyncIterator[BotConnector]:
    moments = moments or Moments()
    config = config or teams.config()
    tokens = tokens_of(config, environ={}, clock=moments.clock)
    connector = BotConnector(config, tokens, clock=moments.clock, sleep=sleep or moments.sleep, jitter=lambda: jitter)
    try:
        yield connector
    finally:
        await connector.close()
        await tokens.close()


def group(teams: FakeTeams) -> TeamsLocation:
    return TeamsLocation(TENANT, teams.group, "groupChat", teams.service_url)


def chat(teams: FakeTeams, user: str = ANA) -> TeamsLocation:
    return TeamsLocation(TENANT, teams.personal(user), "personal", teams.service_url, user)


def said(number: int) -> Activity:
    return {"type": "message", "text": str(number)}


def texts(teams: FakeTeams, conversation: str) -> list[str]:
    return [message["text"] for message in teams.posts(conversation)]


async def failure_of(call: Awaitable[object]) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await call
    return failed.value


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A Bot Connector of the test's own: its address."""
    app = web.Application()
    app.router.add_route("*", "/teams/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/teams/"
    finally:
        await runner.cleanup()


# -------------------------------------------------------------------------------------------------- the verbs


async def test_a_message_is_posted_as_the_bot_replaced_and_taken_away(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        posted = await connector.send(group(teams), HELLO)
        await connector.update(group(teams), posted, {"type": "message", "text": "goodbye"})
        [message] = teams.posts(teams.group)
        assert (message["id"], message["text"], message["edited"]) == (posted, "goodbye", True)
        await connector.delete(group(teams), posted)
    assert teams.posts(teams.group) == []
    call = teams.calls_of("send")[0]
    assert call.token == "bot-token-1"
    assert call.body["from"] == {"id": f"28:{APP_ID}"}
    assert call.body["conversation"]["id"] == teams.group


async def test_an_activity_arrives_with_every_field_it_has(teams: FakeTeams) -> None:
    activity = {
        **HELLO,
        "text": 'ünï <&> {x} %7B "quoted" 🙂',
        "entities": [{"type": "https://schema.org/Message", "@type": "Message", "citation": [{"position": 1}]}],
        "channelData": {"feedbackLoop": {"type": "default"}, "anything": None},
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": {"$schema": "x"}}],
        "notInTheSdk": {"at": ["all"]},
    }
    sent: dict[str, Any] = {}

    async def answer(request: web.Request) -> web.Response:
        sent.update(await request.json())
        return web.json_response({"id": request.raw_path})

    conversation = "19:{x}/ü@thread.v2;messageid=1"
    async with answering(answer) as url, connected(teams) as connector:
        path = await connector.send(TeamsLocation(TENANT, conversation, "channel", url), activity)
    assert {name: sent[name] for name in activity} == activity
    assert path == f"/teams/v3/conversations/{quote(conversation, safe='')}/activities"


async def test_half_a_character_does_not_keep_a_message_from_being_posted(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        await connector.send(group(teams), {"type": "message", "text": "half \ud83d of a smile"})
    assert texts(teams, teams.group) == ["half ? of a smile"]


async def test_a_thread_of_a_channel_is_begun_and_continued(teams: FakeTeams) -> None:
    channel = TeamsLocation(TENANT, teams.channel, "channel", teams.service_url)
    async with connected(teams) as connector:
        opened = await connector.open_thread(channel, HELLO)
        thread = TeamsLocation(TENANT, opened.conversation, "channel", teams.service_url)
        await connector.send(thread, {"type": "message", "text": "more"})
    assert opened.conversation == f"{teams.channel};messageid={opened.activity_id}"
    assert texts(teams, opened.conversation) == ["hello", "more"]


async def test_a_direct_chat_is_found_by_the_persons_object_id(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        opened = await connector.open_chat(TeamsLocation(TENANT, "", "personal", teams.service_url, ANA))
    assert opened.conversation == teams.personal(ANA)


async def test_who_has_no_app_cannot_be_written_to(teams: FakeTeams) -> None:
    teams.add_user("e0000000-0000-4000-8000-00000000000e", has_app=False)
    location = TeamsLocation(TENANT, "", "personal", teams.service_url, "e0000000-0000-4000-8000-00000000000e")
    async with connected(teams) as connector:
        failure = await failure_of(connector.open_chat(location))
    assert (failure.call, failure.error) == ("open_chat", "ForbiddenOperationException")
    assert (failure.status, failure.permanent, failure.may_have_acted) == (403, True, False)


async def test_a_targeted_message_is_for_one_person_and_is_taken_away_as_one(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        posted = await connector.send(group(teams), HELLO, only_for=teams.address(BEN))
        [message] = teams.posts(teams.group)
        assert message["only_for"] == teams.address(BEN)
        await connector.delete(group(teams), posted, targeted=True)
    assert teams.posts(teams.group) == []


async def test_a_member_is_found_by_object_id_and_by_address(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        for name in (ANA, teams.address(ANA)):
            member = await connector.member(group(teams), name)
            assert (member["name"], member["aadObjectId"]) == ("Ana Alvarez", ANA)
        failure = await failure_of(connector.member(group(teams), "nobody"))
    assert (failure.error, failure.status) == ("MemberNotFoundInConversation", 404)


async def test_a_large_roster_is_read_page_by_page_and_no_further_than_needed(teams: FakeTeams) -> None:
    crowd = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(620)]
    for user in crowd:
        teams.add_user(user)
    teams.add_group("19:crowd@thread.v2", members=crowd)
    location = TeamsLocation(TENANT, "19:crowd@thread.v2", "groupChat", teams.service_url)
    async with connected(teams) as connector:
        assert {m["aadObjectId"] for m in await connector.members(location, 1_000)} == set(crowd)
        assert len(teams.calls_of("members")) == 2
        assert len(await connector.members(location, 7)) == 7
    assert len(teams.calls_of("members")) == 3


async def test_what_teams_answers_without_an_id_has_none(teams: FakeTeams) -> None:
    async def accepted(_request: web.Request) -> web.Response:
        return web.json_response({}, status=202)

    async def nothing(_request: web.Request) -> web.Response:
        return web.Response(status=204)

    for answer in (accepted, nothing):
        async with answering(answer) as url, connected(teams) as connector:
            assert await connector.send(TeamsLocation(TENANT, "a:1", "personal", url), HELLO) == ""


# -------------------------------------------------------------------------------------------------- addresses


async def test_every_region_is_spoken_to_where_it_is(teams: FakeTeams) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"id": "7"})

    async with answering(answer) as url, connected(teams) as connector:
        assert await connector.send(TeamsLocation(TENANT, "19:x", "groupChat", url), HELLO) == "7"
        await connector.send(TeamsLocation(TENANT, teams.group, "groupChat"), HELLO)
    assert seen == ["Bearer bot-token-1"]
    assert texts(teams, teams.group) == ["hello"]


@pytest.mark.parametrize("url", ["http://smba.example/teams/", "https://a{b}/", "ftp://x/", "https://u:p@x/"])
async def test_our_token_goes_nowhere_unsafe(teams: FakeTeams, url: str) -> None:
    async with connected(teams) as connector:
        failure = await failure_of(connector.send(TeamsLocation(TENANT, "19:x", "groupChat", url), HELLO))
    assert (failure.error, failure.permanent) == ("service_url", True)


async def test_our_token_does_not_follow_a_redirect(teams: FakeTeams) -> None:
    async def away(_request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"{teams.service_url}v3/conversations"})

    async with answering(away) as url, connected(teams) as connector:
        failure = await failure_of(connector.send(TeamsLocation(TENANT, "19:x", "groupChat", url), HELLO))
    assert failure.error == "http_307"
    assert teams.calls == []


async def test_local_clients_never_see_our_token(teams: FakeTeams) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"id": request.headers.get("Authorization", "none")})

    async with (
        answering(answer) as url,
        connected(teams, config=teams.config(local_unauthenticated=True)) as connector,
    ):
        assert await connector.send(TeamsLocation(TENANT, "19:x", "groupChat", url), HELLO) == "none"


# -------------------------------------------------------------------------------------------------- tokens


async def test_a_token_that_teams_refuses_is_replaced_once(teams: FakeTeams) -> None:
    moments = Moments()
    async with connected(teams, moments) as connector:
        await connector.send(group(teams), said(1))
        teams.revoke_tokens()
        await connector.send(group(teams), said(2))
        moments.now += 120
        teams.fail("send", code="Unauthorized", times=math.inf)
        failure = await failure_of(connector.send(group(teams), said(3)))
    assert texts(teams, teams.group) == ["1", "2"]
    assert (failure.error, failure.permanent) == ("Unauthorized", False)
    assert len(teams.calls_of("token")) == 3


async def test_without_a_token_nothing_is_lost_for_ever(teams: FakeTeams) -> None:
    async with connected(teams, config=teams.config(app_password="wrong")) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO))
        assert (failure.call, failure.error, failure.permanent) == ("send", "no_token", False)
        assert connector.facts() == {"connected": False, "token_failure": "AADSTS7000215"}
    assert teams.calls == []


async def test_the_health_check_learns_that_all_is_well(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        await connector.send(group(teams), HELLO)
        assert connector.facts() == {"connected": True, "token_failure": ""}


# -------------------------------------------------------------------------------------------------- trying again


@pytest.mark.parametrize("status", [412, 429, 502, 504])
async def test_what_microsoft_wants_repeated_is_repeated_posts_too(teams: FakeTeams, status: int) -> None:
    teams.fail("send", status=status, times=3)
    moments = Moments()
    async with connected(teams, moments) as connector:
        await connector.send(group(teams), HELLO)
    assert texts(teams, teams.group) == ["hello"]
    assert moments.slept == [0.5, 1, 2]


async def test_pauses_vary_by_chance(teams: FakeTeams) -> None:
    teams.fail("send", status=502, times=3)
    moments = Moments()
    async with connected(teams, moments, jitter=0.0) as connector:
        await connector.send(group(teams), HELLO)
    assert moments.slept == [0.25, 0.5, 1]


async def test_it_waits_as_long_as_teams_asks_for_and_a_little_by_chance(teams: FakeTeams) -> None:
    teams.fail("send", status=429, retry_after=7)
    moments = Moments()
    async with connected(teams, moments) as connector:
        await connector.send(group(teams), HELLO)
    assert moments.slept == [7.5]


async def test_it_does_not_wait_for_longer_than_it_may(teams: FakeTeams) -> None:
    teams.fail("send", status=429, retry_after=60)
    moments = Moments()
    async with connected(teams, moments) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO, patience=3))
        assert (failure.error, failure.retry_after) == ("ratelimited", 60.5)
        later = await failure_of(connector.send(group(teams), HELLO, patience=3))
        assert (later.error, later.retry_after) == ("ratelimited", 60.5)
        await connector.send(chat(teams), HELLO, patience=3)
    assert moments.slept == []
    assert len(teams.calls_of("send")) == 2


async def test_a_post_whose_answer_was_lost_is_not_made_twice(teams: FakeTeams) -> None:
    teams.fail("send", drop=True)
    async with connected(teams) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO))
    assert (failure.error, failure.permanent, failure.may_have_acted) == ("connection", False, True)
    assert texts(teams, teams.group) == ["hello"]


async def test_what_does_the_same_twice_is_repeated_when_its_answer_was_lost(teams: FakeTeams) -> None:
    async with connected(teams) as connector:
        posted = await connector.send(group(teams), HELLO)
        for verb in ("update", "member", "members", "open_chat"):
            teams.fail(verb, drop=True)
        await connector.update(group(teams), posted, said(2))
        await connector.member(group(teams), ANA)
        await connector.members(group(teams), 5)
        await connector.open_chat(chat(teams))
    assert texts(teams, teams.group) == ["2"]


@pytest.mark.parametrize("status", [500, 503])
async def test_an_error_of_teams_own_may_have_done_something(teams: FakeTeams, status: int) -> None:
    teams.fail("send", status=status)
    async with connected(teams) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO))
    assert (failure.status, failure.permanent, failure.may_have_acted) == (status, False, True)
    assert len(teams.calls_of("send")) == 1


PERMANENT = [
    ("BadSyntax", 400),
    ("BotNotInConversationRoster", 403),
    ("ConversationNotFound", 404),
    ("MessageSizeTooBig", 413),
]


@pytest.mark.parametrize(("code", "status"), PERMANENT)
async def test_a_refusal_is_told_in_teams_own_word_at_once(teams: FakeTeams, code: str, status: int) -> None:
    teams.fail("send", code=code)
    async with connected(teams) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO))
    assert (failure.error, failure.status, failure.permanent) == (code, status, True)
    assert len(teams.calls_of("send")) == 1


async def test_nobody_there_is_tried_again_since_nothing_can_have_happened(teams: FakeTeams) -> None:
    moments = Moments()
    nobody = TeamsLocation(TENANT, "19:x", "groupChat", "http://127.0.0.1:1/")
    async with connected(teams, moments) as connector:
        failure = await failure_of(connector.send(nobody, HELLO, patience=3))
    assert (failure.error, failure.may_have_acted) == ("connection", False)
    assert moments.slept == [0.5, 1]


async def test_an_answer_that_does_not_come_is_given_up(teams: FakeTeams) -> None:
    held = teams.hold("send")
    async with connected(teams) as connector:
        failure = await failure_of(connector.send(group(teams), HELLO, patience=0.05))
        held.release()
    assert (failure.error, failure.may_have_acted) == ("timeout", True)


ODD: dict[str, tuple[Mapping[str, Any], str]] = {
    "a page that says no": ({"status": 403, "text": "<html>no</html>", "content_type": "text/html"}, "http_403"),
    "a code that is a sentence": ({"status": 400, "text": '{"error": {"code": "so sorry!"}}'}, "http_400"),
    "the older shape": ({"status": 404, "text": '{"code": "ConversationNotFound"}'}, "ConversationNotFound"),
    "no JSON after all": ({"status": 400, "text": "{", "content_type": "application/json"}, "http_400"),
    "very deep": ({"status": 400, "text": "[" * 100_000}, "http_400"),
    "a list": ({"status": 200, "text": "[1]"}, "bad_answer"),
    "a page that says yes": ({"status": 200, "text": "<html>", "content_type": "text/html"}, "bad_answer"),
}


@pytest.mark.parametrize(("kwargs", "word"), ODD.values(), ids=ODD)
async def test_odd_answers_are_failures_like_others(teams: FakeTeams, kwargs: dict[str, Any], word: str) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(**kwargs)

    async with answering(answer) as url, connected(teams) as connector:
        failure = await failure_of(connector.member(TeamsLocation(TENANT, "19:x", "groupChat", url), ANA))
        assert failure.error == word
        opened = await failure_of(connector.open_chat(TeamsLocation(TENANT, "", "personal", url, ANA)))
    assert opened.error == word


async def test_an_endless_answer_is_cut_off(teams: FakeTeams) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 100_000)
        return response

    async with answering(flood) as url, connected(teams) as connector:
        failure = await failure_of(connector.send(TeamsLocation(TENANT, "19:x", "groupChat", url), HELLO))
    assert failure.error == "bad_answer"


def test_more_values_than_can_be_read_in_no_time_are_nothing() -> None:
    """Rule 13: four megabytes of empty lists hold the event loop for half a second."""
    assert HttpAnswer(200, {}, b'{"id": [' + b"[]," * 1_000_000 + b"[]]}").object() == {}
    members = [dict.fromkeys("abcdefghi", "x" * 20) for _ in range(500)]
    assert HttpAnswer(200, {}, json.dumps({"members": members}).encode()).object() == {"members": members}


# -------------------------------------------------------------------------------------------------- limits and order


async def test_no_thread_gets_more_than_seven_messages_a_second(teams: FakeTeams) -> None:
    moments = Moments()
    async with connected(teams, moments) as connector:
        await asyncio.gather(*(connector.send(group(teams), said(number)) for number in range(7)))
        assert moments.slept == []
        await connector.send(group(teams), said(7))
        assert moments.slept == [1]
        await connector.send(group(teams), said(8))
        assert sum(moments.slept) == pytest.approx(2)
    assert texts(teams, teams.group) == [str(number) for number in range(9)]


async def test_threads_do_not_wait_for_each_other(teams: FakeTeams) -> None:
    moments = Moments()
    async with connected(teams, moments) as connector:
        held = teams.hold("send")
        waiting = asyncio.create_task(connector.send(group(teams), HELLO))
        await held.reached()
        assert await connector.member(group(teams), ANA)
        other = asyncio.create_task(connector.send(chat(teams), HELLO))
        await teams.until(lambda: held.waiting == 2)
        held.release()
        await asyncio.gather(waiting, other)


async def test_a_message_that_is_tried_again_is_not_overtaken(teams: FakeTeams) -> None:
    teams.fail("send", status=502, times=2, when=lambda body: body["text"] == "0")
    async with connected(teams) as connector:
        await asyncio.gather(*(connector.send(group(teams), said(number)) for number in range(5)))
    assert texts(teams, teams.group) == ["0", "1", "2", "3", "4"]


def _says(text: str, body: Mapping[str, Any]) -> bool:
    return bool(body["text"] == text)


async def test_a_storm_of_429_loses_nothing_and_keeps_the_order(teams: FakeTeams) -> None:
    for number in ("0", "3", "4", "9"):
        teams.fail("send", status=429, retry_after=2, times=2, when=partial(_says, number))
    moments = Moments()
    async with connected(teams, moments) as connector:
        sending = (connector.send(group(teams), said(number), patience=120) for number in range(20))
        await asyncio.gather(*sending)
    assert texts(teams, teams.group) == [str(number) for number in range(20)]


async def test_who_waits_too_long_in_the_queue_is_told(teams: FakeTeams) -> None:
    held = teams.hold("send")
    async with connected(teams) as connector:
        first = asyncio.create_task(connector.send(group(teams), said(1)))
        await held.reached()
        failure = await failure_of(connector.send(group(teams), said(2), patience=0.05))
        held.release()
        await first
        await connector.send(group(teams), said(3))
    assert (failure.error, failure.permanent, failure.may_have_acted) == ("ratelimited", False, False)
    assert failure.retry_after
    assert texts(teams, teams.group) == ["1", "3"]


async def test_who_gives_up_waiting_does_not_block_the_queue(teams: FakeTeams) -> None:
    held = teams.hold("send")
    async with connected(teams) as connector:
        first, second, third = (asyncio.create_task(connector.send(group(teams), said(n))) for n in range(3))
        await held.reached()
        second.cancel()
        held.release()
        await asyncio.gather(first, third)
    assert texts(teams, teams.group) == ["0", "2"]
