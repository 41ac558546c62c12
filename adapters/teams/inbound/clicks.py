"""Clicks on our cards: judged and recorded before Teams gets its answer, which is the card's next state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.untrusted_json import words
from adapters.teams import actions
from adapters.teams.ids import TeamsLocation, is_object_id
from adapters.teams.inbound.answers import WENT_WRONG, Reply, TeamsAnswers, shown_card, told
from adapters.teams.inbound.deciding import (
    DECIDING,
    NOT_KNOWN,
    SENT,
    SignInLinkReplies,
    content_of,
    in_words,
    may_decide,
    settle,
)
from adapters.teams.inbound.duplicates import Duplicates
from adapters.teams.inbound.gestures import TeamsClick
from adapters.teams.render.cards import has_asked
from adapters.teams.render.posts import card_of
from bot.approvals.decisions import Approvals
from bot.domain import ApprovalView, ClickResult, Handover, Invalid, Person, Settled, Unknown, Unwelcome
from bot.services import Services

NEEDS_A_WINDOW = "This button opens a window, which your Teams did not do. Please try it in another Teams client."
_WINDOWS = frozenset(
    {
        actions.REJECT_DIALOG,
        actions.EDIT_DIALOG,
        actions.SHOW_ALL,
        actions.LOOK_DIALOG,
        actions.APPROVE_ALL_DIALOG,
        actions.ANSWER_DIALOG,
        actions.ALWAYS_DIALOG,
        actions.HAND_OVER_DIALOG,
        actions.CODE_DIALOG,
        actions.DISCONNECT_DIALOG,
    }
)


class TeamsClickHandler:
    """What each button on a card does."""

    def __init__(
        self,
        services: Services,
        answers: TeamsAnswers,
        links: SignInLinkReplies,
        duplicates: Duplicates,
        background: BackgroundTasks,
    ) -> None:
        self._services = services
        self._answers = answers
        self._links = links
        self._duplicates = duplicates
        self._background = background

    async def executed(self, click: TeamsClick) -> Reply:
        """`Action.Execute`, or a refresh, which changes nothing. Raises whatever the services raise."""
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            return told(person.text)
        if click.action in DECIDING:
            reply = await self._decided(click, person)
        elif click.action == actions.REFRESH:
            reply = await self._next_state(click, person, otherwise="")
        elif click.action == actions.GET_LINK:
            return told(await self._links.give(click, person))
        else:
            return told(NOT_KNOWN.text)
        self._duplicates.look_at(click)
        return reply

    async def submitted(self, click: TeamsClick) -> None:
        """`Action.Submit`, in clients that know no other: a message that carries the click. Who clicked is answered by
        a message too. Raises whatever the services raise, when they are being told that it did not work."""
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            self._answer(click, person.text)
            return
        if click.action == actions.GET_LINK:
            self._errand(self._link(click, person), click)
        elif click.action in _WINDOWS:
            self._answer(click, NEEDS_A_WINDOW)
        elif click.action != actions.REFRESH:
            await self._settled(click, person)
        self._duplicates.look_at(click)

    async def _settled(self, click: TeamsClick, person: Person) -> None:
        try:
            result = await settle(self._services, click, person)
        except Exception:
            # Whatever it was, their click gets an answer; whoever awaits this logs the cause.
            self._answer(click, WENT_WRONG)
            raise
        if isinstance(result, Settled):
            if not result.final:  # the card shows it too, so that nobody else has to hear of it
                self._errand(self._answers.say(click.visitor, result.text, to_others=""), click)
        else:
            self._answer(click, in_words(result))

    async def _decided(self, click: TeamsClick, person: Person) -> Reply:
        result = await settle(self._services, click, person)
        if isinstance(result, Settled):
            return await self._next_state(click, person, otherwise=result.text)
        return told(in_words(result))

    async def _next_state(self, click: TeamsClick, person: Person, otherwise: str) -> Reply:
        """The card as this person sees it now; a sentence where it is shown nowhere."""
        content = await content_of(self._services.queries, click)
        if isinstance(content, Unknown):
            return told(otherwise or content.text)
        asked = isinstance(content, ApprovalView) and has_asked(content, person.person_id)
        return shown_card(
            card_of(content, decides=await may_decide(self._services.queries, content, person), asked=asked)
        )

    async def _link(self, click: TeamsClick, person: Person) -> None:
        async with self._answers.whatever_happens(click.visitor):
            text = await self._links.give(click, person)
        if text != SENT:
            await self._answers.say(click.visitor, text)

    def _answer(self, click: TeamsClick, text: str) -> None:
        if text:
            self._errand(self._answers.say(click.visitor, text), click)

    def _errand(self, errand: Coroutine[Any, Any, None], click: TeamsClick) -> None:
        self._background.start(errand, f"click {click.action}")


# --------------------------------------------------------------------- asking somebody else to decide

CHOOSE_SOMEBODY = "Please choose somebody, or write their e-mail address."
CHOOSE_ONE = "Please either choose somebody or write an e-mail address."
FindColleague = Callable[[TeamsLocation, str], Awaitable[Person | Unwelcome]]
"""Who the account of an object id is, as far as it can be found out."""


async def hand_over(approvals: Approvals, click: TeamsClick, person: Person, colleague: FindColleague) -> ClickResult:
    """Ask whom the dialog names to decide."""
    picked, typed = words(click.data, actions.COLLEAGUE).strip(), words(click.data, actions.ADDRESS).strip()
    if picked and typed:
        return Invalid({"": CHOOSE_ONE})
    named = picked or typed
    if not is_object_id(named):
        if not typed or "@" not in typed:
            return Invalid({"": CHOOSE_SOMEBODY})
        return await approvals.hand_over(Handover(click.key, person, click.subject, typed))
    found = await colleague(click.visitor.location, named.lower())
    if isinstance(found, Unwelcome):
        return Invalid({"": found.text})
    return await approvals.hand_over(Handover(click.key, person, click.subject, found.person_id, found.name))
