"""The fake's streams, modals, home tabs and statuses. Driven through Slack's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.asking import METADATA, Json, client_with, posted, refusal

STREAM: Json = {"channel": "C1", "recipient_team_id": "T1", "recipient_user_id": "U1"}
NOTE: Json = {"type": "modal", "title": {"type": "plain_text", "text": "Note"}, "blocks": []}


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return client_with(slack, "xoxb-1")


# ------------------------------------------------------------------------------------------- streams


async def test_a_stream_grows_and_ends_with_blocks_and_metadata(slack: FakeSlack, client: AsyncWebClient) -> None:
    stream = await client.chat_stream(thread_ts=await posted(client), buffer_size=1, **STREAM)
    await stream.append(markdown_text="Hello ")
    assert (slack.messages("C1")[-1]["text"], slack.messages("C1")[-1]["streaming"]) == ("Hello ", True)
    ts = str(stream.ts)
    assert await refusal(client.chat_update(channel="C1", ts=ts, text="x")) == "streaming_state_conflict"
    task = {"type": "task_update", "id": "c1", "title": "calendar", "status": "in_progress"}
    await stream.append(chunks=[{**task, "details": "one "}])
    await stream.append(chunks=[{**task, "status": "complete", "details": "two"}])
    await stream.stop(markdown_text="world", blocks=[{"type": "divider"}], metadata=METADATA)
    message = slack.messages("C1")[-1]
    assert (message["text"], message["streaming"], message["metadata"]) == ("Hello world", False, METADATA)
    assert [b["type"] for b in message["blocks"]] == ["markdown", "task_card", "markdown", "divider"]
    assert (message["blocks"][1]["status"], message["blocks"][1]["details"]) == ("complete", "one two")
    assert slack.product_mistakes == []


async def test_a_stream_needs_a_thread_and_in_channels_a_recipient(client: AsyncWebClient) -> None:
    ts = await posted(client)
    start = "chat.startStream"
    assert await refusal(client.api_call(start, json=STREAM)) == "invalid_arguments"
    for missing in ("recipient_team_id", "recipient_user_id"):
        told = {name: value for name, value in {**STREAM, "thread_ts": ts}.items() if name != missing}
        assert await refusal(client.api_call(start, json=told)) == f"missing_{missing}"
    assert (await client.api_call(start, json={"channel": "D1", "thread_ts": ts}))["ok"]


async def test_a_stream_that_has_ended_takes_no_more(slack: FakeSlack, client: AsyncWebClient) -> None:
    place: Json = {**STREAM, "thread_ts": await posted(client)}
    ts = (await client.chat_startStream(**place, markdown_text="a"))["ts"]
    bad = {"type": "task_update", "id": "c1", "title": "x", "status": "done"}
    assert await refusal(client.chat_appendStream(channel="C1", ts=ts, chunks=[bad])) == "invalid_chunks"
    slack.end_stream(ts)
    over = "message_not_in_streaming_state"
    assert await refusal(client.chat_appendStream(channel="C1", ts=ts, markdown_text="b")) == over
    assert await refusal(client.chat_stopStream(channel="C1", ts=ts)) == over
    await client.chat_update(channel="C1", ts=ts, text="whole")
    assert slack.messages("C1")[-1]["text"] == "whole"


# ------------------------------------------------------------------------------------------- views


async def test_a_trigger_opens_one_modal_within_three_seconds(slack: FakeSlack, client: AsyncWebClient) -> None:
    trigger, late = slack.issue_trigger("U1"), slack.issue_trigger("U1")
    await client.views_open(trigger_id=trigger, view=NOTE)
    assert await refusal(client.views_open(trigger_id=trigger, view=NOTE)) == "exchanged_trigger_id"
    slack.clock.move(4)
    assert await refusal(client.views_open(trigger_id=late, view=NOTE)) == "expired_trigger_id"
    assert await refusal(client.views_open(trigger_id="1.2", view=NOTE)) == "invalid_trigger_id"
    assert len(slack.views("U1")) == 1


async def test_a_modal_is_updated_only_as_it_was_seen(slack: FakeSlack, client: AsyncWebClient) -> None:
    view: Any = (await client.views_open(trigger_id=slack.issue_trigger("U1"), view=NOTE))["view"]
    new = {**NOTE, "title": {"type": "plain_text", "text": "New"}}
    await client.views_update(view_id=view["id"], hash=view["hash"], view=new)
    assert slack.views("U1")[0]["title"]["text"] == "New"
    assert await refusal(client.views_update(view_id=view["id"], hash=view["hash"], view=NOTE)) == "hash_conflict"
    assert await refusal(client.views_update(view_id="V9", view=NOTE)) == "not_found"
    assert await refusal(client.views_update(view_id=view["id"], view={**NOTE, "title": None})) == "invalid_arguments"


async def test_three_modals_lie_on_top_of_each_other(slack: FakeSlack, client: AsyncWebClient) -> None:
    opened: Any = (await client.views_open(trigger_id=slack.issue_trigger("U1"), view=NOTE))["view"]
    for _ in range(2):
        await client.views_push(trigger_id=slack.issue_trigger("U1", view_id=opened["id"]), view=NOTE)
    assert slack.views("U1")[2]["root_view_id"] == opened["id"]
    assert await refusal(client.views_push(trigger_id=slack.issue_trigger("U1"), view=NOTE)) == "push_limit_reached"


async def test_everybody_has_a_home_of_their_own(slack: FakeSlack, client: AsyncWebClient) -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    await client.views_publish(user_id="U1", view=home)
    shown = slack.home("U1")
    assert shown is not None and shown["blocks"][0]["block_id"]
    assert slack.home("U2") is None
    assert await refusal(client.views_publish(user_id="U1", hash="old", view=home)) == "hash_conflict"


async def test_what_is_set_beside_a_thread_is_remembered(slack: FakeSlack, client: AsyncWebClient) -> None:
    place: Json = {"channel_id": "D1", "thread_ts": "1.1"}
    await client.assistant_threads_setStatus(**place, status="is thinking…")
    await client.assistant_threads_setStatus(**place, status="")
    await client.assistant_threads_setSuggestedPrompts(**place, prompts=[{"title": "Ask", "message": "What is on?"}])
    assert slack.statuses("D1", "1.1") == ["is thinking…", ""]
    assert slack.prompts("D1", "1.1")[0]["title"] == "Ask"
