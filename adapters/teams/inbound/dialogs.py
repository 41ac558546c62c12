"""Dialogs: what is in them, and what was submitted, judged at once, so that mistakes show with the input kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from adapters.shared import actions
from adapters.shared.clicks import (
    DialogRenderer,
    all_in_words,
    approve_all,
    asking_server,
    choose_someone,
    content_of,
    dialog_for,
    hand_over,
    in_words,
    not_known,
    service_of,
    settle,
    settled_already,
)
from adapters.shared.untrusted_json import words
from adapters.shared.wording import call_title
from adapters.teams.actions import CLOSE, DialogButton
from adapters.teams.ids import TeamsLocation, is_object_id
from adapters.teams.inbound.activities import TeamsClick
from adapters.teams.inbound.answers import NOTHING, Reply, TeamsAnswers, closing, opened, said
from adapters.teams.inbound.clicks import act_of, said_of, sees_decision_buttons, within_of
from adapters.teams.render.cards import has_asked
from adapters.teams.render.dialogs import (
    Dialog,
    always_dialog,
    answer_dialog,
    approve_all_dialog,
    code_dialog,
    connect_dialog,
    disconnect_dialog,
    edit_dialog,
    hand_over_dialog,
    hidden_dialog,
    reject_dialog,
    show_all_dialog,
    withdraw_dialog,
)
from adapters.teams.render.inputs import entries, is_as_drawn
from bot.domain import ApprovalView, Form, Invalid, Person, Refused, Settled, SignInView, Unwelcome
from bot.services import Services
from translations import gettext as _

FindColleague = Callable[[TeamsLocation, str], Awaitable[Person | Unwelcome]]
"""Who the account of an object id is, as far as it can be found out."""
_SHOWS = {
    DialogButton.REJECT: actions.REJECT,
    DialogButton.EDIT: actions.EDIT,
    DialogButton.ALWAYS: actions.ALWAYS,
    DialogButton.HAND_OVER: actions.HAND_OVER,
    DialogButton.APPROVE_ALL: actions.APPROVE_ALL,
    DialogButton.ANSWER: actions.ANSWER,
    DialogButton.SHOW_HIDDEN: actions.SHOW_HIDDEN,
    **{name: name for name in (actions.SHOW_HIDDEN_PAGE, actions.SHOW_ALL, actions.PAGE)},
}
"""What each button opens that is no form about an account."""
_TOLD = (actions.ENTER_CODE, actions.DISCONNECT)
"""What came of these no card shows."""


def not_yours() -> str:
    """Returns what is said to somebody who opens another person's sign-in."""
    return _("This sign-in is for someone else.")


def not_connected() -> str:
    """Returns what is said where there is no such account any more."""
    return _("This account isn’t connected.")


class Dialogs:
    """What each dialog shows and does."""

    def __init__(self, services: Services, answers: TeamsAnswers, colleague: FindColleague) -> None:
        self._services = services
        self._colleague = colleague
        self._answers = answers

    async def fetched(self, click: TeamsClick) -> Reply:
        """`task/fetch`: settles nothing. Raises whatever the services raise."""
        person = await self._answers.who(click.visitor)
        return said(person.text) if isinstance(person, Unwelcome) else await self._show(click, person)

    async def submitted(self, click: TeamsClick) -> Reply:
        """`task/submit`: judged and recorded. Raises whatever the services raise."""
        if click.action == CLOSE:
            return NOTHING
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            return said(person.text)
        if click.action == actions.APPROVE_ALL:
            results = await approve_all(self._services, click.key, person, click.subject)
            return closing(all_in_words(results)) if results else said(not_known().text)
        if click.action == actions.HAND_OVER:
            return await self._hand_over(click, person)
        if click.action not in actions.SETTLING:
            return await self._show(click, person)
        result = await self._unchanged(click, person) or await settle(self._services, act_of(click, person))
        if isinstance(result, Invalid):
            return await self._again(click, person, result)
        if isinstance(result, Settled) and (not result.final or click.action in _TOLD):
            return closing(result.text)
        return closing(said_of(result))

    async def _show(self, click: TeamsClick, person: Person) -> Reply:
        if click.action == DialogButton.CODE:
            return await self._code(click, person)
        if click.action == DialogButton.DISCONNECT:
            return await self._disconnect(click, person)
        if click.action == DialogButton.CONNECT:
            return await self._connect(click, person)
        if click.action == DialogButton.WITHDRAW:
            return await self._withdraw(click)

        async def arguments(view: ApprovalView, page: int) -> Dialog:
            decides, asked = (
                await sees_decision_buttons(self._services.queries, view, person),
                has_asked(view, person.person_id),
            )
            note = words(click.data, actions.NOTE)
            console = await self._services.console_links.turn_link(view.approval_id, person)
            return show_all_dialog(view, page, decides=decides, asked=asked, note=note, console=console)

        draw = DialogRenderer(
            about={
                actions.REJECT: reject_dialog,
                actions.ALWAYS: always_dialog,
                actions.HAND_OVER: hand_over_dialog,
            },
            edit=lambda form, view: edit_dialog(click.subject, replace(form, title=call_title(view)), view=view),
            answer=lambda form, server: answer_dialog(click.subject, form, server=server),
            arguments=arguments,
            hidden=hidden_dialog,
            approve_all=approve_all_dialog,
        )
        action, within = _SHOWS.get(click.action, ""), within_of(click)
        dialog = await dialog_for(action, click.subject, person, services=self._services, within=within, draw=draw)
        return said(dialog) if isinstance(dialog, str) else opened(dialog)

    async def _unchanged(self, click: TeamsClick, person: Person) -> Invalid | None:
        """What is said to somebody who saves an edit and has changed nothing."""
        if click.action != actions.EDIT:
            return None
        form = await self._services.approvals.edit_form(click.subject, person)
        if not isinstance(form, Form) or not is_as_drawn(entries(click.data, form), form):
            return None
        return Invalid({"": _("Nothing changed. Edit a value, or approve the request as it is.")})

    async def _hand_over(self, click: TeamsClick, person: Person) -> Reply:
        async def find(user: str) -> Person | Unwelcome:
            if not is_object_id(user):
                return Unwelcome(choose_someone())
            return await self._colleague(click.visitor.location, user.lower())

        picked, typed = words(click.data, actions.COLLEAGUE).strip(), words(click.data, actions.ADDRESS)
        act = act_of(click, person)
        if not picked and is_object_id(typed.strip()):  # not every client has a people picker
            picked, act = typed.strip(), replace(act, text=lambda _name: "")
        result = await hand_over(self._services, act, picked, find)
        if isinstance(result, Refused | Invalid):
            view = await self._services.queries.approval(click.subject, within_of(click))
            if isinstance(view, ApprovalView) and view.status == "pending":
                wrong = said_of(result)
                return opened(hand_over_dialog(view, wrong, typed), wrong)
        return closing(in_words(result))

    async def _withdraw(self, click: TeamsClick) -> Reply:
        """Asks whether they mean it. Who may is judged when they do."""
        view = await self._services.queries.approval(click.subject, within_of(click))
        if not isinstance(view, ApprovalView):
            return said(view.text)
        return opened(withdraw_dialog(view)) if view.status == "pending" else said(settled_already())

    async def _code(self, click: TeamsClick, person: Person, mistake: str = "") -> Reply:
        """The form for a code, for the owner of the sign-in while it waits. `mistake`: what was wrong with the last."""
        view = await content_of(self._services.queries, click.subject, within_of(click))
        if not isinstance(view, SignInView):
            return said(mistake or not_known().text)
        if view.owner_id != person.person_id:
            return said(not_yours())
        return (
            opened(code_dialog(view, mistake), mistake) if view.status == "open" else said(mistake or settled_already())
        )

    async def _disconnect(self, click: TeamsClick, person: Person) -> Reply:
        """Asks whether they mean it, of an account of their own."""
        own = {view.connection_id: view for view in await self._services.connections.of_person(person)}
        view = own.get(click.subject)
        return said(not_connected()) if view is None else opened(disconnect_dialog(view))

    async def _connect(self, click: TeamsClick, person: Person) -> Reply:
        """A link of their own, which no conversation keeps."""
        link = await self._services.sign_in_links.connect_link(person.person_id, click.subject, person.name)
        if isinstance(link, str):
            return opened(connect_dialog(service_of(self._services, click.subject), link))
        return said(link.text)

    async def _again(self, click: TeamsClick, person: Person, mistakes: Invalid) -> Reply:
        """The form that was submitted, with what is wrong in it and what was typed."""
        wrong, subject, within = said_of(mistakes), click.subject, within_of(click)
        if click.action == actions.REJECT:
            view = await self._services.queries.approval(subject, within)
            if isinstance(view, ApprovalView):
                return opened(reject_dialog(view, mistakes.errors, words(click.data, actions.REASON)), wrong)
        if click.action == actions.EDIT:
            form = await self._services.approvals.edit_form(subject, person)
            if isinstance(form, Form):
                found = await self._services.queries.approval(subject, within)
                about = found if isinstance(found, ApprovalView) else None
                form = replace(form, title=call_title(about)) if about else form
                entered = entries(click.data, form)
                return opened(edit_dialog(subject, form, mistakes.errors, entered, view=about), wrong)
        if click.action == actions.ANSWER:
            form = await self._services.questions.form(subject, person)
            if isinstance(form, Form):
                typed, server = entries(click.data, form), await asking_server(self._services.queries, subject, within)
                return opened(answer_dialog(subject, form, mistakes.errors, typed, server=server), wrong)
        if click.action == actions.ENTER_CODE:
            return await self._code(click, person, wrong)
        return said(wrong)
