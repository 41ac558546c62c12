"""Everything looks as it did when somebody last looked at it (see `snapshot_files`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from tests.fakes.teams import activity_rules, card_rules
from tests.teams.examples import activities, cards, dialogs
from tests.teams.snapshot_files import FOLDER, examples, written
from translations import NAMES, in_language

FILES = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", FILES)
def test_it_looks_as_before(name: str) -> None:
    assert written(all_examples()[name]) == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def test_there_is_a_file_of_each_example_and_no_other() -> None:
    assert set(FILES) == set(all_examples())


@pytest.mark.parametrize("language", NAMES)
def test_teams_would_show_every_post(language: str) -> None:
    with in_language(language):
        shown = [(name, dict(activity)) for name, parts in activities().items() for activity in parts]
    for rule in (activity_rules.refusals, activity_rules.product_mistakes):
        wrong = {name: found for name, activity in shown if (found := rule(activity))}
        assert wrong == {}


@pytest.mark.parametrize("language", NAMES)
def test_teams_would_show_every_card_and_every_dialog(language: str) -> None:
    with in_language(language):
        wrong = {name: card_rules.mistakes(card, "message") for name, card in cards().items()}
        wrong |= {name: card_rules.mistakes(dialog.card, "dialog") for name, dialog in dialogs().items()}
    assert {name: mistakes for name, mistakes in wrong.items() if mistakes} == {}


@cache
def all_examples() -> Mapping[str, Any]:
    """Made once: for one of them, all have to be."""
    return examples()
