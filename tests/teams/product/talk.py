"""A conversation in the fake Teams, as one person holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.teams.server import FakeTeams
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import Answer

Json = dict[str, Any]


def words(node: Any) -> str:
    """All the text that a message or a card shows, in order, one piece a line."""
    return "\n".join(_texts(node))


def buttons(node: Any) -> list[str]:
    """The names of what can be clicked, those within what a button opens too."""
    return [d["data"]["countersign"] for d in dicts(node) if str(d.get("type", "")).startswith("Action.") and _ours(d)]


def _ours(action: Json) -> bool:
    return isinstance(action.get("data"), dict) and "countersign" in action["data"]


def _waits(message: Json) -> bool:
    """Whether its card waits for a decision: one that is settled has all the rest behind “Details”."""
    rows = [attached["content"].get("actions", []) for attached in message["attachments"]]
    return any(_ours(action) and action["data"]["countersign"] == "show_all" for row in rows for action in row)


def _texts(node: Any) -> list[str]:
    found: list[str] = []
    match node:
        case dict():
            for name, value in node.items():
                if isinstance(value, str) and name in {"text", "title", "value", "label", "errorMessage"}:
                    found.append(value)
                elif name not in {"data", "fallback", "speak"}:
                    found += _texts(value)
        case list():
            for value in node:
                found += _texts(value)
    return found


def dicts(node: Any) -> Iterator[Json]:
    """All objects within a message or a card, itself first, apart from fallbacks."""
    if isinstance(node, dict):
        yield node
    for name, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if name != "fallback":
            yield from dicts(value)


@dataclass
class Talk:
    """One conversation: a thread of a channel, a group chat, somebody's chat with the bot."""

    teams: FakeTeams
    person: TeamsPerson
    conversation: str

    async def mentions(self, text: str) -> None:
        """Write to the bot: in a channel with a mention, which begins a thread if this is none yet."""
        said = await self.person.says(self.conversation, text)
        assert 200 <= said.status < 300
        self.conversation = said.conversation

    async def replies(self, text: str) -> None:
        """Write without a mention."""
        said = await self.person.says(self.conversation, text, mention=False)
        assert said.status == 0 or 200 <= said.status < 300

    def of_the_bot(self) -> list[Json]:
        """What this person sees of what the bot posted."""
        seen = (self.person.address, "", None)
        return [self.person.sees(m) for m in self.teams.posts(self.conversation) if m["only_for"] in seen]

    async def says(self, *wanted: str) -> Json:
        """Wait for a message of the bot that has all these words, written to its end."""
        found = await self.teams.until(
            lambda: [m for m in self._with(self.of_the_bot(), wanted) if not m.get("streaming")]
        )
        return dict(found[-1])

    async def card(self, *wanted: str, number: int = 1) -> Json:
        """Wait until so many cards wait for a decision; the last one, as this person sees it."""

        async def look() -> None:
            for message in self.teams.posts(self.conversation):
                if message["attachments"]:
                    await self.person.looks_at(message)

        await self.teams.until(lambda: len(self.waiting(wanted)) >= number)
        await look()
        return self.waiting(wanted)[-1]

    def waiting(self, wanted: tuple[str, ...] = ()) -> list[Json]:
        """The cards that wait for a decision, of whomever."""
        return [m for m in self._with(self.of_the_bot(), wanted) if _waits(m)]

    async def settled(self, card: Json, *wanted: str) -> Json:
        """Wait until a card shows what came of it, to everybody."""

        def now() -> Json | None:
            message = next(m for m in self.teams.posts(card["conversation"]) if m["id"] == card["id"])
            return message if not _waits(message) and self._with([message], wanted) else None

        return dict(await self.teams.until(now))

    async def clicks(self, message: Json, name: str, values: Mapping[str, Any] | None = None, **how: Any) -> Answer:
        """Press a button."""
        answer = await self.person.clicks(message, name, values, **how)
        assert 200 <= answer.status < 300
        return answer

    async def opens(self, message: Json, name: str) -> Answer:
        """Press a button that opens a dialog, and see it."""
        opened = await self.person.opens(message, name)
        assert opened.status == 200
        return opened

    async def submits(self, dialog: Answer, name: str = "", **values: Any) -> Answer:
        """Submit a dialog."""
        submitted = await self.person.submits(dialog, values, name=name)
        assert submitted.status == 200
        return submitted

    async def told(self, *wanted: str) -> Json:
        """Wait until this person alone is told something, here or in their chat with the bot."""

        def alone() -> list[Json]:
            here = [m for m in self.teams.posts(self.conversation) if m["only_for"] == self.person.address]
            return self._with([*here, *self.teams.posts(self.person.chat)], wanted)

        return dict((await self.teams.until(alone))[-1])

    def _with(self, messages: list[Json], wanted: tuple[str, ...]) -> list[Json]:
        has: Callable[[Json], bool] = lambda m: all(w.lower() in words(m).lower() for w in wanted)  # noqa: E731
        return [m for m in messages if has(m)]
