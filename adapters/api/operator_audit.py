"""`/api/v1/operator/audit`: the audit log searched, handed on and verified; for operators."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.operator_turns import LONGEST_TURN
from adapters.api.results import for_operators
from adapters.shared.server_sent import ClientGone, OpenStreams
from bot.audit.entries import Link, read_entry
from bot.console.audit import MOST_ENTRIES, AuditPage, AuditQuestion, Verification
from bot.records.audit_terms import Position
from bot.services import Services
from bot.task_threads import turn_of_call

JSON_LINES = "application/jsonl"
_POSITION = r"^([0-9]{1,12}(\.[0-9]{1,9})?:[0-9]{1,18})?$"
_HASH = "^[0-9]{1,18}:[0-9a-f]{64}$"


class FoundEntryShape(Shape):
    """An entry of the audit log."""

    model_config = ConfigDict(frozen=True, title="FoundEntry")
    seq: int
    hash: str
    turn: str = Field(description="Its turn, for `/operator/turns/{id}`; empty: it is about no call.")
    entry: dict[str, Any] | None = Field(description="null: it was changed and cannot be read; see the verification.")

    @classmethod
    def of(cls, link: Link) -> FoundEntryShape:
        """As operators see it."""
        entry = read_entry(link.entry)
        call = entry.get("call") if entry is not None else None
        turn = turn_of_call(call) if isinstance(call, str) and call else ""
        return cls(seq=link.seq, hash=link.hash, turn=turn, entry=entry)


class AuditPageShape(Shape):
    """Entries of the audit log, the newest first."""

    model_config = ConfigDict(frozen=True, title="AuditPage")
    entries: list[FoundEntryShape]
    next: str = Field(
        description="`before` of the next page; empty: this is the last one. A page may be empty although others "
        "follow, where much had to be looked through."
    )
    whole: bool = Field(
        description="false: older entries cannot be found yet. Ask again some minutes after an upgrade."
    )

    @classmethod
    def of(cls, page: AuditPage) -> AuditPageShape:
        """As operators see it."""
        following = f"{page.following[0]!r}:{page.following[1]}" if page.following is not None else ""
        return cls(entries=[FoundEntryShape.of(link) for link in page.links], next=following, whole=page.is_whole)


_Name = Annotated[str, Field(max_length=LONGEST_LINE)]


class AuditFilter(Body):
    """Which entries; what is left out may be anything."""

    person: Annotated[
        str,
        Field(
            max_length=LONGEST_TURN,
            description="Who asked, voted, looked or acted: a person id, an e-mail address, or a name of the page.",
        ),
    ] = ""
    server: _Name = ""
    tool: _Name = ""
    rule: _Name = ""
    outcome: Annotated[
        str, Field(max_length=LONGEST_LINE, description="done, failed, unknown, denied, rejected, expired, read, …")
    ] = ""
    decision: Literal["", "allow", "ask", "deny"] = ""
    since: Annotated[float, Field(ge=0, le=1e11, description="Seconds since the epoch, UTC.")] | None = None
    until: Annotated[float, Field(ge=0, le=1e11, description="Not included.")] | None = None

    @property
    def question(self) -> AuditQuestion:
        """As the service takes it."""
        times = {name: at for name, at in (("since", self.since), ("until", self.until)) if at is not None}
        return AuditQuestion(
            person=self.person,
            server=self.server,
            tool=self.tool,
            rule=self.rule,
            outcome=self.outcome,
            decision=self.decision,
            **times,
        )


class SearchQuery(AuditFilter):
    """Which entries, and which page of them."""

    before: Annotated[str, Field(pattern=_POSITION, description="`next` of the page before.")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES)] = 50

    @property
    def position(self) -> Position | None:
        """As the service takes it."""
        at, _, seq = self.before.partition(":")
        return (float(at), int(seq)) if self.before else None


class ExportQuery(AuditFilter):
    """Which entries, and how they are written."""

    format: Literal["jsonl", "csv"] = "jsonl"


class VerificationForm(Body):
    """How the log is verified."""

    anchor: (
        Annotated[str, Field(pattern=_HASH, description="Number and hash of an entry that were kept elsewhere.")] | None
    ) = None

    @property
    def kept(self) -> tuple[int, str] | None:
        """As the service takes it."""
        seq, _, hash_ = (self.anchor or "").partition(":")
        return (int(seq), hash_) if seq else None


class OperatorAudit:
    """The audit log, for operators."""

    def __init__(self, services: Services, streams: OpenStreams) -> None:
        self._console = services.console
        self._streams = streams

    def operations(self) -> Sequence[Operation]:
        """What can be done with it."""
        return [
            Operation(
                "GET",
                "/api/v1/operator/audit",
                "searchAudit",
                "Searches the audit log by person, tool, rule, outcome and time; for operators. The log says that you "
                "did.",
                self.search,
                {200: Answer("The entries.", AuditPageShape)},
                query=SearchQuery,
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/audit/export",
                "exportAudit",
                "Hands on all entries that a search finds, oldest first; for operators. The log says that you did.",
                self.export,
                {200: Answer("JSON Lines, or CSV (`text/csv`) with `format=csv`.", media=JSON_LINES)},
                query=ExportQuery,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/audit/verification",
                "verifyAudit",
                "Says whether the audit log is as it was written; for operators. The log says that you did.",
                self.verify,
                {
                    200: Answer(
                        "JSON Lines: `{checked, of, fault_count, done, last}` again and again, and a last one with "
                        "`done: true` and `faults: [{seq, what}]`.",
                        media=JSON_LINES,
                    )
                },
                body=VerificationForm,
                tag="operator",
            ),
        ]

    async def search(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/audit`."""
        query = call.query(SearchQuery)
        page = await self._console.audit.page(call.principal.person, query.question, query.position, query.limit)
        return json_answer(AuditPageShape.of(for_operators(page)))

    async def export(self, call: ApiCall) -> web.StreamResponse:
        """`GET /api/v1/operator/audit/export`."""
        query = call.query(ExportQuery)
        pieces = await self._console.audit.exported(call.principal.person, query.question, query.format)
        media = JSON_LINES if query.format == "jsonl" else "text/csv"
        name = f'attachment; filename="audit.{query.format}"'
        return await self._stream(call, for_operators(pieces), media, {"Content-Disposition": name})

    async def verify(self, call: ApiCall) -> web.StreamResponse:
        """`POST /api/v1/operator/audit/verification`."""
        steps = await self._console.verification.verified(call.principal.person, call.body(VerificationForm).kept)
        return await self._stream(call, _in_lines(for_operators(steps)), JSON_LINES, {})

    async def _stream(
        self, call: ApiCall, pieces: AsyncGenerator[str, None], media: str, more: dict[str, str]
    ) -> web.StreamResponse:
        headers = {"Content-Type": f"{media}; charset=utf-8", **more}
        with self._streams.opened(call.request, call.principal, headers) as stream:
            try:
                await stream.begin()
                async with aclosing(pieces) as each:
                    async for piece in each:
                        await stream.send(piece.encode())
                return await stream.end()
            except ClientGone:
                return stream.response


async def _in_lines(steps: AsyncGenerator[Verification, None]) -> AsyncGenerator[str, None]:
    async for step in steps:
        line: dict[str, Any] = {
            "checked": step.checked,
            "of": step.of,
            "fault_count": step.fault_count,
            "last": {"seq": step.last.seq, "hash": step.last.hash} if step.last is not None else None,
            "done": step.has_ended,
        }
        if step.has_ended:
            line["faults"] = [{"seq": fault.seq, "what": fault.what} for fault in step.faults]
        yield json.dumps(line) + "\n"
