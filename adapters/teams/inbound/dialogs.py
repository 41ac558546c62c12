"""Dialogs: what is in them, and what was submitted, judged at once, so that mistakes show with the input kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.shared.untrusted_json import words
from adapters.teams import actions
from adapters.teams.ids import within_tenant
from adapters.teams.inbound.answers import NOTHING, Reply, TeamsAnswers, closing, opened, said
from adapters.teams.inbound.clicks import FindColleague, hand_over
from adapters.teams.inbound.deciding import (
    DECIDING,
    NOT_KNOWN,
    NOTHING_TO_APPROVE,
    SETTLED_ALREADY,
    all_in_words,
    approve_all,
    content_of,
    in_words,
    may_decide,
    settle,
)
from adapters.teams.inbound.gestures import TeamsClick
from adapters.teams.render.cards import has_asked
from adapters.teams.render.dialogs import (
    Dialog,
    always_dialog,
    answer_dialog,
    approve_all_dialog,
    code_dialog,
    disconnect_dialog,
    edit_dialog,
    hand_over_dialog,
    hidden_dialog,
    reject_dialog,
    show_all_dialog,
)
from adapters.teams.render.inputs import entries
from bot.accounts.connections import Connections
from bot.domain import (
    ApprovalView,
    ClarificationView,
    ClickResult,
    Form,
    Hidden,
    Invalid,
    Person,
    Refused,
    Settled,
    SignInView,
    Unknown,
    Unwelcome,
)
from bot.queries import Queries
from bot.services import Services


class Dialogs:
    """What each dialog shows and does."""

    def __init__(self, services: Services, answers: TeamsAnswers, colleague: FindColleague) -> None:
        self._services = services
        self._colleague = colleague
        self._answers = answers
        self._shows: dict[str, Callable[[TeamsClick, Person], Awaitable[Reply]]] = {
            actions.REJECT_DIALOG: self._reject,
            actions.EDIT_DIALOG: self._edit,
            actions.SHOW_ALL: self._show_all,
            actions.LOOK_DIALOG: self._look,
            actions.LOOK_PAGE: self._look_page,
            actions.APPROVE_ALL_DIALOG: self._approve_all,
            actions.ANSWER_DIALOG: self._answer,
            actions.ALWAYS_DIALOG: self._always,
            actions.HAND_OVER_DIALOG: self._hand_over,
            actions.CODE_DIALOG: self._code,
            actions.DISCONNECT_DIALOG: self._disconnect,
            actions.PAGE: self._page,
        }

    async def fetched(self, click: TeamsClick) -> Reply:
        """`task/fetch`: changes nothing. Raises whatever the services raise."""
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            return said(person.text)
        return await self._show(click, person)

    async def submitted(self, click: TeamsClick) -> Reply:
        """`task/submit`: judged and recorded. Raises whatever the services raise."""
        if click.action == actions.CLOSE:
            return NOTHING
        person = await self._answers.who(click.visitor)
        if isinstance(person, Unwelcome):
            return said(person.text)
        if click.action == actions.APPROVE_ALL:
            results = await approve_all(self._services.approvals, click, person)
            return closing(all_in_words(results)) if results else said(NOT_KNOWN.text)
        if click.action == actions.HAND_OVER:
            return await self._handed_over(click, person)
        if click.action not in DECIDING:
            return await self._show(click, person)
        result = await settle(self._services, click, person)
        if isinstance(result, Invalid):
            return await self._again(click, person, result)
        return closing(in_words(result) or unfinished(result) or told_of_account(click, result))

    async def _show(self, click: TeamsClick, person: Person) -> Reply:
        show = self._shows.get(click.action)
        return await show(click, person) if show else said(NOT_KNOWN.text)

    async def _reject(self, click: TeamsClick, person: Person) -> Reply:
        return await self._about(click, reject_dialog)

    async def _always(self, click: TeamsClick, person: Person) -> Reply:
        return await self._about(click, always_dialog)

    async def _hand_over(self, click: TeamsClick, person: Person) -> Reply:
        return await self._about(click, hand_over_dialog)

    async def _handed_over(self, click: TeamsClick, person: Person) -> Reply:
        result = await hand_over(self._services.approvals, click, person, self._colleague)
        if isinstance(result, Refused | Invalid):
            view = await self._approval(click, click.subject)
            if isinstance(view, ApprovalView) and view.status == "pending":
                wrong = in_words(result)
                return opened(hand_over_dialog(view, wrong, words(click.data, actions.ADDRESS)), wrong)
        return closing(result.text if isinstance(result, Settled) else in_words(result))

    async def _about(self, click: TeamsClick, dialog: Callable[[ApprovalView], Dialog]) -> Reply:
        """A dialog about an approval, while it waits."""
        view = await self._approval(click, click.subject)
        if isinstance(view, Unknown):
            return said(view.text)
        return opened(dialog(view)) if view.status == "pending" else said(SETTLED_ALREADY)

    async def _edit(self, click: TeamsClick, person: Person) -> Reply:
        form = await self._services.approvals.edit_form(click.subject, person)
        return opened(edit_dialog(click.subject, form)) if isinstance(form, Form) else said(form.text)

    async def _answer(self, click: TeamsClick, person: Person) -> Reply:
        form = await self._services.questions.form(click.subject, person)
        if not isinstance(form, Form):
            return said(form.text)
        return opened(answer_dialog(click.subject, form, server=await self._asker(click)))

    async def _asker(self, click: TeamsClick) -> str:
        """Name of the tool server that puts a question; empty: the model does."""
        content = await content_of(self._services.queries, click)
        return content.server if isinstance(content, ClarificationView) else ""

    async def _code(self, click: TeamsClick, person: Person) -> Reply:
        return await code_form(self._services.queries, click, person)

    async def _disconnect(self, click: TeamsClick, person: Person) -> Reply:
        return await disconnecting(self._services.connections, click, person)

    async def _approve_all(self, click: TeamsClick, person: Person) -> Reply:
        together = await self._services.queries.together(click.subject, person)
        return opened(approve_all_dialog(together)) if together.listed or together.more else said(NOTHING_TO_APPROVE)

    async def _show_all(self, click: TeamsClick, person: Person) -> Reply:
        return await self._arguments(click, click.subject, 0, person)

    async def _look(self, click: TeamsClick, person: Person) -> Reply:
        return await self._hidden(click.subject, 0, person)

    async def _look_page(self, click: TeamsClick, person: Person) -> Reply:
        number, _, approval_id = click.subject.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) <= 6):
            return said(NOT_KNOWN.text)
        return await self._hidden(approval_id, int(number), person)

    async def _hidden(self, approval_id: str, page: int, person: Person) -> Reply:
        """Each page is a look of its own: whether this person may is judged once more."""
        hidden = await self._services.approvals.reveal(approval_id, person)
        return opened(hidden_dialog(hidden, page)) if isinstance(hidden, Hidden) else said(hidden.text)

    async def _page(self, click: TeamsClick, person: Person) -> Reply:
        number, _, approval_id = click.subject.partition(":")
        if not (number.isascii() and number.isdigit() and len(number) <= 6):
            return said(NOT_KNOWN.text)
        return await self._arguments(click, approval_id, int(number), person)

    async def _arguments(self, click: TeamsClick, approval_id: str, page: int, person: Person) -> Reply:
        view = await self._approval(click, approval_id)
        if isinstance(view, Unknown):
            return said(view.text)
        decides, asked = await may_decide(self._services.queries, view, person), has_asked(view, person.person_id)
        return opened(show_all_dialog(view, page, decides=decides, asked=asked))

    async def _again(self, click: TeamsClick, person: Person, mistakes: Invalid) -> Reply:
        """The form that was submitted, with what is wrong in it and what was typed."""
        wrong = in_words(mistakes)
        if click.action == actions.REJECT:
            view = await self._approval(click, click.subject)
            if isinstance(view, ApprovalView):
                return opened(reject_dialog(view, mistakes.errors, words(click.data, actions.REASON)), wrong)
        if click.action == actions.EDIT:
            form = await self._services.approvals.edit_form(click.subject, person)
            if isinstance(form, Form):
                return opened(edit_dialog(click.subject, form, mistakes.errors, entries(click.data, form)), wrong)
        if click.action == actions.ANSWER:
            form = await self._services.questions.form(click.subject, person)
            if isinstance(form, Form):
                typed, server = entries(click.data, form), await self._asker(click)
                return opened(answer_dialog(click.subject, form, mistakes.errors, typed, server=server), wrong)
        if click.action == actions.ENTER_CODE:
            return await code_form(self._services.queries, click, person, wrong)
        return said(wrong)

    async def _approval(self, click: TeamsClick, approval_id: str) -> ApprovalView | Unknown:
        """An approval of the tenant where somebody clicked: those of others are none of theirs."""
        return await self._services.queries.approval(approval_id, within_tenant(click.visitor.location.tenant))


def unfinished(result: ClickResult) -> str:
    """That a vote counts and more are needed; empty when it is settled."""
    return result.text if isinstance(result, Settled) and not result.final else ""


# ----------------------------------------------------------------------------- dialogs about accounts
# Shown to whom they belong, and to nobody else.

NOT_YOURS = "This sign-in is for somebody else only."
NOT_CONNECTED = "This account is not connected (any more)."


async def code_form(queries: Queries, click: TeamsClick, person: Person, mistake: str = "") -> Reply:
    """The form for a code, for the owner of the sign-in while it waits. `mistake`: what was wrong with the last one."""
    view = await content_of(queries, click)
    if not isinstance(view, SignInView):
        return said(mistake or NOT_KNOWN.text)
    if view.owner_id != person.person_id:
        return said(NOT_YOURS)
    return opened(code_dialog(view, mistake), mistake) if view.status == "open" else said(mistake or SETTLED_ALREADY)


async def disconnecting(connections: Connections, click: TeamsClick, person: Person) -> Reply:
    """Asks whether they mean it, of an account of their own."""
    own = {view.connection_id: view for view in await connections.of_person(person)}
    view = own.get(click.subject)
    return opened(disconnect_dialog(view)) if view is not None else said(NOT_CONNECTED)


def told_of_account(click: TeamsClick, result: ClickResult) -> str:
    """What came of it, where no card shows that to the person; empty for everything else."""
    if click.action not in (actions.ENTER_CODE, actions.DISCONNECT):
        return ""
    return result.text if isinstance(result, Settled) else ""
