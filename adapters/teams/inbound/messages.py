"""Activities that nobody waits for the outcome of: kept in the inbox before Teams gets its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.teams.connector.people import People
from adapters.teams.ids import location_of, place_of
from adapters.teams.inbound.activities import (
    Arrived,
    Deleted,
    Edited,
    Heard,
    Left,
    MembersChanged,
    Reacted,
    Spoken,
    heard,
)
from adapters.teams.inbound.answers import Answers
from adapters.teams.inbound.clicks import Clicks
from adapters.teams.inbound.commands import Commands, command_in
from adapters.teams.inbound.duplicates import messages_in
from adapters.teams.inbound.gestures import Click, Opinion
from adapters.teams.inbound.visitors import Ears, Visitor, visitor_of
from adapters.teams.render.posts import greeting
from bot.domain import Feedback, Unwelcome
from bot.inbox import Inbox
from bot.platform import Reference
from bot.queries import Queries

log = structlog.get_logger(__name__)
LARGE = 3_000
"""Bytes of an activity, beyond which reading it may take long enough to be noticed by others who wait: HTML costs 15 µs
a byte. Few messages have more."""


class Listening:
    """What each activity does."""

    def __init__(
        self,
        inbox: Inbox,
        queries: Queries,
        *,
        people: People,
        answers: Answers,
        clicks: Clicks,
        commands: Commands,
        background: BackgroundTasks,
    ) -> None:
        self._inbox = inbox
        self._queries = queries
        self._people = people
        self._answers = answers
        self._clicks = clicks
        self._commands = commands
        self._background = background

    async def take(self, activity: Mapping[str, Any], ears: Ears, size: int) -> None:
        """Do what an activity says; `size`: of how many bytes it was read. Raises whatever the services raise, so that
        Teams sends it again."""
        found = await asyncio.to_thread(heard, activity, ears) if size > LARGE else heard(activity, ears)
        if visitor := visitor_of(activity, ears):
            self._people.met(visitor.caller)
        await self._do(found)

    async def thinks(self, visitor: Visitor, opinion: Opinion) -> None:
        """Record an opinion of an answer of ours. Raises whatever the services raise."""
        person = await self._answers.who(visitor)
        if isinstance(person, Unwelcome):
            return

        def is_it(reference: Reference) -> bool:
            return any(visitor.message in parts for parts in messages_in(reference).values())

        post_id = await self._queries.answer_at(place_of(visitor.location), is_it)
        if post_id is not None:
            await self._inbox.feedback(Feedback(person, post_id, opinion.verdict, opinion.comment))

    async def _do(self, found: Heard | None) -> None:
        match found:
            case Spoken(visitor, message):
                if command := command_in(message):
                    self._background.start(self._commands.handle(command, visitor), f"command {command}")
                else:
                    await self._inbox.accept(message)
            case Edited(message, may_be_new):
                if not (may_be_new and await self._inbox.accept(message)):
                    await self._inbox.amend(message.key, message.text)
            case Deleted(key):
                await self._inbox.withdraw(key)
            case Click():
                await self._clicks.submitted(found)
            case Reacted(visitor, verdict):
                await self.thinks(visitor, Opinion(verdict, ""))
            case Arrived(key, place):
                await self._inbox.arrived(key, place, greeting())
            case Left(place):
                await self._inbox.left(place)
                self._people.forget(location_of(place).conversation)
            case MembersChanged():
                self._forget(found)
            case None:
                pass

    def _forget(self, changed: MembersChanged) -> None:
        self._people.forget(changed.conversation)
        if changed.team_of:
            self._people.forget_all_of(changed.team_of)
