"""What traces say of content."""

from __future__ import annotations

import pytest

from adapters.telemetry.content import LONGEST_TEXT, TracedContent
from bot.card_masks import PLAIN
from bot.logs import Mask

CONTENT = TracedContent(PLAIN, Mask((), PLAIN))
TOKEN = f"ghp_{'A1b2C3' * 6}"


@pytest.mark.parametrize(
    "link",
    [
        "https://h.example/signin/t0p-s3cret?code=4711",
        "_https://h.example/signin/t0p-s3cret?code=4711_",
        "9https://h.example/signin/t0p-s3cret",
        r"https:\/\/h.example\/signin\/t0p-s3cret",
        "https%3A%2F%2Fh.example%2Fsignin%2Ft0p-s3cret",
        "https://h.example/a't0p-s3cret",
        "https://ana:t0p-s3cret@h.example/",
        "https://ana:s3cret%40x@h.example/",
    ],
)
def test_of_a_link_only_the_host_is_told_however_it_stands_in_a_text(link: str) -> None:
    told = CONTENT.text(f"open {link} now")
    assert "h.example" in told
    assert "s3cret" not in told
    assert "4711" not in told
    assert told.endswith(" now")


@pytest.mark.parametrize("kept", [10, 20, 39])
def test_no_half_of_a_secret_is_told_where_long_links_before_it_become_short(kept: int) -> None:
    link = f"https://h.example/{'a' * 5000} "
    told = CONTENT.text(f"{link.ljust(2 * LONGEST_TEXT - kept)}{TOKEN} end")
    assert TOKEN[:8] not in told
