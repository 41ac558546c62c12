from __future__ import annotations

import json
from datetime import datetime

import pytest

from tests.demo.chat import CLARIFY, Chat, event, events

STANDUP = event("Standup", "2026-11-22T09:00:00+01:00", "2026-11-22T10:00:00+01:00")


def test_the_calendar_is_looked_up_and_told_as_a_list() -> None:
    chat = Chat()
    chat.says("what is on my calendar")
    assert chat.names == ["calendar__list_events"]
    assert chat.calls[0]["args"] == {"start": "2026-11-21T00:00:00+01:00", "end": "2026-11-28T00:00:00+01:00"}

    chat.results(events(STANDUP, event("Lunch", "12:00", "13:00", location="Canteen", attendees=["Bob"])))

    assert not chat.calls
    assert "- **Standup**, Sun 22 Nov, 9:00–10:00" in chat.text
    assert "- **Lunch**, Sat 21 Nov, 12:00–13:00 (Canteen; with Bob)" in chat.text


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("what is on my calendar today?", "2026-11-21", "2026-11-22"),
        ("What's on my calendar tomorrow", "2026-11-22", "2026-11-23"),
        ("what is on my calendar this week", "2026-11-16", "2026-11-23"),
        ("show my meetings next week", "2026-11-23", "2026-11-30"),
        ("am I free on Friday?", "2026-11-27", "2026-11-28"),
    ],
)
def test_the_window_is_the_one_that_was_asked_for(said: str, start: str, end: str) -> None:
    chat = Chat()
    chat.says(said)
    assert (chat.calls[0]["args"]["start"][:10], chat.calls[0]["args"]["end"][:10]) == (start, end)


def test_an_empty_calendar_is_said_to_be_empty() -> None:
    chat = Chat()
    chat.says("what is on my calendar tomorrow")
    chat.results(events())
    assert chat.text == "There is nothing on your calendar for tomorrow."


def test_events_in_another_zone_are_told_in_the_readers_zone() -> None:
    chat = Chat()
    chat.says("what is on my calendar")
    chat.results(events(event("Call", "2026-11-21T17:00:00-05:00", "2026-11-21T18:00:00-05:00")))
    assert "Sat 21 Nov, 23:00 to Sun 22 Nov, 0:00" in chat.text


def test_a_result_that_cannot_be_read_is_not_told_as_an_empty_calendar() -> None:
    chat = Chat()
    chat.says("what is on my calendar")
    chat.results("[result for that person only]")
    assert "[result for that person only]" in chat.text
    assert "nothing" not in chat.text


def test_a_meeting_with_everything_said_is_proposed_at_once() -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    assert chat.names == ["calendar__create_event"]
    assert chat.calls[0]["args"] == {
        "title": "Standup",
        "start": "2026-11-22T09:00:00+01:00",
        "end": "2026-11-22T10:00:00+01:00",
        "calendar_id": "primary",
    }
    assert "Standup" in chat.text

    chat.results(STANDUP)
    assert chat.text == "Created **Standup**, Sun 22 Nov, 9:00–10:00."


@pytest.mark.parametrize(
    ("time", "start", "end"),
    [
        ("tomorrow from 2 to 4", "2026-11-22T14:00", "2026-11-22T16:00"),
        ("tomorrow 11-1pm", "2026-11-22T11:00", "2026-11-22T13:00"),
        ("on 25 November at 9:30 for 45 minutes", "2026-11-25T09:30", "2026-11-25T10:15"),
        ("at 9am until 11am on 5 January", "2027-01-05T09:00", "2027-01-05T11:00"),
        ("at 11pm until 1am on Friday", "2026-11-27T23:00", "2026-11-28T01:00"),
        ("on Dec 24th, 2027 at noon", "2027-12-24T12:00", "2027-12-24T13:00"),
        ("in half an hour", "2026-11-21T09:30", "2026-11-21T10:30"),
        ("next Monday at 3", "2026-11-23T15:00", "2026-11-23T16:00"),
        ("on Sun at 9.45", "2026-11-22T09:45", "2026-11-22T10:45"),
    ],
)
def test_times_are_understood_in_several_wordings(time: str, start: str, end: str) -> None:
    chat = Chat()
    chat.says(f"create a meeting called Standup {time}")
    made = chat.calls[0]["args"]
    assert (made["title"], made["start"][:16], made["end"][:16]) == ("Standup", start, end)


@pytest.mark.parametrize(
    ("said", "titles"),
    [
        ('schedule "Lunch, then coffee" on Friday at 12', ["Lunch, then coffee"]),
        ("schedule Sun Microsystems review tomorrow at 2pm", ["Sun Microsystems review"]),
        ("another meeting called Retro tomorrow at 4pm", ["Retro"]),
        ("create 3 events: A at 9am, B and C at 10am and D at 3pm", ["A", "B and C", "D"]),
        ("create events:\n- Standup at 9am\n- Retro at 4pm", ["Standup", "Retro"]),
        ("create a meeting called Night at 25:00 on Friday at 9pm", ["Night at 25:00"]),
    ],
)
def test_a_title_is_what_is_left_when_the_time_is_taken_out(said: str, titles: list[str]) -> None:
    chat = Chat()
    chat.says(said)
    assert [call["args"]["title"] for call in chat.calls] == titles


def test_what_was_made_is_told_as_the_tool_says_it_and_not_as_it_was_asked() -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    chat.results(
        {**STANDUP, "title": "Daily", "start": "2026-11-22T11:00:00+01:00", "end": "2026-11-22T11:15:00+01:00"}
    )
    assert chat.text == "Created **Daily**, Sun 22 Nov, 11:00–11:15."


def test_two_events_are_proposed_in_one_message_and_each_outcome_is_told() -> None:
    chat = Chat()
    chat.says("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    assert chat.names == ["calendar__create_event"] * 2
    assert [call["args"]["title"] for call in chat.calls] == ["Team Meeting", "Lunch with Bob"]
    assert [call["args"]["start"][11:16] for call in chat.calls] == ["10:00", "12:00"]
    assert "2 things" in chat.text

    chat.results(event("Team Meeting", "10:00", "11:00"), "Rejected by Ana. No reason was given.")

    assert not chat.calls
    assert "Created **Team Meeting**" in chat.text
    assert (
        "**Lunch with Bob**, Sat 21 Nov, 12:00–13:00 was not created: Ana rejected it and gave no reason." in chat.text
    )


def test_undated_events_of_one_request_are_on_the_same_day() -> None:
    chat = Chat(now="2026-11-21T11:00:00+01:00 (Europe/Berlin)")
    chat.says("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    assert {call["args"]["start"][:10] for call in chat.calls} == {"2026-11-22"}


@pytest.mark.parametrize(
    ("reason", "title", "start"),
    [
        ("should be 10am", "Standup", "2026-11-22T10:00"),
        ("should be at 10", "Standup", "2026-11-22T10:00"),
        ("not at 9am but at 10am", "Standup", "2026-11-22T10:00"),
        ("10:30 instead of 9:00", "Standup", "2026-11-22T10:30"),
        ("on Monday instead", "Standup", "2026-11-23T09:00"),
        ("half an hour later", "Standup", "2026-11-22T09:30"),
        ("call it Daily", "Daily", "2026-11-22T09:00"),
        ("call it Daily, and make it 10am", "Daily", "2026-11-22T10:00"),
        ("make it 10am and call it Daily", "Daily", "2026-11-22T10:00"),
    ],
)
def test_a_rejection_with_a_correction_is_followed_by_a_corrected_proposal(reason: str, title: str, start: str) -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    chat.results(f"Rejected by Bob. Reason: {reason}")
    assert chat.names == ["calendar__create_event"]
    corrected = chat.calls[0]["args"]
    assert (corrected["title"], corrected["start"][:16]) == (title, start)
    length = datetime.fromisoformat(corrected["end"]) - datetime.fromisoformat(corrected["start"])
    assert length.total_seconds() == 3600
    assert "Bob" in chat.text
    assert reason in chat.text


def test_corrections_can_follow_each_other() -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    chat.results("Rejected by Bob. Reason: should be 10am")
    chat.results("Rejected by Bob. Reason: on Monday instead")
    assert chat.calls[0]["args"]["start"] == "2026-11-23T10:00:00+01:00"
    chat.results(event("Standup", "2026-11-23T10:00:00+01:00", "2026-11-23T11:00:00+01:00"))
    assert chat.text == "Created **Standup**, Mon 23 Nov, 10:00–11:00."


@pytest.mark.parametrize(
    "reason", ["no", "we do not need it", "Bob is away on Friday", "not tomorrow", "9am is too early"]
)
def test_a_rejection_without_a_usable_correction_ends_it_with_who_and_why(reason: str) -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    chat.results(f"Rejected by Bob. Reason: {reason}")
    assert not chat.calls
    assert chat.text == f"**Standup**, Sun 22 Nov, 9:00–10:00 was not created: Bob rejected it (“{reason}”)."


def test_what_an_approver_changed_is_told_as_it_was_made() -> None:
    made = event("Standup", "2026-11-22T10:00:00+01:00", "2026-11-22T11:00:00+01:00")
    told = []
    theirs = 'an approver gave other values than yours: "start": "10:00", "end": "11:00"'
    for note in ("", f"Approved with changes: {theirs}.\n\n"):
        chat = Chat()
        chat.says("create a meeting called Standup tomorrow at 9am")
        chat.results(note + json.dumps(made))
        told.append(chat.text)
    assert told[0] == told[1]
    assert "10:00" in told[1]


def test_only_the_rejected_one_of_two_is_proposed_again() -> None:
    chat = Chat()
    chat.says("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    chat.results(event("Team Meeting", "10:00", "11:00"), "Rejected by Ana. Reason: should be 1pm")
    assert [(call["args"]["title"], call["args"]["start"][11:16]) for call in chat.calls] == [
        ("Lunch with Bob", "13:00")
    ]
    chat.results(event("Lunch with Bob", "13:00", "14:00"))
    assert "Created **Team Meeting**" in chat.text
    assert "Created **Lunch with Bob**, Sat 21 Nov, 13:00–14:00." in chat.text


@pytest.mark.parametrize(
    ("result", "truth"),
    [
        ("Expired: nobody decided in time.", "was not created. Expired: nobody decided in time."),
        ("Superseded: the turn was ended. The call was not made.", "was not created. Superseded"),
        (
            "hitl_skipped_non_streaming: people have to approve this call. Say so, and do not propose it again now.",
            "was not created: it needs approval, and no one is asked here.",
        ),
        ("Blocked by policy: Nothing may be created.", "was not created. Blocked by policy: Nothing may be created."),
        ("Failed: the server is down.", "was not created. Failed: the server is down."),
        ("Outcome unknown: no answer came.", "It is not known whether **Standup**"),
        ("Skipped by Ana: it shall not be tried again.", "It is not known whether **Standup**"),
        ("Done, as Ana confirmed: the call took effect.", "Sun 22 Nov, 9:00–10:00: Done, as Ana confirmed"),
    ],
)
def test_every_other_end_of_a_call_is_told_as_it_is(result: str, truth: str) -> None:
    chat = Chat()
    chat.says("create a meeting called Standup tomorrow at 9am")
    chat.results(result)
    assert not chat.calls
    assert truth in chat.text
    assert "Created" not in chat.text


def test_the_meeting_at_three_is_found_and_moved() -> None:
    chat = Chat()
    chat.says("move the meeting at 3pm to 4pm")
    assert chat.names == ["calendar__list_events"]
    chat.results(events(STANDUP, event("Review", "15:00", "15:30", event_id="e-3pm", calendar_id="team")))
    assert chat.names == ["calendar__update_event"]
    assert chat.calls[0]["args"] == {
        "event_id": "e-3pm",
        "calendar_id": "team",
        "start": "2026-11-21T16:00:00+01:00",
        "end": "2026-11-21T16:30:00+01:00",
    }
    assert "move **Review** from Sat 21 Nov, 15:00, to Sat 21 Nov, 16:00–16:30" in chat.text

    chat.results("Rejected by Bob. Reason: should be 5pm")
    assert chat.calls[0]["args"]["start"] == "2026-11-21T17:00:00+01:00"
    chat.results(event("Review", "17:00", "17:30"))
    assert chat.text == "Moved **Review**, Sat 21 Nov, 17:00–17:30."


def test_the_meeting_at_three_is_the_next_one_and_not_one_that_is_over() -> None:
    chat = Chat(now="2026-11-21T17:00:00+01:00 (Europe/Berlin)")
    chat.says("move the meeting at 3pm to 4pm")
    tomorrow = event("Review", "2026-11-22T15:00:00+01:00", "2026-11-22T16:00:00+01:00", event_id="e-tomorrow")
    chat.results(events(event("Over", "15:00", "16:00", event_id="e-over"), tomorrow))
    assert chat.calls[0]["args"]["event_id"] == "e-tomorrow"
    assert chat.calls[0]["args"]["start"] == "2026-11-22T16:00:00+01:00"


def test_a_clarification_goes_first_and_the_move_beside_it() -> None:
    chat = Chat()
    chat.says("schedule something for me, and move the meeting at 3pm to 4pm")
    assert chat.names == ["calendar__list_events"]
    chat.results(events(event("Review", "15:00", "16:00", event_id="e-3pm")))
    assert chat.names == [CLARIFY, "calendar__update_event"]

    chat.results({"values": {"title": "Gym", "date": "2026-11-23", "time": "18:00"}}, event("Review", "16:00", "17:00"))
    assert chat.names == ["calendar__create_event"]
    assert chat.calls[0]["args"]["title"] == "Gym"

    chat.results(event("Gym", "2026-11-23T18:00:00+01:00", "2026-11-23T19:00:00+01:00"))
    assert "Created **Gym**, Mon 23 Nov, 18:00–19:00." in chat.text
    assert "Moved **Review**, Sat 21 Nov, 16:00–17:00." in chat.text


def test_without_a_meeting_at_three_it_says_so_and_still_asks_for_the_other() -> None:
    chat = Chat()
    chat.says("schedule something for me, and move the meeting at 3pm to 4pm")
    chat.results(events(STANDUP))
    assert chat.names == [CLARIFY]
    chat.results({"answer": "Gym on Monday at 6pm"})
    assert chat.names == ["calendar__create_event"]
    chat.results(event("Gym", "2026-11-23T18:00:00+01:00", "2026-11-23T19:00:00+01:00"))
    assert "Created **Gym**" in chat.text
    assert "I found no event at 15:00" in chat.text


def test_an_event_is_found_by_its_name_and_deleted() -> None:
    chat = Chat()
    chat.says("delete the event Standup")
    chat.results(events(STANDUP, event("Lunch", "12:00", "13:00", event_id="e-2")))
    assert chat.names == ["calendar__delete_event"]
    assert chat.calls[0]["args"] == {"event_id": STANDUP["id"], "calendar_id": "primary"}
    chat.results(STANDUP)
    assert chat.text == "Deleted the event **Standup**, Sun 22 Nov, 9:00–10:00."


def test_a_rejected_deletion_names_what_stays() -> None:
    chat = Chat()
    chat.says("delete the event Standup")
    chat.results(events(STANDUP))
    chat.results("Rejected by Ana. Reason: keep it")
    assert chat.text == "**Standup** was not deleted: Ana rejected it (“keep it”)."


def test_among_several_events_of_a_name_it_asks_which() -> None:
    chat = Chat()
    other = event("Standup", "2026-11-23T09:00:00+01:00", "2026-11-23T10:00:00+01:00", event_id="e-2")
    chat.says("delete the event Standup")
    chat.results(events(STANDUP, other))
    assert chat.names == [CLARIFY]
    options = chat.calls[0]["args"]["fields"][0]["options"]
    assert options == ["Standup, Sun 22 Nov, 9:00–10:00", "Standup, Mon 23 Nov, 9:00–10:00"]
    chat.results({"values": {"which": options[1]}})
    assert chat.calls[0]["args"]["event_id"] == "e-2"


def test_a_turn_that_waited_overnight_goes_on_with_what_was_proposed() -> None:
    chat = Chat()
    chat.says("move the meeting at 3pm today to 4pm")
    chat.results(events(event("Review", "15:00", "16:00", event_id="e-3pm")))
    chat.now = "2026-11-23T08:00:00+01:00 (Europe/Berlin)"
    chat.results(event("Review", "16:00", "17:00"))
    assert chat.text == "Moved **Review**, Sat 21 Nov, 16:00–17:00."


def test_an_event_that_is_already_then_is_not_moved() -> None:
    chat = Chat()
    chat.says("move the Standup tomorrow to 9am")
    chat.results(events(STANDUP))
    assert not chat.calls
    assert chat.text == "**Standup**, Sun 22 Nov, 9:00–10:00 is already then, so there is nothing to move."


def test_the_calendars_are_told() -> None:
    chat = Chat()
    chat.says("which calendars do I have")
    assert chat.names == ["calendar__list_calendars"]
    chat.results({"calendars": [{"calendar_id": "primary", "name": "Mine"}]})
    assert chat.text == "Your calendars:\n\n- **Mine** (primary)"


@pytest.mark.parametrize("start", ["0001-01-01T00:30:00", "9999-12-31T23:30:00+01:00"])
def test_an_event_at_the_end_of_all_time_is_not_moved(start: str) -> None:
    chat = Chat()
    chat.says("move the Standup to Friday at 9am")
    chat.results(events(event("Standup", start, start)))
    assert chat.names == []
    assert "I found no event called **Standup**" in chat.text
