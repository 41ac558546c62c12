"""`/countersign`: what each verb does, and that only the person sees the answer."""

from __future__ import annotations

from gettext import NullTranslations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import translations
from adapters.slack.inbound.commands import is_within
from adapters.slack.inbound.payloads import command_words
from tests.slack.serving import serving
from tests.slack.shown import an_approval


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("help", "")),
        ("  ", ("help", "")),
        ("help", ("help", "")),
        ("HELP", ("help", "")),
        ("ask", ("help", "")),
        ("ask what is new?", ("ask", "what is new?")),
        ("Ask  what is new? ", ("ask", "what is new?")),
        ("approvals", ("approvals", "")),
        ("connections", ("connections", "")),
        ("usage", ("usage", "")),
        ("connections of the railway", ("ask", "connections of the railway")),
        ("stop", ("stop", "")),
        ("stop the music", ("ask", "stop the music")),
        ("approvals of last week", ("ask", "approvals of last week")),
        ("help me", ("ask", "help me")),
        ("agent", ("agent", "")),
        ("Agent finance", ("agent", "finance")),
        ("agent finance, what is due?", ("ask", "agent finance, what is due?")),
        ("what is new?", ("ask", "what is new?")),
    ],
)
def test_what_does_not_begin_with_a_verb_is_asked(text: str, expected: tuple[str, str]) -> None:
    assert command_words(text) == expected


@given(st.text())
def test_every_text_is_some_command(text: str) -> None:
    verb, asked = command_words(text)
    assert bool(asked) or verb != "ask"
    assert verb in ("ask", "agent") or not asked


def test_a_channel_is_not_mistaken_for_one_whose_id_begins_like_it() -> None:
    assert is_within("slack:T1:C1:1700000000.000100", "slack:T1:C1")
    assert is_within("slack:T1:D1#3", "slack:T1:D1")
    assert not is_within("slack:T1:C12:1700000000.000100", "slack:T1:C1")


async def test_an_agent_is_picked_where_it_is_said_and_only_who_says_it_is_told() -> None:
    async with serving() as product:
        await product.person().commands("agent finance", "C1")
        await product.person().commands("agent", "D1")
        assert product.services.picked == [("slack:T1:U1", "slack:T1:C1", "finance"), ("slack:T1:U1", "", "")]
        assert product.told() == ["agent finance", "agent list"]
        assert product.services.messages == []


async def test_ask_begins_a_thread_with_our_own_post() -> None:
    async with serving() as product:
        asked = await product.person().commands("ask who of <@U2|ben> &amp; me is free?", "C1")
        assert asked.status == 200
        assert product.told() == []
        (opening,) = [m for m in product.slack.messages("C1") if m.get("bot_id")]
        assert "thread_ts" not in opening
        assert "Ana" in opening["text"]
        (message,) = product.services.messages
        assert message.key == f"slack:T1:C1:{opening['ts']}"
        assert message.place.key == f"slack:T1:C1:{opening['ts']}"
        assert message.place.has_threads
        assert message.addressed
        assert "& me is free?" in message.text
        assert message.at == float(opening["ts"])


class Marked(NullTranslations):
    """A language that anybody can tell from English."""

    def gettext(self, message: str) -> str:
        return f"‹{message}›"


async def test_what_is_asked_is_posted_in_the_language_of_all_and_answers_are_in_the_askers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(translations, "catalogue", lambda _name: Marked())
    async with serving() as product:
        product.slack.add_user("U5", name="Eva", locale="de-DE")
        product.slack.world.channels["C1"].members.add("U5")
        helped = await product.person("U5").commands("help", "C1")
        assert "‹" in str(helped)
        await product.person("U5").commands("ask hello", "C1")
        (message,) = product.slack.messages("C1")
        assert "Eva asks:" in str(message)
        assert "‹" not in str(message)


async def test_ask_in_a_direct_chat_begins_a_thread_there() -> None:
    async with serving() as product:
        await product.person().commands("what is new?", "D1")
        (message,) = product.services.messages
        assert message.place.direct
        assert message.place.key == f"slack:T1:{product.person().dm}:{message.key.rsplit(':', 1)[1]}"


async def test_what_is_asked_cannot_ping_anybody() -> None:
    async with serving() as product:
        await product.person().commands("ask &lt;!channel&gt; hi <!here>", "C1")
        (opening,) = [m for m in product.slack.messages("C1") if m.get("bot_id")]
        assert "<!" not in opening["text"]


@pytest.mark.parametrize(
    ("channel", "error"), [("C2", ""), ("C1", "channel_not_found"), ("C1", "is_archived"), ("C1", "restricted_action")]
)
async def test_where_we_cannot_post_the_person_is_told_what_to_do(channel: str, error: str) -> None:
    async with serving() as product:
        if error:
            product.slack.fail("chat.postMessage", error=error)
        asked = await product.person().commands("ask hello", channel)
        assert asked.status == 200
        await product.hears("/invite" if error in ("", "channel_not_found") else "")
        assert product.services.messages == []


@pytest.mark.waits
async def test_a_slack_that_does_not_answer_is_said_to_be_unsure() -> None:
    async with serving() as product:
        product.slack.fail("chat.postMessage", drop=True)
        assert (await product.person().commands("ask hello", "C1")).status == 200
        await product.hears("Check whether your question was posted")
        assert product.services.messages == []


async def test_approvals_lists_what_waits_with_links() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval()
        await product.person().commands("approvals", "C1")
        (told,) = product.slack.ephemerals("U1")
        assert "Create event" in str(told["blocks"])
        assert "acme.slack.com/archives/C1/p1700000000000200" in str(told["blocks"])


async def test_stop_ends_this_persons_turns_in_this_channel_only() -> None:
    async with serving() as product:
        here = ["slack:T1:C1:1700000000.000100", "slack:T1:C1:1700000000.000200"]
        elsewhere = ["slack:T1:C12:1700000000.000100", "slack:T1:C2:1700000000.000100"]
        product.services.turns = dict.fromkeys([*here, *elsewhere], "slack:T1:U1")
        await product.person().commands("stop", "C1")
        assert [thread for thread, _ in product.services.stopped] == here
        assert product.told() == ["Stopped 2 conversations."]


async def test_stop_where_nothing_runs_says_so() -> None:
    async with serving() as product:
        product.services.turns = {"slack:T1:C1:1700000000.000100": "slack:T1:U2"}
        await product.person().commands("stop", "C1")
        assert product.told() == ["Nothing of yours is running in this channel."]


async def test_help_says_how() -> None:
    async with serving() as product:
        await product.person().commands("", "C1")
        assert "/countersign" in str(product.slack.ephemerals("U1"))


@pytest.mark.parametrize("facts", [{"is_ultra_restricted": True}, {"deleted": True}])
async def test_whoever_is_not_welcome_is_told_so(facts: dict[str, Any]) -> None:
    async with serving() as product:
        product.slack.add_user("U7", name="Gus", **facts)
        product.slack.world.channels["C1"].members.add("U7")
        await product.person("U7").commands("ask hello", "C1")
        assert len(product.told("U7")) == 1
        assert product.services.messages == []


async def test_when_the_question_cannot_be_kept_slack_says_that_it_did_not_work() -> None:
    async with serving() as product:
        product.services.broken = RuntimeError("the disk is full")
        assert (await product.person().commands("ask hello", "C1")).status == 503
        await product.slack.until(lambda: product.slack.calls_of("chat.delete"))
        await product.slack.until(lambda: not [m for m in product.slack.messages("C1") if m.get("bot_id")])
