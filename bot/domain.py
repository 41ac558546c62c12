"""The nouns of the product as frozen dataclasses: what comes in, what is shown, what is answered to a click.

Times are seconds since the epoch, UTC, as floats; platforms show them in the reader's own time zone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from graph.citations import Source
from graph.interrupts import FormField
from graph.presentation import NOTHING_KNOWN, CallPresentation


# ---------------------------------------------------------------------------------- people and places
@dataclass(frozen=True, slots=True)
class Person:
    """A user on a platform."""

    person_id: str
    """`slack:{team}:{user}`, `teams:{tenant}:{aad object id}`, `web:{name}`."""
    name: str
    time_zone: str = "UTC"
    """IANA name."""
    locale: str = "en"
    email: str = ""
    """Address that the platform vouches for, in lower case: who has the same on two platforms is one human. Empty: the
    platform does not say."""


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """What a platform knows of whose an account is."""

    email: str = ""
    """Address that it vouches for, of a full member only; empty: none, or it could not be found out."""
    claimed: tuple[str, ...] = ()
    """Further addresses that stand with the account, and for which it does not vouch."""
    is_member: bool | None = None
    """Whether it is a full member's of the workspace or tenant in its person id, or of those on the page who have one
    account each; false: a guest's, another company's, or one that anybody can make. `None`: could not be found out."""


@dataclass(frozen=True, slots=True)
class ConversationReference:
    """Where on a platform a conversation is held."""

    platform: str
    key: str
    """Names the place: `slack:{team}:{channel}:{thread_ts}`, `teams:{tenant}:{conversation}`, `web:{id}`."""
    address: Mapping[str, Any] = field(default_factory=dict)
    """What the platform's adapter needs to post there; opaque to everything else."""
    channel: str = ""
    """The channel the place belongs to, for policies; empty in a direct chat."""
    direct: bool = False
    """A 1:1 chat with the bot: everything said there is said to the bot."""
    has_threads: bool = True
    """False where conversations are not divided into threads, so that they are divided into sessions."""


# ------------------------------------------------------------- what comes in: messages, clicks, forms
@dataclass(frozen=True, slots=True)
class FileReference:
    """A file of a message, as its platform names it."""

    name: str
    """As its owner calls it: a stranger's text."""
    media_type: str = ""
    """As the platform says; empty: it does not say."""
    size: int | None = None
    """Bytes, as the platform says; `None`: it does not say."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What is needed to fetch it; JSON, opaque to everything but the platform. May hold a secret."""
    refused: str = ""
    """Why it cannot be fetched, where the platform's message says so already: a sentence for people."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something a person wrote."""

    key: str
    """The message's own identity on its platform; the same message delivered twice has the same key."""
    place: ConversationReference
    author: Person
    text: str
    at: float
    addressed: bool = True
    """Whether it speaks to the bot (mention, direct chat, web page) rather than to others in the thread."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What the platform's adapter needs to introduce the message later; JSON, opaque to everything else."""
    via: Literal["", "api"] = ""
    """How it came, where that is another way than the platform of its place: `api`, from a program."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """How its turn differs from others: a `graph.state.TurnOptions`."""
    agent: str = ""
    """Name of the agent that its author has picked for it; empty: none in particular."""
    owners: frozenset[str] = frozenset()
    """Person ids of the author's human, where conversations of the place belong to whoever began them: in one of
    somebody else nothing is accepted. Empty: everybody who is there may write."""
    files: tuple[FileReference, ...] = ()
    """What its author handed over with it; not read yet."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message about to be handled, as it was accepted."""

    message: Message
    heard: str | None
    """Key of the message before it that the bot heard in this thread; `None`: it is the first."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Something that was said in a thread, not to the bot."""

    author: str
    """Name of the person."""
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Introduction:
    """What the platform knows of a message: accepted at once, looked up when its turn has come."""

    author: Person
    text: str
    """The message with names in the place of ids."""
    background: tuple[Quote, ...] = ()
    """What people said in the thread since the bot last heard something in it, oldest first."""
    files: tuple[FileReference, ...] | None = None
    """Files of the message, where its platform names them only when it is asked; `None`: those that it came with."""


@dataclass(frozen=True, slots=True)
class Unwelcome:
    """The author of a message may not use the bot: a guest, somebody of another company."""

    text: str
    """One sentence, for them alone."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody decides about one approval."""

    approval_id: str
    verb: Literal["approve", "reject"]
    reason: str = ""
    """Of a rejection."""
    arguments: Mapping[str, Any] | None = None
    """Form values, by field name, when the person edited before approving."""
    note: str = ""
    """Words for the model that go with an approval: the call runs as approved, and the model gets them with its
    result."""
    always_for: float | None = None
    """Seconds for which the same call is to need no approval any more when this person requests it; `None`: it does."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A click, or a request of a program, that decides one or several approvals at once."""

    key: str
    """`{message}:{action}:{user}`: the same click delivered twice has the same key."""
    person: Person
    choices: tuple[Choice, ...]
    """Each about another approval; of two about the same one the first counts."""
    whole: bool = False
    """Whether nothing of it is done unless all of it can be."""
    via: Literal["", "api"] = ""
    """`api`: a program decides for the person. What was asked at `/mcp` is not decided so."""

    @classmethod
    def alike(
        cls, key: str, person: Person, approval_ids: Iterable[str], verb: Literal["approve", "reject"], **how: Any
    ) -> Decision:
        """Returns the same choice about each of these approvals; `how`: what else `Choice` has."""
        return cls(key, person, tuple(Choice(each, verb, **how) for each in dict.fromkeys(approval_ids)))

    @property
    def approval_ids(self) -> tuple[str, ...]:
        """Which approvals it is about."""
        return tuple(choice.approval_id for choice in self.choices)


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """A click by which the requester has a call that was approved and failed proposed once more, as it was."""

    key: str
    person: Person
    approval_id: str
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Somebody who may decide asks another to do it."""

    key: str
    person: Person
    approval_id: str
    to: str
    """Person id, or an e-mail address: then whoever has it, as far as a platform has vouched for it."""
    name: str = ""
    """The person's name as their platform knows it; empty: as we know it."""


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """A submitted clarification form."""

    key: str
    person: Person
    clarification_id: str
    values: Mapping[str, Any]
    text: str | None = None
    """The answer in one piece of text, where it was given so; `values` are not looked at then."""
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class OutcomeChoice:
    """A click that says what came of an attempt whose outcome is unknown."""

    key: str
    person: Person
    outcome_id: str
    choice: Literal["it_was_done", "try_again", "skip"]
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class SignInReply:
    """A click on "I have signed in" or "Not now"."""

    key: str
    person: Person
    sign_in_id: str
    done: bool
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """The one-time code that a person's browser showed at the end of a sign-in, typed by them in chat."""

    key: str
    person: Person
    code: str
    sign_in_id: str | None = None
    """Sign-in whose form it came from; `None`: written as a message."""
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A click on "Decline" or "Cancel" of a question that a tool put."""

    key: str
    person: Person
    clarification_id: str
    action: Literal["decline", "cancel"]
    via: Literal["", "api"] = ""
    """As `Decision.via`."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person thinks of something the bot said. Later feedback replaces an earlier one."""

    person: Person
    post_id: str
    verdict: Literal["good", "bad"]
    comment: str = ""
    """What the person wrote, where the platform asks for it."""


# ----------------------------------------------------------------- what is shown: posts, cards, forms
@dataclass(frozen=True, slots=True)
class CallActivity:
    """One tool call of a turn, and how it stands."""

    call_id: str
    server: str
    tool: str
    title: str
    state: Literal["running", "waiting", "done", "failed", "unknown"]
    began_at: float
    ended_at: float | None = None
    result: str = ""
    """What came of it, in one line; empty: nothing yet, or it is for one person alone."""
    presentation: CallPresentation = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Said:
    """What the bot says, in Markdown from a model: to be escaped by every renderer."""

    text: str
    final: bool = True
    """Whether it is the answer; false: a word on the way to it."""
    activity: tuple[CallActivity, ...] = ()
    """The calls that were made for it, in the order in which they were asked for; at most the newest 20."""
    earlier_calls: int = 0
    """How many were made before those."""
    agent: str = ""
    """Name of the agent that says it; empty: the default one."""
    sources: tuple[Source, ...] = ()
    """What it cites as `[1]`, by number."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence of the bot's own, plain text."""

    text: str
    tone: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's vote on an approval."""

    name: str
    verb: Literal["approve", "reject"]
    at: float


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """Everything a card needs so that a person can decide."""

    approval_id: str
    status: Literal["pending", "approved", "rejected", "expired", "superseded", "withdrawn", "void"]
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    asked_arguments: Mapping[str, Any] | None
    """The arguments before an approver edited them; `None`: nobody did."""
    risk: tuple[str, ...]
    requester: str
    """Name of the person who asks."""
    may_decide: str
    """Who may decide, in words."""
    approvers: tuple[str, ...]
    """Who may decide, as the policy names them: person ids, group references, `requester`, `channel`, `any`."""
    rule: str
    quorum: int
    votes: tuple[Vote, ...]
    asked_at: float
    expires_at: float | None
    reason_required: bool
    editable: bool
    decided_by: tuple[str, ...] = ()
    decided_at: float | None = None
    reason: str = ""
    result: str = ""
    """What came of the call, in one line; empty while it has not run."""
    result_tone: Literal["info", "success", "error", "warning"] = "info"
    together: int = 1
    """How many approvals wait in its thread, itself included."""
    requester_ids: tuple[str, ...] = ()
    """Person ids of the requester of the turn, then of whoever edited the arguments."""
    four_eyes: bool = False
    """Whether none of `requester_ids` may decide."""
    quote: str = ""
    """The requester's own words that ask for this call; empty where none are needed (outside of `safeWrite`)."""
    always_offered: bool = False
    """Whether whoever approves may always allow the same call, to themselves, for a while."""
    rejections: int = 1
    """How many different people must reject; 1: anybody's rejection is a veto."""
    escalates_at: float | None = None
    """When others may decide too; `None`: never, or they may already."""
    handing_offered: bool = True
    """Whether whoever may decide can ask another who may: not where only one person may."""
    handed_to: tuple[str, ...] = ()
    """Names of the people who were asked to decide by somebody else who may."""
    masks: int = 0
    """How many secrets are masked in it: whoever may decide can see them."""
    fingerprint: str = ""
    """Short keyed fingerprint of the whole call, shown wherever the card does not show the call letter by letter."""
    exact: bool = True
    """Whether all of it, masks aside, can be told from how it looks (`bot.card_masks`)."""
    confusing: bool = False
    """Whether it is not exact because eyes may take some of its characters, or its blanks, for others."""
    client: str = ""
    """Name of the program through which the requester's agent asks, as it calls itself; empty: our own agent asks."""
    agent: str = ""
    """Name of our own agent that asks; empty: the default one, or a program."""
    unread: int = 0
    """Characters of its arguments when they are too long for a list and were not read for it; they are empty then, and
    there is no fingerprint. 0: they are whole."""
    call_id: str = ""
    presentation: CallPresentation = NOTHING_KNOWN
    """What is needed to show the call in people's words."""
    notes: tuple[tuple[str, str], ...] = ()
    """What those who approved added for the model: name and words of each."""
    edited_by: str = ""
    """Name of whoever edited the arguments; empty: nobody did."""
    retry_offered: bool = False
    """Whether its requester may have the same call proposed once more: it was approved, and it failed."""
    again: str = ""
    """Why it is asked again, as a sentence, of an approval that waits; empty: it is asked for the first time."""


@dataclass(frozen=True, slots=True)
class ClarificationView:
    """A question to the requester: of the model, or of a tool in the middle of a call."""

    clarification_id: str
    status: Literal["open", "answered", "declined", "cancelled", "superseded"]
    question: str
    context: str
    fields: tuple[FormField, ...]
    requester: str
    requester_id: str
    answer: str = ""
    server: str = ""
    """Name of the tool server that asks, and may be declined; empty: the model asks."""
    tool: str = ""
    """The tool in the middle of whose call the server asks, by the server's name for it; empty: not known."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of that call."""
    fingerprint: str = ""
    """Short keyed fingerprint of that call."""
    unread: int = 0
    """As in `ApprovalView`."""
    call_id: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the answer, where a tool asks."""
    client: str = ""
    """As in `ApprovalView`."""
    agent: str = ""
    """Name of the agent of a plan's task that it belongs to; empty: it belongs to none."""
    filled_in: tuple[tuple[str, str], ...] = ()
    """What was answered in a form: label and value of each field, as people read them. Empty: nothing was."""


@dataclass(frozen=True, slots=True)
class SignInView:
    """A sign-in that one person has to do. The link is not here: it is fetched for its owner alone."""

    sign_in_id: str
    status: Literal["open", "done", "declined", "expired", "superseded"]
    server: str
    host: str
    """Host of the link, so that a person can judge it."""
    message: str
    """What the server says about it: for the owner alone, in no card that others see."""
    owner: str
    owner_id: str
    service: str = ""
    """Name of the service whose account is to be connected; empty for a link that the server itself gave: only its
    owner can say when that is finished."""
    code_wanted: bool = False
    """Whether the browser part is over and its one-time code is to be typed in by the owner."""
    call_id: str = ""
    client: str = ""
    """As in `ApprovalView`."""
    agent: str = ""
    """Name of the agent of a plan's task that it belongs to; empty: it belongs to none."""


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """An attempt whose outcome is unknown: what came of it?"""

    outcome_id: str
    status: Literal["open", "it_was_done", "try_again", "skip", "superseded"]
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    requester: str
    requester_id: str
    settled_by: str = ""
    masks: int = 0
    """How many secrets are masked in it."""
    fingerprint: str = ""
    """Short keyed fingerprint of the whole call, shown wherever the card does not show the call letter by letter."""
    exact: bool = True
    """Whether all of it, masks aside, can be told from how it looks (`bot.card_masks`)."""
    confusing: bool = False
    """Whether it is not exact because eyes may take some of its characters, or its blanks, for others."""
    known: str = ""
    """What is known of it, and what the server said; empty where that is for one person alone."""
    unread: int = 0
    """As in `ApprovalView`."""
    call_id: str = ""
    client: str = ""
    """As in `ApprovalView`."""
    agent: str = ""
    """Name of the agent of a plan's task that it belongs to; empty: it belongs to none."""
    presentation: CallPresentation = NOTHING_KNOWN
    """As in `ApprovalView`."""


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change that was made without asking: by a rule that allows it, or under a standing approval. One quiet line."""

    attempt_id: str
    server: str
    tool: str
    title: str
    arguments: Mapping[str, Any]
    requester: str
    requester_id: str
    result: str
    """What came of the call, in one line."""
    result_tone: Literal["info", "success", "error", "warning"] = "success"
    rule: str = ""
    """Name of the rule that allows it; empty: a standing approval does."""
    grant_id: str | None = None
    """The standing approval under which it ran, while that can be revoked; `None`: there is none."""
    masks: int = 0
    """As in `ApprovalView`, like what follows."""
    fingerprint: str = ""
    exact: bool = True
    confusing: bool = False
    unread: int = 0
    call_id: str = ""
    client: str = ""
    agent: str = ""
    """Name of the agent of a plan's task that it belongs to; empty: it belongs to none."""
    presentation: CallPresentation = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class PlanTaskView:
    """A task of a plan."""

    task_id: str
    agent: str
    """Name of the agent that does it."""
    instruction: str
    """What it was told, as the agent that made the plan wrote it."""
    status: Literal["blocked", "running", "waiting", "done", "failed", "not_run", "stopped"]
    """`blocked`: what it depends on is not done yet; `waiting`: for people; `not_run`: what it depends on was not
    done."""
    depends_on: tuple[str, ...] = ()
    result: str = ""
    """What came of it, in one line; empty: nothing yet, or it is for the requester alone."""
    began_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class PlanView:
    """A request with several parts, which agents do side by side."""

    plan_id: str
    status: Literal["open", "ended", "superseded"]
    tasks: tuple[PlanTaskView, ...]
    """Each after those that it depends on."""
    requester: str
    requester_id: str


Content = Said | Notice | ApprovalView | ClarificationView | SignInView | OutcomeView | ChangeView | PlanView


@dataclass(frozen=True, slots=True)
class Post:
    """Something the bot said, as it is to be shown now."""

    post_id: str
    thread_id: str
    place: ConversationReference
    revision: int
    """Grows with every change; a platform never replaces a newer revision by an older one."""
    at: float
    content: Content
    only_for: str | None = None
    """Person id, when nobody else may see it."""
    number: int = 0
    """Grows from one post of a thread to the next."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the masks of a waiting approval hide, for one person who may decide it. Never to be shown to others."""

    approval_id: str
    server: str
    tool: str
    secrets: Mapping[str, str]
    """Mask → what is behind it."""
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Form:
    """A form to fill in: the edit form of an approval, or a question's."""

    title: str
    fields: tuple[FormField, ...]
    values: Mapping[str, Any]


# --------------------------------------------------------------------------------------- what is read
@dataclass(frozen=True, slots=True)
class MessageView:
    """A person's message in a thread, for platforms that show the thread themselves."""

    key: str
    author: str
    author_id: str
    text: str
    at: float
    number: int = 0
    """Grows from one message of a thread to the next."""
    queued: bool = False
    """Whether it waits for something else in its thread to end."""
    files: tuple[str, ...] = ()
    """Names of what was handed over with it."""


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One line of a list of threads."""

    thread_id: str
    title: str
    updated_at: float
    waiting: int
    """How many questions to people are open in it, approvals among them."""
    questions: int = 0
    """How many of them are for whoever asked there: everything but approvals."""
    owner: str = ""
    """Name of who began it, where it is somebody else's."""


@dataclass(frozen=True, slots=True)
class ThreadView:
    """A thread as one person may see it, oldest first."""

    thread_id: str
    title: str
    entries: tuple[MessageView | Post, ...]
    seen_as: Literal["owner", "approver", "operator"] = "owner"
    """`approver`: only the turns are here of which this person may decide, or has decided, something."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A post and where it is shown."""

    post: Post
    reference: Mapping[str, Any] | None
    """The platform's reference; `None`: it is not shown (yet)."""


@dataclass(frozen=True, slots=True)
class GrantView:
    """A call that somebody always allows themselves, for a while."""

    grant_id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    until: float
    masks: int = 0
    """As in `ApprovalView`, like what follows."""
    fingerprint: str = ""
    exact: bool = True
    confusing: bool = False
    unread: int = 0
    client: str = ""
    """Through which program alone it runs so, as that calls itself; empty: our own agent."""
    title: str = ""
    """The server's own title of the tool; empty: not known."""
    presentation: CallPresentation = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Overview:
    """What there is for one person: the newest of each kind, newest first. Of a call with long arguments these are
    unread (`ApprovalView.unread`)."""

    to_decide: tuple[Shown, ...]
    """Approvals that this person may decide now."""
    waiting: tuple[Shown, ...]
    """What this person asked for that waits, for others or for them: approvals, questions, sign-ins, outcomes. None of
    them is among those that they may decide themselves."""
    recent: tuple[Shown, ...]
    """What came of this person's requests lately: approvals that are settled."""
    more_to_decide: int = 0
    """How many more they may decide."""
    more_waiting: int = 0
    """How many more wait."""


@dataclass(frozen=True, slots=True)
class Search:
    """The conversations that somebody has looked for, the newest first."""

    found: tuple[ThreadSummary, ...]
    is_whole: bool = True
    """Whether these are all; there may be more in older ones otherwise."""


@dataclass(frozen=True, slots=True)
class PendingApprovals:
    """The approvals that wait and concern one person, wherever they were asked, newest first. Of a call with long
    arguments these are unread (`ApprovalView.unread`)."""

    to_decide: tuple[Shown, ...] = ()
    """Those that they may decide now."""
    more: int = 0
    """How many more of these there are."""
    asked_for: tuple[Shown, ...] = ()
    """Those that wait for others, for what this person has asked for."""


@dataclass(frozen=True, slots=True)
class Together:
    """The approvals that wait in one thread and that one person may decide, oldest first."""

    listed: tuple[ApprovalView, ...]
    more: int
    """How many wait beside them: there are too many for a list, or their arguments are too long."""


ConnectionStatus = Literal["active", "expired", "error", "revoked"]
"""How a connected account is.

- `active`: it works, as far as is known. Tokens that have run out count as long as they can be renewed.
- `expired`: its tokens have run out, and the service gave nothing to renew them with.
- `revoked`: the service does not accept it any more, or does not renew it: access was taken away there, or lay idle for
  too long; services do not tell which.
- `error`: it is of no use for a reason of ours: the service is configured in another way than when the account was
  connected, or not at all, or its tokens were sealed with a key that is not there any more.
"""


@dataclass(frozen=True, slots=True)
class ConnectionView:
    """A person's account at a service, as they may see it: never its tokens."""

    connection_id: str
    service: str
    """Name for people: the provider's, or the tool server's."""
    account: str
    """How the service names the account (an e-mail address, a login); empty where it does not say."""
    scopes: tuple[str, ...]
    since: float
    used_at: float | None
    status: ConnectionStatus = "active"
    provider: str = ""
    """Name of the connection in the configuration: what it is connected by again."""

    @property
    def working(self) -> bool:
        """Whether it can be used; false: the next call asks to sign in again."""
        return self.status == "active"


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service at which people can connect an account."""

    provider: str
    """Name of the connection in the configuration."""
    service: str
    """Name for people."""
    scopes: tuple[str, ...] = ()
    """What is asked for, as far as the configuration says it."""


# --------------------------------------------------------------------------------- answers to a click
@dataclass(frozen=True, slots=True)
class Settled:
    """The click settled it, or was counted."""

    text: str
    """One sentence for the person who clicked."""
    final: bool = True
    """False: the vote counts, and more are needed."""


@dataclass(frozen=True, slots=True)
class AlreadySettled:
    """It is not to be settled any more; nothing changed."""

    text: str
    gone: bool = False
    """False: somebody, perhaps the same person, was earlier. True: it ended without anybody's word on it (it expired,
    was withdrawn, or something else is asked by now)."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This person may not, or not now; nothing changed. Only the person who clicked sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such thing; nothing changed."""

    text: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The form has mistakes; nothing changed and the input is kept."""

    errors: Mapping[str, str]
    """Field name → what is wrong and how to mend it; the key `""` is about the form as a whole."""


ClickResult = Settled | AlreadySettled | Refused | Unknown | Invalid


# ---------------------------------------- the present moment, in one place so that tests can set it

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""
system_clock: Clock = time.time
