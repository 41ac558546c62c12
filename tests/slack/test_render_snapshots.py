"""Everything looks as it did when somebody last looked at it (see `snapshot_files`)."""

from __future__ import annotations

import json

import pytest

from tests.fakes.slack.block_rules import mistakes, view_mistakes
from tests.slack.snapshot_files import EXAMPLES, FOLDER, written
from translations import NAMES, in_language


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_looks_as_before(name: str) -> None:
    assert written(name) == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_slack_would_show_it(name: str, language: str) -> None:
    with in_language(language):
        shown = json.loads(written(name))
    for one in shown if isinstance(shown, list) else [shown]:
        if "type" in one:
            assert view_mistakes(one, surface=one["type"]) == []
        else:
            assert mistakes(one["blocks"]) == []


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name.startswith("modal_")])
def test_the_title_and_the_buttons_of_a_modal_are_not_cut(name: str, language: str) -> None:
    with in_language(language):
        modal = json.loads(written(name))
    words = [modal[each]["text"] for each in ("title", "submit", "close") if each in modal]
    assert words
    assert [text for text in words if "…" in text] == []


def test_there_is_no_file_without_an_example() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXAMPLES)
