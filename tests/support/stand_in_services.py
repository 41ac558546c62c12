"""Services in memory: they do what the real ones promise, as simply as possible, and remember what they were asked.

One for every platform. What only one platform needs is in its tests' `serving.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Literal

from bot.agent_choices import AgentChoice
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    Choice,
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
    OutcomeView,
    Overview,
    Person,
    PlanView,
    Post,
    Refused,
    RetryRequest,
    ServiceView,
    Settled,
    Shown,
    SignInReply,
    SignInView,
    Together,
    Unknown,
)
from bot.memory import PersonMemories
from bot.platform import Reference
from bot.queries import Among
from bot.services import Services
from bot.usage import AnswerUsage, OwnUsage, UsageTotal
from graph.agents import DEFAULT, ONLY_DEFAULT, AgentConfig, Agents
from graph.interrupts import FormField
from graph.memory import MemoryItem
from graph.usage import ModelUse
from tests.support.overviews import visible
from tests.support.views import EVENT_FIELDS, NOW

NO_APPROVAL = Unknown("There is no such approval.")


@dataclass
class StandInMemories:
    """What is remembered, by person id."""

    remembered: dict[str, PersonMemories] = field(default_factory=dict)
    is_on: bool = True

    async def of_person(self, person_id: str) -> PersonMemories:
        return self.remembered.get(person_id, PersonMemories((), is_remembered=True))

    async def of_channel(self, channel: str) -> tuple[MemoryItem, ...]:
        return ()

    async def forget(self, person_id: str, memory_id: str) -> ClickResult:
        left = [item for item in (await self.of_person(person_id)).items if item.memory_id != memory_id]
        self.remembered[person_id] = PersonMemories(tuple(left), is_remembered=True)
        return Settled("Forgotten.")

    async def stop_remembering(self, person_id: str) -> ClickResult:
        self.remembered[person_id] = PersonMemories((), is_remembered=False)
        return Settled("Nothing is remembered any more.")

    async def start_remembering(self, person_id: str) -> ClickResult:
        del self.remembered[person_id]
        return Settled("You are remembered again.")


USED = UsageTotal(
    "",
    ModelUse(calls=2, input_tokens=1_234, cached_tokens=1_000, output_tokens=56, seconds=3.2),
    ("large",),
    Decimal("0.25"),
)


@dataclass
class StandInUsage:
    """What requests used of the language model: everybody's the same."""

    total: UsageTotal = USED
    answers: set[str] = field(default_factory=set)
    """Post ids of those of which something is known."""

    async def own(self, person: Person) -> OwnUsage:
        return OwnUsage(self.total, self.total, (replace(self.total, key="2026-11-21"),), "EUR")

    async def of_answer(self, post_id: str, person: Person) -> AnswerUsage | None:
        return AnswerUsage(self.total, "EUR") if post_id in self.answers else None


@dataclass
class StandInServices:
    """All of `bot.services.Services` without records, a graph or a model. Tests fill in what there is, and read what
    was asked."""

    within: str
    """What the ids of the threads of all approvals begin with."""
    place: ConversationReference
    """Where every card is that has none among `references`."""
    reference: Reference | None = None
    """What such a card is called there."""
    approvals: dict[str, ApprovalView] = field(default_factory=dict)
    questions: dict[str, ClarificationView] = field(default_factory=dict)
    sign_ins: dict[str, SignInView] = field(default_factory=dict)
    outcomes: dict[str, OutcomeView] = field(default_factory=dict)
    references: dict[str, list[tuple[ConversationReference, Reference | None]]] = field(default_factory=dict)
    """By id of what is shown: the places and references of its cards."""
    spoken: dict[str, tuple[ConversationReference, Reference]] = field(default_factory=dict)
    """Post ids of answers, and where they are."""
    links: dict[str, str] = field(default_factory=dict)
    """By id of a sign-in."""
    accounts: dict[str, tuple[str, ConnectionView]] = field(default_factory=dict)
    """By id: the person id of its owner, and the connection."""
    offered: dict[str, ServiceView] = field(default_factory=dict)
    """Services at which people can connect an account, by name of the connection."""
    address: str = "https://bot.example.com"
    """Where the links of these lead."""
    too_many_links: Refused | None = None
    """What everybody who asks for one is told."""
    operator: str = ""
    """Person id of the one operator."""
    links_asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Id of who asked for one, connection and name."""
    shown_codes: set[str] = field(default_factory=set)
    """Ids of the people whose browser shows a code."""
    given: dict[str, tuple[str, GrantView]] = field(default_factory=dict)
    """By id: the person id of who gave it, and the standing approval."""
    turns: dict[str, str] = field(default_factory=dict)
    """Thread id → the person id whose turn runs in it."""
    may_decide: dict[str, set[str]] = field(default_factory=dict)
    """Approval id → the person ids who may; missing: anybody."""
    quorum: int = 1
    code: str = "K7QM-3DZP"
    """What every browser shows."""
    hidden: dict[str, str] = field(default_factory=dict)
    """What the masks of every approval hide."""
    edit_fields: tuple[FormField, ...] = EVENT_FIELDS
    filled_in: dict[str, Any] = field(default_factory=dict)
    """What the form of every question holds when it is opened."""
    mistakes: dict[str, str] = field(default_factory=dict)
    """What is wrong with every form that is submitted."""
    broken: Exception | None = None
    """What every writing verb raises."""
    unreadable: Exception | None = None
    """What every reading verb raises."""
    retries: list[RetryRequest] = field(default_factory=list)
    hold: asyncio.Event | None = None
    """What every decision waits for."""
    slow: float = 0.0
    """Seconds that keeping a message takes."""

    messages: list[Message] = field(default_factory=list)
    asked_to_keep: int = 0
    amended: list[tuple[str, str]] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    arrivals: list[tuple[str, ConversationReference, str]] = field(default_factory=list)
    departures: list[ConversationReference] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)
    answers: list[FormAnswer] = field(default_factory=list)
    dismissals: list[Dismissal] = field(default_factory=list)
    codes: list[CodeEntry] = field(default_factory=list)
    replies: list[SignInReply] = field(default_factory=list)
    choices: list[OutcomeChoice] = field(default_factory=list)
    opinions: list[Feedback] = field(default_factory=list)
    looks: list[tuple[str, str]] = field(default_factory=list)
    """Approval id and person id."""
    stopped: list[tuple[str, str]] = field(default_factory=list)
    """Thread id and person id."""

    memories: StandInMemories = field(default_factory=StandInMemories)
    usage: StandInUsage = field(default_factory=StandInUsage)
    agents: Agents = ONLY_DEFAULT
    picked: list[tuple[str, str, str]] = field(default_factory=list)
    """Person id, channel and agent."""

    async def listed(self, person_id: str, channel: str) -> tuple[AgentChoice, ...]:
        current = next((agent for who, _, agent in reversed(self.picked) if who == person_id), DEFAULT)
        return tuple(AgentChoice(each.name, each.description, each.name == current) for each in self.agents.all)

    async def pick(self, person_id: str, channel: str, name: str) -> AgentConfig | None:
        self.picked.append((person_id, channel, name))
        return self.agents.named(name)

    async def turn_link(self, approval_id: str, person: Person) -> str:
        return f"https://bot.example.com/#console/turns?card={approval_id}" if person.person_id == self.operator else ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.agents.names

    async def command(self, person_id: str, channel: str, name: str) -> str:
        self.picked.append((person_id, channel, name))
        return f"agent {name or 'list'}"

    @property
    def services(self) -> Services:
        """This, in the place of each of them."""
        each: Any = self
        memories: Any = self.memories
        usage: Any = self.usage
        return replace(Services(*(each for _ in fields(Services))), memories=memories, usage=usage)

    def keep(self, content: Content) -> None:
        """From now on this is what there is under its id."""
        match content:
            case ApprovalView():
                self.approvals[content.approval_id] = content
            case ClarificationView():
                self.questions[content.clarification_id] = content
            case SignInView():
                self.sign_ins[content.sign_in_id] = content
            case OutcomeView():
                self.outcomes[content.outcome_id] = content

    async def change(self, content: Content) -> None:
        """The same, as something that a person has done changes it."""
        self.keep(content)

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
        return {
            each.approval_id: await self._decide(each, decision.person, earlier=earlier) for each in decision.choices
        }

    async def _decide(self, choice: Choice, person: Person, *, earlier: bool) -> ClickResult:
        view = self.approvals.get(choice.approval_id)
        if view is None:
            return NO_APPROVAL
        if view.status != "pending":
            return Settled("As before.") if earlier else AlreadySettled(f"{', '.join(view.decided_by)} was earlier.")
        if not self._may(choice.approval_id, person):
            return Refused(f"You may not decide this: {view.may_decide} may.")
        if self.mistakes:
            return Invalid(self.mistakes)
        names = (*view.decided_by, person.name)
        if choice.verb == "approve" and len(names) < self.quorum:
            await self.change(replace(view, decided_by=names))
            return Settled(f"Recorded: {len(names)} of {self.quorum} approvals", final=False)
        if choice.arguments is not None:
            view = replace(view, arguments=dict(choice.arguments), asked_arguments=view.arguments)
        status: Literal["approved", "rejected"] = "approved" if choice.verb == "approve" else "rejected"
        decided = replace(view, status=status, decided_by=names, decided_at=NOW + 60, reason=choice.reason)
        await self.change(decided)
        return Settled(f"{status.capitalize()}.")

    async def colleagues(self, approval_id: str, person: Person, also: Sequence[str] = ()) -> tuple[Person, ...]:
        self._must_work()
        may = self.may_decide.get(approval_id, set(also)) - {person.person_id}
        return tuple(Person(each, each.partition(":")[2].capitalize()) for each in sorted(may))

    async def retry(self, request: RetryRequest) -> ClickResult:
        self._must_work()
        self.retries.append(request)
        return Settled("Asked again.")

    async def hand_over(self, handover: Handover) -> ClickResult:
        self._must_work()
        self.handovers.append(handover)
        view = self.approvals.get(handover.approval_id)
        if view is None:
            return NO_APPROVAL
        if handover.to not in self.may_decide.get(handover.approval_id, {handover.to}):
            return Refused("They may not decide this.")
        await self.change(replace(view, handed_to=(*view.handed_to, handover.to)))
        return Settled("They are asked.", final=False)

    async def withdraw_request(self, key: str, approval_id: str, person: Person) -> ClickResult:
        self._must_work()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.requester_ids[:1] != (person.person_id,):
            return Refused("Only who asked for it can withdraw it.")
        await self.change(replace(view, status="withdrawn", decided_by=(person.name,), decided_at=NOW))
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
        said = ", ".join(map(str, answer.values.values()))
        await self.change(replace(view, status="answered", answer=said))
        return Settled("Thanks.")

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        self._must_work()
        self.dismissals.append(dismissal)
        view = self.questions.get(dismissal.clarification_id)
        if view is None:
            return Unknown("There is no such question.")
        if view.requester_id != dismissal.person.person_id:
            return Refused("This question is for somebody else.")
        status: Literal["declined", "cancelled"] = "declined" if dismissal.action == "decline" else "cancelled"
        await self.change(replace(view, status=status))
        return Settled("Noted.")

    async def enter_code(self, entry: CodeEntry) -> ClickResult:
        self._must_work()
        self.codes.append(entry)
        view = self.sign_ins.get(entry.sign_in_id or "")
        if view is not None and view.owner_id != entry.person.person_id:
            return Refused("This sign-in is for somebody else only.")
        if entry.code != self.code:
            sentence = "That is not the code that your browser shows."
            return Invalid({"code": sentence}) if entry.sign_in_id else Refused(sentence)
        if view is not None:
            await self.change(replace(view, status="done", code_wanted=False))
        return Settled("Thank you, your account is connected.")

    async def disconnect(self, connection_id: str, person: Person) -> ClickResult:
        self._must_work()
        owner, view = self.accounts.get(connection_id, ("", None))
        if view is None:
            return Unknown("This account isn’t connected.")
        if owner != person.person_id:
            return Refused("Only the person whose account this is can disconnect it.")
        del self.accounts[connection_id]
        return Settled(f"Your account at {view.service} is disconnected.")

    async def of_person(self, person: Person) -> tuple[ConnectionView, ...]:
        self._must_read()
        return tuple(view for owner, view in self.accounts.values() if owner == person.person_id)

    def connectable(self) -> tuple[ServiceView, ...]:
        return tuple(self.offered.values())

    def to_connect(self, connected: Iterable[ConnectionView]) -> tuple[ServiceView, ...]:
        working = {view.provider for view in connected if view.working}
        return tuple(each for name, each in self.offered.items() if name not in working)

    async def waits_for_code(self, person: Person) -> bool:
        self._must_read()
        return person.person_id in self.shown_codes

    async def connect_link(self, person_id: str, connection: str, name: str = "") -> str | Refused | Unknown:
        self._must_work()
        self.links_asked.append((person_id, connection, name))
        if connection not in self.offered:
            return Unknown("Accounts cannot be connected there (any more).")
        return self.too_many_links or f"{self.address}/oauth/start?s={connection}-of-{person_id}"

    async def sign_in_reply(self, reply: SignInReply) -> ClickResult:
        self._must_work()
        self.replies.append(reply)
        view = self.sign_ins.get(reply.sign_in_id)
        if view is None:
            return Unknown("There is no such sign-in.")
        if view.owner_id != reply.person.person_id:
            return Refused(f"Only {view.owner} can do this.")
        await self.change(replace(view, status="done" if reply.done else "declined"))
        return Settled("Thanks.")

    async def settle_outcome(self, choice: OutcomeChoice) -> ClickResult:
        self._must_work()
        self.choices.append(choice)
        view = self.outcomes.get(choice.outcome_id)
        if view is None:
            return Unknown("There is no such attempt.")
        await self.change(replace(view, status=choice.choice, settled_by=choice.person.name))
        return Settled("Noted.")

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
        return self.approvals.get(approval_id, NO_APPROVAL) if within == self.within else NO_APPROVAL

    async def permitted(self, approval_id: str, person: Person) -> bool:
        self._must_read()
        return self._may(approval_id, person)

    async def shown(self, subject: str) -> tuple[Shown, ...]:
        self._must_read()
        content = self._content(subject)
        if content is None:
            return ()
        places = self.references.get(subject, [(self.place, self.reference)])
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

    async def decidable_with(self, approval_id: str, person: Person) -> tuple[str, ...]:
        return tuple(view.approval_id for view in (await self.together(approval_id, person)).listed)

    async def form(self, clarification_id: str, person: Person) -> Form | Refused | Unknown:
        self._must_read()
        view = self.questions.get(clarification_id)
        if view is None:
            return Unknown("There is no such question.")
        if view.requester_id != person.person_id:
            return Refused("This question is for somebody else.")
        return Form(view.question, view.fields, self.filled_in)

    async def overview(self, person: Person, within: str, among: Among) -> Overview:
        self._must_read()
        pending = [each for each in self.approvals.values() if each.status == "pending"]
        to_decide = [shown for each in pending for shown in await self.shown(each.approval_id)]
        own = [each for each in self.sign_ins.values() if each.owner_id == person.person_id]
        waiting = [shown for each in own for shown in await self.shown(each.sign_in_id)]
        return Overview(await visible(to_decide, among), tuple(waiting), ())

    async def turns_of(self, person: Person, within: str) -> tuple[str, ...]:
        return tuple(t for t, owner in self.turns.items() if owner == person.person_id and t.startswith(within))

    async def edit_form(self, approval_id: str, person: Person) -> Form | Refused | Unknown:
        self._must_read()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if view.status != "pending":
            return Refused("This is settled already.")
        if not self._may(approval_id, person):
            return Refused("You may not edit this.")
        return Form("Create event", self.edit_fields, view.arguments)

    async def reveal(self, approval_id: str, person: Person) -> Hidden | Refused | Unknown:
        self._must_read()
        view = self.approvals.get(approval_id)
        if view is None:
            return NO_APPROVAL
        if not self._may(approval_id, person):
            return Refused("You may not look at this.")
        self.looks.append((approval_id, person.person_id))
        return Hidden(approval_id, view.server, view.tool, self.hidden, "#3fa9c2d1e0b4")

    async def link(self, sign_in_id: str, person_id: str) -> str | Refused | Unknown:
        self._must_read()
        view = self.sign_ins.get(sign_in_id)
        if view is None or sign_in_id not in self.links:
            return Unknown("There is no such sign-in.")
        return self.links[sign_in_id] if view.owner_id == person_id else Refused(f"This link is for {view.owner} only.")

    # -------------------------------------------------------------------------------------------- parts

    def _may(self, approval_id: str, person: Person) -> bool:
        return person.person_id in self.may_decide.get(approval_id, {person.person_id})

    def _content(self, subject: str) -> Content | None:
        kept = (self.approvals, self.questions, self.sign_ins, self.outcomes)
        return next((known[subject] for known in kept if subject in known), None)

    def _must_read(self) -> None:
        if self.unreadable is not None:
            raise self.unreadable

    def _must_work(self) -> None:
        if self.broken is not None:
            raise self.broken


def subject_of(content: Content) -> str:
    """The id of what is shown, by which clicks name it; empty: it has none, and never changes."""
    match content:
        case ApprovalView():
            return content.approval_id
        case ClarificationView():
            return content.clarification_id
        case SignInView():
            return content.sign_in_id
        case OutcomeView():
            return content.outcome_id
        case PlanView():
            return content.plan_id
        case _:
            return ""
