"""Tools to call, and what can come of a call."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graph.fields import FormField
from policies.model import Tool, canonical_json


@dataclass(frozen=True, slots=True)
class Given:
    """What a person answered to a question that a tool put in the middle of a call."""

    number: int
    """Of the question within its call, from 1."""
    action: Literal["accept", "decline", "cancel"]
    """As in MCP's elicitation: the answer, a no, or gone away without either."""
    values: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """`QuestionPut.digest` of the question: in a call that is made anew, only the same question gets the answer."""


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom and in which thread a tool is called."""

    person: str
    thread_id: str
    call_id: str
    answers: tuple[Given, ...] = ()
    """What this person answered to the questions that the tool put in this call so far; a link that was opened is an
    answer without values."""
    over: int = 0
    """How many of these were given before the person chose to make the call again, its outcome being unknown."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool did what it was asked."""

    text: str
    """For the model: bounded, safe to show."""
    whole: str = ""
    """The whole result for the record; empty when `text` is already whole."""
    owner: str | None = None
    """Person id, when the result was fetched through that person's own account."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool said that it failed, or the call was not sent at all: nothing is left open."""

    text: str
    """A sentence safe to show to the model and to people."""
    owner: str | None = None
    """Person id, when a server said it to that person's own account."""


@dataclass(frozen=True, slots=True)
class BrokeOff:
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
    """Of the question within its call, from 1, when the call waits for it; 0: the call has ended with it."""
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
    """Of the question within its call, from 1."""
    message: str
    fields: tuple[FormField, ...]
    schema: Mapping[str, Any]
    """JSON schema that the answer must satisfy."""

    @property
    def digest(self) -> str:
        """SHA-256, hexadecimal, of what was asked."""
        return hashlib.sha256(canonical_json([self.message, self.schema]).encode("utf-8", "surrogatepass")).hexdigest()


ToolOutcome = Succeeded | Failed | BrokeOff | SignInNeeded | AccountNeeded | QuestionPut


@dataclass(frozen=True, slots=True)
class Ready:
    """A call whose request can leave at once: its session is up, its tool is offered, its arguments fit, whose account
    it uses is looked up."""

    send: Callable[[Progress], Awaitable[ToolOutcome | NotSent]]
    """Sends it; to be called once at most. Never raises, cancellation aside: every failure is an outcome."""
    goes_on: bool = False
    """Whether it was sent before, and waits in the middle for an answer: what is sent is that."""


Prepared = Ready | Failed | BrokeOff | AccountNeeded | QuestionPut | SignInNeeded
"""`Failed`: it cannot be sent, and nothing was. `BrokeOff`: it had been sent and put a question, waits for the answer
no more, and may not be made again unasked. `QuestionPut`, `SignInNeeded`: it still waits for what it asked before."""


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

    def available(self) -> Sequence[Tool]:
        """The tools that can be called now, in a stable order."""
        ...

    async def settled(self, timeout: float) -> bool:  # noqa: ASYNC109  # a question with a limit, not a deadline
        """Wait, `timeout` seconds at most, until every server is connected or has failed to; whether they have."""
        ...

    def unavailable(self) -> Sequence[Unavailable]:
        """The servers that are configured and cannot be used now, with a reason safe to show."""
        ...

    def find(self, full_name: str) -> Tool | None:
        """The tool the model calls `full_name`; `None` when there is none (any more)."""
        ...

    def prepared(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> AbstractAsyncContextManager[Prepared]:
        """All that a call needs before it is sent, which may take a while; nothing is sent yet. It is ready only inside
        the context. Never raises, cancellation aside."""
        ...

    async def give_up(self, call_id: str) -> None:
        """A call that waits for an answer of a person will not go on: what is open of it is ended. Raises nothing."""
        ...
