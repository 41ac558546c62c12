"""What counts as a secret, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers import stdio
from adapters.tool_servers.outcomes import AnswerContext
from adapters.tool_servers.stdio import LONGEST_LOG_LINE, MOST_LINES, LineLog
from adapters.tool_servers.text import secret_parts, without_known, without_links, without_secrets
from policies.secret_shapes import IN_ERRORS
from tests.support.cpu import at_most_cpu


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("API_KEY", "hunter2hunter2", {"hunter2hunter2"}),
        ("Authorization", "Bearer hunter2hunter2", {"Bearer hunter2hunter2", "hunter2hunter2"}),
        ("DATABASE_URL", "postgres://bob:swordfish@db/x", {"bob:swordfish", "swordfish"}),
        ("API_KEY", "short", set()),
        ("PLACE", "the long street", set()),
    ],
)
def test_names_and_addresses_tell_what_is_secret(name: str, value: str, parts: set[str]) -> None:
    assert set(secret_parts(name, value)) == parts


@pytest.mark.parametrize(
    "said",
    [
        "Bearer abcdefgh1234",
        "authorization: Basic YWJjOmRlZg==",
        "password=abcdefgh1234",
        'DB_PASSWORD="abcdefgh 1234"',
        '{"api_key": "abcdefgh1234"}',
        "client_secret: abcdefgh1234",
        "https://bob:abcdefgh1234@host/",
        "sk-abcdefgh1234abcdefgh1234",
        "ghp_abcdefgh1234abcdefgh1234",
        "xoxb-1234-abcdefgh1234",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefgh1234",
    ],
)
def test_what_looks_like_a_credential_is_taken_out_of_an_error(said: str) -> None:
    got = without_secrets(f"it failed: {said}", ())
    assert got.startswith("it failed: ")
    assert IN_ERRORS in got
    assert "abcdefgh1234" not in got
    assert "YWJj" not in got


@pytest.mark.parametrize(
    "said",
    ["the token has expired", "no such file: a.txt", "password is wrong", "https://host/path?x=1", "task 7 failed"],
)
def test_ordinary_errors_stay_as_they_are(said: str) -> None:
    assert without_secrets(said, ()) == said


@settings(deadline=None)  # a busy machine is no mistake
@given(st.text(), st.sets(st.text(st.characters(exclude_characters=IN_ERRORS), min_size=8), max_size=3))
def test_a_known_secret_is_never_left(text: str, secrets: set[str]) -> None:
    got = without_known(text + "".join(secrets), secrets)
    assert not any(secret in got for secret in secrets)


@pytest.mark.parametrize("unit", ["a-", "-é", "eyJ-", "key-", "token-", "Aa", "a.a", "a+", "token= ", '"token="'])
@pytest.mark.parametrize("look", [lambda text: without_secrets(text, ()), without_links], ids=["secrets", "links"])
def test_rule_13_no_text_of_a_server_is_made_to_take_long(look: Callable[[str], str], unit: str) -> None:
    text = (unit * 16_000)[:16_000]
    with at_most_cpu(0.1):
        look(text)


def test_rule_13_of_an_error_no_more_is_looked_through_than_can_be_shown() -> None:
    looked_at: list[str] = []

    def mask(text: str) -> str:
        looked_at.append(text)
        return text

    reading = AnswerContext(server="s", limit=1_000, mask=mask)
    reading.outcome_unknown("broke", "x" * 1_000_000)
    reading.sentence("x" * 1_000_000)
    assert max(map(len, looked_at)) <= 10_000


def test_rule_13_what_a_program_writes_to_its_log_is_cut_and_counted_before_it_is_looked_through() -> None:
    looked_at: list[str] = []

    def mask(text: str) -> str:
        looked_at.append(text)
        return text

    lines = LineLog("s", (), now=lambda: 0.0, mask=mask)
    lines.feed(b"x" * 60_000 + b"\n" + b"short\n" * 10_000)
    assert max(map(len, looked_at)) <= 4 * LONGEST_LOG_LINE
    assert len(looked_at) == MOST_LINES


def test_rule_13_lines_that_are_not_logged_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []
    monkeypatch.setattr(stdio, "clean", lambda text: cleaned.append(text) or text)
    LineLog("s", (), now=lambda: 0.0).feed(b"short\n" * 10_000)
    assert len(cleaned) == MOST_LINES
