"""The shortcut on a message, "Ask Countersign about this": opens the form to ask it in."""

from __future__ import annotations

from adapters.slack.actions import Origin
from adapters.slack.errands import Errands
from adapters.slack.inbound.answers import Answers
from adapters.slack.inbound.codes import without_code
from adapters.slack.inbound.events import text_of
from adapters.slack.inbound.gestures import Shortcut
from adapters.slack.inbound.openings import QUOTE_LIMIT
from adapters.slack.reading import slack_ts
from adapters.slack.render.forms import ask_modal
from bot.domain import Unwelcome
from bot.safe_text import shorten


class Shortcuts:
    """What the shortcut does."""

    def __init__(self, answers: Answers, errands: Errands) -> None:
        self._answers = answers
        self._errands = errands

    def handle(self, shortcut: Shortcut, bot_user: str) -> None:
        """Open the form. Nothing is to be kept yet, so that Slack gets its answer before."""
        self._errands.start(self._ask(shortcut, bot_user), "shortcut")

    async def _ask(self, shortcut: Shortcut, bot_user: str) -> None:
        async with self._answers.whatever_happens(shortcut.visitor):
            person = await self._answers.who(shortcut.visitor)
            if isinstance(person, Unwelcome):
                await self._answers.say(shortcut.visitor, person.text)
                return
            spot = shortcut.visitor.spot
            origin = Origin(channel=spot.channel, message_ts=slack_ts(shortcut.message, "ts"), thread_ts=spot.thread_ts)
            quoted = shorten(without_code(text_of(shortcut.message, bot_user)), QUOTE_LIMIT)
            await self._answers.open(shortcut.visitor, ask_modal(quoted, origin))
