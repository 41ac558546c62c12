"""The fake refuses what Slack refuses, and remembers what Slack remembers. Driven through Slack's own client."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.asking import METADATA, QUIET, client_with, posted, refusal


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return client_with(slack, "xoxb-1")


# ------------------------------------------------------------------------------------------- who is calling


async def test_it_says_whose_bot_is_calling_and_with_which_scopes(client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert (answer["team_id"], answer["user_id"], answer["bot_id"]) == ("T1", "UBOT", "BBOT")
    assert "chat:write" in answer.headers["x-oauth-scopes"]


async def test_it_refuses_tokens_that_are_not_good(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Other", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")
    slack.revoke("xoxb-2")
    assert await refusal(client_with(slack, "xoxb-none").auth_test()) == "invalid_auth"
    assert await refusal(client_with(slack, "").auth_test()) == "not_authed"
    assert await refusal(client_with(slack, "xoxb-2").auth_test()) == "token_revoked"
    assert (
        await refusal(client_with(slack, "xoxb-1").apps_connections_open(app_token="xoxb-1"))
        == "not_allowed_token_type"
    )
    assert await refusal(client_with(slack, "xoxb-1").api_call("chat.dance")) == "unknown_method"


async def test_an_install_is_a_code_for_a_token_once(slack: FakeSlack) -> None:
    code = slack.issue_code("T1", redirect_uri="https://bot/redirect")
    app = {"client_id": "CLIENT", "client_secret": "client-secret", "redirect_uri": "https://bot/redirect"}
    client = client_with(slack, "")
    assert await refusal(client.oauth_v2_access(**{**app, "client_secret": "x"}, code=code)) == "bad_client_secret"
    assert (
        await refusal(client.oauth_v2_access(**{**app, "redirect_uri": "https://x"}, code=code)) == "bad_redirect_uri"
    )
    token = (await client.oauth_v2_access(**app, code=code))["access_token"]
    assert (await client_with(slack, token).auth_test())["team_id"] == "T1"
    assert await refusal(client.oauth_v2_access(**app, code=code)) == "code_already_used"


async def test_a_rotated_token_expires_and_is_refreshed_once(slack: FakeSlack) -> None:
    app = {"client_id": "CLIENT", "client_secret": "client-secret"}
    client = client_with(slack, "")
    first = (await client.oauth_v2_access(**app, code=slack.issue_code("T1", rotating=True))).data
    assert isinstance(first, dict)
    slack.clock.move(first["expires_in"])
    assert await refusal(client_with(slack, first["access_token"]).auth_test()) == "token_expired"
    refresh = {**app, "grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    second = await client.oauth_v2_access(**refresh)
    assert (await client_with(slack, second["access_token"]).auth_test())["ok"]
    assert await refusal(client.oauth_v2_access(**refresh)) == "invalid_refresh_token"


# ------------------------------------------------------------------------------------------- messages


async def test_it_keeps_what_is_posted_and_notes_what_the_product_forbids(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    ts = await posted(client, metadata=METADATA)
    [message] = slack.messages("C1")
    assert (message["ts"], message["text"], message["metadata"], message["streaming"]) == (ts, "hi", METADATA, False)
    assert slack.product_mistakes == []
    await client.chat_postMessage(channel="C1", text="a < b")
    assert len(slack.product_mistakes) == 3  # two unfurls and a raw <


async def test_it_posts_only_where_the_bot_is(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.add_channel("G1", kind="group", members=["U1"])
    slack.add_channel("CX", team="T2", members=["UBOT"])
    slack.archive("D2")
    assert await refusal(client.chat_postMessage(channel="C2", text="x")) == "not_in_channel"
    assert await refusal(client.chat_postMessage(channel="G1", text="x")) == "channel_not_found"
    assert await refusal(client.chat_postMessage(channel="CX", text="x")) == "channel_not_found"
    assert await refusal(client.chat_postMessage(channel="D2", text="x")) == "is_archived"
    assert await refusal(client.chat_postMessage(channel="C1", text="")) == "no_text"
    assert await refusal(client.chat_postMessage(channel="C1", text="x" * 40_001)) == "msg_too_long"


async def test_it_says_what_is_wrong_with_blocks(client: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="x", blocks=[{"type": "section"}])
    assert caught.value.response["error"] == "invalid_blocks"
    assert caught.value.response["response_metadata"]["messages"] == ["/blocks/0: neither text nor fields"]


async def test_an_update_keeps_what_it_does_not_name(slack: FakeSlack, client: AsyncWebClient) -> None:
    ts = await posted(client, blocks=[{"type": "divider"}], metadata=METADATA)
    await client.chat_update(channel="C1", ts=ts, text="new")
    [message] = slack.messages("C1")
    assert (message["text"], message["blocks"][0]["type"], message["metadata"]) == ("new", "divider", METADATA)
    await client.chat_update(channel="C1", ts=ts, text="new", blocks=[], metadata={})
    assert slack.messages("C1")[0]["blocks"] == []
    assert "metadata" not in slack.messages("C1")[0]


async def test_only_its_own_messages_are_changed(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.world.channels["C1"].messages["1.000001"] = {"type": "message", "user": "U1", "text": "x", "ts": "1.000001"}
    assert await refusal(client.chat_update(channel="C1", ts="1.000001", text="y")) == "cant_update_message"
    assert await refusal(client.chat_delete(channel="C1", ts="1.000001")) == "cant_delete_message"
    assert await refusal(client.chat_update(channel="C1", ts="2.000002", text="y")) == "message_not_found"


async def test_a_deleted_message_with_replies_leaves_a_tombstone(slack: FakeSlack, client: AsyncWebClient) -> None:
    ts = await posted(client)
    await posted(client, thread_ts=ts)
    await client.chat_delete(channel="C1", ts=ts)
    assert [m.get("subtype") for m in slack.messages("C1")] == ["tombstone", None]


async def test_an_ephemeral_needs_somebody_who_is_there(slack: FakeSlack, client: AsyncWebClient) -> None:
    await client.chat_postEphemeral(channel="C1", user="U2", text="only you", thread_ts="1.1")
    assert [(e["channel"], e["thread_ts"], e["text"]) for e in slack.ephemerals("U2")] == [("C1", "1.1", "only you")]
    assert slack.ephemerals("U1") == slack.messages("C1") == []
    assert await refusal(client.chat_postEphemeral(channel="D1", user="U2", text="x")) == "user_not_in_channel"


async def test_history_is_paged_and_shows_metadata_to_those_who_ask(client: AsyncWebClient) -> None:
    sent = [await posted(client, str(n), metadata=METADATA) for n in range(5)]
    await posted(client, "a reply", thread_ts=sent[0])
    first = await client.conversations_history(channel="C1", limit=3)
    rest = await client.conversations_history(channel="C1", limit=3, cursor=first["response_metadata"]["next_cursor"])
    assert [m["ts"] for m in [*first["messages"], *rest["messages"]]] == sent[::-1]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert not any("metadata" in m for m in first["messages"])
    asked = await client.conversations_history(
        channel="C1", oldest=sent[1], latest=sent[3], inclusive=True, include_all_metadata=True
    )
    assert [(m["ts"], m["metadata"]) for m in asked["messages"]] == [
        (ts, METADATA) for ts in (sent[3], sent[2], sent[1])
    ]


async def test_every_page_of_replies_begins_with_the_parent(client: AsyncWebClient) -> None:
    parent = await posted(client)
    sent = [await posted(client, str(n), thread_ts=parent) for n in range(3)]
    first = await client.conversations_replies(channel="C1", ts=parent, limit=2)
    rest = await client.conversations_replies(
        channel="C1", ts=parent, limit=2, cursor=first["response_metadata"]["next_cursor"]
    )
    assert [m["ts"] for m in first["messages"]] == [parent, *sent[:2]]
    assert [m["ts"] for m in rest["messages"]] == [parent, sent[2]]
    assert await refusal(client.conversations_replies(channel="C1", ts="1.1")) == "thread_not_found"
    assert await refusal(client.conversations_history(channel="C2")) == "not_in_channel"


async def test_direct_messages_are_opened_once(client: AsyncWebClient) -> None:
    opened = [(await client.conversations_open(users=["U3"]))["channel"]["id"] for _ in range(2)]
    assert opened == ["D3", "D3"]
    assert (await client.chat_postMessage(channel="U3", text="x", **QUIET))["channel"] == "D3"
    assert await refusal(client.conversations_open(users=["U9"])) == "user_not_found"


# ------------------------------------------------------------------------------------------- what goes wrong


async def test_a_failure_does_nothing_and_is_over_after_so_many_times(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", status=429, retry_after=1)
    slack.fail("chat.postMessage", status=503)
    slack.fail("chat.postMessage", error="fatal_error", when=lambda arguments: arguments["channel"] == "C1")
    with pytest.raises(SlackApiError) as caught:
        await posted(client)
    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "1")
    with pytest.raises(SlackApiError) as caught:
        await posted(client)
    assert caught.value.response.status_code == 503
    await client.chat_postMessage(channel="D1", text="not this one", **QUIET)
    assert await refusal(posted(client)) == "fatal_error"
    assert slack.messages("C1") == []
    await posted(client)
    assert len(slack.calls_of("chat.postMessage")) == 5


async def test_a_dropped_call_has_acted(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.fail("chat.postMessage", drop=True, times=math.inf)
    for _ in range(2):
        with pytest.raises(aiohttp.ClientError):
            await posted(client)
    assert len(slack.messages("C1")) == 2


async def test_a_held_call_waits_for_its_release(slack: FakeSlack, client: AsyncWebClient) -> None:
    held = slack.hold("users.info")
    asking = asyncio.create_task(client.users_info(user="U1"))
    await held.reached()
    assert not asking.done()
    held.release()
    assert (await asking)["user"]["profile"]["display_name"] == "Ana"


async def test_arguments_arrive_in_forms_too(slack: FakeSlack, client: AsyncWebClient) -> None:
    await client.api_call(
        "chat.postMessage",
        data={"channel": "C1", "text": "x", "blocks": '[{"type": "divider"}]', **dict.fromkeys(QUIET, "false")},
    )
    assert slack.messages("C1")[0]["blocks"][0]["type"] == "divider"
    assert slack.product_mistakes == []
    assert (
        await refusal(client.api_call("chat.postMessage", data={"channel": "C1", "blocks": "["}))
        == "invalid_blocks_format"
    )
