"""Whatever is sent to `/slack/events`: a clear answer, nothing changes, and never a 500."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.shared.untrusted_json import MalformedBodyError
from adapters.slack.config import SlackConfig
from adapters.slack.inbound.requests import DEEPEST, checked, decode
from adapters.slack.sender import SlackSender
from tests.slack.serving import SECRET, Served, receiving, serving, stand_in_services
from tests.support.examples import examples
from tests.support.slack_transports import HttpTransport

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
FINE = frozenset({200, 400})


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


async def test_slack_checks_the_address(product: Served) -> None:
    answer = await product.http.post(json.dumps({"type": "url_verification", "token": "x", "challenge": "abc"}), JSON)
    assert (answer.status, answer.json) == (200, {"challenge": "abc"})


async def test_slack_checks_the_certificate(product: Served) -> None:
    assert (await product.http.post("ssl_check=1&token=x", FORM)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=ü"},
        {"X-Slack-Request-Timestamp": "1"},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "soon"},
        {"X-Slack-Request-Timestamp": "-5"},
        {"X-Slack-Request-Timestamp": "9" * 400},
        {"X-Slack-Request-Timestamp": "١٢٣"},
    ],
)
async def test_what_slack_has_not_signed_is_refused(product: Served, headers: dict[str, str]) -> None:
    said = await product.person().says("C1", "hi")
    answer = await product.http.post(json.dumps({"type": "event_callback", "event": said.message}), JSON, headers)
    assert answer.status == 401
    assert answer.json["error"]


async def test_what_was_signed_with_another_secret_is_refused(product: Served) -> None:
    answer = await HttpTransport(product.url, "another secret").post(
        '{"type": "url_verification", "challenge": "a"}', JSON
    )
    assert answer.status == 401


async def test_a_signature_is_good_for_five_minutes(product: Served) -> None:
    for age, status in ((290, 200), (310, 401)):
        signed_at = time.time() - age
        transport = HttpTransport(product.url, SECRET, lambda signed_at=signed_at: signed_at)  # type: ignore[misc]  # one per round
        assert (await transport.post('{"type": "url_verification", "challenge": "a"}', JSON)).status == status


async def test_a_body_of_more_than_a_megabyte_is_refused(product: Served) -> None:
    for body in ("x" * 1_000_001, "x" * 3_000_000):
        assert (await product.http.post(body, FORM)).status == 413


async def test_a_body_that_is_no_utf8_is_refused(product: Served) -> None:
    headers = {"X-Slack-Request-Timestamp": "1", "X-Slack-Signature": "v0=1", "Content-Type": JSON}
    async with (
        aiohttp.ClientSession() as session,
        session.post(product.url, data=b"\xff\xfe", headers=headers) as answer,
    ):
        assert answer.status == 401


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("", JSON),
        ("", FORM),
        ("{", JSON),
        ("[]", JSON),
        ("null", JSON),
        ("{}", JSON),
        ("[" * 100_000, JSON),
        ('{"type": "url_verification", "challenge": ' + "[" * 500 + "]" * 500 + "}", JSON),
        ('{"a":' * 200_000, JSON),
        ("payload=%7B", FORM),
        ("payload=", FORM),
        ("payload=[]", FORM),
        ("payload=%FF", FORM),
        ("nothing=here", FORM),
        ("command=/countersign", FORM),
        ("command=/countersign&user_id=U1", FORM),
        (json.dumps({"type": "event_callback"}), JSON),
        (json.dumps({"type": "event_callback", "event": []}), JSON),
        (json.dumps({"type": "event_callback", "event": {"type": 5}}), JSON),
        (json.dumps({"type": "event_callback", "event": {"type": "message"}, "authorizations": {}}), JSON),
        (json.dumps({"type": "event_callback", "event": {"type": "message"}, "authorizations": [5]}), JSON),
        (json.dumps({"type": "block_actions", "user": {"id": "U1"}, "actions": []}), JSON),
        (json.dumps({"type": "block_actions", "user": {"id": "U1"}, "actions": [{}]}), JSON),
        (json.dumps({"type": "view_submission", "user": {"id": "U1"}, "view": "modal"}), JSON),
        (json.dumps({"type": "interactive_message", "callback_id": "x"}), JSON),
        (json.dumps({"type": ["event_callback"]}), JSON),
    ],
)
async def test_what_is_malformed_is_said_to_be(product: Served, body: str, content_type: str) -> None:
    answer = await product.http.post(body, content_type)
    assert answer.status == 400
    assert answer.json["error"].startswith("The request is malformed")


async def test_what_is_not_known_yet_is_acknowledged(product: Served) -> None:
    who = {"user": {"id": "U1"}, "team": {"id": "T1"}}
    for payload in (
        {"type": "event_callback", "team_id": "T1", "event": {"type": "moon_landed", "user": "U1"}},
        {"type": "shortcut", "callback_id": "global", **who},
        {"type": "message_action", "callback_id": "another", **who},
        {"type": "view_closed", "view": {"type": "modal", "callback_id": "x"}, **who},
        {"type": "block_suggestion", "action_id": "x", **who},
    ):
        assert (await product.http.post(json.dumps(payload), JSON)).status == 200
    assert (await product.http.post("command=/other&user_id=U1&channel_id=C1&team_id=T1", FORM)).status == 200


async def test_nul_and_half_characters_do_not_reach_the_services(product: Served) -> None:
    said = await product.person().says("C1", "<@UBOT> a\0b\ud83d")
    assert said.status == 200
    assert [m.text for m in product.services.messages] == ["ab?"]


# ------------------------------------------------------------------------------------------------ properties

IDS = st.sampled_from(["T1", "U1", "C1", "D1", "UBOT", "1700000000.000100", "V1", "approve", "reject", "page", "edit"])
ODD = st.sampled_from(
    ["[]", "5", '{"subject": 5}', '{"subject": "a b"}', '{"who": 1}', "[" * 100_000, "http://[", "https://a\nb"]
)
KINDS = st.sampled_from(
    [
        "event_callback",
        "block_actions",
        "view_submission",
        "message_action",
        "block_suggestion",
        "view_closed",
        "url_verification",
        "shortcut",
        "message",
        "app_mention",
        "modal",
        "home",
        "/countersign",
        "stop",
        "app_home_opened",
        "user_change",
        "tokens_revoked",
        "assistant_thread_started",
        "agent_session_stopped",
        "message_changed",
        "edit_form",
        "reject_form",
        "ask_form",
    ]
)
NAMES = st.sampled_from(
    [
        "type",
        "event",
        "user",
        "team",
        "team_id",
        "user_id",
        "channel",
        "channel_id",
        "view",
        "actions",
        "action_id",
        "value",
        "container",
        "message",
        "message_ts",
        "ts",
        "thread_ts",
        "text",
        "id",
        "callback_id",
        "state",
        "values",
        "private_metadata",
        "response_url",
        "response_urls",
        "trigger_id",
        "authorizations",
        "enterprise",
        "enterprise_id",
        "is_ext_shared_channel",
        "command",
        "subtype",
        "previous_message",
        "item",
        "tokens",
        "bot",
        "assistant_thread",
        "function",
        "tab",
        "files",
        "edited",
        "hash",
        "challenge",
        "is_enterprise_install",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8) | IDS | ODD | KINDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=14
)
PAYLOADS = st.dictionaries(NAMES, VALUES, max_size=8).flatmap(
    lambda payload: KINDS.map(lambda kind: {**payload, "type": kind})
)
EVENTS = st.dictionaries(NAMES, VALUES, max_size=8).flatmap(
    lambda event: KINDS.map(lambda kind: {"type": "event_callback", "team_id": "T1", "event": {**event, "type": kind}})
)
CLICKS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["block_actions", "view_submission", "message_action"]),
        "user": st.fixed_dictionaries({"id": st.just("U1")}, optional={"team_id": VALUES}),
        "team": st.just({"id": "T1"}),
        "actions": st.lists(st.fixed_dictionaries({"action_id": KINDS | IDS}, optional={"value": VALUES}), min_size=1),
        "view": st.dictionaries(NAMES, VALUES, max_size=6).map(lambda v: {"type": "modal", "callback_id": "x", **v}),
        "callback_id": KINDS | IDS,
    },
    optional={"container": VALUES, "message": VALUES, "channel": VALUES, "trigger_id": VALUES, "response_url": VALUES},
)
FILES = st.dictionaries(
    st.sampled_from(["id", "name", "title", "mimetype", "size", "mode", "file_access", "url_private_download"]),
    VALUES | st.sampled_from(["F1", "tombstone", "external", "check_file_info", "https://[", 10**400, "x" * 9_000]),
)
MESSAGES = st.lists(FILES | VALUES, max_size=3).map(
    lambda files: {
        "type": "event_callback",
        "team_id": "T1",
        "event": {
            **{"type": "message", "subtype": "file_share", "channel": "D1", "channel_type": "im", "user": "U1"},
            **{"ts": "1700000000.000100", "text": "", "files": files},
        },
    }
)
USUAL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@USUAL
@given(payload=PAYLOADS | EVENTS | CLICKS | MESSAGES)
async def test_no_payload_makes_a_500(product: Served, payload: dict[str, Any]) -> None:
    as_json = await product.http.post(json.dumps(payload), JSON)
    as_form = await product.http.post("payload=" + quote(json.dumps(payload)), FORM)
    assert {as_json.status, as_form.status} <= FINE


@USUAL
@given(fields=st.dictionaries(NAMES, st.text(max_size=10) | IDS | KINDS, max_size=8))
async def test_no_form_makes_a_500(product: Served, fields: dict[str, str]) -> None:
    encoded = urlencode(fields, errors="replace")
    assert (await product.http.post(encoded, FORM)).status in FINE


@settings(max_examples=examples(65))
@given(payload=PAYLOADS | EVENTS | CLICKS | VALUES)
def test_a_payload_is_refused_or_stays_what_it_is(payload: Any) -> None:
    try:
        once = checked(payload)
    except MalformedBodyError as error:
        assert str(error)
    else:
        assert checked(once) == once


@settings(max_examples=examples(65))
@given(payload=PAYLOADS | EVENTS | CLICKS)
def test_a_body_is_read_as_what_it_says(payload: Any) -> None:
    try:
        expected = checked(payload)
    except MalformedBodyError:
        return
    text = json.dumps(payload)
    assert decode(text.encode(), JSON) == expected
    assert decode(f"payload={quote(text)}".encode(), FORM) == expected


@settings(max_examples=examples(65))
@given(
    typed=st.lists(st.sampled_from(["%", "2", "5", "C", "c", "%22", "%2522", "%7B", "+", '"', "ü", "%C3%BC", "%2F"]))
)
def test_escapes_in_a_form_are_read_once(typed: list[str]) -> None:
    body = f"command=/countersign&user_id=U1&channel_id=C1&text={''.join(typed)}"
    try:
        expected = dict(parse_qsl(body, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        with pytest.raises(MalformedBodyError, match="not UTF-8"):
            decode(body.encode(), FORM)
    else:
        assert decode(body.encode(), FORM) == expected


@pytest.mark.parametrize("taken_out", ["\0", "\ud800", "\udfff"])
def test_what_no_database_keeps_is_taken_out_of_json(taken_out: str) -> None:
    text = json.dumps({"type": "url_verification", "challenge": f"a{taken_out}b"})
    assert decode(text.encode(), JSON)["challenge"] in {"ab", "a?b"}
    assert decode(f"payload={quote(text)}".encode(), FORM)["challenge"] in {"ab", "a?b"}


def test_depth_is_counted() -> None:
    deep: Any = "x"
    for _ in range(DEEPEST):
        deep = [deep]
    with pytest.raises(MalformedBodyError, match="too deeply"):
        checked({"type": "url_verification", "challenge": "a", "more": deep})


async def test_without_a_secret_no_address_is_opened() -> None:
    with pytest.raises(ValueError, match="signing secret"):
        SlackSender(SlackConfig(bot_token="xoxb-1"), stand_in_services().link)
    config = SlackConfig(bot_token="xoxb-1", app_token="xapp-1", signing_secret=SECRET)
    async with receiving(config) as receiver:
        assert receiver.routes() == []
