"""The rules refuse what Slack refuses: each limit from one side and from the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.slack.block_rules import metadata_mistakes, mistakes, text_mistakes
from tests.slack.block_builders import (
    Json,
    actions,
    button,
    confirm,
    feedback,
    items,
    mrkdwn,
    numbered,
    options,
    picture,
    plain,
    plan,
    section,
    table,
    task,
    words,
)
from tests.support.examples import examples

SHOWN: dict[str, list[Json]] = {
    "50 blocks": [{"type": "divider"}] * 50,
    "a section of 3,000 characters": [section("x" * 3000)],
    "10 fields of 1,300": [{"type": "section", "fields": [plain("x" * 1300)] * 10}],
    "a header of 150": [{"type": "header", "text": plain("x" * 150)}],
    "25 buttons": [actions(*numbered(25))],
    "the same action in two blocks": [actions(button()), actions(button())],
    "a button at its limits": [actions(button("x" * 75, value="v" * 2000, url="https://e.com/" + "x" * 2986))],
    "a confirmation at its limits": [actions(button(confirm=confirm(100, 300, 30)))],
    "10 of context": [{"type": "context", "elements": [mrkdwn("x")] * 10}],
    "a menu of 100": [actions({"type": "static_select", "action_id": "a", "options": options(100, "x" * 75)})],
    "pings that are only letters": [section("<!channel> <@U1>"), words({"type": "text", "text": "<!here>"})],
    "a mention of a user group and a date": [
        {"type": "section", "text": mrkdwn("<!subteam^S1> <!date^1^{date}|then>")}
    ],
    "rich text": [
        words({"type": "text", "text": "x", "style": {"bold": True}}, {"type": "link", "url": "https://e.com"})
    ],
    "a list": [items(indent=8, border=0)],
    "code": [
        {
            "type": "rich_text",
            "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x"}]}],
        }
    ],
    "a table at its limits": [table(100, 20, "12345")],
    "feedback": [{"type": "context_actions", "elements": [feedback()]}],
    "a plan at its limits": [plan(*(task(str(n), "x" * 256) for n in range(50)), title="x" * 256)],
    "13,000 characters": [words({"type": "text", "text": "x" * 13_000})],
}

REFUSED: dict[str, list[Any]] = {
    "51 blocks": [{"type": "divider"}] * 51,
    "no block at all": ["text"],
    "an unknown block": [{"type": "jukebox"}],
    "an unknown property": [{"type": "divider", "colour": "red"}],
    "two blocks with one id": [{"type": "divider", "block_id": "b"}, {"type": "divider", "block_id": "b"}],
    "an empty block_id": [{"type": "divider", "block_id": ""}],
    "a block_id of 256": [{"type": "divider", "block_id": "b" * 256}],
    "a section of 3,001 characters": [section("x" * 3001)],
    "an empty section": [section("")],
    "a section of nothing": [{"type": "section"}],
    "11 fields": [{"type": "section", "fields": [plain("x")] * 11}],
    "no fields": [{"type": "section", "fields": []}],
    "a field of 2,001": [{"type": "section", "fields": [plain("x" * 2001)]}],
    "a header of 151": [{"type": "header", "text": plain("x" * 151)}],
    "a header of mrkdwn": [{"type": "header", "text": mrkdwn("x")}],
    "a plan of 51 tasks": [plan(*(task(str(n)) for n in range(51)))],
    "a plan of something else": [plan(section("x"))],
    "a plan with one task twice": [plan(task(), task())],
    "a plan with a title of 257": [plan(task(), title="x" * 257)],
    "a task with a title of 257": [plan(task(title="x" * 257))],
    "a task with markup in its title": [plan(task(title="<!channel>"))],
    "a task of no known status": [plan(task(status="asleep"))],
    "a task with an output of text": [plan(task(output="x"))],
    "26 buttons": [actions(*numbered(26))],
    "no buttons": [actions()],
    "one action twice in a block": [actions(button(), button())],
    "an action_id of 256": [actions(button(action_id="a" * 256))],
    "a button of 76 characters": [actions(button("x" * 76))],
    "a value of 2,001": [actions(button(value="v" * 2001))],
    "an address of 3,001": [actions(button(url="https://e.com/" + "x" * 2987))],
    "a link that runs": [actions(button(url="javascript:alert(1)"))],
    "a green button": [actions(button(style="green"))],
    "a confirmation's title of 101": [actions(button(confirm=confirm(101)))],
    "a confirmation's text of 301": [actions(button(confirm=confirm(1, 301)))],
    "a confirmation's button of 31": [actions(button(confirm=confirm(1, 1, 31)))],
    "11 of context": [{"type": "context", "elements": [mrkdwn("x")] * 11}],
    "a text field among buttons": [actions({"type": "plain_text_input", "action_id": "a"})],
    "feedback among buttons": [actions(feedback())],
    "feedback with too much": [{"type": "context_actions", "elements": [feedback("x" * 2001)]}],
    "a menu of 101": [actions({"type": "static_select", "action_id": "a", "options": options(101)})],
    "an option of 76": [actions({"type": "static_select", "action_id": "a", "options": options(1, "x" * 76)})],
    "an option's value of 151": [
        actions({"type": "static_select", "action_id": "a", "options": options(1, "x", "v" * 150)})
    ],
    "a choice that is not offered": [
        actions({"type": "static_select", "action_id": "a", "options": options(1), "initial_option": options(2)[1]})
    ],
    "11 checkboxes": [actions({"type": "checkboxes", "action_id": "a", "options": options(11)})],
    "a picture": [picture()],
    "a picture in a corner": [{**section("x"), "accessory": picture()}],
    "a picture in context": [{"type": "context", "elements": [picture()]}],
    "a ping of the channel": [{"type": "section", "text": mrkdwn("<!channel> look")}],
    "a ping in context": [{"type": "context", "elements": [mrkdwn("<!here|here>")]}],
    "a ping in Markdown": [{"type": "markdown", "text": "<!everyone>"}],
    "a ping in rich text": [words({"type": "broadcast", "range": "channel"})],
    "an empty word": [words({"type": "text", "text": ""})],
    "a section without words": [words()],
    "rich text of nothing": [{"type": "rich_text", "elements": []}],
    "an unknown style": [words({"type": "text", "text": "x", "style": {"blink": True}})],
    "a style that is no boolean": [words({"type": "text", "text": "x", "style": {"bold": "yes"}})],
    "a link to nowhere": [words({"type": "link", "url": ""})],
    "a list nine deep": [items(indent=9)],
    "a list of squares": [items(style="square")],
    "a mention in code": [
        {
            "type": "rich_text",
            "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "user", "user_id": "U1"}]}],
        }
    ],
    "101 rows": [table(101, 1)],
    "21 columns": [table(1, 21)],
    "an empty cell": [table(1, 1, "")],
    "two tables": [table(1, 1), table(1, 1)],
    "a table of 10,001 characters": [table(1, 2, "x" * 5_001)],
    "rows of different lengths": [{"type": "table", "rows": [table(1, 1)["rows"][0], table(1, 2)["rows"][0]]}],
    "Markdown of 12,001": [{"type": "markdown", "text": "x" * 12_001}],
    "two Markdowns of 6,001": [{"type": "markdown", "text": "x" * 6_001}] * 2,
    "13,001 characters in all": [words({"type": "text", "text": "x" * 13_001})],
    "half a character": [section("\ud800")],
}


@pytest.mark.parametrize("blocks", SHOWN.values(), ids=SHOWN.keys())
def test_what_slack_shows_is_no_mistake(blocks: list[Json]) -> None:
    assert mistakes(blocks) == []


@pytest.mark.parametrize("blocks", REFUSED.values(), ids=REFUSED.keys())
def test_what_slack_refuses_is_a_mistake(blocks: list[Any]) -> None:
    assert mistakes(blocks) != []


def test_only_people_who_are_there_may_be_mentioned() -> None:
    blocks = [{"type": "section", "text": mrkdwn("<@U1> and <@U9>")}, words({"type": "user", "user_id": "U9"})]
    assert mistakes(blocks) == []
    assert len(mistakes(blocks, users={"U1"})) == 2
    assert mistakes(blocks, users={"U1", "U9"}) == []


@pytest.mark.parametrize(
    "text", ["a &lt; b", "<https://e.com|here>", "<@U1>", "<#C1>", "<mailto:a@e.com|a>", "@channel"]
)
def test_text_that_is_escaped_is_no_mistake(text: str) -> None:
    assert text_mistakes(text) == []


@pytest.mark.parametrize(
    "text", ["a < b", "<!channel>", "<!here|x>", "<@u1>", "<javascript:x|y>", "<<!channel>", "<@U1", "<"]
)
def test_text_that_is_not_escaped_is_a_mistake(text: str) -> None:
    assert text_mistakes(text) != []


def test_metadata_names_an_event_and_is_small() -> None:
    good = {"event_type": "countersign_post", "event_payload": {"post": "p1", "part": 1}}
    assert metadata_mistakes(good) == []
    assert metadata_mistakes({**good, "event_payload": "p1"}) != []
    assert metadata_mistakes({"event_payload": {}}) != []
    assert metadata_mistakes({**good, "event_payload": {"post": "x" * 8000}}) != []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "elements", "element", "accessory", "rows", "options", "style", "block_id"]
            )
            | st.text(max_size=3),
            inner | st.sampled_from(["section", "actions", "input", "rich_text", "table", "button", "static_select"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(50))
@given(st.lists(anything, max_size=3), st.sampled_from(["message", "modal", "home"]))
def test_nothing_that_is_sent_breaks_the_rules_themselves(blocks: list[Any], surface: str) -> None:
    wrong = mistakes(blocks, surface)
    assert all(isinstance(mistake, str) for mistake in wrong)
    json.dumps(wrong)
