from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog

from adapters.slack.config import SlackConfig
from adapters.slack.ids import SlackLocation, message_key, person_id, place_of
from adapters.slack.inbound.events import origin_of
from adapters.slack.web_api.client import WebApi
from adapters.slack.web_api.earlier_messages import MOST_CHARACTERS, MOST_QUOTES, EarlierMessages
from adapters.slack.web_api.people import SlackPeople, no_strangers
from bot.domain import Arrival, Introduction, Message, Person, Quote, Unwelcome
from bot.platform import PostFailed
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support.moments import Moments


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


async def one_token(_team: str) -> str:
    return "xoxb-1"


@asynccontextmanager
async def backgrounds_of(slack: FakeSlack) -> AsyncIterator[EarlierMessages]:
    moments = Moments()
    api = WebApi(one_token, slack.api_url, clock=moments.clock, sleep=moments.sleep)
    people = SlackPeople(api, SlackConfig())
    backgrounds = EarlierMessages(api, people)
    try:
        yield backgrounds
    finally:
        await backgrounds.close()
        await people.close()
        await api.close()


def written(slack: FakeSlack, user: str, text: str, *, thread: str = "", channel: str = "C1", **facts: Any) -> str:
    """Somebody wrote it; its ts."""
    ts = slack.world.next_ts()
    threaded = {"thread_ts": thread} if thread else {}
    slack.world.channels[channel].messages[ts] = {
        "type": "message",
        "user": user,
        "text": text,
        "ts": ts,
        **threaded,
        **facts,
    }
    return ts


def arrived(
    slack: FakeSlack,
    *,
    thread: str = "",
    heard: str | None = None,
    user: str = "U1",
    text: str = "what now?",
    channel: str = "C1",
    user_team: str = "",
) -> Arrival:
    """A message to the bot, written now."""
    ts = written(slack, user, f"<@UBOT> {text}", thread=thread, channel=channel)
    direct = channel.startswith("D")
    place = place_of(SlackLocation("T1", channel, thread if thread or direct else ts), direct=direct)
    message = Message(
        message_key("T1", channel, ts),
        place,
        Person(person_id("T1", user), ""),
        text,
        float(ts),
        origin=origin_of(user_team=user_team, bot_user="UBOT"),
    )
    return Arrival(message, message_key("T1", channel, heard) if heard else None)


async def introduced(slack: FakeSlack, arrival: Arrival) -> Introduction:
    async with backgrounds_of(slack) as backgrounds:
        introduction = await backgrounds.introduce(arrival)
    assert isinstance(introduction, Introduction)
    return introduction


def lines(introduction: Introduction) -> list[str]:
    return [f"{quote.author}: {quote.text}" for quote in introduction.background]


# -------------------------------------------------------------------------------------------------- who and what
async def test_a_message_is_introduced_with_its_author_and_names_for_ids(slack: FakeSlack) -> None:
    arrival = arrived(slack, text="tell <@U2> and <@U404> in <#C2>, not in <#C404>")
    introduction = await introduced(slack, arrival)
    assert introduction.author == Person("slack:T1:U1", "Ana", "Europe/Berlin", "en-US")
    assert introduction.text == "tell @Ben and @U404 in #elsewhere, not in #C404"
    assert introduction.background == ()


async def test_a_stranger_is_turned_away_before_anything_is_read_for_them(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "between us")
    async with backgrounds_of(slack) as backgrounds:
        assert await backgrounds.introduce(arrived(slack, thread=thread, user_team="T9")) == Unwelcome(no_strangers())
    assert slack.calls_of("conversations.replies") == []


@pytest.mark.parametrize(
    ("fault", "permanent"), [({"status": 503, "times": math.inf}, False), ({"error": "missing_scope"}, True)]
)
async def test_an_author_who_cannot_be_found_out_is_a_failure(
    slack: FakeSlack, fault: dict[str, Any], *, permanent: bool
) -> None:
    slack.fail("users.info", **fault)
    async with backgrounds_of(slack) as backgrounds:
        with pytest.raises(PostFailed) as failed:
            await backgrounds.introduce(arrived(slack))
    assert failed.value.permanent is permanent


# -------------------------------------------------------------------------------------------------- said before
async def test_in_the_middle_of_a_thread_we_learn_who_said_what(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "The fair is on <https://fair.example|this page>")
    written(slack, "U3", "<@U2> I &lt;3 it, see <#C2|elsewhere>", thread=thread)
    introduction = await introduced(slack, arrived(slack, thread=thread))
    assert lines(introduction) == [
        "Ben: The fair is on this page (https://fair.example)",
        "Chloe: @Ben I <3 it, see #elsewhere",
    ]
    assert introduction.background[0].at == pytest.approx(float(thread))


async def test_only_what_came_since_we_last_heard_something_is_told(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "old")
    written(slack, "U2", "older than what was heard", thread=thread)
    heard = written(slack, "U1", "<@UBOT> first question", thread=thread)
    written(slack, "U2", "new", thread=thread)
    introduction = await introduced(slack, arrived(slack, thread=thread, heard=heard))
    assert lines(introduction) == ["Ben: new"]


async def test_what_comes_after_the_message_is_not_before_it(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "before")
    arrival = arrived(slack, thread=thread)
    written(slack, "U2", "after", thread=thread)
    assert lines(await introduced(slack, arrival)) == ["Ben: before"]


async def test_bots_the_system_and_what_was_said_to_us_are_left_out(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "yes")
    written(slack, "UBOT", "our own", thread=thread, bot_id="BBOT")
    written(slack, "U9", "another bot", thread=thread, bot_id="B9")
    written(slack, "U2", "joined", thread=thread, subtype="channel_join")
    written(slack, "U3", "<@UBOT> something else", thread=thread)
    written(slack, "U3", "<@UBOT|countersign> again", thread=thread)
    written(slack, "U3", "also in the channel", thread=thread, subtype="thread_broadcast")
    assert lines(await introduced(slack, arrived(slack, thread=thread))) == ["Ben: yes", "Chloe: also in the channel"]


async def test_files_are_named(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "", subtype="file_share", files=[{"name": "plan.pdf", "size": 12_345}])
    assert lines(await introduced(slack, arrived(slack, thread=thread))) == ["Ben: [attached: plan.pdf, 12 kB]"]


async def test_a_mention_at_the_top_of_a_channel_has_nothing_before_it(slack: FakeSlack) -> None:
    written(slack, "U2", "something in the channel")
    assert (await introduced(slack, arrived(slack))).background == ()
    assert slack.calls_of("conversations.replies") == []


@pytest.mark.parametrize("thread", ["", "1700000000.000100"])
async def test_in_a_direct_chat_everything_was_said_to_us(slack: FakeSlack, thread: str) -> None:
    written(slack, "U1", "earlier", channel="D1", thread=thread)
    assert (await introduced(slack, arrived(slack, channel="D1", thread=thread))).background == ()
    assert slack.calls_of("conversations.replies") == []


async def test_a_long_thread_is_read_page_by_page_and_its_newest_messages_are_told(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "begin")
    for number in range(450):
        written(slack, "U2", f"number {number}", thread=thread)
    told = lines(await introduced(slack, arrived(slack, thread=thread)))
    assert len(slack.calls_of("conversations.replies")) == 3
    assert told == [f"Ben: number {number}" for number in range(450 - MOST_QUOTES, 450)]


async def test_the_parent_is_told_once_however_many_pages_begin_with_it(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "begin")
    for _ in range(210):
        written(slack, "U9", "beep", thread=thread, bot_id="B9")
    assert lines(await introduced(slack, arrived(slack, thread=thread))) == ["Ben: begin"]


async def test_a_thread_without_end_is_not_read_for_ever(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "begin")
    for _ in range(2_100):
        written(slack, "U9", "beep", thread=thread, bot_id="B9")
    with structlog.testing.capture_logs() as logged:
        await introduced(slack, arrived(slack, thread=thread))
    assert len(slack.calls_of("conversations.replies")) == 10
    assert "slack_background_cut" in [entry["event"] for entry in logged]


async def test_much_text_is_cut_to_the_newest(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "begin")
    for letter in "abc":
        written(slack, "U2", letter * 3_500, thread=thread)
    told = (await introduced(slack, arrived(slack, thread=thread))).background
    assert [quote.text[0] for quote in told] == ["a", "b", "c"]
    assert told[0].text.endswith("more characters)")
    assert sum(len(quote.text) for quote in told) <= MOST_CHARACTERS


async def test_who_said_it_stays_somebody_when_their_name_cannot_be_found(slack: FakeSlack) -> None:
    thread = written(slack, "U404", "hello")
    introduction = await introduced(slack, arrived(slack, thread=thread))
    assert introduction.background == (Quote("somebody", "hello", float(thread)),)


@pytest.mark.parametrize(
    "fault", [{"error": "missing_scope"}, {"status": 429, "retry_after": 60}, {"error": "thread_not_found"}]
)
async def test_the_turn_goes_on_without_a_background_that_cannot_be_read(
    slack: FakeSlack, fault: dict[str, Any]
) -> None:
    thread = written(slack, "U2", "before")
    slack.fail("conversations.replies", **fault)
    with structlog.testing.capture_logs() as logged:
        introduction = await introduced(slack, arrived(slack, thread=thread))
    assert introduction.background == ()
    assert "slack_background_not_read" in [entry["event"] for entry in logged]


async def test_what_was_read_before_a_failure_is_told(slack: FakeSlack) -> None:
    thread = written(slack, "U2", "begin")
    for _ in range(210):
        written(slack, "U9", "beep", thread=thread, bot_id="B9")
    second = lambda arguments: "cursor" in arguments  # noqa: E731
    slack.fail("conversations.replies", status=429, retry_after=60, when=second)
    assert lines(await introduced(slack, arrived(slack, thread=thread))) == ["Ben: begin"]


async def test_a_channel_is_asked_for_its_name_once(slack: FakeSlack) -> None:
    async with backgrounds_of(slack) as backgrounds:
        for _ in range(2):
            introduction = await backgrounds.introduce(arrived(slack, text="see <#C2>"))
            assert isinstance(introduction, Introduction)
            assert introduction.text == "see #elsewhere"
    assert len(slack.calls_of("conversations.info")) == 1
