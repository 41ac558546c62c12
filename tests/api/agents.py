"""Another agent: the SDK's client of A2A, in both versions of the protocol, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, create_client
from a2a.helpers.proto_helpers import get_artifact_text, get_data_parts, get_message_text, new_data_part
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)

from tests.api.contract_clients import WITHIN, token

Version = Literal["1.0", "0.3"]
VERSIONS: tuple[Version, ...] = ("1.0", "0.3")
WORKING, COMPLETED, FAILED, CANCELED, INPUT, AUTH = (
    TaskState.TASK_STATE_WORKING,
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_INPUT_REQUIRED,
    TaskState.TASK_STATE_AUTH_REQUIRED,
)


@dataclass(frozen=True)
class Agent:
    """An agent that acts for somebody."""

    url: str
    bearer: str
    version: Version = "1.0"
    address: str = ""
    """Where it is asked, instead of where its card says."""

    def other(self, subject: str, scope: str = "") -> Agent:
        """Somebody else's agent, or hers with another token."""
        return replace(self, bearer=token(subject, scope))

    @asynccontextmanager
    async def client(self, *, streaming: bool = False) -> AsyncIterator[Client]:
        """The SDK's client, for whom the server has no other version."""
        headers = {"Authorization": f"Bearer {self.bearer}"} if self.bearer else {}
        async with httpx.AsyncClient(headers=headers, timeout=WITHIN) as http:
            card = await A2ACardResolver(http, self.url).get_agent_card()
            spoken = [each for each in card.supported_interfaces if each.protocol_version == self.version]
            for each in spoken:
                each.url = self.address or each.url
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(spoken)
            async with await create_client(card, ClientConfig(streaming=streaming, httpx_client=http)) as client:
                yield client

    async def send(self, *parts: Part, at_once: bool = False, **where: str) -> Task:
        """Send a message; the task as it stands then. `where`: `context_id`, `task_id`, `message_id`."""
        message = Message(role=Role.ROLE_USER, parts=parts, **{"message_id": uuid4().hex, **where})
        asked = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=at_once))
        async with self.client() as client:
            (answer,) = [each async for each in client.send_message(asked)]
        return answer.task

    async def say(self, text: str, *, at_once: bool = False, **where: str) -> Task:
        """Send a text."""
        return await self.send(Part(text=text), at_once=at_once, **where)

    async def decide(self, task: Task, decision_type: str, **more: str) -> Task:
        """Decide the call that a task waits for."""
        return await self.send(new_data_part({"decision_type": decision_type, **more}), task_id=task.id)

    async def get(self, task_id: str) -> Task:
        """A task as it stands."""
        async with self.client() as client:
            return await client.get_task(GetTaskRequest(id=task_id))

    async def cancel(self, task_id: str) -> Task:
        """Stop a task."""
        async with self.client() as client:
            return await client.cancel_task(CancelTaskRequest(id=task_id))

    async def stream(self, *parts: Part, **where: str) -> list[StreamResponse]:
        """Send a message; all that is told of what comes of it."""
        message = Message(role=Role.ROLE_USER, parts=parts, **{"message_id": uuid4().hex, **where})
        async with self.client(streaming=True) as client:
            return [each async for each in client.send_message(SendMessageRequest(message=message))]

    async def resubscribe(self, task_id: str) -> AsyncIterator[StreamResponse]:
        """All that is told of a task from now on."""
        async with self.client(streaming=True) as client:
            async for each in client.subscribe(SubscribeToTaskRequest(id=task_id)):
                yield each


def said(task: Task) -> str:
    """The answer."""
    assert task.status.state == COMPLETED, task
    (artifact,) = task.artifacts
    assert get_artifact_text(artifact) == get_message_text(task.status.message)
    return get_artifact_text(artifact)


def asked(task: Task) -> list[Any]:
    """The data of what a task waits for."""
    assert task.status.state == INPUT, task
    return get_data_parts(task.status.message.parts)


def ending(events: Sequence[StreamResponse]) -> Message:
    """What the end of a stream says, and whose; the task itself, where it had ended before the stream began."""
    last = events[-1]
    status = last.status_update.status if last.HasField("status_update") else last.task.status
    assert status.state == COMPLETED, last
    return status.message
