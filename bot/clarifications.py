"""Questions of the model to the requester, answered by a form or by a plain reply."""

from __future__ import annotations

from bot.clock import Clock
from bot.forms import FormErrors, read_answers
from bot.ids import NewId
from bot.posts import Posts
from bot.records import clarifications
from bot.records.clarifications import ClarificationRow
from bot.records.database import Transaction
from bot.records.posts import NewPost
from bot.vocabulary import AlreadySettled, ClickResult, FormAnswer, Invalid, Refused, Settled, Unknown
from graph.interrupts import Answer, Answered, ClarificationAsked, Superseded

NO_SUCH = Unknown("This question does not exist (any more).")


class ClarificationBook:
    """Records questions and their answers."""

    def __init__(self, posts: Posts, clock: Clock, new_id: NewId) -> None:
        self._posts = posts
        self._clock = clock
        self._new_id = new_id

    async def record(self, tx: Transaction, thread_id: str, asked: ClarificationAsked) -> None:
        """Record a question and post its card; what is recorded already stays as it is."""
        clarification_id = self._new_id()
        if await clarifications.add(tx, clarification_id, thread_id, asked, self._clock()):
            key = f"clarification:{clarification_id}"
            await self._posts.say(tx, NewPost(key, thread_id, "clarification", subject=clarification_id))

    async def answer_form(self, tx: Transaction, answer: FormAnswer) -> tuple[ClickResult, str | None]:
        """Record a submitted form; with the thread to resume when that settled it."""
        row = await clarifications.get(tx, answer.clarification_id)
        if row is None:
            return NO_SUCH, None
        if row.requester != answer.person.person_id:
            return Refused("This question is for somebody else."), None
        values = read_answers(row.fields, answer.values)
        if isinstance(values, FormErrors):
            return Invalid(values.errors), None
        if row.settled_key == answer.key:  # the same form, delivered twice
            return Settled("Thank you."), None
        if not await self._settle(tx, row, "answered", answer.key, {"values": values}):
            return AlreadySettled("This question was settled already."), None
        return Settled("Thank you."), row.thread_id

    async def answer_text(self, tx: Transaction, row: ClarificationRow, text: str, key: str) -> bool:
        """Record a plain reply; false when the question was settled before."""
        return await self._settle(tx, row, "answered", key, {"text": text})

    async def supersede(self, tx: Transaction, row: ClarificationRow, key: str) -> None:
        """The turn went on without it."""
        await self._settle(tx, row, "superseded", key, None)

    async def _settle(
        self, tx: Transaction, row: ClarificationRow, status: str, key: str, answer: dict[str, object] | None
    ) -> bool:
        settled = await clarifications.settle(
            tx, row.clarification_id, status, key=key, now=self._clock(), answer=answer
        )
        if settled:
            await self._posts.show_again(tx, [row.clarification_id])
        return settled


def answer_of(row: ClarificationRow) -> Answer | None:
    """What a settled question tells the graph; `None` while it is open."""
    match row.status:
        case "open":
            return None
        case "answered":
            answer = row.answer or {}
            return Answered(text=answer.get("text", ""), values=answer.get("values", {}))
        case _:
            return Superseded()
