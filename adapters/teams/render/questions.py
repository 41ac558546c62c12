"""The cards of a question, of a sign-in, and of an attempt that broke off."""

from __future__ import annotations

from collections.abc import Iterator

from adapters.teams.actions import (
    ANSWER,
    ANSWER_DIALOG,
    GET_LINK,
    IT_WAS_DONE,
    NOT_NOW,
    SIGNED_IN,
    SKIP,
    TRY_AGAIN,
)
from adapters.teams.render.arguments import Excerpt, excerpt, spelled
from adapters.teams.render.cards import call_name, unseen_note
from adapters.teams.render.elements import (
    Element,
    bold,
    card,
    container,
    execute,
    fact_set,
    heading,
    opens_dialog,
    opens_page,
    rich,
    small,
    words,
)
from adapters.teams.render.inputs import inputs
from adapters.teams.render.room import Room, fitted, weight
from bot.safe_text import link_host
from bot.vocabulary import ClarificationView, Form, OutcomeView, SignInView
from graph.fields import FormField

_NAME = 100
_HOST = 100
_QUESTION = 3_000
_CONTEXT = 2_000
_ANSWER = 3_000
_MESSAGE = 500
_HEADING = 150
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; its dialog has them all."""
_CHOICES = 250
_MOST_INPUTS = 4
"""Inputs of a question on its card, since others read there too; more are in a dialog."""
_INPUT_BYTES = 8 * 1024
"""Of those inputs as JSON."""
_LONGEST_LINK = 8_000
"""Bytes of a sign-in's link as JSON."""

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


def clarification_card(view: ClarificationView, *, mine: bool) -> Element:
    """A question as one person sees it. `mine`: they are asked, so that they have the inputs."""
    return fitted(lambda room: _open_question(view, room, mine) if view.status == "open" else _answered(view, room))


def question_summary(view: ClarificationView) -> str:
    """It in a sentence, for notifications."""
    room = Room()
    return f"A question for {room.line(view.requester, _NAME)}: {room.line(view.question, _MESSAGE)}"


def answer_button(view: ClarificationView) -> list[Element]:
    """The button that opens the form of an open question; none where there is nothing to fill in."""
    return [opens_dialog("Answer…", ANSWER_DIALOG, view.clarification_id)] if view.fields else []


def _open_question(view: ClarificationView, room: Room, mine: bool) -> Element:  # noqa: FBT001 - see clarification_card
    here = _inputs_here(view) if mine else []
    advice = "Use the button, or simply reply here." if view.fields else "Please reply here."
    body = [*_asked(view, room), *here, *([] if here else _choices(view, room)), small(advice)]
    if here:
        send = execute("Answer", ANSWER, view.clarification_id, inputs="auto", style="positive")
        buttons = [send, opens_dialog("Open as a form…", ANSWER_DIALOG, view.clarification_id)]
    else:
        buttons = answer_button(view) if mine else []
    return card(body, buttons, summary=question_summary(view))


def _answered(view: ClarificationView, room: Room) -> Element:
    end = "Answered." if view.status == "answered" else "Superseded: it needs no answer any more."
    said = [bold(f" {room.line(view.requester, _NAME)}: "), words(room.passage(view.answer, _ANSWER))]
    body = [
        *_asked(view, room),
        container("emphasis", rich(words(end), *(said if view.answer.strip() else ()))),
    ]
    return card(body, summary=question_summary(view))


def _asked(view: ClarificationView, room: Room) -> Iterator[Element]:
    yield heading(f"A question for {room.line(view.requester, _NAME)}")
    yield rich(bold(room.passage(view.question, _QUESTION)))
    if view.context.strip():
        yield rich(words(room.passage(view.context, _CONTEXT)))


def _inputs_here(view: ClarificationView) -> list[Element]:
    """The inputs on the card itself; none when they are many or large."""
    made = inputs(Form("", view.fields, {}))
    elements = [element for drawn in made.drawn for element in drawn.elements]
    fits = len(made.drawn) <= _MOST_INPUTS and weight({"": elements}) <= _INPUT_BYTES
    return elements if fits and not made.kept else []


def _choices(view: ClarificationView, room: Room) -> Iterator[Element]:
    """Among what to choose, where a dialog or a reply is how to answer."""
    fields: list[FormField] = [field for field in view.fields if field.options]
    for field in fields[:_MOST_CHOICES]:
        name = bold(f"{room.line(field.label or field.name, _NAME)}: ")
        yield rich(name, words(room.line(", ".join(field.options), _CHOICES)), spacing="Small")


# ------------------------------------------------------------------------------------------------ sign-ins


def sign_in_card(view: SignInView, *, mine: bool) -> Element:
    """The public card of a sign-in, without its link."""
    buttons = [execute("Get my link", GET_LINK, view.sign_in_id)] if mine and view.status == "open" else []
    return fitted(lambda room: card(_sign_in_body(view, room), buttons, summary=sign_in_summary(view)))


def sign_in_summary(view: SignInView) -> str:
    """It in a sentence."""
    return _sign_in_sentence(view, Room())


def private_sign_in_card(view: SignInView, link: str) -> Element:
    """The card of a sign-in for its owner alone. The link is in its button, not in its text."""
    return fitted(lambda room: _private_sign_in(view, link, room))


def _sign_in_sentence(view: SignInView, room: Room) -> str:
    owner, server = room.line(view.owner, _NAME), room.line(view.server, _NAME)
    if view.status == "open":
        return f"Waiting for {owner} to sign in at {server} ({room.line(view.host, _HOST)})."
    return _SIGN_IN_ENDS[view.status].format(owner=owner, server=server)


def _sign_in_body(view: SignInView, room: Room) -> list[Element]:
    told = _message(view, room) if view.status == "open" else []
    return [rich(words(_sign_in_sentence(view, room))), *told]


def _private_sign_in(view: SignInView, link: str, room: Room) -> Element:
    server, host = room.line(view.server, _NAME), link_host(link)
    not_now = execute("Not now", NOT_NOW, view.sign_in_id)
    if not host or weight(link) > _LONGEST_LINK:
        why = "too long for Teams" if host else "no safe web address"
        text = f"The sign-in page of {server} cannot be opened from here: its link is {why}."
        return card([rich(words(text))], [not_now], summary=text)
    text = f"Please sign in at {server}. The link leads to {room.line(host, _HOST)} and is yours alone."
    buttons = [
        opens_page("Open the sign-in page", link, style="positive"),
        execute("I have signed in", SIGNED_IN, view.sign_in_id),
        not_now,
    ]
    return card([rich(words(text)), *_message(view, room)], buttons, summary=text)


def _message(view: SignInView, room: Room) -> list[Element]:
    """The server's own words, set apart."""
    if not view.message.strip():
        return []
    return [container("emphasis", rich(words(room.passage(view.message, _MESSAGE))))]


# ------------------------------------------------------------------------------------------------ outcomes


def outcome_card(view: OutcomeView, *, mine: bool) -> Element:
    """The card of an attempt that broke off."""
    arguments = spelled(view.arguments)
    return fitted(lambda room: _outcome(view, excerpt(arguments, room), room, mine))


def outcome_summary(view: OutcomeView) -> str:
    """It in a sentence."""
    room = Room()
    return f"{room.line(call_name(view.server, view.tool), _HEADING)}: {_outcome_sentence(view, room)}"


def _outcome_buttons(view: OutcomeView) -> list[Element]:
    """The three things that may have come of it."""
    return [
        execute("It was done", IT_WAS_DONE, view.outcome_id, style="positive"),
        execute("Try again", TRY_AGAIN, view.outcome_id),
        execute("Skip", SKIP, view.outcome_id),
    ]


def _outcome(view: OutcomeView, shown: Excerpt, room: Room, mine: bool) -> Element:  # noqa: FBT001 - see outcome_card
    body = [
        heading(room.line(f"What came of it? {call_name(view.server, view.tool)}", _HEADING)),
        container("warning" if view.status == "open" else "emphasis", rich(words(_outcome_sentence(view, room)))),
        *fact_set(shown.pairs),
        *unseen_note(shown),
    ]
    return card(body, _outcome_buttons(view) if mine and view.status == "open" else [], summary=outcome_summary(view))


def _outcome_sentence(view: OutcomeView, room: Room) -> str:
    if view.status != "open":
        by = f", says {room.line(view.settled_by, _NAME)}" if view.settled_by.strip() else ""
        return f"{_OUTCOME_ENDS[view.status]}{by}."
    return (
        "The connection broke while this was running, so it may or may not have happened. "
        f"{room.line(view.requester, _NAME)}, please look, and say which."
    )
