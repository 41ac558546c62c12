"""Everything looks as it did when somebody last looked at it (see `snapshot_files`)."""

from __future__ import annotations

import pytest

from tests.fakes.teams import activity_rules, card_rules
from tests.teams.examples import activities, cards, dialogs
from tests.teams.snapshot_files import FOLDER, examples, written
from translations import NAMES, in_language

EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_looks_as_before(name: str) -> None:
    assert written(EXAMPLES[name]) == (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def test_there_is_no_file_without_an_example() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(EXAMPLES)


@pytest.mark.parametrize("language", NAMES)
@pytest.mark.parametrize("name", activities())
def test_teams_would_show_it(name: str, language: str) -> None:
    with in_language(language):
        shown = activities()[name]
    for activity in shown:
        assert activity_rules.refusals(dict(activity)) == []
        assert activity_rules.product_mistakes(dict(activity)) == []


@pytest.mark.parametrize("language", NAMES)
def test_teams_would_show_every_card_and_every_dialog(language: str) -> None:
    with in_language(language):
        wrong = {name: card_rules.mistakes(card, "message") for name, card in cards().items()}
        wrong |= {name: card_rules.mistakes(dialog.card, "dialog") for name, dialog in dialogs().items()}
    assert {name: mistakes for name, mistakes in wrong.items() if mistakes} == {}
