"""Tool calls of one answer: pieces are kept as text while they stream and are read once, strictly, at the end."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graph.json_values import DEEPEST, MOST_VALUES, Unreadable, parse_strictly, values_in
from graph.models.problems import ModelProblem, Trouble

if TYPE_CHECKING:  # the services that take messages in start without the libraries of models
    from langchain_core.messages import InvalidToolCall, ToolCall

LONGEST_ARGUMENTS = 1_000_000
"""Characters of the arguments of one answer's calls together. Five hundred pages; a tool that wants more wants a
file."""
MOST_VALUES_TOGETHER = 2 * MOST_VALUES
"""Keys and items of all calls of one answer: they are kept, copied and handed on together, which takes the event loop
up to 3 µs for each."""


def read_arguments(text: str) -> dict[str, Any]:
    """The arguments that a model wrote. An empty text is for the caller to judge: here it is not valid JSON.

    Raises `Unreadable`: not JSON, not an object, or what `parse_strictly` refuses.
    """
    if len(text) > LONGEST_ARGUMENTS:
        raise Unreadable(f"the arguments were longer than {LONGEST_ARGUMENTS:,} characters")
    try:
        # Not strict: models put plain line breaks into strings, which have one meaning only.
        value = parse_strictly(text, line_breaks=True)
    except Unreadable as problem:
        raise Unreadable(f"the arguments held {problem}") from None
    except RecursionError:
        raise Unreadable(f"the arguments were not valid JSON, or nested deeper than {DEEPEST} levels") from None
    except ValueError as error:
        where = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"the arguments were not valid JSON{where}") from None
    if not isinstance(value, dict):
        raise Unreadable("the arguments were not a JSON object")
    return value


# ----------------------------------------------------------------------- tool calls while they stream

WRITTEN_CALLS = "written_calls"
"""Under which a piece of an answer carries `WrittenCalls`, in its `additional_kwargs`."""
MOST_CALLS = 64
"""Tool calls of one answer that are taken. Each is a branch of the graph and perhaps a card that somebody reads."""
MOST_BEGUN = 10_000
"""Calls that one answer may begin, taken or not: something of each is remembered."""
LONGEST_ANSWER = 4 * LONGEST_ARGUMENTS
"""Characters of an answer, and pieces of it, after which it is not read on."""
_LONG = 20_000
"""Characters of arguments that are still read on the event loop: a few milliseconds at most."""


@dataclass(slots=True)
class WrittenCall:
    """A tool call as the model wrote it."""

    name: str = ""
    call_id: str | None = None
    pieces: list[str] = field(default_factory=list)
    """The text of its arguments."""
    complete: bool | None = None
    """Whether the service says that it is complete; `None`: it says nothing of single calls."""

    @property
    def text(self) -> str:
        """The call's arguments as they were written."""
        return "".join(self.pieces)


class WrittenCalls:
    """Collects the calls of one answer. Adding a piece takes the same time however much came before."""

    def __init__(self) -> None:
        self.began: float | None = None
        """When the first piece came, in seconds of `time.monotonic`; `None`: none has come."""
        self._calls: list[WrittenCall] = []
        """The calls in the order in which they began."""
        self._numbered: dict[int, WrittenCall] = {}
        """The service's number for a call → the call: some pieces name no more than the number."""
        self._identified: dict[tuple[int | None, str], WrittenCall] = {}
        """That number and the service's id for a call → the call."""
        self._numbers: set[int | None] = set()
        """Those under which a call has begun."""
        self._alike = False
        """Whether two calls began under one number, or both without any. They may be one call in truth: there are
        services that give each piece an id, and a name, of its own."""
        self._newest: WrittenCall | None = None
        """Which call the newest piece belongs to."""
        self._characters = 0
        self._pieces = 0
        self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def characters(self) -> int:
        """How many were written of names and arguments."""
        return self._characters

    def add(
        self, number: int | None, *, call_id: str | None = None, name: str | None = None, text: str | None = None
    ) -> WrittenCall:
        """One more piece of a call; returns the call that it belongs to.

        `number`: the service's own for the call; `None`: a piece with a name begins a call, any other goes on with
        the one of its id, or without an id with the one before. Raises `ModelProblem` when the answer does not end,
        or begins one call after the other.
        """
        if self.began is None:
            self.began = time.monotonic()
        call = self._newest = self._find(number, call_id, name)
        call.call_id = call.call_id or call_id
        if name and name != call.name:
            call.name += name
        self._pieces += 1
        self._characters += len(text or "") + len(name or "")
        if self._pieces > LONGEST_ANSWER or self._characters > LONGEST_ANSWER:
            raise ModelProblem(Trouble.TOO_MUCH)
        if text and self._characters <= LONGEST_ARGUMENTS:
            call.pieces.append(text)
        return call

    def add_all(self, others: WrittenCalls) -> None:
        """The calls that another one has collected, after those of this one."""
        self._calls += others._calls
        self._newest = others._newest or self._newest
        self._alike = self._alike or others._alike
        self._characters += others._characters
        self._left_out += others._left_out

    async def read(self, *, cut: bool) -> tuple[list[ToolCall], list[InvalidToolCall]]:
        """The calls that can be read, and those that cannot, each with what is wrong with it.

        `cut`: the answer did not end properly. Then the last call is not valid, whatever its text reads like: nobody
        knows what was still to come. Those before it are valid if their arguments are there and complete.
        """
        calls: list[ToolCall] = []
        unreadable: list[InvalidToolCall] = []
        values = 0
        for call in self._calls:
            await asyncio.sleep(0)  # each takes milliseconds
            try:
                arguments = await self._arguments(call, cut=cut)
                values += values_in(arguments)
                if values > MOST_VALUES_TOGETHER:
                    raise Unreadable(  # noqa: TRY301 (as what is wrong with the arguments by themselves)
                        f"the arguments of this answer held more than {MOST_VALUES_TOGETHER:,} values together"
                    )
            except Unreadable as problem:
                unreadable.append(_invalid(call.name, call.text, call.call_id, str(problem)))
            else:
                calls.append({"name": call.name, "args": arguments, "id": call.call_id, "type": "tool_call"})
        if self._left_out:
            said = (
                f"the answer held {MOST_CALLS + self._left_out} calls, of which only the first {MOST_CALLS} were taken"
            )
            unreadable.append(_invalid("too_many_calls", "", None, said))
        return calls, unreadable

    async def _arguments(self, call: WrittenCall, *, cut: bool) -> dict[str, Any]:
        """Raises `Unreadable`."""
        last = call is self._newest or call is self._calls[-1]
        if call.complete is False or (cut and last):
            raise Unreadable("the answer was cut off before this call was complete, so it was not made")
        if self._characters > LONGEST_ARGUMENTS:
            raise Unreadable(f"the arguments of this answer were longer than {LONGEST_ARGUMENTS:,} characters")
        if not call.name:
            raise Unreadable("the call names no tool")
        text = call.text
        if not text.strip() and not cut:
            if self._alike or not all(each.name for each in self._calls):
                # Never `{}`, which may mean everything: its arguments may be what passes for another call.
                raise Unreadable(
                    "no arguments came with this call, or they came in pieces that do not say whose they are"
                )
            return {}
        return await asyncio.to_thread(read_arguments, text) if len(text) > _LONG else read_arguments(text)

    def _find(self, number: int | None, call_id: str | None, name: str | None) -> WrittenCall:
        begins = number is None and bool(name)
        known = None if begins else self._begun(number, call_id)
        if known is None:
            known = self._begin(number)
        if call_id and ((number, call_id) in self._identified or len(self._identified) < MOST_CALLS):
            self._identified[number, call_id] = known
        if number is not None:
            self._numbered[number] = known
        return known

    def _begun(self, number: int | None, call_id: str | None) -> WrittenCall | None:
        """The call that has begun under this number and this id, as far as they are said."""
        if call_id and (identified := self._identified.get((number, call_id))):
            return identified
        known = self._newest if number is None else self._numbered.get(number)
        # Some services number all calls 0, and tell them apart by their ids alone.
        is_another = known is not None and call_id and known.call_id and call_id != known.call_id
        return None if is_another else known

    def _begin(self, number: int | None) -> WrittenCall:
        call = WrittenCall()
        self._alike = self._alike or number in self._numbers
        self._numbers.add(number)
        if len(self._calls) < MOST_CALLS:
            self._calls.append(call)
        else:
            self._left_out += 1
            if self._left_out > MOST_BEGUN:
                raise ModelProblem(Trouble.TOO_MUCH)
        return call


def _invalid(name: str, text: str, call_id: str | None, error: str) -> InvalidToolCall:
    return {"name": name, "args": text, "id": call_id, "error": error, "type": "invalid_tool_call"}
