"""What a click settles, whatever carried it: a card's button, its fallback as a message, or a dialog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, cast

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.untrusted_json import words
from adapters.teams import actions
from adapters.teams.ids import within_tenant
from adapters.teams.inbound.answers import TeamsAnswers
from adapters.teams.inbound.gestures import TeamsClick
from adapters.teams.render.inputs import entries
from adapters.teams.render.posts import open_a_chat_first, sign_in_link
from bot.accounts.sign_ins import SignInLinks
from bot.approvals.decisions import Approvals
from bot.domain import (
    ApprovalView,
    ClickResult,
    CodeEntry,
    Content,
    Decision,
    Dismissal,
    Form,
    FormAnswer,
    Invalid,
    OutcomeChoice,
    Person,
    Settled,
    SignInReply,
    SignInView,
    Unknown,
)
from bot.queries import Queries
from bot.services import Services
from policies.approvers import DURATIONS

NOT_KNOWN = Unknown("This button is not known any more.")
SETTLED_ALREADY = "This is settled already; nothing waits for you here."
NOTHING_TO_APPROVE = "Nothing waits here that you may decide."
DECIDING = frozenset(
    {
        actions.APPROVE,
        actions.REJECT,
        actions.EDIT,
        actions.ALWAYS,
        actions.TAKE_BACK,
        actions.REVOKE,
        actions.ANSWER,
        actions.DECLINE,
        actions.CANCEL,
        actions.ENTER_CODE,
        actions.DISCONNECT,
        actions.SIGNED_IN,
        actions.NOT_NOW,
        actions.IT_WAS_DONE,
        actions.TRY_AGAIN,
        actions.SKIP,
    }
)
"""Actions that settle one thing."""
ABOUT_APPROVALS = frozenset({actions.APPROVE, actions.REJECT, actions.EDIT, actions.TAKE_BACK, actions.REFRESH})
OutcomeVerb = Literal["it_was_done", "try_again", "skip"]
Refusal = Literal["decline", "cancel"]


async def settle(services: Services, click: TeamsClick, person: Person) -> ClickResult:
    """Judge and record a click that decides."""
    subject = click.subject
    match click.action:
        case actions.APPROVE | actions.ALWAYS | actions.REJECT | actions.EDIT:
            return await _decide(services.approvals, click, person)
        case actions.TAKE_BACK:
            return await services.approvals.withdraw_request(click.key, subject, person)
        case actions.REVOKE:
            return await services.approvals.revoke_standing_approval(subject, person)
        case actions.ANSWER:
            form = await services.questions.form(subject, person)
            if not isinstance(form, Form):
                return form
            return await services.questions.answer(FormAnswer(click.key, person, subject, entries(click.data, form)))
        case actions.DECLINE | actions.CANCEL as refusal:
            return await services.questions.dismiss(Dismissal(click.key, person, subject, cast("Refusal", refusal)))
        case actions.ENTER_CODE:
            return await services.connections.enter_code(
                CodeEntry(click.key, person, words(click.data, actions.CODE), subject)
            )
        case actions.DISCONNECT:
            return await services.connections.disconnect(subject, person)
        case actions.SIGNED_IN | actions.NOT_NOW:
            done = click.action == actions.SIGNED_IN
            return await services.connections.sign_in_reply(SignInReply(click.key, person, subject, done=done))
        case actions.IT_WAS_DONE | actions.TRY_AGAIN | actions.SKIP as choice:
            return await services.approvals.settle_outcome(
                OutcomeChoice(click.key, person, subject, cast("OutcomeVerb", choice))
            )
        case _:
            return NOT_KNOWN


async def approve_all(approvals: Approvals, click: TeamsClick, person: Person) -> tuple[ClickResult, ...]:
    """Approve exactly those that were shown: what has come since waits on. Empty: none were named."""
    shown = tuple(dict.fromkeys(click.subject.split()))
    if not shown:
        return ()
    return tuple((await approvals.decide(Decision(click.key, person, shown, "approve"))).values())


async def content_of(queries: Queries, click: TeamsClick) -> Content | Unknown:
    """What the click is about, as it is now, in the tenant where somebody clicked: others' are none of theirs."""
    within = within_tenant(click.visitor.location.tenant)
    if click.action in ABOUT_APPROVALS:
        return await queries.approval(click.subject, within)
    shown = [each.post for each in await queries.shown(click.subject)]
    return next((post.content for post in shown if post.place.key.startswith(within)), NOT_KNOWN)


async def may_decide(queries: Queries, content: Content, person: Person) -> bool:
    """Whether they see buttons."""
    waits = isinstance(content, ApprovalView) and content.status == "pending"
    return waits and await queries.permitted(cast("ApprovalView", content).approval_id, person)


def in_words(result: ClickResult) -> str:
    """What the person is told of their click; empty: the card shows it."""
    match result:
        case Settled():
            return ""
        case Invalid(errors):
            return " ".join(errors.values())
        case _:
            return result.text


def all_in_words(results: Iterable[ClickResult]) -> str:
    """What came of several at once: empty when all were settled, else each sentence once, with its count."""
    results = tuple(results)
    others = [result for result in results if not (isinstance(result, Settled) and result.final)]
    if not others:
        return ""
    sentences = Counter(" ".join(r.errors.values()) if isinstance(r, Invalid) else r.text for r in others)
    settled = len(results) - len(others)
    lines = [f"Approved: {settled} of {len(results)}."] if settled else []
    lines += [text if count == 1 else f"{text} ({count} times)" for text, count in sentences.items()]
    return "\n".join(lines)


async def _decide(approvals: Approvals, click: TeamsClick, person: Person) -> ClickResult:
    """Approve or reject one call, with what belongs to it."""
    decision = Decision(click.key, person, (click.subject,), "approve")
    match click.action:
        case actions.ALWAYS:
            seconds = DURATIONS.get(words(click.data, actions.DURATION))
            if seconds is None:
                return Invalid({"": "Please choose for how long."})
            decision = replace(decision, always_for=seconds)
        case actions.REJECT:
            decision = replace(decision, verb="reject", reason=words(click.data, actions.REASON).strip())
        case actions.EDIT:
            form = await approvals.edit_form(click.subject, person)
            if not isinstance(form, Form):
                return form
            decision = replace(decision, arguments=entries(click.data, form))
    return (await approvals.decide(decision))[click.subject]


# -------------------------------------------------------------------------------- fresh sign-in links
# The link is in nothing but the message that its owner gets.

SENT = "I am sending you the link in a message that only you can see."


class SignInLinkReplies:
    """Gives people their links."""

    def __init__(
        self, sign_in_links: SignInLinks, queries: Queries, answers: TeamsAnswers, background: BackgroundTasks
    ) -> None:
        self._sign_in_links = sign_in_links
        self._queries = queries
        self._answers = answers
        self._background = background

    async def give(self, click: TeamsClick, person: Person) -> str:
        """Send it, if it is theirs; a sentence that says what came of it, `SENT` when it is on its way."""
        link = await self._sign_in_links.link(click.subject, person.person_id)
        if not isinstance(link, str):
            return link.text
        view = await content_of(self._queries, click)
        if not isinstance(view, SignInView):  # settled between the two readings
            return SETTLED_ALREADY
        message, note = sign_in_link(view, link), open_a_chat_first(view.owner)
        self._background.start(self._answers.tell(click.visitor, message, note), "sign-in link")
        return SENT
