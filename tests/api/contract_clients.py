"""Clients of two contracts, as somebody writes them who has only their descriptions, and tokens for their users."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import jwt

from tests.support.product import ProductFolder

Json = dict[str, Any]
SECRET = "a secret that is shared with whoever signs tokens"
WITHIN = 60.0
"""Seconds that any request may take."""


def with_tokens(home: ProductFolder) -> ProductFolder:
    """Let the product take tokens that are signed with that secret."""
    home.variables["API_JWT_SECRET"] = SECRET
    return home


def token(subject: str, scope: str = "", *, audience: str = "") -> str:
    """A token of somebody's."""
    also = {**({"scope": scope} if scope else {}), **({"aud": audience} if audience else {})}
    claims = {"sub": subject, "exp": int(time.time()) + 600, **also}
    return jwt.encode(claims, SECRET, algorithm="HS256")


@dataclass(frozen=True)
class Answered:
    """What a request got."""

    status: int
    body: Json


@dataclass(frozen=True)
class Caller:
    """Somebody with a token."""

    url: str
    http: aiohttp.ClientSession
    token: str

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answered:
        """Post JSON."""
        sent = {**({"Authorization": f"Bearer {self.token}"} if self.token else {}), **(headers or {})}
        async with self.http.post(f"{self.url}{path}", json=body, headers=sent) as response:
            return Answered(response.status, await response.json())

    async def get(self, path: str) -> Answered:
        """Get JSON."""
        sent = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self.http.get(f"{self.url}{path}", headers=sent) as response:
            return Answered(response.status, await response.json())


@dataclass(frozen=True)
class Runs(Caller):
    """`POST /run` and `POST /resume`."""

    async def run(self, thread_id: str, user_request: str, key: str = "") -> Answered:
        """Run a request."""
        headers = {"Idempotency-Key": key} if key else None
        return await self.post("/run", {"thread_id": thread_id, "user_request": user_request}, headers)

    async def asked(self, thread_id: str, user_request: str, kind: str) -> Json:
        """Run a request that has to wait for people; the `pending_action`."""
        return pending(await self.run(thread_id, user_request), thread_id, kind)

    async def approve(self, thread_id: str, *call_ids: str) -> Answered:
        """Approve calls."""
        approvals = [{"call_id": call_id, "approved": True} for call_id in call_ids]
        return await self.post("/resume", {"thread_id": thread_id, "approvals": approvals})

    async def decide(self, thread_id: str, *approvals: Json) -> Answered:
        """Decide calls, one way or the other."""
        return await self.post("/resume", {"thread_id": thread_id, "approvals": list(approvals)})

    async def respond(self, thread_id: str, call_id: str, response: Any, **more: Any) -> Answered:
        """Answer a question."""
        responses = [{"call_id": call_id, "response": response, **more}]
        return await self.post("/resume", {"thread_id": thread_id, "clarification_responses": responses})


def pending(answer: Answered, thread_id: str, kind: str) -> Json:
    """The `pending_action` of an answer that waits for people."""
    assert answer.status == 202, answer
    assert set(answer.body) == {"status", "thread_id", "pending_action"}
    assert answer.body["thread_id"] == thread_id
    assert answer.body["pending_action"]["kind"] == kind, answer
    if kind in {"clarification", "confirmation"}:
        assert answer.body["status"] == f"{kind}_required"
    action: Json = answer.body["pending_action"]
    return action


def response_of(answer: Answered) -> str:
    """The `response` of a request that was answered."""
    assert (answer.status, set(answer.body), answer.body.get("status")) == (200, {"status", "response"}, "success"), (
        answer
    )
    text: str = answer.body["response"]
    return text


@dataclass(frozen=True)
class Chats(Caller):
    """`POST /api/v1/agent/{user_id}/chat`."""

    user_id: str

    async def chat(
        self, message: str, conversation_id: int | None = None, user_id: str = "", key: str = ""
    ) -> Answered:
        """Send a message."""
        body = {"message": message, "conversation_id": conversation_id}
        headers = {"Idempotency-Key": key} if key else None
        return await self.post(f"/api/v1/agent/{user_id or self.user_id}/chat", body, headers)

    async def told(self, message: str, conversation_id: int | None = None) -> Json:
        """Send a message that is answered; the answer."""
        answer = await self.chat(message, conversation_id)
        assert answer.status == 200, answer
        body = answer.body
        assert set(body) == {
            "conversation_id",
            "user_message_id",
            "agent_message_id",
            "agent_response",
            "tool_calls",
        }
        ids = [body[name] for name in ("conversation_id", "user_message_id", "agent_message_id")]
        assert all(isinstance(each, int) and each > 0 for each in ids), ids
        assert all(set(each) == {"tool_name", "arguments", "result"} for each in body["tool_calls"])
        return body


@asynccontextmanager
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections that keep no cookies."""
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout) as session:
        yield session
