"""Invokes: what Teams waits for an answer to, 5 seconds at most."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.clicks import went_wrong, whatever_happens
from adapters.shared.outages import AWAY, RefusedInOwnForm
from adapters.shared.untrusted_json import part, words
from adapters.teams.actions import ACTION, REFRESH
from adapters.teams.ids import our_id
from adapters.teams.inbound.activities import card_click, dialog_click, read_click, read_feedback
from adapters.teams.inbound.answers import NOTHING, Reply, TeamsAnswers, for_one, refused, said, told
from adapters.teams.inbound.clicks import TeamsClickHandler
from adapters.teams.inbound.dialogs import Dialogs
from adapters.teams.inbound.messages import TeamsMessageHandler
from adapters.teams.inbound.visitors import TeamsRecipient, TeamsVisitor, visitor_of
from bot.accounts.connections import Connections
from bot.domain import SignInReply, Unwelcome
from bot.records.database import is_outage
from translations import gettext as _

log = structlog.get_logger(__name__)

Activity = Mapping[str, Any]
InvokeHandler = Callable[[Activity, TeamsVisitor], Awaitable[Reply]]

ANSWER_SECONDS = 4.5
"""Seconds; what takes longer goes on without the person who waits."""
LEAST = 0.5
"""Seconds that it gets in any case."""


def still_at_it() -> str:
    """Returns what is said to somebody who has waited as long as Teams waits."""
    return _("This takes longer than usual. The card will show the outcome.")


class Invokes:
    """What each invoke does."""

    def __init__(
        self,
        connections: Connections,
        *,
        answers: TeamsAnswers,
        clicks: TeamsClickHandler,
        dialogs: Dialogs,
        messages: TeamsMessageHandler,
        background: BackgroundTasks,
        within: float,
    ) -> None:
        self._connections = connections
        self._answers = answers
        self._messages = messages
        self._background = background
        self._within = within
        self._handlers: dict[str, InvokeHandler] = {
            "adaptiveCard/action": lambda activity, visitor: clicks.executed(card_click(activity, visitor)),
            "task/fetch": lambda activity, visitor: dialogs.fetched(dialog_click(activity, visitor)),
            "task/submit": lambda activity, visitor: dialogs.submitted(dialog_click(activity, visitor)),
            "message/submitAction": self._feedback,
            "signin/verifyState": self._verified,
        }

    async def answer(self, activity: Activity, recipient: TeamsRecipient, arrived: float) -> Reply:
        """The answer to an invoke: a failure of ours is said to whoever clicked, and logged here. Raises
        `RefusedInOwnForm` alone.

        `arrived`: when it came, in the event loop's time; checking its token may have taken a while already.
        """
        name = words(activity, "name")
        handler, visitor = self._handlers.get(name), visitor_of(activity, recipient)
        if handler is None:
            return refused(501, "NotImplemented", "This invoke is not for this bot.")
        if visitor is None or not part(activity, "value"):
            return refused(400, "BadArgument", "The invoke has no value, no conversation, or is nobody's.")
        with for_one(visitor):
            return await self._within_time(handler(activity, visitor), name, activity, visitor, arrived)

    async def _within_time(
        self, handling: Awaitable[Reply], name: str, activity: Activity, visitor: TeamsVisitor, arrived: float
    ) -> Reply:
        task = asyncio.ensure_future(handling)
        try:
            spent = asyncio.get_running_loop().time() - arrived
            await asyncio.wait({task}, timeout=max(self._within - spent, LEAST))
        finally:
            if not task.done():
                self._background.start(self._afterwards(task, name, activity, visitor), f"late {name}")
        if not task.done():
            log.warning("teams_invoke_late", invoke=name)
            return _sentence(name, still_at_it()) or NOTHING
        try:
            return task.result()
        except Exception as error:
            if is_outage(error):
                raise RefusedInOwnForm(_away(name)) from error
            # Whatever it was, their click gets an answer, and nobody else would log the cause.
            log.exception("teams_invoke_failed", invoke=name)
            return _sentence(name, went_wrong()) or refused(503, "ServiceUnavailable", went_wrong())

    async def _afterwards(
        self, task: asyncio.Task[Reply], name: str, activity: Activity, visitor: TeamsVisitor
    ) -> None:
        """What came of it too late for its answer, where the card does not show that: said in a message. Raises
        whatever the handler raises."""
        if not _is_an_act(name, activity):
            await task
            return
        async with whatever_happens(partial(self._answers.say, visitor)):
            reply = await task
        if reply.sentence:
            await self._answers.say(visitor, reply.sentence)

    async def _feedback(self, activity: Activity, visitor: TeamsVisitor) -> Reply:
        if feedback := read_feedback(activity, visitor):
            await self._messages.record_feedback(feedback)
        return NOTHING

    async def _verified(self, activity: Activity, visitor: TeamsVisitor) -> Reply:
        """The page at the end of a sign-in closes itself with the id of ours: for Teams the same as the button."""
        sign_in_id = our_id(activity, "value", "state")
        person = await self._answers.who(visitor)
        if sign_in_id and not isinstance(person, Unwelcome):
            key = read_click(activity, {}, visitor).key
            await self._connections.sign_in_reply(SignInReply(key, person, sign_in_id, done=True))
        return NOTHING


def _is_an_act(name: str, activity: Activity) -> bool:
    """Whether somebody did something, rather than their client or they themselves wanting to see something."""
    if name == "adaptiveCard/action":
        return words(activity, "value", "action", "data", ACTION) != REFRESH
    return name == "task/submit"


def _sentence(name: str, text: str) -> Reply | None:
    """A sentence in the form that this invoke's asker shows; `None`: it shows none."""
    if name == "adaptiveCard/action":
        return told(text)
    return said(text) if name.startswith("task/") else None


def _away(name: str) -> web.Response:
    """Teams shows of an error no more than that there was one, so whoever waits is told to try again, where there is a
    form for that."""
    reply = _sentence(name, _(AWAY)) or refused(503, "ServiceUnavailable", AWAY)
    return web.json_response(reply.body, status=reply.status)
