"""Submitted modals: judged at once, so that mistakes show in the form with the input kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.untrusted_json import words
from adapters.slack import actions
from adapters.slack.actions import Origin
from adapters.slack.ids import slack_id
from adapters.slack.inbound.answers import SlackAnswers
from adapters.slack.inbound.commands import WHO_WITHIN, AskedQuestion, Openings, answer_until
from adapters.slack.inbound.home_tab import HomeTab
from adapters.slack.inbound.payloads import Submission, code_entry, in_words
from adapters.slack.render.forms import entries, error_blocks, note_modal
from bot.accounts.codes import code_in
from bot.domain import (
    AlreadySettled,
    ClickResult,
    Decision,
    Form,
    FormAnswer,
    Handover,
    Invalid,
    Person,
    Refused,
    Settled,
    Unknown,
    Unwelcome,
)
from bot.services import Services
from policies.approvers import DURATIONS

Answer = dict[str, Any]
"""The body of the answer to `view_submission`: empty closes the modal."""
CLOSE: Answer = {}
CHOOSE_SOMEBODY = "Please choose somebody, or write their e-mail address."
CHOOSE_ONE = "Please either choose somebody or write an e-mail address."
NOT_OURS = "This form is not known any more. Please open it again."
_TITLES: dict[type, str] = {Settled: "Noted", AlreadySettled: "Settled already", Unknown: "Not found"}
"""Slack: 24 characters."""


class Modals:
    """What each form does."""

    def __init__(
        self, services: Services, answers: SlackAnswers, openings: Openings, home: HomeTab, background: BackgroundTasks
    ) -> None:
        self._services = services
        self._answers = answers
        self._openings = openings
        self._home = home
        self._background = background
        self._forms: dict[str, Callable[[Submission, Origin, Person], Awaitable[Answer]]] = {
            actions.REJECT_FORM: self._reject,
            actions.EDIT_FORM: self._edit,
            actions.ANSWER_FORM: self._answer,
            actions.APPROVE_ALL_FORM: self._approve_all,
            actions.ALWAYS_FORM: self._always,
            actions.HAND_OVER_FORM: self._hand_over,
            actions.CODE_FORM: self._code,
            actions.ASK_FORM: self._ask,
        }

    async def handle(self, submission: Submission) -> Answer:
        """Judge and record what was submitted. Raises whatever the services raise, so that Slack says that it did not
        work and the form stays open."""
        form = self._forms.get(submission.form)
        if form is None or submission.origin is None:
            return said("Countersign", NOT_OURS)
        person = await self._answers.who(submission.visitor, WHO_WITHIN)
        if isinstance(person, Unwelcome):
            return with_errors({"": person.text}, submission)
        answer = await form(submission, submission.origin, person)
        if submission.origin.home and answer.get("response_action") != "errors":
            self._background.start(self._home.publish(submission.visitor), "home")
        return answer

    async def _reject(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        reason = typed(submission, actions.REASON)
        decision = Decision(submission.key, person, (origin.subject,), "reject", reason=reason)
        return answer_to((await self._services.approvals.decide(decision))[origin.subject], submission)

    async def _edit(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        form = await self._services.approvals.edit_form(origin.subject, person)
        if not isinstance(form, Form):
            return answer_to(form, submission)
        arguments = entries(submission.values, form.fields, person)
        decision = Decision(submission.key, person, (origin.subject,), "approve", arguments=arguments)
        return answer_to((await self._services.approvals.decide(decision))[origin.subject], submission)

    async def _answer(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        form = await self._services.questions.form(origin.subject, person)
        if not isinstance(form, Form):
            return answer_to(form, submission)
        values = entries(submission.values, form.fields, person)
        answer = FormAnswer(submission.key, person, origin.subject, values)
        return answer_to(await self._services.questions.answer(answer), submission)

    async def _code(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        code = typed(submission, actions.CODE)
        result = await self._services.connections.enter_code(
            code_entry(submission.visitor, person, code, origin.subject)
        )
        return said("Connected", result.text) if isinstance(result, Settled) else answer_to(result, submission)

    async def _approve_all(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        """Exactly those that were shown: what has come since waits on."""
        shown = tuple(dict.fromkeys(origin.subject.split()))
        if not shown:
            return said("Countersign", NOT_OURS)
        results = await self._services.approvals.decide(Decision(submission.key, person, shown, "approve"))
        return answer_to_all(results.values())

    async def _always(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        seconds = DURATIONS.get(chosen(submission, actions.DURATION, "selected_option", "value"))
        if seconds is None:
            return with_errors({actions.DURATION: "Please choose for how long."}, submission)
        decision = Decision(submission.key, person, (origin.subject,), "approve", always_for=seconds)
        return answer_to((await self._services.approvals.decide(decision))[origin.subject], submission)

    async def _hand_over(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        colleague = slack_id(submission.values, actions.block_of(actions.COLLEAGUE), actions.INPUT, "selected_user")
        address = typed(submission, actions.ADDRESS)
        if colleague and address:
            return with_errors({actions.COLLEAGUE: CHOOSE_ONE}, submission)
        if not colleague and "@" not in address:
            return with_errors({actions.COLLEAGUE: CHOOSE_SOMEBODY}, submission)
        chosen_at = actions.ADDRESS if address else actions.COLLEAGUE
        to, name = address, ""
        if colleague:
            found = await self._answers.colleague(submission.visitor, colleague)
            if isinstance(found, Unwelcome):
                return with_errors({chosen_at: found.text}, submission)
            to, name = found.person_id, found.name
        result = await self._services.approvals.hand_over(Handover(submission.key, person, origin.subject, to, name))
        if isinstance(result, Refused):
            return with_errors({chosen_at: result.text}, submission)
        return said("Asked", result.text) if isinstance(result, Settled) else answer_to(result, submission)

    async def _ask(self, submission: Submission, origin: Origin, person: Person) -> Answer:
        question = typed(submission, actions.QUESTION)
        if not question:
            return with_errors({actions.QUESTION: "Please write what you want to know."}, submission)
        if code := code_in(question):  # asked, it would stand in the channel
            return said(
                "Code",
                in_words(await self._services.connections.enter_code(code_entry(submission.visitor, person, code))),
            )
        location, until = submission.visitor.location, answer_until() - WHO_WITHIN
        direct = location.channel.startswith("D")
        asked = AskedQuestion(submission.visitor, person, question, location, direct, origin.message_ts, until=until)
        trouble = await self._openings.ask(asked)
        return said("Not asked", trouble) if trouble else CLOSE


def typed(submission: Submission, name: str) -> str:
    """What was typed into a text input of ours."""
    return words(submission.values, actions.block_of(name), actions.INPUT, "value").strip()


def chosen(submission: Submission, name: str, *path: str) -> str:
    """What was chosen in a menu of ours; empty: nothing."""
    return words(submission.values, actions.block_of(name), actions.INPUT, *path)


def answer_to(result: ClickResult, submission: Submission) -> Answer:
    """A form that settled something closes; mistakes show in it; everything else is said in its place."""
    match result:
        case Settled(_, final=True):
            return CLOSE
        case Invalid(errors):
            return with_errors(errors, submission)
        case _:
            return said(_TITLES.get(type(result), "Not possible"), result.text)


def answer_to_all(results: Iterable[ClickResult]) -> Answer:
    """What came of several at once: nothing to say when all were settled, else each sentence once, with its count."""
    results = tuple(results)
    others = [result for result in results if not (isinstance(result, Settled) and result.final)]
    if not others:
        return CLOSE
    sentences = Counter(" ".join(r.errors.values()) if isinstance(r, Invalid) else r.text for r in others)
    settled = len(results) - len(others)
    lines = [f"Approved: {settled} of {len(results)}."] if settled else []
    lines += [text if count == 1 else f"{text} ({count} times)" for text, count in sentences.items()]
    return said("Approve all", "\n".join(lines))


def with_errors(errors: Mapping[str, str], submission: Submission) -> Answer:
    """Mistakes, shown at their inputs; in a form without inputs in its place."""
    blocks = error_blocks(errors, submission.view)
    if not blocks:
        return said("Not possible", "\n".join(errors.values()))
    return {"response_action": "errors", "errors": blocks}


def said(title: str, text: str) -> Answer:
    """A sentence in the modal's place."""
    return {"response_action": "update", "view": note_modal(title, text)}
