"""Whatever is sent to `/api/messages`: a clear answer, nothing changes, and never a 500."""

from __future__ import annotations

import json
import threading
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.shared import actions
from adapters.shared.untrusted_json import MalformedBodyError
from adapters.teams import actions as teams_actions
from adapters.teams.inbound.activities import DEEPEST, decode, heard
from tests.fakes.teams.server import ANA, OTHER_TENANT, TENANT
from tests.support.examples import examples
from tests.support.teams_transports import Json
from tests.teams.serving import Served, an_approval, serving

FINE = frozenset({200, 400, 401, 403, 501})


@pytest.fixture
async def product() -> Any:
    async with serving() as product:
        yield product


def signed(product: Served) -> dict[str, str]:
    return {"Authorization": f"Bearer {product.teams.issue_token()}"}


def an_activity(product: Served, **changes: Any) -> Json:
    return {
        "type": "message",
        "id": "1700000000000",
        "serviceUrl": product.teams.service_url,
        "channelId": "msteams",
        "from": {"id": product.teams.address(ANA), "name": "Ana", "aadObjectId": ANA},
        "recipient": {"id": "28:app", "name": "Countersign"},
        "conversation": {"id": product.teams.personal(ANA), "conversationType": "personal"},
        "channelData": {"tenant": {"id": TENANT}},
        "text": "hello",
        **changes,
    }


# ------------------------------------------------------------------------------------------------ the transport


async def test_a_message_is_let_in(product: Served) -> None:
    answer = await product.transport.activity(an_activity(product))
    assert (answer.status, answer.text) == (200, "")
    assert [message.text for message in product.services.messages] == ["hello"]


async def test_bad_tokens_are_answered_alike(product: Served) -> None:
    answers = [
        await product.transport.activity(an_activity(product), token=token)
        for token in ("", "x.y.z", product.teams.issue_token(exp=1), product.teams.issue_token(key="stranger"))
    ]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert product.services.asked_to_keep == 0


async def test_a_foreign_tenant_is_forbidden(product: Served) -> None:
    answer = await product.transport.activity(an_activity(product, channelData={"tenant": {"id": OTHER_TENANT}}))
    assert answer.status == 403
    assert OTHER_TENANT not in answer.text
    assert product.services.asked_to_keep == 0


async def test_a_body_of_more_than_a_megabyte_is_refused(product: Served) -> None:
    for size in (1_000_001, 3_000_000):
        assert (await product.transport.post("x" * size)).status == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "text/html"])
async def test_only_json_is_taken(product: Served, kind: str) -> None:
    assert (await product.transport.post(json.dumps(an_activity(product)), kind)).status == 415
    assert product.services.asked_to_keep == 0


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        '"message"',
        "{}",
        '{"type": 5}',
        '{"type": ""}',
        '{"type": null}',
        '{"type": "message", "x": NaN}',
        '{"type": "message", "x": 1e999}',
        "[" * 100_000,
        '{"a":' * 200_000,
        '{"type": "message", "x": ' + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1) + "}",
        b"\xff\xfe",
    ],
)
async def test_what_is_malformed_is_said_to_be(product: Served, body: str | bytes) -> None:
    answer = await product.transport.post(body)
    assert answer.status == 400
    assert answer.json["error"].startswith("The request is malformed")
    assert product.services.asked_to_keep == 0


async def test_other_methods_are_not_allowed(product: Served) -> None:
    async with aiohttp.ClientSession() as session, session.get(product.url) as answer:
        assert answer.status == 405


@pytest.mark.parametrize("body", ["{", "x" * 3_000_000])
async def test_what_a_stranger_sends_is_not_even_read(product: Served, body: str) -> None:
    assert (await product.transport.post(body, headers={})).status == 401
    assert (await product.transport.post(body, headers={"Authorization": "Bearer x.y.z"})).status == 401


# ------------------------------------------------------------------------------------------------ what it says


@pytest.mark.parametrize(
    "kind", ["typing", "event", "contactRelationUpdate", "endOfConversation", "moonLanded", "handoff", "trace"]
)
async def test_what_is_not_known_yet_is_acknowledged(product: Served, kind: str) -> None:
    answer = await product.person().sends(kind, name="application/vnd.microsoft.meetingStart")
    assert (answer.status, answer.text) == (200, "")
    assert product.services.asked_to_keep == 0


@pytest.mark.parametrize(
    "name", ["composeExtension/query", "fileConsent/invoke", "config/fetch", "", "message/fetchTask"]
)
async def test_an_invoke_that_is_not_for_us_is_not_implemented(product: Served, name: str) -> None:
    answer = await product.person().invokes(name, {"x": 1})
    assert answer.status == 501
    assert answer.json["error"]["code"] == "NotImplemented"


@pytest.mark.parametrize("name", ["adaptiveCard/action", "task/fetch", "task/submit", "message/submitAction"])
@pytest.mark.parametrize("value", [None, [], "x", 5, {}])
async def test_an_invoke_without_a_value_is_a_bad_request(product: Served, name: str, value: object) -> None:
    answer = await product.person().invokes(name, value)
    assert answer.status == 400
    assert answer.json["error"]["code"] == "BadArgument"


async def test_an_invoke_of_nobodys_is_a_bad_request(product: Served) -> None:
    value = {"action": {"data": {"countersign": "approve", "id": "call-1.1"}}}
    nobody = {"id": "29:x", "name": "Somebody on Skype"}
    sent = an_activity(product, **{"type": "invoke", "name": "adaptiveCard/action", "value": value, "from": nobody})
    assert (await product.transport.activity(sent)).status == 400
    assert product.services.decisions == []


async def test_a_person_without_an_entra_account_is_not_heard(product: Served) -> None:
    answer = await product.transport.activity(
        an_activity(product, **{"from": {"id": "29:x", "name": "Somebody on Skype"}})
    )
    assert answer.status == 200
    assert product.services.asked_to_keep == 0


async def test_nul_and_half_characters_do_not_reach_the_services(product: Served) -> None:
    body = json.dumps(an_activity(product, text="a\0b\ud83d"))
    assert (await product.transport.post(body)).status == 200
    assert [message.text for message in product.services.messages] == ["ab?"]


async def test_an_id_that_is_none_finds_nothing(product: Served) -> None:
    product.services.approvals["call-1.1"] = an_approval()
    for subject in ("", "x" * 9_000, "a\nb", "\u202e", None, 5, ["call-1.1"], {"id": "call-1.1"}):
        value = {"action": {"verb": "approve", "data": {"countersign": "approve", "id": subject}}}
        answer = await product.person().invokes("adaptiveCard/action", value)
        assert answer.message == "There is no such approval."
    assert product.services.approvals["call-1.1"].status == "pending"


# ------------------------------------------------------------------------------------------------ properties

KINDS = st.sampled_from(
    [
        *("message", "invoke", "messageUpdate", "messageDelete", "messageReaction"),
        *("installationUpdate", "conversationUpdate", "typing"),
    ]
)
INVOKES = st.sampled_from(
    [
        *("adaptiveCard/action", "task/fetch", "task/submit", "message/submitAction"),
        *("signin/verifyState", "signin/tokenExchange"),
    ]
)
ACTIONS = st.sampled_from(
    sorted(
        value
        for name, value in (vars(actions) | vars(teams_actions)).items()
        if name.isupper() and isinstance(value, str)
    )
)
NAMES = st.sampled_from(
    [
        *("type", "name", "value", "action", "data", "countersign", "id", "reason", "field:name", "field:duration"),
        *("from", "conversation", "channelData", "text", "recipient", "entities", "attachments", "replyToId", "state"),
        *(
            "reactionsAdded",
            "membersAdded",
            "actionName",
            "actionValue",
            "reaction",
            "feedback",
            "mentioned",
            "content",
        ),
        *("contentType", "conversationType", "timestamp", "trigger", "verb", "aadObjectId"),
    ]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.text(max_size=8),
    ACTIONS,
    st.sampled_from(["call-1.1", "q1", "0:call-1.1", "call-1.1 call-1.2", "[" * 50_000, "1e9", "feedback", "like"]),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)
DATA = st.fixed_dictionaries(
    {"countersign": ACTIONS | LEAVES, "id": LEAVES},
    optional={"reason": VALUES, "field:name": VALUES, "field:duration": VALUES, "field:calendar": VALUES},
)
CLICKED = st.one_of(
    DATA.map(lambda data: {"action": {"type": "Action.Execute", "verb": "x", "data": data}}),
    DATA.map(lambda data: {"data": data}),
    DATA,
)
ATTACHED = st.fixed_dictionaries(
    {
        "contentType": st.sampled_from(
            ["application/vnd.microsoft.teams.file.download.info", "reference", "text/html", "image/png"]
        )
    },
    optional={
        "name": VALUES,
        "contentUrl": VALUES | st.just("https://["),
        "content": VALUES
        | st.fixed_dictionaries({"downloadUrl": VALUES | st.just("x" * 9_000), "fileSize": st.integers() | VALUES}),
    },
)
CHANGES = st.one_of(
    st.fixed_dictionaries({"attachments": st.lists(ATTACHED | VALUES, max_size=3)}),
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.fixed_dictionaries({"name": INVOKES, "value": CLICKED | VALUES}),
    st.fixed_dictionaries({"value": DATA}),
)


async def test_no_payload_makes_a_500(product: Served) -> None:
    product.services.approvals["call-1.1"] = an_approval()
    for kind, changes in made_up():
        answer = await product.transport.post(json.dumps(an_activity(product, **{**changes, "type": kind})))
        assert answer.status in FINE, (kind, changes, answer.text)
        if kind == "invoke" and answer.status == 200:
            assert "went wrong" not in answer.text, (kind, changes)


def made_up() -> list[tuple[str, Json]]:
    """Activities that hypothesis makes up, collected first: they are sent within one event loop."""
    found: list[tuple[str, Json]] = []

    @settings(max_examples=examples(50), database=None, suppress_health_check=list(HealthCheck))
    @given(KINDS | st.just("invoke"), CHANGES)
    def each(kind: str, changes: Json) -> None:
        found.append((kind, changes))

    each()
    return found


@settings(max_examples=examples(65))
@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_body_makes_the_reader_fail(raw: bytes) -> None:
    try:
        activity = decode(raw)
    except MalformedBodyError as error:
        assert str(error)
    else:
        assert isinstance(activity["type"], str)


async def test_html_is_read_beside_the_event_loop(product: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: 4,000 characters of it may take 70 ms."""
    threads: list[threading.Thread] = []

    def noted(activity: Json, recipient: Any) -> Any:
        threads.append(threading.current_thread())
        return heard(activity, recipient)

    monkeypatch.setattr("adapters.teams.inbound.messages.heard", noted)
    page = {"contentType": "text/html", "content": "<ul><li>" * 19 + "x<br>" * 700}
    await product.transport.activity(an_activity(product, attachments=[page]))
    await product.transport.activity(an_activity(product, id="1700000000001"))
    assert [thread is threading.main_thread() for thread in threads] == [False, True]
