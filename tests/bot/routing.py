"""The services between two platforms, `chat` where things are asked and `mail` where they may be routed to, and a page
whose issuer vouches for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.crypto import NewId
from bot.domain import ApprovalView, ConversationReference, Decision, Handover, Notice, Person, Post
from bot.outbox import Outbox
from bot.platform import PostFailed
from bot.records import approvals, threads
from bot.records.approvals import ApprovalRow, VoteRow
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from policies.approvers import digest_of
from policies.model import Tool
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.rows import asked
from tests.bot.stubs import NotedEngine, make_parts

ANA, BEN, CHLOE = (Person(f"chat:w1:{name}", name.capitalize()) for name in ("ana", "ben", "chloe"))
CARA, STRANGER = Person("mail:w2:cara", "Cara"), Person("mail:w3:stranger", "Stranger")
ANA_BY_MAIL, BEN_BY_MAIL = Person("mail:w2:ana", "Ana"), Person("mail:w2:ben", "Ben")
THREAD = "chat:w1:room:1"
HERE = ConversationReference("chat", THREAD, {}, channel="chat:w1:room")
FAR, NEAR = "mail:w2:office", "chat:w1:hall"
MAKE = Tool(
    server="workshop",
    name="make",
    input_schema={"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
)


LAMP = digest_of(MAKE, {"what": "lamp"})
"""Of the call that waits."""


async def make(_: str) -> Tool:
    """Finds the one tool that there is."""
    return MAKE


@dataclass
class Routed(RecordingPlatform):
    """A platform that knows the places of its name."""

    broken: list[str] = field(default_factory=list)
    """Keys of places where nothing can be shown at the moment."""

    def named_place(self, reference: str) -> ConversationReference | None:
        return ConversationReference(self.name, reference, {}) if reference.startswith(f"{self.name}:") else None

    async def _take(self, post: Post) -> None:
        if post.place.key in self.broken:
            raise PostFailed("away for a moment")
        await super()._take(post)

    def view(self, place_key: str) -> ApprovalView | None:
        """What the card at a place shows."""
        cards = [post.content for post in self.shown.values() if post.place.key == place_key]
        views = [content for content in cards if isinstance(content, ApprovalView)]
        return views[-1] if views else None

    def notices(self, place_key: str) -> list[str]:
        """What was said beside it."""
        contents = [post.content for post in self.shown.values() if post.place.key == place_key]
        return [content.text for content in contents if isinstance(content, Notice)]


class Routing:
    """The services between these platforms."""

    def __init__(self, database: Database, clock: SetClock, new_id: NewId) -> None:
        self.chat, self.mail, self.page = Routed("chat"), Routed("mail"), Routed("web")
        platforms = {platform.name: platform for platform in (self.chat, self.mail, self.page)}
        self.database, self.clock, self.engine = database, clock, NotedEngine()
        self.outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.005)
        self.parts = make_parts(
            database,
            self.outbox,
            clock,
            new_id,
            platforms=platforms,
            find_tool=make,
            engine=self.engine,
        )
        self.services = self.parts.services

    def same_human(self, *people: Person) -> None:
        """Each of their platforms vouches for the same address."""
        for person in people:
            platforms = {"chat": self.chat, "mail": self.mail, "web": self.page}
            platform = platforms[person.person_id.partition(":")[0]]
            platform.emails[person.person_id] = f"{people[0].name.lower()}@example.com"

    async def ask(self, *routes: str, place: ConversationReference = HERE, **how: Any) -> str:
        """A call of Ana's waits; the approval's id."""
        how = {"requesters": (ANA.person_id,), "approvers": ("any",), "digest": LAMP, **how}
        async with self.database.writing(UNLOCKED) as tx:
            await threads.ensure(tx, place.key, place, "hello", self.clock())
            await threads.remember(tx, ANA, self.clock())
            request = asked(route_to=routes, **how)
            await self.parts.requests.record(tx, place.key, request)
            row = await approvals.of_call(tx, request.call_id, 1)
        assert row is not None
        return row.approval_id

    async def click(self, person: Person, approval_id: str, verb: Any = "approve", **how: Any) -> Any:
        """Decide; what the person is told."""
        key = f"{person.person_id} clicks {verb} at {self.clock()}"
        decision = Decision.alike(key, person, (approval_id,), verb, **how)
        return (await self.services.approvals.decide(decision))[approval_id]

    async def edit(self, person: Person, approval_id: str, values: Mapping[str, Any], **how: Any) -> Any:
        """Edit and approve."""
        return await self.click(person, approval_id, arguments=values, **how)

    async def hand(self, person: Person, approval_id: str, to: Person) -> Any:
        """Ask somebody else to decide."""
        return await self.hand_to(person, approval_id, to.person_id)

    async def hand_to(self, person: Person, approval_id: str, to: str, name: str = "") -> Any:
        """The same, to a person id or an address."""
        return await self.services.approvals.hand_over(
            Handover(f"{person.person_id} hands", person, approval_id, to, name)
        )

    async def row(self, approval_id: str) -> ApprovalRow:
        """What is recorded."""
        async with self.database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        assert row is not None
        return row

    async def votes(self, approval_id: str) -> list[VoteRow]:
        """Who voted what."""
        async with self.database.reading() as tx:
            return list(await approvals.votes_on(tx, approval_id))

    async def view(self, approval_id: str) -> ApprovalView:
        """The card as it is now."""
        view = await self.services.queries.approval(approval_id, "")
        assert isinstance(view, ApprovalView)
        return view
