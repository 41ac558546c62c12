"""The fake refuses what Teams refuses, and remembers what Teams remembers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from urllib.parse import quote

import aiohttp
import jwt
import pytest

from tests.fakes.teams.server import ANA, BEN, GUS, IDENTITY_SECRET, OTHER_TENANT, FakeTeams, fake_teams
from tests.fakes.teams.tokens import ISSUER
from tests.teams.asking import Asking, asking, message, token_for, with_card

PICTURE = {"type": "AdaptiveCard", "version": "1.5", "body": [{"type": "Image", "url": "https://example.com/x.png"}]}


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@pytest.fixture
async def bot(teams: FakeTeams) -> AsyncIterator[Asking]:
    async with asking(teams) as one:
        yield one


# ------------------------------------------------------------------------------------------- tokens


async def test_a_token_is_given_for_the_right_secret_only(teams: FakeTeams) -> None:
    async with aiohttp.ClientSession() as session:
        status, body = await token_for(teams, session, client_secret="wrong")
        assert (status, body["error"]) == (401, "invalid_client")
        assert body["error_description"].startswith("AADSTS7000215")
        assert (await token_for(teams, session, tenant=OTHER_TENANT))[1]["error_codes"] == [90002]
        assert (await token_for(teams, session, client_id="x"))[1]["error_codes"] == [700016]
        assert (await token_for(teams, session, scope="x"))[1]["error"] == "invalid_scope"
        assert (await token_for(teams, session))[1]["expires_in"] == 3600
    assert len(teams.calls_of("token")) == 5


async def test_only_tokens_that_were_given_and_are_good_are_taken(teams: FakeTeams, bot: Asking) -> None:
    path = f"/{quote(teams.group, safe='')}/pagedmembers"
    assert (await bot.ask("GET", path))[0] == 200
    assert (await bot.ask("GET", path, token="made-up"))[1]["error"]["code"] == "Unauthorized"
    assert (await bot.ask("GET", path, token=""))[0] == 401
    teams.clock.move(3600)
    assert (await bot.ask("GET", path))[0] == 401


async def test_a_managed_identity_gets_a_token_from_its_own_endpoint(teams: FakeTeams) -> None:
    query = {"api-version": "2019-08-01", "resource": ISSUER, "client_id": teams.app_id}
    async with aiohttp.ClientSession() as session:
        async with session.get(teams.identity_endpoint, params=query) as response:
            assert response.status == 401
        headers = {"X-IDENTITY-HEADER": IDENTITY_SECRET}
        async with session.get(teams.identity_endpoint, params=query, headers=headers) as response:
            assert (await response.json())["access_token"].startswith("bot-token-")


async def test_the_published_keys_fit_the_tokens_that_it_issues(teams: FakeTeams) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(teams.metadata_url) as response:
            metadata = await response.json()
        async with session.get(metadata["jwks_uri"]) as response:
            keys = {key["kid"]: key for key in (await response.json())["keys"]}
    token = teams.issue_token()
    kid = jwt.get_unverified_header(token)["kid"]
    claims = jwt.decode(
        token, jwt.PyJWK(keys[kid]).key, algorithms=["RS256"], audience=teams.app_id, issuer=metadata["issuer"]
    )
    assert claims["serviceurl"] == teams.service_url
    assert "msteams" in keys[kid]["endorsements"]
    assert "msteams" not in keys["unendorsed"]["endorsements"]
    assert "stranger" not in keys
    assert [call.verb for call in teams.login_calls] == ["metadata", "keys"]


async def test_bad_tokens_are_bad_in_the_way_that_was_asked_for(teams: FakeTeams) -> None:
    good = jwt.PyJWK(teams.issuer.keys()["keys"][0]).key

    def read(token: str) -> object:
        return jwt.decode(token, good, algorithms=["RS256"], audience=teams.app_id, issuer=ISSUER)

    assert read(teams.issue_token())
    with pytest.raises(jwt.ExpiredSignatureError):
        read(teams.issue_token(exp=1))
    with pytest.raises(jwt.ImmatureSignatureError):
        read(teams.issue_token(nbf=int(teams.clock.now()) + 900))
    with pytest.raises(jwt.InvalidAudienceError):
        read(teams.issue_token(aud="somebody else"))
    with pytest.raises(jwt.InvalidIssuerError):
        read(teams.issue_token(iss="https://example.com"))
    for key in ("stranger", "unendorsed"):
        with pytest.raises(jwt.InvalidSignatureError):
            read(teams.issue_token(key=key))
    for alg in ("HS256", "none", "RS512"):
        with pytest.raises(jwt.InvalidAlgorithmError):
            read(teams.issue_token(alg=alg))
    assert "kid" not in jwt.get_unverified_header(teams.issue_token(kid=None))
    assert "serviceurl" not in jwt.decode(teams.issue_token(serviceurl=None), options={"verify_signature": False})


async def test_a_rotated_key_has_another_name_and_the_one_before_stays(teams: FakeTeams) -> None:
    before = jwt.get_unverified_header(teams.issue_token())["kid"]
    teams.rotate_keys()
    after = jwt.get_unverified_header(teams.issue_token())["kid"]
    assert before != after
    assert {before, after} <= {key["kid"] for key in teams.issuer.keys()["keys"]}
    assert jwt.get_unverified_header(teams.issue_token(key="previous"))["kid"] == before


# ------------------------------------------------------------------------------------------- messages


async def test_it_keeps_what_is_posted_changed_and_deleted(teams: FakeTeams, bot: Asking) -> None:
    sent = await bot.sent(teams.group, "hello")
    path = f"/{quote(teams.group, safe='')}/activities/{sent}"
    assert await bot.ask("PUT", path, message("hello again")) == (200, {"id": sent})
    [kept] = teams.posts(teams.group)
    assert (kept["id"], kept["text"], kept["edited"]) == (sent, "hello again", True)
    assert (await bot.ask("DELETE", path))[0] == 200
    assert teams.posts(teams.group) == []
    assert teams.messages(teams.group)[0]["deleted"]
    status, body = await bot.ask("PUT", path, message("too late"))
    assert (status, body["error"]["code"]) == (404, "ActivityNotFoundInConversation")
    assert teams.product_mistakes == []


async def test_a_post_in_a_channel_begins_a_thread_and_a_thread_has_replies(teams: FakeTeams, bot: Asking) -> None:
    first = await bot.sent(teams.channel, "first")
    thread = f"{teams.channel};messageid={first}"
    reply = await bot.sent(thread, "reply")
    await bot.sent(teams.channel, "second")
    assert [post["id"] for post in teams.posts(thread)] == [first, reply]
    assert len(teams.posts(teams.channel)) == 3
    assert await bot.refusal(f"{teams.channel};messageid=1", message("x")) == "404 ConversationNotFound"


async def test_it_posts_only_where_the_bot_is(teams: FakeTeams, bot: Asking) -> None:
    teams.add_user("e0000000-0000-4000-8000-00000000000e", has_app=False)
    teams.add_channel("19:other@thread.tacv2", has_bot=False)
    elsewhere = teams.personal("e0000000-0000-4000-8000-00000000000e")
    assert await bot.refusal("19:nowhere@thread.tacv2", message("x")) == "404 ConversationNotFound"
    assert await bot.refusal("19:other@thread.tacv2", message("x")) == "403 BotNotInConversationRoster"
    assert await bot.refusal(elsewhere, message("x")) == "403 BotNotInConversationRoster"


async def test_it_refuses_what_it_cannot_show_and_says_so(teams: FakeTeams, bot: Asking) -> None:
    assert await bot.refusal(teams.group, {"text": "x"}) == "400 BadSyntax"
    assert await bot.refusal(teams.group, message("")) == "400 BadSyntax"
    assert await bot.refusal(teams.group, with_card(PICTURE)) == "400 BadSyntax"
    assert await bot.refusal(teams.group, message("x" * 102_400)) == "413 MessageSizeTooBig"
    assert any("Image" in mistake for mistake in teams.product_mistakes)
    assert teams.posts(teams.group) == []


async def test_a_targeted_message_is_for_one_member_only(teams: FakeTeams, bot: Asking) -> None:
    only = "?isTargetedActivity=true"
    to_ana = message("psst", recipient={"id": teams.address(ANA)})
    assert await bot.refusal(teams.group, message("psst"), only) == "400 BadArgument"
    assert await bot.refusal(teams.personal(ANA), to_ana, only) == "400 BadArgument"
    status, body = await bot.send(teams.group, to_ana, only)
    [kept] = teams.posts(teams.group)
    assert (status, kept["only_for"]) == (201, teams.address(ANA))
    path = f"/{quote(teams.group, safe='')}/activities/{body['id']}"
    assert (await bot.ask("DELETE", path))[0] == 404
    assert (await bot.ask("PUT", path, to_ana, query=only))[0] == 400
    assert (await bot.ask("PUT", path, message("psst!"), query=only))[0] == 200
    assert (await bot.ask("DELETE", path, query=only))[0] == 200
    teams.targeted = False
    assert await bot.refusal(teams.group, to_ana, only) == "400 BadArgument"


# ------------------------------------------------------------------------------------------- conversations, members


async def test_a_chat_is_opened_with_those_who_have_the_app(teams: FakeTeams, bot: Asking) -> None:
    teams.add_user("e0000000-0000-4000-8000-00000000000e", has_app=False)
    ana = {"members": [{"id": ANA}], "tenantId": teams.tenant}
    assert await bot.ask("POST", "", ana) == (201, {"id": teams.personal(ANA)})
    assert (await bot.ask("POST", "", {**ana, "members": [{"id": teams.address(ANA)}]}))[0] == 201
    without = {**ana, "members": [{"id": "e0000000-0000-4000-8000-00000000000e"}]}
    status, body = await bot.ask("POST", "", without)
    assert (status, body["error"]["code"]) == (403, "ForbiddenOperationException")
    assert (await bot.ask("POST", "", {"members": [{"id": ANA}]}))[0] == 400
    assert (await bot.ask("POST", "", {**ana, "members": [{"id": "29:nobody"}]}))[0] == 400
    assert [call.verb for call in teams.calls] == ["open_chat"] * 5


async def test_a_thread_is_begun_with_a_message(teams: FakeTeams, bot: Asking) -> None:
    begun = {"isGroup": True, "channelData": {"channel": {"id": teams.channel}}, "activity": message("hello")}
    status, body = await bot.ask("POST", "", begun)
    assert (status, body["id"]) == (201, f"{teams.channel};messageid={body['activityId']}")
    assert teams.posts(body["id"])[0]["text"] == "hello"


async def test_members_are_found_by_either_id_and_told_in_pages(teams: FakeTeams, bot: Asking) -> None:
    where = f"/{quote(teams.group, safe='')}"
    for name in (ANA, teams.address(ANA)):
        status, ana = await bot.ask("GET", f"{where}/members/{name}")
        assert (status, ana["aadObjectId"], ana["id"]) == (200, ANA, teams.address(ANA))
    gus = (await bot.ask("GET", f"{where}/members/{GUS}"))[1]
    assert (gus["userRole"], gus["tenantId"]) == ("guest", OTHER_TENANT)
    assert "#EXT#" in gus["userPrincipalName"]
    status, body = await bot.ask("GET", f"/{quote(teams.personal(ANA), safe='')}/members/{BEN}")
    assert (status, body["error"]["code"]) == (404, "MemberNotFoundInConversation")
    crowd = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(60)]
    for user in crowd:
        teams.add_user(user)
    teams.add_group("19:crowd@thread.v2", members=crowd)
    pages = f"/{quote('19:crowd@thread.v2', safe='')}/pagedmembers?pageSize=1"
    first = (await bot.ask("GET", pages))[1]
    second = (await bot.ask("GET", pages, query=f"&continuationToken={first['continuationToken']}"))[1]
    assert (len(first["members"]), len(second["members"])) == (50, 10)
    assert "continuationToken" not in second


# ------------------------------------------------------------------------------------------- interfering


async def test_calls_fail_as_often_as_was_asked_for(teams: FakeTeams, bot: Asking) -> None:
    teams.fail("send", status=429, retry_after=1, times=2, when=lambda body: body["text"] == "slowly")
    assert await bot.refusal(teams.group, message("slowly")) == "429 TooManyRequests"
    await bot.sent(teams.group, "other")
    assert await bot.refusal(teams.group, message("slowly")) == "429 TooManyRequests"
    await bot.sent(teams.group, "slowly")
    teams.fail("send", code="BotNotInConversationRoster", times=math.inf)
    assert await bot.refusal(teams.group, message("x")) == "403 BotNotInConversationRoster"
    assert len(teams.calls_of("send")) == len(teams.calls_of("POST")) == 5


async def test_a_dropped_call_has_been_done(teams: FakeTeams, bot: Asking) -> None:
    teams.fail("send", drop=True)
    with pytest.raises(aiohttp.ClientError):
        await bot.sent(teams.group, "done all the same")
    assert teams.posts(teams.group)[0]["text"] == "done all the same"


async def test_a_held_call_waits_until_it_is_released(teams: FakeTeams, bot: Asking) -> None:
    held = teams.hold("send")
    sending = asyncio.create_task(bot.sent(teams.group, "at last"))
    await held.reached()
    assert teams.posts(teams.group) == []
    held.release()
    await sending
    assert teams.posts(teams.group)[0]["text"] == "at last"


async def test_a_conversation_takes_no_more_than_its_limit(teams: FakeTeams, bot: Asking) -> None:
    teams.limit(2, 30.0)
    await bot.sent(teams.group, "one")
    await bot.sent(teams.group, "two")
    assert await bot.refusal(teams.group, message("three")) == "429 TooManyRequests"
    teams.clock.move(30)
    await bot.sent(teams.group, "three")
