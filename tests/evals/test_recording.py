"""Answers of a model, recorded and given again."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.recording import (
    ModelAnswer,
    RecordingError,
    ids_in,
    read_answer,
    read_recording,
    streamed,
    whole,
    with_marks,
    without_marks,
)

uuids = st.integers(0, 2**64).map(lambda number: str(UUID(int=number)))
answers = st.builds(
    lambda text, arguments: ModelAnswer(text, [{"id": "c", "name": "f", "arguments": arguments}], {"total_tokens": 3}),
    st.text(),
    st.text(),
)


def asked_with(*ids: str) -> dict[str, object]:
    return {"messages": [{"role": "tool", "content": json.dumps({"events": [{"id": each} for each in ids]})}]}


@given(st.lists(uuids, min_size=1, max_size=5, unique=True), st.data())
def test_an_answer_names_the_ids_of_the_request_it_is_given_to(ids: list[str], data: st.DataObject) -> None:
    others = data.draw(st.lists(uuids, min_size=len(ids), max_size=len(ids), unique=True))
    number = data.draw(st.integers(0, len(ids) - 1))
    answer = ModelAnswer("", [{"id": "c", "name": "f", "arguments": json.dumps({"event_id": ids[number]})}])
    recorded = with_marks(answer, ids_in(asked_with(*ids)))
    given_again = without_marks(recorded, ids_in(asked_with(*others)))
    assert json.loads(given_again.calls[0]["arguments"]) == {"event_id": others[number]}


@given(answers)
def test_an_answer_is_read_as_it_is_streamed_and_as_it_is_given_whole(answer: ModelAnswer) -> None:
    events = "".join(f"data: {json.dumps(event)}\n\n" for event in streamed(answer, "m"))
    assert read_answer(f"{events}data: [DONE]\n\n") == answer
    assert read_answer(json.dumps(whole(answer, "m"))) == answer


def test_an_answer_that_comes_in_pieces_is_put_together() -> None:
    pieces = [
        {"content": "Let "},
        {"content": "me."},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
    ]
    lines = [f"data: {json.dumps({'choices': [{'delta': piece}]})}" for piece in pieces]
    answer = read_answer("\n\n".join(lines))
    assert answer.text == "Let me."
    assert [(call["id"], call["name"], call["arguments"]) for call in answer.calls] == [
        ("a", "f", '{"x": 1}'),
        ("b", "g", "{}"),
    ]


def test_an_answer_that_breaks_off_does_so_when_it_is_given_again() -> None:
    event = json.dumps({"choices": [{"delta": {"content": "Let "}, "finish_reason": None}]})
    answer = read_answer(f": a proxy says that it is there\n\ndata: {event}\n\n")
    assert (answer.text, answer.finish_reason) == ("Let ", "")
    assert all(choice["finish_reason"] is None for event in streamed(answer, "m") for choice in event["choices"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is no recording"),
        ("not json\n", "line 1: it is no recording"),
        ('{"version": 9, "model": "m", "router": "m"}\n', "this program reads version 1"),
        ('{"version": 1, "model": "m", "router": "m"}\n{"name": "a"}\n', "line 2: it is no recording"),
    ],
)
def test_what_is_no_recording_is_refused_in_a_sentence(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(text)
    with pytest.raises(RecordingError, match=reason):
        read_recording(file)
