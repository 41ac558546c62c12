"""What the agent needs from outside: tools to call, a ledger to write in, people to ask, a live view to show."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from graph.agents import ONLY_DEFAULT, Agents, name_in
from graph.citations import Source
from graph.files import NO_FILES, ThreadFiles
from graph.interrupts import ApprovalAsked, FormField
from graph.memory import Recalled
from graph.observing import NOBODY, Observer, TurnHandling
from graph.presentation import NOTHING_KNOWN, CallPresentation
from policies.approvers import StandingApproval
from policies.judging import Policy
from policies.masking import Masker
from policies.model import Ask, Call, Facts, Mode, Tool, Verdict, canonical_json
from policies.reasons import Reasons

if TYPE_CHECKING:  # what takes messages in starts before the libraries of models are imported
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AnyMessage

    from graph.models.streaming import Retry
    from graph.state import Turn
    from graph.usage import ModelUse

# --------------------------------------------------------------------------------- all ports together


@dataclass(frozen=True, slots=True)
class Picked:
    """What the router chose."""

    categories: Sequence[str]
    model: str = ""
    """The one that was asked."""
    use: ModelUse | None = None
    """What asking it came to; `None`: none was asked."""


Router = Callable[[Sequence["AnyMessage"], Sequence[str], TurnHandling], Awaitable[Picked]]
"""Picks the tool types (categories) that a request may use; gets the conversation, the categories there are, and
what is handled."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the workflow is given."""

    model: BaseChatModel
    """The one of `LLM_MODEL`."""
    router: Router
    tools: Tools
    ledger: Ledger
    approvals: ApprovalPort
    sign_ins: SignInPort
    policy: Callable[[], Policy]
    """The policy in force; another one after a reload."""
    directory: Directory
    grants: Grants
    budget: Budget
    audit: Audit
    mode: Mode
    """The configured one: that of a turn is `graph.options.mode_of`."""
    masker: Masker
    """Takes secrets out of what people give and a model is told."""
    retry: Retry
    calls_a_turn: int
    """Tool calls that the model may make in one turn; those of the tasks of a plan share a multiple of it."""
    is_outage: Callable[[Exception], bool]
    """Whether an error says that the records, or the disk below them, cannot be used now: no fault of a call."""
    agents: Agents = ONLY_DEFAULT
    models: Mapping[str, BaseChatModel] = field(default_factory=dict)
    """Name of an agent → its model, where that is another one than `model`."""
    files: ThreadFiles = NO_FILES
    """What people hand over."""
    memory: Memory | None = None
    """`None`: nothing is remembered from one conversation to the next."""
    source_tools: frozenset[str] = frozenset()
    """Names, as the model calls them, of the tools whose results hold passages that answers cite."""
    observer: Observer = NOBODY
    """Who is told what happens, to measure and trace it."""

    def model_of(self, turn: Turn) -> BaseChatModel:
        """The model that works on a turn."""
        return self.models.get(name_in(turn), self.model)


# -------------------------------------------------------------------------------- questions to people


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something the model said."""

    message_id: str
    text: str
    final: bool = True
    """Whether the turn ends with it; false: a word on the way to its tool calls."""
    agent: str = ""
    """Name of the agent that said it; empty: the default one."""
    gave_up: bool = False
    """Whether it says why the turn ends before its end: a limit is reached, or its agent is no more."""
    sources: tuple[Source, ...] = ()
    """What it cites, where the turn ends with it."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An answer that was broken off while it was written."""

    said: Spoken
    note: Literal["stopped here", "broken off here"]
    """What stands below it: whether somebody stopped it, or the model's service ended it."""


InTurn = Callable[[], Awaitable[None]]
"""Waits until it is a call's turn among those that the model makes at once. The next one's is as soon as this one has
waited for something again."""


class ApprovalPort(Protocol):
    """Where approvals are recorded and shown at once, before the graph stops for them."""

    async def ask(
        self, thread_id: str, asked: ApprovalAsked, spoken: Sequence[Spoken], in_turn: InTurn
    ) -> ApprovalAsked:
        """Says what the model said before it, records the approval and posts its card.

        Args:
            in_turn: called right before that, so that people see the cards in the order of the calls.

        Returns:
            What people are asked: `asked`, or what was recorded for the same round by a run that ended right after
            that. It may have been asked under another policy, and decided since.
        """
        ...

    async def not_asked(self, call_id: str, round_: int) -> None:
        """Nobody is asked about this round of a call: what a run that broke off has asked is superseded."""
        ...


class SignInPort(Protocol):
    """Where links that one person must open are kept; the graph sees only their id."""

    async def ask(
        self, thread_id: str, call_id: str, person: str, server: str, needed: SignInNeeded | AccountNeeded
    ) -> str:
        """Keeps what is needed, shows its owner where the link is, and returns its id."""
        ...


# --------------------------------------------------------------------------- calls that were not made


@dataclass(frozen=True, slots=True)
class Judged:
    """A call, what the policy says of it, and on what grounds."""

    call: Call
    facts: Facts
    verdict: Verdict
    quote: str = ""
    """The requester's words, with the rest of their sentence, where the model quotes what they wrote; else empty.

    People see it on the card: whether a few words of a sentence ask for the call, only its whole says.
    """
    unless_standing: Ask | None = None
    """What it would need without the standing approval of the requester's by which it is allowed, and which may be
    revoked any time; `None`: it is not allowed by one."""
    reasons: Reasons | None = None
    """Why the policy says so; `None`: it was said in an earlier step."""


NotMade = Literal["denied", "limited", "rejected", "expired", "withdrawn", "superseded", "skipped", "failed"]
"""Why a call ended without having been made; `skipped`: it would have been asked about, in a turn in which nobody is
asked; `failed`: it names no tool, or its arguments could not be read."""


@dataclass(frozen=True, slots=True)
class Unmade:
    """A call that ended without having been made."""

    call_id: str
    thread_id: str
    requester: str
    name: str
    """The tool, as the model called it."""
    tool: Tool | None
    """`None`: there is none of that name (any more)."""
    arguments: Mapping[str, Any]
    status: NotMade
    text: str
    """What the model is told."""
    approval_round: int | None
    """The round of the approval that it waited for; `None`: it waited for none."""
    judged: Judged | None
    """What the policy said of it; `None`: it was not asked."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A tool was called to show people what another call is about, and it only reads."""

    call_id: str
    """Of the call that it was read for, with what was called."""
    thread_id: str
    requester: str
    tool: Tool
    arguments: Mapping[str, Any]
    output: str
    failed: bool


class Audit(Protocol):
    """The record of every call. Those that were started are the ledger's to write down: it knows what came of them."""

    async def not_made(self, call: Unmade) -> None:
        """Write down a call that ended without having been made. The same call with the same status again (after a
        restart) changes nothing."""
        ...

    async def read_for_card(self, looked: Looked) -> None:
        """Write down what was read for a card."""
        ...


# ----------------------------------------------------------------------------------------- the ledger


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What the ledger keeps of a call."""

    thread_id: str
    call_id: str
    requester: str
    tool: Tool
    arguments: dict[str, Any]
    digest: str
    approval_round: int | None
    """The round whose approval permits this call; `None`: the policy allowed it without asking."""
    permitted: bool = True
    """Whether the policy, as it is now, lets the call run, by itself or under that approval."""
    standing: bool = False
    """Whether that rests on a standing approval of the requester's, which has to be in force when the call begins."""
    client: str = ""
    """Through which program the call is asked for, as in `Facts`: the standing approval is for that program."""
    judged: Judged | None = None
    """What the policy says of the call now, for the audit log."""
    goes_on: bool = False
    """Whether it was sent before and waits in the middle (`Ready.goes_on`): then its attempt goes on, too."""
    presentation: CallPresentation = NOTHING_KNOWN
    """What is needed to show it in people's words."""
    recalled_at: float = 0.0
    """`Beginning.at`: when everything that was prepared for it was still to be looked up."""
    spoken: tuple[Spoken, ...] = field(default=(), compare=False)
    """What the model has said in the turn by then: it is shown before what comes of the call, and is no part of it."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Nothing is known of the call that keeps it from being made, or from going on."""

    at: float
    """When that was so, in seconds since the epoch."""
    waits: bool = False
    """Whether an attempt at it waits in the middle of the call for its requester."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The attempt is recorded as started: send the call now."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """There already is an outcome; do not call the tool again."""

    outcome: Succeeded | Failed


@dataclass(frozen=True, slots=True)
class AttemptUnknown:
    """The outcome of an earlier attempt is unknown, and a person has to say what came of it."""

    attempt: int
    text: str = ""
    """What is known of it, and what the server said, safe to show."""
    owner: str | None = None
    """Person id, when `text` is for that person alone."""


@dataclass(frozen=True, slots=True)
class SettledByPerson:
    """A person said what came of an attempt whose outcome is unknown."""

    was_done: bool
    by: str
    text: str = ""
    """As in `AttemptUnknown`."""
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class NotApproved:
    """No recorded approval has this call's digest, or the policy asks for more than it did."""


Existing = Recorded | AttemptUnknown | SettledByPerson
"""What is known of a call that is not to be sent (again)."""


class Ledger(Protocol):
    """What was started, and what came of it. Each verb is one transaction."""

    async def recall(self, call_id: str, *, repeatable: bool) -> Beginning | Existing:
        """What is known of a call, before anything is prepared for it."""
        ...

    async def begin(self, record: CallRecord) -> Begun | Existing | NotApproved:
        """Start an attempt, unless the call has one already or has no right to run. To be called when its request is
        about to leave, and nothing more has to be waited for: if the process dies after this, nobody knows what came of
        it."""
        ...

    async def unsent(self, record: CallRecord, outcome: Failed | None) -> Begun | Existing | NotApproved:
        """Record an attempt that ended before its request left, under the same conditions as `begin`. `outcome`: what
        it failed with; `None`: its requester has to sign in first. It counts as begun when it was recalled."""
        ...

    async def finish(self, record: CallRecord, attempt: int, outcome: Succeeded | Failed) -> None:
        """Record what came of an attempt."""
        ...

    async def outcome_unknown(self, record: CallRecord, attempt: int, outcome: OutcomeUnknown) -> AttemptUnknown:
        """Record that nobody knows what came of an attempt."""
        ...

    async def unknown_after_question(self, record: CallRecord, outcome: OutcomeUnknown) -> Existing:
        """Record that a call which asked something no longer waits for the answer."""
        ...

    async def waits(self, record: CallRecord, attempt: int) -> None:
        """Record that an attempt waits for its requester. The tool may have acted before it asked."""
        ...

    async def did_nothing(self, record: CallRecord, attempt: int) -> None:
        """Record that nothing was done: the server said so by its protocol, or the request never left."""
        ...

    async def close(self, call_id: str, *, repeatable: bool) -> Existing | None:
        """What became of a call that is not to be started, or continued, any more; `None`: it was never sent, or did
        nothing."""
        ...


# The live view.

TaskState = Literal["running", "done", "failed"]


class Live(Protocol):
    """Shows what happens while it happens. Nothing durable; each verb returns at once."""

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        ...

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing."""
        ...

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands. The same `task_id` again replaces what was shown."""
        ...

    def end(self, *, waiting: bool) -> None:
        """The delivery has been handled: nothing more comes. What was said is posted by others, perhaps later.

        `waiting`: whether the thread now waits for people.
        """
        ...

    def leave(self) -> None:
        """Another process goes on with the delivery: nothing more comes, and what is shown is left to that one."""
        ...


# What is known of people, and how much they may use.


class Directory(Protocol):
    """What is known of people beyond their ids. Nothing here raises: what could not be found out is `None`."""

    async def groups_of(self, person_id: str, groups: Collection[str]) -> Mapping[str, bool | None]:
        """Whether somebody is in each of these groups (`slack-group:T1:S1`, `entra-group:…`)."""
        ...

    async def is_also(self, person_id: str, others: Collection[str]) -> Mapping[str, bool | None]:
        """Whether each of these accounts on other platforms is the same human's."""
        ...

    async def in_channel(self, person_id: str, channel: str) -> bool | None:
        """Whether somebody is in a channel (`ConversationReference.channel`)."""
        ...


class Grants(Protocol):
    """What people always allow themselves, for a while."""

    async def grants_of(self, person_id: str) -> Sequence[StandingApproval]:
        """The grants that somebody gave themselves and has not revoked; some may be over."""
        ...


class Memory(Protocol):
    """What is remembered of people and channels."""

    async def recalled(self, requester: str, channel: str) -> Recalled:
        """What the model of a turn is told. Never raises, cancellation aside.

        Args:
            channel: in which the turn is; empty: in a direct chat.
        """
        ...


class Budget(Protocol):
    """How much of the language model a person, and all in a channel, may use."""

    async def refusal(self, person_id: str, channel: str = "") -> str | None:
        """The sentence that tells somebody that it is used up; `None`: it is not.

        Args:
            channel: in which the turn is; empty: in a direct chat.
        """
        ...

    async def spent(self, person_id: str, model: str, use: ModelUse, channel: str = "") -> None:
        """This went into an answer for this person, in this channel. `model`: the name it is counted under."""
        ...

    async def lost(self, turn: Turn, model: str, use: ModelUse) -> None:
        """This went into tries that gave no answer in a turn, which keeps nothing of them."""
        ...


# Tools to call, and what can come of a call.


@dataclass(frozen=True, slots=True)
class Given:
    """What a person answered to a question that a tool put in the middle of a call."""

    number: int
    """Number of the question within its call, from 1."""
    action: Literal["accept", "decline", "cancel"]
    """MCP's word: an answer, a no, or closed without either."""
    values: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """`QuestionPut.digest` of the question: in a call that is made anew, only the same question gets the answer."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Person for whom, and thread in which, a tool is called."""

    person: str
    thread_id: str
    call_id: str
    answers: tuple[Given, ...] = ()
    """What this person answered to the questions that the tool put in this call so far; a link that was opened is an
    answer without values."""
    over: int = 0
    """How many of these were given before the person chose to make the call again, its outcome being unknown."""
    keeps_returned: bool = False
    """Whether what the server returns is kept as it is, for a program that takes it in, besides the text for a
    model."""
    channel: str = ""
    """In which they ask, as `Turn.channel`; empty: nobody reads along."""
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    """Files of the conversation that the call names, by their ids, as the server is handed them: `name`, `mediaType`
    and `text`."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool did what it was asked."""

    text: str
    """What the model gets: bounded, safe to show."""
    whole: str = ""
    """The whole result for the record; empty when `text` is already whole."""
    owner: str | None = None
    """Person id, when the result was fetched through that person's own account."""
    returned: Mapping[str, Any] | None = None
    """`content` and `structuredContent` as the server returned them, secrets taken out, where the caller keeps them
    (`Caller.keeps_returned`)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool said that it failed, or the call was not sent at all: nothing is left open."""

    text: str
    """A sentence safe to show to the model and to people."""
    owner: str | None = None
    """Person id, when a server said it to that person's own account."""
    returned: Mapping[str, Any] | None = None
    """As in `Succeeded`, of a result with `isError`."""


TRIED_BEFORE = "That is about the last try alone: an earlier try of this call may have taken effect, nobody knows."
"""What is added to a failure where somebody chose to try a call again whose outcome is unknown."""


def of_last_try(text: str) -> str:
    """Returns what is said of a call's last try, and that an earlier one may have taken effect; that is added once."""
    return text if text.endswith(TRIED_BEFORE) else f"{text} {TRIED_BEFORE}".strip()


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The call was sent, and nothing proves what came of it: no answer (timeout, death), or one that is no answer to a
    call, such as an HTTP error. Whether it acted is unknown."""

    text: str
    """A sentence, safe to show, with what the server said where it said something."""
    owner: str | None = None
    """Person id, when a server said it to that person's own account."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """The request certainly never left this process: it may be sent over another session."""

    reason: str
    """Ends a sentence that begins with the server's name."""


@dataclass(frozen=True, slots=True)
class SignInNeeded:
    """This person must open a link first: the server says so by URL elicitation, or in a result of the kind that the
    operator described."""

    url: str = field(repr=False)
    message: str
    elicitation_id: str | None = None
    """The server's name for it, by which it may tell that it is finished."""
    number: int = 0
    """Number of the question within its call, from 1, when the call waits for it; 0: the call has ended with it."""
    did_nothing: bool = True
    """Whether the server said by its protocol that it did nothing yet; a result never says so."""


@dataclass(frozen=True, slots=True)
class AccountNeeded:
    """The server did nothing: this person has no account connected for it, or the one that is was not accepted."""

    connection: str
    """Name of the connection: the server's own for `auth: oauth`, a provider's of `connections.yaml` otherwise."""
    challenge: str = ""
    """`WWW-Authenticate` of the answer, where there was one: it may name the scope that is missing."""


@dataclass(frozen=True, slots=True)
class QuestionPut:
    """The tool asks this person something before it goes on (form elicitation); the call goes on with the answer."""

    number: int
    """Number of the question within its call, from 1."""
    message: str
    fields: tuple[FormField, ...]
    schema: Mapping[str, Any]
    """JSON schema that the answer must satisfy."""

    @property
    def digest(self) -> str:
        """SHA-256, hexadecimal, of what was asked."""
        return hashlib.sha256(canonical_json([self.message, self.schema]).encode("utf-8", "surrogatepass")).hexdigest()


ToolOutcome = Succeeded | Failed | OutcomeUnknown | SignInNeeded | AccountNeeded | QuestionPut


@dataclass(frozen=True, slots=True)
class Ready:
    """A call whose request can leave at once: its session is up, its tool is offered, its arguments fit, whose account
    it uses is looked up."""

    send: Callable[[Progress], Awaitable[ToolOutcome | NotSent]]
    """Sends it; to be called once at most. Raises where another process runs the thread by now, and then nothing was
    sent; else nothing, cancellation aside: every failure is an outcome."""
    goes_on: bool = False
    """Whether it was sent before, and waits in the middle for an answer: what is sent is that."""


Prepared = Ready | Failed | OutcomeUnknown | AccountNeeded | QuestionPut | SignInNeeded
"""`Failed`: it cannot be sent, and nothing was. `OutcomeUnknown`: it had been sent and asked something, no longer waits
for the answer, and may not be sent again without asking. `QuestionPut`, `SignInNeeded`: it still waits for that."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A configured server whose tools cannot be used at the moment."""

    server: str
    reason: str


class Progress(Protocol):
    """Told how far a running tool is; must return at once."""

    def __call__(self, message: str, fraction: float | None) -> None:
        """Progress of `fraction` (0 to 1, where the server says how far it is)."""
        ...


class Tools(Protocol):
    """The tools of all configured servers."""

    async def available(self) -> Sequence[Tool]:
        """The tools that can be called now, in a stable order. Raises what the records raise."""
        ...

    async def settled(self, timeout: float) -> bool:  # noqa: ASYNC109  # a question with a limit, not a deadline
        """Wait, `timeout` seconds at most, until every server is connected or has failed to; whether they have."""
        ...

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers that are configured and cannot be used now, with a reason safe to show."""
        ...

    async def find(self, full_name: str) -> Tool | None:
        """The tool the model calls `full_name`; `None` when there is none (any more). Raises what the records
        raise."""
        ...

    def prepared(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> AbstractAsyncContextManager[Prepared]:
        """All that a call needs before it is sent, which may take a while; nothing is sent yet. It is ready only inside
        the context. Never raises, cancellation aside."""
        ...

    async def give_up(self, call_id: str) -> None:
        """A call that waits for an answer of a person will not go on: what is open of it is ended. Raises nothing."""
        ...
