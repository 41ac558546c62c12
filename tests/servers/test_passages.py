"""Documents cut into passages."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from servers.documents.passages import LONGEST_PASSAGE, Passage, passages_of

HANDBOOK = """\
<!-- page 1 -->

# Handbook

Welcome.

## Leave

Everybody has 28 days.
Ask your lead.

<!-- page 2 -->

It is carried over until March.

## Travel

| city | hotel |
| --- | --- |
| Köln | 120 |
| Rome | 150 |
"""


def test_pages_sections_and_tables_are_kept() -> None:
    assert passages_of(HANDBOOK) == [
        Passage("# Handbook\n\nWelcome.", 1, "Handbook"),
        Passage("## Leave\n\nEverybody has 28 days.\nAsk your lead.", 1, "Handbook › Leave"),
        Passage("It is carried over until March.", 2, "Handbook › Leave"),
        Passage("## Travel\n\n| city | hotel |\n| --- | --- |\n| Köln | 120 |\n| Rome | 150 |", 2, "Handbook › Travel"),
    ]


def test_slides_are_pages() -> None:
    assert [each.page for each in passages_of("<!-- Slide number: 1 -->\none\n<!-- Slide number: 2 -->\ntwo")] == [1, 2]


def test_a_table_that_is_too_long_is_cut_between_rows_and_each_part_has_its_head() -> None:
    rows = "\n".join(f"| {number} | {'x' * 90} |" for number in range(60))
    parts = passages_of(f"| id | words |\n| --- | --- |\n{rows}")
    assert len(parts) > 3
    assert all(part.text.startswith("| id | words |\n| --- | --- |\n| ") for part in parts)
    assert all(line.endswith(" |") for part in parts for line in part.text.splitlines())


def test_a_paragraph_that_is_too_long_is_cut_between_sentences() -> None:
    parts = passages_of(" ".join(f"Sentence {number} says very little." for number in range(100)))
    assert all(part.text.endswith(".") for part in parts)


LINES = ["# A", "## B", "", "| a | b |", "| --- | --- |", "<!-- page 3 -->", "word " * 400, "x" * 3_000]
MARK = re.compile(r"^[^\S\n]*<!--\s*(?:page|Slide number:)\s*\d{1,6}\s*-->[^\S\n]*$", re.MULTILINE)


@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.sampled_from(
                ["# A", "## B", "", "| a | b |", "| --- | --- |", "<!-- page 3 -->", "word " * 400, "x" * 3_000]
            ),
        ),
        max_size=30,
    )
)
def test_every_word_of_any_text_is_in_a_passage_and_none_is_too_long(lines: list[str]) -> None:
    text = "\n".join(lines)
    passages = passages_of(text)
    assert all(0 < len(each.text) <= LONGEST_PASSAGE for each in passages)
    without_marks = MARK.sub("", text)
    kept = "".join("".join(each.text.split()) for each in passages)
    wanted = {character for character in without_marks if not character.isspace()}
    assert wanted <= set(kept)
