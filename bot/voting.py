"""Clicks on approvals: judged from the records and the policy as they are now, counted, and settled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.approvals.directory import Facts
from bot.approvals.permissions import Known, authority_of, permission_of, requesters_of, stranger
from bot.approvals.requests import has_expired, is_open
from bot.audit.log import AuditLog
from bot.clock import Clock
from bot.domain import AlreadySettled, ClickResult, Decision, Form, Hidden, Invalid, Person, Refused, Settled, Unknown
from bot.forms import FormErrors, edit_fields, read_form
from bot.grants import GrantBook, is_offered, name_of
from bot.masking import PLAIN, hidden_aside, masked_aside
from bot.posts import Posts
from bot.records import approvals
from bot.records.approvals import ApprovalRow, VoteRow
from bot.records.database import Database, Transaction
from bot.views import approval_view
from graph.calls import digest_of, storable
from policies.approvers import CountedVote, Identity, Permitted, Tally, edit_needs_no_new_asking, tally
from policies.model import Tool, canonical_json, model_name
from policies.redaction import Redactor

NO_SUCH = Unknown("This approval does not exist (any more).")
EXPIRED = AlreadySettled("This approval has expired.")
FASTER = AlreadySettled("Somebody was faster: this has been settled already.")
SOMEBODY_ELSE = "Since you changed it, somebody else has to approve the changed call."
TOOL_CHANGED = "The tool itself changed since this was asked, so the changed call is asked about once more."
REASON_LIMIT = 2_000
"""Characters of a reason."""

FindTool = Callable[[str], Tool | None]


@dataclass(frozen=True, slots=True)
class _Edit:
    """Arguments as an approver wants them."""

    arguments: dict[str, Any]
    digest: str | None
    """`None` when the edited call has to be asked anew, so that nothing can run under this approval."""
    anew: str = ""
    """Why it has to be, as a sentence."""


class Voting:
    """Judges clicks and counts votes. What had to be looked up about whoever clicked is given: no transaction waits for
    a platform."""

    def __init__(
        self,
        database: Database,
        posts: Posts,
        facts: Facts,
        grants: GrantBook,
        clock: Clock,
        *,
        find_tool: FindTool,
        audit: AuditLog,
        redactor: Redactor = PLAIN,
    ) -> None:
        self._database = database
        self._posts = posts
        self._facts = facts
        self._grants = grants
        self._clock = clock
        self._find_tool = find_tool
        self._audit = audit
        self._redactor = redactor

    async def decide(self, tx: Transaction, decision: Decision, approval_id: str, known: Known) -> ClickResult:
        """Judge one click on one approval, and record what it changes."""
        row, now, person_id = await approvals.hold(tx, approval_id), self._clock(), decision.person.person_id
        if row is None:
            return NO_SUCH
        outside = stranger(row, person_id, now)
        if outside is not None:
            return Refused(outside.reason)
        if row.status != "pending":
            return await self._too_late(tx, row, decision)
        if has_expired(row, now):
            return EXPIRED
        permission = permission_of(row, person_id, known, now)
        if not isinstance(permission, Permitted):
            return Refused(permission.reason)
        if decision.verb == "reject" and row.asked.ask.reason_required and not decision.reason.strip():
            return Invalid({"reason": "Please say why: a rejection of this needs a reason."})
        if decision.always_for is not None and not _may_be_granted(row, decision):
            return Refused("This cannot be allowed for a while: please decide it for this once.")
        if decision.verb == "approve" and decision.arguments is not None:
            edit = self._edit(row, decision.arguments)
            if isinstance(edit, _Edit):
                return await self._change(tx, row, decision, known, edit)
            if edit is not None:
                return edit
        return await self._vote(tx, row, decision, known)

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        """The form to edit a waiting call with, for somebody who may decide it."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        known = await self._facts.for_judging(person.person_id, [row] if row else [])
        refusal = self._not_decidable(row, person, known)
        if row is None or refusal is not None:
            return refusal or NO_SUCH
        tool = self._tool(row)
        if tool is None:
            return Refused(f"{row.asked.server} is not available at the moment, so this cannot be edited.")
        asked, editable = row.asked.arguments, row.asked.ask.editable
        fields, values = edit_fields(
            tool.input_schema, asked, editable, masked=await masked_aside(asked, self._redactor)
        )
        return Form(f"{row.asked.server}: {row.asked.tool}", fields, values)

    async def look(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        """What is masked on a waiting approval's card, for somebody who may decide it. The audit log says who looked:
        it is written down before anything is shown."""
        async with self._database.reading() as tx:
            found = await approvals.get(tx, approval_id)
            view = await approval_view(tx, approval_id, now=self._clock())
        known = await self._facts.for_judging(person.person_id, [found] if found else [])
        refusal = self._not_decidable(found, person, known)
        if view is None or refusal is not None:
            return refusal or NO_SUCH
        hidden = await hidden_aside(view, self._redactor)
        async with self._database.writing_urgently() as tx:
            row = await approvals.get(tx, approval_id)  # as it is by now
            refusal = self._not_decidable(row, person, known)
            if row is None or refusal is not None:
                return refusal or NO_SUCH
            if not hidden.secrets:
                return Refused("Nothing is hidden in this.")
            authority = authority_of(row, person.person_id, known, self._clock())
            await self._audit.looked(tx, row, person, authority)
        return hidden

    def _not_decidable(self, row: ApprovalRow | None, person: Person, known: Known) -> Refused | Unknown | None:
        """Why this person may not decide it now, judged as a click on it is; `None`: they may."""
        if row is None:
            return NO_SUCH
        if not is_open(row, self._clock()):
            return Refused("This has been settled already.")
        permission = permission_of(row, person.person_id, known, self._clock())
        return None if isinstance(permission, Permitted) else Refused(permission.reason)

    async def _vote(self, tx: Transaction, row: ApprovalRow, decision: Decision, known: Known) -> ClickResult:
        vote = self._ballot(row, decision, known)
        if any(_is_the_same(vote, earlier) for earlier in await approvals.votes_on(tx, row.approval_id)):
            done = "approved" if vote.verb == "approve" else "rejected"
            return AlreadySettled(f"You have {done} this already; it waits for others.")
        await approvals.cast(tx, row.approval_id, vote, decision.key)
        await self._posts.show_again(tx, [row.approval_id])
        cast = await approvals.votes_on(tx, row.approval_id)
        counted = [CountedVote(v.person_id, _identity_of(v), v.verb) for v in cast]
        count = tally(row.asked.ask, counted, requesters_of(row, known))
        how: dict[str, Any] = {}
        match count.settled:
            case None:
                return Settled(_so_far(row, vote, count), final=False)
            case "approved":
                how = {"approved_digest": row.asked.digest}
            case "rejected":
                how = {"reason": _reasons(cast)}
        now = self._clock()
        if not await approvals.settle(tx, row.approval_id, count.settled, key=decision.key, now=now, **how):
            return FASTER
        if count.settled == "rejected":
            return Settled("Rejected.")
        granted = await self._grant(tx, row, decision, row.asked.arguments, row.asked.digest)
        return Settled(f"Approved{granted}.")

    async def _change(
        self, tx: Transaction, row: ApprovalRow, decision: Decision, known: Known, edit: _Edit
    ) -> ClickResult:
        """Whoever edits requests the edited call, and what others said was about another call."""
        settled = await approvals.settle(
            tx,
            row.approval_id,
            "approved",
            key=decision.key,
            now=self._clock(),
            approved_arguments=edit.arguments,
            approved_digest=edit.digest,
            edited_by=decision.person.person_id,
        )
        if not settled:
            return FASTER
        await approvals.void_votes(tx, row.approval_id)
        await approvals.cast(tx, row.approval_id, self._ballot(row, decision, known), decision.key)
        await self._posts.show_again(tx, [row.approval_id])
        if edit.digest is None:
            return Settled(f"Changed. {edit.anew}")
        granted = await self._grant(tx, row, decision, edit.arguments, edit.digest)
        return Settled(f"Approved with changes{granted}.")

    async def _grant(
        self, tx: Transaction, row: ApprovalRow, decision: Decision, arguments: Mapping[str, Any], digest: str
    ) -> str:
        """What was allowed beyond this once, as the end of a sentence."""
        if decision.always_for is None:
            return ""
        await self._grants.give(
            tx, row, decision.person.person_id, decision.always_for, arguments=arguments, digest=digest
        )
        return f", and allowed for {name_of(decision.always_for)} when you ask for the same again"

    def _ballot(self, row: ApprovalRow, decision: Decision, known: Known) -> VoteRow:
        person, now = decision.person, self._clock()
        reason = decision.reason.strip()[:REASON_LIMIT] if decision.verb == "reject" else ""
        authority = authority_of(row, person.person_id, known, now)
        identity = known.identity(person.person_id)
        claimed = tuple(sorted(identity.claimed))
        return VoteRow(person.person_id, person.name, decision.verb, reason, now, identity.human, authority, claimed)

    def _edit(self, row: ApprovalRow, values: Mapping[str, Any]) -> _Edit | Invalid | Refused | None:
        """The edited arguments; `None` when nothing was changed."""
        tool = self._tool(row)
        if tool is None:
            return Refused(f"{row.asked.server} is not available at the moment, so this cannot be edited.")
        asked, editable = row.asked.arguments, row.asked.ask.editable
        arguments = read_form(tool.input_schema, asked, editable, values, masked=self._redactor.for_card(asked))
        if isinstance(arguments, FormErrors):
            # What is wrong with a value may be told by repeating it.
            return Invalid({field: self._redactor.redact(said) for field, said in arguments.errors.items()})
        if canonical_json(arguments) == canonical_json(row.asked.arguments):
            return None
        if not edit_needs_no_new_asking(row.asked.ask, row.asked.ask):
            return _Edit(arguments, None, SOMEBODY_ELSE)
        if digest_of(tool, row.asked.arguments) != row.asked.digest:
            return _Edit(arguments, None, TOOL_CHANGED)
        return _Edit(arguments, digest_of(tool, arguments))

    def _tool(self, row: ApprovalRow) -> Tool | None:
        return self._find_tool(model_name(row.asked.server, row.asked.tool))

    async def _too_late(self, tx: Transaction, row: ApprovalRow, decision: Decision) -> ClickResult:
        if row.settled_key == decision.key:
            return Settled(f"{row.status.capitalize()}.")
        cast = await approvals.votes_on(tx, row.approval_id)
        return AlreadySettled(f"This was {row.status} already{_by(row, cast)}.")


def keepable(decision: Decision) -> Decision:
    """The click without what no database keeps: NUL characters, and halves of surrogate pairs."""
    person = keepable_person(decision.person)
    arguments = storable(dict(decision.arguments)) if decision.arguments is not None else None
    return replace(decision, person=person, reason=storable(decision.reason), arguments=arguments)


def keepable_person(person: Person) -> Person:
    """Somebody, under a name that every database keeps."""
    return replace(person, name=storable(person.name))


def _may_be_granted(row: ApprovalRow, decision: Decision) -> bool:
    return (
        decision.verb == "approve"
        and is_offered(row)
        and decision.always_for is not None
        and name_of(decision.always_for) is not None
    )


def _identity_of(vote: VoteRow) -> Identity:
    """Whose account voted. Where that matters, nobody but a full member could vote without an address (`vote_counts`),
    and platforms vouch for no others' addresses."""
    return Identity(vote.human, frozenset(vote.claimed), is_member=True)


def _is_the_same(vote: VoteRow, earlier: VoteRow) -> bool:
    """Whether this human has said so before. Where it was not known who they are, and now is, it is worth saying
    again."""
    if vote.verb != earlier.verb:
        return False
    if vote.human is not None and earlier.human is not None:
        return vote.human == earlier.human
    return vote.person_id == earlier.person_id and vote.human is None


def _so_far(row: ApprovalRow, vote: VoteRow, count: Tally) -> str:
    if vote.verb == "reject":
        return f"Counted: {count.rejections} of {row.asked.ask.rejections} rejections."
    return f"Counted: {count.approvals} of {row.asked.ask.quorum}."


def _reasons(cast: Sequence[VoteRow]) -> str:
    given = [vote for vote in cast if vote.verb == "reject" and vote.reason]
    return given[0].reason if len(given) == 1 else "; ".join(f"{vote.name}: {vote.reason}" for vote in given)


def _by(row: ApprovalRow, cast: Sequence[VoteRow]) -> str:
    verb = {"approved": "approve", "rejected": "reject"}.get(row.status)
    names = [v.name for v in cast if v.verb == verb]
    return f" by {', '.join(names)}" if names else ""
