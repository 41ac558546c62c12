"""The life of an approval: asked, voted on, settled once. Who may decide is asked of the policy, at the click."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from bot.clock import Clock
from bot.forms import FormErrors, edit_fields, read_form
from bot.ids import NewId
from bot.permissions import permission_of, stranger
from bot.posts import Posts, said
from bot.records import approvals, deliveries, threads
from bot.records.approvals import ApprovalRow, VoteRow
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.vocabulary import (
    AlreadySettled,
    ClickResult,
    Decision,
    Form,
    Invalid,
    Person,
    Place,
    Refused,
    Settled,
    Unknown,
)
from graph.calls import digest_of
from graph.interrupts import Answer, ApprovalAsked, Approved, Expired, Rejected, Superseded
from graph.ports import Spoken
from policies.deciding import Permitted, edit_needs_no_new_asking
from policies.model import Tool, canonical_json, model_name

log = structlog.get_logger(__name__)

NO_SUCH = Unknown("This approval does not exist (any more).")
REASON_LIMIT = 2_000
"""Characters of a reason."""

FindTool = Callable[[str], Tool | None]
FindPlace = Callable[[str], Place | None]
"""The place that a policy names; `None`: no platform that is connected knows it."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Arguments as an approver wants them."""

    arguments: dict[str, Any]
    digest: str | None
    """`None` when the edited call has to be asked anew, so that nothing can run under this approval."""


class ApprovalBook:
    """Asks, judges clicks, and settles. Fills `graph.ports.Approvals`."""

    def __init__(
        self,
        database: Database,
        posts: Posts,
        clock: Clock,
        new_id: NewId,
        *,
        find_tool: FindTool,
        find_place: FindPlace,
        timer_set: Callable[[], None],
    ) -> None:
        self._database = database
        self._posts = posts
        self._clock = clock
        self._new_id = new_id
        self._find_tool = find_tool
        self._find_place = find_place
        self._timer_set = timer_set

    async def ask(self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken]) -> None:
        """Say what was said before it, record the approval, post its cards and set its timer, in one
        transaction."""
        async with self._database.writing() as tx:
            for each in spoken:
                await self._posts.say(tx, said(thread_id, each))
            await self.record(tx, thread_id, asked)

    async def record(self, tx: Transaction, thread_id: str, asked: ApprovalAsked) -> None:
        """The same within a transaction; what is recorded already stays as it is."""
        now, approval_id = self._clock(), self._new_id()
        expires_at = None if asked.ask.expires_in is None else now + asked.ask.expires_in
        if not await approvals.add(tx, approval_id, thread_id, asked, now=now, expires_at=expires_at):
            return
        await self._posts.show_again(tx, await approvals.void_unused(tx, asked.call_id, asked.round))
        for post in await self._cards(tx, thread_id, approval_id, asked):
            await self._posts.say(tx, post)
        if expires_at is not None:
            body = {"approval": approval_id}
            await deliveries.add(
                tx, Delivery(f"expire:{approval_id}", thread_id, "timer", body, False, now, expires_at)
            )
            tx.afterwards(self._timer_set)

    async def _cards(
        self, tx: Transaction, thread_id: str, approval_id: str, asked: ApprovalAsked
    ) -> Sequence[NewPost]:
        """One card in its thread, and one in each place that the rule routes it to."""
        own = NewPost(f"approval:{approval_id}", thread_id, "approval", subject=approval_id)
        thread = await threads.get(tx, thread_id)
        here = {thread.place.channel or thread.place.key} if thread else set()
        if thread and thread.place.direct:
            here.add(asked.requesters[0])
        elsewhere: dict[str, NewPost] = {}
        for reference in asked.ask.route_to:
            place = self._find_place(reference)
            if place is None:
                log.warning("route_not_known", rule=asked.ask.rule, place=reference)
            elif place.key not in here:
                elsewhere[place.key] = replace(own, key=f"{own.key}@{place.key}", place=place)
        return [own, *elsewhere.values()]

    async def decide(self, tx: Transaction, decision: Decision, approval_id: str) -> ClickResult:
        """Judge one click on one approval, and record what it changes."""
        row = await approvals.get(tx, approval_id)
        if row is None:
            return NO_SUCH
        outside = stranger(row, decision.person)
        if outside is not None:
            return Refused(outside.reason)
        if row.status != "pending":
            return await self._too_late(tx, row, decision)
        if row.expires_at is not None and row.expires_at <= self._clock():
            return AlreadySettled("This approval has expired.")
        permission = permission_of(row, decision.person)
        if not isinstance(permission, Permitted):
            return Refused(permission.reason)
        if decision.verb == "reject":
            return await self._reject(tx, row, decision)
        if decision.arguments is None:
            return await self._approve(tx, row, decision)
        edit = self._edit(row, decision.arguments)
        if isinstance(edit, Invalid | Refused):
            return edit
        return await (self._approve(tx, row, decision) if edit is None else self._change(tx, row, decision, edit))

    async def expire(self, tx: Transaction, approval_id: str, key: str) -> bool:
        """Settle as expired; also true when the same timer did so before; false when somebody was earlier."""
        if await approvals.settle(tx, approval_id, "expired", key=key, now=self._clock()):
            await self._posts.show_again(tx, [approval_id])
            return True
        row = await approvals.get(tx, approval_id)
        return row is not None and row.settled_key == key

    async def supersede(self, tx: Transaction, row: ApprovalRow, key: str, why: str) -> None:
        """Settle as superseded, if it is still pending."""
        if await approvals.settle(tx, row.approval_id, "superseded", key=key, now=self._clock(), reason=why):
            await self._posts.show_again(tx, [row.approval_id])

    async def supersede_unused(self, tx: Transaction, thread_id: str, key: str, why: str) -> None:
        """What was approved and shall not be started any more."""
        given_up = await approvals.supersede_unused(tx, thread_id, key=key, now=self._clock(), reason=why)
        await self._posts.show_again(tx, given_up)

    async def thread_of(self, tx: Transaction, approval_id: str) -> str | None:
        """The thread that waits for an approval."""
        row = await approvals.get(tx, approval_id)
        return row.thread_id if row else None

    async def ids_of(self, tx: Transaction, call_id: str) -> Sequence[str]:
        """The approvals of a call, all rounds."""
        return await approvals.ids_of_call(tx, call_id)

    def may_decide(self, row: ApprovalRow, person: Person) -> bool:
        """Whether this person may decide it now; no, where that could not be found out."""
        return isinstance(permission_of(row, person), Permitted)

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with, for somebody who may decide it."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        if row is None:
            return NO_SUCH
        if row.status != "pending":
            return Refused("This has been settled already.")
        permission = permission_of(row, person)
        if not isinstance(permission, Permitted):
            return Refused(permission.reason)
        tool = self._tool(row)
        if tool is None:
            return Refused(f"{row.asked.server} is not available at the moment, so this cannot be edited.")
        fields, values = edit_fields(tool.input_schema, row.asked.arguments, row.asked.ask.editable)
        return Form(f"{row.asked.server}: {row.asked.tool}", fields, values)

    async def _reject(self, tx: Transaction, row: ApprovalRow, decision: Decision) -> ClickResult:
        reason = decision.reason.strip()[:REASON_LIMIT]
        if row.asked.ask.reason_required and not reason:
            return Invalid({"reason": "Please say why: a rejection of this needs a reason."})
        now, person = self._clock(), decision.person
        if not await approvals.settle(tx, row.approval_id, "rejected", key=decision.key, now=now, reason=reason):
            return AlreadySettled("Somebody was faster: this has been settled already.")
        await approvals.replace_vote(
            tx, row.approval_id, person.person_id, person.name, "reject", reason=reason, key=decision.key, now=now
        )
        await self._posts.show_again(tx, [row.approval_id])
        return Settled("Rejected.")

    async def _approve(self, tx: Transaction, row: ApprovalRow, decision: Decision) -> ClickResult:
        if not await self._vote(tx, row, decision):
            return AlreadySettled("You have approved this already; it waits for others.")
        cast = [v for v in await approvals.votes_on(tx, row.approval_id) if v.verb == "approve"]
        await self._posts.show_again(tx, [row.approval_id])
        if len(cast) < row.asked.ask.quorum:
            return Settled(f"Counted: {len(cast)} of {row.asked.ask.quorum}.", final=False)
        await approvals.settle(
            tx, row.approval_id, "approved", key=decision.key, now=self._clock(), approved_digest=row.asked.digest
        )
        return Settled("Approved.")

    async def _change(self, tx: Transaction, row: ApprovalRow, decision: Decision, edit: _Edit) -> ClickResult:
        await self._vote(tx, row, decision)
        await approvals.settle(
            tx,
            row.approval_id,
            "approved",
            key=decision.key,
            now=self._clock(),
            approved_arguments=edit.arguments,
            approved_digest=edit.digest,
            edited_by=decision.person.person_id,
        )
        await self._posts.show_again(tx, [row.approval_id])
        if edit.digest is None:
            return Settled("Changed. Since you changed it, somebody else has to approve the changed call.")
        return Settled("Approved with changes.")

    async def _vote(self, tx: Transaction, row: ApprovalRow, decision: Decision) -> bool:
        person, now = decision.person, self._clock()
        return await approvals.add_vote(
            tx, row.approval_id, person.person_id, person.name, "approve", reason="", key=decision.key, now=now
        )

    def _edit(self, row: ApprovalRow, values: Mapping[str, Any]) -> _Edit | Invalid | Refused | None:
        """The edited arguments; `None` when nothing was changed."""
        tool = self._tool(row)
        if tool is None:
            return Refused(f"{row.asked.server} is not available at the moment, so this cannot be edited.")
        arguments = read_form(tool.input_schema, row.asked.arguments, row.asked.ask.editable, values)
        if isinstance(arguments, FormErrors):
            return Invalid(arguments.errors)
        if canonical_json(arguments) == canonical_json(row.asked.arguments):
            return None
        suffices = edit_needs_no_new_asking(row.asked.ask, row.asked.ask)
        return _Edit(arguments, digest_of(tool, arguments) if suffices else None)

    def _tool(self, row: ApprovalRow) -> Tool | None:
        return self._find_tool(model_name(row.asked.server, row.asked.tool))

    async def _too_late(self, tx: Transaction, row: ApprovalRow, decision: Decision) -> ClickResult:
        if row.settled_key == decision.key:
            return Settled(f"{row.status.capitalize()}.")
        cast = await approvals.votes_on(tx, row.approval_id)
        return AlreadySettled(f"This was {row.status} already{_by(row, cast)}.")


def _by(row: ApprovalRow, cast: Sequence[VoteRow]) -> str:
    verb = {"approved": "approve", "rejected": "reject"}.get(row.status)
    names = [v.name for v in cast if v.verb == verb]
    return f" by {', '.join(names)}" if names else ""


async def answer_of(tx: Transaction, row: ApprovalRow) -> Answer | None:
    """What a settled approval tells the graph; `None` while it is pending."""
    cast = await approvals.votes_on(tx, row.approval_id)
    match row.status:
        case "pending":
            return None
        case "approved":
            by = tuple(v.name for v in cast if v.verb == "approve")
            arguments = dict(row.approved_arguments) if row.approved_arguments is not None else None
            return Approved(by=by, arguments=arguments, edited_by=row.edited_by)
        case "rejected":
            return Rejected(by=next((v.name for v in cast if v.verb == "reject"), "somebody"), reason=row.reason)
        case "expired":
            return Expired()
        case _:
            return Superseded(reason=row.reason)
