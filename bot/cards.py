"""Where the cards of an approval are: in its thread, wherever a rule routes it, and with whom else it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import structlog

from bot.domain import Notice, Place
from bot.platform import Platform
from bot.posts import Posts, notice
from bot.records import posts, threads
from bot.records.approvals import ApprovalRow
from bot.records.database import Transaction
from bot.records.posts import NewPost
from bot.views import deciders_in_words
from graph.interrupts import ApprovalAsked

log = structlog.get_logger(__name__)


class Cards:
    """Posts cards and what is said beside them. A place has one card of an approval, however often it is named."""

    def __init__(self, outbox: Posts, platforms: Mapping[str, Platform]) -> None:
        self._posts = outbox
        self._platforms = platforms

    async def post(self, tx: Transaction, thread_id: str, approval_id: str, asked: ApprovalAsked) -> None:
        """One card in its thread, and one in each place that the rule routes it to."""
        await self._posts.say(tx, _card(thread_id, approval_id))
        await self._elsewhere(tx, thread_id, approval_id, asked, asked.ask.route_to)

    async def post_also(self, tx: Transaction, row: ApprovalRow, references: Iterable[str]) -> None:
        """A card in each of these places and direct chats that has none yet."""
        await self._elsewhere(tx, row.thread_id, row.approval_id, row.asked, references)

    async def remind(self, tx: Transaction, row: ApprovalRow, now: float) -> None:
        """One notice beside each card."""
        asked_by = (await threads.names(tx, row.asked.requesters[:1]))[row.asked.requesters[0]]
        waits = f"{row.asked.server}: {row.asked.tool}, which {asked_by} asked for, still waits for a decision"
        text = Notice(f"Reminder: {waits}. May decide: {await deciders_in_words(tx, row, now)}.")
        for card in (await posts.of_subjects(tx, [row.approval_id])).get(row.approval_id, ()):
            key = f"remind:{row.approval_id}" + (f"@{card.place.key}" if card.place else "")
            await self._posts.say(tx, notice(key, row.thread_id, text, place=card.place))

    async def _elsewhere(
        self, tx: Transaction, thread_id: str, approval_id: str, asked: ApprovalAsked, references: Iterable[str]
    ) -> None:
        own = _card(thread_id, approval_id)
        thread = await threads.get(tx, thread_id)
        here = {thread.place.channel or thread.place.key} if thread else set()
        if thread and thread.place.direct:
            here.add(asked.requesters[0])
        for key, place in self._places(references, asked).items():
            if key not in here:
                await self._posts.say(tx, replace(own, key=f"{own.key}@{key}", place=place))

    def _places(self, references: Iterable[str], asked: ApprovalAsked) -> Mapping[str, Place]:
        places: dict[str, Place] = {}
        for reference in references:
            named = (platform.named_place(reference) for platform in self._platforms.values())
            place = next((place for place in named if place is not None), None)
            if place is None:
                log.warning("route_not_known", rule=asked.ask.rule, place=reference)
            else:
                places.setdefault(place.key, place)
        return places


def _card(thread_id: str, approval_id: str) -> NewPost:
    return NewPost(f"approval:{approval_id}", thread_id, "approval", subject=approval_id)
