"""The cards of a question, and of an attempt that broke off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.slack.actions import ANSWER, CANCEL, DECLINE, IT_WAS_DONE, SKIP, TRY_AGAIN
from adapters.slack.render.arguments import excerpt, pair_blocks
from adapters.slack.render.blocks import (
    LONGEST_HEADER,
    Block,
    Piece,
    actions,
    button,
    context,
    flow,
    header,
    mrkdwn,
    piece,
    plain,
    quote,
    rich_text,
    run,
    section,
    sentence,
)
from adapters.slack.render.cards import call_name, unseen_note
from adapters.slack.render.words import line, mention, passage
from bot.domain import ClarificationView, OutcomeView
from bot.safe_text import beginning_of_list
from graph.fields import FormField

_NAME = 100
_QUESTION = 3_000
_CONTEXT = 2_000
_ANSWER = 3_000
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; the form has them all."""
_CHOICES = 250
_KNOWN = 700

_ENDS = {
    "answered": "Answered.",
    "declined": "Declined: the tool server was told no.",
    "cancelled": "Cancelled: the tool server got no answer.",
    "superseded": "Superseded: it needs no answer any more.",
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
    text = f"A question for {name}{_from_whom(view)}: {passage(view.question, _QUESTION)}"
    if view.status == "open":
        buttons = answer_buttons(view)
        return piece([*_asked(view, team), *([actions(*buttons)] if buttons else [])], text)
    said = [] if not view.answer.strip() else [run(f"\n{name}: ", "bold"), run(passage(view.answer, _ANSWER))]
    asker = [context(plain(f"Asked by the tool server {line(view.server, _NAME)}"))] if view.server else []
    return piece([_question(view), *asker, rich_text(flow([run(_ENDS[view.status]), *said]))], text)


def answer_buttons(view: ClarificationView) -> list[Block]:
    """What can be done about an open question: fill in its form, where there is anything to fill in; say no to the tool
    server that asks."""
    if not view.server:
        return [button("Answer…", ANSWER, view.clarification_id, "primary")] if view.fields else []
    return [
        button("Answer…" if view.fields else "Accept…", ANSWER, view.clarification_id, "primary"),
        button("Decline", DECLINE, view.clarification_id),
        button("Cancel", CANCEL, view.clarification_id),
    ]


def _asked(view: ClarificationView, team: str) -> Iterator[Block]:
    """The question while it is open: for whom, from whom, what, and among what to choose."""
    person = mention(view.requester_id, team)
    yield section(
        mrkdwn(f"*A question for* {person}") if person else plain(f"A question for {line(view.requester, _NAME)}")
    )
    if view.server:
        yield context(plain(f"From the tool server {line(view.server, _NAME)}, which gets the answer"))
    yield _question(view)
    choices = [field for field in view.fields if field.options][:_MOST_CHOICES]
    if choices:
        yield rich_text(flow(element for field in choices for element in _choices(field)))
    yield context(plain(_how_to_answer(view)))


def _how_to_answer(view: ClarificationView) -> str:
    if view.server and len(view.fields) != 1:  # a plain reply could not say what belongs to which
        return "Use the buttons. Decline says no, Cancel says nothing; what comes of that is up to the tool."
    return "Use the button, or simply reply here." if view.fields else "Please reply here."


def _from_whom(view: ClarificationView) -> str:
    return f" from the tool server {line(view.server, _NAME)}" if view.server else ""


def _question(view: ClarificationView) -> Block:
    words = [flow([run(passage(view.question, _QUESTION), "bold")])]
    if view.context.strip():
        words.append(flow([run(passage(view.context, _CONTEXT))]))
    return rich_text(*words)


def _choices(field: FormField) -> Sequence[Block]:
    options, unseen = beginning_of_list(field.options, ", ", _CHOICES)
    return run(f"{line(field.label or field.name, _NAME)}: ", "bold"), run(line(options, _CHOICES, unseen) + "\n")


# ------------------------------------------------------------------------------------------------ outcomes


def outcome_card(view: OutcomeView) -> Piece:
    """The message of an attempt that broke off."""
    name = call_name(view.server, view.tool)
    title = header(line(f"What came of it? {name}", LONGEST_HEADER))
    shown = excerpt(view.arguments)
    arguments = [
        *pair_blocks(shown.pairs),
        *unseen_note(view, shown, ""),
    ]
    if view.status != "open":
        by = f", says {line(view.settled_by, _NAME)}" if view.settled_by.strip() else ""
        text = f"{_OUTCOME_ENDS[view.status]}{by}."
        return piece([title, sentence(text), *arguments], f"{name}: {text}")
    text = (
        "Nobody knows what came of this: it may or may not have happened. "
        f"{line(view.requester, _NAME)}, please look, and say which."
    )
    known = [rich_text(quote(passage(view.known, _KNOWN)))] if view.known.strip() else []
    return piece([title, sentence(text), *known, *arguments, actions(*outcome_buttons(view))], f"{name}: {text}")


def outcome_buttons(view: OutcomeView) -> list[Block]:
    """The three things that may have come of it."""
    return [
        button("It was done", IT_WAS_DONE, view.outcome_id, "primary"),
        button("Try again", TRY_AGAIN, view.outcome_id),
        button("Skip", SKIP, view.outcome_id),
    ]
