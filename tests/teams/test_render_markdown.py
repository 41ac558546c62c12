"""Answers: Teams' dialect of Markdown, links that show where they lead, and texts of any length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from adapters.teams.render.markdown import LONGEST_MESSAGE, LONGEST_STREAM, pages, pieces, streamable, units
from adapters.teams.render.posts import Audience, activities
from bot.domain import Said
from bot.safe_text import cut_lines, cut_text, visible
from tests.fakes.teams.text_rules import message_text_mistakes
from tests.support.examples import examples
from tests.teams.examples import ANSWER
from tests.teams.shown import a_post
from tests.teams.strategies import TRICKS

CHAT = Audience("personal")
_READER = MarkdownIt("commonmark", {"html": True}).enable("strikethrough")


def text_of(markdown: str) -> str:
    """The one message of a short answer."""
    [page] = pages(markdown)
    return page.text


def sources_of(markdown: str) -> list[dict[str, Any]]:
    [activity] = activities(a_post(Said(markdown)), CHAT)
    return [claim["appearance"] for claim in activity["entities"][0].get("citation", [])]


def read(markdown: str) -> str:
    """What somebody reads, without blanks."""
    return "".join("".join(_words(SyntaxTreeNode(_READER.parse(markdown)))).split())


def _words(node: SyntaxTreeNode) -> Iterator[str]:
    yield from [node.content] if not node.children else ()
    for child in node.children:
        yield from _words(child)


# ------------------------------------------------------------------------------------------------ the dialect


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("# Title\ntext", "**Title**\n\ntext"),
        ("**b** *i* ~~s~~ `c` ***bi***", "**b** *i* ~~s~~ `c` ***bi***"),
        ("**bold _both_ bold**", "**bold** ***both*** **bold**"),
        ("line one\nline two", "line one  \nline two"),
        ("- a\n  - b\n\n    c\n- d", "- a\n  - b\n\n    c\n- d"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("- [ ] todo\n- [x] done", "- ☐ todo\n- ☑ done"),
        ("> a\n>\n> b", "> a\n>\n> b"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("    code", "```\ncode\n```"),
        ("```py\nx = `1` < 2\n```", "```\nx = `1` < 2\n```"),
        ("````\n```\n````", "````\n```\n````"),
        ("`` a`b ``", "``a`b``"),
        ("| a | b |\n|---|---|\n| 1 | two |", "```\na | b\n--+----\n1 | two\n```"),
        ("2 * 3 * 4, snake_case, a_b", "2 \\* 3 \\* 4, snake_case, a_b"),
        ("5 < 6 & 7 > 6", "5 &lt; 6 &amp; 7 &gt; 6"),
        ("1986\\. A year", "1986\\. A year"),
        ("\\- no item", "\\- no item"),
        ("-5 degrees, #1, +49", "-5 degrees, #1, +49"),
        ("Hello!", "Hello!"),
    ],
)
def test_markdown_in_teams_dialect(written: str, shown: str) -> None:
    assert text_of(written) == shown


def test_marks_that_could_not_be_read_as_such_are_left_out() -> None:
    assert text_of("**a***b*") == "a*b*"
    assert text_of("*a*~~b~~") == "a~~b~~"
    assert text_of("**a**`b` **[c](https://a.example)**") == "**a**`b` [c](https://a.example) (a.example) [1]"


def test_what_would_change_lines_shown_before_means_nothing() -> None:
    assert text_of("Title\n===") == "Title  \n\\==="
    assert text_of("a | b\n--|--\n1 | 2") == "a \\| b  \n\\--\\|--  \n1 \\| 2"
    assert text_of("[x][y]\n\n[y]: https://a.example").startswith("\\[x\\]\\[y\\]\n\n")


@pytest.mark.parametrize(
    "written", ["<at>Ana</at>", "`<at>Ana</at>`", "```\n< / AT >x\n```", "&lt;at&gt;Ana&lt;/at&gt;"]
)
def test_nothing_in_an_answer_is_teams_tag_for_a_mention(written: str) -> None:
    assert list(message_text_mistakes(text_of(written))) == []
    assert "Ana" in text_of(written) or "x" in text_of(written)


def test_characters_hidden_in_entities_are_shown() -> None:
    assert text_of("pay &#x202E;001") == "pay ⟨U+202E⟩001"


# ------------------------------------------------------------------------------------------------ links


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[the plan](https://a.example/b)", "[the plan](https://a.example/b) (a.example) [1]"),
        ("See https://a.example/b.", "See [https://a.example/b](https://a.example/b) [1]."),
        ("[](https://a.example/b)", "[a.example](https://a.example/b) [1]"),
        ("![cat](https://a.example/c.png)", "[cat](https://a.example/c.png) (a.example) [1]"),
        ("wow![x](https://a.example)", "wow[x](https://a.example) (a.example) [1]"),
        ("wow\\![x](https://a.example)", "wow\\![x](https://a.example) (a.example) [1]"),
        ("[m](mailto:ana@a.example)", "[m](mailto:ana@a.example) (ana@a.example)"),
        ("[x](https://a.example/(b)?c=1&d=2)", "[x](https://a.example/%28b%29?c=1&amp;d=2) (a.example) [1]"),
        ("[x](javascript:alert\\(1\\))", "\\[x\\]\\(javascript:alert(1))"),
        ("[x](//evil.example)", "x (//evil.example)"),
    ],
)
def test_links_show_their_host_and_images_are_links(written: str, shown: str) -> None:
    assert text_of(written) == shown
    assert list(message_text_mistakes(text_of(written))) == []


@pytest.mark.parametrize(
    "written", ["[good.example](https://evil.example)", "[https://good.example](https://evil.example/)"]
)
def test_a_label_that_looks_like_another_address_does_not_hide_the_host(written: str) -> None:
    assert "(evil.example)" in text_of(written)
    assert sources_of(written)[0]["name"].startswith("evil.example: ")


def test_links_are_the_sources_of_a_message_each_once() -> None:
    markdown = "[a](https://a.example/1) [again](https://a.example/1) [b](https://b.example)"
    assert [source["url"] for source in sources_of(markdown)] == ["https://a.example/1", "https://b.example"]
    assert text_of(markdown).count("[1]") == 2


def test_a_message_names_twenty_sources_and_the_other_links_without_a_number() -> None:
    markdown = "\n\n".join(f"[x](https://a.example/{number})" for number in range(25))
    assert len(sources_of(markdown)) == 20
    assert text_of(markdown).count("(a.example)") == 25


def test_every_message_numbers_its_own_sources() -> None:
    made = activities(a_post(Said(f"[a](https://a.example)\n\n{'word ' * 2_385}\n\n[b](https://b.example)")), CHAT)
    first, last = (activity["entities"][0]["citation"] for activity in made)
    assert [claim["appearance"]["url"] for claim in (*first, *last)] == ["https://a.example", "https://b.example"]
    assert [claim["position"] for claim in (*first, *last)] == [1, 1]


# ------------------------------------------------------------------------------------------------ what stands beside


def test_every_answer_is_labelled_and_the_end_of_the_last_one_asks_what_people_think() -> None:
    made = activities(a_post(Said("word " * 9_000)), CHAT)
    assert len(made) > 2
    assert all(activity["entities"][0]["additionalType"] == ["AIGeneratedContent"] for activity in made)
    assert ["channelData" in activity for activity in made] == [False] * (len(made) - 1) + [True]
    [on_the_way] = activities(a_post(Said("Let me look.", final=False)), CHAT)
    assert "channelData" not in on_the_way


def test_an_answer_that_says_nothing_says_so() -> None:
    assert [activity["text"] for activity in activities(a_post(Said(" \n")), CHAT)] == ["(empty)"]


# ------------------------------------------------------------------------------------------------ long


def test_long_code_goes_on_as_code_and_loses_no_line() -> None:
    code = "\n".join(f"line {number} {'x' * 50}" for number in range(600))
    made = pages(f"Look:\n\n```\n{code}\n```\n\nDone.")
    boxes = [t.content for page in made for t in _READER.parse(page.text) if t.type == "fence"]
    assert len(boxes) > 2
    assert "".join(boxes).rstrip("\n") == code


def test_a_very_long_answer_is_cut_with_a_count() -> None:
    made = pages("word " * 50_000)
    assert len(made) < 15
    assert "more characters)" in made[-1].text


def test_nesting_beyond_reason_is_shown_as_it_was_written() -> None:
    assert text_of(">" * 300 + " deep") == f"```\n{'>' * 300} deep\n```"


WRITTEN = st.lists(
    st.sampled_from(
        ["word", "*a*", "**b", "`c`", "[d](https://e.example/f)", "\n", "\n\n", "- ", "1. ", "> ", "# ", "|", "  "]
    )
    | st.sampled_from(
        ["```\n", "---\n", "| a | b |\n|-|-|\n| c | d |\n", "~~", "![", "](", "<", "&amp;", "\\", "https://g.example"]
    )
    | st.text(max_size=8),
    max_size=60,
).map(" ".join)


@settings(max_examples=examples(50))
@given(WRITTEN | st.sampled_from(TRICKS), st.sampled_from([1, 1, 1, 40]))
def test_no_word_of_an_answer_is_lost(markdown: str, times: int) -> None:
    markdown = "\n\n".join([markdown] * times)
    shown = "".join(read(page.text) for page in pages(markdown))
    for piece in pieces(markdown):
        for word in piece.plain.split()[:50]:
            assert "".join(word[:1_000].split()).strip("()") in shown or "http" in word or "<" in word


@settings(max_examples=examples(35))
@given(WRITTEN, st.sampled_from([1, 30, 120]))
def test_every_answer_is_within_the_limits(markdown: str, times: int) -> None:
    for page in pages("\n\n".join([markdown] * times)):
        assert 0 < units(page.text) <= LONGEST_MESSAGE
        assert list(message_text_mistakes(page.text)) == []


@given(st.text(), st.integers(1, 50))
def test_cutting_text_loses_nothing(text: str, longest: int) -> None:
    cut = list(cut_text(text, longest))
    assert "".join(cut) == text
    assert all(0 < len(one) <= longest for one in cut)


@given(st.text("ab \n"), st.integers(1, 50))
def test_cutting_lines_loses_no_more_than_the_breaks_between(text: str, longest: int) -> None:
    cut = list(cut_lines(text, longest))
    assert "".join(cut).replace("\n", "") == text.replace("\n", "")
    assert all(0 < len(one) <= longest for one in cut)


# ------------------------------------------------------------------------------------------------ being written


def test_what_is_streamed_grows_by_words_in_a_paragraph_and_by_items_in_a_list() -> None:
    assert streamable("Hello wor") == "Hello"
    assert streamable("Hello world, th") == "Hello world,"
    assert streamable("See **bo") == "See"
    assert streamable("# Tit") == ""
    assert streamable("# Title\n") == "**Title**"
    assert streamable("- one\n- tw") == "- one"
    assert streamable("- one\n- two\n\nThe end ") == "- one\n- two\n\nThe end"
    assert streamable("```\ncode\n") == ""
    assert streamable("```\ncode\n```\n\n") == "```\ncode\n```"


@settings(max_examples=examples(35))
@given(
    WRITTEN | st.just(ANSWER) | st.just("\n\n".join([ANSWER] * 30)), st.lists(st.floats(0, 1), min_size=2, max_size=8)
)
def test_every_frame_and_the_answer_begin_with_what_was_streamed(markdown: str, cuts: list[float]) -> None:
    shown = ""
    for cut in sorted(cuts):
        frame = streamable(markdown[: int(cut * len(markdown))])
        assert frame.startswith(shown)
        assert units(frame) <= LONGEST_STREAM
        shown = frame
    if shown:
        assert pages(markdown)[0].text.startswith(shown)


@given(st.sampled_from(TRICKS), st.floats(0, 1))
def test_what_is_streamed_is_as_safe_as_the_answer(trick: str, cut: float) -> None:
    shown = streamable(trick[: int(cut * len(trick))])
    assert list(message_text_mistakes(shown)) == []
    assert visible(shown) == shown
