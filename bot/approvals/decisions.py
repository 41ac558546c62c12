"""What people do with waiting approvals: decide, edit, reveal, hand over, withdraw.

Each is judged from the records and the policy as they are now; a decision is counted, and settles an approval once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Literal

from bot.all_or_nothing import NothingDoneError, all_or_nothing
from bot.approvals import retries
from bot.approvals.directory import PeopleDirectory
from bot.approvals.edits import is_asked_anew, permits_nothing, suffices_for_edits, why_asked_again
from bot.approvals.permissions import Known, authority_of, outsider_refusal, permission_of, requesters_of
from bot.approvals.requests import ApprovalRequests, has_expired, is_gone, is_open
from bot.approvals.retries import CLICK, retry_key
from bot.approvals.standing_approvals import StandingApprovals, duration_in_words, is_offered, name_of
from bot.audit.log import AuditLog
from bot.card_masks import PLAIN, hidden_by_masks, masked_arguments
from bot.domain import (
    AlreadySettled,
    Choice,
    ClickResult,
    Clock,
    Decision,
    Form,
    Handover,
    Hidden,
    Invalid,
    OutcomeChoice,
    Person,
    Refused,
    RetryRequest,
    Settled,
    Unknown,
)
from bot.forms.editing import edit_fields, read_form
from bot.forms.values import FormErrors
from bot.gateway.people_only import refused_to_programs
from bot.outbox import Outbox
from bot.readings import labels_of
from bot.records import approvals, attempts, deliveries, thread_owners, threads, waiting
from bot.records.approvals import ApprovalRow, VoteRow
from bot.records.database import Database, Transaction, locking_as_found
from bot.records.locks import person_lock
from bot.task_threads import conversation_of
from bot.turns.engine import Engine, resume_thread
from bot.views import approval_view
from graph.json_values import storable
from policies.approvers import (
    CouldNotFindOut,
    CountedVote,
    Identity,
    NotPermitted,
    Permitted,
    Tally,
    as_of,
    digest_of,
    several_may_decide,
    tally,
)
from policies.masking import Masker
from policies.model import Tool, canonical_json, home_of, is_group, tool_name_for_model
from translations import gettext as _
from translations import in_shared_language

LONGEST_REASON = 2_000
"""Characters of a reason, or of a note, that are kept."""
HANDOVER_SECONDS = 2.5
"""Seconds that whoever hands over waits for all look-ups together: Slack waits 3 for the answer to a form."""
MOST_CANDIDATES = 40
"""People of whom it is found out whether they may decide; a menu has no place for more."""

NotOpenToThem = AlreadySettled | Refused | Unknown
"""Why somebody is not shown what only those are who may decide it now."""
FindTool = Callable[[str], Awaitable[Tool | None]]
"""Returns the tool that models know by this name; `None` while its server is not available."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """Arguments as an approver wants them."""

    arguments: dict[str, Any]
    digest: str | None
    """`None` when the edited call has to be asked anew, so that nothing can run under this approval."""


@dataclass(frozen=True, slots=True)
class _Click:
    """What somebody decides about one approval."""

    key: str
    """Of the whole decision."""
    person: Person
    known: Known
    choice: Choice
    tool: Tool | None
    """Of an edited call."""
    via: Literal["", "api"]
    """As `Decision.via`."""


class Approvals:
    """Records what people decide about calls: waiting approvals, standing approvals, attempts whose outcome is unknown.

    What has to be looked up about a person or a tool is looked up first: no transaction waits for a platform, or for
    another transaction.
    """

    def __init__(
        self,
        database: Database,
        engine: Engine,
        outbox: Outbox,
        clock: Clock,
        *,
        requests: ApprovalRequests,
        directory: PeopleDirectory,
        standing_approvals: StandingApprovals,
        find_tool: FindTool,
        audit: AuditLog,
        masker: Masker = PLAIN,
    ) -> None:
        self._database = database
        self._engine = engine
        self._outbox = outbox
        self._requests = requests
        self._directory = directory
        self._standing_approvals = standing_approvals
        self._clock = clock
        self._find_tool = find_tool
        self._audit = audit
        self._masker = masker

    # ------------------------------------------------------------------------------------------- deciding

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        """Judges and records what somebody decides about one or several approvals, in one transaction. The same click
        again gets the same answer.

        Returns:
            By approval id: `Settled` (not `final` while it waits for others), `AlreadySettled`, `Refused`, `Unknown`,
            or `Invalid` with what is wrong, by field.
        """
        decision = _keepable(decision)
        person, choices = decision.person, decision.choices
        self._directory.remember_person(person)
        async with self._database.reading() as tx:
            rows = await approvals.without_arguments(tx, dict.fromkeys(decision.approval_ids))
        known = await self._directory.for_judging(person.person_id, rows)
        edited = {choice.approval_id for choice in choices if choice.arguments is not None}
        tools = {row.approval_id: await self._tool(row) for row in rows if row.approval_id in edited}
        decide = partial(self._decide, decision=decision, known=known, tools=tools)
        concerned = {row.thread_id for row in rows}
        if any(choice.always_for is not None for choice in choices):
            concerned.add(person_lock(person.person_id))
        try:
            return await locking_as_found(self._database.writing_urgently, decide, *concerned)
        except NothingDoneError as error:
            return error.results

    async def _decide(
        self, tx: Transaction, decision: Decision, known: Known, tools: Mapping[str, Tool | None]
    ) -> Mapping[str, ClickResult]:
        results: dict[str, ClickResult] = {}
        settled: dict[str, list[str]] = {}
        await threads.remember(tx, known.described(decision.person), self._clock())
        for choice in sorted(decision.choices, key=lambda choice: choice.approval_id):
            approval_id = choice.approval_id
            if approval_id in results:
                continue  # as it was named first
            row = await approvals.hold(tx, approval_id)
            click = _Click(decision.key, decision.person, known, choice, tools.get(approval_id), decision.via)
            results[approval_id] = result = await self._judge(tx, row, click) if row else no_such()
            if row is not None and isinstance(result, Settled) and result.final:
                settled.setdefault(row.thread_id, []).append(approval_id)
            # Statements do not yield, and a hundred approvals may be decided at once.
            await asyncio.sleep(0)
        if decision.whole:
            all_or_nothing(results)
        for thread_id, approval_ids in settled.items():
            await resume_thread(tx, self._engine, thread_id, *approval_ids, now=self._clock())
        return {approval_id: results[approval_id] for approval_id in decision.approval_ids}

    async def _judge(self, tx: Transaction, row: ApprovalRow, click: _Click) -> ClickResult:
        """Judges a click on one approval, and records what it changes."""
        now, person_id, choice = self._clock(), click.person.person_id, click.choice
        outside = outsider_refusal(row, person_id, click.known, now)
        if outside is not None:
            return Refused(outside.reason)
        if refused := refused_to_programs(row.thread_id, click.via):
            return refused
        if row.status != "pending":
            return await self._too_late(tx, row, click)
        if has_expired(row, now):
            return _expired()
        permission = permission_of(row, person_id, click.known, now)
        if not isinstance(permission, Permitted):
            return Refused(permission.reason)
        if choice.verb == "reject" and row.asked.ask.reason_required and not choice.reason.strip():
            return Invalid({"reason": _("Reason required.")})
        if choice.always_for is not None and not _may_be_granted(row, choice):
            return Refused(_("This request can only be approved once."))
        if choice.verb == "approve" and choice.arguments is not None:
            edit = await self._edit(row, click.tool, choice.arguments)
            if isinstance(edit, _Edit):
                if await attempts.has_begun(tx, row.asked.call_id):
                    return _begun()
                return await self._change(tx, row, click, edit)
            if edit is not None:
                return edit
        return await self._vote(tx, row, click)

    async def _vote(self, tx: Transaction, row: ApprovalRow, click: _Click) -> ClickResult:
        vote, known = self._ballot(row, click), click.known
        earlier = await approvals.votes_on(tx, row.approval_id)
        same = [each for each in earlier if _is_the_same(vote, each)]
        if any(each.key == click.key for each in same):
            return Settled(_so_far(row, vote, _count(row, known, earlier)), final=False)
        if same:
            if vote.verb == "approve":
                return AlreadySettled(_("You already approved this. Waiting for others."))
            return AlreadySettled(_("You already rejected this. Waiting for others."))
        await approvals.cast(tx, row.approval_id, vote)
        await self._outbox.show_decided(tx, row.approval_id)
        cast = [each for each in earlier if not approvals.is_replaced(each, vote)] + [vote]
        count = _count(row, known, cast)
        how: dict[str, Any] = {}
        match count.settled:
            case None:
                return Settled(_so_far(row, vote, count), final=False)
            case "approved":
                how = {"approved_digest": row.asked.digest}
            case "rejected":
                how = {"reason": _reasons(cast)}
        now = self._clock()
        if not await approvals.settle(tx, row.approval_id, count.settled, key=click.key, now=now, **how):
            return _faster()
        if count.settled == "rejected":
            return Settled(_("Rejected."))
        granted = await self._grant(tx, row, click, row.asked.arguments, row.asked.digest)
        return Settled(granted or _("Approved."))

    async def _change(self, tx: Transaction, row: ApprovalRow, click: _Click, edit: _Edit) -> ClickResult:
        """Records an edited call: whoever edits requests it, and votes cast before were about another call."""
        vote = self._ballot(row, click)
        settled = await approvals.settle(
            tx,
            row.approval_id,
            "approved",
            key=click.key,
            now=vote.at,
            approved_arguments=edit.arguments,
            approved_digest=edit.digest,
            edited_by=click.person.person_id,
        )
        if not settled:
            return _faster()
        await approvals.void_votes(tx, row.approval_id)
        await approvals.cast(tx, row.approval_id, vote)
        await self._outbox.show_decided(tx, row.approval_id)
        if edit.digest is None:
            return _changed(row)
        granted = await self._grant(tx, row, click, edit.arguments, edit.digest)
        return Settled(granted or _("Approved with edits."))

    async def _grant(
        self, tx: Transaction, row: ApprovalRow, click: _Click, arguments: Mapping[str, Any], digest: str
    ) -> str:
        """What is said where something was allowed beyond this once; empty: nothing was."""
        always_for = click.choice.always_for
        if always_for is None:
            return ""
        await self._standing_approvals.give(
            tx, row, click.person.person_id, always_for, arguments=arguments, digest=digest
        )
        length = duration_in_words(always_for)
        return _("Approved. Identical requests from you run without asking for {length}.").format(length=length)

    async def _edit(
        self, row: ApprovalRow, tool: Tool | None, values: Mapping[str, Any]
    ) -> _Edit | Invalid | Refused | None:
        """The edited arguments; `None` when nothing was changed."""
        if tool is None:
            return Refused(_("{server} is unavailable. You can’t edit this now.").format(server=row.asked.server))
        # In a thread: masking a megabyte of arguments, and checking and comparing them, takes half a second.
        return await asyncio.to_thread(self._edited, row, tool, values)

    def _edited(self, row: ApprovalRow, tool: Tool, values: Mapping[str, Any]) -> _Edit | Invalid | None:
        asked, editable = row.asked.arguments, row.asked.ask.editable
        arguments = read_form(tool.input_schema, asked, editable, values, masked=self._masker.for_card(asked))
        if isinstance(arguments, FormErrors):
            # What is wrong with a value may be told by repeating it.
            return Invalid({field: self._masker.mask(said) for field, said in arguments.errors.items()})
        if canonical_json(arguments) == canonical_json(row.asked.arguments):
            return None
        if not suffices_for_edits(row) or digest_of(tool, row.asked.arguments) != row.asked.digest:
            return _Edit(arguments, None)
        return _Edit(arguments, digest_of(tool, arguments))

    def _ballot(self, row: ApprovalRow, click: _Click) -> VoteRow:
        person, choice, now = click.person, click.choice, self._clock()
        words = (choice.reason if choice.verb == "reject" else choice.note).strip()[:LONGEST_REASON]
        authority = authority_of(row, person.person_id, click.known, now)
        identity = click.known.identity(person.person_id)
        claimed = tuple(sorted(identity.claimed))
        return VoteRow(
            person.person_id, person.name, choice.verb, words, now, click.key, identity.human, authority, claimed
        )

    async def _too_late(self, tx: Transaction, row: ApprovalRow, click: _Click) -> ClickResult:
        if row.settled_key == click.key:
            return _changed(row) if permits_nothing(row) else Settled(_outcome(row.status))
        return await _settled_before(tx, row, [click.person.person_id], self._clock())

    # ------------------------------------------------------------------------------------------- before deciding

    async def edit_form(self, approval_id: str, person: Person) -> Form | NotOpenToThem:
        """Returns the form to edit a waiting call with, for somebody who may decide it."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
            has_begun = row is not None and await attempts.has_begun(tx, row.asked.call_id)
        known = await self._directory.for_judging(person.person_id, [row] if row else [])
        refusal = self._not_decidable(row, person, known)
        if row is None or refusal is not None:
            return refusal or no_such()
        if has_begun:
            return _begun()
        tool = await self._tool(row)
        if tool is None:
            return Refused(_("{server} is unavailable. You can’t edit this now.").format(server=row.asked.server))
        asked, editable = row.asked.arguments, row.asked.ask.editable
        masked = await masked_arguments(asked, self._masker)
        # In a thread: a hundred long values, or defaults of the schema, take a tenth of a second.
        fields, values = await asyncio.to_thread(edit_fields, tool.input_schema, asked, editable, masked=masked)
        label = labels_of((each.name for each in fields), row.asked.presentation)
        fields = tuple(each.model_copy(update={"label": label[each.name]}) for each in fields)
        return Form(f"{row.asked.server}: {row.asked.tool}", fields, values)

    async def reveal(self, approval_id: str, person: Person) -> Hidden | NotOpenToThem:
        """Returns what the masks of a waiting approval's card hide, for somebody who may decide it, and for them alone.
        The audit log says who asked: that is written before anything is shown."""
        person = _keepable_person(person)
        async with self._database.reading() as tx:
            found = await approvals.get(tx, approval_id)
            view = await approval_view(tx, approval_id, now=self._clock())
        known = await self._directory.for_judging(person.person_id, [found] if found else [])
        refusal = self._not_decidable(found, person, known)
        if view is None or refusal is not None:
            return refusal or no_such()
        hidden = await hidden_by_masks(view, self._masker)
        if found is None:
            return no_such()
        async with self._database.writing_urgently(found.thread_id) as tx:
            row = await approvals.get(tx, approval_id)  # as it is by now
            refusal = self._not_decidable(row, person, known)
            if row is None or refusal is not None:
                return refusal or no_such()
            if not hidden.secrets:
                return Refused(_("Nothing is hidden."))
            authority = authority_of(row, person.person_id, known, self._clock())
            await self._audit.looked(tx, row, person, authority)
        return hidden

    def _not_decidable(self, row: ApprovalRow | None, person: Person, known: Known) -> NotOpenToThem | None:
        """Why this person may not decide it now, judged as a click on it is; `None`: they may."""
        if row is None:
            return no_such()
        now = self._clock()
        outside = outsider_refusal(row, person.person_id, known, now)
        if outside is not None:
            return Refused(outside.reason)
        if not is_open(row, now):
            return _not_open(row, now)
        permission = permission_of(row, person.person_id, known, now)
        return None if isinstance(permission, Permitted) else Refused(permission.reason)

    async def _tool(self, row: ApprovalRow) -> Tool | None:
        return await self._find_tool(tool_name_for_model(row.asked.server, row.asked.tool))

    # ------------------------------------------------------------------------------------------- delegation

    async def hand_over(self, handover: Handover) -> ClickResult:
        """Lets somebody who may decide, or who requested the call, ask another who may: that person gets the card, and
        every card says so."""
        handover = replace(handover, to=storable(handover.to), name=storable(handover.name))
        person_id, approval_id = handover.person.person_id, handover.approval_id
        try:
            async with asyncio.timeout(HANDOVER_SECONDS):  # whose address it is and whether they may are asked in turn
                of_them, others = await asyncio.gather(
                    self._directory.for_voting(person_id, [approval_id]), self._meant(handover)
                )
        except TimeoutError:
            return Refused(_("Couldn’t check whether they can approve this. Try again in a moment."))
        hand = partial(self._hand_over, handover=handover, of_them=of_them, others=others)
        return await locking_as_found(self._database.writing_urgently, hand)

    async def _hand_over(
        self, tx: Transaction, handover: Handover, of_them: Known, others: Mapping[str, Known]
    ) -> ClickResult:
        person_id = handover.person.person_id
        row, now = await approvals.hold(tx, handover.approval_id), self._clock()
        if row is None:
            return no_such()
        outside = outsider_refusal(row, person_id, of_them, now)
        if outside is not None:
            return Refused(outside.reason)
        if not is_open(row, now):
            return _not_open(row, now)
        permission = permission_of(row, person_id, of_them, now)
        asks_as_approver = isinstance(permission, Permitted)
        if not isinstance(permission, Permitted) and not _is_requester(row, person_id, of_them):
            return Refused(permission.reason)
        if not several_may_decide(as_of(row.asked.ask, row.asked_at, now), row.asked.requesters):
            return Refused(_("No one else can approve this."))
        if person_id in others:
            return Refused(_("Choose someone else."))
        if not others:
            return Refused(_("No Countersign user has that email."))
        permissions = {to: permission_of(row, to, of_other, now) for to, of_other in others.items()}
        to = next((to for to, found in permissions.items() if isinstance(found, Permitted)), next(iter(others)))
        name = handover.name or (await threads.names(tx, [to]))[to]
        match permissions[to]:
            case Permitted():
                handed = await self._handed(tx, row, to, name, asks_as_approver=asks_as_approver)
                if handover.name:
                    await threads.introduce(tx, Person(to, name), now)
                return handed
            case CouldNotFindOut():
                return Refused(
                    _("Couldn’t check whether {name} can approve this. Try again in a moment.").format(name=name)
                )
            case NotPermitted():
                return Refused(_("{name} can’t approve this.").format(name=name))

    async def _meant(self, handover: Handover) -> Mapping[str, Known]:
        """Each account of whoever is asked, with what is to be known of it; those of the same workspace first, and then
        those that are told of it wherever they are, which on the page only those are who have it open."""
        accounts = [handover.to]
        if "@" in handover.to:
            here = home_of(handover.person.person_id)
            found = await self._directory.accounts_with(handover.to)
            accounts = sorted(found, key=lambda each: (home_of(each) != here, home_of(each) == "web"))
        known = await asyncio.gather(*(self._directory.for_voting(each, [handover.approval_id]) for each in accounts))
        return dict(zip(accounts, known, strict=True))

    async def _handed(
        self, tx: Transaction, row: ApprovalRow, to: str, name: str, *, asks_as_approver: bool
    ) -> ClickResult:
        people = tuple(dict.fromkeys((*row.handed_to, to)))
        if people != row.handed_to:
            if not await approvals.hand_to(tx, row.approval_id, people):
                return _faster()
            await self._requests.show_to(tx, row, [to])
            await self._outbox.show_again(tx, [row.approval_id])
        told = _("Asked {name}. You can still approve.") if asks_as_approver else _("Asked {name}.")
        return Settled(told.format(name=name.rstrip(".")), final=False)

    async def colleagues(self, approval_id: str, person: Person, also: Sequence[str] = ()) -> tuple[Person, ...]:
        """Returns those whom this person can ask to decide a waiting approval: who may, can be shown its card, and was
        not asked yet. Nobody, where this person may not ask: they neither may decide it nor requested it.

        Args:
            also: person ids of further people there are, beside those we know where it was asked.
        """
        async with self._database.reading() as tx:
            row = next(iter(await approvals.without_arguments(tx, [approval_id])), None)
            if row is None:
                return ()
            homes = {home_of(person.person_id), home_of(row.asked.requesters[0])}
            known_here = [await threads.known_within(tx, f"{home}:", MOST_CANDIDATES) for home in sorted(homes)]
        now = self._clock()
        known = await self._directory.for_judging(person.person_id, [row])
        may = self._not_decidable(row, person, known) is None or _is_requester(row, person.person_id, known)
        if not may or not is_open(row, now):
            return ()
        themselves = {person.person_id, *known.other_accounts, *row.handed_to}
        named = [
            each for each in as_of(row.asked.ask, row.asked_at, now).approvers if ":" in each and not is_group(each)
        ]
        asked = [each for each in dict.fromkeys([*named, *also, *chain(*known_here)]) if each not in themselves]
        candidates = [each for each in asked if self._requests.reaches(each)][:MOST_CANDIDATES]
        found = await asyncio.gather(*(self._directory.for_judging(each, [row]) for each in candidates))
        eligible = [
            each
            for each, of_them in zip(candidates, found, strict=True)
            if isinstance(permission_of(row, each, of_them, now), Permitted)
        ]
        await self._directory.learn_names(eligible)
        async with self._database.reading() as tx:
            names = await threads.names(tx, eligible)
        return tuple(sorted((Person(each, names[each]) for each in eligible), key=lambda each: each.name.casefold()))

    # ------------------------------------------------------------------------------------------- afterwards

    async def withdraw_request(self, key: str, approval_id: str, person: Person) -> ClickResult:
        """Withdraws a call that its requester, under whichever of their accounts, does not want any more.

        Args:
            key: of the click; the same click again gets the same answer.
        """
        accounts = await self._requester_accounts(approval_id, person)
        withdraw = partial(self._withdraw, key=key, approval_id=approval_id, accounts=accounts)
        return await locking_as_found(self._database.writing_urgently, withdraw)

    async def _withdraw(self, tx: Transaction, key: str, approval_id: str, accounts: frozenset[str]) -> ClickResult:
        row, now = await approvals.hold(tx, approval_id), self._clock()
        if row is None:
            return no_such()
        if row.asked.requesters[0] not in accounts:
            return Refused(_("Only the person who requested this can withdraw it."))
        if row.status == "pending" and has_expired(row, now):
            return _expired()
        if not await approvals.settle(tx, approval_id, "withdrawn", key=key, now=now):
            twice = row.settled_key == key
            return Settled(_("Withdrawn.")) if twice else await _settled_before(tx, row, accounts, now)
        await self._outbox.show_again(tx, [approval_id])
        await resume_thread(tx, self._engine, row.thread_id, approval_id, now=now)
        return Settled(_("Withdrawn."))

    async def retry(self, request: RetryRequest) -> ClickResult:
        """Has a call that was approved and failed proposed once more, exactly as it was made, by a new turn of its
        requester: the policy judges it as any call. Once for each approval."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, request.approval_id)
            known = await retries.known_to_model(tx, row) if row is not None else {}
        accounts = await self._requester_accounts(request.approval_id, request.person)
        if row is None:
            return no_such()
        with in_shared_language():  # it stands in the conversation
            text = await asyncio.to_thread(retries.retry_text, row, self._masker)
        told = await asyncio.to_thread(retries.told_of, row, known, self._masker)  # half a second, of a megabyte
        retry = partial(self._retry, request=request, accounts=accounts, text=text, told=told)
        return await locking_as_found(self._database.writing_urgently, retry)

    async def _retry(
        self,
        tx: Transaction,
        request: RetryRequest,
        accounts: frozenset[str],
        text: str,
        told: Mapping[str, Any],
    ) -> ClickResult:
        row, now = await approvals.hold(tx, request.approval_id), self._clock()
        if row is None:
            return no_such()
        requester = row.asked.requesters[0]
        if requester not in accounts:
            return Refused(_("Only the person who requested this can retry it."))
        if refused := refused_to_programs(row.thread_id, request.via):
            return refused
        if (asked := await deliveries.body_of(tx, retry_key(row.approval_id))) is not None:
            if asked.get(CLICK) == request.key:
                return Settled(_("Requested again."))
            return AlreadySettled(_("Already requested again."))
        if not await retries.is_offered(tx, row, await attempts.latest(tx, row.asked.call_id)):
            return Refused(_("This can’t be retried."))
        conversation = conversation_of(row.thread_id)
        thread = await threads.get(tx, conversation)
        if thread is None or await thread_owners.owner_of(tx, conversation) == thread_owners.DELETED:
            return no_such()
        if await waiting.in_thread(tx, conversation):
            return Refused(_("Something in this conversation is still waiting. Retry when that’s settled."))
        known = await threads.person(tx, requester)
        person = known or replace(request.person, person_id=requester)
        message = await retries.retry_of(tx, row, person, click=request.key, text=text, told=told, now=now)
        await deliveries.add(tx, message)
        await self._engine.kept(tx, thread.thread_id)
        await threads.ensure(tx, thread.thread_id, thread.place, "", now, requester=requester)
        await self._outbox.show_again(tx, [row.approval_id])
        tx.afterwards(lambda: self._engine.wake(thread.thread_id))
        return Settled(_("Requested again."))

    async def _requester_accounts(self, approval_id: str, person: Person) -> frozenset[str]:
        """Person ids under which this person may have asked for it; looked up before a transaction, where it must."""
        async with self._database.reading() as tx:
            row = await approvals.get(tx, approval_id)
        if row is None or row.asked.requesters[0] == person.person_id:
            return frozenset([person.person_id])
        return await self._directory.accounts_of(person.person_id)

    async def revoke_standing_approval(self, grant_id: str, person: Person) -> ClickResult:
        """Ends a standing approval of this person's. Somebody else's is `Unknown`."""
        grant_id = storable(grant_id)
        async with self._database.writing_urgently(person_lock(person.person_id)) as tx:
            if await approvals.revoke_grant(tx, grant_id, person.person_id, self._clock()):
                await self._outbox.show_revoked(tx, grant_id)
                return Settled(_("Revoked. You’ll be asked next time."))
            row = await approvals.grant(tx, grant_id)
        if row is None or row.person_id != person.person_id:
            return _no_standing_approval()
        return AlreadySettled(_("Already ended."))

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        """Records what came of an attempt whose outcome is unknown, as its requester says, and nobody else."""
        return await locking_as_found(self._database.writing_urgently, partial(self._settle_outcome, choice=choice))

    async def _settle_outcome(self, tx: Transaction, choice: OutcomeChoice) -> ClickResult:
        row = await attempts.get(tx, choice.outcome_id)
        if row is None:
            return _no_outcome()
        if row.requester != choice.person.person_id:
            return Refused(_("Only the person who requested this can answer."))
        if refused := refused_to_programs(row.thread_id, choice.via):
            return refused
        tx.needs(row.thread_id)
        if not await attempts.choose(tx, row.attempt_id, choice.choice, choice.person.name, key=choice.key):
            twice = row.settled_key == choice.key
            too_late = AlreadySettled(_("Already answered."), gone=row.choice == "superseded")
            return Settled(_("Noted.")) if twice else too_late
        await self._outbox.show_again(tx, [row.attempt_id, *await approvals.ids_of_call(tx, row.call_id)])
        await resume_thread(tx, self._engine, row.thread_id, row.attempt_id, now=self._clock())
        return Settled(_("Noted."))


def _keepable(decision: Decision) -> Decision:
    """The click without what no database keeps: NUL characters, and halves of surrogate pairs."""
    choices = tuple(map(_keepable_choice, decision.choices))
    return replace(decision, person=_keepable_person(decision.person), choices=choices)


def _keepable_choice(choice: Choice) -> Choice:
    arguments = storable(dict(choice.arguments)) if choice.arguments is not None else None
    return replace(choice, reason=storable(choice.reason), note=storable(choice.note), arguments=arguments)


def _keepable_person(person: Person) -> Person:
    """The person, under a name that every database keeps."""
    return replace(person, name=storable(person.name))


def _may_be_granted(row: ApprovalRow, choice: Choice) -> bool:
    return (
        choice.verb == "approve"
        and is_offered(row)
        and choice.always_for is not None
        and name_of(choice.always_for) is not None
    )


def _is_requester(row: ApprovalRow, person_id: str, known: Known) -> bool:
    """Whether the call was asked for under one of this human's accounts, as far as they are known."""
    return row.asked.requesters[0] in {person_id, *known.other_accounts}


def _identity_of(vote: VoteRow) -> Identity:
    """Returns whose account has voted. Where that matters, only a full member could vote without an address
    (`vote_counts`), and platforms vouch for no others' addresses."""
    return Identity(vote.human, frozenset(vote.claimed), is_member=True)


def _is_the_same(vote: VoteRow, earlier: VoteRow) -> bool:
    """Whether this human has said so before. Where it was not known who they are, and now is, it is worth saying
    again."""
    if vote.verb != earlier.verb:
        return False
    if vote.human is not None and earlier.human is not None:
        return vote.human == earlier.human
    return vote.person_id == earlier.person_id and vote.human is None


def _count(row: ApprovalRow, known: Known, cast: Sequence[VoteRow]) -> Tally:
    """What the votes on an approval come to."""
    counted = [CountedVote(vote.person_id, _identity_of(vote), vote.verb) for vote in cast]
    return tally(row.asked.ask, counted, requesters_of(row, known))


def _so_far(row: ApprovalRow, vote: VoteRow, count: Tally) -> str:
    if vote.verb == "reject":
        text, done, most = _("Recorded: {done} of {most} rejections"), count.rejections, row.asked.ask.rejections
    else:
        text, done, most = _("Recorded: {done} of {most} approvals"), count.approvals, row.asked.ask.quorum
    return text.format(done=done, most=most)


def _reasons(cast: Sequence[VoteRow]) -> str:
    given = [vote for vote in cast if vote.verb == "reject" and vote.reason]
    return given[0].reason if len(given) == 1 else "; ".join(f"{vote.name}: {vote.reason}" for vote in given)


def _changed(row: ApprovalRow) -> Settled:
    """What an editor is told whose edit is asked again."""
    return Settled(_("Edited. {why}").format(why=why_asked_again(row)))


def _not_open(row: ApprovalRow, now: float) -> AlreadySettled:
    return AlreadySettled(_("Already decided."), gone=is_gone(row, now))


async def _settled_before(tx: Transaction, row: ApprovalRow, accounts: Collection[str], now: float) -> AlreadySettled:
    """What somebody who has these accounts is told when they are too late."""
    if row.edited_by is not None and await is_asked_anew(tx, row):
        if row.edited_by in accounts:
            return AlreadySettled(_("You already edited this. {why}").format(why=why_asked_again(row)))
        editor = (await threads.names(tx, [row.edited_by]))[row.edited_by]
        why = why_asked_again(row, editor)
        told = _("{name} already edited this. {why}").format(name=editor, why=why) if suffices_for_edits(row) else why
        return AlreadySettled(told)
    cast = await approvals.votes_on(tx, row.approval_id)
    verb = {"approved": "approve", "rejected": "reject"}.get(row.status)
    names = ", ".join(vote.name for vote in cast if vote.verb == verb)
    return AlreadySettled(_settled_in_words(row.status, names), gone=is_gone(row, now))


def _settled_in_words(status: str, names: str) -> str:
    """`names`: of those whose votes have settled it; empty: nobody's have."""
    match status:
        case "approved" if names:
            return _("Already approved by {names}.").format(names=names)
        case "rejected" if names:
            return _("Already rejected by {names}.").format(names=names)
        case "approved":
            return _("Already approved.")
        case "rejected":
            return _("Already rejected.")
        case "expired":
            return _("This request has expired.")
        case "withdrawn":
            return _("This request was withdrawn.")
        case "superseded":
            return _("This request was replaced.")
        case _:
            return _("This request is no longer valid.")


def _outcome(status: str) -> str:
    """What somebody is told again whose click has settled it."""
    return _("Rejected.") if status == "rejected" else _("Approved.")


def no_such() -> Unknown:
    """Returns what is said of an approval that is not there."""
    return Unknown(_("Request no longer available."))


def _expired() -> AlreadySettled:
    return AlreadySettled(_("This request has expired."), gone=True)


def _faster() -> AlreadySettled:
    return AlreadySettled(_("Already decided."))


def _begun() -> Refused:
    return Refused(_("This has already started, so you can’t edit it. Approve it as it is, or reject it."))


def _no_standing_approval() -> Unknown:
    return Unknown(_("Standing approval no longer available."))


def _no_outcome() -> Unknown:
    return Unknown(_("Request no longer available."))
