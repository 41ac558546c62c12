"""The cards of a question, of a sign-in, and of an attempt that broke off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.slack.actions import ANSWER, GET_LINK, IT_WAS_DONE, NOT_NOW, OPEN_LINK, SIGNED_IN, SKIP, TRY_AGAIN
from adapters.slack.render.arguments import excerpt, pair_blocks
from adapters.slack.render.blocks import (
    LONGEST_HEADER,
    LONGEST_URL,
    Block,
    Piece,
    actions,
    button,
    context,
    flow,
    header,
    link_button,
    mrkdwn,
    piece,
    plain,
    quote,
    rich_text,
    run,
    section,
    sentence,
)
from adapters.slack.render.cards import call_name
from adapters.slack.render.words import line, mention, passage
from bot.safe_text import link_host
from bot.vocabulary import ClarificationView, OutcomeView, SignInView
from graph.fields import FormField

_NAME = 100
_HOST = 100
_QUESTION = 3_000
_CONTEXT = 2_000
_ANSWER = 3_000
_MESSAGE = 500
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; the form has them all."""
_CHOICES = 250

_SIGN_IN_ENDS = {
    "done": "{owner} has signed in at {server}.",
    "declined": "{owner} did not sign in at {server} this time.",
    "expired": "The sign-in of {owner} at {server} has expired.",
    "superseded": "The sign-in of {owner} at {server} is not needed any more.",
}
_OUTCOME_ENDS = {
    "it_was_done": "It was done",
    "try_again": "Tried again",
    "skip": "Skipped",
    "superseded": "Superseded",
}


# ------------------------------------------------------------------------------------------------ questions


def clarification_card(view: ClarificationView, team: str) -> Piece:
    """The message of a question; `team` is the workspace in which it is shown."""
    name = line(view.requester, _NAME)
    text = f"A question for {name}: {passage(view.question, _QUESTION)}"
    if view.status == "open":
        buttons = answer_buttons(view)
        return piece([*_asked(view, team), *([actions(*buttons)] if buttons else [])], text)
    said = [] if not view.answer.strip() else [run(f"\n{name}: ", "bold"), run(passage(view.answer, _ANSWER))]
    end = run("Answered." if view.status == "answered" else "Superseded: it needs no answer any more.")
    return piece([_question(view), rich_text(flow([end, *said]))], text)


def answer_buttons(view: ClarificationView) -> list[Block]:
    """The button that opens the form of an open question; none where there is nothing to fill in."""
    return [button("Answer…", ANSWER, view.clarification_id, "primary")] if view.fields else []


def _asked(view: ClarificationView, team: str) -> Iterator[Block]:
    """The question while it is open: for whom, what, and among what to choose."""
    person = mention(view.requester_id, team)
    yield section(
        mrkdwn(f"*A question for* {person}") if person else plain(f"A question for {line(view.requester, _NAME)}")
    )
    yield _question(view)
    choices = [field for field in view.fields if field.options][:_MOST_CHOICES]
    if choices:
        yield rich_text(flow(element for field in choices for element in _choices(field)))
    yield context(plain("Use the button, or simply reply here." if view.fields else "Please reply here."))


def _question(view: ClarificationView) -> Block:
    words = [flow([run(passage(view.question, _QUESTION), "bold")])]
    if view.context.strip():
        words.append(flow([run(passage(view.context, _CONTEXT))]))
    return rich_text(*words)


def _choices(field: FormField) -> Sequence[Block]:
    return run(f"{line(field.label or field.name, _NAME)}: ", "bold"), run(
        line(", ".join(field.options), _CHOICES) + "\n"
    )


# ------------------------------------------------------------------------------------------------ sign-ins


def sign_in_card(view: SignInView) -> Piece:
    """The public message of a sign-in, without its link."""
    owner, server = line(view.owner, _NAME), line(view.server, _NAME)
    if view.status != "open":
        text = _SIGN_IN_ENDS[view.status].format(owner=owner, server=server)
        return piece([sentence(text)], text)
    text = f"Waiting for {owner} to sign in at {server} ({line(view.host, _HOST)})."
    told = [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []
    return piece([sentence(text), *told, actions(button("Get my link", GET_LINK, view.sign_in_id))], text)


def sign_in_piece(view: SignInView, link: str) -> Piece:
    """The private message of a sign-in, for its owner alone. The link is in its button, not in its text."""
    server, host = line(view.server, _NAME), link_host(link)
    if not host or len(link) > LONGEST_URL:
        why = "too long for Slack" if host else "no safe web address"
        text = f"The sign-in page of {server} cannot be opened from here: its link is {why}."
        return piece([sentence(text), actions(button("Not now", NOT_NOW, view.sign_in_id))], text)
    text = f"Please sign in at {server}. The link leads to {line(host, _HOST)} and is yours alone."
    told = [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []
    buttons = actions(
        link_button("Open the sign-in page", OPEN_LINK, link),
        button("I have signed in", SIGNED_IN, view.sign_in_id, "primary"),
        button("Not now", NOT_NOW, view.sign_in_id),
    )
    return piece([sentence(text), *told, buttons], text)


# ------------------------------------------------------------------------------------------------ outcomes


def outcome_card(view: OutcomeView) -> Piece:
    """The message of an attempt that broke off."""
    name = call_name(view.server, view.tool)
    title = header(line(f"What came of it? {name}", LONGEST_HEADER))
    shown = excerpt(view.arguments)
    arguments = [
        *pair_blocks(shown.pairs),
        *([context(plain(f"Not whole here: {shown.unseen}."))] if shown.unseen else []),
    ]
    if view.status != "open":
        by = f", says {line(view.settled_by, _NAME)}" if view.settled_by.strip() else ""
        text = f"{_OUTCOME_ENDS[view.status]}{by}."
        return piece([title, sentence(text), *arguments], f"{name}: {text}")
    text = (
        "The connection broke while this was running, so it may or may not have happened. "
        f"{line(view.requester, _NAME)}, please look, and say which."
    )
    return piece([title, sentence(text), *arguments, actions(*outcome_buttons(view))], f"{name}: {text}")


def outcome_buttons(view: OutcomeView) -> list[Block]:
    """The three things that may have come of it."""
    return [
        button("It was done", IT_WAS_DONE, view.outcome_id, "primary"),
        button("Try again", TRY_AGAIN, view.outcome_id),
        button("Skip", SKIP, view.outcome_id),
    ]
