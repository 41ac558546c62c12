"""Another agent, by the SDK's own client, begins turns, waits for them, and decides what they ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_artifact_text, get_message_text, new_data_part
from a2a.types import ListTasksRequest, Part
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from mcp.server.fastmcp import Context
from mcp.types import ToolAnnotations
from pydantic import BaseModel

from tests.api.agents import CANCELED, COMPLETED, INPUT, VERSIONS, WORKING, Agent, Version, asked, ending, said
from tests.api.contract_clients import http, token
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop

MAKE = "use make what=lamp"


@pytest.fixture
async def url(workshop_home: ProductFolder) -> AsyncIterator[str]:
    """A product with a workshop."""
    async with product_here(workshop_home) as made:
        yield made


@pytest.fixture
def ana(url: str) -> Agent:
    """Ana's agent."""
    return Agent(url, token("ana"))


@pytest.fixture(params=VERSIONS)
def either(url: str, request: pytest.FixtureRequest) -> Agent:
    """Ana's agent, with each version of the protocol."""
    version: Version = request.param
    return Agent(url, token("ana"), version)


async def test_a_message_is_answered_and_the_conversation_goes_on(either: Agent) -> None:
    first = await either.say("hello", context_id="the talk")
    assert said(first) == "You said: hello"
    assert first.context_id == "the talk"
    assert [part.text for message in first.history for part in message.parts] == ["hello"]
    second = await either.say("again", context_id="the talk")
    assert said(second) == "You said: again"
    assert second.id != first.id
    assert await either.get(first.id) == first


async def test_a_call_is_approved(either: Agent, shop: Workshop) -> None:
    task = await either.say(MAKE)
    (part,) = asked(task)
    call = part["args"]["originalFunctionCall"]
    assert (part["name"], call["name"], call["args"]) == (
        "adk_request_confirmation",
        "workshop__make",
        {"what": "lamp"},
    )
    assert set(part) == {"name", "args", "id"} and set(call) == {"name", "args", "id"}
    (marked,) = [each for each in task.status.message.parts if each.HasField("data")]
    assert dict(marked.metadata) == {"type": "function_call", "is_long_running": True}
    assert shop.done == []
    done = await either.decide(task, "approve")
    assert (done.id, said(done)) == (task.id, "Results: made lamp")
    assert shop.done == ["make lamp 1"]


async def test_a_call_is_denied_with_a_reason_that_the_model_is_told(either: Agent, shop: Workshop) -> None:
    task = await either.say(MAKE)
    denied = await either.decide(task, "deny", reason="There is one.")
    assert "There is one." in said(denied)
    assert shop.done == []


async def test_of_several_calls_a_decision_names_one(ana: Agent, shop: Workshop) -> None:
    task = await ana.say("use make what=lamp; make what=bed")
    lamp, bed = asked(task)
    with pytest.raises(InvalidParamsError, match="2 things wait here: name one by its id"):
        await ana.decide(task, "approve")
    with pytest.raises(InvalidParamsError, match="No approval of this task has this id"):
        await ana.decide(task, "approve", id="another")
    left = await ana.decide(task, "approve", id=bed["id"])
    assert [each["id"] for each in asked(left)] == [lamp["id"]]
    assert shop.done == ["make bed 1"]
    both = "Results: made lamp | made bed"
    assert said(await ana.decide(left, "approve")) == both
    with pytest.raises(InvalidParamsError, match="2 things wait here"):
        await ana.decide(left, "approve")
    assert said(await ana.get(task.id)) == both


async def test_who_is_told_that_no_turns_begin(workshop_home: ProductFolder) -> None:
    workshop_home.variables["AGENT_ENABLE"] = "0"
    async with product_here(workshop_home) as url:
        task = await Agent(url, token("ana")).say("hello")
        assert task.status.state == COMPLETED
        assert "switched off" in said(task)


async def test_who_may_not_decide_is_refused_and_nothing_runs(ana: Agent, shop: Workshop) -> None:
    task = await ana.say(MAKE)
    for scope in ("run read", "read"):
        with pytest.raises(A2AClientError, match="403"):
            await ana.other("ana", scope).decide(task, "approve")
    with pytest.raises(A2AClientError, match="401"):
        await Agent(ana.url, "no token").decide(task, "approve")
    with pytest.raises(A2AClientError, match="403"):
        await ana.other("ana", "read approve").say("hello")
    assert asked(await ana.get(task.id))
    assert said(await ana.other("ana", "approve read").decide(task, "approve")) == "Results: made lamp"
    assert shop.done == ["make lamp 1"]


async def test_somebody_elses_task_does_not_exist(ana: Agent, shop: Workshop) -> None:
    task = await ana.say(MAKE, context_id="ours")
    stranger = ana.other("chloe")
    for ask in (stranger.get(task.id), stranger.cancel(task.id), stranger.decide(task, "approve")):
        with pytest.raises(TaskNotFoundError):
            await ask
    with pytest.raises(TaskNotFoundError):
        await stranger.say("hello", task_id=task.id)
    with pytest.raises(TaskNotFoundError):
        await ana.get("no task")
    own = await stranger.say("hello", context_id="ours")
    assert own.id.partition(".")[0] != task.id.partition(".")[0], "the same name is another conversation"
    assert asked(await ana.get(task.id))


async def test_the_same_message_twice_is_one_turn(either: Agent, shop: Workshop) -> None:
    first, again = [await either.say(MAKE, message_id="m-1") for _ in range(2)]
    assert again == first
    decided = [
        await either.send(new_data_part({"decision_type": "approve"}), task_id=first.id, message_id="m-2")
        for _ in range(2)
    ]
    assert [said(each) for each in decided] == ["Results: made lamp"] * 2
    assert shop.done == ["make lamp 1"]
    with pytest.raises(InvalidParamsError, match="used for another message"):
        await either.say("something else", message_id="m-1")


async def test_a_task_that_is_canceled_stops(either: Agent, shop: Workshop) -> None:
    task = await either.say(MAKE)
    assert (await either.cancel(task.id)).status.state == CANCELED
    assert (await either.get(task.id)).status.state == CANCELED
    with pytest.raises(TaskNotCancelableError):
        await either.cancel(task.id)
    with pytest.raises(InvalidParamsError):
        await either.decide(task, "approve")
    assert shop.done == []


async def test_a_task_is_canceled_in_the_middle_of_a_call(ana: Agent, shop: Workshop) -> None:
    task = await ana.say("use make_slowly what=lamp")
    running = await ana.send(
        new_data_part({"decision_type": "approve"}), task_id=task.id, context_id=task.context_id, at_once=True
    )
    assert running.status.state == WORKING
    async with asyncio.timeout(20):
        await shop.started.wait()
    with pytest.raises(UnsupportedOperationError, match="This task runs"):
        await ana.say("hurry", task_id=task.id)
    assert (await ana.cancel(task.id)).status.state == CANCELED


async def test_the_word_stop_stops_what_waits_in_a_context(ana: Agent, shop: Workshop) -> None:
    task = await ana.say(MAKE, context_id="c")
    stopped = await ana.say("stop", context_id="c")
    assert (stopped.id != task.id, stopped.status.state) == (True, CANCELED)
    assert (await ana.get(task.id)).status.state == CANCELED
    assert shop.done == []


class Size(BaseModel):
    """What a tool wants to know."""

    width: int
    colour: str = "red"


async def test_a_question_of_a_tools_is_answered_with_its_values(workshop_home: ProductFolder, shop: Workshop) -> None:
    async def order(what: str, ctx: Context) -> str:  # type: ignore[type-arg]
        given = await ctx.elicit(f"How large is the {what}?", Size)
        return f"ordered {what}: {given.action} {given.data.width}"  # type: ignore[union-attr]

    shop.server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))(order)
    async with product_here(workshop_home) as url:
        ana = Agent(url, token("ana"))
        task = await ana.say("use order what=bed")
        assert task.status.state == INPUT
        assert "How large is the bed?" in get_message_text(task.status.message)
        with pytest.raises(InvalidParamsError, match="width"):
            await ana.send(new_data_part({"answer": {"width": "wide", "colour": "red"}}), task_id=task.id)
        ordered = await ana.send(new_data_part({"answer": {"width": 2, "colour": "red"}}), task_id=task.id)
        assert said(ordered) == "Results: ordered bed: accept 2"


async def test_a_question_is_answered_in_its_task(either: Agent) -> None:
    task = await either.say("ask bed")
    assert task.status.state == INPUT
    assert get_message_text(task.status.message) == "Which bed?"
    answered = await either.say("12", task_id=task.id, message_id="the answer")
    assert (answered.id, "12" in said(answered)) == (task.id, True)
    assert await either.say("12", task_id=task.id, message_id="the answer") == answered
    with pytest.raises(UnsupportedOperationError, match="has ended"):
        await either.say("13", task_id=task.id)


async def test_words_do_not_decide(ana: Agent, shop: Workshop) -> None:
    task = await ana.say(MAKE)
    with pytest.raises(InvalidParamsError, match="waits for approvals"):
        await ana.say("yes, approve", task_id=task.id)
    assert asked(await ana.get(task.id))
    other = await ana.say("never mind", context_id=task.context_id)
    assert said(other) == "You said: never mind"
    assert (await ana.get(task.id)).status.state == CANCELED
    assert shop.done == []


async def test_a_stream_tells_the_answer_and_ends_with_the_task(either: Agent, shop: Workshop) -> None:
    events = await either.stream(Part(text="use report what=lamp"), context_id="c")
    assert events[0].task.context_id == "c"
    assert get_message_text(ending(events)) == "Results: made all of lamp"
    for each in events[1:-1]:
        assert each.HasField("artifact_update")
    whole = [*events[0].task.artifacts, *(each.artifact_update.artifact for each in events[1:-1])][-1]
    assert get_artifact_text(whole) == "Results: made all of lamp"

    task = await either.say(MAKE)
    going_on = await either.stream(new_data_part({"decision_type": "approve"}), task_id=task.id)
    assert get_message_text(ending(going_on)) == "Results: made lamp"
    asking = (await either.stream(Part(text=MAKE)))[-1]
    assert (asking.status_update.status if asking.HasField("status_update") else asking.task.status).state == INPUT
    assert shop.done == ["make lamp 1"]


async def test_a_stream_that_may_not_begin_is_refused_with_a_status(either: Agent, shop: Workshop) -> None:
    with pytest.raises(A2AClientError, match="403"):
        await either.other("ana", "read").stream(Part(text=MAKE))
    with pytest.raises(TaskNotFoundError):
        await either.stream(Part(text=MAKE), task_id="no task")
    assert shop.done == []


async def test_a_stream_that_was_left_is_taken_up_again(either: Agent, shop: Workshop) -> None:
    task = await either.say("use report what=slow", at_once=True)
    assert task.status.state == WORKING
    told = either.resubscribe(task.id)
    first = await anext(told)
    assert first.task.id == task.id
    shop.may_end.set()
    rest = [each async for each in told]
    pieces = [each.artifact_update for each in rest[:-1]]
    assert (get_artifact_text(pieces[-1].artifact), pieces[-1].append, pieces[-1].last_chunk) == (
        "Results: made all of slow",
        False,
        True,
    )
    assert get_message_text(ending(rest)) == "Results: made all of slow"
    with pytest.raises(UnsupportedOperationError):
        _ = [each async for each in either.resubscribe(task.id)]


async def test_the_tasks_of_a_context_are_listed(ana: Agent) -> None:
    ids = [(await ana.say(text, context_id="c")).id for text in ("one", "two", "three")]
    async with ana.client() as client:
        listed = await client.list_tasks(ListTasksRequest(context_id="c", page_size=2))
        assert [each.id for each in listed.tasks] == ids[:0:-1]
        rest = await client.list_tasks(ListTasksRequest(context_id="c", page_token=listed.next_page_token))
        assert [each.id for each in rest.tasks] == ids[:1]
        with pytest.raises(InvalidParamsError, match="contextId"):
            await client.list_tasks(ListTasksRequest())


async def test_the_wire_of_0_3_is_as_its_clients_know_it(url: str, shop: Workshop) -> None:
    async with http() as session:

        async def rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            headers = {"Authorization": f"Bearer {token('ana')}"}
            async with session.post(f"{url}/a2a", json=body, headers=headers) as response:
                assert response.status == 200
                answer: dict[str, Any] = (await response.json())["result"]
                return answer

        message = {"kind": "message", "messageId": "1", "role": "user", "parts": [{"kind": "text", "text": MAKE}]}
        task = await rpc("message/send", {"message": message})
        assert (task["kind"], task["status"]["state"]) == ("task", "input-required")
        (part,) = [each for each in task["status"]["message"]["parts"] if each["kind"] == "data"]
        assert part == {
            "kind": "data",
            "data": {
                "name": "adk_request_confirmation",
                "args": {
                    "originalFunctionCall": {
                        "name": "workshop__make",
                        "args": {"what": "lamp"},
                        "id": part["data"]["args"]["originalFunctionCall"]["id"],
                    }
                },
                "id": part["data"]["id"],
            },
            "metadata": {"type": "function_call", "is_long_running": True},
        }
        decision = {"kind": "data", "data": {"decision_type": "approve"}}
        message |= {"messageId": "2", "taskId": task["id"], "contextId": task["contextId"], "parts": [decision]}
        done = await rpc("message/send", {"message": message})
        assert done["status"]["state"] == "completed"
        assert done["artifacts"][0]["parts"] == [{"kind": "text", "text": "Results: made lamp"}]


async def test_the_card_says_where_and_how_and_nothing_of_the_tools(url: str) -> None:
    async with http() as session, session.get(f"{url}/.well-known/agent-card.json") as response:
        card = await response.json()
    assert card["supportedInterfaces"] == [
        {"url": f"{url}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": version} for version in VERSIONS
    ]
    assert (card["url"], card["preferredTransport"]) == (f"{url}/a2a", "JSONRPC")
    assert card["capabilities"]["streaming"] is True
    assert not card["capabilities"].get("pushNotifications")
    assert card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"] == "bearer"
    assert "make" not in str(card)
    assert "workshop" not in str(card)
