"""How the person who did something is answered: nobody else sees it."""

from __future__ import annotations

from asyncio import timeout as deadline
from dataclasses import replace

import structlog

from adapters.shared.calls import CallFailed
from adapters.slack.ids import person_id
from adapters.slack.inbound.payloads import SlackVisitor
from adapters.slack.outbound.posting import SlackPrivateMessages, put_in_place
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.forms import note_modal
from adapters.slack.render.posts import note
from adapters.slack.sender import SlackSender
from adapters.slack.web_api.client import AT_ONCE
from bot.domain import Person, Unwelcome
from translations import gettext as _

log = structlog.get_logger(__name__)

NAME_WITHIN = 0.5
"""Seconds, of the 3 that Slack waits for the answer to a form, for the name of whom it names."""
_CLOSED = frozenset({"not_found", "view_not_found", "hash_conflict"})
"""Slack's words for a modal that shows something else by now, or nothing."""
_TOO_LATE = frozenset({"expired_trigger_id", "exchanged_trigger_id", "trigger_expired", "trigger_exchanged"})


def no_colleague() -> str:
    """Returns what somebody is told who wants to ask somebody who may not use us."""
    return _("Choose a full member of this workspace, not a guest or a bot.")


def not_found_out() -> str:
    """Returns what somebody is told whom Slack did not tell us of in time."""
    return _("Slack didn’t confirm who you are, so nothing changed. Try again.")


def click_again() -> str:
    """Returns what somebody is told whose click is too old for Slack to open a window."""
    return _("Slack took too long to open the window. Click again.")


class SlackAnswers:
    """Says who somebody is, and answers them alone."""

    def __init__(self, sender: SlackSender) -> None:
        self._api = sender.api
        self._people = sender.people
        self._private = SlackPrivateMessages(sender.api)

    async def who(self, visitor: SlackVisitor, within: float = AT_ONCE) -> Person | Unwelcome:
        """Who it is who does something. Whoever cannot be looked up `within` so many seconds is not let in."""
        try:
            async with deadline(within):
                return await self._people.admitted(visitor.team, visitor.user, visitor.home_team)
        except (CallFailed, TimeoutError) as failure:
            log.warning("slack_person_not_known", team=visitor.team, user=visitor.user, error=str(failure) or "timeout")
            return Unwelcome(not_found_out())

    async def colleague(self, visitor: SlackVisitor, user: str) -> Person | Unwelcome:
        """Somebody whom a visitor means, in the same workspace. Where Slack does not say in time who that is, they are
        let in without a name: once they click themselves they are judged."""
        try:
            async with deadline(NAME_WITHIN):
                found = await self._people.admitted(visitor.team, user)
        except (CallFailed, TimeoutError) as failure:
            log.info("slack_colleague_not_known", team=visitor.team, user=user, error=str(failure) or "timeout")
            return Person(person_id(visitor.team, user), "")
        return Unwelcome(no_colleague()) if isinstance(found, Unwelcome) else found

    async def say(self, visitor: SlackVisitor, text: str) -> None:
        """A sentence: in the App Home in a window, elsewhere as an ephemeral message, where neither is possible in a
        direct message."""
        if visitor.home and await self._opened(visitor, note_modal("Countersign", text)) is None:
            return
        await self.tell(visitor, note(text))

    async def tell(self, visitor: SlackVisitor, piece: SlackMessage) -> None:
        """A message, by the first way that is open."""
        await self._private.tell(visitor.team, visitor.user, visitor.location, piece, visitor.response_url)

    async def put_in_place(self, visitor: SlackVisitor, piece: SlackMessage) -> None:
        """A message in the place of the one whose button was clicked, which they alone see."""
        if not (visitor.response_url and await put_in_place(visitor.response_url, piece)):
            await self.tell(replace(visitor, response_url=""), piece)

    async def open(self, visitor: SlackVisitor, view: dict[str, object]) -> None:
        """A modal. When Slack does not open it any more, a sentence says so."""
        error = await self._opened(visitor, view)
        if error is None:
            return
        if error not in _TOO_LATE:
            log.warning("slack_modal_not_opened", team=visitor.team, error=error, modal=view.get("callback_id"))
        await self.tell(visitor, note(click_again() if error in _TOO_LATE else _not_opened(error)))

    async def turn(self, visitor: SlackVisitor, view_id: str, view_hash: str, view: dict[str, object]) -> None:
        """Another page of a modal that is open. Who has closed it meanwhile needs no answer."""
        arguments = {"view_id": view_id, "hash": view_hash, "view": view}
        try:
            await self._api.call(visitor.team, "views.update", arguments, patience=AT_ONCE)
        except CallFailed as failure:
            log.info("slack_modal_not_turned", team=visitor.team, error=failure.error)
            if failure.error not in _CLOSED:
                await self.tell(visitor, note(_not_opened(failure.error)))

    async def _opened(self, visitor: SlackVisitor, view: dict[str, object]) -> str | None:
        """`None`: it is open; else Slack's word for why not."""
        if not visitor.trigger_id:
            return "expired_trigger_id"
        arguments = {"trigger_id": visitor.trigger_id, "view": view}
        try:
            await self._api.call(visitor.team, "views.open", arguments, patience=AT_ONCE)
        except CallFailed as failure:
            return failure.error
        return None


def _not_opened(error: str) -> str:
    return _("Slack didn’t open the window ({error}). Click again in a moment.").format(error=error)
