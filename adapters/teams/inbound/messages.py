"""Activities that nobody waits for the outcome of: kept in the inbox before Teams gets its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import location_of, place_of
from adapters.teams.inbound.activities import (
    Arrived,
    Heard,
    Left,
    MembersChanged,
    Reacted,
    TeamsMessageDeleted,
    TeamsMessageEdited,
    TeamsMessageReceived,
    heard,
)
from adapters.teams.inbound.answers import TeamsAnswers
from adapters.teams.inbound.clicks import TeamsClickHandler
from adapters.teams.inbound.commands import TeamsCommandHandler, command_in
from adapters.teams.inbound.duplicates import messages_in
from adapters.teams.inbound.gestures import Opinion, TeamsClick
from adapters.teams.inbound.visitors import TeamsRecipient, TeamsVisitor, visitor_of
from adapters.teams.render.posts import greeting
from bot.domain import Feedback, Unwelcome
from bot.inbox import Inbox
from bot.platform import Reference
from bot.queries import Queries

log = structlog.get_logger(__name__)
LARGE = 3_000
"""Bytes of an activity, beyond which reading it may take long enough to be noticed by others who wait: HTML costs 15 µs
a byte. Few messages have more."""


class TeamsMessageHandler:
    """What each activity does."""

    def __init__(
        self,
        inbox: Inbox,
        queries: Queries,
        *,
        people: TeamsPeople,
        answers: TeamsAnswers,
        clicks: TeamsClickHandler,
        commands: TeamsCommandHandler,
        background: BackgroundTasks,
    ) -> None:
        self._inbox = inbox
        self._queries = queries
        self._people = people
        self._answers = answers
        self._clicks = clicks
        self._commands = commands
        self._background = background

    async def take(self, activity: Mapping[str, Any], recipient: TeamsRecipient, size: int) -> None:
        """Do what an activity says; `size`: of how many bytes it was read. Raises whatever the services raise, so that
        Teams sends it again."""
        found = await asyncio.to_thread(heard, activity, recipient) if size > LARGE else heard(activity, recipient)
        if visitor := visitor_of(activity, recipient):
            self._people.met(visitor.caller)
        await self._do(found)

    async def thinks(self, visitor: TeamsVisitor, opinion: Opinion) -> None:
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
            case TeamsMessageReceived(visitor, message):
                if command := command_in(message):
                    self._background.start(self._commands.handle(command, visitor), f"command {command}")
                else:
                    await self._inbox.accept(message)
            case TeamsMessageEdited(message, may_be_new):
                if not (may_be_new and await self._inbox.accept(message)):
                    await self._inbox.amend(message.key, message.text)
            case TeamsMessageDeleted(key):
                await self._inbox.withdraw(key)
            case TeamsClick():
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
