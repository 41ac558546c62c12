"""People at browsers that never give up: what got no answer is sent again, under the same id."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

import aiohttp

from tests.kills.brain import ACTS
from tests.kills.mortal import TAKEOVER
from tests.support.visitor import Answer, Json, Thread, Visitor

PATIENCE = 100.0 + 20 * TAKEOVER
"""Seconds that anything may take while the product is being killed: where what a dead process was busy with is only
taken over after a while, it may be begun in many short lives before it ends in one."""
T = TypeVar("T")


async def insisting(action: Callable[[], Awaitable[T]]) -> T:
    """Do it until there is an answer, whatever happens to the product meanwhile."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await action()
            except (aiohttp.ClientError, ConnectionError):
                await asyncio.sleep(0.03)  # as long as a browser waits before it connects again


@dataclass
class Sent:
    """A message that the product has accepted."""

    thread_id: str
    text: str
    stopped: bool = False
    """Whether a stop was accepted after it."""

    @property
    def key(self) -> str:
        """The word that makes it unmistakable."""
        return self.text.rsplit(maxsplit=1)[-1]


@dataclass
class Ana:
    """Ana in one conversation, open in two of her browsers."""

    thread: Thread
    other: Visitor
    rng: random.Random
    sent: list[Sent] = field(default_factory=list)

    @property
    def revisions(self) -> int:
        """How much has been shown here: grows with every post and every change of one."""
        return sum(int(entry.get("revision", 1)) for entry in self.thread.entries.values())

    async def say(self, text: str, *, times: int = 1) -> Sent:
        """Send a message, several times at once if told so; every sending gets its answer."""
        body = {"id": self.new_id(), "text": text}
        path = f"/api/threads/{quote(self.thread.thread_id, safe='')}/messages"
        browsers = [self.thread.visitor, self.other]
        answers = await asyncio.gather(*(self.post(browsers[n % 2], path, body) for n in range(times)))
        assert {a.status for a in answers} == {202}, answers
        self.sent.append(Sent(self.thread.thread_id, text))
        return self.sent[-1]

    async def click(self, browser: Visitor, cards: Sequence[str], verb: str, click: str | None = None) -> Json:
        """Decide on cards; what became of each."""
        body = {"id": click or self.new_id(), "approvals": list(cards), "verb": verb}
        answer = await self.post(browser, "/api/approvals/decisions", body)
        assert answer.status in {200, 409}, answer  # 409: it settled nothing any more
        results: Json = answer.body["results"]
        return results

    async def stop(self) -> bool:
        """Press Stop; whether there was something to stop."""
        path = f"/api/threads/{quote(self.thread.thread_id, safe='')}/stop"
        click = self.new_id()
        answer = await self.post(self.thread.visitor, path, {"id": click})
        assert answer.status in {200, 403}, answer
        if answer.status == 200:
            post_id = f"stopped:web:{click}:{self.thread.visitor.me['person_id']}"
            await self.thread.until(lambda: post_id in self.thread.entries, "the word that it stopped")
        return answer.status == 200

    async def choose(self, outcome_id: str, choice: str) -> Answer:
        """Say what came of a call whose outcome is unknown."""
        body = {"id": self.new_id(), "choice": choice}
        return await self.post(self.thread.visitor, f"/api/outcomes/{quote(outcome_id, safe='')}", body)

    async def post(self, browser: Visitor, path: str, body: Json) -> Answer:
        """POST until there is an answer."""
        answer = await insisting(lambda: browser.post(path, body))
        assert answer.status < 500, answer
        return answer

    async def cards(self, key: str) -> list[str]:
        """Wait until all acts of a message wait; their cards' ids, in order."""
        await self.thread.until(lambda: len(self._waiting(key)) == ACTS, f"cards of {key}")
        return self._waiting(key)

    async def card(self, key: str, but: Collection[str] = ()) -> str:
        """Wait until a call with exactly this key waits; its card's id, which is none of these."""
        await self.thread.until(lambda: self._of_key(key, but), f"the card of {key}")
        return self._of_key(key, but)[0]

    async def approves_until(self, ending: str, key: str) -> list[str]:
        """Approve whatever waits with exactly this key until the bot has said this. Returns what was approved."""
        approved: list[str] = []
        while True:
            await self.thread.until(lambda: ending in self.thread.said or self._of_key(key, approved), ending)
            if ending in self.thread.said:
                return approved
            approved.append(self._of_key(key, approved)[0])
            await self.click(self.other, approved[-1:], "approve")

    async def retry(self, approval_id: str, title: str) -> Sequence[str]:
        """Click Retry on the card of a call that failed twice, from two browsers, the first time of them both at once
        and with the same click. What became of the two clicks."""
        path, clicks = f"/api/approvals/{quote(approval_id, safe='')}/retry", [self.new_id(), self.new_id()]
        browsers = [self.thread.visitor, self.other]
        same = await asyncio.gather(*(self.post(browser, path, {"id": clicks[0]}) for browser in browsers))
        other = await self.post(self.other, path, {"id": clicks[1]})
        assert same[0].body["kind"] == same[1].body["kind"], same
        if same[0].body["kind"] == "settled":
            self.sent.append(Sent(self.thread.thread_id, f"Retry: effects: attempt: {title}"))
        return [same[0].body["kind"], other.body["kind"]]

    async def some_card(self, key: str) -> None:
        """Wait until any act of a message waits."""
        await self.thread.until(lambda: self._waiting(key), f"a card of {key}")

    async def hears(self, text: str) -> None:
        """Wait until the bot has said exactly this."""
        await self.thread.until(lambda: text in self.thread.said, text)

    def new_id(self) -> str:
        """A new id of a message or a click; the same in every run of the same seed."""
        return uuid.UUID(int=self.rng.getrandbits(128), version=4).hex

    def _of_key(self, key: str, but: Collection[str]) -> list[str]:
        cards = [card for card in self.thread.approvals("pending") if card["id"] not in but]
        return [card["id"] for card in cards if any(argument["value"] == key for argument in card["arguments"])]

    def _waiting(self, key: str) -> list[str]:
        found = {
            argument["value"]: card["id"]
            for card in self.thread.approvals("pending")
            for argument in card["arguments"]
            if argument["value"].startswith(f"{key}/")
        }
        return [found[name] for name in sorted(found)]


@asynccontextmanager
async def settling_outcomes(ana: Ana, choices: Sequence[str]) -> AsyncIterator[list[str]]:
    """Whenever a call broke off, Ana says one of these of it; yields the outcomes that she settled."""
    settled: list[str] = []

    async def settle() -> None:
        while True:
            card = await next_outcome(ana.thread, set(settled))
            settled.append(card["id"])
            # A stop or a new message may have settled it first.
            assert (await ana.choose(card["id"], ana.rng.choice(choices))).status in {200, 409}

    async with asyncio.TaskGroup() as group:
        task = group.create_task(settle())
        yield settled
        task.cancel()


async def next_outcome(thread: Thread, known: set[str]) -> Json:
    """Wait for the card of a call whose outcome is unknown, for as long as it takes: one of this conversation, or of a
    program's call whose key begins with its name."""

    def shown() -> Json | None:
        cards = [*thread.contents("outcome"), *_outcomes_of_programs(thread)]
        return next((c for c in cards if c["status"] == "open" and c["id"] not in known), None)

    async with thread.changed:
        while (card := shown()) is None:
            await thread.changed.wait()
    return card


def name_of(thread: Thread) -> str:
    """How the keys begin of all that is done in a conversation, or through programs by who has it open. No number:
    cards put `61012e-1`, which is text here, in quotation marks."""
    return f"k{thread.thread_id[-6:]}"


def _outcomes_of_programs(thread: Thread) -> list[Json]:
    cards = [item["card"] for item in thread.through_programs if item["card"]["kind"] == "outcome"]
    return [card for card in cards if any(each["value"].startswith(name_of(thread)) for each in card["arguments"])]
