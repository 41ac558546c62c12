"""Services in memory: they do what the real ones promise, as simply as possible, and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adapters.teams.ids import TeamsLocation, person_id, place_of, within_tenant
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    AskedToDecide,
    ClarificationView,
    ClickResult,
    CodeEntry,
    ConnectionView,
    Content,
    ConversationReference,
    Decision,
    Dismissal,
    Feedback,
    Form,
    FormAnswer,
    GrantView,
    Handover,
    Hidden,
    Invalid,
    Message,
    OutcomeChoice,
    Overview,
    Person,
    Post,
    Refused,
    Settled,
    Shown,
    SignInReply,
    SignInView,
    ThreadSummary,
    ThreadView,
    Together,
    Unknown,
)
from bot.platform import Reference
from bot.queries import Among
from bot.services import Services
from graph.interrupts import FieldType, FormField
from tests.fakes.teams.server import ANA, TENANT
from tests.support.overviews import visible

NO_APPROVAL = Unknown("There is no such approval.")


@dataclass
class StandInServices:
    """All of `bot.services.Services` without records, a graph or a model. Tests fill in what there is, and read what
    was asked."""

    approvals: dict[str, ApprovalView] = field(default_factory=dict)
    sign_ins: dict[str, tuple[SignInView, str]] = field(default_factory=dict)
    """By id: the sign-in and its link."""
    questions: dict[str, ClarificationView] = field(default_factory=dict)
    edit_fields: tuple[FormField, ...] = ()
    may_decide: dict[str, set[str]] = field(default_factory=dict)
    """Approval id → the person ids who may; missing: anybody."""
    quorum: int = 1
    mistakes: dict[str, str] = field(default_factory=dict)
    """What is wrong with every form that is submitted."""
    references: dict[str, list[tuple[ConversationReference, Reference | None]]] = field(default_factory=dict)
    """By id of what is shown: the places and references of its cards."""
    spoken: dict[str, tuple[ConversationReference, Reference]] = field(default_factory=dict)
    """Post ids of answers, and where they are."""
    broken: Exception | None = None
    """What every writing verb raises."""
    unreadable: Exception | None = None
    """What every reading verb raises."""
    tenant: str = TENANT
    """Of the threads of all approvals."""
    hold: asyncio.Event | None = None
    """What every decision waits for."""

    messages: list[Message] = field(default_factory=list)
    asked_to_keep: int = 0
    amended: list[tuple[str, str]] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    arrivals: list[tuple[str, ConversationReference, str]] = field(default_factory=list)
    departures: list[ConversationReference] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)
    """What the masks of every approval hide."""
    looks: list[tuple[str, str]] = field(default_factory=list)
    """Approval id and person id."""
    given: dict[str, tuple[str, GrantView]] = field(default_factory=dict)
    """By id: the person id of who gave it, and the grant."""
    codes: dict[str, str] = field(default_factory=dict)
    """By id of a sign-in: the one-time code that its owner's browser shows."""
    entered: list[CodeEntry] = field(default_factory=list)
    accounts: dict[str, tuple[str, ConnectionView]] = field(default_factory=dict)
    """By id: the person id of its owner, and the connection."""
    dismissals: list[Dismissal] = field(default_factory=list)
    answers: list[FormAnswer] = field(default_factory=list)
    choices: list[OutcomeChoice] = field(default_factory=list)
    replies: list[SignInReply] = field(default_factory=list)
    opinions: list[Feedback] = field(default_factory=list)

    @property
    def services(self) -> Services:
        """This, in the place of each of them."""
        each: Any = self
        return Services(each, each, each, each, each, each)

    # -------------------------------------------------------------------------------------------- turn lane

    async def accept(self, message: Message) -> bool:
        self.asked_to_keep += 1
        self._must_work()
        if any(known.key == message.key for known in self.messages):
            return False
        self.messages.append(message)
        return True

    async def amend(self, key: str, text: str) -> bool:
        self._must_work()
        self.amended.append((key, text))
        return any(message.key == key for message in self.messages)

    async def withdraw(self, key: str) -> bool:
        self._must_work()
        self.withdrawn.append(key)
        return any(message.key == key for message in self.messages)

    async def arrived(self, key: str, place: ConversationReference, greeting: str) -> bool:
        self._must_work()
        self.arrivals.append((key, place, greeting))
        return True

    async def left(self, place: ConversationReference) -> None:
        self._must_work()
        self.departures.append(place)

    # -------------------------------------------------------------------------------------------- decide lane

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        self._must_work()
        if self.hold is not None:
            await self.hold.wait()
        earlier = any(known.key == decision.key for known in self.decisions)
        self.decisions.append(decision)
        return {each: self._decide(each, decision, earlier=earlier) for each in decision.approval_ids}

    def _decide(self, approval_id: str, decision: Decision, *, earlier: bool) -> ClickResult:
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.status != "pending":
            return Settled("As before.") if earlier else AlreadySettled(f"{', '.join(view.decided_by)} was earlier.")
        if not self._may(approval_id, decision.person):
            return Refused(f"You may not decide this: {view.may_decide} may.")
        if self.mistakes:
            return Invalid(self.mistakes)
        names = (*view.decided_by, decision.person.name)
        if decision.verb == "approve" and len(names) < self.quorum:
            self.approvals[approval_id] = replace(view, decided_by=names)
            return Settled(f"Counted: {len(names)} of {self.quorum}.", final=False)
        status = "approved" if decision.verb == "approve" else "rejected"
        self.approvals[approval_id] = replace(view, status=status, decided_by=names, reason=decision.reason)  # type: ignore[arg-type]  # one of the two words above
        return Settled(f"{status.capitalize()}.")

    async def hand_over(self, handover: Handover) -> ClickResult:
        self._must_work()
        self.handovers.append(handover)
        view = self.approvals.get(handover.approval_id)
        if view is None:
            return NO_APPROVAL
        if handover.to not in self.may_decide.get(handover.approval_id, {handover.to}):
            return Refused("They may not decide this.")
        self.approvals[handover.approval_id] = replace(view, handed_to=(*view.handed_to, handover.to))
        return Settled("They are asked.", final=False)

    async def withdraw_request(self, key: str, approval_id: str, person: Person) -> ClickResult:
        self._must_work()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.requester_ids[:1] != (person.person_id,):
            return Refused("Only who asked for it can withdraw it.")
        self.approvals[approval_id] = replace(view, status="withdrawn")
        return Settled("Withdrawn.")

    async def revoke_standing_approval(self, grant_id: str, person: Person) -> ClickResult:
        self._must_work()
        if self.given.get(grant_id, ("", None))[0] != person.person_id:
            return Unknown("There is no such grant of yours.")
        del self.given[grant_id]
        return Settled("Revoked.")

    async def standing_approvals(self, person: Person) -> tuple[GrantView, ...]:
        return tuple(grant for giver, grant in self.given.values() if giver == person.person_id)

    async def answer(self, answer: FormAnswer) -> ClickResult:
        self._must_work()
        self.answers.append(answer)
        view = self.questions.get(answer.clarification_id)
        if view is None:
            return Unknown("There is no such question.")
        if self.mistakes:
            return Invalid(self.mistakes)
        self.questions[answer.clarification_id] = replace(view, status="answered", answer=str(dict(answer.values)))
        return Settled("Thank you.")

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        self._must_work()
        self.dismissals.append(dismissal)
        view = self.questions.get(dismissal.clarification_id)
        if view is None:
            return Unknown("There is no such question.")
        if view.requester_id != dismissal.person.person_id:
            return Refused("This question is for somebody else.")
        status: Literal["declined", "cancelled"] = "declined" if dismissal.action == "decline" else "cancelled"
        self.questions[dismissal.clarification_id] = replace(view, status=status)
        return Settled("Noted.")

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        self._must_work()
        self.entered.append(entry)
        sign_in_id = entry.sign_in_id or ""
        view, link = self.sign_ins[sign_in_id]
        if view.owner_id != entry.person.person_id:
            return Refused("This sign-in is for somebody else only.")
        if entry.code != self.codes.get(sign_in_id):
            return Invalid({"code": "That is not the code that your browser shows."})
        self.sign_ins[sign_in_id] = (replace(view, status="done", code_wanted=False), link)
        return Settled("Thank you, your account is connected.")

    async def disconnect(self, connection_id: str, person: Person) -> ClickResult:
        self._must_work()
        owner, view = self.accounts.get(connection_id, ("", None))
        if view is None:
            return Unknown("This account is not connected (any more).")
        if owner != person.person_id:
            return Refused("Only the person whose account this is can disconnect it.")
        del self.accounts[connection_id]
        return Settled(f"Your account at {view.service} is disconnected.")

    async def of_person(self, person: Person) -> tuple[ConnectionView, ...]:
        self._must_read()
        return tuple(view for owner, view in self.accounts.values() if owner == person.person_id)

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        self._must_work()
        self.choices.append(choice)
        return Settled("Noted.")

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        self._must_work()
        self.replies.append(reply)
        known = self.sign_ins.get(reply.sign_in_id)
        if known is None:
            return Unknown("There is no such sign-in.")
        if known[0].owner_id != reply.person.person_id:
            return Refused(f"Only {known[0].owner} can do this.")
        self.sign_ins[reply.sign_in_id] = (replace(known[0], status="done" if reply.done else "declined"), "")
        return Settled("Thank you.")

    async def stop(self, key: str, thread_id: str, person: Person) -> ClickResult:
        raise AssertionError("in Teams nothing is stopped but by a message")

    async def feedback(self, feedback: Feedback) -> ClickResult:
        self._must_work()
        self.opinions.append(feedback)
        return Settled("Thank you for telling.")

    # -------------------------------------------------------------------------------------------- ask lane

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        self._must_read()
        return self.approvals.get(approval_id, NO_APPROVAL) if within == within_tenant(self.tenant) else NO_APPROVAL

    async def permitted(self, approval_id: str, person: Person) -> bool:
        self._must_read()
        return self._may(approval_id, person)

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        self._must_read()
        content = self._content(subject)
        if content is None:
            return ()
        places = self.references.get(subject, [(IN_THE_CHANNEL, None)])
        return tuple(
            Shown(Post(f"{subject}/{index}", "thread-1", place, 1, NOW, content), reference)
            for index, (place, reference) in enumerate(places)
        )

    async def answer_at(self, place: ConversationReference, is_it: Callable[[Reference], bool]) -> str | None:
        self._must_read()
        found = (post for post, (where, ref) in self.spoken.items() if where.key == place.key and is_it(ref))
        return next(found, None)

    async def is_ours(self, message: str, within: str) -> bool:
        self._must_read()
        kept = [*(each for places in self.references.values() for each in places), *self.spoken.values()]
        return any(place.key.startswith(within) and f"'{message}'" in str(reference) for place, reference in kept)

    async def together(self, approval_id: str, person: Person) -> Together:
        self._must_read()
        pending = (view for view in self.approvals.values() if view.status == "pending")
        return Together(tuple(view for view in pending if self._may(view.approval_id, person)), 0)

    async def form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        self._must_read()
        view = self.questions.get(clarification_id)
        if view is None:
            return Unknown("There is no such question.")
        if view.requester_id != person.person_id:
            return Refused("This question is for somebody else.")
        return Form(view.question, view.fields, {})

    async def overview(self, person: Person, within: str, among: Among) -> Overview:
        self._must_read()
        to_decide = [shown for each in self.approvals.values() for shown in await self.shown(each.approval_id)]
        return Overview(await visible(to_decide, among), (), ())

    async def asked(self, person: Person) -> tuple[AskedToDecide, ...]:
        return ()

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        return ()

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        self._must_read()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.status != "pending":
            return Refused("This is settled already.")
        return Form("Create event", self.edit_fields or EVENT_FIELDS, view.arguments)

    async def reveal(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        self._must_read()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if person.person_id not in self.may_decide.get(approval_id, {person.person_id}):
            return Refused("You may not look at this.")
        self.looks.append((approval_id, person.person_id))
        return Hidden(approval_id, view.server, view.tool, self.hidden, "#3fa9c2d1e0b4")

    async def link(self, sign_in_id: str, person_id: str) -> str | Refused | Unknown:
        self._must_read()
        if sign_in_id not in self.sign_ins:
            return Unknown("There is no such sign-in.")
        view, link = self.sign_ins[sign_in_id]
        return link if view.owner_id == person_id else Refused(f"This link is for {view.owner} only.")

    async def threads(self, platform: str, limit: int = 100) -> tuple[ThreadSummary, ...]:
        return ()

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        return None

    # -------------------------------------------------------------------------------------------- parts

    def _may(self, approval_id: str, person: Person) -> bool:
        return person.person_id in self.may_decide.get(approval_id, {person.person_id})

    def _content(self, subject: str) -> Content | None:
        if subject in self.sign_ins:
            return self.sign_ins[subject][0]
        return self.approvals.get(subject) or self.questions.get(subject)

    def _must_read(self) -> None:
        if self.unreadable is not None:
            raise self.unreadable

    def _must_work(self) -> None:
        if self.broken is not None:
            raise self.broken


# ------------------------------------------------------------------------------------------------ things to show

NOW = 1_795_255_200.0
"""2026-11-21, 10:00 UTC."""
IN_THE_CHANNEL = place_of(TeamsLocation(TENANT, "19:channel@thread.tacv2;messageid=1", "channel"))
ANA_ID = person_id(TENANT, ANA)

EVENT_FIELDS = (
    FormField(name="name", label="Name"),
    FormField(name="duration", label="Duration", type=FieldType.INTEGER, help="In minutes."),
    FormField(name="calendar", label="Calendar", type=FieldType.CHOICE, options=("primary", "team")),
)


def an_approval(approval_id: str = "call-1.1", **changes: object) -> ApprovalView:
    """An approval that waits."""
    view = ApprovalView(
        approval_id=approval_id,
        status="pending",
        server="calendar",
        tool="create_event",
        title="Create event",
        arguments={"name": "Team Meeting", "duration": 60, "calendar": "primary"},
        asked_arguments=None,
        risk=("writes",),
        requester="Ana Alvarez",
        may_decide="anybody",
        approvers=("any",),
        rule="everything else asks anybody",
        quorum=1,
        votes=(),
        asked_at=NOW,
        expires_at=NOW + 24 * 3600,
        reason_required=False,
        editable=True,
        requester_ids=(ANA_ID,),
    )
    return replace(view, **changes)  # type: ignore[arg-type]  # whatever the test wants to be different


def a_question(clarification_id: str = "q1", **changes: object) -> ClarificationView:
    """A question to Ana that is open."""
    fields = (FormField(name="name", label="Name"),)
    view = ClarificationView(clarification_id, "open", "Which name?", "", fields, "Ana Alvarez", ANA_ID)
    return replace(view, **changes)  # type: ignore[arg-type]  # as above


def a_sign_in(sign_in_id: str = "s1", **changes: object) -> SignInView:
    """A sign-in of Ana's that waits."""
    view = SignInView(sign_in_id, "open", "drive", "sign.in", "Please sign in.", "Ana Alvarez", ANA_ID)
    return replace(view, **changes)  # type: ignore[arg-type]  # as above


def an_account(connection_id: str = "c1", **changes: object) -> ConnectionView:
    """An account at GitHub."""
    view = ConnectionView(connection_id, "GitHub", "ana-alvarez", ("repo",), NOW - 86_400, NOW - 60)
    return replace(view, **changes)  # type: ignore[arg-type]  # as above
