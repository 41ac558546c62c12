"""What somebody else's token gets of each operation, and which scope each needs: every operation has a line here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp

from adapters.api.operations import ANY_SCOPE
from bot.dates import day_of
from bot.identity.principal import ALL_SCOPES, Scope
from bot.records import model_usage
from bot.records.model_usage import UsageOf
from graph.usage import ModelUse
from tests.api.serving import ANA, CHLOE, ApiUser, ServedApi
from tests.api.things import THREAD, everything_of_anas


@dataclass(frozen=True)
class Line:
    """How an operation is asked for what is Ana's, and what Chloe, who has nothing to do with it, gets.

    `own`: only what is Chloe's own. `open`: what is nobody's.
    """

    gets: Literal[404, 403, "own", "open"]
    body: Any = None
    status: int = 200
    """Of what is Chloe's own, or nobody's."""
    hers: str = ""
    """What the address says for Chloe where it says whose it is."""


SAID = {"text": "Hello"}
TO_AGENT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "message/send",
    "params": {
        "message": {
            "messageId": "m",
            "contextId": "shared",
            "role": "user",
            "parts": [{"kind": "text", "text": "Hello"}],
        }
    },
}
LINES: Mapping[str, Line] = {
    "listThreads": Line("own"),
    "createThread": Line("own", status=201),
    "getThread": Line(404),
    "sendMessage": Line(404, SAID),
    "getTurn": Line(404),
    "stopThread": Line(404),
    "streamThread": Line(404),
    "listApprovals": Line("own"),
    "getApproval": Line(404),
    "getApprovalForm": Line(404),
    "decideApprovals": Line(404, {"decisions": [{"approval_id": "{approval}", "verb": "approve"}]}),
    "decideApproval": Line(404, {"verb": "reject"}),
    "withdrawApproval": Line(404),
    "retryApproval": Line(404),
    "getClarification": Line(404),
    "answerClarification": Line(404, SAID),
    "dismissClarification": Line(404, {"action": "decline"}),
    "getSignIn": Line(404),
    "getSignInLink": Line(404),
    "replyToSignIn": Line(404, {"done": False}),
    "enterSignInCode": Line(404, {"code": "ABCD-EFGH"}),
    "getOutcome": Line(404),
    "settleOutcome": Line(404, {"choice": "skip"}),
    "listProviders": Line("own"),
    "getAuthUrl": Line("own"),
    "enterConnectionCode": Line("own", {"code": "ABCD-EFGH"}, status=422),
    "listConnections": Line("own"),
    "deleteConnection": Line(404),
    "getMe": Line("own"),
    "listStandingApprovals": Line("own"),
    "revokeStandingApproval": Line(404),
    "listMemories": Line("own"),
    "forgetMemory": Line(404),
    "forgetMemories": Line("own"),
    "getUsage": Line("own"),
    "getUsageOfEverybody": Line(403),
    "listEverythingThatWaits": Line(403),
    "listTurnsOfEverybody": Line(403),
    "getWholeTurn": Line(403),
    "searchAudit": Line(403),
    "exportAudit": Line(403),
    "verifyAudit": Line(403, {}),
    "getStop": Line(403),
    "stopEverything": Line(403, {"why": "because"}),
    "letEverythingGoOn": Line(403, {}),
    "listToolServers": Line(403),
    "retryToolServer": Line(403),
    "listReplicas": Line(403),
    "listAccountsOfEverybody": Line(403),
    "listParked": Line(403),
    "retryParked": Line(403),
    "giveUpParked": Line(403),
    "giveFeedback": Line(404, {"post_id": "{post}", "verdict": "good"}),
    "readAudit": Line(403),
    "getRules": Line(403),
    "askRules": Line(403, {"tool": "workshop__make", "person": "web:ana"}),
    "replayRules": Line(403, {"policy": "version: 1\nrules: []\n"}),
    "getFatigue": Line(403),
    "getRuleSuggestions": Line(403),
    "uploadFile": Line("own", {"file": "words"}, status=400),
    "run": Line("own", {"thread_id": "shared", "user_request": "Hello"}),
    "resume": Line("own", {"thread_id": "shared", "approvals": [{"call_id": "{call}", "approved": True}]}),
    "agentChat": Line(403, {"message": "Hello", "conversation_id": 1}),
    "agentHealth": Line("open"),
    "streamAgent": Line("own", {"prompt": "Hello", "threadId": "shared"}),
    "streamText": Line("own", {"prompt": "Hello", "threadId": "shared"}),
    "query": Line("own", {"query": "Hello"}),
    "streamQuery": Line("own", {"query": "Hello"}),
    "respond": Line(404, {"request_id": "{approval}", "decision": "approved"}),
    "getAgentCard": Line("open"),
    "agentToAgent": Line("own", TO_AGENT),
    "getDocument": Line("open"),
    "getDocs": Line("open"),
}


def names(said: str, each: str) -> bool:
    """Whether an answer has an id. Some are so short that they may stand within what is made by chance."""
    return re.search(rf"(?<![\w-]){re.escape(each)}(?![\w-])", said) is not None


async def test_of_what_is_somebody_elses_nobody_gets_anything(served: ServedApi, ana: ApiUser, chloe: ApiUser) -> None:
    assert set(LINES) == {each.name for each in served.operations}, "every operation has a line"
    things = await everything_of_anas(served)
    await ana.ask("POST", "/run", {"thread_id": "shared", "user_request": "Hello"})
    got, wanted = {}, {}
    for operation in served.operations:
        line = LINES[operation.name]
        path = things.path(operation.path)
        answer = await chloe.ask(operation.method, path, things.filled(line.body))
        wanted[operation.name] = line.status if isinstance(line.gets, str) else line.gets
        got[operation.name] = answer.status
        if line.gets == "own":
            said = str(answer.body)
            assert not any(
                names(said, each) for name, each in things.ids.items() if name not in {"provider", "user_id"}
            )
            assert "the words of Ana" not in said
    assert got == wanted


async def test_what_is_somebodys_own_is_there(served: ServedApi, ana: ApiUser) -> None:
    """Else nobody else's 404 would say anything."""
    things = await everything_of_anas(served)
    got = {}
    for operation in served.operations:
        if operation.method == "GET" and LINES[operation.name].gets == 404 and operation.name != "streamThread":
            got[operation.name] = (await ana.ask("GET", things.path(operation.path))).status
    got["decideApproval"] = (await ana.post(f"approvals/{things.ids['approval']}/decision", {"verb": "approve"})).status
    got["giveFeedback"] = (await ana.post("feedback", things.filled(LINES["giveFeedback"].body))).status
    got["revokeStandingApproval"] = (await ana.delete(f"standing-approvals/{things.ids['grant']}")).status
    got["deleteConnection"] = (await ana.delete(f"connectors/connections/{things.ids['account']}")).status
    assert {name: status for name, status in got.items() if status != 200} == {}


async def test_a_token_does_what_its_scopes_allow_and_nobody_does_anything_without_one(
    served: ServedApi, http: aiohttp.ClientSession, nobody: ApiUser
) -> None:
    things = await everything_of_anas(served)
    wrong = {}
    for operation in served.operations:
        if operation.scope is None:
            continue
        path, body = things.path(operation.path), things.filled(LINES[operation.name].body)
        needed: Scope = "run" if operation.scope == ANY_SCOPE else operation.scope  # for what the line asks
        others = ApiUser(served, http, served.tokens.of(ANA, *sorted(ALL_SCOPES - {needed})))
        statuses = tuple([(await user.ask(operation.method, path, body)).status for user in (others, nobody)])
        if statuses != (403, 401):
            wrong[operation.name] = statuses
    assert wrong == {}


async def test_an_operator_sees_conversations_and_the_log_and_the_log_says_so(
    served: ServedApi, olga: ApiUser, chloe: ApiUser
) -> None:
    things = await everything_of_anas(served)
    seen = await olga.get(f"threads/{things.ids['thread']}")
    assert (seen.status, seen.body["seen_as"]) == (200, "operator")
    listed = await olga.get("threads?everybody=true")
    assert [each["id"] for each in listed.body["threads"]] == [THREAD]
    assert (await chloe.get("threads?everybody=true")).status == 403
    assert (await olga.post(f"threads/{THREAD}/messages", SAID)).status == 404
    log = await olga.get("audit")
    assert [each["entry"]["settled"]["choice"] for each in log.body["entries"]] == [
        "looked at a conversation",
        "looked at the conversations of everybody",
        "looked at the audit log",
    ]
    assert (await olga.get(f"audit?after={log.body['entries'][-1]['seq']}")).body == {"entries": []}
    assert (await olga.get(f"audit?since={served.clock() + 10}")).body == {"entries": []}


async def test_an_operator_sees_what_everybody_used_and_the_log_says_so(
    served: ServedApi, olga: ApiUser, ana: ApiUser
) -> None:
    use = ModelUse(calls=1, input_tokens=10, cached_tokens=4, output_tokens=2, seconds=0.5)
    async with served.database.writing(THREAD) as tx:
        turn = UsageOf("m1", "m1", "default", THREAD, ANA.person_id, "", day_of(served.clock()).isoformat(), 1.0)
        await model_usage.keep(tx, turn, {"large": use})
    total = {**use, "models": ["large"], "cost": None}
    own = await ana.get("usage")
    assert own.body["today"] == {"key": "", **total}
    assert (await olga.get("usage")).body["days"] == []
    assert (await ana.get("operator/usage")).status == 403
    seen = await olga.get("operator/usage?by=person")
    assert seen.body["groups"] == [{"key": ANA.person_id, **total}]
    assert (await olga.get("operator/usage?until=2020-01-01")).body["groups"] == []
    assert (await olga.get("operator/usage?by=mood")).status == 422
    log = await olga.get("audit")
    assert log.body["entries"][0]["entry"]["settled"]["choice"] == "looked at usage"


async def test_an_approver_sees_the_card_and_the_turn_that_it_is_about(served: ServedApi, ben: ApiUser) -> None:
    await served.write(THREAD, "something else")
    message = await served.write(THREAD, "Make a lamp")
    approval = await served.wait_for(THREAD, message)
    seen = await ben.get(f"threads/{THREAD}")
    assert seen.body["seen_as"] == "approver"
    assert [each["text"] for each in seen.body["entries"] if each["kind"] == "message"] == ["Make a lamp"]
    assert (await ben.get(f"approvals/{approval}")).body["arguments"] == {"what": "lamp"}
    assert (await ben.post(f"threads/{THREAD}/messages", SAID)).status == 404
    assert CHLOE.person_id not in str(seen.body)
