"""Remembering after a turn: a delivery of its own, handled once the answer is out, in a thread of its own beside the
conversation's, so that nobody waits for it.

Whatever is killed when, nothing is lost and nothing is kept twice: what the model has picked is recorded before the
store is changed, and changing it twice comes to the same. Of the words nothing is left once it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from langchain_core.messages import HumanMessage, SystemMessage

from bot.approvals.retries import given_call_of
from bot.domain import Clock, Notice
from bot.limits import TokenBudget
from bot.logs import log_context
from bot.memory import Memories
from bot.memory_threads import MEMORY, conversation_remembered, memory_thread_id
from bot.outbox import Outbox, notice
from bot.plans import is_task
from bot.records import deliveries, thread_owners
from bot.records.claims import Overtaken, current_claim
from bot.records.database import Database, is_away
from bot.records.deliveries import Delivery
from bot.records.posts import NewPost
from bot.turns.decision import DIED_TOO_OFTEN, MOST_DEATHS
from bot.turns.engine import Engine
from bot.turns.failures import MOST_OUTAGE_TRIES
from graph.json_values import storable
from graph.memory import MemoryChanges, WorthKeeping, changes_in, memory_request, words_to_remember
from graph.models import ModelProblem
from graph.models.streaming import Retry, stream_message, tokens_of
from policies.masking import Masker
from translations import gettext as _

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graph.running import ThreadStatus

log = structlog.get_logger(__name__)
PICKING_SECONDS = 60.0
"""How long a model may take to say what is worth remembering, other tries included."""
_FOUND = "found"


def to_remember(message: Delivery, status: ThreadStatus, channel: str, now: float) -> Delivery | None:
    """Returns the delivery that has the words of a message looked through, once its turn is at rest; `None`: nothing in
    it is to be remembered. What programs send is not, since they pass on what others wrote; nor what an agent tells
    another, a call that is made again, or an answer to a question.

    Args:
        channel: in which it was written; empty: in a direct chat.
    """
    body = message.body
    if (
        message.kind != "message"
        or status.turn is None
        or status.turn["delivery"] != message.key
        or is_task(message)
        or given_call_of(message) is not None
        or body.get("via")
        or body.get("options")
    ):
        return None
    words = words_to_remember(body["text"])
    if not words:
        return None
    who = {"person": body["person"], "name": body["name"], "channel": channel}
    said = {"of": message.key, "at": message.accepted_at, **who, "words": words}
    return Delivery(f"{MEMORY}:{message.key}", memory_thread_id(message.thread_id), MEMORY, said, False, now, now)


@dataclass(slots=True, eq=False)
class MemoryHandler:
    """Handles deliveries of kind `memory`, one at a time per conversation (the engine sees to that)."""

    database: Database
    memories: Memories
    outbox: Outbox
    budget: TokenBudget
    engine: Engine
    clock: Clock
    model: BaseChatModel
    """The one of `ROUTER_MODEL`."""
    retry: Retry
    masker: Masker
    _outages: dict[str, int] = field(default_factory=dict, init=False)
    """Delivery → in how many tries of it in a row the records were away."""
    _made_at: float = field(init=False)
    """When the process began to handle deliveries, in seconds since the epoch."""

    def __post_init__(self) -> None:
        self._made_at = self.clock()

    async def handle(self, delivery: Delivery) -> None:
        """See a delivery through: what is worth it is remembered, or a line in the log says why not. Raises only if not
        even that can be recorded, or the records went away meanwhile."""
        with log_context(thread_id=delivery.thread_id, delivery=delivery.key):
            try:
                await self._handle(delivery)
            except Overtaken:
                raise
            except Exception as cause:
                outages = self._outages.get(delivery.key, 0)
                if is_away(cause) and outages < MOST_OUTAGE_TRIES:
                    self._outages[delivery.key] = outages + 1
                    raise  # the engine tries again, once the records are back
                problem = str(cause) if isinstance(cause, ModelProblem) else type(cause).__name__
                log.warning("memory_not_taken", cause=problem)
                await self._done(delivery)
            self._outages.pop(delivery.key, None)

    async def _handle(self, delivery: Delivery) -> None:
        body = delivery.body
        if await self._has_died_too_often(delivery):
            log.warning("memory_not_taken", cause=DIED_TOO_OFTEN)
            await self._done(delivery)
            return
        found = body.get(_FOUND)
        if found is None:
            found = await self._picked(delivery)
            if found is None:
                await self._done(delivery)
                return
            async with self.database.writing_apart(delivery.thread_id) as tx:
                await tx.check_claim()
                kept = {name: said for name, said in body.items() if name != "words"}
                await deliveries.set_body(tx, delivery.key, {**kept, _FOUND: found})
        changes = MemoryChanges(tuple(WorthKeeping(**each) for each in found["remember"]), tuple(found["forget"]))
        key, channel = body["of"], body["channel"]
        is_done = await self.memories.apply(
            changes, body["person"], channel, name=body["name"], key=key, said_at=body["at"]
        )
        await self._done(delivery, told_of(delivery, changes, found["forgotten"]) if is_done else ())

    async def _has_died_too_often(self, delivery: Delivery) -> bool:
        """Counts a try where an earlier process may have died in one."""
        claim = current_claim()
        if delivery.accepted_at >= self._made_at and not (claim is not None and claim.taken_over):
            return False
        async with self.database.writing_apart(delivery.thread_id) as tx:
            await deliveries.count_try(tx, delivery.key)
        return delivery.tries >= MOST_DEATHS

    async def _picked(self, delivery: Delivery) -> dict[str, Any] | None:
        """What the model picks, as JSON; `None`: nothing, or it is not to be asked."""
        body = delivery.body
        person, channel, words = body["person"], body["channel"], body["words"]
        async with self.database.reading() as tx:
            is_deleted = await thread_owners.owner_of(tx, _conversation_of(delivery)) == thread_owners.DELETED
        if is_deleted or await self.budget.refusal(person) is not None:
            return None
        own, of_channel = await self.memories.known(person, channel)
        if not own.is_remembered or body["at"] < own.since:
            return None
        known = {item.memory_id: item.text for item in (*own.items, *of_channel)}
        rules, given = memory_request(words, (*own.items, *of_channel))
        async with asyncio.timeout(PICKING_SECONDS):
            answer = await stream_message(
                self.model, [SystemMessage(rules), HumanMessage(given)], lambda _text: None, retry=self.retry
            )
        await self.budget.spent(person, tokens_of(answer))
        changes = changes_in(answer.text, words, known, in_channel=bool(channel))
        remember = [each for each in changes.remember if self._may_be_kept(each.text)]
        if not remember and not changes.forget:
            return None
        forgotten = [known[each] for each in changes.forget]
        return {"remember": [asdict(each) for each in remember], "forget": list(changes.forget), "forgotten": forgotten}

    def _may_be_kept(self, text: str) -> bool:
        """Whether nothing in it looks like a secret, and every database takes it."""
        return self.masker.mask(text) == text and storable(text) == text

    async def _done(self, delivery: Delivery, told: Sequence[NewPost] = ()) -> None:
        """Nothing of what was said stays in the delivery."""
        async with self.database.writing(delivery.thread_id) as tx:
            for post in told:
                await self.outbox.say(tx, post)
            await deliveries.set_body(tx, delivery.key, {})
            await deliveries.done(tx, delivery.key)


def told_of(delivery: Delivery, changes: MemoryChanges, forgotten: Sequence[str]) -> list[NewPost]:
    """What the person is told: what was forgotten, them alone where others read along; what is remembered of them where
    nobody does."""
    person, channel = delivery.body["person"], delivery.body["channel"]
    own = [each.text for each in changes.remember if each.about == "person"]
    lines = []
    if forgotten:
        lines.append(_("Forgotten: {what}.").format(what=_listed(forgotten)))
    if own and not channel:
        lines.append(_("I’ll remember: {what}. Write “forget that” to undo it.").format(what=_listed(own)))
    if not lines:
        return []
    only_for = person if channel else None
    told = Notice("\n".join(lines))
    return [notice(f"{MEMORY}:{delivery.body['of']}", _conversation_of(delivery), told, only_for=only_for)]


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(_("“{text}”").format(text=text) for text in texts)


def _conversation_of(delivery: Delivery) -> str:
    return conversation_remembered(delivery.thread_id)
