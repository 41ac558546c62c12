"""Clicks on our cards: judged and recorded before Teams gets its answer, which is the card's next state."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from adapters.shared import actions
from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.clicks import (
    Act,
    content_of,
    in_words,
    not_known,
    settle,
    settled_already,
    went_wrong,
    whatever_happens,
)
from adapters.shared.memories import MemoryList, memory_list
from adapters.shared.untrusted_json import words
from adapters.teams.actions import REFRESH, DialogButton
from adapters.teams.ids import place_of, within_tenant
from adapters.teams.inbound.activities import TeamsClick
from adapters.teams.inbound.answers import Reply, TeamsAnswers, shown_card, told
from adapters.teams.inbound.duplicates import Duplicates
from adapters.teams.render.cards import has_asked
from adapters.teams.render.inputs import entries
from adapters.teams.render.memories import memory_card
from adapters.teams.render.posts import card_of, open_a_chat_first, sign_in_link
from bot.domain import ApprovalView, ChangeView, ClickResult, Content, Person, Settled, SignInView, Unknown, Unwelcome
from bot.queries import Queries
from bot.services import Services
from translations import gettext as _

ABOUT_APPROVALS = frozenset({actions.APPROVE, actions.REJECT, actions.EDIT, actions.WITHDRAW, actions.RETRY, REFRESH})
_WINDOWS = frozenset({*DialogButton, actions.SHOW_ALL})


def needs_a_window() -> str:
    """Returns what is said of a button that should have opened a dialog."""
    return _("This button opens a window, which this Teams app can’t. Try another Teams client.")


def sent() -> str:
    """Returns what is said when a link is on its way."""
    return _("I’m sending you the link in a message that only you can see.")


class TeamsClickHandler:
    """What each button on a card does."""

    def __init__(
        self, services: Services, answers: TeamsAnswers, duplicates: Duplicates, background: BackgroundTasks
    ) -> None:
        self._services = services
        self._answers = answers
        self._duplicates = duplicates
        self._background = background

    async def executed(self, click: TeamsClick) -> Reply:
        """`Action.Execute`, or a refresh, which changes nothing. Raises whatever the services raise."""
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            return told(person.text)
        if click.action in actions.OF_MEMORY:
            await settle(self._services, act_of(click, person))
            return shown_card(memory_card(await self._memories(click, person)))
        if click.action in actions.SETTLING:
            reply = await self._decided(click, person)
        elif click.action == REFRESH:
            reply = await self._next_state(click, person, otherwise="")
        elif click.action == actions.GET_LINK:
            return told(await self._give_link(click, person))
        else:
            return told(not_known().text)
        self._duplicates.check(click)
        return reply

    async def submitted(self, click: TeamsClick) -> None:
        """`Action.Submit`, in clients that know no other: a message that carries the click. Who clicked is answered by
        a message too. Raises whatever the services raise, when they are being told that it did not work."""
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            self._answer(click, person.text)
            return
        if click.action == actions.GET_LINK:
            self._start(self._link(click, person), click)
        elif click.action in _WINDOWS:
            self._answer(click, needs_a_window())
        elif click.action in actions.OF_MEMORY:
            self._answer(click, in_words(await settle(self._services, act_of(click, person))))
        elif click.action != REFRESH:
            await self._settled(click, person)
        self._duplicates.check(click)

    async def _memories(self, click: TeamsClick, person: Person) -> MemoryList:
        return await memory_list(self._services.memories, person.person_id, place_of(click.visitor.location).channel)

    async def _settled(self, click: TeamsClick, person: Person) -> None:
        try:
            result = await settle(self._services, act_of(click, person))
        except Exception:
            # Whatever it was, their click gets an answer; whoever awaits this logs the cause.
            self._answer(click, went_wrong())
            raise
        if isinstance(result, Settled):
            if not result.final:  # the card shows it too, so that nobody else has to be told
                self._start(self._answers.say(click.visitor, result.text, instead=None), click)
        else:
            self._answer(click, said_of(result))

    async def _decided(self, click: TeamsClick, person: Person) -> Reply:
        result = await settle(self._services, act_of(click, person))
        if isinstance(result, Settled):
            return await self._next_state(click, person, otherwise=result.text)
        return told(said_of(result))

    async def _next_state(self, click: TeamsClick, person: Person, otherwise: str) -> Reply:
        """The card as this person sees it now; a sentence where it is shown nowhere."""
        queries, within = self._services.queries, within_of(click)
        if click.action in ABOUT_APPROVALS:
            content: Content | Unknown = await queries.approval(click.subject, within)
        else:
            content = await content_of(queries, click.subject, within)
        if click.action == REFRESH and isinstance(content, Unknown):
            change = await content_of(queries, click.subject, within)  # the other card that is refreshed
            content = change if isinstance(change, ChangeView) else content
        if isinstance(content, Unknown):
            return told(otherwise or content.text)
        asked = has_asked(content, person.person_id)
        return shown_card(card_of(content, decides=await sees_decision_buttons(queries, content, person), asked=asked))

    async def _link(self, click: TeamsClick, person: Person) -> None:
        async with whatever_happens(partial(self._answers.say, click.visitor)):
            text = await self._give_link(click, person)
        if text != sent():
            await self._answers.say(click.visitor, text)

    async def _give_link(self, click: TeamsClick, person: Person) -> str:
        """Send a fresh link to sign in, if the sign-in is theirs; a sentence that says what came of it, `sent()` when
        it is on its way. A link is in nothing but the message that its owner gets."""
        link = await self._services.sign_in_links.link(click.subject, person.person_id)
        if not isinstance(link, str):
            return link.text
        view = await content_of(self._services.queries, click.subject, within_of(click))
        if not isinstance(view, SignInView):  # settled between the two readings
            return settled_already()
        message, instead = sign_in_link(view, link), partial(open_a_chat_first, view.owner)
        self._background.start(self._answers.tell(click.visitor, message, instead), "sign-in link")
        return sent()

    def _answer(self, click: TeamsClick, text: str) -> None:
        if text:
            self._start(self._answers.say(click.visitor, text), click)

    def _start(self, work: Coroutine[Any, Any, None], click: TeamsClick) -> None:
        self._background.start(work, f"click {click.action}")


def act_of(click: TeamsClick, person: Person) -> Act:
    """What a click settles, with what was filled in beside the button."""
    text, values = partial(words, click.data), partial(entries, click.data)
    channel = place_of(click.visitor.location).channel
    return Act(click.action, click.key, person, click.subject, text, values, channel)


def within_of(click: TeamsClick) -> str:
    """What the ids of all threads of the tenant begin with where somebody clicked: those of others are none of
    theirs."""
    return within_tenant(click.visitor.location.tenant)


def said_of(result: ClickResult) -> str:
    """What the person is told of their click; empty: the card shows it."""
    return "" if isinstance(result, Settled) else in_words(result)


async def sees_decision_buttons(queries: Queries, content: Content, person: Person) -> bool:
    """Whether a card shows them the buttons of a decision."""
    if not isinstance(content, ApprovalView) or content.status != "pending":
        return False
    return await queries.permitted(content.approval_id, person)
