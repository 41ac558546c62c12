"""What happens in a turn, as it happens, for streams: text while it is written, calls, and what people are asked.

Where the turn stands is read from the records, so that it is right whichever replica handles the turn and wherever
somebody decides. Only text that is being written comes from the live board; what of it never arrived here is sent once
it is in the records. So nothing is said twice and nothing is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from operator import itemgetter
from time import monotonic
from typing import Protocol, TypeVar

from adapters.api.endings import STOPPED
from adapters.api.turns import WHILE_WRITTEN, ApiTurns
from adapters.shared.live.board import WrittenSoFar
from adapters.shared.live.hub import EndedError, Reader
from bot.characters import is_suspicious
from bot.conversations import CallState, TurnState
from bot.domain import ClarificationView
from bot.identity.principal import Principal
from bot.records.database import is_outage
from bot.safe_text import visible
from bot.task_threads import turn_of_call

HEARTBEAT_SECONDS = 15.0
"""Proxies close what is silent for longer; 30 to 60 s is usual."""
RUNNING_SECONDS = 0.3
"""Seconds between two looks at a turn that runs, and between two looks whether the client is still there."""
WAITING_SECONDS = 1.0
"""The same, of a turn that waits for people, where nothing was heard of its thread."""
WHOLE_SECONDS = 5.0
"""Seconds after which all of a turn is read again, though nothing seems to have changed."""
BETWEEN = "\n\n"
"""Stands between two things that the bot said in one turn."""


@dataclass(frozen=True, slots=True)
class Text:
    """The next piece of what the bot says."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence(Text):
    """A piece that is no answer: a notice, or what the turn waits for."""


@dataclass(frozen=True, slots=True)
class Halted(Sentence):
    """An operator has stopped everything: nothing more happens until it goes on."""


@dataclass(frozen=True, slots=True)
class CallChanged:
    """A tool call has come to this."""

    call: CallState


@dataclass(frozen=True, slots=True)
class ApprovalNeeded:
    """People are asked about a call."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class ApprovalEnded:
    """People are not asked any more."""

    approval_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing has happened for a while."""


class Interrupted(Exception):  # noqa: N818  # what has happened
    """This process ends, or does not hear any more what happens. The turn goes on."""


class _OfCall(Protocol):
    """What is about a call."""

    @property
    def call_id(self) -> str: ...


OfCallT = TypeVar("OfCallT", bound=_OfCall)
Happening = Text | CallChanged | ApprovalNeeded | ApprovalEnded | Silence


def says(view: ClarificationView) -> str:
    """Returns a question as one text."""
    return visible("\n".join(part for part in (view.question, view.context) if part))


def sentences(state: TurnState) -> list[str]:
    """Returns what else there is to say about a turn, in words: notices, and what it waits for beside approvals."""
    return [
        *(visible(notice.text) for notice in state.notices),
        *(says(view) for view in state.clarifications),
        *(
            f"To go on, I need an account connected: sign in to {visible(view.service or view.server)}."
            for view in state.sign_ins
            if view.status == "open"
        ),
        *(
            f"What came of {view.tool} ({view.server}) is not known: please say in the conversation what to do."
            for view in state.outcomes
            if view.status == "open"
        ),
    ]


@dataclass(slots=True)
class Before:
    """What there was in a conversation before a message: it may go on with the turn of an earlier one."""

    said: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    """Calls that were over."""
    asked: frozenset[str] = frozenset()
    """Approvals that were settled."""
    sentences: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: TurnState | None) -> Before:
        """As a turn stood; `None`: there was none."""
        if state is None:
            return cls()
        return cls(
            frozenset(said.message_id for said in state.said),
            frozenset(call.call_id for call in state.calls if call.status not in {"waiting", "running"}),
            frozenset(approval_id for approval_id, status in state.asked.items() if status != "pending"),
            tuple(sentences(state)),
        )


class SentText:
    """One thing that the bot says, as far as it was sent.

    Text is sent up to a character that looks the same whatever comes next, so that the pieces, made visible each for
    itself, are the whole made visible.
    """

    def __init__(self) -> None:
        self._parts: object = None
        self._taken = 0
        self._raw: list[str] = []
        """What was taken of it."""
        self._held = ""
        """The end of that, which was not sent yet."""
        self._is_other = False
        """Whether another text is being written instead of what was sent."""
        self.is_whole = False

    def more(self, written: WrittenSoFar, *, to_its_end: bool = False) -> str:
        """Returns what can be sent now of a text that is being written. `to_its_end`: nothing more comes of it."""
        if self.is_whole or self._is_other:
            return ""
        if self._parts is not None and self._parts is not written.parts:
            self._is_other = bool(self._raw)
            return ""
        self._parts = written.parts
        new = "".join(written.parts[self._taken :])
        self._taken = len(written.parts)
        self._raw.append(new)
        text = self._held + new
        end = len(text) if to_its_end else _end_of_certain(text, len(self._held) - 1)
        self._held = text[end:]
        return visible(text[:end])

    def rest(self, text: str) -> str:
        """Returns what is missing, now that the whole text is known."""
        if self.is_whole:
            return ""
        self.is_whole = True
        taken = "".join(self._raw)
        if not text.startswith(taken):
            # It was begun by a process that died, and written anew by another.
            return (BETWEEN if len(taken) > len(self._held) else "") + visible(text)
        return visible(text[len(taken) - len(self._held) :])


def _end_of_certain(text: str, looked_until: int) -> int:
    """Where the longest beginning ends that looks the same whatever follows: between two characters that are seen; not
    before `looked_until`."""
    for end in range(len(text) - 1, max(0, looked_until), -1):
        if _is_plain(text[end - 1]) and _is_plain(text[end]):
            return end
    return 0


def _is_plain(character: str) -> bool:
    """Whether a character is seen, and neither changes its neighbours nor is changed by them."""
    if character.isascii():
        return character.isprintable() or character == "\n"
    return character.isalnum() and not is_suspicious(character)


@dataclass
class TurnFollower:
    """Follows one turn from its message on.

    Args:
        is_read: whether anybody still wants to know.
        waits_for_approvals: whether to go on while people are asked about calls, and nothing else is going on.
    """

    turns: ApiTurns
    principal: Principal
    thread_id: str
    message: str
    before: Before
    is_read: Callable[[], bool]
    waits_for_approvals: bool = False
    _turn: str = ""
    _sent: dict[str, SentText] = field(default_factory=dict)
    _calls: dict[str, str] = field(default_factory=dict)
    """Call → how it stood when it was told of last."""
    _asked: dict[str, str] = field(default_factory=dict)
    _sentences: list[str] = field(default_factory=list)
    _speaking: SentText | None = None
    _is_running: bool = False
    """Whether it ran when it was looked at last."""
    _is_halted: bool = False
    """Whether it was told that everything is stopped."""
    _marks: object = None
    """As they were before the turn was read last (`ApiTurns.marks`)."""
    _whole_at: float = 0.0
    """When all of it is read again, whatever they are."""

    async def happenings(self) -> AsyncGenerator[Happening, None]:
        """Yields what happens until the turn is over, or waits. Raises `Interrupted`; ends when nobody wants to know
        any more."""
        self._sentences = list(self.before.sentences)
        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(self.turns.watching(self.principal, self.thread_id))
            look_at, every, quiet_since = 0.0, RUNNING_SECONDS, monotonic()
            while self.is_read():
                told = False
                written = self._being_written()
                is_begun_anew = any(each not in self._sent for each in written)
                looks = monotonic() >= look_at or is_begun_anew
                state = await self._look() if looks else None
                for happening in self._news(state, written | self._being_written()):
                    told = True
                    yield happening
                if state is not None:
                    if self._is_over(state):
                        return
                    every = RUNNING_SECONDS if state.status == "running" else WAITING_SECONDS
                    self._is_running = state.status == "running"
                for halted in self._halts():
                    told = True
                    yield halted
                if looks:
                    look_at = monotonic() + every
                if told:
                    quiet_since = monotonic()
                elif monotonic() - quiet_since >= HEARTBEAT_SECONDS:
                    quiet_since = monotonic()
                    yield Silence()
                try:
                    if await _heard(reader, max(0.0, min(RUNNING_SECONDS, look_at - monotonic()))):
                        look_at = 0.0
                except EndedError:
                    reader = await stack.enter_async_context(self.turns.watching(self.principal, self.thread_id))
                    await self._heard_again(reader)
                    look_at = 0.0

    async def _heard_again(self, reader: Reader) -> None:
        try:
            await reader.next(0.05)
        except EndedError:
            raise Interrupted from None

    async def _look(self) -> TurnState | None:
        """Where the turn stands; `None`: as before, or it cannot be read at the moment."""
        try:
            if self._turn:
                marks = await self.turns.marks(self.thread_id, self.message, self._turn)
                if marks == self._marks and monotonic() < self._whole_at:
                    return None
                self._marks = marks
            self._whole_at = monotonic() + WHOLE_SECONDS
            return of_this_turn(await self.turns.state(self.principal, self.thread_id, self.message))
        except Exception as error:
            if not is_outage(error):
                raise
            await asyncio.sleep(RUNNING_SECONDS)
            return None

    def _is_over(self, state: TurnState) -> bool:
        return state.status == "ended" or (
            state.status == "waiting" and not (self.waits_for_approvals and state.approvals)
        )

    # ------------------------------------------------------------------------------------------- what is new

    def _being_written(self) -> dict[str, WrittenSoFar]:
        written = self.turns.board.being_written(self.thread_id) if self._turn else {}
        return {message_id: text for message_id, text in written.items() if self._is_ours(message_id)}

    def _is_ours(self, message_id: str) -> bool:
        return message_id.rpartition(".")[0] == self._turn and message_id not in self.before.said

    def _news(self, state: TurnState | None, written: Mapping[str, WrittenSoFar]) -> Iterator[Happening]:
        """What has happened since the last look, in the order in which it happened.

        Args:
            state: `None`: the records were not read.
            written: before they were read, or since: what is said leaves the board when it is in the records.
        """
        if state is not None:
            self._turn = state.delivery
        said = {each.message_id: each.text for each in state.said if self._is_ours(each.message_id)} if state else {}
        calls = [call for call in state.calls if call.call_id not in self.before.calls] if state else []
        unfinished = [each for each, sent in self._sent.items() if not sent.is_whole and each not in said]
        is_at_rest = state is not None and state.status != "running"
        left = [] if is_at_rest else unfinished
        last = max([*(_step_of(each) for each in written), *(_place_of(call.call_id)[0] for call in calls)], default=-1)
        news: list[tuple[int, int, str | CallState]] = [(_step_of(each), -1, each) for each in {*written, *said, *left}]
        news += [(*_place_of(call.call_id), call) for call in calls]
        for step, _, each in sorted(news, key=itemgetter(0, 1)):
            if isinstance(each, CallState):
                yield from self._call(each)
                continue
            sent = self._sent.setdefault(each, SentText())
            if each in said:
                yield from self._piece(sent, sent.rest(said[each]))
                continue
            if each not in written:
                return  # the rest of it is in the records by now, and comes before what follows
            is_over = is_at_rest or step < last or any(_place_of(call.call_id)[0] == step for call in calls)
            yield from self._piece(sent, sent.more(written[each], to_its_end=is_over))
            if written[each].is_cut:
                return  # what comes after it is told after it
        if state is not None:
            yield from self._approvals(state.asked)
            if state.status != "running":
                yield from self._in_words(state)

    def _piece(self, sent: SentText, text: str) -> Iterator[Text]:
        if text:
            between = BETWEEN if self._speaking is not None and self._speaking is not sent else ""
            self._speaking = sent
            yield Text(between + text)

    def _in_words(self, state: TurnState) -> Iterator[Happening]:
        for sentence in sentences(state):
            if sentence not in self._sentences:
                self._sentences.append(sentence)
                yield from (Sentence(each.text) for each in self._piece(SentText(), sentence))

    def _halts(self) -> Iterator[Happening]:
        is_stopped = self._is_running and self.turns.is_stopped()
        if is_stopped and not self._is_halted:
            yield from (Halted(each.text) for each in self._piece(SentText(), STOPPED))
        self._is_halted = is_stopped

    def _call(self, call: CallState) -> Iterator[Happening]:
        told = self._calls.get(call.call_id)
        if told == call.status:
            return
        if call.status in {"done", "failed", "unknown"} and told != "running":
            yield CallChanged(replace(call, status="running"))
        self._calls[call.call_id] = call.status
        yield CallChanged(call)

    def _approvals(self, asked: Mapping[str, str]) -> Iterator[Happening]:
        for approval_id, status in asked.items():
            if approval_id in self.before.asked or self._asked.get(approval_id) == status:
                continue
            is_new, self._asked[approval_id] = approval_id not in self._asked, status
            if is_new:
                yield ApprovalNeeded(approval_id)
            if status != "pending":
                yield ApprovalEnded(approval_id, status)


def of_this_turn(state: TurnState) -> TurnState:
    """Without what a later turn of the conversation waits for."""
    found = replace(
        state,
        calls=_only_of(state.delivery, state.calls),
        approvals=_only_of(state.delivery, state.approvals),
        clarifications=_only_of(state.delivery, state.clarifications),
        sign_ins=_only_of(state.delivery, state.sign_ins),
        outcomes=_only_of(state.delivery, state.outcomes),
    )
    waits = found.approvals or found.clarifications or found.sign_ins or found.outcomes
    return replace(found, status="ended") if state.status == "waiting" and not waits else found


def _only_of(turn: str, of_calls: Sequence[OfCallT]) -> tuple[OfCallT, ...]:
    return tuple(each for each in of_calls if turn_of_call(each.call_id) == turn)


async def _heard(reader: Reader, within: float) -> bool:
    """Whether something was heard within so many seconds that stands in the records, rather than on the board."""
    frame = await reader.next(within)
    return frame is not None and not frame.startswith(WHILE_WRITTEN)


def _step_of(message_id: str) -> int:
    step = message_id.rpartition(".")[2]
    return int(step) if step.isdigit() else 0


def _place_of(call_id: str) -> tuple[int, int]:
    step, index = call_id.rsplit(".", 2)[1:]
    return (int(step), int(index)) if step.isdigit() and index.isdigit() else (0, 0)
