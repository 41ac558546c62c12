"""What people write as a command and the house does not know: `approvals`, `connections`, `help`; answered to them
alone."""

from __future__ import annotations

from adapters.teams.ids import Activity
from adapters.teams.inbound.answers import TeamsAnswers
from adapters.teams.inbound.visitors import TeamsOverviews, TeamsVisitor
from adapters.teams.render.posts import connections_activity, help_activity, note, overview_activity
from bot.accounts.connections import Connections
from bot.domain import Message, Person, Unwelcome
from bot.queries import Queries

APPROVALS = "approvals"
CONNECTIONS = "connections"
HELP = "help"
OPEN_A_CHAT = "I can show you that in a chat of our own only: please open one with me and ask me there."


def command_in(message: Message) -> str:
    """The command that a message is, nothing else; empty: it is none of these (`stop` and `new` the house knows)."""
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
            async with self._answers.whatever_happens(visitor):
                listed = await self._listed(command, visitor, person)
                await self._answers.tell(visitor, listed, instead=note(OPEN_A_CHAT))

    async def _listed(self, command: str, visitor: TeamsVisitor, person: Person) -> Activity:
        connections = await self._connections.of_person(person)
        if command == CONNECTIONS:
            return connections_activity(connections)
        overview = await self._overviews.of(visitor, person)
        return overview_activity(overview, await self._queries.standing_approvals(person), connections)
