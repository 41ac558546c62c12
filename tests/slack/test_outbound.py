"""Posts in Slack: shown once, in order, updated in place; what is for one person is seen by them alone."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from adapters.slack.ids import SlackLocation, named_place, place_of
from adapters.slack.outbound.posting import mark
from bot.domain import Notice, Said, Unknown
from bot.platform import PostFailed
from tests.slack.stage import (
    ANA,
    APPROVAL,
    BEN,
    LINK,
    LONG,
    NEVER,
    REJECTED,
    SIGN_IN,
    Stage,
    numbers,
    shown_text,
    staged,
)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged(NEVER) as made:
        yield made


# ------------------------------------------------------------------------------------------- sending


async def test_a_post_is_one_marked_message_in_its_thread(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.post("card:a1", APPROVAL))
    [message] = stage.answers()
    assert reference == {"team": "T1", "channel": "C1", "parts": [message["ts"]]}
    assert message["thread_ts"] == stage.thread_ts
    assert message["metadata"] == mark("card:a1", 0)
    [call] = stage.slack.calls_of("chat.postMessage")
    assert (call.arguments["unfurl_links"], call.arguments["unfurl_media"]) == (False, False)
    assert not {"parse", "link_names"} & call.arguments.keys()


async def test_in_a_direct_message_a_post_is_in_no_thread(stage: Stage) -> None:
    await stage.outbound.send(stage.notice("n1", "Hello.", place=place_of(SlackLocation("T1", "D1"), direct=True)))
    assert "thread_ts" not in stage.answers("D1")[0]


async def test_a_long_answer_is_several_messages_in_order(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.said("d.1", LONG))
    messages = stage.answers()
    assert len(messages) > 1
    assert reference["parts"] == [message["ts"] for message in messages]
    assert numbers(messages) == list(range(len(messages)))


async def test_a_refusal_for_good_is_permanent(stage: Stage) -> None:
    place = place_of(SlackLocation("T1", "C9", stage.thread_ts), direct=False)
    with pytest.raises(PostFailed) as caught:
        await stage.outbound.send(stage.notice("n1", "Hello.", place=place))
    assert caught.value.permanent
    assert "channel_not_found" in str(caught.value)


async def test_a_short_storm_of_429_is_sat_out(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", status=429, retry_after=0.1, times=5)
    await stage.outbound.send(stage.notice("n1", "Hello."))
    assert len(stage.answers()) == 1


async def test_a_long_pause_is_left_to_the_outbox(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", status=429, retry_after=120)
    with pytest.raises(PostFailed) as caught:
        await stage.outbound.send(stage.notice("n1", "Hello."))
    assert not caught.value.permanent
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 60


async def test_blocks_that_slack_refuses_are_sent_as_text(stage: Stage) -> None:
    stage.slack.fail("chat.postMessage", error="invalid_blocks")
    await stage.outbound.send(stage.notice("n1", "Mind the gap & <!channel>."))
    [message] = stage.answers()
    assert not message.get("blocks")
    assert "Mind the gap &amp; &lt;!channel&gt;." in message["text"]


async def test_blocks_that_slack_refuses_do_not_leave_the_old_ones_behind(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.notice("n1", "Mind the gap."))
    stage.slack.fail("chat.update", error="invalid_blocks")
    await stage.outbound.update(stage.notice("n1", "Mind the step."), reference)
    [message] = stage.answers()
    assert not message["blocks"]
    assert "Mind the step." in message["text"]


# ------------------------------------------------------------------------------------------- updating


async def test_an_update_replaces_the_message_in_place(stage: Stage) -> None:
    reference = await stage.outbound.send(stage.post("card:a1", APPROVAL))
    assert await stage.outbound.update(stage.post("card:a1", REJECTED), reference) == reference
    [message] = stage.answers()
    assert "Rejected" in shown_text(message)
    assert message["metadata"] == mark("card:a1", 0)


async def test_an_update_posts_missing_parts_and_deletes_surplus_ones(stage: Stage) -> None:
    short = await stage.outbound.send(stage.said("d.1", "short"))
    long = await stage.outbound.update(stage.said("d.1", LONG), short)
    messages = stage.answers()
    assert long["parts"] == [message["ts"] for message in messages]
    assert long["parts"][0] == short["parts"][0]
    assert numbers(messages) == list(range(len(messages)))
    assert await stage.outbound.update(stage.said("d.1", "short"), long) == short
    assert [message["ts"] for message in stage.answers()] == short["parts"]


@pytest.mark.parametrize(("content", "shown"), [(APPROVAL, 1), (REJECTED, 0), (Notice("Hello."), 0)])
async def test_a_deleted_message_comes_back_only_if_people_have_to_act_on_it(
    stage: Stage, content: Any, shown: int
) -> None:
    reference = await stage.outbound.send(stage.post("p1", APPROVAL))
    del stage.slack.world.channels["C1"].messages[reference["parts"][0]]
    again = await stage.outbound.update(stage.post("p1", content), reference)
    assert [message["ts"] for message in stage.answers()] == again["parts"][:shown]


# ------------------------------------------------------------------------------------------- for one person only


async def test_what_is_for_one_person_is_ephemeral(stage: Stage) -> None:
    post = stage.notice("n1", "Please wait.", only_for=BEN)
    reference = await stage.outbound.send(post)
    assert reference == {"ephemeral": True}
    [seen] = stage.slack.ephemerals("U2")
    assert (seen["channel"], seen["thread_ts"]) == ("C1", stage.thread_ts)
    assert stage.answers() == []
    assert await stage.outbound.update(post, reference) == reference
    assert len(stage.slack.ephemerals("U2")) == 1


async def test_what_cannot_be_ephemeral_is_a_direct_message(stage: Stage) -> None:
    stage.slack.world.channels["C1"].members.discard("U2")
    post = stage.notice("n1", "Please wait.", only_for=BEN)
    reference = await stage.outbound.send(post)
    [message] = stage.answers("D2")
    assert reference == {"team": "T1", "channel": "D2", "parts": [message["ts"]]}
    assert "thread_ts" not in message
    await stage.outbound.update(stage.notice("n1", "Go on.", only_for=BEN), reference)
    assert "Go on." in shown_text(stage.answers("D2")[0])
    assert stage.answers() == []


async def test_what_is_asked_of_a_person_outside_of_conversations_is_in_their_direct_messages_and_stays(
    stage: Stage,
) -> None:
    """The calls of their other agents have no conversation: cards, notices and links go to them."""
    direct = named_place(ANA)
    stage.links[f"s1 {ANA}"] = LINK
    card = await stage.outbound.send(stage.post("approval:a1", replace(APPROVAL, client="claude-code"), direct))
    await stage.outbound.send(stage.post("sign_in:s1", SIGN_IN, direct, only_for=None))
    await stage.outbound.send(stage.post("n1", Notice("It went wrong."), direct, only_for=ANA))
    await stage.outbound.update(stage.post("approval:a1", replace(REJECTED, client="claude-code"), direct), card)
    asked, wanted, told = [shown_text(message) for message in stage.answers("D1")]
    assert "Rejected" in asked and "Rejected by Ana: not now" in asked
    assert "Waiting for Ana to sign in" in wanted and "It went wrong." in told
    assert places_of_the_link(stage) == [("chat.postEphemeral", "U1")]


# ------------------------------------------------------------------------------------------- sign-ins


def places_of_the_link(stage: Stage) -> list[tuple[str, str]]:
    """Method and reader (or channel) of every call that held the link."""
    return [
        (call.method, call.arguments.get("user") or call.arguments["channel"])
        for call in stage.slack.calls
        if LINK in str(call.arguments)
    ]


async def test_a_sign_in_shows_its_link_to_its_owner_only(stage: Stage) -> None:
    stage.links[f"s1 {ANA}"] = LINK
    with capture_logs() as logs:
        await stage.outbound.send(stage.post("sign-in:s1", SIGN_IN))
    assert places_of_the_link(stage) == [("chat.postEphemeral", "U1")]
    assert stage.slack.ephemerals("U1")[0]["thread_ts"] == stage.thread_ts
    assert len(stage.answers()) == 1
    assert "very-secret" not in str(logs)


async def test_an_owner_who_is_elsewhere_gets_the_link_in_a_direct_message(stage: Stage) -> None:
    stage.slack.world.channels["C1"].members.discard("U1")
    stage.links[f"s1 {ANA}"] = LINK
    await stage.outbound.send(stage.post("sign-in:s1", SIGN_IN))
    assert places_of_the_link(stage) == [("chat.postEphemeral", "U1"), ("chat.postMessage", "D1")]
    assert len(stage.answers("D1")) == 1


async def test_a_link_that_cannot_be_shown_does_not_fail_the_card(stage: Stage) -> None:
    stage.links[f"s1 {ANA}"] = LINK
    stage.slack.fail("chat.postEphemeral", error="user_not_in_channel", times=math.inf)
    stage.slack.fail("conversations.open", error="user_disabled", times=math.inf)
    with capture_logs() as logs:
        reference = await stage.outbound.send(stage.post("sign-in:s1", SIGN_IN))
    assert reference["parts"] == [stage.answers()[0]["ts"]]
    assert any(entry["event"] == "slack_person_not_told" for entry in logs)
    assert "very-secret" not in str(logs)


@pytest.mark.parametrize("answer", [Unknown("There is no such sign-in."), RuntimeError(LINK)])
async def test_a_link_that_is_not_there_does_not_fail_the_card(stage: Stage, answer: Unknown | Exception) -> None:
    stage.links[f"s1 {ANA}"] = answer
    with capture_logs() as logs:
        await stage.outbound.send(stage.post("sign-in:s1", SIGN_IN))
    assert len(stage.answers()) == 1
    assert places_of_the_link(stage) == []
    assert "very-secret" not in str(logs)


async def test_a_sign_in_that_is_over_asks_for_no_link(stage: Stage) -> None:
    stage.links[f"s1 {ANA}"] = LINK
    await stage.outbound.send(stage.post("sign-in:s1", replace(SIGN_IN, status="done")))
    assert stage.methods() == ["chat.postMessage"]


async def test_posts_arrive_in_the_order_they_were_sent(stage: Stage) -> None:
    for number in range(4):
        await stage.outbound.send(stage.notice(f"n{number}", f"number {number}"))
    assert [f"number {n}" in shown_text(message) for n, message in enumerate(stage.answers())] == [True] * 4


async def test_an_answer_that_no_stream_could_hold_is_not_looked_through(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: a megabyte that a model writes took half a second, for a stream that never was."""

    def streamable(text: str) -> str:
        raise AssertionError(f"{len(text)} characters")

    monkeypatch.setattr("adapters.slack.outbound.outbox.streamable", streamable)
    assert (await stage.outbound.send(stage.post("said:1", Said("<" * 100_000))))["parts"]
