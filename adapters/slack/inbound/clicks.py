"""Clicks on our buttons: those that decide are judged before Slack gets its answer, those that show come after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, cast

from adapters.shared.background_tasks import BackgroundTasks
from adapters.slack import actions
from adapters.slack.actions import Origin
from adapters.slack.ids import slack_id, token, within_team
from adapters.slack.inbound.answers import SlackAnswers
from adapters.slack.inbound.home_tab import HomeTab
from adapters.slack.inbound.payloads import SlackClick, origin_of_view
from adapters.slack.render.forms import (
    always_modal,
    answer_modal,
    approve_all_modal,
    arguments_modal,
    code_modal,
    edit_modal,
    hand_over_modal,
    hidden_modal,
    reject_modal,
)
from adapters.slack.render.posts import sign_in_piece
from adapters.slack.web_api.client import AT_ONCE
from bot.domain import (
    ApprovalView,
    ClarificationView,
    ClickResult,
    Content,
    Decision,
    Dismissal,
    Feedback,
    Form,
    Hidden,
    Invalid,
    OutcomeChoice,
    Person,
    Settled,
    SignInReply,
    SignInView,
    Unknown,
    Unwelcome,
)
from bot.services import Services

DECIDING = frozenset(
    {
        actions.APPROVE,
        actions.SIGNED_IN,
        actions.NOT_NOW,
        actions.IT_WAS_DONE,
        actions.TRY_AGAIN,
        actions.SKIP,
        actions.FEEDBACK,
        actions.TAKE_BACK,
        actions.REVOKE,
        actions.DECLINE,
        actions.CANCEL,
        actions.DISCONNECT,
    }
)
TOLD = frozenset({actions.FEEDBACK, actions.DISCONNECT})
"""What no card shows is told whoever clicked."""
DISCONNECT_WHO_WITHIN = 0.8
"""Seconds, of the 3 that Slack waits, for finding out who disconnects: telling the service may take 2 of them."""
SETTLED_ALREADY = "This is settled already; nothing waits for you here."
NOTHING_TO_APPROVE = "Nothing waits here that you may decide."
NOT_KNOWN = Unknown("This button is not known any more.")
NOT_YOUR_CODE = "Only the person whose sign-in this is can enter its code."
NO_CODE = "No code is waited for here (any more). Get your link again, and sign in anew."

OutcomeVerb = Literal["it_was_done", "try_again", "skip"]


class SlackClickHandler:
    """What each button does."""

    def __init__(self, services: Services, answers: SlackAnswers, home: HomeTab, background: BackgroundTasks) -> None:
        self._services = services
        self._answers = answers
        self._home = home
        self._background = background
        self._shows: dict[str, Callable[[SlackClick, Person], Awaitable[None]]] = {
            actions.REJECT: self._reject,
            actions.EDIT: self._edit,
            actions.SHOW_ALL: self._show_all,
            actions.LOOK: self._look,
            actions.LOOK_PAGE: self._look_page,
            actions.APPROVE_ALL: self._approve_all,
            actions.ALWAYS: self._always,
            actions.HAND_OVER: self._hand_over,
            actions.ANSWER: self._answer,
            actions.GET_LINK: self._get_link,
            actions.ENTER_CODE: self._enter_code,
            actions.PAGE: self._page,
        }

    async def handle(self, click: SlackClick) -> bool:
        """Do what the button says; Slack gets its answer when this returns. False: it is no button of ours (any more),
        which the person is told.

        Raises whatever the services raise, so that Slack tells the person that it did not work.
        """
        if click.action in DECIDING:
            await self._decide(click)
        elif click.action in self._shows:
            self._background.start(self._show(click), f"click {click.action}")
        elif click.action not in (actions.OPEN_LINK, actions.OPEN_THREAD):  # Slack has opened those already
            self._background.start(self._answers.say(click.visitor, NOT_KNOWN.text), "unknown button")
            return False
        return True

    # -------------------------------------------------------------------------------------------- decide lane

    async def _decide(self, click: SlackClick) -> None:
        within = DISCONNECT_WHO_WITHIN if click.action == actions.DISCONNECT else AT_ONCE
        person = await self._answers.who(click.visitor, within)
        if isinstance(person, Unwelcome):
            self._background.start(self._answers.say(click.visitor, person.text), "refusal")
            return
        result = await settle(self._services, click, person)
        self._background.start(self._tell(click, result), "click's answer")

    async def _tell(self, click: SlackClick, result: ClickResult) -> None:
        if text := answer_in_words(click.action, result):
            await self._answers.say(click.visitor, text)
        if click.visitor.home:
            await self._home.publish(click.visitor)

    # -------------------------------------------------------------------------------------------- ask lane

    async def _show(self, click: SlackClick) -> None:
        async with self._answers.whatever_happens(click.visitor):
            person = await self._answers.who(click.visitor)
            if isinstance(person, Unwelcome):
                await self._answers.say(click.visitor, person.text)
            else:
                await self._shows[click.action](click, person)

    async def _reject(self, click: SlackClick, person: Person) -> None:
        if view := await self._waiting(click):
            await self._answers.open(click.visitor, reject_modal(view, origin_of(click)))

    async def _always(self, click: SlackClick, person: Person) -> None:
        if view := await self._waiting(click):
            await self._answers.open(click.visitor, always_modal(view, origin_of(click)))

    async def _hand_over(self, click: SlackClick, person: Person) -> None:
        if view := await self._waiting(click):
            await self._answers.open(click.visitor, hand_over_modal(view, origin_of(click)))

    async def _edit(self, click: SlackClick, person: Person) -> None:
        form = await self._services.approvals.edit_form(click.value, person)
        if isinstance(form, Form):
            await self._answers.open(click.visitor, edit_modal(form, origin_of(click), person))
        else:
            await self._answers.say(click.visitor, form.text)

    async def _show_all(self, click: SlackClick, person: Person) -> None:
        view = await self._approval(click, click.value)
        if isinstance(view, ApprovalView):
            await self._answers.open(click.visitor, arguments_modal(view, 0, origin_of(click)))
        else:
            await self._answers.say(click.visitor, view.text)

    async def _look(self, click: SlackClick, person: Person) -> None:
        hidden = await self._services.approvals.reveal(click.value, person)
        if isinstance(hidden, Hidden):
            await self._answers.open(click.visitor, hidden_modal(hidden, 0, origin_of(click)))
        else:
            await self._answers.say(click.visitor, hidden.text)

    async def _look_page(self, click: SlackClick, person: Person) -> None:
        """Another page is another look: whether this person may is judged once more."""
        number, _, approval_id = click.value.partition(":")
        origin = origin_of_view(click.view)
        if origin is None or not (number.isascii() and number.isdigit()):
            await self._answers.say(click.visitor, NOT_KNOWN.text)
            return
        hidden = await self._services.approvals.reveal(approval_id, person)
        if isinstance(hidden, Hidden):
            view_id, view_hash = slack_id(click.view, "id"), token(click.view, "hash")
            await self._answers.turn(click.visitor, view_id, view_hash, hidden_modal(hidden, int(number[:6]), origin))
        else:
            await self._answers.say(click.visitor, hidden.text)

    async def _approve_all(self, click: SlackClick, person: Person) -> None:
        together = await self._services.queries.together(click.value, person)
        if together.listed or together.more:
            await self._answers.open(click.visitor, approve_all_modal(together, origin_of(click)))
        else:
            await self._answers.say(click.visitor, NOTHING_TO_APPROVE)

    async def _answer(self, click: SlackClick, person: Person) -> None:
        form = await self._services.questions.form(click.value, person)
        if isinstance(form, Form):
            view = await self._card(click)
            server = view.server if isinstance(view, ClarificationView) else ""
            await self._answers.open(click.visitor, answer_modal(form, origin_of(click), person, server))
        else:
            await self._answers.say(click.visitor, form.text)

    async def _get_link(self, click: SlackClick, person: Person) -> None:
        link = await self._services.sign_in_links.link(click.value, person.person_id)
        if not isinstance(link, str):
            await self._answers.say(click.visitor, link.text)
            return
        view = await self._card(click)
        if not isinstance(view, SignInView) or view.status != "open":  # settled between the two readings
            await self._answers.say(click.visitor, SETTLED_ALREADY)
            return
        await self._answers.tell(click.visitor, sign_in_piece(view, link))

    async def _enter_code(self, click: SlackClick, person: Person) -> None:
        view = await self._card(click)
        if not isinstance(view, SignInView) or view.owner_id != person.person_id:
            await self._answers.say(click.visitor, NOT_YOUR_CODE)
        elif not view.code_wanted:
            await self._answers.say(click.visitor, NO_CODE)
        else:
            await self._answers.open(click.visitor, code_modal(view, origin_of(click)))

    async def _page(self, click: SlackClick, person: Person) -> None:
        number, _, approval_id = click.value.partition(":")
        origin = origin_of_view(click.view)
        view = await self._approval(click, approval_id)
        if isinstance(view, ApprovalView) and origin is not None and number.isascii() and number.isdigit():
            modal = arguments_modal(view, int(number[:6]), origin)
            view_id, view_hash = slack_id(click.view, "id"), token(click.view, "hash")
            await self._answers.turn(click.visitor, view_id, view_hash, modal)
        else:
            await self._answers.say(click.visitor, (view if isinstance(view, Unknown) else NOT_KNOWN).text)

    async def _approval(self, click: SlackClick, approval_id: str) -> ApprovalView | Unknown:
        """An approval of the workspace where somebody clicked: those of others are none of theirs."""
        return await self._services.queries.approval(approval_id, within_team(click.visitor.team))

    async def _card(self, click: SlackClick) -> Content | None:
        """What the card of the clicked button's subject shows now; quick, since a trigger lives 3 s."""
        shown = await self._services.queries.shown(click.value)
        return shown[0].post.content if shown else None

    async def _waiting(self, click: SlackClick) -> ApprovalView | None:
        """The approval, while it waits; else the person is told."""
        view = await self._approval(click, click.value)
        if isinstance(view, ApprovalView) and view.status == "pending":
            return view
        await self._answers.say(click.visitor, view.text if isinstance(view, Unknown) else SETTLED_ALREADY)
        return None


def origin_of(click: SlackClick) -> Origin:
    """What a modal has to remember of the click that opens it."""
    location = click.visitor.location
    return Origin(click.value, location.channel, click.message_ts, location.thread_ts, home=click.visitor.home)


async def settle(services: Services, click: SlackClick, person: Person) -> ClickResult:
    """Judge and record a click that decides."""
    match click.action:
        case actions.APPROVE:
            results = await services.approvals.decide(Decision(click.key, person, (click.value,), "approve"))
            return results[click.value]
        case actions.SIGNED_IN | actions.NOT_NOW:
            return await services.connections.sign_in_reply(
                SignInReply(click.key, person, click.value, done=click.action == actions.SIGNED_IN)
            )
        case actions.DECLINE | actions.CANCEL:
            action = cast("Literal['decline', 'cancel']", click.action)
            return await services.questions.dismiss(Dismissal(click.key, person, click.value, action))
        case actions.DISCONNECT:
            return await services.connections.disconnect(click.value, person)
        case actions.TAKE_BACK:
            return await services.approvals.withdraw_request(click.key, click.value, person)
        case actions.REVOKE:
            return await services.approvals.revoke_standing_approval(click.value, person)
        case actions.FEEDBACK:
            verdict, _, post_id = click.value.partition(":")
            if verdict not in ("good", "bad"):
                return NOT_KNOWN
            return await services.inbox.feedback(Feedback(person, post_id, cast("Literal['good', 'bad']", verdict)))
        case choice:
            return await services.approvals.settle_outcome(
                OutcomeChoice(click.key, person, click.value, cast("OutcomeVerb", choice))
            )


def answer_in_words(action: str, result: ClickResult) -> str:
    """What the person is told of their click; empty: the card shows it."""
    match result:
        case Settled(text, final):
            return text if action in TOLD or not final else ""
        case Invalid(errors):
            return " ".join(errors.values())
        case _:
            return result.text
