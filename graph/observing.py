"""What happens, as those are told who measure and trace it: in few places, each time once it has happened.

Nothing is waited for and nothing decided by it. Times are seconds since the epoch, and durations seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from policies.model import Tool, Verdict

if TYPE_CHECKING:  # what takes messages in starts before the libraries of models are imported
    from langchain_core.messages import AIMessage, AnyMessage

    from graph.ports import NotSent, ToolOutcome
    from graph.state import Turn
    from graph.usage import ModelUse


GraphRun = Literal["", "began", "went on", "resumed", "was ended"]
"""What the agent's graph did while a delivery was handled; empty: it did not run."""
HandlingEnding = Literal["done", "waits", "failed", "parked", "tried again", "broken off"]
"""How a try at a delivery ended. `done`: and with it the turn; `waits`: for people; `broken off`: by somebody."""


@dataclass(frozen=True, slots=True)
class TurnHandling:
    """Within what something happens: the handling of one delivery."""

    turn: Turn
    delivery: str
    """Key of what is handled: of the message that began the turn, or of what it goes on by."""


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A model was asked, and has answered or failed; all tries together."""

    run: TurnHandling | None
    """`None`: no turn waits for it."""
    purpose: Literal["answer", "routing", "summary", "memory"]
    model: str
    """The name under which its usage is counted."""
    began: float
    seconds: float
    first_after: float | None = None
    """Until the first piece of the answer; `None`: there was none, or it was not looked at."""
    use: ModelUse | None = None
    """What it came to, also where it failed. `None`: nobody counted."""
    trouble: str = ""
    """A `graph.models.Trouble`; empty: it answered."""
    refusals: int = 0
    """How often its service said that it is asked too often."""
    question: Sequence[AnyMessage] = ()
    answer: AIMessage | None = None


@dataclass(frozen=True, slots=True)
class ModelTryFailed:
    """A model was asked and gave no answer. It may be asked again for the same."""

    model: str
    """The name under which its usage is counted."""
    trouble: str
    """A `graph.models.Trouble`."""


@dataclass(frozen=True, slots=True)
class CallJudged:
    """The policy was asked about a tool call that the model proposes."""

    run: TurnHandling
    call_id: str
    round: int
    """Of the approval that it may lead to."""
    tool: Tool
    verdict: Verdict
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """A call goes on, or ends, after people were asked about it."""

    run: TurnHandling
    call_id: str
    round: int
    server: str
    tool: str
    rule: str
    """That asked for it."""
    outcome: Literal["approved", "edited", "rejected", "expired", "superseded", "withdrawn"]
    asked_at: float | None
    """`None`: an earlier version asked."""
    ended_at: float


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The request of a tool call has left, and an answer came, or it is known that none does."""

    run: TurnHandling
    call_id: str
    attempt: int
    round: int | None
    """Of the approval under which it was made; `None`: nobody was asked."""
    tool: Tool
    arguments: Mapping[str, Any]
    outcome: ToolOutcome | NotSent | None
    """`None`: it was broken off."""
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class DeliveryHandled:
    """A try at a delivery has ended."""

    delivery: str
    kind: str
    thread_id: str
    platform: str
    turn: Turn | None
    """`None`: it belongs to no turn."""
    ran: GraphRun
    ending: HandlingEnding
    accepted_at: float
    began: float
    seconds: float
    resumed: Sequence[tuple[str, int]] = ()
    """The approvals by which it went on: call and round."""
    trouble: str = ""
    """What it failed with, in a word or two."""
    asked: str = ""
    """What the person wrote."""
    said: str = ""
    """What the agent said last."""


@dataclass(frozen=True, slots=True)
class PostShown:
    """A post was sent, or replaced by what it shows now, or could not be."""

    key: str
    kind: str
    thread_id: str
    platform: str
    call_id: str
    """Of the call that it is about; empty: of none."""
    outcome: Literal["sent", "updated", "given up"]
    tries: int
    began: float
    seconds: float


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """Somebody said what they think of a post."""

    post: str
    """Its key."""
    thread_id: str
    person: str
    verdict: Literal["good", "bad"]
    comment: str


@dataclass(frozen=True, slots=True)
class RateLimited:
    """A service outside said that it is called too often."""

    service: str


Happening = (
    ModelAsked
    | ModelTryFailed
    | CallJudged
    | ApprovalAnswered
    | ToolCalled
    | DeliveryHandled
    | PostShown
    | FeedbackGiven
    | RateLimited
)


class Observer(Protocol):
    """Who is told what has happened."""

    def note(self, happening: Happening) -> None:
        """Take it in. Returns at once, and raises nothing."""
        ...


class Nobody:
    """Nothing is measured or traced."""

    def note(self, happening: Happening) -> None:
        """Told to nobody."""


NOBODY = Nobody()
