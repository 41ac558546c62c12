"""Rule 13: nothing from outside holds the event loop. Rule 8: what is too long is cut with a count, and whole behind
"Show all"."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.shared.live.entries import argument_page_json, arguments_json
from adapters.slack.render.cards import argument_page as slack_page
from adapters.slack.render.posts import pieces
from adapters.teams.render.dialogs import argument_page as teams_page
from adapters.teams.render.elements import LARGEST_CARD, weight
from adapters.teams.render.markdown import streamable
from bench import rendering
from bot.domain import Said
from bot.safe_text import cut_by_size, visible, visible_excerpt, visible_line, visible_passage
from bot.views import result_line
from tests.support.cpu import at_most_cpu

GENEROUS = 20 * rendering.MOST_MS / 1_000
"""Seconds: what used to take seconds is told from a slow machine by that."""
TEXTS = dict(rendering.texts(200_000))
ARGUMENTS = dict(rendering.arguments(600_000))

SLOW_ANSWERS = ["headings", "items", "brackets", "images", "one line a time", "accents", "closing brackets", "joiners"]


@pytest.mark.parametrize("sample", SLOW_ANSWERS)
def test_an_answer_of_a_contrived_kind_is_rendered_at_once(sample: str) -> None:
    for _, render in rendering.renderings("said", Said(TEXTS[sample])):
        with at_most_cpu(GENEROUS):
            render()


@pytest.mark.parametrize("sample", ["reversed letters in an argument", "many arguments", "camels", "300 deep"])
def test_a_card_with_enormous_arguments_is_rendered_at_once(sample: str) -> None:
    renderings = [
        render
        for kind, content in rendering.contents_of_arguments(ARGUMENTS[sample])
        for _, render in rendering.renderings(kind, content)
    ]
    for render in [*renderings, *(render for _, render in rendering.windows(ARGUMENTS[sample]))]:
        with at_most_cpu(GENEROUS):
            render()


def test_a_draft_is_rendered_at_once_however_much_of_it_there_is() -> None:
    with at_most_cpu(GENEROUS):
        streamable(TEXTS["images"])


@pytest.mark.parametrize("result", ["[" * 100_000, '{"a":' * 100_000, "[" + "1, " * 300_000 + "1]"])
def test_a_result_that_nests_deeply_or_is_long_is_a_line_all_the_same(result: str) -> None:
    assert len(result_line(result)) <= 200


def test_what_cannot_be_formatted_in_time_is_shown_as_it_was_written() -> None:
    text = "".join(f"# heading {number}\n" for number in range(2_000))
    shown = json.dumps([piece.blocks for piece in pieces(_said(text))])
    assert '"text": "heading 7", "style": {"bold": true}' in shown
    assert "\\n# heading 1999" in shown


def test_an_ordinary_long_answer_is_formatted_to_its_end() -> None:
    paragraph = "The **quick** brown fox, as `fox.py` says, jumps over the lazy dog. " * 4
    text = "\n\n".join([paragraph] * 40)
    assert len(text) > 10_000
    assert "**" not in json.dumps([piece.blocks for piece in pieces(_said(text))])


LONG = st.text(st.sampled_from("ab \n\u202e\u0301"), max_size=40).map(lambda text: (text or "a") * 200)


@given(LONG, st.integers(30, 200))
def test_what_is_left_out_is_counted(text: str, limit: int) -> None:
    for cut in (visible_passage(text, limit), visible_excerpt(text, limit, 12)[0]):
        kept, is_cut, count = cut.rpartition("… (")
        if is_cut:
            assert visible(text).startswith(kept)
            # What nobody has looked at is counted as it was written.
            assert int(count.split()[0].replace(",", "")) >= len(text) - len(kept)


def test_of_text_that_is_all_visible_the_count_is_exact() -> None:
    assert visible_passage("x" * 1_000_000, 40) == "x" * 13 + "… (999,987 more characters)"
    assert visible_line("x" * 1_000_000, 40) == "x" * 13 + "… (999,987 more characters)"


def test_blanks_do_not_hide_what_comes_after_them() -> None:
    assert visible_line(" " * 1_000_000 + "danger", 40) == "danger"


@given(st.text(max_size=300), st.integers(1, 40), st.integers(1, 9))
def test_cutting_by_size_loses_nothing(text: str, most: int, wide: int) -> None:
    parts = list(cut_by_size(text, most, lambda start, end: wide * (end - start), longest=most))
    assert "".join(part for part, _ in parts) == text
    assert all(size <= most or len(part) == 1 for part, size in parts)


LARGE: Mapping[str, Mapping[str, Any]] = {
    "plain": {"text": "word " * 8_000},
    "hidden": {"text": "a\u202e" * 11_000},
    "wide": {"text": "漢字\U0001f600" * 10_000},
    "many": {f"k{number}": number for number in range(1_500)},
    "a long name": {"n" * 300: "x"},
}


@pytest.mark.parametrize("arguments", LARGE.values(), ids=LARGE.keys())
def test_show_all_has_every_character_of_enormous_arguments(arguments: Mapping[str, Any]) -> None:
    whole = arguments["text"] if "text" in arguments else json.dumps(arguments)
    for read in (_in_slack, _in_teams, _on_the_page):
        assert _squeezed(read(arguments)) == _squeezed(visible(whole))


def _in_slack(arguments: Mapping[str, Any]) -> str:
    def page(number: int) -> tuple[str, int]:
        blocks, _, count = slack_page(arguments, number)
        texts = [block["elements"][1]["elements"][0]["text"] for block in blocks]
        assert sum(map(len, texts)) <= 12_000
        return "".join(texts), count

    return _all(page)


def _in_teams(arguments: Mapping[str, Any]) -> str:
    def page(number: int) -> tuple[str, int]:
        boxes, _, count = teams_page(arguments, number)
        assert weight({"": boxes}) <= LARGEST_CARD - 4_000
        return "".join(run["text"] for box in boxes for run in box["inlines"][1:]), count

    return _all(page)


def _on_the_page(arguments: Mapping[str, Any]) -> str:
    def page(number: int) -> tuple[str, int]:
        made = argument_page_json(arguments, number)
        return "".join(one["text"] for one in made["arguments"]), made["pages"]

    return _all(page)


def _all(page: Callable[[int], tuple[str, int]]) -> str:
    return "".join(page(number)[0] for number in range(page(0)[1]))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def test_the_page_gets_the_beginning_of_enormous_arguments_and_a_count() -> None:
    (line,) = arguments_json({"text": "x" * 1_000_000})
    assert (line["value"], len(line["shown"]), line["hidden"]) == (None, 600, 999_400)
    (other,) = arguments_json({"text": "x" * 999_999 + "y"})
    assert line["digest"] != other["digest"]


def _said(text: str) -> Any:
    return next(iter(rendering.renderings("said", Said(text))))[1].args[0]
