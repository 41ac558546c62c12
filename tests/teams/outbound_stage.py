"""The outgoing half of the Teams platform against the fake Teams, and posts for it to show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from adapters.teams.connector.client import BotConnector
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.connector.tokens import tokens_of
from adapters.teams.ids import TeamsLocation, person_id, place_of
from adapters.teams.outbound.drafts import TeamsDrafts, TeamsLiveAnswer, TeamsPace
from adapters.teams.outbound.outbox import TeamsPostSender
from adapters.teams.outbound.posting import TeamsPrivateMessages
from bot.domain import ApprovalView, Content, ConversationReference, Notice, Post, Refused, Said, SignInView, Unknown
from tests.fakes.teams.server import ANA, BEN, TENANT, FakeTeams, fake_teams

QUICK = TeamsPace(before=0.05, chunk=0.05, typing=0.05, grace=30.0)
IMPATIENT = replace(QUICK, grace=0.2)
"""Where no post comes, or is not waited for."""
NEVER = TeamsPace(before=60.0)
LINK = "https://sign.in/acme?state=very-secret"
LONG = "\n\n".join(f"Paragraph {n}: " + "words and more words " * 30 for n in range(60))
"""An answer of several messages."""


class Hurry:
    """Time for the connector: whoever waits, waits no longer than it takes to say so."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        return time.monotonic() + self._ahead

    async def sleep(self, seconds: float) -> None:
        self._ahead += seconds
        await asyncio.sleep(0)


@dataclass
class Stage:
    """One process's worth of it; `again` is the process after a crash."""

    teams: FakeTeams
    connector: BotConnector
    people: TeamsPeople
    pace: TeamsPace
    thread: ConversationReference
    """A thread in the channel."""
    links: dict[str, str | Refused | Unknown | Exception] = field(default_factory=dict)
    """What the services answers when it is asked for a sign-in's link, by the id of its owner."""
    now: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.again()

    def again(self) -> None:
        """What a new process knows: nothing."""
        self.drafts = TeamsDrafts(self.connector, clock=lambda: self.now, pace=self.pace)
        self.private = TeamsPrivateMessages(self.connector, self.people, self.teams.config(), clock=lambda: self.now)
        self.outbound = TeamsPostSender(self.connector, self.people, self.drafts, self.private, self._link)

    async def _link(self, sign_in_id: str, person: str) -> str | Refused | Unknown:
        answer = self.links.get(person, Unknown(f"no {sign_in_id}"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    # ------------------------------------------------------------------------------------------- where

    @property
    def group(self) -> ConversationReference:
        """The group chat."""
        return place_of(TeamsLocation(TENANT, self.teams.group, "groupChat", self.teams.service_url))

    @property
    def channel(self) -> ConversationReference:
        """The channel itself, as a rule names it."""
        return place_of(TeamsLocation(TENANT, self.teams.channel, "channel", self.teams.service_url))

    def chat(self, user: str = ANA) -> ConversationReference:
        """Somebody's chat with the bot."""
        return place_of(TeamsLocation(TENANT, self.teams.personal(user), "personal", self.teams.service_url, user))

    # ------------------------------------------------------------------------------------------- what

    def live(self, place: ConversationReference | None = None, thread_id: str = "thread-1") -> TeamsLiveAnswer:
        return self.drafts.live(thread_id, place or self.chat(), teams_person(ANA))

    def post(self, post_id: str, content: Content, place: ConversationReference | None = None, **more: Any) -> Post:
        return Post(post_id, "thread-1", place or self.thread, 1, time.time(), content, **more)

    def said(self, message_id: str, text: str, place: ConversationReference | None = None) -> Post:
        return self.post(f"said:{message_id}", Said(text), place or self.chat())

    def notice(self, post_id: str, text: str, place: ConversationReference | None = None, **more: Any) -> Post:
        return self.post(post_id, Notice(text), place, **more)

    # ------------------------------------------------------------------------------------------- as people see it

    def seen(self, place: ConversationReference) -> list[dict[str, Any]]:
        """The bot's messages at a place that are still there, oldest first."""
        conversation: str = place.address["conversation"]
        return self.teams.posts(conversation)

    def texts(self, place: ConversationReference) -> list[str]:
        return [message["text"] for message in self.seen(place)]

    def streamed(self, user: str = ANA) -> list[tuple[str, str]]:
        """What the streams of a chat were told, oldest first: type and text."""
        streams = self.teams.streams(self.teams.personal(user))
        return [update for stream in streams for update in stream["updates"]]

    def open_streams(self, user: str = ANA) -> list[dict[str, Any]]:
        return [stream for stream in self.teams.streams(self.teams.personal(user)) if stream["streaming"]]

    async def streaming(self, text: str = "") -> str:
        """Wait until a stream in Ana's chat shows a text; its id."""

        def found() -> list[str]:
            streams = self.teams.streams(self.teams.personal(ANA))
            return [s["id"] for s in streams if s["streaming"] and text in s["updates"][-1][1]]

        return str((await self.teams.until(found))[-1])


@asynccontextmanager
async def staged(pace: TeamsPace = QUICK, *, mistakes: Callable[[str], bool] = lambda _: True) -> AsyncIterator[Stage]:
    """The fake, with a thread in the channel. In the end no mistake of the product may be left but those that a test
    allows (by a `mistakes` that is false for them)."""
    async with fake_teams() as teams:
        hurry = Hurry()
        config = teams.config()
        tokens = tokens_of(config)
        connector = BotConnector(config, tokens, clock=hurry.now, sleep=hurry.sleep, jitter=lambda: 0.5)
        people = TeamsPeople(connector, config)
        root = teams.world.post(teams.channel, ANA, {"type": "message", "text": "<at>Countersign</at> hi"})
        thread = place_of(TeamsLocation(TENANT, root.conversation, "channel", teams.service_url))
        stage = Stage(teams, connector, people, pace, thread)
        try:
            yield stage
            assert [mistake for mistake in teams.product_mistakes if mistakes(mistake)] == []
        finally:
            await stage.drafts.close()
            await stage.private.close()
            await people.close()
            await connector.close()
            await tokens.close()


def teams_person(user: str) -> str:
    """Person id of somebody in the tenant."""
    return person_id(TENANT, user)


APPROVAL = ApprovalView(
    approval_id="a1",
    status="pending",
    server="tasks",
    tool="create_task",
    title="Create a task",
    arguments={"title": "Buy paint"},
    asked_arguments=None,
    risk=("writes",),
    requester="Ana",
    may_decide="Ana",
    approvers=("requester",),
    rule="asks",
    quorum=1,
    votes=(),
    asked_at=1_790_000_000.0,
    expires_at=1_790_086_400.0,
    reason_required=False,
    editable=True,
    requester_ids=(teams_person(ANA),),
)
REJECTED = replace(APPROVAL, status="rejected", decided_by=("Ana",), decided_at=1_790_000_100.0, reason="not now")
SIGN_IN = SignInView(
    sign_in_id="s1",
    status="open",
    server="drive",
    host="sign.in",
    message="Please sign in.",
    owner="Ana",
    owner_id=teams_person(ANA),
)
DONE = replace(SIGN_IN, status="done")
BENS_SIGN_IN = replace(SIGN_IN, owner="Ben", owner_id=teams_person(BEN))
