"""Every card and dialog in Microsoft's own renderer and by Microsoft's own types; also those that mean harm."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from adapters.teams.render.posts import activities, card_of, connections_activity, overview_activity
from tests.support.examples import examples as how_many
from tests.teams import examples, strategies
from tests.teams.local.drawing import Card, Drawing, Drawn
from tests.teams.local.packages import PACKAGES, WITHOUT_PACKAGES
from tests.teams.local.types import type_errors

T = TypeVar("T")

SCHEMA = os.environ.get("ADAPTIVE_CARD_SCHEMA")
"""File with Microsoft's schema of cards, if somebody has it: schemas/1.5.0/adaptive-card.json of
https://github.com/microsoft/AdaptiveCards. No package has it."""

MOST = 120
"""Cards of a kind that the page draws in one go."""
MOST_BUTTONS = 5
"""Beside each other (issue 4, and what Teams shows without a menu)."""

pytestmark = [
    pytest.mark.node,
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not PACKAGES, reason=WITHOUT_PACKAGES),
]


def some(strategy: st.SearchStrategy[T], few: int) -> list[T]:
    """So many, or up to `MOST` in `make test-long`."""
    found: list[T] = []

    @settings(
        max_examples=how_many(few), phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def collect(one: T) -> None:
        found.append(one)

    collect()
    return found


def cards_in(activity: Mapping[str, Any]) -> Iterator[Card]:
    yield from (attached["content"] for attached in activity.get("attachments", []))


def shown() -> dict[str, Card]:
    """Every card and dialog there is an example of."""
    posts = ((name, card) for name, some in examples.activities().items() for one in some for card in cards_in(one))
    dialogs = {f"dialog {name}": dialog.card for name, dialog in examples.dialogs().items()}
    return {**dict(posts), **examples.cards(), **dialogs}


def hostile() -> dict[str, Card]:
    """Cards and dialogs that mean harm, or that are huge, by what they were made of."""
    found: dict[str, Card] = {}

    def add(what: str, card: Card) -> None:
        found[f"{len(found)} {what[:300]}"] = card

    for post, audience in some(st.tuples(strategies.hostile.posts, strategies.audiences), 30):
        for activity in activities(post, audience):
            for card in cards_in(activity):
                add(repr((post.content, audience)), card)
    for view, decides in some(st.tuples(strategies.hostile.cards, st.booleans()), 30):
        add(repr((view, decides)), card_of(view, decides=decides))
    for overview, accounts in some(st.tuples(strategies.hostile.overviews, strategies.hostile_accounts), 8):
        for card in (*cards_in(overview_activity(overview, (), accounts)), *cards_in(connections_activity(accounts))):
            add(repr((overview, accounts)), card)
    for dialog in some(strategies.hostile_dialogs, 30):
        add(repr(dialog.title), dialog.card)
    return found


@pytest.fixture(scope="module")
def all_cards() -> dict[str, Card]:
    return {**shown(), **hostile()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def drawn(page: Drawing, all_cards: dict[str, Card]) -> dict[str, Drawn]:
    """What became of every card in Teams' light theme."""
    return dict(zip(all_cards, await page.check(list(all_cards.values())), strict=True))


PEOPLE_PICKER = (
    'UnsupportedProperty: Property "choices.data"',
    "CollectionCantBeEmpty: An Input.ChoiceSet must have at least one choice defined.",
)
"""Teams finds people by itself in cards of any version; other clients have the input below it.
https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/people-picker"""


IN_A_MENU = "TooManyActions"
"""The renderer counts what is in a row's menu as well, and draws it there; Teams counts the others alone. How many
stand beside each other is looked at below."""


def complaints(drawn: dict[str, Drawn]) -> dict[str, list[str]]:
    """By card, what is against it, but for what only Teams itself can do."""
    found = {
        name: [each for each in one.complaints if not each.startswith((*PEOPLE_PICKER, IN_A_MENU))]
        for name, one in drawn.items()
    }
    return {name: those for name, those in found.items() if those}


async def test_microsofts_renderer_has_nothing_against_any_card(drawn: dict[str, Drawn]) -> None:
    assert complaints(drawn) == {}


async def test_nor_has_it_in_the_dark(page: Drawing, all_cards: dict[str, Card]) -> None:
    examples_only = shown()
    dark = await page.check(list(examples_only.values()), "dark")
    assert complaints(dict(zip(examples_only, dark, strict=True))) == {}


async def test_nothing_foreign_is_active_when_it_is_drawn(drawn: dict[str, Drawn]) -> None:
    for name, one in drawn.items():
        assert one.links == [], name
        assert (one.pictures, one.scripts, one.lists) == (0, 0, 0), name
        assert one.marked == [], name


async def test_nothing_stands_beyond_the_edge_of_the_card(drawn: dict[str, Drawn]) -> None:
    assert {name: one.outside for name, one in drawn.items() if one.outside} == {}


async def test_no_more_than_five_buttons_stand_beside_each_other(drawn: dict[str, Drawn]) -> None:
    assert {name: one.rows for name, one in drawn.items() if max(one.rows, default=0) > MOST_BUTTONS} == {}


async def test_every_input_says_what_it_is_for(drawn: dict[str, Drawn]) -> None:
    inputs = [(name, each) for name, one in drawn.items() for each in one.inputs]
    assert inputs
    assert [(name, each) for name, each in inputs if not each["label"]] == []


async def test_microsofts_types_have_nothing_against_any_card(all_cards: dict[str, Card], tmp_path: Path) -> None:
    assert type_errors(all_cards, tmp_path) == {}


if SCHEMA is not None:

    async def test_microsofts_schema_has_nothing_against_any_card(all_cards: dict[str, Card]) -> None:
        assert SCHEMA is not None
        schema = json.loads(Path(SCHEMA).read_text())
        validator = validator_for(schema)(schema)
        assert list(validator.iter_errors(WRONG))
        for name, card in all_cards.items():
            plain = {key: value for key, value in card.items() if key != "msteams"}  # Teams' own
            assert list(validator.iter_errors(plain)) == [], name


# ------------------------------------------------------------------------------------------------ that these can fail

WRONG: Card = {
    "type": "AdaptiveCard",
    "version": "1.5",
    "body": [
        {"type": "TextBlock", "text": "[here](https://evil.example) ![x](https://evil.example/x.png)", "size": "Giant"},
        {"type": "Carousel", "pages": []},
        {"type": "Input.Text", "id": "a", "isRequired": True},
        {"type": "Input.Text", "id": "a", "label": "A"},
        {"type": "FactSet", "facts": [{"title": "a", "value": "x" * 400}]},
    ],
    "actions": [{"type": "Action.Execute", "title": "Go", "verb": "go", "colour": "red"}],
}


async def test_the_renderer_tells_a_wrong_card_from_a_right_one(page: Drawing) -> None:
    (one,) = await page.check([WRONG])
    said = " ".join(one.complaints)
    for kind in ("InvalidPropertyValue", "UnknownElementType", "DuplicateId", "RequiredInputsShouldHaveLabel"):
        assert kind in said
    assert one.links == ["https://evil.example/"]
    assert one.pictures == 1
    assert one.outside == ["x" * 80]


async def test_the_types_tell_a_wrong_card_from_a_right_one(tmp_path: Path) -> None:
    found = type_errors({"right": shown()["approval_waiting"], "wrong": WRONG}, tmp_path)
    assert list(found) == ["wrong"]
    assert any("colour" in error for error in found["wrong"])
