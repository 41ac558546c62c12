"""Writes the audit log, always in the transaction in which the end of a call becomes known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from bot.audit.entries import (
    ACTED,
    LOOKED,
    LOOKED_UP,
    READ,
    CallEnd,
    contents_of,
    in_utc,
    judgement,
    judgement_as_asked,
    key_of,
    key_of_act,
    key_of_reading,
    link,
    log_line_of,
    looker_of,
    name_as_given,
)
from bot.domain import Clock, Person
from bot.records import approvals, attempts, audit
from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.database import Database, Transaction
from bot.records.locks import AUDIT, UNLOCKED
from graph.json_values import storable
from graph.ports import CallRecord, Looked, Unmade
from policies.approvers import digest_of
from policies.masking import Masker
from policies.model import canonical_json

log = structlog.get_logger(__name__)


class AuditLog:
    """Fills `graph.ports.Audit`; the ledger and the approvals tell it the rest.

    Args:
        show_call_again: sends the cards of a call again, in a transaction: people have approved it, and it was not
            made.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        masker: Masker,
        *,
        show_call_again: Callable[[Transaction, str], Awaitable[None]] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._masker = masker
        self._show_call_again = show_call_again

    async def not_made(self, call: Unmade) -> None:
        """Write down a call that ended without having been made, once however often this is called."""
        async with self._database.writing(call.thread_id) as tx:
            approval = None
            if call.approval_round is not None:
                approval = await approvals.of_call(tx, call.call_id, call.approval_round)
            now = self._clock()
            server, tool = self._named(call, approval)
            end = CallEnd(
                at=now,
                thread_id=call.thread_id,
                call_id=call.call_id,
                requester=call.requester,
                server=server,
                tool=tool,
                arguments=call.arguments,
                status=call.status,
                judged=await _judged(tx, call, approval),
                approval_id=approval.approval_id if approval else None,
                digest=_digest(call),
                note=call.text,
            )
            await self._write(tx, end)
            if approval is not None and approval.status == "approved" and self._show_call_again is not None:
                await self._show_call_again(tx, call.call_id)

    def _named(self, call: Unmade, approval: ApprovalRow | None) -> tuple[str, str]:
        """Server and tool, as far as they are known."""
        if call.tool is not None:
            return call.tool.server, call.tool.name
        if approval is not None:
            return approval.asked.server, approval.asked.tool
        return "", name_as_given(call.name, self._masker)

    async def read_for_card(self, looked: Looked) -> None:
        """Write down what was read to show people what a call is about."""
        end = CallEnd(
            at=self._clock(),
            thread_id=looked.thread_id,
            call_id=looked.call_id,
            requester=looked.requester,
            server=looked.tool.server,
            tool=looked.tool.name,
            arguments=looked.arguments,
            status=LOOKED_UP,
            output=looked.output,
            note="failed" if looked.failed else "",
        )
        async with self._database.writing(looked.thread_id) as tx:
            await self._write(tx, end)

    async def ended(self, tx: Transaction, attempt: AttemptRow, status: str, output: str | None = None) -> None:
        """Write down what came of an attempt. `status`: `done`, `failed` or `unknown`."""
        now = self._clock()
        end = replace(_end_of(attempt, now), status=status, output=output, duration=max(0.0, now - attempt.started_at))
        await self._write(tx, end)

    async def settled(self, tx: Transaction, attempt: AttemptRow, choice: str, by: str) -> None:
        """Write down what a person said of an attempt whose outcome was unknown."""
        status = "done" if choice == "it_was_done" else "unknown"
        end = replace(_end_of(attempt, self._clock()), status=status, settled={"choice": choice, "by": by})
        await self._write(tx, end)

    async def looked(self, tx: Transaction, row: ApprovalRow, person: Person, authority: str) -> None:
        """Write down that somebody looked at what is hidden in a waiting approval; `authority`: as what they may."""
        end = CallEnd(
            at=self._clock(),
            thread_id=row.thread_id,
            call_id=row.asked.call_id,
            requester=row.asked.requesters[0],
            server=row.asked.server,
            tool=row.asked.tool,
            arguments=row.asked.arguments,
            status=LOOKED,
            approval_id=row.approval_id,
            digest=row.asked.digest,
            settled={"choice": "looked at what is hidden", "by": looker_of(person.person_id, person.name, authority)},
        )
        await self._write(tx, end)

    async def read(self, person: Person, what: str, thread_id: str = "") -> None:
        """Write down, before anything is shown, that an operator looks at what they may see as an operator only; once
        in ten minutes.

        Args:
            what: in two or three words, such as "a conversation" or "the audit log".
            thread_id: of somebody else's conversation.
        """
        end = self._of_operator(READ, person, f"looked at {what}", thread_id)
        async with self._database.reading() as tx:
            _, is_written = await audit.newest(tx, _key_of(end))
        if not is_written:
            async with self._database.writing_urgently(UNLOCKED) as tx:
                await self._write(tx, end)

    async def acted(
        self, tx: Transaction, person: Person, what: str, *, of: str = "", note: str = "", thread_id: str = ""
    ) -> None:
        """Write down what an operator does that changes what happens for everybody.

        Args:
            what: in some words, such as "stopped everything".
            of: key or name of what they do it with.
            note: why, in the operator's words.
            thread_id: where, if it is about one thread.
        """
        end = self._of_operator(ACTED, person, what, thread_id)
        await self._write(tx, replace(end, settled={**end.settled, **({"of": of} if of else {})}, note=note))

    def _of_operator(self, status: str, person: Person, what: str, thread_id: str) -> CallEnd:
        by = looker_of(person.person_id, storable(person.name), "operator")
        return CallEnd(
            at=self._clock(),
            thread_id=thread_id,
            call_id="",
            requester=person.person_id,
            server="",
            tool="",
            arguments={},
            status=status,
            settled={"choice": what, "by": by},
        )

    async def _write(self, tx: Transaction, end: CallEnd) -> None:
        await tx.lock(AUDIT)  # until it is on disk: the next link holds its hash
        key = _key_of(end)
        before, is_written = await audit.newest(tx, key)
        if is_written:
            return
        whole = replace(end, votes=await audit.votes_on_call(tx, end.call_id))
        contents = contents_of(whole, self._masker)
        await audit.add(tx, link(before, key, canonical_json(contents)), at=end.at)
        if not end.settled:  # else nothing was called: somebody said, or looked at, something
            tx.afterwards(partial(_log, contents))


def _log(contents: Mapping[str, Any]) -> None:
    log.info("tool_call", **log_line_of(contents))


def judgement_of(call: CallRecord | Unmade, quote_asked_with: str = "") -> dict[str, Any] | None:
    """How a call was judged, as JSON; `None`: it was not."""
    judged = call.judged
    if judged is None:
        return None
    as_asked = replace(judged.call, quote=judged.quote or quote_asked_with)
    return judgement(as_asked, judged.facts, judged.verdict, judged.reasons)


async def _judged(tx: Transaction, call: Unmade, approval: ApprovalRow | None) -> Mapping[str, Any] | None:
    """The judgement of a call that was not made; `None`: there was none."""
    judged = judgement_of(call, approval.asked.quote if approval else "")
    if judged is not None:
        return judged
    # As where nobody signed in: it was judged before it was tried, which did nothing.
    tried = await attempts.latest(tx, call.call_id)
    if tried is not None and tried.judged is not None:
        return tried.judged
    return judgement_as_asked(approval.asked) if approval is not None else None  # its tool is not there any more


def _key_of(end: CallEnd) -> str:
    at = in_utc(end.at)
    if end.status == READ:
        return key_of_reading(end.thread_id, end.settled, at)
    if end.status == ACTED:
        return key_of_act(end.settled, at)
    return key_of(end.call_id, end.attempt, end.status, end.settled, at)


def _end_of(attempt: AttemptRow, now: float) -> CallEnd:
    return CallEnd(
        at=now,
        thread_id=attempt.thread_id,
        call_id=attempt.call_id,
        requester=attempt.requester,
        server=attempt.server,
        tool=attempt.tool,
        arguments=attempt.arguments,
        status="",
        attempt=attempt.number,
        judged=attempt.judged,
        approval_id=attempt.approval_id,
        digest=attempt.digest,
    )


def _digest(call: Unmade) -> str:
    """The digest of a call that was not made; empty where there is no such tool, or its arguments are no JSON."""
    try:
        return digest_of(call.tool, call.arguments) if call.tool else ""
    except (TypeError, ValueError, RecursionError):
        return ""
