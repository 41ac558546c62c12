"""What events become: messages for the services, edits and deletions of them, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.shared.messages import WORDLESS, MessageDeleted, MessageEdited
from adapters.slack.inbound.events import SlackRecipient, heard
from bot.domain import Message
from tests.support.examples import examples

EARS = SlackRecipient("T1", "UBOT", "BBOT")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def hear(event: Mapping[str, Any]) -> Message | MessageEdited | MessageDeleted | None:
    return heard(event, EARS, {"U1": "Ana"}.get)


def written(text: str = "<@UBOT> hello", **changes: Any) -> dict[str, Any]:
    event = {"type": "message", "user": "U1", "team": "T1", "text": text, "ts": "1700000000.000100", "channel": "C1"}
    return {**event, "channel_type": "channel", **changes}


def message(event: Mapping[str, Any]) -> Message:
    found = hear(event)
    assert isinstance(found, Message)
    return found


# ------------------------------------------------------------------------------------------------ pure


def test_a_mention_in_a_channel_starts_a_thread() -> None:
    found = message(written())
    assert found.key == "slack:T1:C1:1700000000.000100"
    assert found.place.key == "slack:T1:C1:1700000000.000100"
    assert (found.place.channel, found.place.direct, found.place.has_threads) == ("slack:T1:C1", False, True)
    assert (found.author.person_id, found.author.name) == ("slack:T1:U1", "Ana")
    assert (found.text, found.addressed, found.at) == ("hello", True, 1_700_000_000.0001)
    assert found.origin == {"user_team": "T1", "bot_user": "UBOT"}


def test_who_is_not_known_yet_is_introduced_later() -> None:
    assert message(written(user="U2")).author.name == ""


def test_one_mention_in_two_events_is_one_message() -> None:
    mention = written(type="app_mention")
    del mention["channel_type"]
    assert message(mention) == message(written())


def test_a_reply_belongs_to_its_thread_and_is_not_said_to_us() -> None:
    found = message(written("fine", thread_ts="1600000000.000001"))
    assert found.place.key == "slack:T1:C1:1600000000.000001"
    assert not found.addressed


def test_what_people_say_to_each_other_in_a_channel_is_nothing_to_us() -> None:
    assert hear(written("who wants cake?")) is None


def test_a_direct_message_is_a_session() -> None:
    found = message(written("hi", channel="D1", channel_type="im"))
    assert (found.place.key, found.place.direct, found.place.has_threads) == ("slack:T1:D1", True, False)
    assert found.addressed
    assert found.place.channel == ""


def test_in_the_agent_view_a_direct_message_starts_a_thread() -> None:
    event = written("hi", channel="D1", channel_type="im")
    found = heard(event, replace(EARS, agent_view=True), {"U1": "Ana"}.get)
    assert isinstance(found, Message)
    assert (found.place.key, found.place.direct) == ("slack:T1:D1:1700000000.000100", True)
    assert found.place.has_threads


def test_a_thread_of_direct_messages_is_a_thread() -> None:
    found = message(written("hi", channel="D1", channel_type="im", thread_ts="1600000000.000001"))
    assert (found.place.key, found.place.has_threads) == ("slack:T1:D1:1600000000.000001", True)


def test_a_group_chat_is_like_a_channel() -> None:
    assert hear(written("cake?", channel="G1", channel_type="mpim")) is None
    assert message(written(channel="G1", channel_type="mpim")).place.key == "slack:T1:G1:1700000000.000100"


@pytest.mark.parametrize(
    "changes",
    [
        {"user": "UBOT"},
        {"bot_id": "BBOT"},
        {"bot_id": "B2"},
        {"user": "USLACKBOT"},
        {"user": None},
        {"hidden": True},
        {"subtype": "channel_join"},
        {"subtype": "bot_message"},
        {"subtype": "assistant_app_thread"},
        {"subtype": "message_replied"},
        {"channel": None},
        {"ts": "yesterday"},
    ],
)
def test_machines_and_the_system_are_not_listened_to(changes: dict[str, Any]) -> None:
    assert hear(written(**changes)) is None


def test_a_reply_that_is_sent_to_the_channel_too_is_the_same_message() -> None:
    reply = written("so be it", thread_ts="1600000000.000001")
    assert message({**reply, "subtype": "thread_broadcast", "root": {"user": "U2"}}) == message(reply)


def test_files_are_noted_by_name_and_size() -> None:
    files = [{"name": "report.pdf", "size": 12_345}, {"name": "a\nb].png", "size": 3_456_789}, {"size": 12}, {}, 7]
    found = message(written(subtype="file_share", files=files))
    assert found.text.splitlines() == [
        "hello",
        "[attached: report.pdf, 12 kB]",
        "[attached: a b).png, 3.4 MB]",
        "[attached: a file, 12 bytes]",
        "[attached: a file]",
    ]


def test_a_file_without_words_is_a_message_too() -> None:
    assert message(written("<@UBOT>", files=[{"name": "x.txt", "size": 1}])).text == "[attached: x.txt, 1 bytes]"


def test_somebody_from_another_company_is_named_with_it() -> None:
    assert message(written(user_team="T9", team="T1")).origin["user_team"] == "T9"


def changed(now: dict[str, Any], before: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    event = {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": "C1",
        "ts": "1700000009.000100",
    }
    return {**event, "message": now, **({"previous_message": before} if before else {}), **changes}


EDITED = {"user": "U1", "ts": "1700000008.000000"}


def test_an_edit_says_what_the_message_says_now() -> None:
    found = hear(changed(written("<@UBOT> goodbye", edited=EDITED), written()))
    assert found == MessageEdited("slack:T1:C1:1700000000.000100", "goodbye", None)


def test_an_edit_that_takes_all_words_away_leaves_a_bare_mention() -> None:
    found = hear(changed(written("<@UBOT>", edited=EDITED), written("<@UBOT> delete it")))
    assert isinstance(found, MessageEdited)
    assert found.text == WORDLESS
    assert hear(changed(written("<@UBOT> ", edited=EDITED), written("<@UBOT>"))) is None


def test_an_edit_that_adds_the_mention_is_as_good_as_new() -> None:
    found = hear(changed(written("<@UBOT> hello", edited=EDITED), written("hello")))
    assert isinstance(found, MessageEdited)
    assert found.message == message(written())


def test_an_edit_in_a_direct_chat_is_never_new() -> None:
    direct = {"channel": "D1", "channel_type": "im"}
    found = hear(changed(written("hey", edited=EDITED, **direct), written("hi", **direct), **direct))
    assert isinstance(found, MessageEdited)
    assert found.message is None


def test_an_unfurled_link_is_no_edit() -> None:
    before = written("<@UBOT> see https://example.com")
    assert hear(changed({**before, "attachments": [{"title": "A page"}]}, before)) is None
    once = {**before, "edited": EDITED}
    assert hear(changed({**once, "attachments": [{"title": "A page"}]}, once)) is None


def test_an_edit_of_what_was_never_said_to_us_is_nothing() -> None:
    assert hear(changed(written("cake!", edited=EDITED), written("cake?"))) is None


def test_our_own_updates_are_no_edits() -> None:
    ours = {"user": "UBOT", "bot_id": "BBOT"}
    assert hear(changed(written("<@UBOT> b", edited=EDITED, **ours), written("<@UBOT> a", **ours))) is None


def test_a_deleted_message_is_withdrawn() -> None:
    event = {"type": "message", "subtype": "message_deleted", "channel": "C1", "deleted_ts": "1700000000.000100"}
    assert hear({**event, "previous_message": written()}) == MessageDeleted("slack:T1:C1:1700000000.000100")
    assert hear({**event, "previous_message": written("cake?")}) is None
    assert hear({**event, "previous_message": written(bot_id="BBOT")}) is None


def test_a_deleted_message_with_replies_leaves_a_tombstone() -> None:
    tombstone = written("This message was deleted.", subtype="tombstone", user="USLACKBOT")
    assert hear(changed(tombstone, written())) == MessageDeleted("slack:T1:C1:1700000000.000100")


@settings(max_examples=examples(50))
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "type",
                "subtype",
                "user",
                "bot_id",
                "text",
                "ts",
                "thread_ts",
                "channel",
                "channel_type",
                "files",
                "message",
                "previous_message",
                "deleted_ts",
                "edited",
                "hidden",
                "team",
            ]
        ),
        JSON
        | st.sampled_from(["message", "app_mention", "message_changed", "message_deleted", "tombstone", "file_share"])
        | st.sampled_from(["C1", "D1", "U1", "UBOT", "1700000000.000100", "<@UBOT> x"])
        | st.just({"user": "U1", "text": "<@UBOT> x", "ts": "1700000000.000100", "edited": {"ts": "1"}}),
    )
)
def test_no_event_makes_it_fail(event: dict[str, Any]) -> None:
    found = hear(event)
    assert found is None or found.key.startswith("slack:T1:")


@settings(max_examples=examples(35))
@given(
    st.text(max_size=60), st.sampled_from([{}, {"subtype": "thread_broadcast"}]), st.sampled_from(["", "1600000000.1"])
)
def test_both_events_of_a_mention_say_the_same(text: str, broadcast: dict[str, str], thread_ts: str) -> None:
    event = written(f"<@UBOT> {text}", **({"thread_ts": thread_ts} if thread_ts else {}))
    as_mention = {name: value for name, value in event.items() if name != "channel_type"} | {"type": "app_mention"}
    assert hear(as_mention) == hear(event | broadcast)
