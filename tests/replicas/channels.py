"""People who write to the bot in channels of the fake Slack, each message in a thread of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import SECRET
from tests.slack.product.talk import words
from tests.support.slack_done import Done, Said
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import Answer, HttpTransport, Json, Retry

SLACK_WAITS = 3.0
"""Seconds for an acknowledgement."""
NO_ANSWER = 599
"""Status that stands for none."""
MANY = 40
"""Channels: what is said in one shares its rate limits."""


class SlackSends:
    """Sends events as Slack does, which takes no answer within its time for none."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def _transport(self) -> HttpTransport:
        return HttpTransport(f"{self._channels.send_to}/slack/events", SECRET)

    async def event(self, envelope: Json, retry: Retry | None = None) -> Answer:
        """An event."""
        try:
            async with asyncio.timeout(SLACK_WAITS):
                return await self._transport().event(envelope, retry)
        except (TimeoutError, aiohttp.ClientError, ConnectionError):
            return Answer(NO_ANSWER)

    async def interaction(self, payload: Json) -> Answer:
        """A click or a form."""
        return await self._transport().interaction(payload)

    async def command(self, fields: Mapping[str, str]) -> Answer:
        """A slash command."""
        return await self._transport().command(fields)


def status_of(done: Done) -> int:
    """What Slack was answered, where it sent several events the worst of it."""
    return max(answer.status for answer in done.answers)


@dataclass
class Channels:
    """Messages, and what was answered. `send_to`: the address of who gets what Slack sends; it may change."""

    slack: FakeSlack
    send_to: str
    written: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Last word of a message → its channel and thread."""

    def __post_init__(self) -> None:
        for number in range(MANY):
            self.slack.add_channel(f"CMANY{number}", members=["U1", "U2", "UBOT"])
        self._said: dict[str, Said] = {}
        self._ana = SlackPerson(self.slack, "T1", "U1", SlackSends(self))

    async def write(self, key: str) -> int:
        """Mention the bot; the status of the answer."""
        return status_of(await self._say(key))

    async def write_until_taken(self, key: str) -> None:
        """The same; Slack sends it again until it is acknowledged."""
        if await self.write(key) != 200:
            await self.send_again(key)

    async def send_again(self, key: str) -> None:
        """Slack sends a message again until it is acknowledged, each time to where it sends things then."""
        status = 0
        while status != 200:
            await asyncio.sleep(0.2)
            status = status_of(await self._ana.again(self._said[key]))

    async def _say(self, key: str) -> Said:
        channel = f"CMANY{len(self.written) % MANY}"
        self.written[key] = channel, ""
        said = self._said[key] = await self._ana.says(channel, f"{self._ana.bot} hey {key}")
        self.written[key] = channel, said.ts
        return said

    def answers(self, key: str) -> list[str]:
        """What the bot has said in the thread of a message, without the buttons below."""
        channel, ts = self.written[key]
        found = [m for m in self.slack.messages(channel) if m.get("thread_ts") == ts and m.get("bot_id")]
        return [words(m).partition("\n")[0] for m in found if not m["streaming"]]

    @property
    def unanswered(self) -> list[str]:
        """Messages whose answer is not there yet."""
        return [key for key in self.written if f"hello {key}" not in self.answers(key)]

    async def answered(self, key: str, within: float) -> None:
        """Wait until a message is answered."""
        async with asyncio.timeout(within):
            while f"hello {key}" not in self.answers(key):
                await asyncio.sleep(0.02)

    async def all_answered(self, within: float) -> None:
        """Wait until each message is answered, and see that it is once, and that nothing else was said."""
        try:
            async with asyncio.timeout(within):
                while self.unanswered:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            left = {key: self.answers(key) for key in self.unanswered}
            raise AssertionError(f"of {len(self.written)} were never answered: {left}") from None
        said = {key: Counter(self.answers(key)) for key in self.written}
        assert {key: found for key, found in said.items() if found != {f"hello {key}": 1}} == {}
        assert not any(self.slack.ephemerals(user) for user in ("U1", "U2"))
