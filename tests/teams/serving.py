"""The Teams platform served for real, with the fake Teams on one side and stand-in services on the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp import web

from adapters.shared.outages import OutageAnswers
from adapters.teams.ids import ConversationKind, TeamsLocation, person_id, place_of, within_tenant
from adapters.teams.receiver import MESSAGES_PATH, Patience, TeamsReceiver
from adapters.teams.sender import TeamsSender
from bot.domain import Content, ConversationReference, Post
from graph.interrupts import FormField
from tests.fakes.teams.server import ANA, TENANT, FakeTeams, fake_teams
from tests.support import views
from tests.support.stand_in_services import StandInServices, subject_of
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport, Json
from tests.support.views import NOW

ANA_ID = person_id(TENANT, ANA)

an_approval = partial(
    views.an_approval,
    requester="Ana Alvarez",
    requester_ids=(ANA_ID,),
    may_decide="anybody",
    approvers=("any",),
    rule="everything else asks anybody",
)
a_question = partial(
    views.a_question, requester="Ana Alvarez", requester_id=ANA_ID, fields=(FormField(name="name", label="Name"),)
)
a_sign_in = partial(views.a_sign_in, owner="Ana Alvarez", owner_id=ANA_ID)


def stand_in_services() -> StandInServices:
    """Services of the tenant, whose cards are in its channel."""
    location = TeamsLocation(TENANT, "19:channel@thread.tacv2;messageid=1", "channel")
    return StandInServices(within_tenant(TENANT), place_of(location))


@dataclass(frozen=True, slots=True)
class Served:
    """Everything that runs."""

    teams: FakeTeams
    services: StandInServices
    sender: TeamsSender
    receiver: TeamsReceiver
    transport: HttpTransport
    url: str

    def person(self, user: str = ANA) -> TeamsPerson:
        """Somebody."""
        return TeamsPerson(self.teams, user, self.transport)

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
        subject = subject_of(content) or "p1"
        self.services.keep(content)
        self.services.links.setdefault(subject, "https://sign.in/go?state=very-secret")
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
        services = stand_in_services()
        sender = TeamsSender(replace(teams.config(), **changes), services.link)
        receiver = TeamsReceiver(sender, services.services, patience=patience)
        application = web.Application(middlewares=[OutageAnswers().middleware])
        application.add_routes(receiver.routes())
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        url = f"http://{host}:{port}{MESSAGES_PATH}"
        try:
            await receiver.start()
            yield Served(teams, services, sender, receiver, HttpTransport(url, teams), url)
            assert teams.product_mistakes == []
        finally:
            await receiver.stop()
            await sender.close()
            await runner.cleanup()


async def a_card(product: Served, conversation: str = "", **changes: Any) -> Json:
    """The card of an approval that waits, in a thread of the channel unless said otherwise."""
    return await product.card(an_approval(**changes), conversation or await product.thread())
