"""The rules refuse what Teams or our product refuses: each limit from one side and from the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.teams.activity_rules import product_mistakes, refusals
from tests.fakes.teams.card_rules import CARD_BYTES, mistakes
from tests.fakes.teams.text_rules import card_text_mistakes, message_text_mistakes
from tests.support.examples import examples
from tests.teams.asking import message, with_card
from tests.teams.card_builders import (
    Json,
    asks,
    card,
    choices,
    data,
    execute,
    facts,
    mention,
    opens,
    refreshing,
    runs,
    submit,
    text,
    unfolds,
)

ROOM = CARD_BYTES - len(json.dumps(card(text(""))))
"""Characters that a card with one paragraph has room for."""

SHOWN: dict[str, Json] = {
    "a mention": card(text("For <at>Ana</at>"), msteams={"entities": [mention("29:a", "Ana")]}),
    "a paragraph": card(text("Hello **you**", size="Large", weight="Bolder", style="heading")),
    "literal text": card(runs("a", {"type": "TextRun", "text": "[x](y)", "color": "attention", "italic": True})),
    "facts": card(facts()),
    "28 KB": card(text("x" * ROOM)),
    "columns": card({"type": "ColumnSet", "columns": [{"width": "stretch", "items": [text("x")]}]}),
    "a container": card({"type": "Container", "style": "warning", "items": [text("x")], "bleed": True}),
    "a table": card(
        {
            "type": "Table",
            "columns": [{"width": 1}],
            "rows": [{"type": "TableRow", "cells": [{"type": "TableCell", "items": [text("x")]}]}],
        }
    ),
    "buttons": card(actions=[execute(), opens(), unfolds(asks())]),
    "something instead of what unfolds": card(actions=[{**unfolds(asks()), "fallback": opens("reject_dialog")}]),
    "5 buttons": card(actions=[execute()] * 5),
    "a page to open": card(actions=[{"type": "Action.OpenUrl", "title": "Open", "url": "https://example.com/x"}]),
    "60 people": card(refresh=refreshing(*(f"29:{number}" for number in range(60)))),
    "inputs": card(
        asks(maxLength=5, value="x" * 5, regex="^x+$", isRequired=True, errorMessage="Only x"),
        asks("Number", "count", min=1, max=2.5, value=2),
        asks("Date", "day", value="2026-11-21"),
        asks("Time", "hour", value="09:30"),
        {"type": "Input.Toggle", "id": "yes", "title": "Yes", "value": "true"},
        choices("a", "b", isMultiSelect=True, value="a,b", style="expanded"),
    ),
    "a link that shows its host": card(text("[example.com](https://example.com/path)")),
    "a link with its host behind": card(text("[The report](https://example.com/path) [1] (example.com)")),
    "all the width": card(msteams={"width": "Full"}),
}

REFUSED: dict[str, Any] = {
    "nothing": None,
    "a list": [],
    "no body": {"type": "AdaptiveCard", "version": "1.5", "fallbackText": "x"},
    "no version": {"type": "AdaptiveCard", "fallbackText": "x", "body": [text("x")]},
    "version 1.6": card(version="1.6"),
    "version 1.4": card(version="1.4"),
    "no fallback text": card(fallbackText=""),
    "more than 28 KB": card(text("x" * (ROOM + 1))),
    "28 KB that grow": card(text("ä" * (ROOM // 4))),
    "an unknown element": card({"type": "Jukebox"}),
    "an element of 1.6": card({"type": "Carousel", "pages": []}),
    "an unknown property": card(text("x", colour="red")),
    "a null": card(text("x", color=None)),
    "a wrong word": card(text("x", color="pink")),
    "an empty paragraph": card(text("")),
    "text that is clipped": card({"type": "TextBlock", "text": "x"}),
    "half a character": card(text("\ud800")),
    "an empty container": card({"type": "Container", "items": []}),
    "a picture": card({"type": "Image", "url": "https://example.com/x.png"}),
    "a picture behind": card({"type": "Container", "items": [text("x")], "backgroundImage": "https://e.com/x.png"}),
    "an icon": card(actions=[execute(iconUrl="https://example.com/x.png")]),
    "a picture in Markdown": card(text("![x](https://example.com/x.png)")),
    "a hidden host": card(text("[the report](https://example.com)")),
    "a hidden host in a fact": card(facts(value="[x](https://example.com)")),
    "a hidden host in a label": card(asks(label="[x](https://example.com)")),
    "a hidden host in backticks": card(text("`[x](https://example.com)`")),
    "a wrong host": card(text("[https://bank.example](https://evil.example/?bank.example) (evil.example)")),
    "a link that runs": card(text("[javascript:x](javascript:x)")),
    "a page that runs": card(actions=[{"type": "Action.OpenUrl", "title": "x", "url": "javascript:alert(1)"}]),
    "a page without host": card(actions=[{"type": "Action.OpenUrl", "title": "x", "url": "https:///x"}]),
    "6 buttons": card(actions=[execute()] * 6),
    "5 buttons and a menu": card(actions=[*[execute()] * 5, {**execute("skip"), "mode": "secondary"}]),
    "6 buttons within": card({"type": "ActionSet", "actions": [execute()] * 6}),
    "6 buttons behind one": card(actions=[unfolds(text("x"), actions=[execute()] * 6)]),
    "a button without a title": card(actions=[{**execute(), "title": ""}]),
    "something to read instead": card(actions=[{**unfolds(asks()), "fallback": text("x")}]),
    "no verb": card(actions=[{**execute(), "verb": ""}]),
    "another verb": card(actions=[execute(verb="reject")]),
    "no fallback": card(actions=[{name: value for name, value in execute().items() if name != "fallback"}]),
    "another fallback": card(actions=[execute(fallback=submit("reject"))]),
    "other inputs in the fallback": card(actions=[execute(associatedInputs="none")]),
    "more than an id": card(actions=[execute(data=data("approve", amount=5))]),
    "no data": card(actions=[execute(data="approve")]),
    "a number for an id": card(actions=[execute(data={"countersign": "approve", "id": 5})]),
    "a dialog by Execute": card(actions=[execute(data=data("approve", msteams={"type": "task/fetch"}))]),
    "something else to Teams": card(actions=[submit("edit", msteams={"type": "imBack", "value": "hi"})]),
    "61 people": card(refresh=refreshing(*(f"29:{number}" for number in range(61)))),
    "nobody": card(refresh=refreshing()),
    "people by object id": card(refresh=refreshing("a0000000-0000-4000-8000-00000000000a")),
    "somebody twice": card(refresh=refreshing("29:a", "29:a")),
    "a mention of nobody who is in the text": card(msteams={"entities": [mention("29:a", "Ana")]}),
    "a mention without its entity": card(text("For <at>Ana</at>")),
    "a mention of no address": card(text("For <at>Ana</at>"), msteams={"entities": [mention("a", "Ana")]}),
    "two inputs of one name": card(asks(), asks()),
    "an input's name behind a button": card(asks(), actions=[unfolds(asks())]),
    "an input without a name": card({"type": "Input.Text", "label": "Why"}),
    "an input without a label": card({"type": "Input.Text", "id": "x"}),
    "required, and no word why": card(asks(isRequired=True)),
    "a value that is too long": card(asks(maxLength=1, value="xx")),
    "a pattern that is none": card(asks(regex="(")),
    "a date that is none": card(asks("Date", "day", value="tomorrow")),
    "a number in words": card(asks("Number", "count", value="two")),
    "one value twice": card(choices("a", "a")),
    "a comma among several": card(choices("a,b", isMultiSelect=True)),
    "a choice that is not offered": card(choices("a", value="b")),
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN.keys())
def test_what_teams_shows_is_no_mistake(shown: Json) -> None:
    assert mistakes(shown) == []


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_what_teams_or_our_product_refuses_is_a_mistake(refused: Any) -> None:
    assert mistakes(refused) != []


def test_dialogs_are_submitted_and_messages_executed() -> None:
    in_message, in_dialog = card(actions=[execute(), opens()]), card(asks(), actions=[submit()])
    assert mistakes(in_message, "message") == mistakes(in_dialog, "dialog") == []
    assert len(mistakes(in_message, "dialog")) == 2
    assert mistakes(card(refresh=refreshing("29:a")), "dialog") != []


@pytest.mark.parametrize("markdown", ["a \\[x\\](https://e.com)", "1 \\* 2", "&lt;b&gt;", "<https://e.com>", "`x`"])
def test_markdown_that_hides_nothing_is_no_mistake(markdown: str) -> None:
    assert [*card_text_mistakes(markdown), *message_text_mistakes(markdown)] == []


@pytest.mark.parametrize(
    "markdown",
    ["<b>bold</b>", "<at>Ana</at>", "x < /at >", "<img src=x>", "[x](https://e.com)", "![](https://e.com)", "<!-- -->"],
)
def test_markdown_of_messages_has_no_html_and_no_pings(markdown: str) -> None:
    assert list(message_text_mistakes(markdown)) != []


def test_a_mention_is_in_the_text_and_among_the_entities() -> None:
    assert list(message_text_mistakes("hello <at>Ana</at>", ["<at>Ana</at>"])) == []
    assert list(message_text_mistakes("hello Ana", ["<at>Ana</at>"])) != []


# ------------------------------------------------------------------------------------------- whole activities


def root(**facts: Any) -> Json:
    return {"type": "https://schema.org/Message", "@type": "Message", "@context": "https://schema.org", **facts}


def cited(position: int = 1, **changes: Any) -> Json:
    appearance = {"@type": "DigitalDocument", "name": "Report", "url": "https://example.com", **changes}
    return {"@type": "Claim", "position": position, "appearance": appearance}


def test_an_answer_with_label_sources_and_feedback_is_no_mistake() -> None:
    sources = [cited(number, name="n" * 80, abstract="a" * 160) for number in range(1, 21)]
    shown = " ".join(f"[{number}]" for number in range(1, 21))
    entity = root(additionalType=["AIGeneratedContent"], citation=sources)
    answer = message(shown, entities=[entity], channelData={"feedbackLoop": {"type": "default"}})
    assert refusals(answer) == product_mistakes(answer) == []
    assert product_mistakes(with_card(card())) == []


@pytest.mark.parametrize(
    "entities",
    [
        [root(), root()],
        [root(additionalType=["Human"])],
        [{"type": "https://schema.org/Message"}],
        [root(citation=[cited(number) for number in range(1, 22)])],
        [root(citation=[cited(name="n" * 81)])],
        [root(citation=[cited(abstract="a" * 161)])],
        [root(citation=[cited(url="javascript:x")])],
        [root(citation=[{"@type": "Claim", "position": 1, "appearance": {}}])],
        [{"type": "mention", "text": "<at>x</at>"}],
        "x",
    ],
    ids=["two roots", "label", "bare", "21 sources", "name", "abstract", "address", "empty", "mention", "no list"],
)
def test_entities_of_the_wrong_shape_are_refused(entities: Any) -> None:
    assert refusals(message("[1]", entities=entities)) != []


@pytest.mark.parametrize(
    "activity",
    [
        with_card(card(), text="beside it"),
        {**with_card(card()), "summary": ""},
        {"type": "message", "attachments": [{"contentType": "text/html", "content": "x"}]},
        message("x", textFormat="xml"),
        message("x", channelData={"feedbackLoopEnabled": True}),
        message("x", channelData={"feedbackLoop": {"type": "custom"}}),
        message("x", entities=[{"type": "clientInfo"}]),
        message("no mark", entities=[root(citation=[cited()])]),
        {"type": "trace"},
    ],
    ids=["text beside", "summary", "HTML file", "xml", "old loop", "form", "client", "no mark", "trace"],
)
def test_what_our_product_does_not_send_is_noted(activity: Json) -> None:
    assert product_mistakes(activity) != []


# ------------------------------------------------------------------------------------------- the rules themselves

words = st.sampled_from(
    [
        "AdaptiveCard",
        "TextBlock",
        "Container",
        "ColumnSet",
        "Action.Execute",
        "Action.ShowCard",
        "Input.Text",
        "1.5",
        "a",
    ]
)
names = st.sampled_from(
    ["type", "body", "items", "columns", "actions", "card", "text", "data", "id", "version", "refresh", "fallback"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=3), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=examples(50))
@given(anything, st.sampled_from(["any", "message", "dialog"]))
def test_nothing_that_is_sent_breaks_the_rules_themselves(something: Any, surface: Any) -> None:
    within = card({"type": "Container", "items": [something]}, actions=[something])
    for tried in (something, within):
        wrong = mistakes(tried, surface)
        assert all(isinstance(mistake, str) for mistake in wrong)
        json.dumps(wrong)


@settings(max_examples=examples(35))
@given(st.dictionaries(st.sampled_from(["type", "text", "attachments", "entities", "channelData"]), anything))
def test_no_activity_breaks_the_rules_themselves(activity: Json) -> None:
    if not refusals(activity):
        assert all(isinstance(mistake, str) for mistake in product_mistakes(activity))
