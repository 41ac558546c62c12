"""How much of a text that is still being written is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.render.markdown import stable, streamable
from tests.support.examples import examples

MARKED_UP = st.text(alphabet="ab *_`[](){}<>!#|\\\n&@.:/-1\u202eé ", max_size=60)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("", ""),
        ("Hello wor", "Hello"),
        ("Hello world ", "Hello world"),
        ("- an item", ""),
        ("one\n```py\nx = 1", "one\n```py\n"),
        ("one\ntwo *th", "one\n"),
        ("one\ntwo th", "one\ntwo"),
    ],
)
def test_whole_words_of_a_plain_line_are_stable(written: str, shown: str) -> None:
    assert stable(written) == shown


@settings(max_examples=examples(100))
@given(MARKED_UP, MARKED_UP)
def test_what_is_stable_stays_as_it_was_shown(written: str, more: str) -> None:
    assert written.startswith(stable(written))
    assert streamable(written + more).startswith(streamable(stable(written)))
