"""Questions to the requester, of the model or of a tool, answered by a form or by a plain reply."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from bot.all_or_nothing import NothingDoneError, all_or_nothing
from bot.crypto import NewId
from bot.domain import (
    AlreadySettled,
    ClickResult,
    Clock,
    Dismissal,
    Form,
    FormAnswer,
    Invalid,
    Person,
    Refused,
    Settled,
    Unknown,
)
from bot.forms.editing import read_answers, read_elicited
from bot.forms.values import FormErrors
from bot.gateway.people_only import refused_to_programs
from bot.outbox import Outbox
from bot.records import clarifications
from bot.records.clarifications import ClarificationRow
from bot.records.database import Database, Transaction, locking_as_found
from bot.records.posts import NewPost
from bot.turns.engine import Engine, resume_thread
from graph.interrupts import Answered, ClarificationAsked, Dismissed, ElicitationAsked, InterruptAnswer, Superseded
from graph.json_values import storable
from translations import gettext as _

_DISMISSED = {"decline": "declined", "cancel": "cancelled"}
"""What is done → the status that it leads to."""


class Questions:
    """Records questions and their answers; each lets its thread go on once it is settled."""

    def __init__(self, database: Database, engine: Engine, outbox: Outbox, clock: Clock, new_id: NewId) -> None:
        self._database = database
        self._engine = engine
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id

    # ------------------------------------------------------------------------------------------- for people

    async def form(self, clarification_id: str, person: Person) -> Form | AlreadySettled | Refused | Unknown:
        """Returns the form to answer an open question with, for the person whom it was put to."""
        async with self._database.reading() as tx:
            row = await clarifications.get(tx, clarification_id)
        if row is None:
            return _no_such()
        if row.requester != person.person_id:
            return _somebody_elses()
        if row.status != "open":
            return _too_late(row)
        defaults = {field.name: field.default for field in row.fields if field.default is not None}
        return Form(row.question, row.fields, defaults)

    async def answer(self, answer: FormAnswer) -> ClickResult:
        """Records a submitted form. The same form again gets the same answer."""
        return (await self.answer_each([answer]))[answer.clarification_id]

    async def answer_each(self, answers: Sequence[FormAnswer], *, whole: bool = False) -> Mapping[str, ClickResult]:
        """Records answers to several questions, in one transaction; results by the questions' ids.

        Args:
            whole: nothing of it is done unless all of it can be.
        """
        work = partial(self._answer_each, answers=answers, whole=whole)
        try:
            return await locking_as_found(self._database.writing_urgently, work)
        except NothingDoneError as error:
            return error.results

    async def _answer_each(
        self, tx: Transaction, answers: Sequence[FormAnswer], *, whole: bool
    ) -> Mapping[str, ClickResult]:
        results = {answer.clarification_id: await self._answer(tx, answer) for answer in answers}
        if whole:
            all_or_nothing(results)
        return results

    async def _answer(self, tx: Transaction, answer: FormAnswer) -> ClickResult:
        row = await clarifications.get(tx, answer.clarification_id)
        if row is None:
            return _no_such()
        if row.requester != answer.person.person_id:
            return _somebody_elses()
        if refused := refused_to_programs(row.thread_id, answer.via):
            return refused
        tx.needs(row.thread_id)
        if row.settled_key == answer.key:  # the same form, delivered twice
            return Settled(_("Thanks."))
        if row.status != "open":
            return _too_late(row)
        if answer.text is not None:
            settled = await self.answer_text(tx, row, storable(answer.text), answer.key)
        else:
            values = await asyncio.to_thread(_read, row, answer.values)
            settled = (
                values
                if isinstance(values, FormErrors)
                else await self._settle(tx, row, "answered", answer.key, {"values": values})
            )
        if isinstance(settled, FormErrors):
            return Invalid(settled.errors)
        if not settled:
            return _too_late(row)
        await self._resume(tx, row)
        return Settled(_("Thanks."))

    async def dismiss(self, dismissal: Dismissal) -> ClickResult:
        """Records that the requester does not answer a tool's question. One of the model's has to be answered."""
        return await locking_as_found(self._database.writing_urgently, partial(self._dismiss, dismissal=dismissal))

    async def _dismiss(self, tx: Transaction, dismissal: Dismissal) -> ClickResult:
        row = await clarifications.get(tx, dismissal.clarification_id)
        if row is None:
            return _no_such()
        if row.requester != dismissal.person.person_id:
            return _somebody_elses()
        if refused := refused_to_programs(row.thread_id, dismissal.via):
            return refused
        if row.server is None:
            return Refused(_("Answer this question, or send a different message to continue without it."))
        tx.needs(row.thread_id)
        status = _DISMISSED[dismissal.action]
        if row.settled_key == dismissal.key:  # the same click, delivered twice
            return Settled(_("Noted."))
        if not await self._settle(tx, row, status, dismissal.key, None):
            return _too_late(row)
        await self._resume(tx, row)
        return Settled(_("Declined.") if status == "declined" else _("Canceled."))

    # ------------------------------------------------------------------------------------------- for turns

    async def record(self, tx: Transaction, thread_id: str, asked: ClarificationAsked | ElicitationAsked) -> None:
        """Records a question and posts its card. What is recorded already stays as it is."""
        clarification_id = self._new_id()
        if await clarifications.add(tx, clarification_id, thread_id, asked, self._clock()):
            key = f"clarification:{clarification_id}"
            await self._outbox.say(tx, NewPost(key, thread_id, "clarification", subject=clarification_id))
            # The card of the call that asks says what it waits for.
            await self._outbox.show_call_again(tx, asked.call_id)

    async def answer_text(self, tx: Transaction, row: ClarificationRow, text: str, key: str) -> bool | FormErrors:
        """Records a plain reply. A tool's question has to be answered as its schema wants, which a plain reply can do
        only where it asks for one thing.

        Args:
            key: of the delivery of the reply.

        Returns:
            False when the question was settled before; `FormErrors` when the reply is no answer to it.
        """
        if row.server is None:
            return await self._settle(tx, row, "answered", key, {"text": text})
        if len(row.fields) != 1:
            return FormErrors(
                {"": _("{server} asks several questions. Answer with the form.").format(server=row.server)}
            )
        values = await asyncio.to_thread(_read, row, {row.fields[0].name: text})
        if isinstance(values, FormErrors):
            return values
        return await self._settle(tx, row, "answered", key, {"values": values})

    async def supersede(self, tx: Transaction, row: ClarificationRow, key: str) -> None:
        """Supersedes a question, if it is open: the turn goes on without it."""
        await self._settle(tx, row, "superseded", key, None)

    async def _settle(
        self, tx: Transaction, row: ClarificationRow, status: str, key: str, answer: dict[str, object] | None
    ) -> bool:
        settled = await clarifications.settle(
            tx, row.clarification_id, status, key=key, now=self._clock(), answer=answer
        )
        if settled:
            await self._outbox.show_again(tx, [row.clarification_id])
        return settled

    async def _resume(self, tx: Transaction, row: ClarificationRow) -> None:
        await resume_thread(tx, self._engine, row.thread_id, row.clarification_id, now=self._clock())


def _no_such() -> Unknown:
    return Unknown(_("Question no longer available."))


def _somebody_elses() -> Refused:
    return Refused(_("This question is for someone else."))


def _too_late(row: ClarificationRow) -> AlreadySettled:
    return AlreadySettled(_("Already answered."), gone=row.status == "superseded")


def _read(row: ClarificationRow, values: Mapping[str, Any]) -> dict[str, Any] | FormErrors:
    """What was typed, as values that the asker can take. Checks them by a foreign schema: up to 50 ms of CPU."""
    if row.server is None:
        return read_answers(row.fields, values)
    return read_elicited(row.fields, row.schema or {}, values)


def answer_of(row: ClarificationRow) -> InterruptAnswer | None:
    """Returns what a settled question tells the graph; `None` while it is open."""
    match row.status:
        case "open":
            return None
        case "answered":
            answer = row.answer or {}
            return Answered(text=answer.get("text", ""), values=answer.get("values", {}))
        case "declined":
            return Dismissed(action="decline")
        case "cancelled":
            return Dismissed(action="cancel")
        case _:
            return Superseded()
