"""Text that is streamed while it is written: safe wherever it is cut, and true once it was sent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adapters.slack.render.markdown import streamable
from tests.fakes.slack.text_rules import text_mistakes
from tests.slack.shown import TRICKS
from tests.support.examples import examples

written = st.lists(
    st.sampled_from(
        ["[", "]", "(", ")", "!", "<", ">", "&", "@", "channel", "here", "!channel", "https://", ":", "//", "\n", " "]
    )
    | st.sampled_from(
        ["[x](https://a.example)", "![x](https://a.example/y.png)", "[r]: https://a.example", "[r]", "`", "\\", ":"]
    )
    | st.sampled_from(TRICKS)
    | st.text(max_size=4),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**bold** and `code`", "**bold** and `code`"),
        ("[docs](https://a.example/x)", "docs (https: //a. example/x)"),
        ('[docs](https://a.example/x "a title")', "docs (https: //a. example/x)"),
        ("![leak](https://a.example/x.png)", "leak (https: //a. example/x. png)"),
        ("![](https://a.example/x.png)", "(https: //a. example/x. png)"),
        ("[docs](https://a.exam", "[docs] (https: //a. exam"),
        ("[docs][1]", "[docs] [1]"),
        ("[1]: https://evil.example", "[1] : https: //evil. example"),
        ("<!channel> <https://a.example|b> R&D", "&lt;!channel&gt; &lt;https: //a. example|b&gt; R&amp;D"),
        ("@channel and @here, me@here.example", "@ channel and @ here, me@ here. example"),
        ("pay\u202e001", "pay⟨U+202E⟩001"),
        ("a\r\nb", "a\nb"),
        ("hthttps://tps://a.example and WWW.a.example", "hthttps: //tps: //a. example and WWW.a. example"),
    ],
)
def test_what_is_streamed(text: str, shown: str) -> None:
    assert streamable(text) == shown


@settings(max_examples=examples(100))
@given(written, written)
def test_what_was_streamed_up_to_a_line_stays_as_it_was(before: str, after: str) -> None:
    assert streamable(f"{before}\n{after}").startswith(streamable(f"{before}\n"))


@settings(max_examples=examples(100))
@given(written, st.integers(0, 200))
def test_nothing_pings_and_no_link_hides_where_it_leads(text: str, cut: int) -> None:
    shown = streamable(text[: cut or None])
    assert text_mistakes(shown, users=()) == []
    assert "@channel" not in shown.lower()
    assert "://" not in shown
    for token in MarkdownIt("commonmark").parse(shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")):
        for child in token.children or []:
            assert child.type != "image"
            assert child.type != "link_open" or child.info == "auto"


def test_a_long_line_of_brackets_takes_no_long_time() -> None:
    for unit in ("[", "[x](https://a.example", "![", "](", "[x](https://a.example "):
        assert streamable(unit * 20_000)
    assert streamable("[x](https://a.example" + " " * 100_000)


@pytest.mark.parametrize(
    "address", ["evil.example/?d=secret", "secret.evil.example", "evil。example/x", "EVIL.EXAMPLE"]
)
def test_an_address_without_a_scheme_is_none(address: str) -> None:
    """Rule 7: Slack would fetch it, and whatever a prompt was made to write into it."""
    shown = streamable(f"See {address} now")
    assert not re.search(r"\w[.\u3002]\w{2}", shown)
    assert "".join(shown.split()) == f"See{address}now"
