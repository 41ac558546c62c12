"""Activities that nobody waits for the outcome of: kept in the inbox before Teams gets its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.clicks import whatever_happens
from adapters.teams.connector.people import TeamsPeople
from adapters.teams.ids import Activity, location_of, place_of
from adapters.teams.inbound.activities import (
    Arrived,
    Heard,
    Left,
    MembersChanged,
    Opinion,
    Reacted,
    TeamsClick,
    TeamsMessageDeleted,
    TeamsMessageEdited,
    TeamsMessageReceived,
    heard,
)
from adapters.teams.inbound.answers import TeamsAnswers
from adapters.teams.inbound.clicks import TeamsClickHandler
from adapters.teams.inbound.duplicates import messages_in
from adapters.teams.inbound.visitors import TeamsOverviews, TeamsRecipient, TeamsVisitor, visitor_of
from adapters.teams.render.posts import connections_activity, greeting, help_activity, note, overview_activity
from bot.accounts.connections import Connections
from bot.domain import Feedback, Message, Person, Unwelcome
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


# ------------------------------------------------------------------------------------------------ commands
# `approvals`, `connections`, `help`, answered to whoever writes them alone; `stop` and `new` the inbox knows.

APPROVALS = "approvals"
CONNECTIONS = "connections"
HELP = "help"
OPEN_A_CHAT = "I can show you that in a chat of our own only: please open one with me and ask me there."


def command_in(message: Message) -> str:
    """The command that a message is, nothing else; empty: it is none of these."""
    said = message.text.strip().lower()
    return said if message.addressed and said in (APPROVALS, CONNECTIONS, HELP) else ""


class TeamsCommandHandler:
    """What each command does."""

    def __init__(
        self, queries: Queries, connections: Connections, answers: TeamsAnswers, overviews: TeamsOverviews
    ) -> None:
        self._queries = queries
        self._connections = connections
        self._answers = answers
        self._overviews = overviews

    async def handle(self, command: str, visitor: TeamsVisitor) -> None:
        """Answer it. Raises whatever the services raise, when they have been told that it did not work."""
        person = await self._answers.who(visitor)
        if isinstance(person, Unwelcome):
            await self._answers.say(visitor, person.text)
        elif command == HELP:
            await self._answers.tell(visitor, help_activity(), instead=help_activity())
        else:
            async with whatever_happens(partial(self._answers.say, visitor)):
                listed = await self._listed(command, visitor, person)
                await self._answers.tell(visitor, listed, instead=note(OPEN_A_CHAT))

    async def _listed(self, command: str, visitor: TeamsVisitor, person: Person) -> Activity:
        connections = await self._connections.of_person(person)
        if command == CONNECTIONS:
            return connections_activity(connections)
        overview = await self._overviews.of(visitor, person)
        return overview_activity(overview, await self._queries.standing_approvals(person), connections)
