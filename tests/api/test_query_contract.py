"""`POST /query`, `POST /query/stream` and `POST /hitl/respond`, by a client that knows what the contracts say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.api.stream_clients import Program, program, querying, respond
from tests.fakes.openai_server import Reply, Request, ToolUse, fake_openai
from tests.support.brain import obedient
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Json, visiting

RULES = """\
version: 1
rules:
  - {name: looking, match: {tool: look}, decide: allow}
  - {name: why not, match: {tool: delete}, decide: ask, reasonRequired: true}
"""


@pytest.fixture
async def ana(workshop_home: ProductFolder) -> AsyncIterator[Program]:
    """A program of Ana's."""
    workshop_home.policy(RULES)
    async with product_here(workshop_home) as url, program(url) as made:
        yield made


# --------------------------------------------------------------------------------------------- /query


@pytest.mark.parametrize("name", ["query", "prompt", "message"])
async def test_a_question_is_answered_at_once(ana: Program, name: str) -> None:
    answer = await ana.post("/query", {name: "hello", "thread_id": "mine"})
    assert answer.status == 200
    assert answer.body == {
        "status": "success",
        "response": "You said: hello",
        "thread_id": "mine",
        "hitl_skipped_non_streaming": [],
    }


async def test_calls_that_would_be_asked_about_are_not_made_and_named(ana: Program, shop: Workshop) -> None:
    answer = await ana.post("/query", {"query": "use look what=lamp; make what=lamp"})
    assert answer.status == 200
    assert answer.body["thread_id"]
    assert answer.body["response"].startswith("Results: lamp looks fine | hitl_skipped_non_streaming")
    [skipped] = answer.body["hitl_skipped_non_streaming"]
    assert skipped == {"tool_name": "make", "server": "workshop", "call_id": skipped["call_id"]}
    assert shop.done == []


# --------------------------------------------------------------------------------------------- /query/stream


async def test_a_stream_asks_waits_and_goes_on(ana: Program, shop: Workshop) -> None:
    async with querying(ana, "use make what=lamp", thread_id="mine") as query:
        asked = await query.until("hitl_required")
        assert asked == {
            "request_id": asked["request_id"],
            "agent_id": "default",
            "agent_name": "Countersign",
            "tool_names": ["make"],
            "task_description": "Make it (what: lamp)",
            "timeout_seconds": 120,
        }
        assert await respond(ana, asked["request_id"], "approved") == 200
        assert await query.until("done") == {"thread_id": "mine"}
    assert query.told[1:-1] == [("hitl_approved", {"request_id": asked["request_id"], "agent_id": "default"})]
    assert query.text == "On it.\n\nResults: made lamp"
    assert shop.done == ["make lamp 1"]
    assert await respond(ana, asked["request_id"], "denied") == 409


async def test_whoever_decides_on_the_page_the_stream_tells(ana: Program, shop: Workshop) -> None:
    async with querying(ana, "use make what=lamp") as query, visiting(ana.url) as visitor:
        asked = await query.until("hitl_required")
        async with visitor.thread((await ana.threads())[0]) as page:
            await page.reject(asked["request_id"], "not now")
            await query.until("done")
    assert query.names == ["hitl_required", "hitl_denied", "done"]
    assert "not now" in query.text
    assert shop.done == []


async def test_nobody_decides_in_time(workshop_home: ProductFolder, shop: Workshop) -> None:
    workshop_home.variables["HITL_TIMEOUT_SECONDS"] = "0.2"
    async with product_here(workshop_home) as url, program(url) as ana:
        async with querying(ana, "use make what=lamp") as query:
            asked = await query.until("hitl_required")
            assert await query.until("hitl_timeout") == {"request_id": asked["request_id"], "agent_id": "default"}
            await query.until("done")
        assert await respond(ana, asked["request_id"], "approved") == 409
    assert query.names == ["hitl_required", "hitl_timeout", "done"]
    assert query.text.startswith("On it.\n\nResults: ")
    assert shop.done == []


def corrected(request: Request) -> Reply:
    """Makes a lamp; after a rejection, whatever its reason names."""
    results = [str(m["content"]) for m in request["messages"] if m["role"] == "tool"]
    if not results:
        return Reply(calls=[ToolUse("workshop__make", {"what": "lamp"})])
    if len(results) == 1:
        return Reply(calls=[ToolUse("workshop__make", {"what": "chair" if "chair" in results[0] else "nothing"})])
    return obedient(request)


async def test_an_approval_with_instructions_runs_nothing_and_what_is_proposed_then_is_asked_anew(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with fake_openai(corrected) as model:
        workshop_home.variables["OPENAI_BASE_URL"] = model.base_url
        async with product_here(workshop_home) as url, program(url) as ana, querying(ana, "make a lamp") as query:
            first = await query.until("hitl_required")
            assert await respond(ana, first["request_id"], "approved", instructions="make it a chair") == 200
            second = await query.until("hitl_required")
            assert second["task_description"] == "Make it (what: chair)"
            assert shop.done == []
            assert await respond(ana, second["request_id"], "approved") == 200
            await query.until("done")
    assert query.names == ["hitl_required", "hitl_denied", "hitl_required", "hitl_approved", "done"]
    assert shop.done == ["make chair 1"]


async def test_a_question_is_told_as_text_and_the_next_query_answers_it(ana: Program) -> None:
    async with querying(ana, "ask lamp", thread_id="mine") as query:
        await query.until("done")
    assert query.text == "Which lamp?"
    async with querying(ana, "7", thread_id="mine") as query:
        await query.until("done")
    assert query.text.startswith("Results: ")


async def test_something_new_ends_the_stream_of_what_was_asked_before(ana: Program) -> None:
    async with querying(ana, "use make what=lamp", thread_id="mine") as first:
        await first.until("hitl_required")
        async with querying(ana, "use make what=chair", thread_id="mine") as second:
            asked = await second.until("hitl_required")
            await first.until("done")
            assert await respond(ana, asked["request_id"], "approved") == 200
            await second.until("done")
    assert first.names == ["hitl_required", "hitl_denied", "done"]
    assert second.text == "On it.\n\nResults: made chair"


async def test_only_who_may_decides_and_a_refusal_says_why(ana: Program) -> None:
    async with querying(ana, "use delete what=lamp") as query:
        asked = await query.until("hitl_required")
        async with program(ana.url, "ben") as ben, program(ana.url, scope="run read") as powerless:
            assert await respond(ben, asked["request_id"], "approved") == 404
            assert await respond(powerless, asked["request_id"], "approved") == 403
        assert await respond(ana, "no-such-request", "approved") == 404
        assert await respond(ana, asked["request_id"], "denied") == 422
        assert await respond(ana, asked["request_id"], "perhaps") == 422
        assert await respond(ana, asked["request_id"], "denied", instructions="it is mine") == 200
        await query.until("done")
    assert "it is mine" in query.text


async def test_who_only_asks_may_not_decide_where_others_have_to(workshop_home: ProductFolder) -> None:
    workshop_home.policy(
        "version: 1\nrules:\n  - {name: Ben decides, match: {}, decide: ask, approvers: ['web:ben']}\n"
    )
    async with (
        product_here(workshop_home) as url,
        program(url) as ana,
        program(url, "ben") as ben,
        querying(ana, "use make what=lamp") as query,
    ):
        asked: Json = await query.until("hitl_required")
        assert await respond(ana, asked["request_id"], "approved") == 403
        assert await respond(ben, asked["request_id"], "approved") == 200
        await query.until("done")
    assert query.names == ["hitl_required", "hitl_approved", "done"]
