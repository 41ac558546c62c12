"""A form shows masks where secrets are; a mask never becomes an argument, and what was not touched stays true."""

from __future__ import annotations

from typing import Any

import pytest

from bot.forms import FormErrors, edit_fields, read_form
from bot.forms.editing import MASKED
from policies.redaction import Redactor

TOKEN = "ghp_" + "a1B2" * 9
MASK = "[secret: github token]"
SCHEMA = {
    "type": "object",
    "properties": {
        "what": {"type": "string"},
        "pin_password": {"type": "integer"},
        "more": {"type": "object"},
        "count": {"type": "integer"},
    },
}
ARGUMENTS = {"what": f"use {TOKEN}", "pin_password": 12345678, "more": {"note": TOKEN, "n": 1}, "count": 1}
SHOWN: dict[str, Any] = Redactor().redact_json(ARGUMENTS)
FIELDS, VALUES = edit_fields(SCHEMA, SHOWN, None)


def read(**entries: Any) -> dict[str, Any] | FormErrors:
    return read_form(SCHEMA, ARGUMENTS, None, {**VALUES, **entries}, shown=SHOWN)


def test_the_form_shows_masks_alone() -> None:
    assert VALUES["what"] == f"use {MASK}"
    assert VALUES["pin_password"] == "[secret: password]"
    assert TOKEN not in str(FIELDS) + str(VALUES)


def test_what_is_not_touched_keeps_its_secret() -> None:
    assert read() == ARGUMENTS
    assert read(count="2") == {**ARGUMENTS, "count": 2}


@pytest.mark.parametrize(
    ("name", "entry"), [("what", f"please use {MASK}"), ("what", MASK), ("more", f'{{"note": "{MASK}", "n": 2}}')]
)
def test_a_mask_never_becomes_an_argument(name: str, entry: str) -> None:
    assert read(**{name: entry}) == FormErrors({name: MASKED})


def test_what_is_written_anew_is_taken() -> None:
    assert read(what="use nothing") == {**ARGUMENTS, "what": "use nothing"}


def test_what_was_a_mask_when_it_was_asked_for_can_be_edited() -> None:
    asked = {"what": f"write down {MASK}"}
    read_back = read_form(SCHEMA, asked, None, {"what": f"keep {MASK}"}, shown=Redactor().redact_json(asked))
    assert read_back == {"what": f"keep {MASK}"}
