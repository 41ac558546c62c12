"""What a question of a server becomes, and which are put to nobody."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from functools import reduce
from typing import Any, cast
from unittest.mock import AsyncMock

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from adapters.tool_servers.elicitation import QuestionRefused, form_question, link_question
from adapters.tool_servers.incoming import BoundedEvents, Intake, Substitutes, elicitation_in
from adapters.tool_servers.text import unchanged
from bot.forms.editing import read_elicited
from bot.forms.values import FormErrors
from graph.interrupts import MOST_OFFERED, FieldType
from graph.ports import QuestionPut, SignInNeeded
from tests.support.examples import examples


def asked(properties: Any, message: str = "Please tell", **schema: Any) -> QuestionPut | QuestionRefused:
    return form_question("shop", message, {"type": "object", "properties": properties, **schema}, 1, unchanged)


def test_fields_have_the_servers_titles_and_types() -> None:
    put = asked(
        {
            "day": {"type": "string", "format": "date", "title": "Which day"},
            "pet": {"oneOf": [{"const": "c", "title": "Cat"}, {"const": "d", "title": "Dog"}]},
            "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "sure": {"type": "boolean"},
        },
        required=["day", "sure"],
    )
    assert isinstance(put, QuestionPut)
    day, pet, many, sure = put.fields
    assert (day.label, day.type, day.required) == ("Which day", FieldType.DATE, True)
    assert (pet.options, pet.required, pet.help) == (("c", "d"), False, "c: Cat; d: Dog")
    assert (many.type, many.options, many.help) == (FieldType.JSON, ("a", "b"), "Choose any number.")
    assert sure.type == FieldType.YES_NO


def test_no_more_options_are_offered_than_can_be_drawn_and_the_others_are_typed() -> None:
    """Rule 13: forty lists of a hundred long options held the event loop for 0.3 s whenever the question was shown."""
    options = [f"{'x' * 90}{number:02}" for number in range(100)]
    menu, ticks = {"enum": options}, {"type": "array", "items": {"enum": [f"{'y' * 90}{n}" for n in range(100)]}}
    properties = {f"a{number}": {"$ref": "#/$defs/menu"} for number in range(36)} | dict.fromkeys("bcde", ticks)
    schema = {"type": "object", "properties": properties, "$defs": {"menu": menu}}
    put = form_question("shop", "Which?", schema, 1, unchanged)
    assert isinstance(put, QuestionPut)
    assert len(put.fields) == 40
    assert 0 < sum(len(option) for field in put.fields for option in field.options) <= MOST_OFFERED
    assert not put.fields[30].options
    assert read_elicited(put.fields, put.schema, {"a30": options[3]}) == {"a30": options[3]}
    assert isinstance(read_elicited(put.fields, put.schema, {"a30": "anything"}), FormErrors)


def test_a_list_of_anything_else_is_typed_as_json() -> None:
    put = asked({"x": {"type": "array", "items": {"type": "object"}}, "y": {"type": "array"}})
    assert isinstance(put, QuestionPut)
    assert [(field.type, field.options, field.help) for field in put.fields] == [(FieldType.JSON, (), "As JSON.")] * 2


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("password", {}),
        ("userPassword", {}),
        ("api_key", {}),
        ("apiKey", {}),
        ("x", {"title": "Your PIN"}),
        ("x", {"title": "Access token"}),
        ("x", {"description": "Paste your API key here"}),
        ("x", {"description": "the one-time code we sent"}),
        ("x", {"format": "password"}),
        ("x", {"writeOnly": True}),
        ("credit_card_number", {}),
        ("clientSecret", {}),
        ("cvv", {}),
    ],
)
def test_what_looks_like_a_secret_is_refused(name: str, more: dict[str, Any]) -> None:
    refused = asked({"harmless": {"type": "string"}, name: {"type": "string", **more}})
    assert isinstance(refused, QuestionRefused)
    assert "looks like a secret" in refused.notice


@pytest.mark.parametrize(
    "message", ["Enter your password, please", "What is your PIN?", "Type the token", "Bitte das Passwort", "Passwords"]
)
def test_a_message_that_asks_for_a_secret_is_refused(message: str) -> None:
    assert isinstance(asked({"value": {"type": "string"}}, message), QuestionRefused)


@pytest.mark.parametrize(
    "hidden",
    [
        {"login": {"type": "object", "properties": {"password": {"type": "string"}}}},
        {"all": {"type": "array", "items": {"type": "object", "properties": {"api_key": {"type": "string"}}}}},
        {"one": {"anyOf": [{"type": "object", "properties": {"pin": {"type": "integer"}}}]}},
    ],
)
def test_a_secret_is_found_however_deep_it_is(hidden: dict[str, Any]) -> None:
    assert isinstance(asked(hidden), QuestionRefused)


def test_a_title_of_the_whole_form_counts_too() -> None:
    assert isinstance(asked({"value": {"type": "string"}}, title="Your password"), QuestionRefused)


@pytest.mark.parametrize(
    "only",
    [
        {"sure": {"type": "boolean", "title": "Reset the password?"}},
        {"pin": {"type": "boolean"}},
        {"token": {"type": "string", "enum": ["comma", "semicolon"]}},
        {"password_expires": {"type": "string", "format": "date"}},
    ],
)
def test_what_can_hold_no_secret_is_asked(only: dict[str, Any]) -> None:
    assert isinstance(asked(only, "Ana's password will expire"), QuestionPut)


def test_a_link_is_in_no_question_since_everybody_sees_it() -> None:
    """Rule 7: links to sign in with go to one person only, and nothing tells them from others."""
    secret = "https://idp.test/authorize?client_id=c&response_type=code&state=zzz"
    fields = {
        "done": {"type": "boolean", "title": f"Open {secret}", "description": f"At {secret}"},
        "site": {"type": "string", "enum": ["https://a.test/", "https://b.test/"]},
    }
    got = asked(fields, f"Open {secret} first")
    assert isinstance(got, QuestionPut)
    assert got.message == "Open (link) first"
    assert "zzz" not in str(got)
    assert got.schema["properties"]["site"]["enum"] == ["https://a.test/", "https://b.test/"]


@pytest.mark.parametrize(
    "name", ["author", "keyword", "spinach", "max_tokens", "monkey", "opinion", "passenger", "cat"]
)
def test_what_only_resembles_a_secret_is_asked(name: str) -> None:
    assert isinstance(asked({name: {"type": "string"}}), QuestionPut)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "array", "properties": {}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {str(n): {"type": "string"} for n in range(41)}},
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "object", "properties": {"a": {"type": "number", "maximum": float("inf")}}},
        {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 70_000}}},
    ],
)
def test_what_is_no_form_is_refused(schema: dict[str, Any]) -> None:
    assert isinstance(form_question("shop", "Please tell", schema, 1, unchanged), QuestionRefused)


@settings(max_examples=examples(20))
@given(st.recursive(st.none() | st.booleans() | st.text() | st.integers(), lambda of: st.dictionaries(st.text(), of)))
def test_no_schema_makes_it_fail(of: Any) -> None:
    assert isinstance(asked({"a": of, "b": of}), QuestionPut | QuestionRefused)


@pytest.mark.parametrize(
    "limits",
    [
        {"maximum": 2**256},
        {"minimum": -(2**64)},
        {"default": 10**30},
        {"examples": reduce(lambda inner, _: [inner], range(300), cast(Any, 1))},
        {"x-hints": [{"half \ud83d": 1}]},
    ],
)
def test_what_no_checkpoint_takes_is_put_to_nobody(limits: dict[str, Any]) -> None:
    """Rules 4 and 10: such a question failed its turn again and again, and what calls of other servers beside it had
    done, which was known, was recorded as unknown."""
    assert isinstance(asked({"n": {"type": "integer", **limits}}), QuestionRefused)


def test_a_field_whose_name_no_checkpoint_takes_is_put_to_nobody() -> None:
    """Rules 4 and 10: half of an emoji at which a server had cut a field's name did the same."""
    assert isinstance(asked({"who \ud83d": {"type": "string"}}), QuestionRefused)


def test_text_of_a_question_with_half_a_character_is_kept() -> None:
    put = asked({"who": {"type": "string", "title": "\ud83d", "enum": ["\ud83d", "Ana"]}})
    assert isinstance(put, QuestionPut)
    assert JsonPlusSerializer().dumps_typed([[field.model_dump(mode="json") for field in put.fields], dict(put.schema)])


def test_a_number_may_be_bounded_by_what_a_long_holds() -> None:
    put = asked({"n": {"type": "integer", "minimum": -(2**63) + 1, "maximum": 2**63 - 1}})
    assert isinstance(put, QuestionPut)
    assert JsonPlusSerializer().dumps_typed([[field.model_dump(mode="json") for field in put.fields], dict(put.schema)])


def test_a_link_must_be_one_for_a_browser() -> None:
    assert link_question("shop", "Pay", "https://pay.test/", "e", unchanged) == SignInNeeded(
        "https://pay.test/", "Pay", "e"
    )
    assert isinstance(link_question("shop", "Pay", "javascript:alert(1)", "e", unchanged), QuestionRefused)


def test_the_same_words_and_schema_are_the_same_question() -> None:
    first, again = asked({"a": {"type": "string"}}), asked({"a": {"type": "string"}})
    others = [asked({"a": {"type": "string"}}, "Else"), asked({"a": {"type": "integer"}})]
    assert isinstance(first, QuestionPut)
    assert isinstance(again, QuestionPut)
    assert first.digest == again.digest
    assert first.digest not in {other.digest for other in others if isinstance(other, QuestionPut)}


STREAM = (
    b": hello\r\nevent: message\r\nid: 1\r\n"
    b'data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}\r\n\r\n'
    b'data: {"jsonrpc":"2.0","id":8,\ndata:"method":"elicitation/create"}\n\n'
    b'data: {"jsonrpc":"2.0","id":9,"method":"ping"}\n\n'
    b'data: {"jsonrpc":"2.0","id":true,"method":"elicitation/create"}\n\n'
    b"data: elicitation/create\n\n"
    b'data: {"jsonrpc":"2.0","id":"x","method":"elicitation/create"}\n\n'
    b'data: {"jsonrpc":"2.0","id":10,"method":"elicitation/create"}'
)


class Cut(httpx.AsyncByteStream):
    """A stream that comes in pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@settings(max_examples=examples(20))
@given(st.lists(st.integers(0, len(STREAM))))
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_questions_are_taken_out_of_a_stream_however_it_is_cut(line_end: bytes, cuts: list[int]) -> None:
    found: list[Any] = []

    def asked(data: bytes) -> bool:
        question = elicitation_in(data, 1, AsyncMock())
        found.append(question.id if question else None)
        return question is not None

    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", line_end)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in itertools.pairwise(places)]

    async def given_on() -> bytes:
        events = BoundedEvents(Cut(*pieces), Intake(), Substitutes(), asked, silence=5, patience=5)
        return b"".join([event async for event in events])

    rest = asyncio.run(given_on())
    assert [each for each in found if each is not None] == [7, 8, "x"]
    assert b'"id":7' not in rest
    assert b": hello\nevent: message\nid: 1\n\n" in rest, "from here the stream can be taken up again"
    assert b'data: {"jsonrpc":"2.0","id":9,"method":"ping"}\n\n' in rest
