"""`/api/v1/me`, `/api/v1/standing-approvals`, `/api/v1/feedback`, `/api/v1/audit`: what is about whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.results import MOST_CHARACTERS_OF_AN_ID, ResultShape, for_operators, id_in, settled
from adapters.shared.problems import Problem
from bot.audit.entries import read_entry
from bot.conversations import MOST_AUDIT_ENTRIES
from bot.domain import AlreadySettled, Feedback, GrantView
from bot.identity.principal import Scope
from bot.inbox import LONGEST_COMMENT
from bot.safe_text import visible_line
from bot.services import Services
from bot.usage import MOST_GROUPS, UsageTotal
from graph.memory import LONGEST_MEMORY
from graph.usage import LONGEST_MODEL_NAME
from policies.model import LONGEST_CLIENT


class MeShape(Shape):
    """Who a token acts for, and what it allows."""

    model_config = ConfigDict(frozen=True, title="Me")
    person_id: str
    name: str
    scopes: list[Scope]
    via: Literal["session", "jwt", "token", "local"]
    accounts: list[str] = Field(description="Person ids of the same human, this one among them.")
    operator: bool


class StandingApprovalShape(Shape):
    """A call that you always allow, for a while, when you ask for it."""

    model_config = ConfigDict(frozen=True, title="StandingApproval")
    id: str
    server: str
    tool: str
    arguments: dict[str, Any]
    until: float
    masks: int
    unread: int = Field(description="Characters of arguments that are too long for a list.")
    client: str = Field(description="What the program calls itself at /mcp for which alone it counts; empty: the bot.")

    @classmethod
    def of(cls, view: GrantView) -> StandingApprovalShape:
        """As its owner sees it."""
        return cls(
            id=view.grant_id,
            server=view.server,
            tool=view.tool,
            arguments=dict(view.arguments),
            until=view.until,
            masks=view.masks,
            unread=view.unread,
            client=visible_line(view.client, LONGEST_CLIENT),
        )


class StandingApprovalListShape(Shape):
    """What you always allow, the one that ends last first."""

    model_config = ConfigDict(frozen=True, title="StandingApprovalList")
    standing_approvals: list[StandingApprovalShape]


class MemoryShape(Shape):
    """Something that is remembered of you, as you wrote it."""

    model_config = ConfigDict(frozen=True, title="Memory")
    id: str
    text: str
    at: float = Field(description="When you said it, in seconds since the epoch, UTC.")


class MemoryListShape(Shape):
    """What is remembered of you, the newest first."""

    model_config = ConfigDict(frozen=True, title="MemoryList")
    memories: list[MemoryShape]
    remembers: bool = Field(description="False: nothing is, because you do not want it, or MEMORY=false.")


class UsageTotalShape(Shape):
    """Usage of language models, added up. `cost`: null without a price of one of the models."""

    model_config = ConfigDict(frozen=True, title="UsageTotal")
    key: str = Field(description="Of which person, channel (empty: direct chats), agent, model or day; empty: in all.")
    calls: int
    input_tokens: int = Field(description="Those that were cached are among them.")
    cached_tokens: int
    output_tokens: int
    seconds: float
    models: list[str]
    cost: float | None

    @classmethod
    def of(cls, total: UsageTotal) -> UsageTotalShape:
        """As whoever may know it sees it."""
        return cls(
            key=visible_line(total.key, LONGEST_LINE),
            models=[visible_line(each, LONGEST_MODEL_NAME) for each in total.models],
            cost=None if total.cost is None else float(total.cost),
            **total.use,
        )


class UsageShape(Shape):
    """What your requests have used of language models. Days are those of UTC."""

    model_config = ConfigDict(frozen=True, title="Usage")
    today: UsageTotalShape
    recent: UsageTotalShape = Field(description="In 30 days, today among them.")
    days: list[UsageTotalShape] = Field(description="The days of them on which anything was used, the newest first.")
    currency: str = Field(description="ISO 4217; empty: there are no prices.")


class UsageOfEverybodyShape(Shape):
    """What everybody has used of language models, those with the most tokens first."""

    model_config = ConfigDict(frozen=True, title="UsageOfEverybody")
    since: str
    until: str
    groups: list[UsageTotalShape] = Field(max_length=MOST_GROUPS)
    more: bool = Field(description="There are more groups, with fewer tokens.")
    currency: str = Field(description="ISO 4217; empty: there are no prices.")


class UsageQuery(Body):
    """Of whom, and when."""

    by: Literal["person", "channel", "agent", "model", "day"] = "person"
    since: Annotated[date, Field(description="The first day (UTC); when left out, 30 days are counted.")] | None = None
    until: Annotated[date, Field(description="The last day (UTC); when left out, today.")] | None = None


class FeedbackForm(Body):
    """What you think of something that the bot said."""

    post_id: Annotated[str, Field(min_length=1, max_length=2 * MOST_CHARACTERS_OF_AN_ID)]
    verdict: Literal["good", "bad"]
    comment: Annotated[str, Field(max_length=LONGEST_COMMENT)] = ""


class AuditQuery(Body):
    """Which entries."""

    since: Annotated[float, Field(ge=0, le=1e11, description="Seconds since the epoch, UTC.")] | None = None
    until: Annotated[float, Field(ge=0, le=1e11, description="Not included.")] | None = None
    after: Annotated[int, Field(ge=0, le=2**53, description="Only entries with a greater number.")] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_AUDIT_ENTRIES)] = 100


class AuditEntryShape(Shape):
    """An entry of the audit log."""

    model_config = ConfigDict(frozen=True, title="AuditEntry")
    seq: int
    hash: str
    entry: dict[str, Any] | None = Field(description="null: it was changed and cannot be read.")


class AuditShape(Shape):
    """Entries of the audit log, by number."""

    model_config = ConfigDict(frozen=True, title="Audit")
    entries: list[AuditEntryShape]


class OwnResources:
    """What is about whoever asks, and, for operators, the audit log."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> Sequence[Operation]:
        """What can be done with it."""
        return [
            Operation(
                "GET",
                "/api/v1/me",
                "getMe",
                "Says who you are here, and what your token allows.",
                self.me,
                {200: Answer("You.", MeShape)},
                tag="me",
            ),
            Operation(
                "GET",
                "/api/v1/standing-approvals",
                "listStandingApprovals",
                "Lists the calls that you always allow.",
                self.standing_approvals,
                {200: Answer("The calls.", StandingApprovalListShape)},
                tag="me",
            ),
            Operation(
                "DELETE",
                "/api/v1/standing-approvals/{id}",
                "revokeStandingApproval",
                "Has you asked again before such a call.",
                self.revoke,
                {200: Answer("It is revoked.", ResultShape)},
                scope="approve",
                tag="me",
            ),
            Operation(
                "GET",
                "/api/v1/memories",
                "listMemories",
                "Lists what is remembered of you.",
                self.memories,
                {200: Answer("The memories.", MemoryListShape)},
                tag="me",
            ),
            Operation(
                "DELETE",
                "/api/v1/memories/{id}",
                "forgetMemory",
                "Forgets something about you.",
                self.forget,
                {200: Answer("It is forgotten.", ResultShape)},
                scope="run",
                tag="me",
            ),
            Operation(
                "DELETE",
                "/api/v1/memories",
                "forgetMemories",
                "Forgets everything about you.",
                self.forget_all,
                {200: Answer("They are forgotten.", ResultShape)},
                scope="run",
                tag="me",
            ),
            Operation(
                "GET",
                "/api/v1/usage",
                "getUsage",
                "Says what your requests have used of language models.",
                self.usage,
                {200: Answer("What they have used.", UsageShape)},
                tag="me",
            ),
            Operation(
                "GET",
                "/api/v1/operator/usage",
                "getUsageOfEverybody",
                "Says what everybody has used of language models; for operators. The audit log says that you did.",
                self.usage_of_everybody,
                {200: Answer("What everybody has used.", UsageOfEverybodyShape)},
                query=UsageQuery,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/feedback",
                "giveFeedback",
                "Says what you think of an answer.",
                self.feedback,
                {200: Answer("It is kept.", ResultShape)},
                scope="run",
                body=FeedbackForm,
                problems=(404,),
                tag="me",
            ),
            Operation(
                "GET",
                "/api/v1/audit",
                "readAudit",
                "Reads the audit log; for operators. The log says that you did.",
                self.audit,
                {200: Answer("The entries.", AuditShape)},
                query=AuditQuery,
                tag="audit",
            ),
        ]

    async def me(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/me`."""
        principal, person = call.principal, call.principal.person
        return json_answer(
            MeShape(
                person_id=person.person_id,
                name=visible_line(person.name, LONGEST_LINE),
                scopes=sorted(principal.scopes),
                via=principal.via,
                accounts=sorted(principal.person_ids),
                operator=await self._services.conversations.is_operator(person),
            )
        )

    async def standing_approvals(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/standing-approvals`."""
        own = await self._services.queries.standing_approvals(call.principal.person)
        return json_answer(
            StandingApprovalListShape(standing_approvals=[StandingApprovalShape.of(each) for each in own])
        )

    async def revoke(self, call: ApiCall) -> web.Response:
        """`DELETE /api/v1/standing-approvals/{id}`: doing it twice is doing it once."""
        grant_id, person = id_in(call, "permission"), call.principal.person
        result = await self._services.approvals.revoke_standing_approval(grant_id, person)
        return json_answer(ResultShape.of(result) if isinstance(result, AlreadySettled) else settled(result))

    async def memories(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/memories`."""
        own = await self._services.memories.of_person(call.principal.person.person_id)
        return json_answer(
            MemoryListShape(
                memories=[
                    MemoryShape(id=item.memory_id, text=visible_line(item.text, LONGEST_MEMORY), at=item.at)
                    for item in own.items
                ],
                remembers=own.is_remembered,
            )
        )

    async def forget(self, call: ApiCall) -> web.Response:
        """`DELETE /api/v1/memories/{id}`."""
        memory_id = id_in(call, "memory")
        return json_answer(settled(await self._services.memories.forget(call.principal.person.person_id, memory_id)))

    async def forget_all(self, call: ApiCall) -> web.Response:
        """`DELETE /api/v1/memories`."""
        return json_answer(settled(await self._services.memories.forget_all(call.principal.person.person_id)))

    async def usage(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/usage`."""
        own = await self._services.usage.own(call.principal.person)
        return json_answer(
            UsageShape(
                today=UsageTotalShape.of(own.today),
                recent=UsageTotalShape.of(own.recent),
                days=[UsageTotalShape.of(each) for each in own.days],
                currency=own.currency,
            )
        )

    async def usage_of_everybody(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/usage`."""
        query = call.query(UsageQuery)
        found = await self._services.usage.of_everybody(call.principal.person, query.by, query.since, query.until)
        found = for_operators(found, "Only operators can see what everybody has used.")
        return json_answer(
            UsageOfEverybodyShape(
                since=found.since,
                until=found.until,
                groups=[UsageTotalShape.of(each) for each in found.groups],
                more=found.is_cut,
                currency=found.currency,
            )
        )

    async def feedback(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/feedback`."""
        body, person = call.body(FeedbackForm), call.principal.person
        post = await self._services.queries.post(body.post_id)
        conversations = self._services.conversations
        if (
            post is None
            or post.place.platform != "web"
            or post.only_for not in {None, person.person_id}
            or await conversations.owners_for(post.thread_id, person) is None
        ):
            raise Problem(404, "There’s no such answer here.")
        feedback = Feedback(person, body.post_id, body.verdict, body.comment)
        return json_answer(settled(await self._services.inbox.feedback(feedback)))

    async def audit(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/audit`."""
        query = call.query(AuditQuery)
        found = await self._services.conversations.audit_entries(
            call.principal.person, query.since, query.until, after=query.after, limit=query.limit
        )
        found = for_operators(found, "Only operators can read the audit log.")
        return json_answer(
            AuditShape(entries=[AuditEntryShape(seq=e.seq, hash=e.hash, entry=read_entry(e.entry)) for e in found])
        )
