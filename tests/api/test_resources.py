"""Threads, approvals, questions and accounts over HTTP: what each answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from adapters.shared.outages import AWAY
from adapters.shared.program_access import REFUSED_A_MINUTE
from bot.records import deliveries
from tests.api.serving import ANA, BEN, CHLOE, ORIGIN, ApiAnswer, ApiUser, ServedApi
from tests.api.things import THREAD, everything_of_anas
from tests.support.outage import FULL


def problem(answer: ApiAnswer) -> tuple[int, str]:
    """The status and the sentence of a problem."""
    assert answer.headers["Content-Type"] == "application/problem+json; charset=utf-8"
    assert answer.body["status"] == answer.status
    assert answer.body["type"] == "about:blank"
    assert answer.body["title"]
    assert len(answer.body["reference"]) == 8
    return answer.status, answer.body["detail"]


# ---------------------------------------------------------------------------------------------- threads


async def test_a_conversation_is_opened_written_in_and_shown(ana: ApiUser) -> None:
    opened = await ana.post("threads")
    assert (opened.status, opened.body["title"]) == (201, "")
    where = opened.headers["Location"].removeprefix("/api/v1/")
    sent = await ana.post(f"{where}/messages?wait=10", {"text": "A word\n to begin with"}, Idempotency_Key="k")
    assert (sent.status, sent.body["status"], sent.body["answer"]) == (200, "ended", "A word\n to begin with")
    again = await ana.post(f"{where}/messages?wait=10", {"text": "A word\n to begin with"}, Idempotency_Key="k")
    assert again.body == sent.body
    other = await ana.post(f"{where}/messages", {"text": "Another"}, Idempotency_Key="k")
    assert problem(other) == (422, "This Idempotency-Key was used for another message.")
    shown = await ana.get(where)
    assert (shown.body["title"], shown.body["seen_as"]) == ("A word to begin with", "owner")
    assert [each["kind"] for each in shown.body["entries"]] == ["message", "post"]
    listed = await ana.get("threads?limit=1")
    assert [(each["id"], each["title"]) for each in listed.body["threads"]] == [
        (opened.body["id"], "A word to begin with")
    ]
    turn = await ana.get(f"{where}/messages/{sent.body['message_id']}")
    assert (turn.status, turn.body) == (200, sent.body)


async def test_nobody_begins_a_conversation_by_writing_where_there_is_none(served: ServedApi, ana: ApiUser) -> None:
    sent = await ana.post("threads/web:run-of-somebody/messages", {"text": "Mine"})
    assert problem(sent) == (404, "This conversation doesn’t exist, or you can’t see it.")
    assert not await served.services.conversations.is_begun("web:run-of-somebody")


async def test_of_different_messages_with_one_key_at_once_one_is_taken(ana: ApiUser) -> None:
    where = (await ana.post("threads")).headers["Location"].removeprefix("/api/v1/")
    texts = ["One", "Two", "Three"]
    await asyncio.gather(*(ana.get(where) for _ in texts))  # from now on each has a connection
    sent = await asyncio.gather(
        *(ana.post(f"{where}/messages?wait=10", {"text": text}, Idempotency_Key="k") for text in texts)
    )
    assert sorted(each.status for each in sent) == [200, 422, 422]
    assert [each.body["answer"] for each in sent if each.status == 200] == [
        text for text, each in zip(texts, sent, strict=True) if each.status == 200
    ]


async def test_a_conversation_is_stopped_where_anything_waits_in_it(served: ServedApi, ana: ApiUser) -> None:
    message = await served.write(THREAD)
    assert problem(await ana.post(f"threads/{THREAD}/stop")) == (409, "Nothing is running here.")
    await served.wait_for(THREAD, message)
    stopped = await ana.post(f"threads/{THREAD}/stop", Idempotency_Key="s")
    assert (stopped.status, stopped.body["text"]) == (200, "Stopped.")
    assert (await ana.post(f"threads/{THREAD}/stop", Idempotency_Key="s")).body == stopped.body


async def test_a_turn_is_stopped_under_another_account_of_its_requesters(
    served: ServedApi, http: aiohttp.ClientSession
) -> None:
    token = served.tokens.of(CHLOE)
    served.tokens.people[token] = replace(served.tokens.people[token], accounts=frozenset({ANA.person_id}))
    anas_other = ApiUser(served, http, token)
    thread = (await anas_other.post("threads")).body["id"]
    await served.wait_for(thread, f"{thread}:m")  # in a conversation of the one, a request of the other
    stopped = await anas_other.post(f"threads/{thread}/stop")
    assert (stopped.status, stopped.body.get("text")) == (200, "Stopped.")


async def test_a_message_says_of_whom_else_its_author_is_an_account(
    served: ServedApi, http: aiohttp.ClientSession
) -> None:
    token = served.tokens.of(CHLOE)
    served.tokens.people[token] = replace(served.tokens.people[token], accounts=frozenset({ANA.person_id}))
    anas_other = ApiUser(served, http, token)
    thread = (await anas_other.post("threads")).body["id"]
    async with served.engine.at_work:
        sent = await anas_other.post(f"threads/{thread}/messages", {"text": "The red one"})
        async with served.database.reading() as tx:
            kept = await deliveries.waiting_message(tx, sent.body["message_id"])
    assert kept is not None
    assert kept.body["owners"] == [ANA.person_id, CHLOE.person_id]


# ---------------------------------------------------------------------------------------------- approvals


async def test_an_approval_is_listed_for_whom_it_waits_for_and_who_asked(
    served: ServedApi, ana: ApiUser, ben: ApiUser
) -> None:
    message = await served.write(THREAD)
    bens = await served.wait_for(THREAD, message, approvers=(BEN.person_id,))
    both = await served.wait_for(THREAD, message, 1)

    async def listed(user: ApiUser, status: str = "pending") -> dict[str, bool]:
        answer = await user.get(f"approvals?status={status}")
        return {each["id"]: each["you_may_decide"] for each in answer.body["approvals"]}

    assert await listed(ana) == {bens: False, both: True}
    assert await listed(ben) == {bens: True, both: True}
    assert (await ben.post(f"approvals/{bens}/decision", {"verb": "approve"})).status == 200
    assert await listed(ben) == {both: True}
    assert await listed(ana, "settled") == {bens: False}
    assert (await ana.get(f"approvals/{bens}")).body["status"] == "approved"


async def test_a_decision_says_by_its_status_what_came_of_it(
    served: ServedApi, ana: ApiUser, ben: ApiUser, chloe: ApiUser
) -> None:
    message = await served.write(THREAD)
    only_bens = await served.wait_for(THREAD, message, approvers=(BEN.person_id,))
    approve: dict[str, Any] = {"verb": "approve"}

    async def decide(user: ApiUser, approval: str, body: Any, **headers: str) -> ApiAnswer:
        return await user.post(f"approvals/{approval}/decision", body, **headers)

    assert problem(await decide(ana, only_bens, approve))[0] == 403
    assert problem(await decide(chloe, only_bens, approve))[0] == 404
    assert problem(await decide(ben, "not-there", approve))[0] == 404
    settled = await decide(ben, only_bens, approve, Idempotency_Key="click")
    assert (settled.status, settled.body) == (
        200,
        {"approval_id": only_bens, "status": "settled", "text": "Approved.", "errors": {}},
    )
    assert (await decide(ben, only_bens, approve, Idempotency_Key="click")).body == settled.body
    late = await decide(ben, only_bens, {"verb": "reject"}, Idempotency_Key="click")
    assert problem(late) == (409, "Already approved by Ben.")

    expiring = await served.wait_for(THREAD, message, 1, expires_in=60.0)
    served.clock.move(61)
    assert problem(await decide(ben, expiring, approve))[0] == 410

    reasoned = await served.wait_for(THREAD, message, 2, reason_required=True)
    wrong = await decide(ben, reasoned, {"verb": "reject"})
    assert problem(wrong)[0] == 422
    assert "reason" in wrong.body["errors"]
    assert (await decide(ben, reasoned, {"verb": "reject", "reason": "Too bright"})).body["text"] == "Rejected."
    for body in ({"verb": "approve", "reason": "x"}, {"verb": "reject", "arguments": {}}, {"verb": "maybe"}, {}):
        assert problem(await decide(ben, reasoned, body))[0] == 422

    two = await served.wait_for(THREAD, message, 3, quorum=2)
    assert (await decide(ben, two, approve)).body["status"] == "counted"
    assert (await decide(ana, two, approve)).body["status"] == "settled"


async def test_somebody_who_might_have_decided_hears_that_another_was_faster(
    served: ServedApi, ana: ApiUser, ben: ApiUser, chloe: ApiUser
) -> None:
    approval = await served.wait_for(THREAD, await served.write(THREAD))
    await ana.post(f"approvals/{approval}/decision", {"verb": "reject"})
    assert problem(await ben.post(f"approvals/{approval}/decision", {"verb": "approve"})) == (
        409,
        "Already rejected by Ana.",
    )
    assert problem(await chloe.post(f"approvals/{approval}/decision", {"verb": "approve"}))[0] == 404


async def test_several_are_decided_at_once_each_with_its_own_verb_and_reason(served: ServedApi, ben: ApiUser) -> None:
    message = await served.write(THREAD)
    one, two, three, others = [
        await served.wait_for(THREAD, message, number, **how)
        for number, how in enumerate([{}, {}, {}, {"approvers": ("web:olga",), "requesters": ("web:olga",)}])
    ]
    decisions = [
        {"approval_id": one, "verb": "approve"},
        {"approval_id": two, "verb": "reject", "reason": "Not today"},
        {"approval_id": others, "verb": "approve"},
    ]
    answer = await ben.post("approvals/decisions", {"decisions": decisions}, Idempotency_Key="all")
    assert answer.status == 200
    assert {each: result["status"] for each, result in answer.body["results"].items()} == {
        one: "settled",
        two: "settled",
        others: "not_found",
    }
    assert (await ben.post("approvals/decisions", {"decisions": decisions}, Idempotency_Key="all")).body == answer.body
    assert (await ben.get(f"approvals/{two}")).body["reason"] == "Not today"
    assert (await ben.get(f"approvals/{three}")).body["status"] == "pending"
    late = await ben.post("approvals/decisions", {"decisions": decisions[:1]})
    assert problem(late) == (409, "Already approved by Ben.")
    assert late.body["results"][one]["status"] == "already_settled"
    twice = {"decisions": [{"approval_id": three, "verb": "approve"}, {"approval_id": three, "verb": "reject"}]}
    assert problem(await ben.post("approvals/decisions", twice))[0] == 422
    assert problem(await ben.post("approvals/decisions", {"decisions": []}))[0] == 422


async def test_a_call_is_approved_with_other_arguments(served: ServedApi, ben: ApiUser) -> None:
    message = await served.write(THREAD)
    approval = await served.wait_for(THREAD, message, editable=("what",))
    form = await ben.get(f"approvals/{approval}/form")
    assert (form.body["title"], form.body["values"]) == ("workshop: make", {"what": "lamp"})
    wrong = await ben.post(f"approvals/{approval}/decision", {"verb": "approve", "arguments": {"what": ["a", "list"]}})
    assert problem(wrong)[0] == 422
    edited = await ben.post(f"approvals/{approval}/decision", {"verb": "approve", "arguments": {"what": "desk"}})
    assert edited.status == 200
    assert (await ben.get(f"approvals/{approval}")).body["arguments"] == {"what": "desk"}
    assert problem(await ben.get(f"approvals/{approval}/form"))[0] == 409


async def test_who_asked_takes_it_back(served: ServedApi, ana: ApiUser, ben: ApiUser) -> None:
    approval = await served.wait_for(THREAD, await served.write(THREAD))
    assert problem(await ben.post(f"approvals/{approval}/withdrawal"))[0] == 403
    assert (await ana.post(f"approvals/{approval}/withdrawal")).status == 200
    assert problem(await ben.post(f"approvals/{approval}/decision", {"verb": "approve"}))[0] == 410


# ------------------------------------------------------------------- questions, sign-ins, outcomes


async def test_a_question_is_shown_and_answered(served: ServedApi, ana: ApiUser) -> None:
    message = await served.write(THREAD)
    question = await served.question(THREAD, message)
    assert (await ana.get(f"clarifications/{question}")).body["question"] == "Which lamp?"
    refused = await ana.post(f"clarifications/{question}/dismissal", {"action": "decline"})
    assert problem(refused)[0] == 403  # one of the model's has to be answered
    assert problem(await ana.post(f"clarifications/{question}/answer", {"text": "a", "values": {}}))[0] == 422
    answered = await ana.post(f"clarifications/{question}/answer", {"text": "The red one"}, Idempotency_Key="a")
    assert (answered.status, answered.body["status"]) == (200, "settled")
    again = await ana.post(f"clarifications/{question}/answer", {"text": "The red one"}, Idempotency_Key="a")
    assert again.body == answered.body
    assert problem(await ana.post(f"clarifications/{question}/answer", {"text": "The blue one"}))[0] == 409


async def test_whoever_was_asked_answers_under_another_account_of_theirs(
    served: ServedApi, http: aiohttp.ClientSession
) -> None:
    message = await served.write(THREAD)
    token = served.tokens.of(CHLOE, "read", "approve")
    served.tokens.people[token] = replace(served.tokens.people[token], accounts=frozenset({ANA.person_id}))
    anas_other = ApiUser(served, http, token)
    question, outcome = await served.question(THREAD, message), await served.outcome(THREAD, message)
    assert (await anas_other.get(f"clarifications/{question}")).body["question"] == "Which lamp?"
    answered = await anas_other.post(f"clarifications/{question}/answer", {"text": "The red one"})
    assert (answered.status, answered.body["status"]) == (200, "settled")
    assert (await anas_other.post(f"outcomes/{outcome}", {"choice": "skip"})).body["status"] == "settled"
    sign_in = await served.sign_in(THREAD, message)
    assert problem(await anas_other.get(f"sign-ins/{sign_in}/link"))[0] == 404  # it connects the account that asked


async def test_a_sign_in_gives_its_link_and_takes_a_reply(served: ServedApi, ana: ApiUser) -> None:
    sign_in = await served.sign_in(THREAD, await served.write(THREAD))
    assert (await ana.get(f"sign-ins/{sign_in}")).body["host"] == "board.example.com"
    link = await ana.get(f"sign-ins/{sign_in}/link")
    assert link.body == {"url": "https://board.example.com/start", "message": "Please sign in."}
    assert problem(await ana.post(f"sign-ins/{sign_in}/code", {"code": "ABCD-EFGH"}))[0] in {403, 404, 422}
    assert (await ana.post(f"sign-ins/{sign_in}", {"done": True})).body["status"] == "settled"
    assert problem(await ana.post(f"sign-ins/{sign_in}", {"done": True}))[0] == 409


async def test_what_came_of_a_call_is_said_once(served: ServedApi, ana: ApiUser) -> None:
    outcome = await served.outcome(THREAD, await served.write(THREAD))
    assert (await ana.get(f"outcomes/{outcome}")).body["tool"] == "make"
    assert (await ana.post(f"outcomes/{outcome}", {"choice": "skip"})).body["status"] == "settled"
    assert problem(await ana.post(f"outcomes/{outcome}", {"choice": "it_was_done"}))[0] == 409


# ------------------------------------------------------------------------------- accounts, and what is one's own


async def test_accounts_are_connected_listed_and_disconnected(served: ServedApi, ana: ApiUser) -> None:
    board = {"provider": "board", "name": "Board", "scopes": ["read"], "connected": False}
    assert (await ana.get("connectors/providers")).body == [board]
    link = await ana.get("connectors/board/auth-url")
    assert link.body["auth_url"].startswith("http://127.0.0.1/oauth/start?s=")
    assert problem(await ana.get("connectors/elsewhere/auth-url"))[0] == 404
    connection = await served.account()
    (listed,) = (await ana.get("connectors/connections")).body
    assert {name: listed[name] for name in ("id", "provider", "account_label", "scopes", "status")} == {
        "id": connection,
        "provider": "board",
        "account_label": "a@b.example",
        "scopes": ["read"],
        "status": "error",  # sealed with no key of ours
    }
    assert (await ana.delete(f"connectors/connections/{connection}")).status == 200
    assert (await ana.get("connectors/connections")).body == []


async def test_standing_approvals_are_listed_and_revoked(served: ServedApi, ana: ApiUser) -> None:
    things = await everything_of_anas(served)
    (listed,) = (await ana.get("standing-approvals")).body["standing_approvals"]
    assert (listed["id"], listed["arguments"], listed["client"]) == (things.ids["grant"], {"what": "lamp"}, "")
    statuses = [(await ana.delete(f"standing-approvals/{listed['id']}")).body["status"] for _ in range(2)]
    assert statuses == ["settled", "already_settled"]
    assert (await ana.get("standing-approvals")).body == {"standing_approvals": []}


async def test_somebody_is_told_who_they_are(ana: ApiUser, olga: ApiUser) -> None:
    assert (await ana.get("me")).body == {
        "person_id": "web:ana",
        "name": "Ana",
        "scopes": ["approve", "read", "run"],
        "via": "token",
        "accounts": ["web:ana"],
        "operator": False,
    }
    assert (await olga.get("me")).body["operator"] is True


# ------------------------------------------------------------------------------------- what goes wrong, and other sites


async def test_what_is_not_served_is_a_problem_too(ana: ApiUser) -> None:
    for path in ("nothing", "threads/web:a/nothing", "approvals/a/b/c"):
        assert problem(await ana.get(path))[0] == 404
    wrong = await ana.ask("PUT", "/api/v1/threads", {})
    assert problem(wrong)[0] == 405
    assert wrong.headers["Allow"] == "GET, POST, OPTIONS"
    for path, status in {"me": 200, "nothing": 404, "threads/web:t/events": 405}.items():
        async with ana.http.head(f"{ana.url}/api/v1/{path}", headers=ana.headers) as response:
            assert response.status == status
            assert response.content_type == ("application/json" if status == 200 else "application/problem+json")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"data": b'{"text": ', "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b'{"text": "\\ud800"}', "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b"[" * 40 + b"]" * 40, "headers": {"Content-Type": "application/json"}}, 400),
        ({"data": b" " * 300_000, "headers": {"Content-Type": "application/json"}}, 413),
        ({"data": b"text=a"}, 415),
        ({"json": {"text": ""}}, 422),
        ({"json": {"text": "a", "more": 1}}, 422),
        ({"json": {"text": "a"}, "params": "wait=soon"}, 422),
        ({"json": {"text": "a"}, "params": "wait=1&wait=2"}, 422),
        ({"json": {"text": "a"}, "headers": {"Idempotency-Key": "k" * 256}}, 422),
    ],
)
async def test_what_cannot_be_read_is_refused(
    served: ServedApi, ana: ApiUser, sent: dict[str, Any], status: int
) -> None:
    sent = sent | {"headers": ana.headers | sent.get("headers", {})}
    await served.open("web:t")
    async with ana.http.post(f"{ana.url}/api/v1/threads/web:t/messages", **sent) as response:
        assert response.status == status
        assert (await response.json())["status"] == status


async def test_too_many_are_told_when_to_come_again(served: ServedApi, ana: ApiUser) -> None:
    await served.open("web:many")

    async def tried() -> ApiAnswer:
        return await ana.post("threads/web:many/messages", {"text": "Hello"})

    answers = [await tried() for _ in range(21)]
    assert {each.status for each in answers[:20]} == {202} | {each.status for each in answers[:20]} & {200}
    assert problem(answers[20])[0] == 429
    assert 0 < int(answers[20].headers["Retry-After"]) <= 60
    links = [await ana.get("connectors/board/auth-url") for _ in range(5)]
    assert {each.status for each in links} == {200}, "the link that was not used is given again"


async def test_while_the_records_are_away_the_log_says_so(
    served: ServedApi, ana: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise FULL

    monkeypatch.setattr(served.conversations, "turn", away)
    where = (await ana.post("threads")).headers["Location"].removeprefix("/api/v1/")
    with capture_logs() as logged:
        for _ in range(2):
            answer = await ana.get(f"{where}/messages/web:one")
            assert problem(answer) == (503, AWAY)
    told = [(line["event"], line["says"]) for line in logged if line["log_level"] != "debug"]
    assert told == [("requests_refused", "database or disk is full")], "once"


async def test_pages_of_listed_sites_may_read_answers_and_no_others(ana: ApiUser, nobody: ApiUser) -> None:
    ours = await ana.get("me", Origin=ORIGIN)
    assert ours.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "Access-Control-Allow-Credentials" not in ours.headers
    for answer in (await ana.get("me", Origin="https://elsewhere.example"), await ana.get("me", Origin="null")):
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert answer.headers["Vary"] == "Origin"
    asked = await nobody.ask("OPTIONS", "/api/v1/threads", Origin=ORIGIN, Access_Control_Request_Method="POST")
    assert (asked.status, asked.headers["Access-Control-Allow-Methods"]) == (204, "GET, POST")
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    other = await nobody.ask("OPTIONS", "/api/v1/threads", Origin="https://elsewhere.example")
    assert "Access-Control-Allow-Origin" not in other.headers
    missing = await nobody.ask("GET", "/api/v1/nothing", Origin=ORIGIN)
    assert missing.headers["Access-Control-Allow-Origin"] == ORIGIN


async def test_an_address_with_many_bad_tokens_has_to_wait_but_not_a_proxys(nobody: ApiUser) -> None:
    bad = {"Authorization": "Bearer x"}
    passed_on = bad | {"X_Forwarded_For": "203.0.113.1"}
    statuses = [(await nobody.get("threads", **bad)).status for _ in range(REFUSED_A_MINUTE + 1)]
    assert statuses == [401] * REFUSED_A_MINUTE + [429]
    assert {(await nobody.get("threads", **passed_on)).status for _ in range(3)} == {401}


async def test_without_a_good_token_the_answer_says_how_to_sign_in(nobody: ApiUser) -> None:
    answer = await nobody.get("me")
    assert problem(answer)[0] == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="countersign"'
    assert problem(await nobody.get("me", Authorization="Bearer forged"))[0] == 401
