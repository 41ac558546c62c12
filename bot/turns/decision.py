"""What to do next with a delivery: a pure decision over what is known.

The handler reads the facts, asks `next_action`, does that one thing, and reads again until an action ends the delivery.
A crash is nothing special: the facts say what an earlier try has done, and each action may be done twice. What each
changes in the facts:

| action | done when | the facts then |
|---|---|---|
| TakeUp | an earlier try ended in the middle of a run | `taken_up` |
| Continue | a run was broken off | `at_rest`, or one step further |
| Settle | what was broken off, or is superseded, is to end | `at_rest`, nothing `waits`, `settled` |
| Announce | the message begins a session of its own | no `announcement` |
| Say | what was said or asked is perhaps not kept | `kept` is "now" |
| Resume | interrupts wait whose rows are decided | fewer `decided`; `kept` is "perhaps" |
| Void | the checkpoints of the thread are lost | `turn` is "none" |
| RecordAnswer | the message answers an open question | `answered`, or an `objection`, or decided by somebody else |
| Supersede | the requester goes on to something else | `gave_way`, or decided by somebody else |
| Expire | the time of an approval is over | `timer` is "expired" or "over" |
| Begin | the message begins a turn and nothing is unfinished or open | `progress` is "begun" |

Every other action ends the delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bot.domain import Notice, Unwelcome
from bot.limits import TooMany, TurnedOff
from bot.outbox import notice
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.turns.messages import (
    AnswersClarification,
    Ignored,
    Meaning,
    NewTurn,
    Supersedes,
    ToldToWait,
    asks_for_new_session,
    for_author,
    why_stopped,
)
from graph.interrupts import InterruptAnswer
from graph.ports import Spoken, Unfinished
from translations import gettext as _

if TYPE_CHECKING:
    from graph.running import RunVerb

MOST_DEATHS = 12
"""Tries of a delivery in which the process died, before it is parked."""
DIED_TOO_OFTEN = "the process died in this delivery too often"
MOST_STEPS = 2_500
"""Actions within one try at a delivery, before it is parked: more than the two that each decision costs which people
make while a run goes on, for all of the 1,000 calls that a turn may make. Only a loop comes here."""

TurnProgress = Literal["not begun", "begun", "given up"]
Kept = Literal["before", "perhaps", "now"]
Timer = Literal["reminds", "expires", "expired", "over"]


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """What is known of a delivery at one moment. A fact is left at its default where what is known already decides."""

    delivery: Delivery
    """What is handled; a message that has not begun, with the name, text and earlier messages that the platform
    gave."""
    steps: int = 0
    """Actions done in this try."""
    taken_up: bool = False
    """This try has counted that an earlier one ended in the middle, or may have."""
    ran: bool = False
    """This try has run the graph, so what is unfinished is its own."""
    settled: bool = False
    """This try has settled the thread."""
    timer: Timer = "reminds"
    """What a timer does now. "expired": its approval has expired by it, so the thread goes on. "over": nothing."""
    left_over: bool = False
    """It was accepted before the process began, so an earlier one may have died in it, of which nothing need be on
    disk."""
    broken_off: Spoken | None = None
    """What was being said in the thread when a stop broke it off."""

    progress: TurnProgress = "not begun"
    """Whether a message is in the conversation. "given up": it is, and its turn was being ended."""
    turn: Literal["known", "none", "lost"] = "known"
    """Whether the checkpoints know a turn of the thread. "lost": they do not, and the records do."""
    at_rest: bool = True
    """False: a run of the graph was broken off."""
    ending: bool = False
    """A message finds the thread not at rest, and what is unfinished there was being ended, or a parked delivery left
    it."""
    kept: Kept = "before"
    """Whether what the model said and what the graph asks is in the records. "before": earlier deliveries saw to it.
    "perhaps": the graph has run since. "now": this try has kept it."""
    waits: bool = False
    """Interrupts wait in the graph."""
    decided: Mapping[str, InterruptAnswer] = field(default_factory=dict)
    """The answers in the rows to interrupts that wait, by interrupt id."""
    answered: bool = False
    """This message has answered a question."""
    gave_way: bool = False
    """Whether this message has superseded what waits in the graph, which is at rest."""

    unwelcome: Unwelcome | None = None
    """The author may not use the bot."""
    announcement: NewPost | None = None
    """What is still to be said because the message begins a session."""
    objection: str = ""
    """Why the message could not be taken as the answer to a tool's question."""
    meaning: Meaning = field(default_factory=Ignored)
    """What the message means given what is open."""
    refused: TooMany | TurnedOff | None = None
    """Set when its turn may not begin, because there were too many or because none may."""


# ------------------------------------------------------------------------------------------------ what may be done


@dataclass(frozen=True, slots=True)
class TakeUp:
    """Count that an earlier try ended in the middle, or may have, and keep what it said: what comes next is shown while
    it is written, so what was said before it may not come after it."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Let the run that was broken off go on until it is at rest."""

    verb: RunVerb


@dataclass(frozen=True, slots=True)
class Settle:
    """Supersede whatever is open and end whatever is unfinished, without asking the model."""

    why: str
    unfinished: Unfinished | None = None
    """What the model was saying."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Say that a new session begins."""

    post: NewPost


@dataclass(frozen=True, slots=True)
class Say:
    """Keep what the model said and what the graph asks; what was kept before stays as it is."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Answer interrupts from their rows."""

    answers: Mapping[str, InterruptAnswer]


@dataclass(frozen=True, slots=True)
class Void:
    """Give up what the records know of a thread whose checkpoints are lost."""


@dataclass(frozen=True, slots=True)
class RecordAnswer:
    """Take the message as the answer to a question, if it is still open."""

    clarification_id: str


@dataclass(frozen=True, slots=True)
class Supersede:
    """Supersede all that is open, unless somebody has decided since the facts were read: what was approved runs
    first."""

    why: str


@dataclass(frozen=True, slots=True)
class Expire:
    """Let the approval of the timer expire, if it still waits."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Run the graph with the message."""


TurnStep = TakeUp | Continue | Settle | Announce | Say | Resume | Void | RecordAnswer | Supersede | Expire | Begin
"""What changes the facts, so that they are read again."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """Keep what was said and asked, these posts and whose turn it is, and mark the delivery as done."""

    posts: tuple[NewPost, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnAway:
    """Tell the author that they may not use the bot; the thread is not theirs. What there is in it stays as it is."""

    post: NewPost


@dataclass(frozen=True, slots=True)
class Remind:
    """Remind or escalate if the approval of the timer is still open, and mark the timer as done."""


@dataclass(frozen=True, slots=True)
class ReportLoss:
    """Something was decided, and no checkpoint knows what it was about: void it, say so, and run nothing."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The turn cannot go on, and trying again would not help: settle, and say so in one sentence."""

    sentence: str
    unfinished: Unfinished | None
    """The answer as far as people saw it written, when it stays."""
    trouble: str = ""
    """What it failed with, in a word or two, for those who measure that."""
    cause: str = ""
    """More of it, for operators."""


@dataclass(frozen=True, slots=True)
class TryLater:
    """Handling failed: try again."""

    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class PutOff:
    """The platform could not be asked, which is no try at handling the delivery."""

    outages: int
    """How often it was put off before."""
    retry_after: float | None
    """Seconds that the platform wants to be left alone."""
    cause: str


@dataclass(frozen=True, slots=True)
class Park:
    """Keep the delivery with its cause, tell its author, and let the thread go on."""

    cause: str


TurnEnding = Conclude | TurnAway | Remind | ReportLoss | GiveUp | TryLater | PutOff | Park
"""What ends this try, and except for `TryLater` and `PutOff` the delivery."""
Action = TurnStep | TurnEnding


# ------------------------------------------------------------------------------------------------ the decision


def next_action(facts: TurnFacts) -> Action:
    """The one thing to do now."""
    if facts.steps >= MOST_STEPS:
        return Park("handling it came to no end")
    match facts.delivery.kind:
        case "message":
            return _for_message(facts)
        case "timer" if facts.timer == "expires":
            return Expire()
        case "timer" if facts.timer != "expired":
            # What is unfinished in the thread belongs to a later delivery.
            return Remind()
        case "resume" | "timer":
            return _go_on(facts)
        case "stop":
            return _stop(facts)
        case "call" | "memory":
            return Park("it belongs to no conversation")


def _for_message(facts: TurnFacts) -> Action:
    if facts.progress == "given up":
        return Park("the process died while its turn was given up")
    if facts.progress == "begun":
        return _continue(facts, "run")
    if facts.unwelcome is not None:
        return TurnAway(for_author("unwelcome", facts.delivery, facts.unwelcome.text))
    if facts.announcement is not None:
        if asks_for_new_session(facts.delivery):
            return Conclude((facts.announcement,))
        return Announce(facts.announcement)
    if facts.answered:
        return _go_on(facts)
    if not facts.at_rest:
        return Settle(_("An earlier answer was interrupted")) if facts.ending else _continue(facts, "resume")
    if facts.gave_way:
        return Settle(_something_new(facts.delivery))
    if facts.kept == "perhaps":
        return Say()
    if facts.decided:
        return _counted(facts, Resume(facts.decided))
    if facts.turn == "lost":
        return Void()
    if facts.objection:
        return Conclude((for_author("form", facts.delivery, facts.objection),))
    return _by_meaning(facts)


def _by_meaning(facts: TurnFacts) -> Action:
    """Nothing is unfinished, and nothing decided waits to be resumed."""
    delivery = facts.delivery
    if facts.refused is not None:
        told = facts.refused.sentence
        return Conclude((for_author("limit", delivery, told),) if told else ())
    match facts.meaning:
        case NewTurn() if not facts.waits:
            return _counted(facts, Begin())
        case NewTurn() if facts.kept != "now":
            # The records are a copy older than the checkpoints, and do not know what waits. A turn begun over it would
            # leave calls without answers, which no model's service takes.
            return Say()
        case NewTurn():
            return Settle(_something_new(delivery))
        case AnswersClarification(clarification_id=clarification_id):
            return RecordAnswer(clarification_id)
        case Supersedes():
            return Supersede(_something_new(delivery))
        case ToldToWait(sentence=sentence):
            return Conclude((for_author("wait", delivery, sentence),))
        case Ignored():
            return Conclude()


def _go_on(facts: TurnFacts) -> Action:
    """Something was decided or answered: the thread goes on with it."""
    if facts.turn != "known":
        return ReportLoss()
    if not facts.at_rest:
        return _continue(facts, "resume")
    if not facts.decided:
        return Conclude()
    return Say() if facts.kept == "perhaps" else _counted(facts, Resume(facts.decided))


def _continue(facts: TurnFacts, verb: RunVerb) -> Action:
    """See through what has begun; a delivery that kills the process again and again is parked."""
    if not facts.taken_up and not facts.ran:
        return TakeUp()
    if facts.taken_up and facts.delivery.tries >= MOST_DEATHS:
        return Park(DIED_TOO_OFTEN)
    return Conclude() if facts.at_rest else Continue(verb)


def _counted(facts: TurnFacts, run: Begin | Resume) -> Action:
    """Run the graph, and count the try first where an earlier process may have died in one: what it had done by then
    need not be on disk, and a delivery that kills the process again and again is parked all the same."""
    if not facts.left_over or facts.ran:
        return run
    if not facts.taken_up:
        return TakeUp()
    return Park(DIED_TOO_OFTEN) if facts.delivery.tries >= MOST_DEATHS else run


def _stop(facts: TurnFacts) -> Action:
    delivery, said = facts.delivery, facts.broken_off
    if not facts.settled:
        unfinished = Unfinished(said, "stopped here") if said is not None else None
        return Settle(why_stopped(delivery.body["name"]), unfinished)
    return Conclude((notice(f"stopped:{delivery.key}", delivery.thread_id, Notice(_("Stopped."))),))


def _something_new(delivery: Delivery) -> str:
    return _("{name} sent a new message").format(name=delivery.body["name"])
