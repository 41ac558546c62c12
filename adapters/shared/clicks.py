"""What people do with buttons and forms, on every platform: which service judges it, and what a button opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, cast

from adapters.shared import actions
from bot.domain import (
    ApprovalView,
    Choice,
    ClarificationView,
    ClickResult,
    CodeEntry,
    Content,
    Decision,
    Dismissal,
    Form,
    FormAnswer,
    Handover,
    Hidden,
    Invalid,
    OutcomeChoice,
    Person,
    RetryRequest,
    Settled,
    SignInReply,
    Together,
    Unknown,
    Unwelcome,
)
from bot.memory import Memories
from bot.queries import Queries
from bot.services import Services
from policies.approvers import DURATIONS
from translations import gettext as _
from translations import ngettext


@dataclass(frozen=True, slots=True)
class Act:
    """A click or a form that settles something, with who did it."""

    action: str
    """One of `actions.SETTLING`."""
    key: str
    """Names it: the same one delivered twice has the same key."""
    person: Person
    subject: str
    """Id of what it is about."""
    text: Callable[[str], str]
    """Returns what was typed into, or chosen in, an input of ours; empty: nothing."""
    values: Callable[[Form], dict[str, Any]]
    """Returns what was filled in of a form, by the names of its fields."""
    channel: str = ""
    """In which it was done, as its platform says; empty: in a direct chat, or it does not matter."""


# ------------------------------------------------------------------------------------------------ settling


async def settle(services: Services, act: Act) -> ClickResult:
    """Returns what came of it, judged and recorded. Raises whatever the services raise."""
    key, person, subject = act.key, act.person, act.subject
    match act.action:
        case actions.APPROVE | actions.REJECT | actions.EDIT | actions.ALWAYS:
            return await _decide(services, act)
        case actions.WITHDRAW:
            return await services.approvals.withdraw_request(key, subject, person)
        case actions.RETRY:
            return await services.approvals.retry(RetryRequest(key, person, subject))
        case actions.REVOKE:
            return await services.approvals.revoke_standing_approval(subject, person)
        case actions.ANSWER:
            form = await services.questions.form(subject, person)
            if not isinstance(form, Form):
                return form
            return await services.questions.answer(FormAnswer(key, person, subject, act.values(form)))
        case actions.DECLINE | actions.CANCEL as refusal:
            verb = cast("Literal['decline', 'cancel']", refusal)
            return await services.questions.dismiss(Dismissal(key, person, subject, verb))
        case actions.ENTER_CODE:
            return await services.connections.enter_code(CodeEntry(key, person, act.text(actions.CODE), subject))
        case actions.DISCONNECT:
            return await services.connections.disconnect(subject, person)
        case actions.SIGNED_IN | actions.NOT_NOW as reply:
            done = reply == actions.SIGNED_IN
            return await services.connections.sign_in_reply(SignInReply(key, person, subject, done=done))
        case actions.IT_WAS_DONE | actions.TRY_AGAIN | actions.SKIP as choice:
            outcome = cast("Literal['it_was_done', 'try_again', 'skip']", choice)
            return await services.approvals.settle_outcome(OutcomeChoice(key, person, subject, outcome))
        case _:
            return await _settle_memory(services.memories, act)


async def _settle_memory(memories: Memories, act: Act) -> ClickResult:
    person_id = act.person.person_id
    match act.action:
        case actions.FORGET:
            return await memories.forget(person_id, act.subject)
        case actions.FORGET_OF_CHANNEL:
            return await memories.forget_of_channel(act.channel, act.subject)
        case actions.FORGET_ALL:
            return await memories.forget_all(person_id)
        case actions.REMEMBER_NOTHING:
            return await memories.stop_remembering(person_id)
        case actions.REMEMBER_AGAIN:
            return await memories.start_remembering(person_id)
        case _:
            return not_known()


async def _decide(services: Services, act: Act) -> ClickResult:
    """Approve or reject one call, with what belongs to it."""
    choice = Choice(act.subject, "approve", note=act.text(actions.NOTE).strip())
    match act.action:
        case actions.ALWAYS:
            seconds = DURATIONS.get(act.text(actions.DURATION))
            if seconds is None:
                return Invalid({actions.DURATION: _("Choose a duration.")})
            choice = replace(choice, always_for=seconds)
        case actions.REJECT:
            choice = Choice(act.subject, "reject", act.text(actions.REASON).strip())
        case actions.EDIT:
            form = await services.approvals.edit_form(act.subject, act.person)
            if not isinstance(form, Form):
                return form
            choice = replace(choice, arguments=act.values(form))
    return (await services.approvals.decide(Decision(act.key, act.person, (choice,))))[act.subject]


async def approve_all(services: Services, key: str, person: Person, subjects: str) -> tuple[ClickResult, ...]:
    """Approves exactly those that were shown: what has come since waits on. Returns nothing when none were named."""
    shown = subjects.split()
    if not shown:
        return ()
    return tuple((await services.approvals.decide(Decision.alike(key, person, shown, "approve"))).values())


async def hand_over(
    services: Services, act: Act, picked: str, find: Callable[[str], Awaitable[Person | Unwelcome]]
) -> ClickResult:
    """Asks somebody else to decide.

    Args:
        picked: the platform's id of whom the menu names; empty: nobody.
        find: finds out who that is.
    """
    typed = act.text(actions.ADDRESS).strip()
    if picked and typed:
        return Invalid({actions.COLLEAGUE: choose_one()})
    if not picked and "@" not in typed:
        return Invalid({actions.COLLEAGUE: choose_someone()})
    to, name = typed, ""
    if picked:
        found = await find(picked)
        if isinstance(found, Unwelcome):
            return Invalid({actions.COLLEAGUE: found.text})
        to, name = found.person_id, found.name
    return await services.approvals.hand_over(Handover(act.key, act.person, act.subject, to, name))


def in_words(result: ClickResult) -> str:
    """Returns what came of it as sentences."""
    return " ".join(result.errors.values()) if isinstance(result, Invalid) else result.text


def all_in_words(results: Iterable[ClickResult]) -> str:
    """Returns what came of several at once: empty when all were settled, else each sentence once, with its count."""
    results = tuple(results)
    others = [result for result in results if not (isinstance(result, Settled) and result.final)]
    if not others:
        return ""
    settled = len(results) - len(others)
    told = _("Approved {done} of {count}.").format(done=settled, count=len(results))
    lines = [told] if settled else []
    for text, count in Counter(map(in_words, others)).items():
        several = ngettext("{text} ({count} time)", "{text} ({count} times)", count)
        lines.append(text if count == 1 else several.format(text=text, count=count))
    return "\n".join(lines)


def not_known() -> Unknown:
    """Returns what is said of a button that there is not (any more)."""
    return Unknown(_("This button no longer works."))


def settled_already() -> str:
    """Returns what is said of a button whose matter is settled."""
    return _("Already settled. Nothing to do here.")


def nothing_to_approve() -> str:
    """Returns what is said where nothing waits that somebody may decide."""
    return _("Nothing here for you to approve.")


def choose_someone() -> str:
    """Returns what is said to who hands over to nobody."""
    return _("Choose someone or enter an email.")


def choose_one() -> str:
    """Returns what is said to who hands over to two at once."""
    return _("Choose someone or enter an email, not both.")


def went_wrong() -> str:
    """Returns what is said when something failed here."""
    return _("Something went wrong. Try again in a moment.")


@asynccontextmanager
async def whatever_happens(say: Callable[[str], Awaitable[None]]) -> AsyncIterator[None]:
    """Runs work whose request was answered before: tells the person when it fails, since nobody else does. Raises
    whatever is raised within, so that whoever awaits it logs the cause."""
    try:
        yield
    except Exception:
        await say(went_wrong())
        raise


# ------------------------------------------------------------------------------------------------ what a button opens
_MOST_DIGITS = 6
"""Digits of a page's number."""

DialogT = TypeVar("DialogT")


@dataclass(frozen=True, slots=True)
class DialogRenderer(Generic[DialogT]):
    """How a platform draws what its buttons open."""

    about: Mapping[str, Callable[[ApprovalView], DialogT]]
    """The forms about a waiting approval, by action: reject, always, hand over."""
    edit: Callable[[Form, ApprovalView], DialogT]
    answer: Callable[[Form, str], DialogT]
    """The second is the name of the tool server that asks; empty: the model does."""
    arguments: Callable[[ApprovalView, int], Awaitable[DialogT]]
    hidden: Callable[[Hidden, int], DialogT]
    approve_all: Callable[[Together], DialogT]


async def dialog_for(
    action: str, subject: str, person: Person, *, services: Services, within: str, draw: DialogRenderer[DialogT]
) -> DialogT | str:
    """Returns what a button opens, or a sentence on why it opens nothing. Changes nothing, but that the audit log says
    who saw what is hidden; whether they may is judged for every page of it. Raises whatever the services raise.

    Args:
        within: what the ids of all threads begin with in the workspace or tenant where somebody clicked: approvals of
            others are none of theirs.
    """
    number = 0
    if action in (actions.PAGE, actions.SHOW_HIDDEN_PAGE):
        digits, _, subject = subject.partition(":")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
            return not_known().text
        number = int(digits)
    match action:
        case actions.EDIT:
            form = await services.approvals.edit_form(subject, person)
            if not isinstance(form, Form):
                return form.text
            view = await services.queries.approval(subject, within)
            return view.text if isinstance(view, Unknown) else draw.edit(form, view)
        case actions.ANSWER:
            form = await services.questions.form(subject, person)
            if not isinstance(form, Form):
                return form.text
            return draw.answer(form, await asking_server(services.queries, subject, within))
        case actions.SHOW_HIDDEN | actions.SHOW_HIDDEN_PAGE:
            hidden = await services.approvals.reveal(subject, person)
            return draw.hidden(hidden, number) if isinstance(hidden, Hidden) else hidden.text
        case actions.APPROVE_ALL:
            together = await services.queries.together(subject, person)
            return draw.approve_all(together) if together.listed or together.more else nothing_to_approve()
        case actions.SHOW_ALL | actions.PAGE | actions.REJECT | actions.ALWAYS | actions.HAND_OVER:
            view = await services.queries.approval(subject, within)
            if isinstance(view, Unknown):
                return view.text
            if action in (actions.SHOW_ALL, actions.PAGE):
                return await draw.arguments(view, number)
            return draw.about[action](view) if view.status == "pending" else settled_already()
        case _:
            return not_known().text


async def content_of(queries: Queries, subject: str, within: str) -> Content | Unknown:
    """Returns what the card of a subject shows now, where `within` (as for `dialog_for`) has one."""
    shown = [each.post for each in await queries.shown(subject)]
    return next((post.content for post in shown if post.place.key.startswith(within)), not_known())


def service_of(services: Services, provider: str) -> str:
    """Returns the name for people of a service at which accounts can be connected."""
    return next((each.service for each in services.connections.connectable() if each.provider == provider), provider)


async def asking_server(queries: Queries, clarification_id: str, within: str) -> str:
    """Returns the name of the tool server that asks the question; empty: the model asks it."""
    content = await content_of(queries, clarification_id, within)
    return content.server if isinstance(content, ClarificationView) else ""
