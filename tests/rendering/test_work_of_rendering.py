"""Rule 13: nothing from outside holds the event loop. What is looked at to render a hostile post is counted here, since
a shared machine tells no times: each character once, and what repeats itself once."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import adapters.shared.live.entries as page
import adapters.slack.render.markdown as slack_splitting
import bot.characters
from adapters.shared.live.entries import argument_page_json
from adapters.slack.render.posts import pieces
from adapters.teams.render.dialogs import argument_page as teams_page
from adapters.teams.render.markdown import streamable
from bench import rendering
from bot.domain import ConversationReference, Post, Said
from bot.safe_text import beginning_of_list, visible_line

TEXTS = dict(rendering.texts(200_000))
_PLACE = ConversationReference(
    "slack", "slack:T1:C1", {"team": "T1", "channel": "C1", "thread_ts": "1.1"}, has_threads=True
)


class _Counted:
    """A pattern that counts the characters which it looks through to find something."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self.looked_at = 0

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        found = self._pattern.search(text, start)
        self.looked_at += (found.start() if found else len(text)) - start
        return found


def _counted(module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A function of a module, which notes each call of it from now on."""
    calls: list[str] = []
    function: Callable[..., Any] = getattr(module, name)

    def noted(*given: Any, **named: Any) -> Any:
        calls.append(name)
        return function(*given, **named)

    monkeypatch.setattr(module, name, noted)
    return calls


@pytest.mark.parametrize("sample", ["flags", "joiners"])
def test_an_invisible_character_is_judged_once_for_all_places_that_look_the_same(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = _counted(bot.characters, "is_kept_in_context", monkeypatch)
    streamable(TEXTS[sample])
    assert len(judged) < 50


@pytest.mark.parametrize("sample", ["astral", "chinese", "one long word"])
@pytest.mark.parametrize("page_of", [teams_page, argument_page_json])
def test_to_find_the_pages_of_an_argument_each_character_is_looked_at_once(
    page_of: Callable[[Any, int], object], sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = bot.characters._patterns()
    odd, control = _Counted(patterns.odd), _Counted(bot.characters._CONTROL)
    shown_again = replace(patterns, odd=odd)  # type: ignore[arg-type]  # it searches, and nothing else
    monkeypatch.setattr(bot.characters, "_patterns", lambda: shown_again)
    monkeypatch.setattr(bot.characters, "_CONTROL", control)
    page_of({"text": TEXTS[sample]}, 0)
    on_the_page = 40_000
    assert odd.looked_at + control.looked_at < len(TEXTS[sample]) + on_the_page


def test_a_long_argument_that_was_not_edited_has_its_digest_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _counted(page, "blake2b", monkeypatch)
    given = {"text": TEXTS["words"]}
    edited = rendering.approval(given, status="approved", asked_arguments=dict(given))
    (render,) = [render for where, render in rendering.renderings("", edited) if where == "page"]
    shown: Any = render()
    (now,), (then,) = shown["content"]["arguments"], shown["content"]["asked_arguments"]
    assert now["digest"] == then["digest"]
    assert len(made) == 1


def test_an_argument_that_was_edited_has_another_digest() -> None:
    edited = rendering.approval({"text": "a" * 100_000}, asked_arguments={"text": "b" * 100_000})
    (render,) = [render for where, render in rendering.renderings("", edited) if where == "page"]
    shown: Any = render()
    (now,), (then,) = shown["content"]["arguments"], shown["content"]["asked_arguments"]
    assert now["digest"] != then["digest"]


@pytest.mark.parametrize("platform", ["slack", "teams"])
def test_of_options_no_more_is_put_together_than_is_looked_at(platform: str) -> None:
    contents = dict(rendering.contents_of_text(TEXTS["joiners"]))
    render = dict(rendering.renderings("question", contents["question"]))[platform]
    render()
    tracemalloc.start()
    render()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * len(TEXTS["joiners"])


def test_the_items_of_a_list_are_measured_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = _counted(slack_splitting, "size", monkeypatch)
    pieces(Post("p", "t", _PLACE, 1, 0.0, Said("- a\n" * 150)))
    assert len(measured) < 10 * 150


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "b"],
        [" " * 900, "a", "b" * 700],
        ["\n", "", " x"],
        ["b" * 2_000, "c"],
        ["\u202e" * 700, "word " * 400],
        [],
    ],
)
@pytest.mark.parametrize("separator", [", ", " "])
def test_a_list_that_is_cut_before_it_is_put_together_reads_like_all_of_it(texts: list[str], separator: str) -> None:
    beginning, unseen = beginning_of_list(texts, separator, 40)
    assert visible_line(beginning, 40, unseen) == visible_line(separator.join(texts), 40)
