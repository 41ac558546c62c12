"""The rules over HTTP, for operators."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.api.serving import OLGA, ApiUser, ServedApi
from tests.bot.logbook import Logbook

CHANGED = "version: 1\nrules:\n  - name: no lamps\n    match: {tool: make}\n    decide: deny\n    reason: No.\n"
QUESTION = {"tool": "workshop__make", "person": "web:ana"}


@pytest.fixture
def olga(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """An operator."""
    return ApiUser(served, http, served.tokens.of(OLGA))


@pytest.fixture
def logbook(served: ServedApi) -> Logbook:
    return Logbook(served.database, served.clock, served.policy)


async def test_whoever_is_no_operator_is_refused(ana: ApiUser) -> None:
    answers = [
        await ana.get("operator/rules"),
        await ana.get("operator/fatigue"),
        await ana.get("operator/suggestions"),
        await ana.post("operator/rules/question", QUESTION),
        await ana.post("operator/rules/replay", {"policy": CHANGED}),
    ]
    assert {(each.status, each.body["detail"]) for each in answers} == {(403, "Only operators can look at the rules.")}


async def test_an_operator_sees_the_rules_with_how_often_each_decided(olga: ApiUser, logbook: Logbook) -> None:
    await logbook.end(said="approved", waited=20)
    found = (await olga.get("operator/rules?days=7")).body
    assert (found["mode"], found["counted"], found["rules"]) == ("default", True, [])
    assert found["besides"] == [{"decided_by": "none", "rule": "", "allowed": 0, "asked": 1, "denied": 0}]
    assert (await olga.get("operator/rules?days=0")).status == 422
    (line,) = (await olga.get("operator/fatigue")).body["lines"]
    told = {name: line[name] for name in ("decided_by", "tool", "asked", "unchanged", "other", "candidate")}
    assert told == {"decided_by": "none", "tool": "make", "asked": 1, "unchanged": 1, "other": 0, "candidate": ""}


async def test_a_question_is_answered_and_a_wrong_one_says_what_is_wrong(olga: ApiUser) -> None:
    answer = (await olga.post("operator/rules/question", {**QUESTION, "arguments": {"what": "lamp"}})).body
    told = {name: answer[name] for name in ("verdict", "rule", "approvers", "known_tool", "mode", "platform", "tried")}
    assert told == {
        "verdict": "ask",
        "rule": "",
        "approvers": "web:ana",
        "known_tool": True,
        "mode": "default",
        "platform": "web",
        "tried": [],
    }
    answer = (await olga.post("operator/rules/question", {**QUESTION, "policy": CHANGED})).body
    assert (answer["verdict"], answer["reason"], answer["source"]) == ("deny", "No.", "the changed policy:3")
    refused = await olga.post("operator/rules/question", {**QUESTION, "platform": "fax"})
    assert (refused.status, list(refused.body["errors"])) == (422, ["platform"])
    refused = await olga.post("operator/rules/question", {**QUESTION, "policy": "version: 1\nrules:\n  - 7"})
    assert (refused.status, refused.body["errors"]["policy"][:7]) == (422, "line 3:")
    refused = await olga.post("operator/rules/question", {**QUESTION, "arguments": {"what": "x" * 60_000}})
    assert (refused.status, refused.body["errors"]) == (422, {"arguments": "are too long"})


async def test_a_changed_file_is_replayed_side_by_side(olga: ApiUser, logbook: Logbook) -> None:
    call = await logbook.end(said="approved", what="lamp\u202e")
    found = (await olga.post("operator/rules/replay", {"policy": CHANGED})).body
    assert (found["calls"], found["different"], found["changes"]) == (
        1,
        1,
        [{"before": "ask", "after": "deny", "calls": 1}],
    )
    (difference,) = found["differences"]
    assert (difference["call"], difference["input"]) == (call, '{"what":"lamp⟨U+202E⟩"}')
    assert (difference["recorded"]["why"], difference["changed"]["why"]) == (
        "Asked because no rule covers make on workshop.",
        "Denied because rule “no lamps” covers make on every server.",
    )
    refused = await olga.post("operator/rules/replay", {"policy": "version: 2"})
    assert (refused.status, list(refused.body["errors"])) == (422, ["policy"])


async def test_suggestions_come_with_their_proof(olga: ApiUser, logbook: Logbook) -> None:
    for number in range(12):
        await logbook.end(said="approved", title=f"t{number}")
    async with asyncio.timeout(20):
        while (found := (await olga.get("operator/suggestions")).body)["state"] != "ready":
            await asyncio.sleep(0.01)
    (suggestion,) = found["suggestions"]
    assert (suggestion["kind"], suggestion["looser"], suggestion["open_arguments"]) == ("allow", True, ["title"])
    assert suggestion["because"] == "Approved unchanged 12 times, never edited, rejected or withdrawn."
    proof = suggestion["proof"]
    assert (proof["calls"], proof["changed"], len(proof["examples"])) == (12, 12, 10)
    replayed = (await olga.post("operator/rules/replay", {"policy": suggestion["policy"]})).body
    assert replayed["changes"] == [{"before": "ask", "after": "allow", "calls": 12}]
