"""A person at the page, speaking the page's own HTTP: messages and clicks in, one event stream out."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.support.product import PASSWORD

Json = dict[str, Any]
WITHIN = 20.0
"""Seconds that anything a test waits for may take; a test that needs them all is broken."""

LONGEST_EVENT = 8 * 1024 * 1024
"""Bytes of an event, which is one line: a whole conversation may be in it."""


def new_thread() -> str:
    """The id of a new conversation, as the page makes it."""
    return f"web:{uuid.uuid4().hex}"


@dataclass
class Answer:
    """What a request got."""

    status: int
    body: Json


@dataclass
class Thread:
    """One open conversation as this visitor sees it, kept current by the event stream."""

    thread_id: str
    visitor: Visitor
    within: float = WITHIN
    """Seconds that anything may take here."""
    entries: dict[str, Json] = field(default_factory=dict)
    live_texts: list[str] = field(default_factory=list)
    drafts: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Answers that are being written: number of parts and text, by the ids of their messages."""
    statuses: list[str] = field(default_factory=list)
    listed: list[Json] = field(default_factory=list)
    """This visitor's conversations, as the page lists them."""
    asked: list[Json] = field(default_factory=list)
    """What others have asked this visitor to decide, in any conversation."""
    through_programs: list[Json] = field(default_factory=list)
    """What waits for the calls of this visitor's own other agents."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    # ------------------------------------------------------------------------------------------- reading

    def contents(self, kind: str) -> list[Json]:
        """The contents of the bot's posts of one kind, oldest first."""
        return [e["content"] for e in self.entries.values() if e["kind"] == "post" and e["content"]["kind"] == kind]

    @property
    def said(self) -> list[str]:
        """What the bot said."""
        return [c["text"] for c in self.contents("said")]

    @property
    def said_ids(self) -> list[str]:
        """The ids of the posts with what the bot said."""
        return [e["id"] for e in self.entries.values() if e["kind"] == "post" and e["content"]["kind"] == "said"]

    @property
    def notices(self) -> list[str]:
        """What the product said."""
        return [c["text"] for c in self.contents("notice")]

    def approvals(self, status: str | None = None) -> list[Json]:
        """The approval cards."""
        return [c for c in self.contents("approval") if status in {None, c["status"]}]

    async def until(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Wait until something holds of what is shown, and return it."""
        async with self.changed:
            try:
                async with asyncio.timeout(self.within):
                    while not (found := condition()):
                        await self.changed.wait()
            except TimeoutError:
                shown = json.dumps(list(self.entries.values()), indent=1, ensure_ascii=False)
                raise AssertionError(f"did not come: {what or condition}; shown is\n{shown}") from None
        return found

    async def says(self, *words: str) -> str:
        """Wait until the bot says something with all these words in it."""
        wanted = [w.lower() for w in words]
        return await self.until(
            lambda: next((t for t in reversed(self.said) if all(w in t.lower() for w in wanted)), None), f"says {words}"
        )

    async def notice(self, *words: str) -> str:
        """Wait until the product says something with all these words in it."""
        wanted = [w.lower() for w in words]
        return await self.until(
            lambda: next((t for t in self.notices if all(w in t.lower() for w in wanted)), None), f"notice {words}"
        )

    async def waiting(self, count: int = 1) -> list[Json]:
        """Wait until so many approvals wait, and return their cards, in the order in which they are shown."""
        return await self.until(
            lambda: len(found := self.approvals("pending")) >= count and found, f"{count} waiting approvals"
        )

    async def card(self, approval_id: str, status: str, *, result: str | None = None) -> Json:
        """Wait until a card shows this status (and this result)."""

        def shows() -> Json | None:
            for card in self.approvals(status):
                if card["id"] == approval_id and (result is None or result.lower() in card["result"].lower()):
                    return card
            return None

        return await self.until(shows, f"card {approval_id} {status} {result}")

    async def question(self, status: str = "open") -> Json:
        """Wait until a clarification with this status is shown."""
        return await self.until(
            lambda: next((c for c in self.contents("clarification") if c["status"] == status), None), "a clarification"
        )

    # ------------------------------------------------------------------------------------------- acting

    async def send(self, text: str, message_id: str | None = None, *, files: Sequence[str] = ()) -> Answer:
        """Write a message. `files`: ids of what was uploaded for it."""
        body = {"id": message_id or uuid.uuid4().hex, "text": text} | ({"files": list(files)} if files else {})
        return await self.visitor.post(f"/api/threads/{quote(self.thread_id, safe='')}/messages", body)

    async def stop(self) -> Answer:
        """Press Stop."""
        return await self.visitor.post(f"/api/threads/{quote(self.thread_id, safe='')}/stop", {"id": uuid.uuid4().hex})

    async def approve(self, *approval_ids: str, click: str | None = None, values: Json | None = None) -> Json:
        """Press Approve (or Approve all, or Approve with changes)."""
        body: Json = {"id": click or uuid.uuid4().hex, "approvals": list(approval_ids), "verb": "approve"}
        if values is not None:
            body["values"] = values
        return await self._decide(body)

    async def reject(self, approval_id: str, reason: str = "", click: str | None = None) -> Json:
        """Press Reject."""
        body = {"id": click or uuid.uuid4().hex, "approvals": [approval_id], "verb": "reject", "reason": reason}
        return await self._decide(body)

    async def _decide(self, body: Json) -> Json:
        answer = await self.visitor.post("/api/approvals/decisions", body)
        results = answer.body["results"]
        return next(iter(results.values())) if len(results) == 1 else results

    async def answer_form(self, clarification_id: str, values: Json) -> Answer:
        """Send a clarification's form."""
        path = f"/api/clarifications/{quote(clarification_id, safe='')}/answer"
        return await self.visitor.post(path, {"id": uuid.uuid4().hex, "values": values})

    # ------------------------------------------------------------------------------------------- the stream

    async def follow(self, *, ready: asyncio.Event) -> None:
        """Keep `entries` current until cancelled; reconnects as the page does."""
        while True:
            try:
                await self.follow_once(self.visitor.url, ready)
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)  # the page's EventSource waits a little before it reconnects, too

    async def follow_once(self, url: str, ready: asyncio.Event) -> None:
        """The same until this stream, of the product at `url`, ends. Sets `ready` with the first event."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        query = {"thread": self.thread_id}
        async with self.visitor.http.get(
            f"{url}/api/events", params=query, timeout=timeout, read_bufsize=LONGEST_EVENT
        ) as response:
            response.raise_for_status()
            name, data = "", ""
            async for raw in response.content:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    data += line[6:]
                elif not line and name:
                    await self.take(name, json.loads(data))
                    name, data = "", ""
                    ready.set()

    async def take(self, name: str, event: Json) -> None:
        """An event of the stream."""
        async with self.changed:
            match name:
                case "thread":
                    self.entries = {e["id"]: e for e in event["entries"]}
                    self.drafts = {d["message_id"]: (d["n"], d["text"]) for d in event["live"]["drafts"]}
                    self.statuses.append(event["live"]["status"])
                case "post" | "message":
                    self.drafts.pop(event.get("ends_draft"), None)
                    known = self.entries.get(event["id"])
                    if known is None or known.get("revision", 0) <= event.get("revision", 0):
                        self.entries[event["id"]] = event
                case "threads":
                    self.listed = event["threads"]
                    self.asked, self.through_programs = event["asked"], event["through_programs"]
                case "text":
                    self.live_texts.append(event["delta"])
                    n, text = self.drafts.get(event["message_id"], (0, ""))
                    if event["n"] > n:
                        self.drafts[event["message_id"]] = event["n"], text + event["delta"]
                case "status":
                    self.statuses.append(event["text"])
                case _:
                    pass
            self.changed.notify_all()


class Visitor:
    """One browser session of one local person."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.me: Json = {}
        self._csrf = ""

    def some_url(self, _rng: random.Random) -> str:
        """Any of the addresses at which the product can be reached."""
        return self.url

    async def arrive(self, person_id: str) -> None:
        """Open the page, say the password if it is asked for, and be somebody."""
        async with self.http.get(f"{self.url}/api/session") as response:
            session = await response.json()
        self._csrf = session["csrf"]
        if session["needs_password"]:
            answer = await self.post("/api/session", {"password": PASSWORD})
            assert answer.status == 200, answer
            self._csrf = answer.body["csrf"]
        answer = await self.post("/api/session", {"person": person_id})
        assert answer.status == 200, answer
        self._csrf, self.me = answer.body["csrf"], answer.body["me"]

    async def post(self, path: str, body: Json) -> Answer:
        """POST as the page does."""
        headers = {"X-CSRF-Token": self._csrf, "Origin": self.url}
        target = aiohttp.client.URL(f"{self.url}{path}", encoded=True)
        async with self.http.post(target, json=body, headers=headers) as response:
            return Answer(response.status, await response.json())

    async def upload(self, name: str, content: bytes) -> Answer:
        """Add a file to the next message, as the page does."""
        headers = {"X-CSRF-Token": self._csrf, "Origin": self.url, "Content-Type": "application/octet-stream"}
        target = aiohttp.client.URL(f"{self.url}/api/files?name={quote(name, safe='')}", encoded=True)
        async with self.http.post(target, data=content, headers=headers) as response:
            return Answer(response.status, await response.json())

    async def delete(self, path: str) -> Answer:
        """DELETE as the page does."""
        headers = {"X-CSRF-Token": self._csrf, "Origin": self.url}
        async with self.http.delete(aiohttp.client.URL(f"{self.url}{path}", encoded=True), headers=headers) as response:
            return Answer(response.status, await response.json())

    async def get(self, path: str) -> Answer:
        """GET as the page does."""
        async with self.http.get(aiohttp.client.URL(f"{self.url}{path}", encoded=True)) as response:
            return Answer(response.status, await response.json())

    @asynccontextmanager
    async def thread(self, thread_id: str | None = None, *, within: float = WITHIN) -> AsyncIterator[Thread]:
        """Open a conversation and follow it."""
        thread = Thread(thread_id or new_thread(), self, within)
        ready = asyncio.Event()
        following = asyncio.create_task(thread.follow(ready=ready))
        try:
            async with asyncio.timeout(within):
                await ready.wait()
            yield thread
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@asynccontextmanager
async def visiting(url: str, person: str = "ana") -> AsyncIterator[Visitor]:
    """A browser session of a local person."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(total=WITHIN)) as http:
        visitor = Visitor(url, http)
        await visitor.arrive(f"web:{person}")
        yield visitor
