"""Tool calls of one answer: their pieces are kept as text while they stream and are read once, at the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import InvalidToolCall, ToolCall

from graph.models.arguments import MAX_CHARACTERS, Unreadable, read_arguments
from graph.models.problems import ModelProblem, Trouble

WRITTEN_CALLS = "written_calls"
"""Under which a piece of an answer carries `WrittenCalls`, in its `additional_kwargs`."""
MAX_CALLS = 64
"""Tool calls of one answer that are taken. Each is a branch of the graph and perhaps a card that somebody reads."""
MAX_ANSWER = 4 * MAX_CHARACTERS
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
        """Its arguments as they were written."""
        return "".join(self.pieces)


class WrittenCalls:
    """Collects the calls of one answer. Adding a piece takes the same time however much came before."""

    def __init__(self) -> None:
        self._calls: list[WrittenCall] = []
        """In the order in which they began."""
        self._numbered: dict[int, WrittenCall] = {}
        """By the service's number for them: where further pieces belong."""
        self._newest: WrittenCall | None = None
        """Which call the newest piece belongs to."""
        self._characters = 0
        self._pieces = 0
        self._left_out = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(
        self, number: int | None, *, call_id: str | None = None, name: str | None = None, text: str | None = None
    ) -> WrittenCall:
        """One more piece of a call; returns the call that it belongs to.

        `number`: the service's own for the call; `None`: a piece with a name begins a call, any other goes on with
        the one before. Raises `ModelProblem` when the answer does not end.
        """
        call = self._newest = self._find(number, call_id, name)
        call.call_id = call.call_id or call_id
        if name and name != call.name:
            call.name += name
        self._pieces += 1
        self._characters += len(text or "") + len(name or "")
        if self._pieces > MAX_ANSWER or self._characters > MAX_ANSWER:
            raise ModelProblem(Trouble.TOO_MUCH)
        if text and self._characters <= MAX_CHARACTERS:
            call.pieces.append(text)
        return call

    def add_all(self, others: WrittenCalls) -> None:
        """The calls that another one has collected, after those of this one."""
        self._calls += others._calls
        self._newest = others._newest or self._newest
        self._characters += others._characters
        self._left_out += others._left_out

    async def read(self, *, cut: bool) -> tuple[list[ToolCall], list[InvalidToolCall]]:
        """The calls that can be read, and those that cannot, each with what is wrong with it.

        `cut`: the answer did not end properly. Then the last call is not valid, whatever its text reads like: nobody
        knows what was still to come. Those before it are valid if their arguments are there and complete.
        """
        calls: list[ToolCall] = []
        unreadable: list[InvalidToolCall] = []
        for call in self._calls:
            try:
                arguments = await self._arguments(call, cut=cut)
            except Unreadable as problem:
                unreadable.append(_invalid(call.name, call.text, call.call_id, str(problem)))
            else:
                calls.append(ToolCall(name=call.name, args=arguments, id=call.call_id, type="tool_call"))
        if self._left_out:
            said = f"the answer held {MAX_CALLS + self._left_out} calls, of which only the first {MAX_CALLS} were taken"
            unreadable.append(_invalid("too_many_calls", "", None, said))
        return calls, unreadable

    async def _arguments(self, call: WrittenCall, *, cut: bool) -> dict[str, Any]:
        """Raises `Unreadable`."""
        last = call is self._newest or call is self._calls[-1]
        if call.complete is False or (cut and last):
            raise Unreadable("the answer was cut off before this call was complete, so it was not made")
        if self._characters > MAX_CHARACTERS:
            raise Unreadable(f"the arguments of this answer were longer than {MAX_CHARACTERS:,} characters")
        if not call.name:
            raise Unreadable("the call names no tool")
        text = call.text
        if not text.strip() and not cut:
            return {}
        return await asyncio.to_thread(read_arguments, text) if len(text) > _LONG else read_arguments(text)

    def _find(self, number: int | None, call_id: str | None, name: str | None) -> WrittenCall:
        known = self._numbered.get(number) if number is not None else (None if name else self._newest)
        # Some services number all calls 0, and tell them apart by their ids alone.
        if known is not None and not (call_id and known.call_id and call_id != known.call_id):
            return known
        call = WrittenCall()
        if number is not None:
            self._numbered[number] = call
        if len(self._calls) < MAX_CALLS:
            self._calls.append(call)
        else:
            self._left_out += 1
        return call


def _invalid(name: str, text: str, call_id: str | None, error: str) -> InvalidToolCall:
    return InvalidToolCall(name=name, args=text, id=call_id, error=error, type="invalid_tool_call")
