"""`POST /run` and `POST /resume`, as a client that knows only their description uses them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from aiohttp.test_utils import make_mocked_request
from mcp.server.fastmcp import Context
from pydantic import BaseModel

from adapters.api.operations import ApiCall
from adapters.api.run_contract import RunBody, RunContract
from adapters.shared.problems import Problem
from bot.conversations import TurnState
from bot.domain import Person
from bot.identity.principal import Principal
from tests.api.contract_clients import Runs, http, pending, response_of, token, with_tokens
from tests.fakes.oauth import Browser
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, fake_openai
from tests.support.brain import obedient
from tests.support.fixtures import connect, shop
from tests.support.notes import ALLOWED, notes_server
from tests.support.notes import entry as notes_entry
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry

if TYPE_CHECKING:
    from adapters.api.turns import ApiTurns
    from bot.services import Services

__all__ = ["shop"]


class Size(BaseModel):
    """What a tool wants to know."""

    width: int
    colour: str = "red"


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """A model service that does what the message says, and fails where that is nothing but bad luck."""

    def brain(request: Request) -> Reply:
        last = str(request["messages"][-1]["content"])
        if last.endswith("unlucky") and "use make" not in last:
            return Reply(status=401, error={"code": "invalid_api_key", "message": "Incorrect key"})
        return obedient(request)

    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A product with that tool server and that model, which takes tokens."""

    async def order(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        given = await ctx.elicit(f"How large is the {what}?", Size)
        sure = await ctx.elicit(f"Is {given.data} right?", Size)  # type: ignore[union-attr]
        return f"ordered {what}: {given.action}, {sure.action}"

    shop.server.tool()(order)
    home = with_tokens(ProductFolder(tmp_path))
    connect(home, shop, model)
    return home


@pytest.fixture
async def ana(home: ProductFolder) -> AsyncIterator[Runs]:
    """Ana's program."""
    async with product_here(home) as url, http() as session:
        yield Runs(url, session, token("ana"))


def other(client: Runs, subject: str, scope: str = "") -> Runs:
    """Somebody else's program, or hers with another token."""
    return Runs(client.url, client.http, token(subject, scope))


async def test_calls_are_approved_and_rejected_and_those_not_named_stay(ana: Runs, shop: Workshop) -> None:
    assert response_of(await ana.run("t", "hello")) == "You said: hello"
    asked = await ana.asked(
        "t", "use make what=lamp; make what=desk count=2; make what=bed; look what=sky", "confirmation"
    )
    lamp, desk, bed = asked["tool_calls"]
    assert set(lamp) == {"call_id", "tool_name", "server", "arguments"}
    assert [(c["tool_name"], c["server"]) for c in (lamp, desk, bed)] == [("make", "workshop")] * 3
    assert desk["arguments"] == {"what": "desk", "count": 2}

    left = pending(await ana.approve("t", lamp["call_id"]), "t", "confirmation")
    assert left["tool_calls"] == [desk, bed]
    assert shop.done == ["make lamp 1"]

    for wrong, status in (
        ([{"call_id": desk["call_id"], "approved": True}, {"call_id": "no such call", "approved": True}], 404),
        ([{"call_id": desk["call_id"], "approved": True}, {"call_id": lamp["call_id"], "approved": True}], 409),
        ([{"call_id": desk["call_id"], "approved": False}], 422),
        ([{"call_id": desk["call_id"], "approved": False, "feedback": " "}], 422),
        ([{"call_id": desk["call_id"], "approved": "yes"}], 422),
        ([{"call_id": desk["call_id"], "approved": True}] * 2, 422),
    ):
        refused = await ana.decide("t", *wrong)
        assert (refused.status, refused.body["status"]) == (status, status), refused
    again = pending(await ana.approve("t", lamp["call_id"]), "t", "confirmation")  # delivered twice
    assert again["tool_calls"] == [desk, bed]

    decided = (
        {"call_id": desk["call_id"], "approved": False, "feedback": "We have one."},
        {"call_id": bed["call_id"], "approved": True},
    )
    said = response_of(await ana.decide("t", *decided))
    assert "We have one." in said
    assert "made bed" in said
    assert response_of(await ana.decide("t", *decided)) == said
    assert shop.done == ["make lamp 1", "make bed 1"]
    assert (await ana.approve("t", desk["call_id"])).status == 409


async def test_bodies_that_say_both_or_neither_are_refused_and_where_nothing_waits_nothing_is_needed(ana: Runs) -> None:
    approvals, responses = [{"call_id": "c", "approved": True}], [{"call_id": "c", "response": "r"}]
    for body in (
        {"thread_id": "t"},
        {"thread_id": "t", "approvals": approvals, "clarification_responses": responses},
        {"thread_id": "t", "approvals": [], "clarification_responses": []},
        {"approvals": approvals},
        {"thread_id": "", "approvals": approvals},
        {"thread_id": "t", "clarification_responses": [{"call_id": "c"}]},
    ):
        assert (await ana.post("/resume", body)).status == 422, body
    assert (await ana.post("/run", {"thread_id": "t"})).status == 422
    assert (await ana.run("t", "  ")).status == 400
    await ana.run("t", "hello")
    for thread, said in (("t", "You said: hello"), ("never heard of", "")):
        for nothing in (await ana.approve(thread, "c"), await ana.decide(thread)):
            assert (nothing.status, nothing.body["pending_action"]) == (200, {"kind": "no_action_needed"})
            assert nothing.body["response"] == said


async def test_what_was_decided_elsewhere_is_asked_for_by_naming_nothing(ana: Runs, shop: Workshop) -> None:
    asked = await ana.asked("t", "use make what=lamp; make what=desk", "confirmation")
    lamp, desk = asked["tool_calls"]
    assert pending(await ana.decide("t"), "t", "confirmation") == asked
    await ana.approve("t", lamp["call_id"])
    assert (await ana.decide("t", {"call_id": lamp["call_id"], "approved": False, "feedback": "No."})).status == 409
    assert pending(await ana.decide("t"), "t", "confirmation")["tool_calls"] == [desk]
    assert shop.done == ["make lamp 1"]


async def test_a_thread_is_its_callers_own_and_a_token_allows_what_its_scopes_say(ana: Runs, shop: Workshop) -> None:
    ben = other(ana, "ben")
    asked = await ana.asked("the same", "use make what=lamp", "confirmation")
    bens = await ben.asked("the same", "use make what=desk", "confirmation")
    (lamp,), (desk,) = asked["tool_calls"], bens["tool_calls"]
    assert (await ben.approve("the same", lamp["call_id"])).status == 404
    assert (await other(ana, "ana", "run").approve("the same", lamp["call_id"])).status == 403
    assert (await other(ana, "ana", "read").run("the same", "hello")).status == 403
    assert (await Runs(ana.url, ana.http, "forged").run("the same", "hello")).status == 401
    assert response_of(await ben.approve("the same", desk["call_id"])) == "Results: made desk"
    assert shop.done == ["make desk 1"]
    assert response_of(await ana.approve("the same", lamp["call_id"])) == "Results: made lamp"


async def test_of_two_who_decide_the_same_at_once_one_does_and_what_the_other_wanted_besides_is_not_done(
    ana: Runs, shop: Workshop
) -> None:
    asked = await ana.asked("t", "use make what=lamp; make what=desk; make what=bed", "confirmation")
    lamp, desk, bed = (call["call_id"] for call in asked["tool_calls"])
    answers = await asyncio.gather(ana.approve("t", lamp, desk), ana.approve("t", bed, lamp))
    assert sorted(each.status for each in answers) == [202, 409]
    winner = next(each for each in answers if each.status == 202)
    (left,) = pending(winner, "t", "confirmation")["tool_calls"]
    assert left["call_id"] in {desk, bed}
    assert len(shop.done) == 2


async def test_a_question_of_the_models_is_answered(ana: Runs) -> None:
    asked = await ana.asked("t", "ask lamp", "clarification")
    (question,) = asked["clarifications"]
    assert set(question) == {"call_id", "question", "context"}
    assert question["question"] == "Which lamp?"
    for response, status in (("", 422), ({"size": "large"}, 422)):
        assert (await ana.respond("t", question["call_id"], response)).status == status
    assert (await ana.decide("t", {"call_id": question["call_id"], "approved": True})).status == 404
    said = response_of(await ana.respond("t", question["call_id"], "the green one"))
    assert "the green one" in said
    assert response_of(await ana.respond("t", question["call_id"], "the green one")) == said
    assert (await ana.respond("t", question["call_id"], "the red one")).status == 409


async def test_a_form_of_a_tool_is_filled_in_and_an_answer_delivered_twice_fills_in_no_other(ana: Runs) -> None:
    (call,) = (await ana.asked("t", "use order what=desk", "confirmation"))["tool_calls"]
    form = pending(await ana.approve("t", call["call_id"]), "t", "form_elicitation")
    assert (form["question"], form["message"], form["server"]) == (*["How large is the desk?"] * 2, "workshop")
    assert form["schema"]["properties"]["width"]["type"] == "integer"
    wrong = await ana.respond("t", form["call_id"], {"width": "wide"})
    assert (wrong.status, list(wrong.body["errors"])) == (422, [f"{form['call_id']}.width"])
    second = pending(await ana.respond("t", form["call_id"], {"width": 3}), "t", "form_elicitation")
    assert "width=3" in second["question"]
    assert pending(await ana.respond("t", form["call_id"], {"width": 3}), "t", "form_elicitation") == second
    assert (await ana.respond("t", form["call_id"], {"width": 4})).status == 409
    said = response_of(await ana.respond("t", second["call_id"], json.dumps({"width": 3, "colour": "blue"})))
    assert "ordered desk: accept, accept" in said


async def test_a_form_is_declined(ana: Runs) -> None:
    (call,) = (await ana.asked("t", "use order what=desk", "confirmation"))["tool_calls"]
    form = pending(await ana.approve("t", call["call_id"]), "t", "form_elicitation")
    await ana.respond("t", form["call_id"], None, action="decline")
    assert (await ana.respond("t", form["call_id"], {"width": 3})).status == 409


async def test_a_link_is_the_callers_and_the_call_goes_on_after_it(ana: Runs, shop: Workshop) -> None:
    (call,) = (await ana.asked("t", "use make_with_account what=lamp", "confirmation"))["tool_calls"]
    link = pending(await ana.approve("t", call["call_id"]), "t", "oauth_url")
    assert link["auth_url"].startswith("https://accounts.example.com/start")
    assert link["server"] == "workshop"
    shop.signed_in = True
    assert "with the account" in response_of(await ana.respond("t", link["call_id"], "done"))
    assert "with the account" in response_of(await ana.respond("t", link["call_id"], "done"))

    shop.signed_in = False
    (call,) = (await ana.asked("t", "use make_with_account what=desk", "confirmation"))["tool_calls"]
    link = pending(await ana.approve("t", call["call_id"]), "t", "oauth_url")
    assert "did not want to sign in" in response_of(await ana.respond("t", link["call_id"], "skip"))
    assert shop.done == ["make_with_account lamp"]


async def test_what_came_of_a_call_is_asked_and_said_by_a_token_that_may(home: ProductFolder, shop: Workshop) -> None:
    home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    async with product_here(home) as url, http() as session:
        ana = Runs(url, session, token("ana"))
        (call,) = (await ana.asked("t", "use make_slowly what=lamp", "confirmation"))["tool_calls"]
        lost = pending(await ana.approve("t", call["call_id"]), "t", "outcome_unknown")
        assert (lost["tool_name"], lost["server"]) == ("make_slowly", "workshop")
        assert (await other(ana, "ana", "run").respond("t", lost["call_id"], "it_was_done")).status == 403
        assert (await ana.respond("t", lost["call_id"], "perhaps")).status == 422
        assert "confirmed" in response_of(await ana.respond("t", lost["call_id"], "it_was_done"))
        assert shop.done == ["make_slowly lamp"]


async def test_a_request_with_a_key_is_one_request(ana: Runs, model: FakeOpenAI) -> None:
    await ana.run("t", "hello", key="k")
    assert response_of(await ana.run("t", "hello", key="k")) == "You said: hello"
    assert len(model.requests) == 1
    assert (await ana.run("t", "goodbye", key="k")).status == 422


async def test_a_model_that_fails_is_said_to_before_and_after_an_approval(ana: Runs, shop: Workshop) -> None:
    failed = await ana.run("t", "unlucky")
    assert (failed.status, "reference" in failed.body["detail"].lower()) == (500, True)
    (call,) = (await ana.asked("t", "use make what=unlucky", "confirmation"))["tool_calls"]
    assert (await ana.approve("t", call["call_id"])).status == 500
    assert (await ana.approve("t", call["call_id"])).status == 500
    assert shop.done == ["make unlucky 1"]
    assert response_of(await ana.run("t", "hello")) == "You said: hello"


async def test_several_forms_are_filled_in_together_or_none(ana: Runs) -> None:
    calls = (await ana.asked("t", "use order what=desk; order what=bed", "confirmation"))["tool_calls"]
    desk, bed = (call["call_id"] for call in calls)
    form = pending(await ana.approve("t", desk, bed), "t", "form_elicitation")
    assert form["call_id"] in {desk, bed}
    both = [{"call_id": desk, "response": {"width": 2}}, {"call_id": bed, "response": {"width": "wide"}}]
    refused = await ana.post("/resume", {"thread_id": "t", "clarification_responses": both})
    assert (refused.status, list(refused.body["errors"])) == (422, [f"{bed}.width"])
    both = [{"call_id": desk, "response": {"width": 3}}, {"call_id": bed, "response": {"width": 4}}]
    answered = await ana.post("/resume", {"thread_id": "t", "clarification_responses": both})
    assert "right?" in pending(answered, "t", "form_elicitation")["question"]


async def test_an_account_is_connected_in_a_browser_and_the_call_goes_on(tmp_path: Path, model: FakeOpenAI) -> None:
    home = with_tokens(ProductFolder(tmp_path))
    async with notes_server() as notes:
        home.tool_servers({"notes": notes_entry(notes)})
        home.policy(ALLOWED)
        home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-nobodys", "LLM_MODEL": "any"}
        async with product_here(home) as url, http() as session, Browser("ana at notes") as browser:
            ana = Runs(url, session, token("ana"))
            link = await ana.asked("t", "use notes__sign_in", "oauth_url")
            same = pending(await ana.respond("t", link["call_id"], "done"), "t", "oauth_url")
            assert (same["call_id"], same["code_wanted"]) == (link["call_id"], False)
            shown = await notes.consents(browser, link["auth_url"])
            wanted = pending(await ana.respond("t", link["call_id"], "done"), "t", "oauth_url")
            assert wanted["code_wanted"]
            assert (await ana.respond("t", link["call_id"], "WRONG-CODE")).status == 422
            assert "Signed in" in response_of(await ana.respond("t", link["call_id"], shown.code))
            assert "ana at notes wrote hello" in response_of(await ana.run("t", "use notes__write what=hello"))


class Unending:
    """Turns that do not end."""

    async def thread_of(self, _principal: Principal, kind: str, given: str) -> str:
        return f"web:{kind}-{given}"

    async def send(self, _principal: Principal, thread_id: str, *_: object, **__: object) -> str:
        return f"{thread_id}:m"

    async def answered(self, _principal: Principal, thread_id: str, key: str, _wait: float) -> TurnState:
        return TurnState(thread_id, key, "running")


async def test_of_a_turn_that_runs_on_after_the_longest_wait_it_is_said_where_to_ask() -> None:
    contract = RunContract(cast("Services", None), cast("ApiTurns", Unending()))
    ana = Principal(Person("web:ana", "Ana"))
    body = RunBody(thread_id="t", user_request="hello")
    with pytest.raises(Problem) as refused:
        await contract.run(ApiCall(make_mocked_request("POST", "/run"), ana, body))
    thread = "web:run-t"
    where = f"/api/v1/threads/{thread}/messages/{thread}:m"
    assert (refused.value.status, refused.value.more) == (504, {"turn": where})


QUORUM = """
version: 1
rules:
  - {name: two people, match: {tool: make}, decide: ask, approvers: [any], quorum: 2, editable: [what]}
"""


async def test_what_somebody_edited_is_another_question_that_an_answer_to_the_first_does_not_answer(
    home: ProductFolder, shop: Workshop
) -> None:
    home.policy(QUORUM)
    async with product_here(home) as url, http() as session:
        ana, ben = (Runs(url, session, token(each)) for each in ("ana", "ben"))
        (lamp,) = (await ana.asked("t", "use make what=lamp", "confirmation"))["tool_calls"]
        (listed,) = (await ben.get("/api/v1/approvals")).body["approvals"]
        edited = {"approval_id": listed["id"], "verb": "approve", "arguments": {"what": "bomb"}}
        assert (await ben.post("/api/v1/approvals/decisions", {"decisions": [edited]})).status == 200
        assert (await ana.approve("t", lamp["call_id"])).status == 409
        (bomb,) = pending(await ana.decide("t"), "t", "confirmation")["tool_calls"]
        assert bomb["call_id"] != lamp["call_id"]
        assert bomb["arguments"] == {"what": "bomb"}
        assert (await ana.approve("t", lamp["call_id"])).status == 409
        assert shop.done == []
