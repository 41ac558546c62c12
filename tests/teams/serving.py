"""The Teams platform served for real, with the fake Teams on one side and stand-in services on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from adapters.teams.ids import ConversationKind, TeamsLocation, place_of
from adapters.teams.receiver import MESSAGES_PATH, Patience, TeamsReceiver
from adapters.teams.sender import TeamsSender
from bot.domain import ApprovalView, ClarificationView, Content, ConversationReference, Post, SignInView
from tests.fakes.teams.server import ANA, FakeTeams, fake_teams
from tests.support.teams_doors import HttpDoor, Json
from tests.support.teams_people import TeamsPerson
from tests.teams.stand_in_services import NOW, StandInServices, an_approval


@dataclass(frozen=True, slots=True)
class Served:
    """Everything that runs."""

    teams: FakeTeams
    services: StandInServices
    sender: TeamsSender
    receiver: TeamsReceiver
    door: HttpDoor
    url: str

    def person(self, user: str = ANA) -> TeamsPerson:
        """Somebody."""
        return TeamsPerson(self.teams, user, self.door)

    def place(self, conversation: str, user: str = ANA) -> ConversationReference:
        """A conversation, as a place; `user`: whose chat it is, if it is one."""
        kind: ConversationKind = self.teams.world.conversation(conversation).kind
        location = TeamsLocation(
            self.teams.tenant, conversation, kind, self.teams.service_url, user if kind == "personal" else ""
        )
        return place_of(location)

    async def thread(self) -> str:
        """A thread in the channel that Ana has begun with the bot."""
        return (await self.person().says(self.teams.channel, "please do something")).conversation

    async def card(self, content: Content, conversation: str) -> Json:
        """A post of ours, as people see it, recorded."""
        subject = _subject(content)
        self._keep(subject, content)
        place = self.place(conversation)
        reference = await self.sender.send(Post(f"card:{subject}", "thread-1", place, 1, NOW, content))
        self.services.references[subject] = [(place, reference)]
        return self.message(conversation, str(reference["parts"][0]))

    def message(self, conversation: str, message_id: str) -> Json:
        """A message, as it is now."""
        return next(m for m in self.teams.messages(conversation) if m["id"] == message_id)

    def told(self, user: str = ANA) -> list[str]:
        """What this person alone was told, in targeted messages or their chat, oldest first."""
        everywhere = (m for each in self.teams.world.conversations for m in self.teams.posts(each))
        own = (m for m in everywhere if m["only_for"] == self.teams.address(user) or m in self.chat(user))
        return [text_in(message) for message in own]

    def chat(self, user: str = ANA) -> list[Json]:
        """The bot's messages in somebody's chat."""
        return self.teams.posts(self.teams.personal(user))

    async def hears(self, words: str, user: str = ANA) -> str:
        """Wait until this person alone is told something with these words, and return it."""
        found: str = await self.teams.until(lambda: next((t for t in self.told(user) if words in t), None))
        return found

    def _keep(self, subject: str, content: Content) -> None:
        match content:
            case ApprovalView():
                self.services.approvals[subject] = content
            case ClarificationView():
                self.services.questions[subject] = content
            case SignInView():
                self.services.sign_ins.setdefault(subject, (content, "https://sign.in/go?state=very-secret"))


def _subject(content: Content) -> str:
    match content:
        case ApprovalView():
            return content.approval_id
        case ClarificationView():
            return content.clarification_id
        case SignInView():
            return content.sign_in_id
        case _:
            return "p1"


def text_in(message: Json) -> str:
    """Everything that can be read in a message, in one string."""
    found = [message.get("text") or ""]

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            found.extend(str(part[name]) for name in ("text", "title", "value", "label") if part.get(name))
            for value in part.values():
                collect(value)
        elif isinstance(part, list):
            for value in part:
                collect(value)

    collect(message.get("attachments"))
    return "\n".join(found)


@asynccontextmanager
async def serving(*, patience: Patience | None = None, **changes: Any) -> AsyncIterator[Served]:
    """Serve it until the block ends; `changes` are those of the configuration."""
    async with fake_teams() as teams:
        services = StandInServices()
        sender = TeamsSender(replace(teams.config(), **changes), services.link)
        receiver = TeamsReceiver(sender, services.services, patience=patience)
        application = web.Application()
        application.add_routes(receiver.routes())
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        url = f"http://{host}:{port}{MESSAGES_PATH}"
        try:
            await receiver.start()
            yield Served(teams, services, sender, receiver, HttpDoor(url, teams), url)
            assert teams.product_mistakes == []
        finally:
            await receiver.stop()
            await sender.close()
            await runner.cleanup()


async def a_card(product: Served, conversation: str = "", **changes: Any) -> Json:
    """The card of an approval that waits, in a thread of the channel unless said otherwise."""
    return await product.card(an_approval(**changes), conversation or await product.thread())
