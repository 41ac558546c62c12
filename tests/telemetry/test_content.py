"""What traces say of content."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, ToolCall

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
        "https://ana:pw@t0p-s3cret@h.example/",
        "https://ana:[secret: password]@h.example/t0p-s3cret",
        r"https:\\/\\/h.example\\/signin\\/t0p-s3cret",
        r"https:\u002f\u002fh.example\u002fsignin\u002ft0p-s3cret",
        "https:&#x2F;&#x2F;h.example&#x2F;t0p-s3cret",
        "https%253A%252F%252Fh.example%252Ft0p-s3cret",
        "www.h.example/signin/t0p-s3cret?code=4711",
        "h.example:8443/signin/t0p-s3cret",
        "//h.example/signin/t0p-s3cret",
        "h.example?code=4711",
        "_www.h.example/signin/t0p-s3cret_",
        "ana@www.h.example/signin/t0p-s3cret",
        "mailto:ana@h.example?body=t0p-s3cret",
        r"www.h.example\/signin\/t0p-s3cret",
        "www.h.example%2Fsignin%2Ft0p-s3cret",
        "www.müller.h.example/signin/t0p-s3cret",
        "https://h.example;password=t0p-s3cret",
    ],
)
def test_of_a_link_only_the_host_is_told_however_it_stands_in_a_text(link: str) -> None:
    told = CONTENT.text(f"open {link} now")
    assert "h.example" in told
    assert "s3cret" not in told
    assert "4711" not in told
    assert told.endswith(" now")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("10.0.0.5:8080", "10.0.0.5"),
        ("[::1]", "[::1]"),
        ("[fe80::1]:3978", "[fe80::1]"),
        ("localhost", "localhost"),
        ("ana@localhost:3978", "ana@localhost"),
        ("build-host:8443", "build-host"),
        ("//intranet", "//intranet"),
        ("müller.example", "müller.example"),
        ("пример.рф", "пример.рф"),
    ],
)
def test_a_link_without_a_scheme_is_known_by_its_host(given: str, told: str) -> None:
    assert CONTENT.text(f"open {given}/signin/t0p-s3cret?code=4711 now") == f"open {told}/… now"


@pytest.mark.parametrize(
    "address", ["postgresql://app:t0p#s3cret@db/app", "postgresql://app:t0p/s3cret@db/app", "redis://:t0p?s3cret@db/0"]
)
def test_a_password_with_signs_that_end_an_address_is_not_told_as_its_host(address: str) -> None:
    told = CONTENT.text(f"no answer of {address} yet")
    assert "t0p" not in told
    assert "s3cret" not in told


def test_of_an_address_without_a_host_its_signature_is_not_told() -> None:
    assert CONTENT.text("see /files/report.pdf?signature=t0p-s3cret.") == "see /files/report.pdf?…"


@pytest.mark.parametrize(
    "text",
    [
        "is it 1.5/2 or 3?",
        "and/or, e.g. this",
        "a.txt and b.py",
        "x=1? y=2",
        "re: //",
        "9:30/10:00",
        "usw./bzw.",
        "at 3:4/5",
        "on 3.12.2026/4",
    ],
)
def test_what_is_no_link_stays(text: str) -> None:
    assert CONTENT.text(text) == text


def test_the_name_of_a_tool_that_a_model_has_made_up_is_told_like_any_other_text() -> None:
    call = ToolCall(name=f"use {TOKEN} at h.example/t0p-s3cret", args={}, id="1")
    told = CONTENT.answer(AIMessage("", tool_calls=[call]), "stop")
    assert "use [secret: github token] at h.example/…" in told


def test_no_half_of_a_secret_in_base64_is_told_since_a_part_of_it_looks_like_a_link() -> None:
    key = "wJalrXUtnFEMI//K7MDENG/bPxRfiCYzEXAMPLEK"
    assert "wJalrXU" not in CONTENT.text(f"aws_secret_access_key = {key}")
    assert CONTENT.text(f"is {key[:22]} it") == f"is {key[:22]} it", "nothing is left out of it as a link"


@pytest.mark.parametrize("kept", [10, 20, 39])
def test_no_half_of_a_secret_is_told_where_long_links_before_it_become_short(kept: int) -> None:
    link = f"https://h.example/{'a' * 5000} "
    told = CONTENT.text(f"{link.ljust(2 * LONGEST_TEXT - kept)}{TOKEN} end")
    assert TOKEN[:8] not in told
