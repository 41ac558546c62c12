"""Remembering after a turn: a delivery of its own, in a thread of its own beside the conversation's, handled when the
process has nothing else to do, so that nobody waits for it. What one person wrote in a conversation meanwhile is looked
through in one request.

Whatever is killed when, nothing is lost and nothing is kept twice: what the model has picked is recorded before the
store is changed, and changing it twice comes to the same. Of the words nothing is left once it is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from langchain_core.messages import HumanMessage, SystemMessage

from bot.approvals.retries import given_call_of
from bot.budgets import DailyBudget
from bot.dates import day_of
from bot.domain import Clock, Notice
from bot.logs import log_context
from bot.memory import Memories
from bot.memory_threads import MEMORY, conversation_remembered, memory_thread_id
from bot.outbox import Outbox, notice
from bot.plans import is_task
from bot.records import deliveries, model_usage, thread_owners
from bot.records.claims import Overtaken, current_claim
from bot.records.database import Database, Transaction, is_away
from bot.records.deliveries import Delivery
from bot.records.model_usage import UsageOf
from bot.records.posts import NewPost
from bot.turns.decision import DIED_TOO_OFTEN, MOST_DEATHS
from bot.turns.failures import MOST_OUTAGE_TRIES
from bot.turns.idle_work import due_at_last
from graph.json_values import storable
from graph.memory import (
    LONGEST_WORDS,
    MemoryChanges,
    WorthKeeping,
    changes_in,
    memory_request,
    words_to_remember,
)
from graph.models import ModelProblem
from graph.models.asking import Asking, ask
from graph.models.streaming import Retry
from graph.observing import NOBODY, Observer
from graph.usage import ModelUse, name_of
from policies.masking import Masker
from translations import gettext as _

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graph.running import ThreadStatus

log = structlog.get_logger(__name__)
PICKING_SECONDS = 60.0
"""How long a model may take to say what is worth remembering, other tries included."""
MOST_TOGETHER = 20
"""Messages that are looked through in one request."""
LONGEST_TOGETHER = 2 * LONGEST_WORDS
"""Characters of them."""
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
    key, thread_id = f"{MEMORY}:{message.key}", memory_thread_id(message.thread_id)
    return Delivery(key, thread_id, MEMORY, said, False, accepted_at=now, due_at=due_at_last(now))


@dataclass(slots=True, eq=False)
class MemoryHandler:
    """Handles deliveries of kind `memory`, one at a time per conversation (the engine sees to that)."""

    database: Database
    memories: Memories
    outbox: Outbox
    budget: DailyBudget
    clock: Clock
    model: BaseChatModel
    """The one of `ROUTER_MODEL`."""
    retry: Retry
    masker: Masker
    observer: Observer = NOBODY
    _outages: dict[str, int] = field(default_factory=dict, init=False)
    """Delivery → in how many tries of it in a row the records were away."""
    _made_at: float = field(init=False)
    """When the process began to handle deliveries, in seconds since the epoch."""

    def __post_init__(self) -> None:
        self._made_at = self.clock()

    async def handle(self, delivery: Delivery) -> None:
        """See a delivery through, with what the same person wrote since in that conversation: what is worth it is
        remembered, or a line in the log says why not. Raises only if not even that can be recorded, or the records went
        away meanwhile."""
        with log_context(thread_id=delivery.thread_id, delivery=delivery.key):
            together: Sequence[Delivery] = [delivery]
            try:
                together = await self._together(delivery)
                found = await self._found_in(together)
            except Overtaken:
                raise
            except Exception as cause:
                if self._comes_back(delivery, cause):
                    raise
                await self._give_up(together, cause)
                found = ()
            for each in found:
                try:
                    await self._remember(each)
                except Overtaken:
                    raise
                except Exception as cause:
                    if self._comes_back(delivery, cause):
                        raise
                    await self._give_up([each], cause)
            self._outages.pop(delivery.key, None)

    def _comes_back(self, head: Delivery, cause: Exception) -> bool:
        """Whether the engine is to try again, once the records are back."""
        outages = self._outages.get(head.key, 0)
        if not is_away(cause) or outages >= MOST_OUTAGE_TRIES:
            return False
        self._outages[head.key] = outages + 1
        return True

    async def _give_up(self, given_up: Sequence[Delivery], cause: Exception) -> None:
        problem = str(cause) if isinstance(cause, ModelProblem) else type(cause).__name__
        log.warning("memory_not_taken", cause=problem)
        await self._done(given_up)

    async def _together(self, head: Delivery) -> Sequence[Delivery]:
        """What is looked through in one request: what one person wrote in one conversation. What an earlier process may
        have died of is looked through alone."""
        if _FOUND in head.body or self._is_left_over(head):
            return [head]
        async with self.database.reading() as tx:
            waiting = await deliveries.waiting_in(tx, head.thread_id, MOST_TOGETHER)
        length, together = len(head.body["words"]), [head]
        for each in waiting:
            body = each.body
            is_alike = (body["person"], body["channel"]) == (head.body["person"], head.body["channel"])
            if each.key == head.key or _FOUND in body or not is_alike:
                continue
            length += len(body["words"])
            if length > LONGEST_TOGETHER:
                break
            together.append(each)
        return together

    def _is_left_over(self, delivery: Delivery) -> bool:
        """Whether an earlier process may have died in it."""
        claim = current_claim()
        return delivery.accepted_at < self._made_at or (claim is not None and claim.taken_over)

    async def _found_in(self, together: Sequence[Delivery]) -> Sequence[Delivery]:
        """Those in which something is to be kept or forgotten, with that in place of the words. The others are done."""
        head = together[0]
        if await self._has_died_too_often(head):
            log.warning("memory_not_taken", cause=DIED_TOO_OFTEN)
            await self._done([head])
            return ()
        if _FOUND in head.body:
            return together
        picked, use = await self._picked(together)
        found = []
        async with self.database.writing_apart(head.thread_id) as tx:
            await tx.check_claim()
            for each in together:
                if each.key in picked:
                    kept = {name: said for name, said in each.body.items() if name != "words"}
                    found.append(replace(each, body={**kept, _FOUND: picked[each.key]}))
                    await deliveries.set_body(tx, each.key, found[-1].body)
            await deliveries.finish(tx, [each.key for each in together if each.key not in picked])
            if use is not None:
                await self._keep_usage(tx, head, use)
        return found

    async def _keep_usage(self, tx: Transaction, head: Delivery, use: ModelUse) -> None:
        """What looking through costs is the person's, and no part of an answer."""
        await model_usage.keep(tx, self._usage_of(head), {name_of(self.model): use})

    def _usage_of(self, head: Delivery) -> UsageOf:
        now = self.clock()
        return UsageOf(
            turn=head.key,
            message=head.key,
            agent=MEMORY,
            thread_id=_conversation_of(head),
            person_id=head.body["person"],
            channel=head.body["channel"],
            day=day_of(now).isoformat(),
            at=now,
        )

    async def _remember(self, delivery: Delivery) -> None:
        """Keep and forget what was found in a message; done twice it comes to the same."""
        body = delivery.body
        found, channel = body[_FOUND], body["channel"]
        changes = MemoryChanges(tuple(WorthKeeping(**each) for each in found["remember"]), tuple(found["forget"]))
        is_done = await self.memories.apply(
            changes, body["person"], channel, name=body["name"], key=body["of"], said_at=body["at"]
        )
        await self._done([delivery], told_of(delivery, changes, found["forgotten"]) if is_done else ())

    async def _has_died_too_often(self, delivery: Delivery) -> bool:
        """Counts a try where an earlier process may have died in one."""
        if not self._is_left_over(delivery):
            return False
        async with self.database.writing_apart(delivery.thread_id) as tx:
            await deliveries.count_try(tx, delivery.key)
        return delivery.tries >= MOST_DEATHS

    async def _picked(self, together: Sequence[Delivery]) -> tuple[dict[str, dict[str, Any]], ModelUse | None]:
        """What the model picks, as JSON, by the key of the delivery in whose words it stands. Those in which there is
        nothing are left out, and all where the model is not to be asked. And what asking came to."""
        head = together[0]
        person, channel = head.body["person"], head.body["channel"]
        async with self.database.reading() as tx:
            is_deleted = await thread_owners.owner_of(tx, _conversation_of(head)) == thread_owners.DELETED
        if is_deleted or await self.budget.refusal(person, channel) is not None:
            return {}, None
        own, of_channel = await self.memories.known(person, channel)
        asked = [each for each in together if own.is_remembered and each.body["at"] >= own.since]
        if not asked:
            return {}, None
        known = {item.memory_id: item.text for item in (*own.items, *of_channel)}
        words = [each.body["words"] for each in asked]
        rules, given = memory_request(words, (*own.items, *of_channel))
        name = name_of(self.model)
        lost = partial(self.budget.lost_of, self._usage_of(head), name)
        asking = Asking(self.observer, None, "memory", name, self.clock, keep_lost=lost)
        async with asyncio.timeout(PICKING_SECONDS):
            answer, use = await ask(
                self.model,
                [SystemMessage(rules), HumanMessage(given)],
                lambda _text: None,
                retry=self.retry,
                asking=asking,
            )
        await self.budget.spent(person, name, use, channel)
        picked = {}
        for each, changes in zip(asked, changes_in(answer.text, words, known, in_channel=bool(channel)), strict=True):
            remember = [asdict(passage) for passage in changes.remember if self._may_be_kept(passage.text)]
            if remember or changes.forget:
                forgotten = [known[each] for each in changes.forget]
                picked[each.key] = {"remember": remember, "forget": list(changes.forget), "forgotten": forgotten}
        return picked, use

    def _may_be_kept(self, text: str) -> bool:
        """Whether nothing in it looks like a secret, and every database takes it."""
        return self.masker.mask(text) == text and storable(text) == text

    async def _done(self, done: Sequence[Delivery], told: Sequence[NewPost] = ()) -> None:
        """Nothing of what was said stays in the deliveries."""
        async with self.database.writing_apart(done[0].thread_id) as tx:
            await tx.check_claim()
            for post in told:
                await self.outbox.say(tx, post)
            await deliveries.finish(tx, [each.key for each in done])


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
