"""The same person on whichever platform: what they do and what they are told, so that one story is told of all."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from tests.fakes.teams.server import TENANT
from tests.slack.product.talk import Talk as SlackTalk
from tests.slack.product.talk import buttons as slack_buttons
from tests.slack.product.talk import words as slack_words
from tests.support.visitor import Thread
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import buttons as teams_buttons
from tests.teams.product.talk import words as teams_words

Json = dict[str, Any]
ENDS = {"void": "Asked again"}
"""How a card that is settled begins, where that is not the status itself."""
NOT_OFFERED = "not offered"
"""What comes of asking somebody who is not in the list of those who can be asked."""


class Someone(Protocol):
    """Somebody in a conversation with the bot. What they do is about the card that they saw last."""

    card: Json

    @property
    def person_id(self) -> str:
        """As the product calls them."""
        ...

    async def asks(self, text: str) -> None:
        """Write to the bot."""
        ...

    async def sees(self, *words: str) -> None:
        """Wait for a card in the conversation that waits and has these words, and look at it."""
        ...

    async def is_given(self, *words: str) -> None:
        """The same of a card that was put to this person themselves."""
        ...

    async def approves(self) -> str:
        """Press Approve; what the clicker alone is told at once, if anything."""
        ...

    async def rejects(self, reason: str) -> None:
        """Reject it."""
        ...

    async def edits(self, **values: Any) -> None:
        """Approve it with changes."""
        ...

    async def always_allows(self, duration: str) -> None:
        """Approve it, and always allow the same."""
        ...

    async def asks_somebody_else(self, person_id: str) -> str:
        """Ask them to decide; what is answered."""
        ...

    async def withdraws(self) -> None:
        """Take it back."""
        ...

    async def revokes(self) -> None:
        """Revoke the only grant there is."""
        ...

    async def is_refused(self, *words: str) -> None:
        """Press Approve and be told these words, alone."""
        ...

    async def sees_it_end(self, status: str, *words: str) -> None:
        """Wait until the card says so."""
        ...

    async def sees_on_it(self, *words: str) -> None:
        """Wait until the card, which still waits, has these words."""
        ...

    async def hears(self, *words: str) -> None:
        """Wait until the bot says these words in the conversation."""
        ...


@dataclass
class InSlack:
    """Somebody in Slack."""

    talk: SlackTalk
    card: Json = field(default_factory=dict)
    _modal: Json | None = None
    """That is still open, with what is wrong in it."""

    @property
    def person_id(self) -> str:
        return f"slack:{self.talk.person.team}:{self.talk.person.user}"

    async def asks(self, text: str) -> None:
        await self.talk.mentions(text)

    async def sees(self, *words: str) -> None:
        self.card = await self.talk.card(*words)

    async def is_given(self, *words: str) -> None:
        self.card = dict((await self.talk.slack.until(lambda: self._directly(words)))[-1])

    def _directly(self, words: tuple[str, ...]) -> list[Json]:
        cards = [m for m in self.talk.slack.messages(self.talk.person.dm) if "approve" in slack_buttons(m)]
        return [card for card in cards if all(word in slack_words(card) for word in words)]

    async def approves(self) -> str:
        await self.talk.clicks(self.card, "approve")
        return ""

    async def rejects(self, reason: str) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "reject"), reason=reason)

    async def edits(self, **values: Any) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "edit"), **values)

    async def always_allows(self, duration: str) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "always"), duration=duration)

    async def asks_somebody_else(self, person_id: str) -> str:
        modal, self._modal = self._modal or await self.talk.opens(self.card, "hand_over"), None
        listed = [
            option["value"] for block in modal["blocks"] for option in block.get("element", {}).get("options", ())
        ]
        if listed and person_id not in listed:
            self._modal = modal
            return NOT_OFFERED
        in_the_menu = person_id if listed else person_id.rpartition(":")[2]
        whom = {"address": person_id} if "@" in person_id else {"colleague": in_the_menu}
        submitted = await self.talk.submits(modal, **whom)
        if submitted.errors:
            self._modal = submitted.view
        return " ".join(submitted.errors.values()) or slack_words(submitted.view)

    async def withdraws(self) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "ask_to_withdraw"))

    async def revokes(self) -> None:
        slack, user = self.talk.slack, self.talk.person.user
        await self.talk.person.opens_home()
        home = await slack.until(lambda: (h := slack.home(user)) and "revoke" in slack_buttons(h) and h)
        await self.talk.person.clicks(home, "revoke")
        await slack.until(lambda: "revoke" not in slack_buttons(slack.home(user) or {}))

    async def is_refused(self, *words: str) -> None:
        await self.talk.clicks(self.card, "approve")
        await self.talk.told(*words)

    async def sees_it_end(self, status: str, *words: str) -> None:
        await self.talk.slack.until(lambda: self._now(approve=False, words=(_ending(status), *words)))

    async def sees_on_it(self, *words: str) -> None:
        await self.talk.slack.until(lambda: self._now(approve=True, words=words))

    async def hears(self, *words: str) -> None:
        await self.talk.says(*words)

    def _now(self, *, approve: bool, words: tuple[str, ...]) -> bool:
        seen = [*self.talk.slack.messages(self.talk.channel), *self.talk.slack.messages(self.talk.person.dm)]
        card = next(m for m in seen if m["ts"] == self.card["ts"])
        return ("approve" in slack_buttons(card)) is approve and all(word in slack_words(card) for word in words)


@dataclass
class InTeams:
    """Somebody in Teams."""

    talk: TeamsTalk
    card: Json = field(default_factory=dict)

    @property
    def person_id(self) -> str:
        return f"teams:{TENANT}:{self.talk.person.user}"

    async def asks(self, text: str) -> None:
        await self.talk.mentions(text)

    async def sees(self, *words: str) -> None:
        self.card = await self.talk.card(*words)

    async def is_given(self, *words: str) -> None:
        self.card = await TeamsTalk(self.talk.teams, self.talk.person, self.talk.person.chat).card(*words)

    async def approves(self) -> str:
        answer = await self.talk.clicks(self._with_buttons(), "approve")
        return answer.message or teams_words(answer.card)

    async def rejects(self, reason: str) -> None:
        await self.talk.clicks(self.card, "reject", {"reason": reason})

    async def edits(self, **values: Any) -> None:
        dialog = await self.talk.opens(self.card, "edit_dialog")
        await self.talk.submits(dialog, "edit", **{name: str(value) for name, value in values.items()})

    async def always_allows(self, duration: str) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "always_dialog"), "always", duration=duration)

    async def asks_somebody_else(self, person_id: str) -> str:
        dialog = await self.talk.opens(self.card, "hand_over_dialog")
        whom = {"address": person_id} if "@" in person_id else {"colleague": person_id.rpartition(":")[2]}
        return teams_words((await self.talk.submits(dialog, "hand_over", **whom)).card)

    async def withdraws(self) -> None:
        await self.talk.submits(await self.talk.opens(self.card, "withdraw_dialog"), "take_back")

    async def revokes(self) -> None:
        direct = TeamsTalk(self.talk.teams, self.talk.person, self.talk.person.chat)
        await direct.mentions("approvals")
        answer = await direct.clicks(await direct.says("Standing approvals"), "revoke")
        assert "Revoked" in answer.message

    async def is_refused(self, *words: str) -> None:
        told = await self.approves()
        assert all(word in told for word in words), told

    async def sees_it_end(self, status: str, *words: str) -> None:
        await self.talk.settled(self.card, _ending(status), *words)

    async def sees_on_it(self, *words: str) -> None:
        await self.talk.teams.until(lambda: all(word in teams_words(self._posted()) for word in words))

    async def hears(self, *words: str) -> None:
        await self.talk.says(*words)

    def _posted(self) -> Json:
        """The card as it is for everybody."""
        return next(m for m in self.talk.teams.posts(self.card["conversation"]) if m["id"] == self.card["id"])

    def _with_buttons(self) -> Json:
        """The card as a client shows it that does not refresh cards for each person; else as it was seen."""
        return self._posted() if "approve" in teams_buttons(self._posted()) else self.card


@dataclass
class OnPage:
    """Somebody at the web page."""

    thread: Thread
    card: Json = field(default_factory=dict)

    @property
    def person_id(self) -> str:
        return str(self.thread.visitor.me["person_id"])

    async def asks(self, text: str) -> None:
        assert (await self.thread.send(text)).status == 202

    async def sees(self, *words: str) -> None:
        self.card = await self.thread.until(lambda: self._waiting(words), f"a card with {words}")

    async def is_given(self, *words: str) -> None:
        """The page says so beside whatever conversation is open, with the way to the card."""
        await self.thread.until(lambda: self.thread.asked, "asked to decide")
        assert [each["thread_id"] for each in self.thread.asked] == [self.thread.thread_id]
        await self.sees(*words)

    async def approves(self) -> str:
        return str((await self.thread.approve(self.card["id"]))["text"])

    async def rejects(self, reason: str) -> None:
        assert (await self.thread.reject(self.card["id"], reason))["kind"] == "settled"

    async def edits(self, **values: Any) -> None:
        assert (await self.thread.approve(self.card["id"], values=values))["kind"] == "settled"

    async def always_allows(self, duration: str) -> None:
        body = {"id": _click(), "approvals": [self.card["id"]], "verb": "approve", "always_for": duration}
        assert (await self.thread.visitor.post("/api/approvals/decisions", body)).status == 200

    async def asks_somebody_else(self, person_id: str) -> str:
        answer = await self.thread.visitor.post(self._address("handover"), {"id": _click(), "to": person_id})
        return str(answer.body["text"])

    async def withdraws(self) -> None:
        assert (await self.thread.visitor.post(self._address("withdrawal"), {"id": _click()})).status == 200

    async def revokes(self) -> None:
        visitor = self.thread.visitor
        [grant] = (await visitor.get("/api/grants")).body["grants"]
        assert (await visitor.delete(f"/api/grants/{quote(grant['id'], safe='')}")).status == 200

    async def is_refused(self, *words: str) -> None:
        told = await self.approves()
        assert all(word in told for word in words), told

    async def sees_it_end(self, status: str, *words: str) -> None:
        await self.thread.until(lambda: self._now(status, words), f"{status} {words}")

    async def sees_on_it(self, *words: str) -> None:
        await self.thread.until(lambda: self._now("pending", words), f"{words}")

    async def hears(self, *words: str) -> None:
        def said() -> bool:
            texts = [*self.thread.said, *self.thread.notices]
            return any(all(word.lower() in text.lower() for word in words) for text in texts)

        await self.thread.until(said, f"hears {words}")

    def _address(self, what: str) -> str:
        return f"/api/approvals/{quote(self.card['id'], safe='')}/{what}"

    def _waiting(self, words: tuple[str, ...]) -> Json | None:
        cards = [card for card in self.thread.approvals("pending") if all(word in str(card) for word in words)]
        return cards[-1] if cards else None

    def _now(self, status: str, words: tuple[str, ...]) -> bool:
        cards = [card for card in self.thread.approvals(status) if card["id"] == self.card["id"]]
        return any(all(word in _page_words(card) for word in words) for card in cards)


def _ending(status: str) -> str:
    return ENDS.get(status, status.capitalize())


def _click() -> str:
    return uuid.uuid4().hex


def _page_words(card: Json) -> str:
    """What the page makes of a card: also the votes, which it counts itself."""
    cast = [vote["name"] for vote in card["votes"] if vote["verb"] == "approve"]
    return f"{len(cast)} of {card['quorum']} approved: {', '.join(cast)}\n{card}"
