"""Cards of questions, of attempts that broke off, and of sign-ins."""

from __future__ import annotations

from collections.abc import Iterator

from adapters.teams.actions import (
    ANSWER,
    ANSWER_DIALOG,
    CANCEL,
    CODE_DIALOG,
    DECLINE,
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
    Room,
    bold,
    card,
    container,
    execute,
    fact_set,
    fitted,
    heading,
    opens_dialog,
    opens_page,
    rich,
    small,
    weight,
    words,
)
from adapters.teams.render.inputs import inputs
from bot.domain import ClarificationView, Form, OutcomeView, SignInView
from bot.safe_text import link_host
from graph.fields import FormField

_NAME = 100
_QUESTION = 3_000
_CONTEXT = 2_000
_ANSWER = 3_000
_MESSAGE = 500
_HEADING = 150
_MOST_CHOICES = 10
"""Fields whose options are listed on a question's card; its dialog has them all."""
_CHOICES = 250
_KNOWN = 700
_MOST_INPUTS = 4
"""Inputs of a question on its card, since others read there too; more are in a dialog."""
_INPUT_BYTES = 8 * 1024
"""Of those inputs as JSON."""
_ENDS = {
    "answered": "Answered.",
    "declined": "Declined: the tool was told no.",
    "cancelled": "Cancelled: the tool got no answer.",
    "superseded": "Superseded: it needs no answer any more.",
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
    return f"{_title(view, room)}: {room.line(view.question, _MESSAGE)}"


def answer_button(view: ClarificationView) -> list[Element]:
    """The button that opens the form of an open question; none where there is nothing to fill in."""
    return [opens_dialog("Answer…", ANSWER_DIALOG, view.clarification_id)] if view.fields else []


def _open_question(view: ClarificationView, room: Room, mine: bool) -> Element:  # noqa: FBT001 - see clarification_card
    here = _inputs_here(view) if mine else []
    body = [*_asked(view, room), *here, *([] if here else _choices(view, room)), small(_advice(view))]
    buttons = [*_answering(view, inputs_here=bool(here)), *_dismissing(view)] if mine else []
    return card(body, buttons, summary=question_summary(view))


def _answering(view: ClarificationView, *, inputs_here: bool) -> list[Element]:
    if inputs_here:
        send = execute("Answer", ANSWER, view.clarification_id, inputs="auto", style="positive")
        return [send, opens_dialog("Open as a form…", ANSWER_DIALOG, view.clarification_id)]
    if view.server and not view.fields:
        return [execute("Accept", ANSWER, view.clarification_id, style="positive")]
    return answer_button(view)


def _dismissing(view: ClarificationView) -> list[Element]:
    """A tool takes no for an answer; the model gets its answer, or another message."""
    if not view.server:
        return []
    return [execute("Decline", DECLINE, view.clarification_id), execute("Cancel", CANCEL, view.clarification_id)]


def _advice(view: ClarificationView) -> str:
    if view.server and not view.fields:
        return "It goes on when you accept, and without it when you decline."
    if view.server and len(view.fields) > 1:
        return "Please answer with the form. Only answer what you want this tool server to know."
    if view.server:
        return "Use the button, or simply reply here. Only answer what you want this tool server to know."
    return "Use the button, or simply reply here." if view.fields else "Please reply here."


def _answered(view: ClarificationView, room: Room) -> Element:
    said = [bold(f" {room.line(view.requester, _NAME)}: "), words(room.passage(view.answer, _ANSWER))]
    body = [
        *_asked(view, room),
        container("emphasis", rich(words(_ENDS[view.status]), *(said if view.answer.strip() else ()))),
    ]
    return card(body, summary=question_summary(view))


def _asked(view: ClarificationView, room: Room) -> Iterator[Element]:
    yield heading(_title(view, room))
    yield rich(bold(room.passage(view.question, _QUESTION)))
    if view.context.strip():
        yield rich(words(room.passage(view.context, _CONTEXT)))


def _title(view: ClarificationView, room: Room) -> str:
    """Whom it is for, and who asks: the operator's name of a tool server, before any word of the server's own."""
    asker = f"From the tool server {room.line(view.server, _NAME)}, a" if view.server else "A"
    return f"{asker} question for {room.line(view.requester, _NAME)}"


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
        yield rich(name, words(room.list(field.options, _CHOICES)), spacing="Small")


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
        *_known(view, room),
        *fact_set(shown.pairs),
        *unseen_note(view, shown),
    ]
    return card(body, _outcome_buttons(view) if mine and view.status == "open" else [], summary=outcome_summary(view))


def _known(view: OutcomeView, room: Room) -> list[Element]:
    """What is known of it, with what the server said."""
    if view.status != "open" or not view.known.strip():
        return []
    return [container("emphasis", rich(words(room.passage(view.known, _KNOWN))))]


def _outcome_sentence(view: OutcomeView, room: Room) -> str:
    if view.status != "open":
        by = f", says {room.line(view.settled_by, _NAME)}" if view.settled_by.strip() else ""
        return f"{_OUTCOME_ENDS[view.status]}{by}."
    return (
        "Nobody knows what came of this: it may or may not have happened. "
        f"{room.line(view.requester, _NAME)}, please look, and say which."
    )


# ------------------------------------------- sign-ins: the public card, and the owner's with the link

_HOST = 100
_LONGEST_LINK = 8_000
"""Bytes of a sign-in's link as JSON."""
_SIGN_IN_ENDS = {
    "done": "{owner} has signed in at {server}.",
    "declined": "{owner} did not sign in at {server} this time.",
    "expired": "The sign-in of {owner} at {server} has expired.",
    "superseded": "The sign-in of {owner} at {server} is not needed any more.",
}
_ACCOUNT_ENDS = {
    "done": "{owner} has connected their account at {service}.",
    "declined": "{owner} did not connect an account at {service} this time.",
    "expired": "{owner} did not connect an account at {service} in time.",
    "superseded": "The account of {owner} at {service} is not needed here any more.",
}


def sign_in_card(view: SignInView, *, mine: bool) -> Element:
    """The public card of a sign-in, without its link."""
    buttons = _buttons(view) if mine and view.status == "open" else []
    return fitted(lambda room: card(_body(view, room), buttons, summary=sign_in_summary(view)))


def sign_in_summary(view: SignInView) -> str:
    """It in a sentence."""
    return _sentence(view, Room())


def sign_in_title(view: SignInView) -> str:
    """What a sign-in is called in a list; not cut."""
    return f"Your account at {view.service}" if view.service else f"A sign-in at {view.server}"


def private_sign_in_card(view: SignInView, link: str) -> Element:
    """The card of a sign-in for its owner alone. The link is in its button, not in its text."""
    return fitted(lambda room: _private(view, link, room))


def code_button(view: SignInView) -> list[Element]:
    """The button that opens the form for a one-time code; none while no browser shows one."""
    return [opens_dialog("Enter code…", CODE_DIALOG, view.sign_in_id, style="positive")] if view.code_wanted else []


def _buttons(view: SignInView) -> list[Element]:
    return [*code_button(view), execute("Get my link", GET_LINK, view.sign_in_id)]


def _sentence(view: SignInView, room: Room) -> str:
    owner, server, service = (room.line(name, _NAME) for name in (view.owner, view.server, view.service))
    if view.status != "open":
        ends = _ACCOUNT_ENDS if view.service else _SIGN_IN_ENDS
        return ends[view.status].format(owner=owner, server=server, service=service)
    if view.service:
        return f"Waiting for {owner} to connect their account at {service}, for the tool server {server}."
    return f"Waiting for {owner} to sign in at {server} ({room.line(view.host, _HOST)})."


def _body(view: SignInView, room: Room) -> list[Element]:
    return [rich(words(_sentence(view, room))), *_code_wanted(view, room)]


def _code_wanted(view: SignInView, room: Room) -> list[Element]:
    if not view.code_wanted:
        return []
    owner = room.line(view.owner, _NAME)
    return [
        rich(words(f"{owner}, your browser shows a code. Enter it here, or send it to me as a message of its own."))
    ]


def _private(view: SignInView, link: str, room: Room) -> Element:
    where, host = room.line(view.service or view.server, _NAME), link_host(link)
    not_now = execute("Not now", NOT_NOW, view.sign_in_id)
    if not host or weight(link) > _LONGEST_LINK:
        why = "too long for Teams" if host else "no safe web address"
        text = f"The sign-in page of {where} cannot be opened from here: its link is {why}."
        return card([rich(words(text))], [not_now], summary=text)
    buttons = [opens_page("Open the sign-in page", link, style="positive"), *_said_to_be_done(view), not_now]
    text = _invitation(view, room.line(host, _HOST), room)
    return card([rich(words(text)), *_message(view, room)], buttons, summary=text)


def _said_to_be_done(view: SignInView) -> list[Element]:
    """Where nothing else tells us."""
    return [] if view.service else [execute("I have signed in", SIGNED_IN, view.sign_in_id)]


def _invitation(view: SignInView, host: str, room: Room) -> str:
    server = room.line(view.server, _NAME)
    if not view.service:
        return f"Please sign in at {server}. The link leads to {host} and is yours alone."
    service = room.line(view.service, _NAME)
    return (
        f"Please connect your account at {service}, for the tool server {server}. The link leads to {host}, which asks "
        "you before it connects anything, and is yours alone: pass it on to nobody. I go on by myself when it is done. "
        "If the link is too old by then, “Get my link” gives you another."
    )


def _message(view: SignInView, room: Room) -> list[Element]:
    """The server's own words, set apart."""
    if not view.message.strip():
        return []
    return [container("emphasis", rich(words(room.passage(view.message, _MESSAGE))))]
