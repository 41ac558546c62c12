"""What a task waits for beside its owner's approvals, who may say it, and what is no request at all."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import requests
from a2a.client.errors import A2AClientError
from a2a.helpers.proto_helpers import get_data_parts, get_message_text, new_data_part
from a2a.types import Task
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.api.agent_to_agent.task_names import TaskName
from bot.domain import Person
from bot.identity.principal import Scope
from tests.api.agents import AUTH, COMPLETED, INPUT, Agent, asked, said
from tests.api.serving import ANA, BEN, CHLOE, ServedApi
from tests.support.examples import examples
from tests.support.outage import GONE


def agent(served: ServedApi, person: Person = ANA, *scopes: Scope) -> Agent:
    """Somebody's agent; without scopes, with all."""
    return Agent(served.url, served.tokens.of(person, *scopes), address=f"{served.url}/a2a")


async def begun(served: ServedApi) -> tuple[Task, TaskName]:
    """A task of Ana's, and which turn it is."""
    task = await agent(served).say("the words of Ana", context_id="c")
    name = TaskName.of(task.id)
    assert name is not None
    return task, name


async def test_somebody_who_may_decide_does_and_sees_nothing_else_of_the_task(served: ServedApi) -> None:
    task, name = await begun(served)
    first = await served.wait_for(name.thread_id, name.turn)
    second = await served.wait_for(name.thread_id, name.turn, 1)
    ben = agent(served, BEN)
    with pytest.raises(TaskNotFoundError):
        await agent(served, CHLOE).decide(task, "approve")
    with pytest.raises(TaskNotFoundError):
        await ben.get(task.id)
    with pytest.raises(A2AClientError, match="403"):
        await agent(served, BEN, "run", "read").decide(task, "approve")
    approving = new_data_part({"decision_type": "approve", "id": first})
    await ben.send(approving, task_id=task.id, message_id="yes")
    await served.engine.rest()
    left = await ben.send(approving, task_id=task.id, message_id="yes")
    assert [each["id"] for each in asked(left)] == [second]
    decided = await ben.decide(task, "deny", reason="No lamps.")
    assert left.id == decided.id == task.id
    assert "words of Ana" not in f"{left} {decided}"
    with pytest.raises(InvalidParamsError):
        await ben.decide(task, "approve", id=first)


async def test_a_sign_in_is_told_with_its_link_to_its_owner_alone(served: ServedApi) -> None:
    task, name = await begun(served)
    await served.sign_in(name.thread_id, name.turn)
    own = await agent(served).get(task.id)
    assert own.status.state == AUTH
    assert "Sign in to workshop to continue. https://" in get_message_text(own.status.message)
    reading = await agent(served, ANA, "read").get(task.id)
    assert "https://" not in str(reading)
    assert (await agent(served).say("skip", task_id=task.id)).status.state == COMPLETED


async def test_an_unknown_outcome_is_settled_with_one_of_three_words(served: ServedApi) -> None:
    task, name = await begun(served)
    await served.outcome(name.thread_id, name.turn)
    waiting = await agent(served).get(task.id)
    assert waiting.status.state == INPUT
    assert "What came of make (workshop) is not known." in get_message_text(waiting.status.message)
    with pytest.raises(InvalidParamsError, match="it_was_done, try_again or skip"):
        await agent(served).say("perhaps", task_id=task.id)
    with pytest.raises(A2AClientError, match="403"):
        await agent(served, ANA, "run", "read").say("skip", task_id=task.id)
    assert (await agent(served).say("skip", task_id=task.id)).status.state == COMPLETED


async def test_of_several_things_asked_an_answer_names_one(served: ServedApi) -> None:
    task, name = await begun(served)
    await served.question(name.thread_id, name.turn)
    outcome = await served.outcome(name.thread_id, name.turn)
    waiting = await agent(served).get(task.id)
    ids = [dict(part.metadata).get("id") for part in waiting.status.message.parts]
    assert outcome in ids
    with pytest.raises(InvalidParamsError, match="Nothing that this task asks has this id"):
        await agent(served).send(new_data_part({"answer": "skip", "id": "another"}), task_id=task.id)
    left = await agent(served).send(new_data_part({"answer": "skip", "id": outcome}), task_id=task.id)
    assert "Which lamp?" in get_message_text(left.status.message)
    assert "not known" not in get_message_text(left.status.message)


async def test_what_others_do_in_the_conversation_does_not_change_a_task_that_has_ended(served: ServedApi) -> None:
    task, _ = await begun(served)
    async with served.engine.at_work:
        later = await agent(served).say("more", context_id="c", at_once=True)
        assert await agent(served).get(task.id) == task
    await served.engine.rest()
    assert said(await agent(served).get(later.id)) == "more"


async def test_while_the_records_are_away_it_says_so(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    task, _ = await begun(served)

    async def away(*_: Any) -> None:
        raise GONE

    monkeypatch.setattr(served.conversations, "turn", away)
    with capture_logs() as logged:
        for version in ("1.0", "0.3"):
            with pytest.raises(A2AClientError, match="503"):
                await replace(agent(served), version=version).get(task.id)
    assert [line["event"] for line in logged if line["log_level"] != "debug"] == ["requests_refused"], "once"


async def test_a_mistake_of_ours_is_told_with_a_reference_and_nothing_else(
    served: ServedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, _ = await begun(served)

    async def broken(*_: Any) -> None:
        raise ValueError("a secret of ours")

    monkeypatch.setattr(served.conversations, "turn", broken)
    with pytest.raises(Exception, match=r"Something went wrong here \([0-9a-f]{8}\)") as caught:
        await agent(served).get(task.id)
    assert "secret" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    [
        *("SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"),
        *("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe", "no/such"),
        *("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set", "GetExtendedAgentCard"),
    ]
)
TASK_IDS = st.sampled_from(["", "x", f"{'a' * 40}.bQ.Yw", f"{'a' * 40}.-.-"]) | st.text(max_size=20)
PARTS = st.lists(
    st.fixed_dictionaries({"kind": st.sampled_from(["text", "data", "file"])}, optional={"text": JSON, "data": JSON})
    | st.builds(lambda data: {"data": data}, JSON)
    | st.builds(
        lambda how, more: {"kind": "data", "data": {"decision_type": how, **more}},
        st.sampled_from(["approve", "deny"]) | JSON,
        st.dictionaries(st.sampled_from(["reason", "id"]), JSON),
    )
    | st.builds(lambda answer: {"kind": "data", "data": {"answer": answer}}, JSON),
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"messageId": st.text(max_size=10), "role": st.sampled_from(["user", "agent", "ROLE_USER"]), "parts": PARTS},
    optional={"taskId": TASK_IDS, "contextId": st.text(max_size=10)},
)
PARAMS = JSON | st.builds(lambda message: {"message": message}, MESSAGES) | st.builds(lambda i: {"id": i}, TASK_IDS)
BODIES = JSON | st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": JSON, "method": METHODS, "params": PARAMS})


async def test_whatever_is_sent_gets_a_result_or_an_error_of_the_protocol(served: ServedApi) -> None:
    token = served.tokens.of(ANA)
    codes: set[int] = set()

    def send(session: requests.Session, body: bytes, version: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "A2A-Version": version}
        response = session.post(f"{served.url}/a2a", data=body, headers=headers, timeout=20)
        if response.status_code in {403, 429}:
            return
        assert response.status_code == 200, response.text
        if response.headers["Content-Type"].startswith("text/event-stream"):
            return
        answer = response.json()
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        if "error" in answer:
            codes.add(answer["error"]["code"])
            assert "went wrong" not in response.text

    def all_of_them() -> None:
        with requests.Session() as session:

            @settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
            @given(BODIES, st.sampled_from(["1.0", "0.3", "", "9"]))
            def answered(body: Any, version: str) -> None:
                send(session, json.dumps(body).encode(), version)

            answered()
            for raw in (b"", b"{", b"\xff", b"[" * 100, b'{"a": NaN}', b"[]", b"7"):
                send(session, raw, "1.0")

    await asyncio.to_thread(all_of_them)
    assert {-32700, -32600} <= codes


async def test_a_decision_says_what_it_has_to(served: ServedApi) -> None:
    task, name = await begun(served)
    await served.wait_for(name.thread_id, name.turn)
    for data, why in (
        ({"decision_type": "perhaps"}, "approve"),
        ({"decision_type": "deny", "reason": 7}, "reason is a text"),
        ({"decision_type": "approve", "id": 7}, "id is the id"),
        ({"other": 1}, "A data part is a decision"),
    ):
        with pytest.raises(InvalidParamsError, match=why):
            await agent(served).send(new_data_part(data), task_id=task.id)
    with pytest.raises(InvalidParamsError, match="name the task"):
        await agent(served).send(new_data_part({"decision_type": "approve"}), context_id="nothing")
    assert get_data_parts((await agent(served).get(task.id)).status.message.parts)
