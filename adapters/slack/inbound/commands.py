"""`/countersign`: ask, approvals, connections, stop, help. Every answer is the command's own, for the person alone."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from adapters.slack.ids import Spot, within_team
from adapters.slack.inbound.answers import Answers
from adapters.slack.inbound.codes import code_entry, code_in, in_words
from adapters.slack.inbound.concerns import Concerns
from adapters.slack.inbound.gestures import Command
from adapters.slack.inbound.openings import WHO_WITHIN, Openings, Question, answer_until
from adapters.slack.links import permalink
from adapters.slack.render.posts import Piece, connections_piece, help_piece, note, overview_piece
from adapters.slack.web_api.workspaces import Workspaces
from bot.domain import Person, Settled, Unwelcome
from bot.services import Services

NOTHING_TO_STOP = "Nothing of yours is running in this channel."


class Commands:
    """What each verb does."""

    def __init__(
        self, services: Services, concerns: Concerns, answers: Answers, openings: Openings, workspaces: Workspaces
    ) -> None:
        self._services = services
        self._concerns = concerns
        self._answers = answers
        self._openings = openings
        self._workspaces = workspaces

    async def handle(self, command: Command) -> dict[str, Any]:
        """Do what was asked; the body of the answer, empty when there is nothing to say. Raises whatever the services
        raises, so that Slack says that it did not work."""
        until, visitor = answer_until(), command.visitor
        person = await self._answers.who(visitor, WHO_WITHIN)
        if isinstance(person, Unwelcome):
            return ephemeral(note(person.text))
        match command.verb:
            case "help":
                return ephemeral(help_piece())
            case "approvals":
                return ephemeral(await self._approvals(command, person))
            case "connections":
                return ephemeral(connections_piece(await self._services.connections.of_person(person)))
            case "stop":
                return ephemeral(note(await self._stop(command, person)))
            case "ask" if code := code_in(command.text):  # typed here, it would stand in the channel
                return ephemeral(
                    note(in_words(await self._services.connections.enter_code(code_entry(visitor, person, code))))
                )
            case "ask":
                spot = Spot(visitor.team, visitor.spot.channel)
                question = Question(visitor, person, command.text, spot, command.direct, until=until)
                trouble = await self._openings.ask(question)
                return ephemeral(note(trouble)) if trouble else {}

    async def _approvals(self, command: Command, person: Person) -> Piece:
        bot = await self._workspaces.bot(command.visitor.team)
        overview = await self._concerns.of(command.visitor, person)
        return overview_piece(overview, lambda shown: permalink(bot.url, shown))

    async def _stop(self, command: Command, person: Person) -> str:
        """Everything of this person's in the channel where they say it."""
        team, channel = command.visitor.team, command.visitor.spot.channel
        here = f"{within_team(team)}{channel}"
        found = await self._services.queries.turns_of(person, here)
        threads = [thread for thread in found if is_within(thread, here)]
        # Each thread is stopped by a delivery of its own; the trigger names this one use of the command.
        use = f"{within_team(team)}stop:{command.visitor.trigger_id or uuid4().hex}"
        results = [await self._services.inbox.stop(f"{use}:{thread}", thread, person) for thread in threads]
        stopped = sum(isinstance(result, Settled) for result in results)
        if not stopped:
            return NOTHING_TO_STOP  # or it has ended by itself meanwhile, which is the same
        return "Stopped." if stopped == 1 else f"Stopped {stopped} conversations."


def is_within(thread_id: str, channel: str) -> bool:
    """Whether a thread (`{channel}:{ts}`) or session (`{channel}#{number}`) is in that channel, not in one whose id
    merely begins like it."""
    return thread_id == channel or thread_id.removeprefix(channel)[:1] in (":", "#")


def ephemeral(piece: Piece) -> dict[str, Any]:
    """The answer to a command, for whoever gave it."""
    return {"response_type": "ephemeral", "text": piece.text, "blocks": list(piece.blocks)}
