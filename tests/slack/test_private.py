"""What one person alone may see, by the first way that is open."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.posting import SlackPrivateMessages
from adapters.slack.render.posts import note
from tests.fakes.slack.response_urls import USES, issue
from tests.slack.stage import Stage, staged

SECRET = "only for you: very-secret"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as made:
        yield made


@pytest.fixture
def private(stage: Stage) -> SlackPrivateMessages:
    return SlackPrivateMessages(stage.api)


def location(stage: Stage) -> SlackLocation:
    return SlackLocation("T1", "C1", stage.thread_ts)


async def test_a_click_is_answered_where_slack_wants_the_answer(stage: Stage, private: SlackPrivateMessages) -> None:
    url = issue(stage.slack.world, "T1", "U1", "C1", stage.thread_ts, stage.thread_ts)
    assert await private.tell("T1", "U1", location(stage), note(SECRET), url)
    [seen] = stage.slack.ephemerals("U1")
    assert SECRET in seen["text"]
    assert stage.methods() == ["response_url"]
    assert stage.answers() == []


async def test_when_that_is_used_up_an_ephemeral_message_is_posted(stage: Stage, private: SlackPrivateMessages) -> None:
    url = issue(stage.slack.world, "T1", "U1", "C1")
    for _ in range(USES + 1):
        assert await private.tell("T1", "U1", location(stage), note(SECRET), url)
    assert len(stage.slack.ephemerals("U1")) == USES + 1
    [call] = stage.slack.calls_of("chat.postEphemeral")
    assert call.arguments["thread_ts"] == stage.thread_ts


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/gone", "no address at all"])
async def test_an_address_that_leads_nowhere_is_no_obstacle(
    stage: Stage, private: SlackPrivateMessages, url: str
) -> None:
    assert await private.tell("T1", "U1", location(stage), note(SECRET), url)
    assert len(stage.slack.ephemerals("U1")) == 1


async def test_somebody_who_is_not_in_the_channel_gets_a_direct_message(
    stage: Stage, private: SlackPrivateMessages
) -> None:
    stage.slack.world.channels["C1"].members.discard("U1")
    assert await private.tell("T1", "U1", location(stage), note(SECRET))
    [message] = stage.answers("D1")
    assert SECRET in message["text"]
    assert stage.answers() == []


async def test_from_the_app_home_there_is_only_the_direct_message(stage: Stage, private: SlackPrivateMessages) -> None:
    assert await private.tell("T1", "U1", SlackLocation("T1", ""), note(SECRET))
    assert len(stage.answers("D1")) == 1
    assert "chat.postEphemeral" not in stage.methods()


async def test_somebody_who_cannot_be_told_is_logged_without_what_they_were_to_be_told(
    stage: Stage, private: SlackPrivateMessages
) -> None:
    stage.slack.fail("chat.postEphemeral", error="channel_not_found", times=math.inf)
    stage.slack.fail("conversations.open", error="user_not_found", times=math.inf)
    url = f"{stage.slack.world.base_url}/response/very-secret"
    with capture_logs() as logs:
        assert not await private.tell("T1", "U1", location(stage), note(SECRET), url)
    assert "slack_person_not_told" in [entry["event"] for entry in logs]
    assert "very-secret" not in str(logs)
