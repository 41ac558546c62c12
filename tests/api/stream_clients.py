"""Small clients of the contracts that stream, written from what the contracts say, and from nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.api.contract_clients import token
from tests.support.visitor import WITHIN, Answer, Json


@dataclass
class Program:
    """A program that acts for somebody."""

    url: str
    http: aiohttp.ClientSession
    headers: Json

    async def post(self, path: str, body: Json) -> Answer:
        """Send JSON, and get some."""
        async with self.http.post(f"{self.url}{path}", json=body, headers=self.headers) as response:
            return Answer(response.status, await response.json(content_type=None))

    async def get(self, path: str) -> Answer:
        """Get JSON."""
        async with self.http.get(f"{self.url}{path}", headers=self.headers) as response:
            return Answer(response.status, await response.json())

    @asynccontextmanager
    async def posting(self, path: str, body: Json) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send JSON, and read the answer as it comes. Who leaves the block closes the connection."""
        async with self.http.post(f"{self.url}{path}", json=body, headers=self.headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream"), await response.text()
            try:
                yield response
            finally:
                response.close()

    async def threads(self) -> list[str]:
        """The person's conversations, the newest first."""
        return [each["id"] for each in (await self.get("/api/v1/threads")).body["threads"]]

    async def turn(self, thread_id: str) -> Json:
        """The turn of the newest message of a conversation, when it has ended or waits."""
        entries = (await self.get(f"/api/v1/threads/{thread_id}")).body["entries"]
        newest = [entry["id"] for entry in entries if entry["kind"] == "message"][-1]
        turn: Json = (await self.get(f"/api/v1/threads/{thread_id}/messages/{newest}?wait={WITHIN}")).body
        return turn


@asynccontextmanager
async def program(url: str, name: str = "ana", scope: str = "run approve read") -> AsyncIterator[Program]:
    """A program of somebody's."""
    timeout = aiohttp.ClientTimeout(total=WITHIN)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        yield Program(url, http, {"Authorization": f"Bearer {token(name, scope)}"})


# --------------------------------------------------------------------------------- POST /ai/agent/stream


@dataclass
class Streamed:
    """What a stream of `POST /ai/agent/stream` has said so far."""

    text: str = ""
    events: list[tuple[str, str]] = field(default_factory=list)
    """Of tools: what happened to which one; errors have none."""
    words: list[str] = field(default_factory=list)
    """Of the events."""
    in_order: list[str] = field(default_factory=list)
    """Pieces of text as `text`, and names of events."""
    is_over: bool = False

    def take(self, name: str, data: str) -> None:
        """One event of the stream."""
        if name == "end" and data == "[DONE]":
            self.is_over = True
            return
        try:
            said = json.loads(data)
        except ValueError:
            said = {"text": data}
        if "event" in said:
            self.events.append((said["event"], said.get("tool", "")))
            self.words.append(said["text"])
            self.in_order.append(said["event"])
        else:
            self.text += said["text"]
            self.in_order.append("text")


async def events_of(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, str]]:
    """The events of a stream, each with its name and its data; comments are left out."""
    name, data = "", ""
    async for raw in response.content:
        line = raw.decode().removesuffix("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and (name or data):
            yield name, data
            name, data = "", ""


async def ask_agent(program: Program, prompt: str, path: str = "/ai/agent/stream", **more: Any) -> Streamed:
    """Ask, and read the answer to its end."""
    streamed = Streamed()
    async with program.posting(path, {"prompt": prompt, **more}) as response:
        async for name, data in events_of(response):
            streamed.take(name, data)
    return streamed


# --------------------------------------------------------------------------------- POST /query/stream


@dataclass
class Query:
    """A stream of `POST /query/stream` that is being read."""

    events: AsyncIterator[tuple[str, str]]
    text: str = ""
    told: list[tuple[str, Json]] = field(default_factory=list)
    """Events but for text: name and data."""

    async def until(self, *names: str) -> Json:
        """Read on until one of these events; its data."""
        async for name, data in self.events:
            said: Json = json.loads(data)
            if name == "token":
                self.text += said["text"]
            else:
                self.told.append((name, said))
            if name in names:
                return said
        raise AssertionError(f"the stream ended without {names}: {self.told} {self.text!r}")

    async def is_broken_off(self) -> bool:
        """Whether the stream ends before it is done."""
        try:
            return not [name async for name, _ in self.events if name == "done"]
        except aiohttp.ClientError:
            return True

    @property
    def names(self) -> list[str]:
        """Of the events but for text."""
        return [name for name, _ in self.told]


@asynccontextmanager
async def querying(program: Program, query: str, **more: Any) -> AsyncIterator[Query]:
    """Ask, and read the answer as it comes."""
    async with program.posting("/query/stream", {"query": query, **more}) as response:
        yield Query(events_of(response))


async def respond(program: Program, request_id: str, decision: str, **more: str) -> int:
    """Decide; the status of the answer."""
    body = {"request_id": request_id, "decision": decision, **more}
    return (await program.post("/hitl/respond", body)).status
