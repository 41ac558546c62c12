"""Reading Markdown for any platform."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.shared.markdown import parser

OURS = parser()
THEIRS = MarkdownIt("commonmark", OURS.options).enable(["table", "strikethrough"])
MARKS = st.sampled_from([*"\n&*<[\\]_`~!()#>:@$^{}=+-|%\"' aB1", "https://a.b", "&amp;", "![", "](", "**", "~~", "``"])


@given(st.lists(MARKS | st.characters(), max_size=60).map("".join))
def test_characters_that_begin_nothing_are_passed_over_and_change_nothing(text: str) -> None:
    """Rule 13: each place where the parser stops to try its rules costs a microsecond."""
    assert [token.as_dict() for token in OURS.parse(text)] == [token.as_dict() for token in THEIRS.parse(text)]
