"""Rule 4: prose never says that a server did nothing. A result that speaks of signing in is a result, unless the
operator wrote down how this server says it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.config import SignInRule
from adapters.tool_servers.outcomes import AnswerContext, CallResult, outcome_of_error, outcome_of_result
from graph.ports import Failed, SignInNeeded, Succeeded
from policies.patterns import compiled
from tests.support.examples import examples

GRANT = "https://idp.test/authorize?client_id=c&response_type=code&state=zzz"
RULE = SignInRule(compiled(r"(?i)please sign in"), "idp.test")
TALKS_OF_SIGNING_IN = [
    "Paid 500 to ACME. Please sign in at https://bank.test/login to see the receipt",
    f"Please sign in first: {GRANT}",
    f"{GRANT}",
    "You are not signed in. Visit https://drive.test/login to continue",
    '{"error": "unauthorized", "url": "https://drive.test/login"}',
]


def text(said: str) -> list[Any]:
    return [{"type": "text", "text": said}]


def outcome(content: list[Any], structured: Any = None, *, error: bool = False, rule: SignInRule | None = RULE) -> Any:
    result = CallResult(content=content, structuredContent=structured, isError=error)
    return outcome_of_result(result, AnswerContext("drive", sign_in=rule))


@pytest.mark.parametrize("said", TALKS_OF_SIGNING_IN)
def test_without_the_operators_rule_what_a_tool_returns_is_a_result_whole_and_with_its_owner(said: str) -> None:
    got = outcome_of_result(CallResult(content=text(said)), AnswerContext("drive", owner="web:ana"))
    assert got == Succeeded(said, owner="web:ana")


@pytest.mark.parametrize("said", TALKS_OF_SIGNING_IN)
def test_without_it_an_error_is_an_error(said: str) -> None:
    assert isinstance(outcome(text(said), error=True, rule=None), Failed)
    assert isinstance(outcome_of_error(-32603, said, None, AnswerContext("drive")), Failed)


@pytest.mark.parametrize(
    "content",
    [
        text(f"Please sign in: {GRANT}."),
        text(f"Please sign in: [here]({GRANT})"),
        text(f'{{"hint": "Please sign in: {GRANT.replace("&", chr(92) + "u0026")}"}}'),
        text(f"Please sign in: {GRANT}. Help: https://help.test/"),
        text(f"Help: https://help.test/. Please sign in: {GRANT}"),
    ],
)
@pytest.mark.parametrize("error", [False, True])
def test_with_it_a_result_that_fits_leads_to_that_host_and_does_not_say_that_nothing_was_done(
    content: list[Any],
    error: bool,  # noqa: FBT001
) -> None:
    assert outcome(content, error=error) == SignInNeeded(GRANT, "", did_nothing=False)


def test_with_it_structured_content_is_read_too() -> None:
    assert isinstance(outcome([], {"say": {"this": f"Please sign in: {GRANT}"}}), SignInNeeded)


@pytest.mark.parametrize(
    "said",
    [
        f"The way in: {GRANT}",
        "Please sign in",
        "Please sign in: https://evil.test/authorize",
        "Please sign in: http://idp.test/authorize",
        "Please sign in: https://idp.test@evil.test/authorize",
        "Please sign in: https://user@idp.test/authorize",
        "Please sign in: https://idp.test:8443/authorize",
        "Please sign in: https://idp.test.evil.test/authorize",
        "Please sign in: https://sub.idp.test/authorize",
    ],
)
def test_with_it_everything_else_is_a_result(said: str) -> None:
    assert outcome(text(said)) == Succeeded(said)


def test_the_link_is_not_in_what_is_logged_of_an_outcome() -> None:
    assert "zzz" not in repr(outcome(text(f"Please sign in: {GRANT}")))


@settings(max_examples=examples(20))
@given(
    st.recursive(
        st.none() | st.text() | st.just(f"please sign in {GRANT}") | st.just("please sign in https://["),
        lambda of: st.lists(of) | st.dictionaries(st.text(), of),
    )
)
def test_nothing_makes_it_fail(value: Any) -> None:
    content = value if isinstance(value, list) else [value, {"type": "text", "text": value}]
    got = outcome(content, value)
    assert isinstance(got, Succeeded) or got.url == GRANT
