"""Clicks on our buttons and submitted modals.

What decides is judged before Slack gets its answer, so that mistakes show in the form with the input kept; what shows
something comes after it.
"""

from __future__ import annotations

from asyncio import timeout
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

from adapters.shared import actions
from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.clicks import (
    Act,
    DialogRenderer,
    all_in_words,
    approve_all,
    content_of,
    dialog_for,
    hand_over,
    in_words,
    not_known,
    service_of,
    settle,
    settled_already,
    whatever_happens,
)
from adapters.shared.memories import memory_list
from adapters.shared.untrusted_json import words
from adapters.slack.actions import (
    ASK_TO_WITHDRAW,
    FEEDBACK,
    INPUT,
    OPEN_LINK,
    OPEN_THREAD,
    QUESTION,
    Modal,
    Origin,
    block_of,
)
from adapters.slack.ids import slack_id, slack_ts, token, within_team
from adapters.slack.inbound.answers import SlackAnswers
from adapters.slack.inbound.commands import (
    LONGEST_QUOTE,
    WHO_WITHIN,
    AskedQuestion,
    QuestionStarter,
    answer_until,
    channel_of,
)
from adapters.slack.inbound.home_tab import SlackOverviews
from adapters.slack.inbound.payloads import (
    Shortcut,
    SlackClick,
    SlackVisitor,
    Submission,
    code_entry,
    code_key,
    origin_of_view,
    without_code,
)
from adapters.slack.render.blocks import Block, user_id
from adapters.slack.render.cards import sign_in_piece
from adapters.slack.render.forms import (
    always_modal,
    answer_modal,
    approve_all_modal,
    arguments_modal,
    ask_modal,
    code_modal,
    connect_modal,
    edit_modal,
    hand_over_modal,
    hidden_modal,
    note_modal,
    reject_modal,
    withdraw_modal,
)
from adapters.slack.render.inputs import entries, error_blocks, is_unchanged
from adapters.slack.render.memories import memory_piece
from adapters.slack.web_api.client import AT_ONCE
from adapters.slack.web_api.texts import text_of
from bot.accounts.codes import code_in
from bot.domain import (
    AlreadySettled,
    ApprovalView,
    ClickResult,
    Feedback,
    Form,
    Invalid,
    Person,
    Refused,
    Settled,
    SignInView,
    Unknown,
    Unwelcome,
)
from bot.safe_text import shorten
from bot.services import Services
from policies.model import is_group
from translations import choose, in_language
from translations import gettext as _

FORMS: Mapping[str, str] = {
    Modal.REJECT: actions.REJECT,
    Modal.EDIT: actions.EDIT,
    Modal.ANSWER: actions.ANSWER,
    Modal.ALWAYS: actions.ALWAYS,
    Modal.CODE: actions.ENTER_CODE,
    Modal.HAND_OVER: actions.HAND_OVER,
    Modal.WITHDRAW: actions.WITHDRAW,
    Modal.SHOW_ALL: actions.APPROVE,
}
"""What each form settles."""
OPENING = frozenset(
    {actions.REJECT, actions.EDIT, actions.ANSWER, actions.ALWAYS, actions.ENTER_CODE, actions.HAND_OVER}
)
"""Buttons that open the form of their own name."""
DECIDING = actions.SETTLING - OPENING | {FEEDBACK}
"""Buttons that settle something by themselves."""
SHOWING = frozenset(
    {
        *(*OPENING, ASK_TO_WITHDRAW, actions.APPROVE_ALL, actions.SHOW_ALL, actions.PAGE),
        *(actions.SHOW_HIDDEN, actions.SHOW_HIDDEN_PAGE, actions.GET_LINK, actions.CONNECT),
    }
)
TOLD = frozenset({FEEDBACK, actions.DISCONNECT})
"""What no card shows is told whoever clicked."""
DISCONNECT_WHO_WITHIN = 0.8
"""Seconds, of the 3 that Slack waits, for finding out who disconnects: telling the service may take 2 of them."""
COLLEAGUES_WITHIN = 1.0
"""Seconds, of the 3 that a trigger lives, for finding out who can be asked to decide."""
ModalAnswer = dict[str, Any]
"""The body of the answer to `view_submission`: empty closes the modal."""
CLOSE: ModalAnswer = {}


def not_your_code() -> str:
    """Returns what somebody is told who wants to enter the code of another's sign-in."""
    return _("Only the person signing in can enter this code.")


def no_code() -> str:
    """Returns what somebody is told whose sign-in is not at the point where a code is entered."""
    return _("No code is needed here right now. Press Sign in again to get a new link.")


def not_ours() -> str:
    """Returns what somebody is told whose form is none of ours."""
    return _("This form has expired. Open it again.")


def _told(form: str) -> str:
    """The title under which the success of a form is said that no card shows; empty: a card shows it."""
    return {Modal.CODE: _("Connected"), Modal.HAND_OVER: _("Asked")}.get(Modal(form), "")


def _title(result: ClickResult) -> str:
    match result:
        case Settled():
            return _("Recorded")
        case AlreadySettled():
            return _("Already decided")
        case Unknown():
            return _("Not found")
        case _:
            return _("Not possible")


class SlackClickHandler:
    """What each button, the shortcut on a message and each form do."""

    def __init__(
        self,
        services: Services,
        *,
        answers: SlackAnswers,
        overviews: SlackOverviews,
        questions: QuestionStarter,
        background: BackgroundTasks,
    ) -> None:
        self._services = services
        self._answers = answers
        self._overviews = overviews
        self._questions = questions
        self._background = background

    async def clicked(self, click: SlackClick) -> bool:
        """Do what the button says; Slack gets its answer when this returns. False: it is no button of ours (any more),
        which the person is told.

        Raises whatever the services raise, so that Slack tells the person that it did not work.
        """
        if click.action in DECIDING:
            await self._decide(click)
        elif click.action in SHOWING:
            self._background.start(self._show(click), f"click {click.action}")
        elif click.action not in (OPEN_LINK, OPEN_THREAD):  # Slack has opened those already
            self._background.start(self._answers.say(click.visitor, not_known().text), "unknown button")
            return False
        return True

    # -------------------------------------------------------------------------------------------- decide lane

    async def _decide(self, click: SlackClick) -> None:
        within = DISCONNECT_WHO_WITHIN if click.action == actions.DISCONNECT else AT_ONCE
        person = await self._answers.who(click.visitor, within)
        if isinstance(person, Unwelcome):
            self._background.start(self._answers.say(click.visitor, person.text), "refusal")
            return
        with in_language(choose(person.locale)):
            result = await self._settled(click, person)
            if click.action in actions.OF_MEMORY:
                self._background.start(self._show_memories(click, person), "memories")
                return
            self._background.start(self._tell(click, result), "click's answer")

    async def _settled(self, click: SlackClick, person: Person) -> ClickResult:
        if click.action != FEEDBACK:
            nothing = Act(click.action, click.key, person, click.value, lambda _name: "", lambda _form: {})
            return await settle(self._services, replace(nothing, channel=channel_of(click.visitor)))
        verdict, _, post_id = click.value.partition(":")
        if verdict not in ("good", "bad"):
            return not_known()
        feedback = Feedback(person, post_id, cast("Literal['good', 'bad']", verdict))
        return await self._services.inbox.feedback(feedback)

    async def _tell(self, click: SlackClick, result: ClickResult) -> None:
        shown_by_card = isinstance(result, Settled) and result.final and click.action not in TOLD
        if text := "" if shown_by_card else in_words(result):
            await self._answers.say(click.visitor, text)
        if click.visitor.home:
            await self._overviews.publish(click.visitor)

    async def _show_memories(self, click: SlackClick, person: Person) -> None:
        """The list as it is now, in its own place."""
        async with whatever_happens(partial(self._answers.say, click.visitor)):
            channel = channel_of(click.visitor)
            listed = await memory_list(self._services.memories, person.person_id, channel)
            with in_language(choose(person.locale)):
                await self._answers.put_in_place(click.visitor, memory_piece(listed))

    # -------------------------------------------------------------------------------------------- ask lane

    async def _show(self, click: SlackClick) -> None:
        async with whatever_happens(partial(self._answers.say, click.visitor)):
            person = await self._answers.who(click.visitor)
            if isinstance(person, Unwelcome):
                await self._answers.say(click.visitor, person.text)
                return
            with in_language(choose(person.locale)):
                if click.action == actions.GET_LINK:
                    await self._get_link(click, person)
                elif click.action == actions.CONNECT:
                    await self._connect(click, person)
                else:
                    await self._open(click, person)

    async def _open(self, click: SlackClick, person: Person) -> None:
        turns = click.action in (actions.PAGE, actions.SHOW_HIDDEN_PAGE)
        origin = origin_of_view(click.view) if turns else origin_of(click)
        modal = not_known().text if origin is None else await self._modal(click, person, origin)
        if isinstance(modal, str):
            await self._answers.say(click.visitor, modal)
        elif turns:
            view_id, view_hash = slack_id(click.view, "id"), token(click.view, "hash")
            await self._answers.turn(click.visitor, view_id, view_hash, modal)
        else:
            await self._answers.open(click.visitor, modal)

    async def _modal(self, click: SlackClick, person: Person, origin: Origin) -> Block | str:
        """What the button opens, or a sentence on why it opens nothing."""

        async def arguments(view: ApprovalView, page: int) -> Block:
            waits = view.status == "pending"
            decidable = await self._services.queries.decidable_with(view.approval_id, person) if waits else ()
            console = await self._services.console_links.turn_link(view.approval_id, person)
            return arguments_modal(view, page, origin, decides=view.approval_id in decidable, console=console)

        if click.action == actions.ENTER_CODE:
            return await self._code_modal(click, person, origin)
        colleagues = await self._colleagues(click, person) if click.action == actions.HAND_OVER else None
        draw = DialogRenderer(
            about={
                actions.REJECT: partial(reject_modal, origin=origin),
                actions.ALWAYS: partial(always_modal, origin=origin),
                actions.HAND_OVER: partial(hand_over_modal, origin=origin, colleagues=colleagues),
            },
            edit=lambda form, view: edit_modal(form, view, origin, person),
            answer=lambda form, server: answer_modal(form, origin, person, server),
            arguments=arguments,
            hidden=lambda hidden, page: hidden_modal(hidden, page, origin),
            approve_all=lambda together: approve_all_modal(together, origin),
        )
        within = within_team(click.visitor.team)
        if click.action == ASK_TO_WITHDRAW:
            view = await self._services.queries.approval(click.value, within)
            if isinstance(view, Unknown):
                return view.text
            return withdraw_modal(view, origin) if view.status == "pending" else settled_already()
        return await dialog_for(click.action, click.value, person, services=self._services, within=within, draw=draw)

    async def _colleagues(self, click: SlackClick, person: Person) -> tuple[Person, ...] | None:
        """Those who can be asked to decide, where the rule names everybody; `None`: it does not, or it takes too long
        to find out. Then everybody can be chosen, and whoever is chosen is judged."""
        view = await self._services.queries.approval(click.value, within_team(click.visitor.team))
        if isinstance(view, Unknown) or not all(map(_is_named, view.approvers)):
            return None
        try:
            async with timeout(COLLEAGUES_WITHIN):
                return await self._services.approvals.colleagues(view.approval_id, person)
        except TimeoutError:
            return None

    async def _code_modal(self, click: SlackClick, person: Person, origin: Origin) -> Block | str:
        view = await content_of(self._services.queries, click.value, within_team(click.visitor.team))
        if not isinstance(view, SignInView) or view.owner_id != person.person_id:
            return not_your_code()
        return code_modal(view, origin) if view.code_wanted else no_code()

    async def _get_link(self, click: SlackClick, person: Person) -> None:
        link = await self._services.sign_in_links.link(click.value, person.person_id)
        if not isinstance(link, str):
            await self._answers.say(click.visitor, link.text)
            return
        view = await content_of(self._services.queries, click.value, within_team(click.visitor.team))
        if not isinstance(view, SignInView) or view.status != "open":  # settled between the two readings
            await self._answers.say(click.visitor, settled_already())
            return
        await self._answers.tell(click.visitor, sign_in_piece(view, link))

    async def _connect(self, click: SlackClick, person: Person) -> None:
        """The link in a window, which nobody else sees and Slack does not keep."""
        link = await self._services.sign_in_links.connect_link(person.person_id, click.value, person.name)
        if isinstance(link, str):
            await self._answers.open(click.visitor, connect_modal(service_of(self._services, click.value), link))
        else:
            await self._answers.say(click.visitor, link.text)

    def asked_about(self, shortcut: Shortcut, bot_user: str) -> None:
        """Open the form of the shortcut "Ask Countersign about it". Nothing is to be kept yet, so that Slack gets its
        answer before."""
        self._background.start(self._ask_about(shortcut, bot_user), "shortcut")

    async def _ask_about(self, shortcut: Shortcut, bot_user: str) -> None:
        async with whatever_happens(partial(self._answers.say, shortcut.visitor)):
            person = await self._answers.who(shortcut.visitor)
            if isinstance(person, Unwelcome):
                await self._answers.say(shortcut.visitor, person.text)
                return
            location = shortcut.visitor.location
            origin = Origin(
                channel=location.channel, message_ts=slack_ts(shortcut.message, "ts"), thread_ts=location.thread_ts
            )
            quoted = shorten(without_code(text_of(shortcut.message, bot_user)), LONGEST_QUOTE)
            with in_language(choose(person.locale)):
                await self._answers.open(shortcut.visitor, ask_modal(quoted, origin))

    # -------------------------------------------------------------------------------------------- submitted modals

    async def submitted(self, submission: Submission) -> ModalAnswer:
        """Judge and record what was submitted. Raises whatever the services raise, so that Slack says that it did not
        work and the form stays open."""
        if submission.origin is None or submission.form not in (*FORMS, Modal.APPROVE_ALL, Modal.ASK):
            return said("Countersign", not_ours())
        person = await self._answers.who(submission.visitor, WHO_WITHIN)
        if isinstance(person, Unwelcome):
            return with_errors({"": person.text}, submission)
        with in_language(choose(person.locale)):
            return await self._answered(submission, submission.origin, person)

    async def _answered(self, submission: Submission, origin: Origin, person: Person) -> ModalAnswer:
        if submission.form == Modal.APPROVE_ALL:
            results = await approve_all(self._services, submission.key, person, origin.subject)
            told = all_in_words(results)
            answer = said(_("Approve all"), told) if told else CLOSE if results else said("Countersign", not_ours())
        elif submission.form == Modal.ASK:
            answer = await self._ask(submission, origin, person)
        else:
            answer = await self._settled_by_form(submission, origin, person)
        if origin.home and answer.get("response_action") != "errors":
            self._background.start(self._overviews.publish(submission.visitor), "home")
        return answer

    async def _settled_by_form(self, submission: Submission, origin: Origin, person: Person) -> ModalAnswer:
        def values(form: Form) -> dict[str, Any]:
            return entries(submission.values, form.fields, person)

        action, text = FORMS[submission.form], partial(typed, submission)
        key = code_key(submission.visitor) if action == actions.ENTER_CODE else submission.key
        act = Act(action, key, person, origin.subject, text, values)
        if action == actions.EDIT and await self._is_unchanged(submission, origin, person):
            return with_errors({"": _("Nothing changed. Edit a value, or use Approve.")}, submission)
        if action != actions.HAND_OVER:
            return answer_to(await settle(self._services, act), submission)
        picked = slack_id(submission.values, block_of(actions.COLLEAGUE), INPUT, "selected_user")
        picked = picked or typed(submission, actions.COLLEAGUE)
        result = await hand_over(self._services, act, picked, partial(self._colleague, submission.visitor))
        if isinstance(result, Refused):
            return with_errors({actions.COLLEAGUE if picked else actions.ADDRESS: result.text}, submission)
        return answer_to(result, submission)

    async def _colleague(self, visitor: SlackVisitor, picked: str) -> Person | Unwelcome:
        """Who was picked: a Slack id from Slack's own menu, or a person id from a list of those who can be asked."""
        user = user_id(picked, visitor.team) if ":" in picked else picked
        return await self._answers.colleague(visitor, user) if user else Person(picked, "")

    async def _is_unchanged(self, submission: Submission, origin: Origin, person: Person) -> bool:
        """Whether somebody submitted the form of an edit as it was opened."""
        form = await self._services.approvals.edit_form(origin.subject, person)
        return isinstance(form, Form) and is_unchanged(submission.values, form, person)

    async def _ask(self, submission: Submission, origin: Origin, person: Person) -> ModalAnswer:
        question = typed(submission, QUESTION)
        if not question:
            return with_errors({QUESTION: _("Enter a question.")}, submission)
        if code := code_in(question):  # asked, it would stand in the channel
            result = await self._services.connections.enter_code(code_entry(submission.visitor, person, code))
            return said(_("Code"), in_words(result))
        location, until = submission.visitor.location, answer_until() - WHO_WITHIN
        direct = location.channel.startswith("D")
        asked = AskedQuestion(submission.visitor, person, question, location, direct, origin.message_ts, until=until)
        trouble = await self._questions.ask(asked)
        return said(_("Not asked"), trouble) if trouble else CLOSE


def origin_of(click: SlackClick) -> Origin:
    """What a modal has to remember of the click that opens it."""
    location = click.visitor.location
    return Origin(click.value, location.channel, click.message_ts, location.thread_ts, home=click.visitor.home)


def _is_named(approver: str) -> bool:
    return approver == "requester" or (":" in approver and not is_group(approver))


def typed(submission: Submission, name: str) -> str:
    """What was typed into, or chosen in, an input of ours."""
    state = (submission.values, block_of(name), INPUT)
    return words(*state, "value").strip() or words(*state, "selected_option", "value")


def answer_to(result: ClickResult, submission: Submission) -> ModalAnswer:
    """A form that settled something closes; mistakes show in it; everything else is said in its place."""
    match result:
        case Settled() if title := _told(submission.form):
            return said(title, result.text)
        case Settled(_, final=True):
            return CLOSE
        case Invalid(errors):
            return with_errors(errors, submission)
        case _:
            return said(_title(result), result.text)


def with_errors(errors: Mapping[str, str], submission: Submission) -> ModalAnswer:
    """Mistakes, shown at their inputs; in a form without inputs in its place."""
    blocks = error_blocks(errors, submission.view)
    if not blocks:
        return said(_("Not possible"), "\n".join(errors.values()))
    return {"response_action": "errors", "errors": blocks}


def said(title: str, text: str) -> ModalAnswer:
    """A sentence in the modal's place."""
    return {"response_action": "update", "view": note_modal(title, text)}
