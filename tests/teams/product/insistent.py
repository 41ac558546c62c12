"""People in Teams who never give up: what got no answer arrives again, while the product dies and is started anew."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.fakes.teams import activities
from tests.fakes.teams.server import FakeTeams
from tests.kills.facts import Row, key_of
from tests.kills.mortal import TAKEOVER
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import Answer, HttpTransport
from tests.teams.product.talk import Json, Talk, dicts, words

PATIENCE = 60.0 + 8 * TAKEOVER
"""Seconds that anything may take while the product is being killed."""
OUTCOMES = ("it_was_done", "skip")


class InsistentTransport:
    """The messaging endpoint of a product that is often away: the very same activity comes again."""

    def __init__(self, transport: HttpTransport) -> None:
        self._transport = transport

    async def activity(self, activity: Json, *, token: str | None = None) -> Answer:
        """An activity, as often as it takes."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    answer = await self._transport.activity(activity, token=token)
                except (aiohttp.ClientError, ConnectionError, TimeoutError):
                    await asyncio.sleep(0.03)
                    continue
                if answer.status < 500:
                    return answer
                await asyncio.sleep(0.03)


@dataclass
class Conversation:
    """Somebody's conversation with the bot, in which Ben clicks what is not his to click."""

    teams: FakeTeams
    talk: Talk
    ben: TeamsPerson
    rng: random.Random
    approvals: Callable[[], list[Row]]
    """What is asked, by the records."""
    broke_off: Callable[[], set[str]]
    """Ids of the attempts, of whomever, of which somebody has to say what came of them."""
    said: list[str] = field(default_factory=list)
    """The last words of the person's messages, in order; each is unmistakable."""
    unknown: int = 0
    """Calls that broke off, of which they had to say what came of them."""

    async def say(self, text: str) -> None:
        """Write to the bot."""
        self.said.append(text.rsplit(maxsplit=1)[-1])
        await self.talk.mentions(text)

    async def hears(self, text: str) -> None:
        """Wait until the bot has said it to the end, settling meanwhile whatever broke off."""
        await self._until(lambda: self._heard(text), text)

    async def cards(self, key: str, number: int) -> list[str]:
        """Wait until the cards of so many calls of a message are there; the ids of their approvals."""
        await self._until(lambda: len(self._asked(key)) == number and all(map(self.posted, self._asked(key))), key)
        return self._asked(key)

    async def decides(self, approval_id: str, verb: str, *, times: int = 1) -> None:
        """Click, hastily `times` times at once, on any of the cards of an approval, until it is settled."""
        async with asyncio.timeout(PATIENCE):
            while self._is_open(approval_id):
                message = self.rng.choice(self.posted(approval_id))["id"]
                await asyncio.gather(*(self.clicks(self.talk.person, message, verb, approval_id) for _ in range(times)))

    async def clicks_in_vain(self, approval_id: str) -> None:
        """Ben clicks what somebody else is asked."""
        await self.clicks(self.ben, self.posted(approval_id)[0]["id"], "approve", approval_id)
        assert self._is_open(approval_id)

    async def clicks(self, person: TeamsPerson, message: str, name: str, subject: str) -> None:
        """Press a button of a card, whoever sees it."""
        data = {"countersign": name, "id": subject} | ({"reason": "not today"} if name == "reject" else {})
        value = activities.card_action({"type": "Action.Execute", "verb": name}, data, "manual")
        answer = await person.invokes("adaptiveCard/action", value, self.talk.conversation, message)
        assert answer.status == 200, answer.text

    def posted(self, subject: str) -> list[Json]:
        """The messages with a card of which something can be clicked."""
        return [m for m in self.talk.of_the_bot() if subject in subjects(m)]

    def _asked(self, key: str) -> list[str]:
        return [a["approval_id"] for a in self.approvals() if key_of(a).startswith(f"{key}/")]

    def _is_open(self, approval_id: str) -> bool:
        return any(a["approval_id"] == approval_id and a["status"] == "pending" for a in self.approvals())

    def _heard(self, text: str) -> bool:
        return any(text in words(m) and not m["streaming"] for m in self.talk.of_the_bot())

    async def _until(self, is_so: Callable[[], Any], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not is_so():
                    await self._settle_outcomes()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = [(m["id"], m["streaming"], words(m)[:80]) for m in self.talk.of_the_bot()[-6:]]
            raise AssertionError(f"never came: {what}, but {shown}") from None

    async def _settle_outcomes(self) -> None:
        open_ = self.broke_off()
        for message in self.talk.of_the_bot() if open_ else ():
            for subject in open_ & subjects(message):
                await self.clicks(self.talk.person, message["id"], self.rng.choice(OUTCOMES), subject)
                open_.discard(subject)
                self.unknown += 1


def subjects(message: Json) -> set[str]:
    """What the buttons of a message are about."""
    return {str(d["id"]) for d in dicts(message["attachments"]) if "countersign" in d and "id" in d}
