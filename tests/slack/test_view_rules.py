"""The rules refuse modals and home tabs that Slack refuses: each limit from one side and from the other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.slack.block_rules import view_mistakes
from tests.slack.block_builders import Json, button, field, options, plain, section, table


def modal(*blocks: Json, **more: Any) -> Json:
    return {"type": "modal", "title": plain("Edit"), "submit": plain("Approve"), "blocks": list(blocks), **more}


TEXT = {"type": "plain_text_input"}

ASKED: dict[str, Json] = {
    "100 blocks": modal(*[section("x")] * 100),
    "many inputs with one action_id": modal(field(TEXT, block_id="a"), field(TEXT, block_id="b")),
    "a text of 3,000": modal(field({**TEXT, "initial_value": "x" * 3000})),
    "an optional number": modal(
        field({"type": "number_input", "is_decimal_allowed": True, "initial_value": "1.5"}, optional=True)
    ),
    "a day": modal(field({"type": "datepicker", "initial_date": "2026-11-21"})),
    "a time": modal(field({"type": "timepicker", "initial_time": "23:59"})),
    "a moment": modal(field({"type": "datetimepicker", "initial_date_time": 1_795_000_000})),
    "a ticked box": modal(field({"type": "checkboxes", "options": options(1), "initial_options": options(1)})),
    "a person": modal(field({"type": "users_select", "initial_user": "U1"})),
    "titles of 24": modal(title=plain("x" * 24), submit=plain("x" * 24), close=plain("x" * 24)),
    "metadata of 3,000": modal(private_metadata="x" * 3000, callback_id="c" * 255),
    "only words, without submit": {"type": "modal", "title": plain("Note"), "blocks": [section("x")]},
}

NOT_ASKED: dict[str, Any] = {
    "nothing": None,
    "101 blocks": modal(*[section("x")] * 101),
    "an input without submit": {"type": "modal", "title": plain("Note"), "blocks": [field(TEXT)]},
    "no title": {"type": "modal", "blocks": []},
    "a title of 25": modal(title=plain("x" * 25)),
    "a submit of 25": modal(submit=plain("x" * 25)),
    "a close of 25": modal(close=plain("x" * 25)),
    "metadata of 3,001": modal(private_metadata="x" * 3001),
    "a callback_id of 256": modal(callback_id="c" * 256),
    "a text of 3,001": modal(field({**TEXT, "initial_value": "x" * 3001})),
    "more text than it takes": modal(field({**TEXT, "initial_value": "xxx", "max_length": 2})),
    "a maximum of 3,001": modal(field({**TEXT, "max_length": 3001})),
    "a placeholder of 151": modal(field({**TEXT, "placeholder": plain("x" * 151)})),
    "a label of 2,001": modal({**field(TEXT), "label": plain("x" * 2001)}),
    "a hint of 2,001": modal(field(TEXT, hint=plain("x" * 2001))),
    "a button as an input": modal({"type": "input", "label": plain("x"), "element": button()}),
    "no such day": modal(field({"type": "datepicker", "initial_date": "2026-02-30"})),
    "a day in words": modal(field({"type": "datepicker", "initial_date": "today"})),
    "no such time": modal(field({"type": "timepicker", "initial_time": "24:00"})),
    "a moment in text": modal(field({"type": "datetimepicker", "initial_date_time": "1795000000"})),
    "a number that is none": modal(
        field({"type": "number_input", "is_decimal_allowed": False, "initial_value": "1.5"})
    ),
    "a number of an unknown kind": modal(field({"type": "number_input"})),
    "two in focus": modal(field({**TEXT, "focus_on_load": True}), field({**TEXT, "focus_on_load": True})),
    "a table": modal(table(1, 1)),
    "Markdown": modal({"type": "markdown", "text": "x"}),
    "a home tab": {"type": "home", "blocks": []},
    "250 kB": modal(*[{"type": "section", "fields": [plain("x" * 2000)] * 10}] * 13),
}


@pytest.mark.parametrize("view", ASKED.values(), ids=ASKED.keys())
def test_a_modal_that_slack_opens_is_no_mistake(view: Json) -> None:
    assert view_mistakes(view) == []


@pytest.mark.parametrize("view", NOT_ASKED.values(), ids=NOT_ASKED.keys())
def test_a_modal_that_slack_does_not_open_is_a_mistake(view: Any) -> None:
    assert view_mistakes(view) != []


def test_a_home_tab_holds_100_blocks_and_no_title() -> None:
    home = {"type": "home", "blocks": [section("x")] * 100}
    assert view_mistakes(home, surface="home") == []
    assert view_mistakes({**home, "blocks": [section("x")] * 101}, surface="home") != []
    assert view_mistakes({**home, "title": plain("Home")}, surface="home") != []
