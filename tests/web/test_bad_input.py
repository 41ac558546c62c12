"""Bad input gets a clear error and changes nothing; no payload makes a 500."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.web.bodies import LARGEST_BODY, LONGEST_TEXT
from tests.support.examples import examples
from tests.web.serving import Browser, Product, browser_of, serve

MESSAGES = "/api/threads/web%3Aone/messages"
ACTIONS = (
    "/api/session",
    MESSAGES,
    "/api/threads/web%3Aone/stop",
    "/api/approvals/decisions",
    "/api/clarifications/c/answer",
    "/api/clarifications/c/dismissal",
    "/api/outcomes/o",
    "/api/sign-ins/s",
    "/api/sign-ins/s/code",
)


async def send(browser: Browser, path: str, body: bytes, content_type: str = "application/json") -> tuple[int, str]:
    headers = {"X-CSRF-Token": browser.token, "Content-Type": content_type}
    async with browser.http.post(f"{browser.product.url}{path}", data=body, headers=headers) as response:
        return response.status, (await response.json())["error"] if response.status >= 400 else ""


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff\xfe", 400, "not UTF-8"),
        (b"[" * 100_000, 400, "too many values"),
        (b"null", 400, "the body"),
        (b"[]", 400, "the body"),
        (b'{"id": "m"}', 400, "text"),
        (b'{"id": "m", "text": 7}', 400, "text"),
        (b'{"id": "m", "text": "x", "as": "web:ben"}', 400, "as"),
        (b'{"id": "not an id!", "text": "x"}', 400, "id"),
        (b'{"id": "m\\n", "text": "x"}', 400, "id"),
        (b'{"id": "m", "text": " \\n "}', 400, "empty"),
        (b'{"id": "m", "text": "a\\u0000b"}', 400, "NUL"),
        (b'{"id": "m", "text": "a\\ud800b"}', 400, "surrogate"),
        (b'{"id": "m", "text": "x", "y": NaN}', 400, "not JSON"),
        (b'{"id": "m", "text": "x", "y": 1e999}', 400, "too large"),
        (json.dumps({"id": "m", "text": "x" * (LONGEST_TEXT + 1)}).encode(), 413, "20,001 characters"),
        (json.dumps({"id": "m", "text": "x" * LARGEST_BODY}).encode(), 413, "256 KiB"),
    ],
)
async def test_a_bad_message_is_refused_with_a_reason(
    product: Product, ana: Browser, body: bytes, status: int, sentence: str
) -> None:
    answer, error = await send(ana, MESSAGES, body)
    assert answer == status
    assert sentence in error
    assert product.services.messages == []


async def test_the_longest_message_is_taken(product: Product, ana: Browser) -> None:
    status, _ = await send(ana, MESSAGES, json.dumps({"id": "m", "text": "\U0001f600" * LONGEST_TEXT}).encode())
    assert status == 202


async def test_only_json_is_taken(product: Product, ana: Browser) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        status, error = await send(ana, MESSAGES, b'{"id": "m", "text": "x"}', content_type)
        assert status == 400
        assert "application/json" in error
    assert product.services.messages == []


async def test_a_body_that_says_no_length_is_bounded_too(product: Product, ana: Browser) -> None:
    async def endless() -> object:
        for _ in range(100):
            yield b" " * 10_000

    headers = {"X-CSRF-Token": ana.token, "Content-Type": "application/json"}
    async with ana.http.post(f"{product.url}{MESSAGES}", data=endless(), headers=headers) as response:
        assert response.status == 413


async def test_a_form_that_nests_too_deep_is_refused(product: Product, ana: Browser) -> None:
    nested = b'{"a":' * 40 + b"1" + b"}" * 40
    status, error = await send(ana, "/api/clarifications/c/answer", b'{"id": "k", "values": %s}' % nested)
    assert status == 400
    assert "too deeply" in error


@pytest.mark.parametrize(
    "click",
    [
        {"id": "k", "approvals": [], "verb": "approve"},
        {"id": "k", "approvals": ["a"], "verb": "maybe"},
        {"id": "k", "approvals": ["a", "b"], "verb": "approve", "values": {}},
        {"id": "k", "approvals": ["a"], "verb": "reject", "values": {}},
        {"id": "k", "approvals": ["a"] * 101, "verb": "approve"},
        {"id": "k", "approvals": ["a"], "verb": "reject", "reason": "x" * 2001},
        {"id": "k", "approvals": "a", "verb": "approve"},
    ],
)
async def test_a_click_that_makes_no_sense_is_refused(product: Product, ana: Browser, click: dict[str, object]) -> None:
    assert (await ana.post("/api/approvals/decisions", click))[0] == 400
    assert product.services.decisions == []


async def test_an_unreasonable_id_in_a_path_is_404(ana: Browser) -> None:
    for name in ("x" * 501, "a%00b", "a%0Ab"):
        assert (await ana.get(f"/api/approvals/{name}/form"))[0] == 404


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
near_misses = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("k") | json_values,
        "text": json_values,
        "approvals": st.lists(st.text(max_size=5), max_size=3) | json_values,
        "verb": st.sampled_from(["approve", "reject"]) | json_values,
        "reason": json_values,
        "values": st.dictionaries(st.text(max_size=8), json_values, max_size=3) | json_values,
        "choice": st.sampled_from(["it_was_done", "try_again", "skip"]) | json_values,
        "done": json_values,
        "person": json_values,
        "password": json_values,
    },
)
bodies = st.binary(max_size=60) | (near_misses | json_values).map(lambda value: json.dumps(value).encode())


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), bodies), min_size=15, max_size=25))
def test_no_payload_makes_a_500(requests: list[tuple[str, bytes]]) -> None:
    async def send_all() -> list[int]:
        async with serve() as product, browser_of(product) as browser:
            return [(await send(browser, path, body))[0] for path, body in requests]

    assert all(status < 500 for status in asyncio.run(send_all()))
