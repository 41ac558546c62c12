"""One call of a tool together with what its server asks the requester on the way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
import structlog
from mcp.types import ElicitRequestURLParams, ElicitResult

from adapters.tool_servers.connection import Connection
from adapters.tool_servers.incoming import Question
from adapters.tool_servers.questions import Refused, form_question, link_question
from adapters.tool_servers.redaction import Redact
from adapters.tool_servers.replies import SessionLost
from adapters.tool_servers.waiting import nobody
from graph.ports import (
    BrokeOff,
    Caller,
    Failed,
    Given,
    NotSent,
    Progress,
    QuestionPut,
    SignInNeeded,
    Succeeded,
    ToolOutcome,
)
from policies.model import Tool

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Open:
    """What the call waits for."""

    question: Question
    put: QuestionPut | SignInNeeded


class Talk:
    """One call and its questions, sent at once. `go_on` until it gives an outcome that is no question; then it is
    over."""

    def __init__(
        self, connection: Connection, tool: Tool, arguments: dict[str, Any], caller: Caller, redact: Redact
    ) -> None:
        self.connection = connection
        self.tool = tool
        self.arguments = arguments
        self.caller = caller
        self._redact = redact
        self._asked = 0
        self._has_asked = False
        self._notices: list[str] = []
        self._open: _Open | None = None
        self._call = connection.begin(tool.name, arguments, nobody)

    @property
    def put(self) -> QuestionPut | SignInNeeded | None:
        """What it waits for; `None`: it does not wait."""
        return self._open.put if self._open else None

    @property
    def has_asked(self) -> bool:
        """Whether its server has put any question."""
        return self._has_asked

    @property
    def is_over(self) -> bool:
        """Whether no answer can reach it any more: the server gave up, or is gone."""
        return self._call.answer.done() or self.connection.lost.done()

    def is_of(self, tool: Tool, arguments: dict[str, Any], person: str) -> bool:
        """Whether it is this call, for this person."""
        mine = (self.tool.full_name, self.tool.schema_hash, self.tool.fingerprint, self.arguments, self.caller.person)
        return mine == (tool.full_name, tool.schema_hash, tool.fingerprint, arguments, person)

    async def go_on(self, progress: Progress) -> ToolOutcome | NotSent | SessionLost:
        """Wait for the outcome, or for a question that only the requester can answer.

        Raises nothing but `CancelledError`, and then the server was told to stop.
        """
        self._call.progress = progress
        while True:
            happened = await self.connection.advance(self._call)
            if not isinstance(happened, Question):
                return self._noticed(happened)
            self._has_asked = True
            put = self._read(happened)
            if isinstance(put, Refused):
                log.warning("tool_server_question_refused", server=self.tool.server, tool=self.tool.name)
                if put.notice not in self._notices:  # one that asks again and again is told of once
                    self._notices.append(put.notice)
                progress(put.notice, None)
                await _reply(happened, ElicitResult(action="decline"))
            elif given := self._known_answer(put):
                await _reply(happened, _result_of(given))
            else:
                put = self._numbered(put)
                self._open = _Open(happened, put)
                return put

    async def answer(self, given: Given) -> None:
        """Answer what it waits for."""
        if self._open:
            opened, self._open = self._open, None
            link = isinstance(opened.put, SignInNeeded)  # has no values
            await _reply(opened.question, ElicitResult(action=given.action) if link else _result_of(given))

    async def end(self) -> None:
        """The requester will not answer: the server is told so, and nobody waits for the call any more."""
        if self._open and not self.is_over:
            await _reply(self._open.question, ElicitResult(action="cancel"))
        self.connection.abandon(self._call)

    def _read(self, question: Question) -> QuestionPut | SignInNeeded | Refused:
        # All are counted, whatever they are: after the first one the tool may have acted.
        self._asked += 1
        wanted, server = question.params, self.tool.server
        if isinstance(wanted, ElicitRequestURLParams):
            needed = link_question(server, wanted.message, wanted.url, wanted.elicitationId, self._redact)
            return replace(needed, number=self._asked) if isinstance(needed, SignInNeeded) else needed
        return form_question(server, wanted.message, wanted.requestedSchema, self._asked, self._redact)

    def _known_answer(self, put: QuestionPut | SignInNeeded) -> Given | None:
        """The answer that was given to the very same question before the call had to be made anew."""
        if not isinstance(put, QuestionPut):
            return None
        same = (given for given in self.caller.answers if (given.number, given.digest) == (put.number, put.digest))
        return next(same, None)

    def _numbered(self, put: QuestionPut | SignInNeeded) -> QuestionPut | SignInNeeded:
        """A question that was not asked before gets no number that another one of the same call had."""
        if not isinstance(put, QuestionPut):
            return put
        self._asked = max(self._asked, *(given.number + 1 for given in self.caller.answers), 0)
        return replace(put, number=self._asked)

    def _noticed(self, outcome: ToolOutcome | NotSent | SessionLost) -> ToolOutcome | NotSent | SessionLost:
        """The outcome with what was refused on the way, for the model to pass on."""
        told = " ".join(self._notices)
        if told and isinstance(outcome, Succeeded):
            whole = outcome.whole and f"{told}\n\n{outcome.whole}"
            return replace(outcome, text=f"{told}\n\n{outcome.text}", whole=whole)
        if told and isinstance(outcome, Failed | BrokeOff):
            return replace(outcome, text=f"{told} {outcome.text}")
        return outcome


async def _reply(question: Question, result: ElicitResult) -> None:
    # What comes of it shows in the call: a server that is gone gives it no answer.
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await question.reply(result)


def _result_of(given: Given) -> ElicitResult:
    if given.action != "accept":
        return ElicitResult(action=given.action)
    return ElicitResult(action="accept", content=dict(given.values))
