"""Services in memory: they do what the real ones promise, as simply as possible, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adapters.web.sender import WebSender
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
    Form,
    FormAnswer,
    GrantView,
    Handover,
    Hidden,
    Invalid,
    Message,
    MessageView,
    OutcomeChoice,
    OutcomeView,
    Overview,
    Person,
    Post,
    Refused,
    Said,
    Settled,
    Shown,
    SignInReply,
    SignInView,
    ThreadSummary,
    ThreadView,
    Unknown,
)
from bot.queries import Among
from bot.services import Services
from graph.interrupts import FieldType, FormField

NOW = 1_795_255_200.0
"""2026-11-21, 10:00 UTC."""


class StandInServices:
    """All of `bot.services.Services` without records, a graph or a model."""

    def __init__(self, sender: WebSender) -> None:
        self.sender = sender
        self.messages: list[Message] = []
        self.clicks: list[object] = []
        self.stopped: list[tuple[str, str]] = []
        self.refusals: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        """Approval id → the one person who may not decide it."""
        self.form_errors: dict[str, str] = {}
        """What is wrong with every form that is submitted."""
        self.entries: dict[str, list[MessageView | Post]] = {}
        self.links: dict[str, tuple[str, str]] = {}
        """Sign-in id → its owner and its link."""
        self.given: dict[str, tuple[str, GrantView]] = {}
        """Grant id → who gave it, and what it is."""
        self.code = ""
        """The one-time code that it takes, as a message too, out of everybody's sight."""
        self.accounts: dict[str, tuple[str, ConnectionView]] = {}
        """Connection id → whose it is, and what they see of it."""
        self._posts = 0

    @property
    def services(self) -> Services:
        """This, in the place of each of them."""
        each: Any = self
        return Services(each, each, each, each, each, each)

    # -------------------------------------------------------------------------------------------- what tests do

    async def post(self, thread_id: str, content: Content, *, only_for: str | None = None, at: float = NOW) -> Post:
        """Say something in a thread."""
        self._posts += 1
        place = ConversationReference("web", key=thread_id, address={"thread": thread_id}, direct=True)
        post = Post(f"post-{self._posts}", thread_id, place, 1, at, content, only_for)
        self.entries.setdefault(thread_id, []).append(post)
        await self.sender.send(post)
        return post

    async def change(self, post: Post, content: Content) -> Post:
        """Show something else in place of a post."""
        changed = replace(post, revision=post.revision + 1, content=content)
        entries = self.entries[post.thread_id]
        entries[[entry.post_id if isinstance(entry, Post) else "" for entry in entries].index(post.post_id)] = changed
        await self.sender.update(changed, {})
        return changed

    def find(self, kind: type, field: str, wanted: str) -> Post | None:
        """The post whose content has that id."""
        for entries in self.entries.values():
            for entry in entries:
                if (
                    isinstance(entry, Post)
                    and isinstance(entry.content, kind)
                    and getattr(entry.content, field) == wanted
                ):
                    return entry
        return None

    # -------------------------------------------------------------------------------------------- turn lane

    async def accept(self, message: Message) -> bool:
        if self.code and message.text.strip().upper() == self.code:
            return True
        if any(known.key == message.key for known in self.messages):
            return False
        self.messages.append(message)
        view = MessageView(message.key, message.author.name, message.author.person_id, message.text, message.at)
        self.entries.setdefault(message.place.key, []).append(view)
        return True

    # -------------------------------------------------------------------------------------------- decide lane

    async def decide(self, decision: Decision) -> Mapping[str, ClickResult]:
        self.clicks.append(decision)
        return {approval_id: await self._decide(approval_id, decision) for approval_id in decision.approval_ids}

    async def _decide(self, approval_id: str, decision: Decision) -> ClickResult:
        post = self.find(ApprovalView, "approval_id", approval_id)
        if post is None:
            return Unknown("There is no such approval.")
        view = post.content
        assert isinstance(view, ApprovalView)
        if view.status != "pending":
            return AlreadySettled(f"{', '.join(view.decided_by)} was earlier.")
        if self.refusals.get(approval_id) == decision.person.person_id:
            return Refused(f"You may not decide this: {view.may_decide} may.")
        if decision.arguments is not None and self.form_errors:
            return Invalid(self.form_errors)
        decided = replace(
            view,
            status="approved" if decision.verb == "approve" else "rejected",
            decided_by=(decision.person.name,),
            decided_at=NOW + 60,
            reason=decision.reason,
            arguments=dict(decision.arguments) if decision.arguments is not None else view.arguments,
            asked_arguments=view.arguments if decision.arguments is not None else None,
        )
        await self.change(post, decided)
        return Settled("Approved." if decision.verb == "approve" else "Rejected.")

    async def hand_over(self, handover: Handover) -> ClickResult:
        self.clicks.append(handover)
        post = self.find(ApprovalView, "approval_id", handover.approval_id)
        if post is None or not isinstance(post.content, ApprovalView):
            return Unknown("There is no such approval.")
        if self.refusals.get(handover.approval_id) == handover.to:
            return Refused("They may not decide this.")
        await self.change(post, replace(post.content, handed_to=(handover.to,)))
        return Settled("They are asked.", final=False)

    async def withdraw_request(self, key: str, approval_id: str, person: Person) -> ClickResult:
        self.clicks.append((key, approval_id, person.person_id))
        post = self.find(ApprovalView, "approval_id", approval_id)
        if post is None or not isinstance(post.content, ApprovalView):
            return Unknown("There is no such approval.")
        if post.content.requester_ids[:1] != (person.person_id,):
            return Refused("Only who asked for it can withdraw it.")
        await self.change(post, replace(post.content, status="withdrawn", decided_by=(person.name,), decided_at=NOW))
        return Settled("Withdrawn.")

    async def revoke_standing_approval(self, grant_id: str, person: Person) -> ClickResult:
        if self.given.get(grant_id, ("",))[0] != person.person_id:
            return Unknown("There is no such grant of yours.")
        del self.given[grant_id]
        return Settled("Revoked.")

    async def standing_approval(self, grant_id: str, person: Person) -> GrantView | Unknown:
        giver, grant = self.given.get(grant_id, ("", None))
        return grant if grant is not None and giver == person.person_id else Unknown("You allow no such call.")

    async def standing_approvals(self, person: Person) -> tuple[GrantView, ...]:
        return tuple(grant for giver, grant in self.given.values() if giver == person.person_id)

    async def answer(self, answer: FormAnswer) -> ClickResult:
        self.clicks.append(answer)
        post = self.find(ClarificationView, "clarification_id", answer.clarification_id)
        if post is None:
            return Unknown("There is no such question.")
        if self.form_errors:
            return Invalid(self.form_errors)
        view = post.content
        assert isinstance(view, ClarificationView)
        await self.change(post, replace(view, status="answered", answer=", ".join(map(str, answer.values.values()))))
        return Settled("Thank you.")

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        self.clicks.append(dismissal)
        post = self.find(ClarificationView, "clarification_id", dismissal.clarification_id)
        if post is None or not isinstance(post.content, ClarificationView):
            return Unknown("There is no such question.")
        await self.change(
            post, replace(post.content, status="declined" if dismissal.action == "decline" else "cancelled")
        )
        return Settled("All right.")

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        self.clicks.append(entry)
        post = self.find(SignInView, "sign_in_id", entry.sign_in_id or "")
        if post is None or not isinstance(post.content, SignInView):
            return Unknown("There is no such sign-in.")
        if entry.code != self.code:
            return Invalid({"code": "That is not the code that your browser shows. You have 4 more tries."})
        await self.change(post, replace(post.content, status="done", code_wanted=False))
        return Settled("Thank you, it is connected.")

    async def of_person(self, person: Person) -> tuple[ConnectionView, ...]:
        return tuple(view for owner, view in self.accounts.values() if owner == person.person_id)

    async def disconnect(self, connection_id: str, person: Person) -> ClickResult:
        if self.accounts.get(connection_id, ("",))[0] != person.person_id:
            return Unknown("This account is not connected (any more).")
        _, view = self.accounts.pop(connection_id)
        return Settled(f"Your account at {view.service} is disconnected.")

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        self.clicks.append(choice)
        post = self.find(OutcomeView, "outcome_id", choice.outcome_id)
        if post is None:
            return Unknown("There is no such attempt.")
        view = post.content
        assert isinstance(view, OutcomeView)
        await self.change(post, replace(view, status=choice.choice, settled_by=choice.person.name))
        return Settled("Noted.")

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        self.clicks.append(reply)
        post = self.find(SignInView, "sign_in_id", reply.sign_in_id)
        if post is None:
            return Unknown("There is no such sign-in.")
        view = post.content
        assert isinstance(view, SignInView)
        await self.change(post, replace(view, status="done" if reply.done else "declined"))
        return Settled("Thank you.")

    async def stop(self, key: str, thread_id: str, person: Person) -> ClickResult:
        self.stopped.append((thread_id, person.person_id))
        self.sender.live(thread_id, ConversationReference("web", thread_id), "web:ana").end(waiting=False)
        return Settled("Stopped.")

    # -------------------------------------------------------------------------------------------- ask lane

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        post = self.find(ApprovalView, "approval_id", approval_id)
        if post is None or not isinstance(post.content, ApprovalView):
            return Unknown("There is no such approval.")
        if self.refusals.get(approval_id) == person.person_id:
            return Refused("You may not edit this.")
        return Form("Create event", EVENT_FIELDS, post.content.arguments)

    async def reveal(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        post = self.find(ApprovalView, "approval_id", approval_id)
        if post is None or not isinstance(post.content, ApprovalView):
            return Unknown("There is no such approval.")
        if self.refusals.get(approval_id) == person.person_id:
            return Refused("You may not look at this.")
        view = post.content
        return Hidden(approval_id, view.server, view.tool, self.hidden, view.fingerprint)

    async def link(self, sign_in_id: str, person_id: str) -> str | Refused | Unknown:
        if sign_in_id not in self.links:
            return Unknown("There is no such sign-in.")
        owner, link = self.links[sign_in_id]
        return link if owner == person_id else Refused("This link is for somebody else.")

    async def approval(self, approval_id: str, within: str) -> ApprovalView | Unknown:
        post = self.find(ApprovalView, "approval_id", approval_id)
        return (
            post.content if post and isinstance(post.content, ApprovalView) else Unknown("There is no such approval.")
        )

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        post = self.find(OutcomeView, "outcome_id", subject) or self.find(SignInView, "sign_in_id", subject)
        return (Shown(post, None),) if post else ()

    async def decidable_with(self, approval_id: str, person: Person) -> tuple[str, ...]:
        asked = self.find(ApprovalView, "approval_id", approval_id)
        return tuple(
            entry.content.approval_id
            for entries in self.entries.values()
            for entry in entries
            if asked is not None and isinstance(entry, Post) and entry.thread_id == asked.thread_id
            if isinstance(entry.content, ApprovalView) and entry.content.status == "pending"
            if self.refusals.get(entry.content.approval_id) != person.person_id
        )

    async def overview(self, person: Person, within: str, among: Among) -> Overview:
        return Overview((), (), ())

    async def asked(self, person: Person) -> tuple[AskedToDecide, ...]:
        posts = [entry for entries in self.entries.values() for entry in entries if isinstance(entry, Post)]
        return tuple(
            AskedToDecide(view.approval_id, post.thread_id, view.requester, view.server, view.tool, view.title)
            for post in posts
            if isinstance(view := post.content, ApprovalView)
            if view.status == "pending" and person.person_id in view.handed_to
        )

    async def threads(self, platform: str, limit: int = 100) -> tuple[ThreadSummary, ...]:
        return tuple(
            ThreadSummary(thread_id, self._title(entries), max(entry.at for entry in entries), self._waiting(entries))
            for thread_id, entries in sorted(self.entries.items(), key=lambda item: -item[1][-1].at)
        )[:limit]

    async def thread(self, thread_id: str, person: Person) -> ThreadView | None:
        if thread_id not in self.entries:
            return None
        entries = self.entries[thread_id]
        seen = [e for e in entries if isinstance(e, MessageView) or e.only_for in (None, person.person_id)]
        return ThreadView(thread_id, self._title(entries), tuple(seen))

    def _title(self, entries: list[MessageView | Post]) -> str:
        return next((entry.text for entry in entries if isinstance(entry, MessageView)), "A conversation")

    def _waiting(self, entries: list[MessageView | Post]) -> int:
        open_words = ("pending", "open")
        return sum(1 for e in entries if isinstance(e, Post) and getattr(e.content, "status", "") in open_words)


# ------------------------------------------------------------------------------------------------ things to show

EVENT_FIELDS = (
    FormField(name="name", label="Name"),
    FormField(name="start", label="Start", type=FieldType.DATE_TIME),
    FormField(name="duration", label="Duration", type=FieldType.INTEGER, help="In minutes."),
    FormField(name="calendar", label="Calendar", type=FieldType.CHOICE, options=("primary", "team")),
    FormField(name="description", label="Description", required=False, multiline=True),
    FormField(name="all_day", label="All day", type=FieldType.YES_NO, required=False),
    FormField(name="attendees", label="Attendees", type=FieldType.JSON, required=False),
)


def an_approval(approval_id: str = "call-1.1", **changes: Any) -> ApprovalView:
    """An approval that waits."""
    view = ApprovalView(
        approval_id=approval_id,
        status="pending",
        server="calendar",
        tool="create_event",
        title="Create event",
        arguments={
            "name": "Team Meeting",
            "start": "2026-11-21T10:00:00+01:00",
            "duration": 60,
            "calendar": "primary",
        },
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
    return replace(view, **changes)


def said(text: str) -> Said:
    """Something the model says."""
    return Said(text)
