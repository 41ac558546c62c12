"""A conversation in a thread of the fake Slack, as one person holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.fakes.slack.server import FakeSlack
from tests.support.slack_done import Clicked, Submitted
from tests.support.slack_people import SlackPerson

Json = dict[str, Any]


def words(node: Any) -> str:
    """All the text that a message or a view shows, in order, one piece a line."""
    return "\n".join(_texts(node.get("blocks", [])) or [node.get("text", "")]) if isinstance(node, dict) else ""


def buttons(message: Json) -> list[str]:
    """The action ids of what can be clicked."""
    return [e["action_id"] for e in _dicts(message.get("blocks", [])) if e.get("type") == "button"]


def _texts(node: Any) -> list[str]:
    found: list[str] = []
    match node:
        case {"text": str(text)}:
            found.append(text)
        case dict():
            for value in node.values():
                found += _texts(value)
        case list():
            for value in node:
                found += _texts(value)
    return found


def _dicts(node: Any) -> Iterator[Json]:
    if isinstance(node, dict):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _dicts(value)


@dataclass
class Talk:
    """One thread."""

    slack: FakeSlack
    person: SlackPerson
    channel: str
    thread_ts: str = ""

    async def mentions(self, text: str) -> None:
        """Write to the bot: in a channel with a mention, which begins the thread if there is none yet."""
        mention = "" if self.channel.startswith("D") else f"{self.person.bot} "
        said = await self.person.says(self.channel, f"{mention}{text}", thread_ts=self.thread_ts or None)
        assert said.status == 200
        self.thread_ts = self.thread_ts or said.ts

    async def replies(self, text: str) -> None:
        """Write in the thread without a mention."""
        assert (await self.person.says(self.channel, text, thread_ts=self.thread_ts)).status == 200

    def of_the_bot(self) -> list[Json]:
        """What the bot posted in the thread."""
        posted = [m for m in self.slack.messages(self.channel) if m.get("thread_ts", m["ts"]) == self.thread_ts]
        return [m for m in posted if m.get("bot_id")]

    async def says(self, *wanted: str) -> Json:
        """Wait for a message of the bot that has all these words."""
        found = await self.slack.until(lambda: self._with(self.of_the_bot(), wanted))
        return dict(found[-1])

    async def card(self, *wanted: str, number: int = 1) -> Json:
        """Wait until so many cards wait for a decision; the last one."""
        cards = await self.slack.until(lambda: len(found := self.waiting(wanted)) >= number and found)
        return dict(cards[-1])

    def waiting(self, wanted: tuple[str, ...] = ()) -> list[Json]:
        """The cards that wait for a decision."""
        return [m for m in self._with(self.of_the_bot(), wanted) if "approve" in buttons(m)]

    async def settled(self, card: Json, *wanted: str) -> Json:
        """Wait until a card shows what came of it."""

        def now() -> Json | None:
            message = next(m for m in self.slack.messages(self.channel) if m["ts"] == card["ts"])
            return message if "approve" not in buttons(message) and self._with([message], wanted) else None

        return dict(await self.slack.until(now))

    def now(self, message: Json) -> Json:
        """A message as it is now."""
        return dict(next(m for m in self.slack.messages(self.channel) if m["ts"] == message["ts"]))

    async def clicks(self, message: Json, action: str) -> Clicked:
        """Click something."""
        clicked = await self.person.clicks(message, action)
        assert clicked.status == 200
        return clicked

    async def opens(self, message: Json, action: str) -> Json:
        """Click something that opens a modal, and see it."""
        before = len(self.slack.views(self.person.user, team=self.person.team))
        await self.clicks(message, action)
        views = await self.slack.until(
            lambda: len(v := self.slack.views(self.person.user, team=self.person.team)) > before and v
        )
        return dict(views[-1])

    async def submits(self, view: Json, **values: Any) -> Submitted:
        """Submit a modal."""
        submitted = await self.person.submits(view, values)
        assert submitted.status == 200
        return submitted

    async def told(self, *wanted: str) -> Json:
        """Wait until this person alone is told something."""
        found = await self.slack.until(lambda: self._with(self.slack.ephemerals(self.person.user), wanted))
        return dict(found[-1])

    def _with(self, messages: list[Json], wanted: tuple[str, ...]) -> list[Json]:
        has: Callable[[Json], bool] = lambda m: all(w.lower() in words(m).lower() for w in wanted)  # noqa: E731
        return [m for m in messages if has(m)]
