"""What docs/assurance.md says can be shown: every test and command that it names exists, and no item is left out."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from bot.commands.arguments import parser

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/assurance.md").read_text()
AISVS = {1: 3, 2: 10, 3: 8, 4: 4, 5: 6, 6: 3}
"""How many items each section of chapter 9 has in version 1.0."""
ARTICLE_14 = ["14(1)", "14(2)", "14(3)(a)", "14(3)(b)", *(f"14(4)({letter})" for letter in "abcde"), "14(5)"]
ITEMS = [f"9.{section}.{item}" for section, count in AISVS.items() for item in range(1, count + 1)] + ARTICLE_14
TESTS = sorted(set(re.findall(r"tests/[\w/]+\.py(?:::\w+)+", PAGE)))
COMMANDS = sorted(set(re.findall(r"^python (app\.py [^#\n>]+)|`python (app\.py [^`]+)`", PAGE, re.MULTILINE)))


@cache
def rows() -> dict[str, list[str]]:
    """The cells of each item's row."""
    found = re.findall(r"^\| (9\.\d+\.\d+|14\(\d\)\S*) \|(.*)\|$", PAGE, re.MULTILINE)
    return {item: [cell.strip() for cell in cells.split("|")] for item, cells in found}


def test_every_item_has_a_row_and_no_other_is_there() -> None:
    assert list(rows()) == ITEMS


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_is_shown_by_a_test_or_command_or_has_a_plain_no(item: str) -> None:
    *_, here, shown = rows()[item]
    answer = re.match(r"Yes|Partly|No\b", here)
    assert answer is not None
    assert answer[0] == "No" or re.search(r"tests/\S+::\w+|`python app\.py|`make ", shown)


@pytest.mark.parametrize("name", TESTS)
def test_a_test_that_is_named_exists(name: str) -> None:
    file, *owner, test = name.split("::")
    text = (ROOT / file).read_text()
    if owner:
        text = text.partition(f"\nclass {owner[0]}")[2].partition("\nclass ")[0]
    assert re.search(rf"^{'    ' * len(owner)}(?:async )?def {test}\(", text, re.MULTILINE)


@pytest.mark.parametrize("command", ["".join(each).strip() for each in COMMANDS])
def test_a_command_that_is_named_can_be_given(command: str) -> None:
    parser().parse_args(shlex.split(command)[1:])


def test_the_page_names_many_tests_and_commands() -> None:
    """What looks for them finds them."""
    assert (len(TESTS) > 60, len(COMMANDS) > 4) == (True, True)
