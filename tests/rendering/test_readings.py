"""Arguments as people read them: what they look like, and that no two calls read alike."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adapters.shared.arguments import CARD_ARGUMENTS, excerpt, excerpts_of_approval, unchanged_in_words
from adapters.shared.live.entries import arguments_json, content_json, grants_json
from adapters.shared.wording import WHOLE, call_title, more_in_list
from bot.card_masks import is_exact, masked, unseen_in_words
from bot.dates import number_in_words
from bot.domain import GrantView
from bot.readings import answer_in_words, readings, reads_exactly
from bot.views import result_line
from graph.presentation import CallPresentation, KnownId, presentation_of
from policies.masking import Masker
from policies.model import Tool
from tests.slack.shown import an_approval
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples
from tests.support.views import an_outcome
from translations import in_language

ASKED = 1_795_200_000.0
"""In November 2026."""
MASKER = Masker(key=b"a key")
STRING = {"type": "string"}
SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {**STRING, "title": "Title"},
        "start": {**STRING, "format": "date-time", "title": "Start"},
        "end": {"anyOf": [{**STRING, "format": "date-time"}, {"type": "null"}], "title": "End"},
        "due": {**STRING, "format": "date"},
        "at": {**STRING, "format": "time"},
        "urgent": {"type": "boolean"},
        "guests": {"type": "array", "items": STRING, "title": "Guests"},
        "priority": {"oneOf": [{"const": "1", "title": "High"}, {"const": "2", "title": "Low"}]},
    },
}


def a_tool(schema: dict[str, Any] | None = None, *, trusted: bool = True) -> Tool:
    return Tool(
        server="calendar",
        name="create_event",
        title="Create event",
        input_schema=SCHEMA if schema is None else schema,
        annotations_trusted=trusted,
    )


def shown_in(zone: str = "Europe/Berlin", schema: dict[str, Any] | None = None) -> CallPresentation:
    return presentation_of(a_tool(schema), zone, ASKED)


def lines(arguments: dict[str, Any], presentation: CallPresentation | None = None) -> list[tuple[str, str]]:
    return [(each.label, each.text) for each in readings(arguments, presentation or shown_in())]


def test_a_call_reads_as_people_would_say_it() -> None:
    arguments = {
        "title": "Standup",
        "start": "2026-11-22T09:00:00+01:00",
        "end": "2026-11-22T10:00:00+01:00",
        "due": "2026-11-23",
        "urgent": True,
        "guests": ["Ana", "Ben"],
        "priority": "1",
    }
    assert lines(arguments) == [
        ("Title", "Standup"),
        ("When", "Sun 22 Nov, 9:00–10:00 (Europe/Berlin)"),
        ("Due", "Mon 23 Nov"),
        ("Urgent", "yes"),
        ("Guests", "Ana, Ben"),
        ("Priority", "High"),
    ]
    assert reads_exactly(arguments, shown_in())


def test_days_and_times_have_the_form_of_the_language() -> None:
    start = {"start": "2026-11-22T09:00:00+01:00", "end": "2026-11-22T10:00:00+01:00"}
    with in_language("de"):
        assert lines(start)[0][1] == "So. 22. Nov., 9:00–10:00 (Europe/Berlin)"


def test_a_long_number_does_not_look_like_a_fraction_in_another_language() -> None:
    assert (more_in_list(1_234), number_in_words(2.14, decimals=1)) == ("1,234 more", "2.1")
    with in_language("de"):
        assert (more_in_list(1_234), number_in_words(2.14, decimals=1)) == ("1.234 weitere", "2,1")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2026-11-22T09:00:00+01:00", "Sun 22 Nov, 9:00 (Europe/Berlin)"),
        ("2027-11-22T09:00:05+01:00", "Mon 22 Nov 2027, 9:00:05 (Europe/Berlin)"),
        ("2026-11-22T08:00:00Z", "Sun 22 Nov, 9:00 (Europe/Berlin, given in UTC)"),
        ("2026-11-22T13:30:00+05:30", "Sun 22 Nov, 9:00 (Europe/Berlin, given in UTC+5:30)"),
        ("2026-10-25T02:30:00+02:00", "Sun 25 Oct, 2:30 (Europe/Berlin, UTC+2:00)"),
        ("2026-10-25T02:30:00+01:00", "Sun 25 Oct, 2:30 (Europe/Berlin, UTC+1:00)"),
        ("2026-03-29T02:30:00+01:00", "Sun 29 Mar, 3:30 (Europe/Berlin, given in UTC+1:00)"),
        ("2026-11-22T09:00:00", "Sun 22 Nov, 9:00 (no time zone)"),
        ("2026-11-22T09:00:00.5+01:00", "2026-11-22T09:00:00.5+01:00"),
        ("2026-11-22T09:00:00-00:00", "2026-11-22T09:00:00-00:00"),
        ("2026-02-30T09:00:00+01:00", "2026-02-30T09:00:00+01:00"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59-12:00"),
        ("Sun 22 Nov, 9:00 (Europe/Berlin)", '"Sun 22 Nov, 9:00 (Europe/Berlin)"'),
    ],
)
def test_a_moment_is_read_in_the_zone_of_the_requester(given: str, read: str) -> None:
    assert lines({"start": given}) == [("Start", read)]
    assert reads_exactly({"start": given}, shown_in())


def test_another_spelling_of_the_same_moment_is_told_by_the_fingerprint() -> None:
    view = an_approval(arguments={"start": "2026-11-22T09:00+01:00"}, presentation=shown_in())
    card = masked(view, MASKER)
    assert lines({"start": "2026-11-22T09:00+01:00"}) == [("Start", "Sun 22 Nov, 9:00 (Europe/Berlin)")]
    assert not card.exact
    assert card.fingerprint in unseen_in_words(card, "")


@pytest.mark.parametrize("zone", ["", "Nowhere/At_All", "../etc/passwd", "Europe", "\0", "x" * 10_000])
def test_where_no_such_zone_is_known_times_are_in_utc(zone: str) -> None:
    assert lines({"start": "2026-11-22T09:00:00+00:00"}, shown_in(zone))[0][1] == "Sun 22 Nov, 9:00 (UTC)"


def test_titles_of_a_server_that_is_not_trusted_are_not_labels() -> None:
    presentation = presentation_of(a_tool(trusted=False), "UTC", ASKED)
    assert lines({"guests": ["Ana"], "priority": "1"}, presentation) == [("Guests", "Ana"), ("Priority", '"1"')]
    assert not any(each.title or each.choices for each in presentation.arguments.values())


@pytest.mark.parametrize(
    "title",
    ["B", "b", "When", 'x"', "*bold*", "a\u202eb", "", " ", "a: b", "x" * 61, "<@U1>", "(nothing)", 5, None, []],
)
def test_no_title_makes_two_arguments_look_like_one(title: Any) -> None:
    schema = {"properties": {"a": {**STRING, "title": title}, "b": STRING, "when": STRING, **SCHEMA["properties"]}}
    presentation = shown_in(schema=schema)
    arguments = {"a": "1", "b": "1", "when": "1", "B": "1", "start": "2026-11-22T09:00:00+01:00", "When": "1"}
    shown = [label for label, _ in lines(arguments, presentation)]
    assert len({label.casefold() if label.istitle() else label for label in shown}) == len(arguments)


def test_an_argument_that_the_schema_does_not_have_never_takes_the_label_of_one_that_it_has() -> None:
    schema = {"properties": {"a": {**STRING, "title": "Other"}}}
    assert lines({"other": "1"}, shown_in(schema=schema)) == [('"other"', '"1"')]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(
        [
            "2026-11-22T09:00:00+01:00",
            "2026-11-22T09:00:00Z",
            "2026-11-22T09:00+01:00",
            "2026-11-22T08:00:00+00:00",
            "2026-11-22T09:00:00",
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T01:30:00Z",
            "2026-11-22",
            "2027-11-22",
            "09:00",
            "9:00",
            "09:00:00",
            "Sun 22 Nov",
            "Sun 22 Nov, 9:00 (Europe/Berlin)",
            '"Sun 22 Nov"',
            "High",
            "1",
            "2",
            "yes",
            "Ana, Ben",
            "Ana",
            "(none)",
            "(nothing)",
            "",
            '"Ana"',
        ]
    ),
    st.lists(
        st.sampled_from(["Ana", "Ben", "Ana, Ben", "yes", "1", "", " ", '"', "(none)", 1, True, None]), max_size=3
    ),
    st.datetimes().map(lambda at: at.isoformat()),
    st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()),
    st.text(max_size=8),
)
CALLS = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "when", "extra", "End"]), VALUES, max_size=4)


@given(CALLS, CALLS, st.sampled_from(["en", "de"]))
@example({"start": "2026-11-22T09:00:00+01:00"}, {"start": "Sun 22 Nov, 9:00 (Europe/Berlin)"}, "en")
@example({"guests": ["Ana"]}, {"guests": "Ana"}, "en")
@example({"guests": []}, {"guests": "(none)"}, "en")
@example({"at": "09:00"}, {"at": "9:00"}, "en")
@example({"when": "x"}, {"start": "x", "end": "x"}, "en")
@example({"urgent": "ja"}, {"urgent": True}, "de")
@settings(max_examples=examples(200), deadline=None)
def test_no_two_calls_read_alike(one: dict[str, Any], other: dict[str, Any], language: str) -> None:
    assume(json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    presentation = shown_in()
    assume(all(reads_exactly(each, presentation) and is_exact("s", "t", each) for each in (one, other)))
    with in_language(language):
        assert sorted(lines(one, presentation)) != sorted(lines(other, presentation))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
WORDS = st.sampled_from(
    ["type", "format", "title", "anyOf", "oneOf", "allOf", "$ref", "const", "enum", "properties", "required", "items"]
)
SCHEMAS = st.dictionaries(
    WORDS, JSON | st.sampled_from(["string", "date-time", "#/$defs/x", "#/properties"]), max_size=6
)


@given(st.dictionaries(st.text(max_size=5), SCHEMAS | JSON, max_size=4), JSON, JSON, st.text(max_size=10))
@settings(max_examples=examples(60), deadline=None)
def test_no_schema_and_no_argument_raises(properties: Any, required: Any, value: Any, zone: str) -> None:
    schema = {"properties": properties, "required": required, "$defs": properties}
    presentation = presentation_of(a_tool(schema), zone, ASKED)
    arguments = {**dict.fromkeys(properties, value), "x": value}
    assert CallPresentation.model_validate(presentation.model_dump(mode="json")) == presentation
    assert excerpt(arguments, presentation=presentation).pairs
    assert arguments_json(arguments, presentation)
    assert call_title(masked(an_approval(arguments=arguments, presentation=presentation), MASKER))


def test_a_huge_schema_and_huge_arguments_take_bounded_time() -> None:
    text = {**STRING, "title": "T" * 100_000, "format": "date-time"}
    schema = {"properties": {f"n{number}": text for number in range(20_000)}, "required": ["n1"] * 100_000}
    arguments = {f"n{number}": "2026-11-22T09:00:00+01:00" for number in range(20_000)}
    with at_most_cpu(0.05):
        presentation = presentation_of(a_tool(schema), "Europe/Berlin", ASKED)
    with at_most_cpu(0.05):
        shown = excerpt(arguments, presentation=presentation)
    assert len(presentation.arguments) == 100
    assert shown.unseen == f"{20_000 - CARD_ARGUMENTS:,} arguments hidden"


def test_an_end_of_a_span_that_stays_does_not_seem_to_be_gone() -> None:
    both = {"start": "2026-11-22T09:00:00+01:00", "end": "2026-11-22T10:00:00+01:00"}
    start, end = ({name: both[name]} for name in both)
    for asked, approved, told in (
        (both, end, ("Start", "Sun 22 Nov, 9:00 (Europe/Berlin) → (not given)")),
        (start, both, ("End", "(not given) → Sun 22 Nov, 10:00 (Europe/Berlin)")),
        (both, {**both, "end": None}, ("End", "Sun 22 Nov, 10:00 (Europe/Berlin) → (nothing)")),
    ):
        view = an_approval(arguments=approved, asked_arguments=asked, status="approved", presentation=shown_in())
        shown = excerpts_of_approval(view)(WHOLE)
        assert (shown.pairs, shown.unchanged) == ((told,), 1)


def test_what_all_arguments_refer_to_is_not_copied_for_each() -> None:
    long = {f"x-{number}": number for number in range(5_000)}
    schema = {
        "$defs": {"a": long | {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": long | {"type": "string", "format": "date"}},
        "properties": {f"n{number}": {"$ref": "#/$defs/a", "title": f"Day {number}"} for number in range(100)},
    }
    with at_most_cpu(0.05):
        presentation = presentation_of(a_tool(schema), "Europe/Berlin", ASKED)
    assert (presentation.arguments["n99"].kind, presentation.arguments["n99"].title) == ("date", "Day 99")


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_choice_is_called_what_a_yes_or_a_number_reads_like(language: str) -> None:
    named = {"1": "yes", "2": "no", "3": "ja", "4": "NaN", "5": "Low"}
    schema = {"properties": {"a": {"oneOf": [{"const": each, "title": title} for each, title in named.items()]}}}
    values = [*named, True, False, None, "yes", "Low"]
    with in_language(language):
        told = [lines({"a": value}, shown_in(schema=schema))[0][1] for value in values]
    assert told[4] == "Low"
    assert len({*told}) == len(values)


def test_what_is_hidden_is_counted() -> None:
    assert excerpt({"a": "x" * 700}).unseen == "223 characters hidden"
    assert excerpt({str(number): "x" for number in range(11)}).unseen == "1 argument hidden"
    assert excerpt({"a": "x"}).unseen == ""


# ------------------------------------------------------------------------------------------------ titles
def titled(arguments: dict[str, Any], *, trusted: bool = True, **how: Any) -> str:
    presentation = presentation_of(a_tool(trusted=trusted), "Europe/Berlin", ASKED).model_copy(update=how)
    view = an_approval(
        server="calendar", tool="create_event", title="Create event", arguments=arguments, presentation=presentation
    )
    return call_title(masked(view, MASKER))


def test_a_title_says_what_happens_to_what() -> None:
    assert titled({"title": "Standup"}) == "Create event: Standup"
    assert titled({"title": "Standup"}, trusted=False) == "calendar › “Create event”: Standup"
    assert titled({}) == "Create event"
    assert titled({"title": "a\n\u202eb"}) == "Create event: a ⟨U+202E⟩b"
    assert len(titled({"title": "x" * 10_000})) < 120


def test_an_id_in_a_title_is_what_it_stands_for_or_nothing() -> None:
    event = "877f2f0e-6b34-4b5e-9c6e-111111111111"
    known = KnownId(
        argument="id", value=event, title="Standup", at="2026-11-22T09:00:00+01:00", source="calendar › list_events"
    )
    assert titled({"id": event}, main="id", known_ids=(known,)) == "Create event: Standup, Sun 22 Nov, 9:00"
    assert titled({"id": "another"}, main="id", known_ids=(known,)) == "Create event"
    assert titled({"title": event}) == "Create event"


def test_what_stands_for_an_id_is_shown_with_its_source_and_the_id_counted() -> None:
    known = KnownId(argument="id", value="e" * 36, title="Standup", source="calendar › list_events")
    presentation = shown_in(schema={"properties": {"id": STRING}}).model_copy(update={"known_ids": (known,)})
    shown = excerpt({"id": "e" * 36}, presentation=presentation)
    assert shown.pairs == (("Id", "Standup (from calendar › list_events)"),)
    assert (shown.unseen, shown.only_ids) == ("ID hidden (36 characters)", True)
    assert not masked(an_approval(arguments={"id": "e" * 36}, presentation=presentation), MASKER).exact


# ------------------------------------------------------------------------------------------------ results
@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            '{"title": "Standup", "start": "2026-11-22T09:00:00+01:00", "end": "2026-11-22T10:00:00+01:00", "id": "1"}',
            "Standup, Sun 22 Nov, 9:00–10:00 (Europe/Berlin)",
        ),
        ('{"event": {"id": "877f", "title": "Standup"}}', "Standup"),
        ('{"title": "Buy milk", "due": "2026-11-23", "tags": ["a"]}', "Buy milk, Mon 23 Nov"),
        ('{"events": [{"id": 1}, {"id": 2}], "left_out": 0}', "2 entries"),
        ('{"id": "877f2f0e-6b34-4b5e-9c6e-111111111111", "ok": true}', ""),
        ('{"title": "877f2f0e-6b34-4b5e-9c6e-111111111111"}', ""),
        ("[1, 2]", ""),
        ("[draft] saved", "[draft] saved"),
        ("Sent to Ana.\nid: 877f2f0e", "Sent to Ana.… (12 more characters)"),
        ("", ""),
    ],
)
def test_a_result_is_what_people_know_it_by(result: str, said: str) -> None:
    assert result_line(result, shown_in()) == said


# ------------------------------------------------------------------------------------------------ edits, the page
def test_an_edit_shows_what_changed_and_counts_the_rest() -> None:
    asked = {"title": "Standup", "start": "2026-11-22T13:00:00+01:00", "guests": ["Ana"]}
    view = replace(
        an_approval(arguments={**asked, "start": "2026-11-22T14:30:00+01:00"}, presentation=shown_in()),
        asked_arguments=asked,
        status="approved",
    )
    shown = excerpts_of_approval(view)(WHOLE)
    assert shown.pairs == (("Start", "Sun 22 Nov, 13:00 → 14:30 (Europe/Berlin)"),)
    assert unchanged_in_words(shown) == "2 unchanged"
    assert shown.unseen == ""


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("2026-11-22T09:00+01:00", "2026-11-22T09:00:00+01:00", "{before} → {after}"),
        ("2026-11-22T09:00:00+01:00", "2026-11-22T09:00:30+01:00", "Sun 22 Nov, 9:00 → 9:00:30 (Europe/Berlin)"),
    ],
)
def test_an_edit_of_nothing_but_the_seconds_of_a_time_shows_them(before: str, after: str, change: str) -> None:
    """Rule 12."""
    view = an_approval(
        arguments={"start": after}, asked_arguments={"start": before}, status="approved", presentation=shown_in()
    )
    change = change.format(before=before, after=after)
    assert excerpts_of_approval(view)(WHOLE).pairs == (("Start", change),)
    (line,) = content_json(view)["arguments"]
    assert line["change"] == change


def test_an_edit_far_into_a_long_text_shows_the_place() -> None:
    asked, approved = ({"text": "x" * 5_000 + end} for end in "ab")
    view = an_approval(arguments=approved, asked_arguments=asked, status="approved")
    shown = excerpts_of_approval(view)(WHOLE)
    assert shown.pairs == (("Text", f"… {'x' * 20}a → … {'x' * 20}b"),)
    assert shown.unseen == "9,960 characters hidden"


@pytest.mark.parametrize("value", [2**53 - 1, 10**30])
def test_an_edit_beside_a_megabyte_of_large_integers_takes_bounded_time(value: int) -> None:
    """Rule 13."""
    count = 2_000_000 // len(str(value))
    asked = {"text": "a", "list": [value - each for each in range(count)]}
    approved = {"text": "b", "list": [value - each for each in range(count)]}
    view = an_approval(arguments=approved, asked_arguments=asked, status="approved")
    with at_most_cpu(0.05):
        shown = excerpts_of_approval(view)(WHOLE)
    assert (shown.pairs, shown.unchanged) == ((("Text", "a → b"),), 1)


def test_the_page_is_told_of_every_card_which_value_its_title_says() -> None:
    presentation = shown_in().model_copy(update={"main": "title"})
    call: dict[str, Any] = {"arguments": {"title": "Standup", "urgent": True}, "presentation": presentation}
    for view in (an_approval(**call), an_outcome(requester_id="web:ana", **call)):
        title, urgent = content_json(view)["arguments"]
        assert (title.get("titled"), urgent.get("titled")) == (True, None)
    (grant,) = grants_json([GrantView("g1", "calendar", "create_event", until=ASKED, title="Create event", **call)])[
        "grants"
    ]
    assert [line.get("titled") for line in grant["arguments"]] == [True, None]


def test_the_page_gets_what_people_read_and_what_it_is_letter_by_letter() -> None:
    (line,) = arguments_json({"due": "2026-11-22"}, shown_in())
    assert line == {"name": "Due", "value": "Sun 22 Nov", "shown": "Sun 22 Nov", "hidden": 0, "raw": "2026-11-22"}
    (plain,) = arguments_json({"title": "Standup"}, shown_in())
    assert "raw" not in plain


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [
        ("2026-11-26", "date", "Thu 26 Nov"),
        ("2027-01-04", "date", "Mon 4 Jan 2027"),
        ("09:05", "time", "9:05"),
        ("2026-11-26T15:00", "date-time", "Thu 26 Nov, 15:00"),
        ("2026-11-26T15:00:00+00:00", "date-time", "Thu 26 Nov, 15:00 (UTC)"),
        ("next week", "date", "next week"),
        ("soon", "date-time", "soon"),
        ("2026-11-26", "text", "2026-11-26"),
        (True, "yes-no", "yes"),
        (["red", "blue"], "json", "red, blue"),
        ({"a": 1}, "json", '{"a": 1}'),
        (2.5, "number", "2.5"),
    ],
)
def test_what_was_filled_in_is_read_by_the_type_of_its_field(value: Any, kind: str, read: str) -> None:
    assert answer_in_words(value, kind, 2026) == read
