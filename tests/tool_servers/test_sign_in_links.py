"""Results and errors that are nothing but a link to sign in with, and those that only resemble one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.outcomes import Reading, outcome_of_error, outcome_of_result
from adapters.tool_servers.replies import CallResult
from adapters.tool_servers.sign_in_links import link_in_error, link_in_result
from graph.ports import Failed, SignInNeeded, Succeeded

GRANT = "https://idp.test/authorize?client_id=c&response_type=code&state=zzz"


def text(said: str) -> list[Any]:
    return [{"type": "text", "text": said}]


@pytest.mark.parametrize(
    ("said", "url"),
    [
        (f"Open {GRANT}.", GRANT),
        (f"[Click]({GRANT})", GRANT),
        (f'{{"auth_url": "{GRANT.replace("&", chr(92) + "u0026")}", "status": "pending"}}', GRANT),
        ("You are not signed in. Visit https://drive.test/login to continue", "https://drive.test/login"),
        ("Authentication required: https://drive.test/connect/abc", "https://drive.test/connect/abc"),
        ("Please authorize the app: https://auth.drive.test/x?t=1", "https://auth.drive.test/x?t=1"),
        (f"Please sign in: {GRANT}. Help: https://help.test/", GRANT),
        ('{"error": "unauthorized", "url": "https://drive.test/login"}', "https://drive.test/login"),
        ("Authentication_required https://drive.test/login", "https://drive.test/login"),
        (f"Nothing was sent. Please log in first: {GRANT}", GRANT),
        (f"The page can be created once you have signed in. Please log in: {GRANT}", GRANT),
    ],
)
def test_a_link_in_place_of_a_result_is_recognised(said: str, url: str) -> None:
    outcome = outcome_of_result(CallResult(content=text(said)), Reading("drive"))
    assert isinstance(outcome, SignInNeeded)
    assert outcome.url == url
    assert "https://" not in outcome.message


@pytest.mark.parametrize(
    "said",
    [
        "Created the page: https://wiki.test/connect/page-7. Sign in to see it.",
        "The latest news: https://news.test/a",
        "Please sign in",
        "Please sign in at https://a.test/login or https://b.test/login",
        f"{'A long article. ' * 200} Please sign in: https://a.test/login",
        "https://docs.test/oauth/overview explains how to authenticate",
        "Created the page. Please sign in at https://wiki.test/login to see it",
        f"Saved the bookmark {GRANT}",
        f"OAuth in a nutshell: a client sends the browser to an address like {GRANT}, where the user decides about it",
        f"Please sign in: {GRANT} or https://a.test/1 or https://a.test/2 or https://a.test/3",
    ],
)
def test_a_result_that_only_speaks_of_signing_in_stays_one(said: str) -> None:
    assert isinstance(outcome_of_result(CallResult(content=text(said)), Reading("drive")), Succeeded)


def test_in_an_error_a_link_and_words_suffice() -> None:
    result = CallResult(content=text("Unauthorized. Go to https://drive.test/oauth/start?x=1"), isError=True)
    outcome = outcome_of_result(result, Reading("drive"))
    assert isinstance(outcome, SignInNeeded)
    assert outcome.url == "https://drive.test/oauth/start?x=1"


def test_an_error_of_the_protocol_may_hold_one_too() -> None:
    outcome = outcome_of_error(-32603, "not authorized, log in: https://drive.test/login", None, Reading("drive"))
    assert isinstance(outcome, SignInNeeded)


@pytest.mark.parametrize("said", ["boom, see https://drive.test/login", "unauthorized: see https://docs.test/help"])
def test_other_errors_stay_errors(said: str) -> None:
    assert isinstance(outcome_of_result(CallResult(content=text(said), isError=True), Reading("drive")), Failed)


def test_a_link_in_structured_content_is_recognised() -> None:
    assert link_in_result([], {"login": {"url": GRANT}})
    assert link_in_result([{"type": "resource_link", "uri": GRANT}], None)


def test_its_representation_does_not_give_it_away() -> None:
    assert "zzz" not in repr(link_in_result(text(GRANT), None))


@settings(max_examples=60)
@given(
    st.recursive(
        st.none()
        | st.text()
        | st.just(f"sign in {GRANT}")
        | st.just("http://[")
        | st.just("https://a.test/?client_id=%&"),
        lambda of: st.lists(of) | st.dictionaries(st.text(), of),
    )
)
def test_nothing_makes_it_fail(value: Any) -> None:
    content = value if isinstance(value, list) else [value, {"type": "text", "text": value}]
    link_in_error(content, value)
    link_in_result(content, value)
