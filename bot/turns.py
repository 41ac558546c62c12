"""Whose turn runs or waits in which thread."""

from __future__ import annotations

from bot.records import concerns, deliveries, threads, waiting
from bot.records.database import Transaction


async def requesters(tx: Transaction, thread_id: str) -> frozenset[str]:
    """Whose turn it is in a thread, from what waits for people or is being handled; empty: nobody's."""
    if pending := await waiting.in_thread(tx, thread_id):
        return pending.requesters
    if not await deliveries.is_busy(tx, thread_id):
        return frozenset()
    thread = await threads.get(tx, thread_id)
    author = await deliveries.first_author(tx, thread_id) or (thread.requester if thread else None)
    return frozenset([author] if author else [])


async def is_with_us(tx: Transaction, thread_id: str, person_id: str) -> bool:
    """Whether the bot is talking with this person in a thread, so that they need not address it: the thread's
    requester, somebody it waits for, or somebody whose message it has not got to yet."""
    thread = await threads.get(tx, thread_id)
    if thread is None:
        return False
    if thread.requester == person_id or person_id in (await waiting.in_thread(tx, thread_id)).requesters:
        return True
    return any(author == person_id for _, author in await deliveries.waiting_messages(tx, thread_id))


async def turns_of(tx: Transaction, person_id: str, within: str) -> tuple[str, ...]:
    """The threads, whose ids begin with `within`, in which this person's turn runs or waits."""
    candidates = [*await deliveries.threads_waiting(tx, within), *await concerns.threads_of_questions(tx, within)]
    return tuple([t for t in dict.fromkeys(candidates) if person_id in await requesters(tx, t)])
