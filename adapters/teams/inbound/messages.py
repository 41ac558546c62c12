"""Activities that nobody waits for the outcome of: kept in the inbox before Teams gets its answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.clicks import whatever_happens
from adapters.shared.memories import memory_list
from adapters.shared.messages import MessageDeleted, MessageEdited, keep
from adapters.teams.ids import Activity, location_of, place_of
from adapters.teams.inbound.activities import (
    Arrived,
    Heard,
    Left,
    MembersChanged,
    TeamsClick,
    TeamsFeedback,
    heard,
)
from adapters.teams.inbound.answers import TeamsAnswers, for_one
from adapters.teams.inbound.clicks import TeamsClickHandler
from adapters.teams.inbound.duplicates import messages_in
from adapters.teams.inbound.visitors import TeamsRecipient, TeamsVisitor, overview_of, visitor_of
from adapters.teams.render.posts import (
    connections_activity,
    greeting,
    help_activity,
    memory_activity,
    note,
    overview_activity,
    usage_activity,
)
from adapters.teams.sender import TeamsSender
from bot.domain import Feedback, Message, Person, Unwelcome
from bot.platform import Reference
from bot.services import Services
from translations import gettext as _

log = structlog.get_logger(__name__)
LARGE = 3_000
"""Bytes of an activity, beyond which reading it may take long enough to be noticed by others who wait: HTML costs 15 µs
a byte. Few messages have more."""
APPROVALS = "approvals"
CONNECTIONS = "connections"
MEMORY = "memory"
USAGE = "usage"
HELP = "help"
AGENT = "agent"
_AGENT = re.compile(rf"{AGENT}(?:\s+([a-z0-9-]{{1,60}}))?")


def open_a_chat() -> str:
    """Returns what is said where a list can be shown to whoever asked for it in no private way."""
    return _("I can only show you that in private. Open a chat with me and ask me there.")


class TeamsMessageHandler:
    """What each activity does."""

    def __init__(
        self,
        services: Services,
        sender: TeamsSender,
        *,
        answers: TeamsAnswers,
        clicks: TeamsClickHandler,
        background: BackgroundTasks,
    ) -> None:
        self._services = services
        self._connector = sender.connector
        self._people = sender.people
        self._answers = answers
        self._clicks = clicks
        self._background = background

    async def take(self, activity: Mapping[str, Any], recipient: TeamsRecipient, size: int) -> None:
        """Do what an activity says; `size`: of how many bytes it was read. Raises whatever the services raise, so that
        Teams sends it again."""
        found = await asyncio.to_thread(heard, activity, recipient) if size > LARGE else heard(activity, recipient)
        visitor = visitor_of(activity, recipient)
        if visitor is not None:
            self._people.met(visitor.caller)
        await self._do(found, visitor)

    async def record_feedback(self, given: TeamsFeedback) -> None:
        """Record feedback on an answer of ours. Raises whatever the services raise."""
        visitor = given.visitor
        person = await self._answers.who(visitor)
        if isinstance(person, Unwelcome):
            return

        def is_it(reference: Reference) -> bool:
            return any(visitor.message in parts for parts in messages_in(reference).values())

        post_id = await self._services.queries.answer_at(place_of(visitor.location), is_it)
        if post_id is not None:
            await self._services.inbox.feedback(Feedback(person, post_id, given.verdict, given.comment))

    async def _do(self, found: Heard | None, visitor: TeamsVisitor | None) -> None:
        match found:
            case Message() if visitor is not None and (command := command_in(found)):
                with for_one(visitor):
                    answering = self._command(command, visitor, found.place.channel)
                    self._background.start(answering, f"command {command}")
            case Message() | MessageEdited() | MessageDeleted():
                await keep(self._services.inbox, found)
            case TeamsClick():
                with for_one(found.visitor):
                    await self._clicks.submitted(found)
            case TeamsFeedback():
                await self.record_feedback(found)
            case Arrived(key, place):
                await self._services.inbox.arrived(key, place, greeting())
            case Left(place):
                await self._services.inbox.left(place)
                await self._people.changed(location_of(place).conversation)
            case MembersChanged(conversation, team_of):
                await self._people.changed(conversation, team_of)
            case None:
                pass

    async def _command(self, command: str, visitor: TeamsVisitor, channel: str) -> None:
        """Answer a command, to whoever writes it alone. Raises whatever the services raise, when they have been told
        that it did not work. `channel`: in which it was written; empty: in a direct chat."""
        person = await self._answers.who(visitor)
        if isinstance(person, Unwelcome):
            await self._answers.say(visitor, person.text)
        elif command == HELP:
            await self._answers.tell(visitor, help_activity(), instead=help_activity)
        elif picking := _AGENT.fullmatch(command):
            async with whatever_happens(partial(self._answers.say, visitor)):
                told = await self._services.agents.command(person.person_id, channel, picking[1] or "")
                await self._answers.say(visitor, told)
        else:
            async with whatever_happens(partial(self._answers.say, visitor)):
                listed = await self._listed(command, visitor, person, channel)
                await self._answers.tell(visitor, listed, instead=lambda: note(open_a_chat()))

    async def _listed(self, command: str, visitor: TeamsVisitor, person: Person, channel: str) -> Activity:
        if command == MEMORY:
            return memory_activity(await memory_list(self._services.memories, person.person_id, channel))
        if command == USAGE:
            return usage_activity(await self._services.usage.own(person))
        connections = await self._services.connections.of_person(person)
        services = self._services.connections.to_connect(connections)
        if command == CONNECTIONS:
            return connections_activity(connections, services)
        overview = await overview_of(self._services.queries, self._connector, visitor, person)
        grants = await self._services.queries.standing_approvals(person)
        return overview_activity(overview, grants, connections, services)


def command_in(message: Message) -> str:
    """The command that a message is, nothing else; empty: it is none of these."""
    said = message.text.strip().lower()
    is_one = said in (APPROVALS, CONNECTIONS, MEMORY, USAGE, HELP) or _AGENT.fullmatch(said) is not None
    return said if message.addressed and is_one else ""
