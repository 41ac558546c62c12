"""Services in memory: they do what the real ones promise, as simply as possible, and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.domain import (
    AlreadySettled,
    ApprovalView,
    AskedToDecide,
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
from bot.queries import Among
from bot.services import Services
from graph.interrupts import FieldType, FormField
from tests.support.overviews import visible

NO_APPROVAL = Unknown("There is no such approval.")


@dataclass
class StandInServices:
    """All of `bot.services.Services` without records, a graph or a model. Tests fill in what there is, and read what
    was asked."""

    approvals: dict[str, ApprovalView] = field(default_factory=dict)
    sign_ins: dict[str, tuple[SignInView, str]] = field(default_factory=dict)
    """By id: the sign-in and its link."""
    questions: dict[str, tuple[str, Form]] = field(default_factory=dict)
    """By id: the person id it was put to, and its form."""
    edit_fields: tuple[FormField, ...] = ()
    may_decide: dict[str, set[str]] = field(default_factory=dict)
    """Approval id → the person ids who may; missing: anybody."""
    quorum: int = 1
    mistakes: dict[str, str] = field(default_factory=dict)
    """What is wrong with every form that is submitted."""
    turns: dict[str, str] = field(default_factory=dict)
    """Thread id → the person id whose turn runs in it."""
    accounts: dict[str, tuple[str, ConnectionView]] = field(default_factory=dict)
    """By id: the person id of its owner, and the connection."""
    code: str = "K7QM-3DZP"
    """The code that every browser shows."""
    cards: dict[str, Content] = field(default_factory=dict)
    """By subject: what a card shows, where nothing else here says it."""
    broken: Exception | None = None
    """What every writing verb raises."""
    unreadable: Exception | None = None
    """What every reading verb raises."""
    team: str = "slack:T1:"
    """What the ids of the threads of all approvals begin with."""
    slow: float = 0.0
    """Seconds that keeping a message takes."""

    messages: list[Message] = field(default_factory=list)
    asked_to_keep: int = 0
    amended: list[tuple[str, str]] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    answers: list[FormAnswer] = field(default_factory=list)
    choices: list[OutcomeChoice] = field(default_factory=list)
    replies: list[SignInReply] = field(default_factory=list)
    opinions: list[Feedback] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)
    """What the masks of every approval hide."""
    looks: list[tuple[str, str]] = field(default_factory=list)
    """Approval id and person id."""
    dismissals: list[Dismissal] = field(default_factory=list)
    codes: list[CodeEntry] = field(default_factory=list)
    given: dict[str, tuple[str, GrantView]] = field(default_factory=dict)
    """By id: the person id of who gave it, and the grant."""
    stopped: list[tuple[str, str]] = field(default_factory=list)
    """Thread id and person id."""

    @property
    def services(self) -> Services:
        """This, in the place of each of them."""
        each: Any = self
        return Services(each, each, each, each, each, each)

    # -------------------------------------------------------------------------------------------- turn lane

    async def accept(self, message: Message) -> bool:
        self.asked_to_keep += 1
        self._must_work()
        await asyncio.sleep(self.slow)
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

    # -------------------------------------------------------------------------------------------- decide lane

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        self._must_work()
        self.decisions.append(decision)
        return {approval_id: self._decide(approval_id, decision) for approval_id in decision.approval_ids}

    def _decide(self, approval_id: str, decision: Decision) -> ClickResult:
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.status != "pending":
            return AlreadySettled(f"{', '.join(view.decided_by)} was earlier.")
        if decision.person.person_id not in self.may_decide.get(approval_id, {decision.person.person_id}):
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
        if view.requester != person.name:
            return Refused("Only who asked for it can withdraw it.")
        self.approvals[approval_id] = replace(view, status="withdrawn")
        return Settled("Withdrawn.")

    async def revoke_standing_approval(self, grant_id: str, person: Person) -> ClickResult:
        self._must_work()
        if self.given.get(grant_id, ("", None))[0] != person.person_id:
            return Unknown("There is no such grant of yours.")
        del self.given[grant_id]
        return Settled("Revoked.")

    async def of_person(self, person: Person) -> tuple[ConnectionView, ...]:
        return tuple(view for owner, view in self.accounts.values() if owner == person.person_id)

    async def disconnect(self, connection_id: str, person: Person) -> ClickResult:
        self._must_work()
        if self.accounts.get(connection_id, ("", None))[0] != person.person_id:
            return Refused("Only the person whose account this is can disconnect it.")
        _, view = self.accounts.pop(connection_id)
        return Settled(f"Your account at {view.service} is disconnected.")

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        self._must_work()
        self.codes.append(entry)
        if entry.code != self.code:
            sentence = "That is not the code that your browser shows."
            return Invalid({"code": sentence}) if entry.sign_in_id else Refused(sentence)
        return Settled("Thank you, your account is connected.")

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        self._must_work()
        self.dismissals.append(dismissal)
        asked, _ = self.questions[dismissal.clarification_id]
        if asked != dismissal.person.person_id:
            return Refused("This question is for somebody else.")
        return Settled("All right, no answer.")

    async def standing_approvals(self, person: Person) -> tuple[GrantView, ...]:
        return tuple(grant for giver, grant in self.given.values() if giver == person.person_id)

    async def answer(self, answer: FormAnswer) -> ClickResult:
        self._must_work()
        self.answers.append(answer)
        if self.mistakes:
            return Invalid(self.mistakes)
        return Settled("Thank you.") if self.questions.pop(answer.clarification_id, None) else Unknown("No question.")

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
        return Settled("Thank you.")

    async def stop(self, key: str, thread_id: str, person: Person) -> ClickResult:
        self._must_work()
        if self.turns.get(thread_id) != person.person_id:
            return Refused("Only the person whose request this is can stop it.")
        self.stopped.append((thread_id, person.person_id))
        del self.turns[thread_id]
        return Settled("Stopped.")

    async def feedback(self, feedback: Feedback) -> ClickResult:
        self._must_work()
        self.opinions.append(feedback)
        return Settled("Thank you for telling.")

    # -------------------------------------------------------------------------------------------- ask lane

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        self._must_read()
        return self.approvals.get(approval_id, NO_APPROVAL) if self.team.startswith(within) else NO_APPROVAL

    async def together(self, approval_id: str, person: Person) -> Together:
        self._must_read()
        listed = tuple(
            view
            for view in self.approvals.values()
            if view.status == "pending"
            and person.person_id in self.may_decide.get(view.approval_id, {person.person_id})
        )
        return Together(listed, 0)

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        self._must_read()
        content = self.cards.get(subject)
        if content is None and subject in self.sign_ins:
            content = self.sign_ins[subject][0]
        return (shown_in_c1(subject, content),) if content else ()

    async def form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        self._must_read()
        if clarification_id not in self.questions:
            return Unknown("There is no such question.")
        asked, form = self.questions[clarification_id]
        return form if asked == person.person_id else Refused("This question is for somebody else.")

    async def overview(self, person: Person, within: str, among: Among) -> Overview:
        waiting = [
            shown_in_c1(view.sign_in_id, view)
            for view, _ in self.sign_ins.values()
            if view.owner_id == person.person_id
        ]
        pending = [view for view in self.approvals.values() if view.status == "pending"]
        to_decide = [shown_in_c1(v.approval_id, v) for v in pending]
        return Overview(await visible(to_decide, among), tuple(waiting), ())

    async def asked(self, person: Person) -> tuple[AskedToDecide, ...]:
        return ()

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        return tuple(t for t, owner in self.turns.items() if owner == person.person_id and t.startswith(within))

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

    def _must_read(self) -> None:
        if self.unreadable is not None:
            raise self.unreadable

    def _must_work(self) -> None:
        if self.broken is not None:
            raise self.broken


# ------------------------------------------------------------------------------------------------ things to show

NOW = 1_795_255_200.0
"""2026-11-21, 10:00 UTC."""

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
        requester="Ana",
        may_decide="Ana",
        approvers=("requester",),
        rule="everything else asks the requester",
        quorum=1,
        votes=(),
        asked_at=NOW,
        expires_at=NOW + 24 * 3600,
        reason_required=False,
        editable=True,
    )
    return replace(view, **changes)  # type: ignore[arg-type]  # whatever the test wants to be different


def a_sign_in(sign_in_id: str = "s1") -> SignInView:
    """A sign-in of Ana's that waits."""
    return SignInView(sign_in_id, "open", "drive", "sign.in", "Please sign in.", "Ana", "slack:T1:U1")


def shown_in_c1(post_id: str, content: Content, ts: str = "1700000000.000200") -> Shown:
    """A card in a thread of C1."""
    address = {"team": "T1", "channel": "C1", "thread_ts": "1700000000.000100"}
    place = ConversationReference("slack", "slack:T1:C1:1700000000.000100", address, channel="slack:T1:C1")
    reference = {"team": "T1", "channel": "C1", "parts": [ts]}
    return Shown(Post(post_id, place.key, place, 1, NOW, content), reference)
