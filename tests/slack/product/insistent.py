"""People in Slack who never give up: what got no answer arrives again, while the product dies and is started anew."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.fakes.slack.server import FakeSlack
from tests.kills.mortal import TAKEOVER
from tests.slack.product.talk import Talk, buttons, words
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import Answer, HttpTransport, Json, Retry

PATIENCE = 60.0 + 8 * TAKEOVER
"""Seconds that anything may take while the product is being killed."""
OUTCOMES = ("it_was_done", "skip")


class InsistentTransport:
    """The Events API of a product that is often away: Slack sends again, and people click again."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def event(self, envelope: Json, retry: Retry | None = None) -> Answer:
        """An event; the second time with the headers of a retry."""
        number = 0

        async def send() -> Answer:
            nonlocal number
            number += 1
            return await self._transport.event(envelope, Retry(number - 1) if number > 1 else retry)

        return await _insisting(send)

    async def interaction(self, payload: Json) -> Answer:
        """The very same click or form."""
        return await _insisting(lambda: self._transport.interaction(payload))

    async def command(self, fields: Mapping[str, str]) -> Answer:
        """A slash command."""
        return await _insisting(lambda: self._transport.command(fields))


async def _insisting(send: Callable[[], Awaitable[Answer]]) -> Answer:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                answer = await send()
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                await asyncio.sleep(0.03)
                continue
            if answer.status < 500:
                return answer
            await asyncio.sleep(0.03)


@dataclass
class Conversation:
    """Ana's thread, in which Ben clicks what is not his to click."""

    slack: FakeSlack
    talk: Talk
    ben: SlackPerson
    rng: random.Random
    said: list[str] = field(default_factory=list)
    """The last words of Ana's messages, in order; each is unmistakable."""
    unknown: int = 0
    """Calls that broke off, of which she had to say what came of them."""

    async def say(self, text: str) -> None:
        """Write to the bot."""
        self.said.append(text.rsplit(maxsplit=1)[-1])
        await self.talk.mentions(text)

    async def hears(self, text: str) -> None:
        """Wait until the bot has said it to the end, settling meanwhile whatever broke off."""
        await self._until(lambda: any(text in words(m) and not m["streaming"] for m in self.talk.of_the_bot()), text)

    async def cards(self, key: str, number: int) -> list[Json]:
        """Wait until so many calls of a message wait for a decision."""
        await self._until(lambda: len(self._waiting(key)) == number, f"{number} cards of {key}")
        return self._waiting(key)

    async def approves(self, card: Json, *, times: int = 1) -> None:
        """Click Approve, hastily `times` times at once, until the card is settled."""
        await self._until_settled(card, lambda: asyncio.gather(*(self._click(card, "approve") for _ in range(times))))

    async def rejects(self, card: Json) -> None:
        """Click Reject and send its form, until the card is settled."""
        await self._until_settled(card, lambda: self._reject(card))

    async def _click(self, card: Json, action: str) -> None:
        assert (await self.talk.person.clicks(card, action)).status == 200

    async def _until_settled(self, card: Json, act: Callable[[], Awaitable[Any]]) -> None:
        """The product that has only just started may ask to click again."""
        async with asyncio.timeout(PATIENCE):
            while self._is_open(card):
                await act()
                for _ in range(150):
                    if not self._is_open(card):
                        return
                    await asyncio.sleep(0.02)

    def _is_open(self, card: Json) -> bool:
        return any("approve" in buttons(m) for m in self.talk.of_the_bot() if m["ts"] == card["ts"])

    async def clicks_in_vain(self, card: Json) -> None:
        """Ben clicks what Ana is asked."""
        assert (await self.ben.clicks(card, "approve")).status == 200

    async def _reject(self, card: Json) -> None:
        if view := await self._reject_form(card):  # a dead product opens none
            assert (await self.talk.person.submits(view, {"reason": "not today"})).status == 200

    async def _reject_form(self, card: Json) -> Json | None:
        before = {view["id"] for view in self._views()}
        await self._click(card, "reject")
        for _ in range(50):
            if new := [view for view in self._views() if view["id"] not in before]:
                return new[-1]
            await asyncio.sleep(0.02)
        return None

    def _views(self) -> list[Json]:
        return self.slack.views(self.talk.person.user, team=self.talk.person.team)

    def _waiting(self, key: str) -> list[Json]:
        return self.talk.waiting((f"{key}/",))

    async def _until(self, is_so: Callable[[], Any], what: str) -> None:
        async with asyncio.timeout(PATIENCE):
            try:
                while not is_so():
                    await self._settle_outcomes()
                    await asyncio.sleep(0.02)
            except TimeoutError:
                raise AssertionError(f"never came: {what}") from None
            except asyncio.CancelledError:
                shown = [(m["ts"], m["streaming"], words(m)[:80]) for m in self.talk.of_the_bot()[-6:]]
                print(f"still waiting for {what}: {shown}")
                raise

    async def _settle_outcomes(self) -> None:
        for card in self.talk.of_the_bot():
            if "it_was_done" in buttons(card):
                await self._click(card, self.rng.choice(OUTCOMES))
                self.unknown += 1
                await asyncio.sleep(0.3)  # the card follows the click
