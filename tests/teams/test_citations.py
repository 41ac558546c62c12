"""Citations of documents in Teams' messages, beside those of links."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.teams.render.markdown import pages, streamable
from adapters.teams.render.posts import Audience, activities
from bot.domain import Said
from graph.citations import Source
from tests.teams.shown import a_post

SOURCES = (Source(1, "Handbook.pdf", 3, "Leave"), Source(2, "n" * 200, None, "s" * 200), Source(21, "Pay.csv"))


def answer(text: str, *sources: Source) -> dict[str, Any]:
    """The one message of a final answer."""
    [activity] = activities(a_post(Said(text, sources=sources)), Audience("personal"))
    return activity


def cited(activity: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["position"], each["appearance"]["name"]) for each in activity["entities"][0].get("citation", [])]


def test_what_an_answer_cites_is_a_reference_and_a_line() -> None:
    shown = answer("28 days [1], more [2], and [21].", *SOURCES)
    assert shown["text"].startswith("28 days [1], more [2], and \\[21\\].\n\n**Sources**\n\n")
    assert "\\[1\\] Handbook.pdf, page 3, Leave" in shown["text"] and "\\[21\\] Pay.csv" in shown["text"]
    assert cited(shown) == [(1, "Handbook.pdf"), (2, shown["entities"][0]["citation"][1]["appearance"]["name"])]
    for claim in shown["entities"][0]["citation"]:
        assert len(claim["appearance"]["name"]) <= 80 and len(claim["appearance"]["abstract"]) <= 160


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("[the plan](https://a.example/x) and [1]", [(1, "a.example: the plan")]),
        ("[1] and [the plan](https://a.example/x)", [(1, "Handbook.pdf")]),
        ("`[1]` and **[1]** and [1](https://a.example/x)", [(1, "Handbook.pdf")]),
    ],
)
def test_a_number_means_one_thing_in_a_message(text: str, marks: list[tuple[int, str]]) -> None:
    """A link that comes first keeps its number; where a document does, links have none."""
    shown = answer(text, *SOURCES[:1])
    assert cited(shown) == marks
    body = shown["text"].split("**Sources**")[0]
    if marks[0][1] != "Handbook.pdf":
        assert re.findall(r"(?<!\\\\)\[1\]", body) == ["[1]"]  # the link's; the other is text


def test_nothing_is_a_reference_without_its_source() -> None:
    assert cited(answer("28 days [1]")) == []
    assert cited(answer("as [1]: 28 days, and `[1]`", SOURCES[0])) == []


WORDS = st.sampled_from(
    ["[1]", "[2] ", "word ", "[a](https://a.example/x) ", "\n\n", "(", ":", "**b** ", "- ", "`[1]` "]
)


@given(st.lists(WORDS, max_size=20))
def test_a_streamed_answer_begins_as_the_whole_does(words: list[str]) -> None:
    text = "".join(words)
    whole = pages(text)
    shown = ""
    for end in range(len(text) + 1):
        now = streamable(text[:end])
        assert now.startswith(shown)
        shown = now
    assert not shown.strip() or whole[0].text.startswith(shown)
