from __future__ import annotations

import pytest

from graph.interrupts import FormField
from tests.demo.chat import CLARIFY, Chat


def fields(chat: Chat) -> list[str]:
    return [entry["name"] for entry in chat.calls[0]["args"]["fields"]]


def test_scheduling_something_asks_with_typed_fields() -> None:
    chat = Chat()
    chat.says("schedule something")
    assert chat.names == [CLARIFY]
    asked = [FormField.model_validate(entry) for entry in chat.calls[0]["args"]["fields"]]
    assert [(f.name, f.type.value, f.required) for f in asked] == [
        ("title", "text", True),
        ("date", "date", True),
        ("time", "time", True),
    ]
    assert chat.calls[0]["args"]["question"]


def test_a_filled_form_becomes_an_event() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"values": {"title": "Dentist", "date": "2026-12-01", "time": "15:30"}})
    assert chat.names == ["calendar__create_event"]
    assert chat.calls[0]["args"]["title"] == "Dentist"
    assert chat.calls[0]["args"]["start"] == "2026-12-01T15:30:00+01:00"


def test_an_answer_in_words_becomes_an_event() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"answer": "Standup tomorrow at 9am"})
    assert chat.calls[0]["args"]["title"] == "Standup"
    assert chat.calls[0]["args"]["start"] == "2026-11-22T09:00:00+01:00"


def test_it_asks_again_only_for_what_an_answer_left_out() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"answer": "Standup"})
    assert chat.names == [CLARIFY]
    assert fields(chat) == ["date", "time"]
    chat.results({"answer": "tomorrow"})
    assert fields(chat) == ["time"]
    chat.results({"answer": "9am"})
    assert chat.calls[0]["args"]["title"] == "Standup"
    assert chat.calls[0]["args"]["start"] == "2026-11-22T09:00:00+01:00"


def test_an_answer_that_is_a_command_of_its_own_means_what_it_means_without_a_question() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"answer": "create a meeting called Sync at 3pm"})
    assert chat.calls[0]["args"]["title"] == "Sync"
    assert chat.calls[0]["args"]["start"] == "2026-11-21T15:00:00+01:00"


def test_a_day_that_was_asked_for_is_not_guessed() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"answer": "Standup at 9am"})
    assert fields(chat) == ["date"]


def test_an_answer_about_the_time_leaves_the_title_alone() -> None:
    chat = Chat()
    chat.says("create a meeting called Standup")
    chat.results({"answer": "tomorrow at 9am in the big room"})
    assert chat.calls[0]["args"]["title"] == "Standup"


def test_a_form_with_an_empty_value_is_asked_about_again() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"values": {"title": " ", "date": "2026-12-01", "time": "15:30"}})
    assert fields(chat) == ["title"]


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("create a meeting called Standup tomorrow", ["time"]),
        ("create a meeting tomorrow at 9am", ["title"]),
        ("create a meeting called Standup", ["date", "time"]),
        ("schedule lunch with Bob on Friday", ["time"]),
    ],
)
def test_only_what_is_missing_is_asked(said: str, missing: list[str]) -> None:
    chat = Chat()
    chat.says(said)
    assert fields(chat) == missing


def test_an_empty_answer_is_no_title() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results("{}")
    assert fields(chat) == ["title", "date", "time"]


def test_whoever_does_not_want_to_go_on_is_left_alone() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results({"answer": "Never mind."})
    assert not chat.calls
    assert chat.text == "All right, I have not created anything."


def test_a_superseded_question_creates_nothing() -> None:
    chat = Chat()
    chat.says("schedule something")
    chat.results("Superseded: the turn was ended. The call was not made.")
    assert not chat.calls
    assert "was not created" in chat.text


def test_it_gives_up_after_a_few_questions() -> None:
    chat = Chat()
    chat.says("schedule something")
    for _ in range(4):
        assert chat.names == [CLARIFY]
        chat.results({"values": {"title": "Standup"}})
    assert not chat.calls
    assert "I have not created it" in chat.text
