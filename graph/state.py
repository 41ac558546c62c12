"""What the graph carries from step to step: plain JSON or LangChain messages, so that it survives a restart."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.graph.message import add_messages
from langgraph.types import Command

from graph.files import ListedFile
from graph.interrupts import PlanEnded
from graph.memory import Recalled
from graph.ports import InTurn, Judged, Live, TaskState, Unfinished
from graph.presentation import AskedAgain
from graph.usage import Usage
from policies.judging import Policy


class TurnOptions(TypedDict, total=False):
    """How a turn differs from others, as whoever began it asked for. Each can only take away from what is allowed."""

    mode: str
    """A `policies.model.Mode`: the stricter of it and the configured one counts."""
    tools: bool
    """False: the model is given no tools."""
    asks: bool
    """False: calls that would be asked about are not made."""
    approval_seconds: float
    """Seconds after which approvals of the turn expire at the latest."""
    route_to: str
    """Where people are asked when the rule routes it to no place, as `routeTo` has it."""


class Turn(TypedDict):
    """The turn: whose it is and what it began with. Fixed from the message that begins the turn until the agent is at
    rest again."""

    delivery: str
    requester: str
    requester_name: str
    time_zone: str
    """IANA name."""
    platform: str
    channel: str
    thread_id: str
    client: NotRequired[str]
    """Name of the program through which another agent calls (platform `mcp`), as it calls itself."""
    agent: NotRequired[str]
    """Name of the agent that works on it (`graph.agents`); absent: the default one."""
    options: NotRequired[TurnOptions]
    said: NotRequired[list[str]]
    """Of the turn of a task: what the requester wrote in the turn that it is part of. Its message is an instruction of
    the agent that made the plan."""
    files: NotRequired[list[ListedFile]]
    """Of the turn of a task: what was handed over in the conversation that it is part of."""
    tasks: NotRequired[int]
    """Of the turn of a task: how many tasks the plan has (`graph.plans.most_calls`)."""


class State(TypedDict, total=False):
    """A conversation."""

    messages: Annotated[list[AnyMessage], add_messages]
    turn: Turn
    summary: str
    """What came before the messages that are still carried."""
    files: list[ListedFile]
    """What was handed over with them."""
    categories: list[str]
    """The tool types the router picked for this turn; empty: all."""
    usage: Usage
    """What the turn has used of language models so far."""


class ToolCallState(TypedDict, total=False):
    """One tool call in its own branch."""

    call: dict[str, Any]
    """`id` (ours), `name` (`{server}__{tool}`), `args`, `error` when the model's arguments could not be read, and
    `quote`: the requester's words that ask for it, as the model gave them."""
    proposed: dict[str, Any]
    """The arguments as the model wrote them, once an approver has changed them."""
    given: dict[str, str]
    """Of those that an approver has changed, the values as JSON, as the model may be told them."""
    turn: Turn
    asked: dict[str, Any] | None
    """The `ApprovalAsked` that waits or was answered; `None`: none was needed when the call was last judged."""
    rounds: int
    """How often approval of the call was asked for: a later asking is never answered by what was said to an earlier."""
    approved: dict[str, Any] | None
    """The `Approved` answer to `asked`."""
    notes: list[list[str]]
    """`Approved.notes` of earlier askings: the call was asked about again since."""
    spoken: list[dict[str, Any]]
    """What the model said in the turn so far, each a `Spoken`: shown before the call's card."""
    said: list[str]
    """What the requester wrote in the turn, without what they quoted."""
    before: int
    """How many tool calls the model made before this one in the turn."""
    known_ids: list[dict[str, Any]]
    """What earlier results of the turn say that the ids among its arguments stand for, each a `KnownId`, with the name
    by which the model calls the tool as its `source`."""
    known_before: list[dict[str, Any]]
    """What they stood for on an earlier card of the same call, likewise; sources as people read them."""
    again: AskedAgain
    """Why an approval that was given does not hold any more (`CallPresentation.again`), until it is asked again."""
    asked_at: float
    """When people were asked about it last, in seconds since the epoch."""
    requesters: list[str]
    """The requester, and whoever edited the arguments since."""
    sign_in_id: str
    question: dict[str, Any]
    """What the tool asks in the middle of the call: the fields of a `QuestionPut`."""
    link: int
    """`SignInNeeded.number` of the link that is waited for; 0: no call waits for it."""
    signed_in: int
    """How often somebody signed in so that the call is made again, since a person last chose that it is."""
    answers: Annotated[list[dict[str, Any]], operator.add]
    """What the requester answered to such questions so far, each the fields of a `Given`."""
    over: int
    """`Caller.over`: how many of these are of tries that somebody has settled."""
    stale: int
    """How many of these were given before the arguments were edited: they answer no question about the new ones."""
    attempt: int
    """The one whose outcome is unknown."""
    known: str
    """`AttemptUnknown.text` of it."""
    known_to: str | None
    """`AttemptUnknown.owner` of it."""
    messages: Annotated[list[ToolMessage], operator.add]


class ToolCallResult(TypedDict):
    """What a branch gives back to the conversation: nothing but its one ToolMessage."""

    messages: Annotated[list[ToolMessage], operator.add]


class Silent:
    """Nobody watches."""

    def text(self, message_id: str, delta: str) -> None:
        """Shown to nobody."""

    def status(self, text: str) -> None:
        """Shown to nobody."""

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """Shown to nobody."""

    def end(self, *, waiting: bool) -> None:
        """Nothing was shown."""

    def leave(self) -> None:
        """Nothing was shown."""


@dataclass(frozen=True, slots=True)
class KeptJudgement:
    """What the policy gate found of a call, for the step that makes it (`graph.judging.judged_for_making`)."""

    judged: Judged
    policy: Policy
    """The policy by which it was judged."""
    until: float
    """Seconds of `time.monotonic`."""


class BegunCall:
    """A call that was begun before its run comes to it."""

    def __init__(self, ends: asyncio.Task[Command[str]]) -> None:
        """`ends`: gives what its branch does next."""
        self.ends = ends
        self.has_left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when its request leaves, or it ends without one."""
        ends.add_done_callback(lambda _: self.note())

    def note(self) -> None:
        """Note that its request leaves now."""
        if not self.has_left.done():
            self.has_left.set_result(None)


class AskingOrder:
    """In which order people are asked about the calls that the model makes at once: in that of the calls, however long
    it takes to judge each. The branches of the calls begin in that order, and nobody waits for one that has not."""

    def __init__(self) -> None:
        self._judged_now: dict[str, tuple[int, asyncio.Event]] = {}
        """Call → its number, and what is set when people are asked about it or it turns out that they need not be."""

    @contextmanager
    def judging(self, call_id: str, number: int) -> Iterator[InTurn]:
        """Within it a call is judged. Gives what waits until people have been asked about those before it.

        Args:
            number: how many calls the model made before it in the turn.
        """
        self._judged_now[call_id] = number, asyncio.Event()
        try:
            yield partial(self._turn_of, call_id)
        finally:
            self._let_pass(call_id)

    async def _turn_of(self, call_id: str) -> None:
        number, _ = self._judged_now[call_id]
        while (before := min(self._judged_now.values(), key=lambda each: each[0]))[0] < number:
            await before[1].wait()
        self._let_pass(call_id)

    def _let_pass(self, call_id: str) -> None:
        if call_id in self._judged_now:
            _, asked = self._judged_now.pop(call_id)
            asked.set()


@dataclass(frozen=True, slots=True)
class RunContext:
    """What one run is told besides the state; not kept."""

    settling: str | None = None
    """Why the turn is being ended, when it is: then no model is asked and no tool is started."""
    ended_plans: Mapping[str, PlanEnded] = field(default_factory=dict)
    """What came of plans of a turn that is being ended, by the ids of their calls."""
    unfinished: Unfinished | None = None
    """What the model had said of its answer when the turn was ended in the middle of it."""
    live: Live = field(default_factory=Silent)
    now: float = 0.0
    """When the run began, in seconds since the epoch: what the model is told, at each step the same."""
    clock: Callable[[], float] = time.time
    """Returns seconds since the epoch: calls are judged by the time at which they are, since a run may take an hour."""
    delivery: str = ""
    """Key of the delivery that is handled by it."""
    judged: dict[str, KeptJudgement] = field(default_factory=dict)
    """What was judged in this run and may be made now, by the ids of calls."""
    asking: AskingOrder = field(default_factory=AskingOrder)
    stopped: dict[str, ToolCallState] = field(default_factory=dict)
    """The calls that stopped in this run until people decide, by the ids of calls, as they are made when approved
    unchanged."""
    recalled: dict[str, Recalled] = field(default_factory=dict)
    """What the model is told of earlier conversations, by the delivery of its turn: read once in a run, and in no
    checkpoint."""
    begun: dict[str, BegunCall] = field(default_factory=dict)
    """Calls that were begun before the run comes to them, by their ids."""

    def leaves(self, call_id: str) -> None:
        """Note that the request of a call leaves now."""
        if call_id in self.begun:
            self.begun[call_id].note()


def turn_of(values: Mapping[str, Any]) -> Turn:
    """The turn of a state. Raises `KeyError` before the first message."""
    turn: Turn = values["turn"]
    return turn
