"""Cards of questions, of attempts whose outcome is unknown, and of sign-ins."""

from __future__ import annotations

from collections.abc import Iterator

from adapters.shared import actions, wording
from adapters.shared.arguments import Excerpt, call_asked_in, excerpts
from adapters.shared.wording import WHOLE, Space
from adapters.teams.actions import DialogButton
from adapters.teams.render.cards import DETAILS, unseen_note
from adapters.teams.render.elements import (
    Element,
    bold,
    card,
    container,
    escape,
    execute,
    fact_set,
    fitted,
    folded,
    heading,
    opens_dialog,
    opens_page,
    rich,
    small,
    toggles,
    weight,
    words,
)
from adapters.teams.render.inputs import inputs
from bot.domain import ClarificationView, Form, OutcomeView, SignInView
from bot.safe_text import link_host
from translations import gettext as _

_MESSAGE = 500
_HEADING = 150
_MOST_INPUTS = 4
"""Inputs of a question on its card, since others read there too; more are in a dialog."""
_INPUT_BYTES = 8 * 1024
"""Bytes of those inputs as JSON."""


# ------------------------------------------------------------------------------------------------ questions
def clarification_card(view: ClarificationView) -> Element:
    """A question, with the inputs to answer it while it is open."""
    about = call_asked_in(view)
    return fitted(
        lambda space: (
            _open_question(view, about(space), space) if view.status == "open" else _answered(view, about(space), space)
        )
    )


def question_summary(view: ClarificationView) -> str:
    """Returns the question in a sentence, for notifications."""
    return f"{_title(view, WHOLE)}: {WHOLE.line(view.question, _MESSAGE)}"


def answer_button(view: ClarificationView) -> list[Element]:
    """The button that opens the form of an open question; none where there is nothing to fill in."""
    return [opens_dialog(_("Answer…"), DialogButton.ANSWER, view.clarification_id)] if view.fields else []


def _open_question(view: ClarificationView, about: str, space: Space) -> Element:
    here = _inputs_here(view)
    body = [*_asked(view, about, space), *here, *([] if here else _choices(view, space)), small(_advice(view))]
    buttons = [*_answering(view, inputs_here=bool(here)), *_dismissing(view)]
    return card(body, buttons, summary=question_summary(view))


def _answering(view: ClarificationView, *, inputs_here: bool) -> list[Element]:
    if inputs_here:
        send = execute(_("Answer"), actions.ANSWER, view.clarification_id, inputs="auto", style="positive")
        return [send, opens_dialog(_("Open as a form…"), DialogButton.ANSWER, view.clarification_id)]
    if view.server and not view.fields:
        return [execute(_("Accept"), actions.ANSWER, view.clarification_id, style="positive")]
    return answer_button(view)


def _dismissing(view: ClarificationView) -> list[Element]:
    """A tool takes no for an answer; the model gets its answer, or another message."""
    if not view.server:
        return []
    return [
        execute(_("Decline"), actions.DECLINE, view.clarification_id),
        execute(_("Cancel"), actions.CANCEL, view.clarification_id),
    ]


def _advice(view: ClarificationView) -> str:
    if view.server and not view.fields:
        return _("Accept to go on, or decline to go on without it.")
    if view.server and (len(view.fields) > 1 or view.client):
        return _("Answer with the form. Share only what this tool server should know.")
    if view.server:
        return _("Use the button, or reply here. Share only what this tool server should know.")
    return _("Use the button, or reply here.") if view.fields else _("Reply here.")


def _answered(view: ClarificationView, about: str, space: Space) -> Element:
    end = words(wording.question_end(view), isSubtle=True)
    if view.answer.strip():
        name = bold(f"{space.line(view.requester, wording.LONGEST_NAME)}: ")
        end = name + words(space.passage(view.answer, wording.LONGEST_ANSWER))
    return card([*_asked(view, about, space), rich(end)], summary=question_summary(view))


def _asked(view: ClarificationView, about: str, space: Space) -> Iterator[Element]:
    yield heading(_title(view, space))
    if about:
        yield small(escape(about))
    yield from _through(view, space)
    yield rich(bold(space.passage(view.question, wording.LONGEST_QUESTION)))
    if view.context.strip():
        yield rich(words(space.passage(view.context, wording.LONGEST_CONTEXT)))


def _through(view: wording.Asking, space: Space) -> Iterator[Element]:
    """Who asks, and through which program or agent, where it is not the default agent."""
    if wording.is_through_another(view):
        yield small(escape(wording.requested_by(view, space)))


def _title(view: ClarificationView, space: Space) -> str:
    """Whom it is for, and who asks: the operator's name of a tool server, before any word of the server's own."""
    name = space.line(view.requester, wording.LONGEST_NAME)
    if not view.server:
        return _("Question for {name}").format(name=name)
    server = space.line(view.server, wording.LONGEST_NAME)
    return _("The tool server {server} asks {name}").format(server=server, name=name)


def _inputs_here(view: ClarificationView) -> list[Element]:
    """The inputs on the card itself; none when they are many or large."""
    made = inputs(Form("", view.fields, {}))
    elements = [element for drawn in made.drawn for element in drawn.input]
    fits = len(made.drawn) <= _MOST_INPUTS and weight({"": elements}) <= _INPUT_BYTES
    return elements if fits and not made.kept else []


def _choices(view: ClarificationView, space: Space) -> Iterator[Element]:
    """Among what to choose, where a dialog or a reply is how to answer."""
    for label, texts in wording.choices(view, space):
        yield rich(bold(label), words(texts), spacing="Small")


# ------------------------------------------------------------------------------------------------ outcomes
def outcome_card(view: OutcomeView) -> Element:
    """The card of an attempt whose outcome is unknown."""
    shown = excerpts(view.arguments, presentation=view.presentation, below=view)
    return fitted(lambda space: _outcome(view, shown(space), space))


def outcome_summary(view: OutcomeView) -> str:
    """Returns the card in a sentence."""
    return f"{wording.call_title(view)}: {wording.outcome_sentence(view)}"


def _outcome_buttons(view: OutcomeView) -> list[Element]:
    """The three things that may have come of it."""
    return [
        execute(_("It was done"), actions.IT_WAS_DONE, view.outcome_id, style="positive"),
        execute(_("Try again"), actions.TRY_AGAIN, view.outcome_id),
        execute(_("Skip"), actions.SKIP, view.outcome_id),
    ]


def _outcome(view: OutcomeView, shown: Excerpt, space: Space) -> Element:
    if view.status != "open":
        ended = rich(bold(wording.call_title(view, space)), words(f" · {wording.outcome_sentence(view, space)}"))
        details = [*fact_set(shown.pairs), *unseen_note(view, shown), small(escape(wording.call_source(view, space)))]
        body = [ended, *_through(view, space), folded(DETAILS, details)]
        return card(body, [toggles(_("Details"), DETAILS)], summary=outcome_summary(view))
    body = [
        heading(space.line(wording.outcome_title(view), 2 * wording.LONGEST_HEADING)),
        rich(words(wording.outcome_sentence(view, space))),
        small(escape(wording.call_source(view, space))),
        *_through(view, space),
        *_known(view, space),
        *fact_set(shown.pairs),
        *unseen_note(view, shown),
        small(escape(_("Only {name} can answer.").format(name=space.line(view.requester, wording.LONGEST_NAME)))),
    ]
    return card(body, _outcome_buttons(view), summary=outcome_summary(view))


def _known(view: OutcomeView, space: Space) -> list[Element]:
    """What is known of it, with what the server said."""
    if not view.known.strip():
        return []
    return [container("emphasis", rich(words(space.passage(view.known, wording.LONGEST_KNOWN))))]


# ------------------------------------------- sign-ins: the public card, and the owner's with the link

_HOST = 100
LONGEST_LINK = 8_000
"""Bytes of a sign-in's link as JSON."""


def sign_in_card(view: SignInView) -> Element:
    """The public card of a sign-in, without its link."""
    buttons = _buttons(view) if view.status == "open" else []
    return fitted(lambda space: card(_body(view, space), buttons, summary=sign_in_summary(view)))


def sign_in_summary(view: SignInView) -> str:
    """Returns the card in a sentence."""
    return _sentence(view, WHOLE)


def sign_in_title(view: SignInView) -> str:
    """What a sign-in is called in a list; not cut."""
    if view.service:
        return _("Connect your {service} account").format(service=view.service)
    return _("Sign in to {server}").format(server=view.server)


def private_sign_in_card(view: SignInView, link: str) -> Element:
    """The card of a sign-in for its owner alone. The link is in its button, not in its text."""
    return fitted(lambda space: _private(view, link, space))


def code_button(view: SignInView) -> list[Element]:
    """The button that opens the form for a one-time code; none while no browser shows one."""
    if not view.code_wanted:
        return []
    return [opens_dialog(_("Enter code…"), DialogButton.CODE, view.sign_in_id, style="positive")]


def _buttons(view: SignInView) -> list[Element]:
    return [*code_button(view), execute(_("Get my link"), actions.GET_LINK, view.sign_in_id)]


def _sentence(view: SignInView, space: Space) -> str:
    owner, server, service, host = (
        space.line(text, longest)
        for text, longest in (
            (view.owner, wording.LONGEST_NAME),
            (view.server, wording.LONGEST_NAME),
            (view.service, wording.LONGEST_NAME),
            (view.host, _HOST),
        )
    )
    if view.status != "open":
        return wording.sign_in_end(view, service if view.service else server, space)
    if view.service:
        told = _("Waiting for {owner} to connect their {service} account, which the tool server {server} needs.")
        return told.format(owner=owner, service=service, server=server)
    return _("Waiting for {owner} to sign in to {server} ({host}).").format(owner=owner, server=server, host=host)


def _body(view: SignInView, space: Space) -> list[Element]:
    through = _through(view, space)
    return [rich(words(_sentence(view, space))), *through, *_code_wanted(view, space)]


def _code_wanted(view: SignInView, space: Space) -> list[Element]:
    if not view.code_wanted:
        return []
    told = _("{owner}, your browser shows a code. Enter it here, or send it to me in a message of its own.")
    return [rich(words(told.format(owner=space.line(view.owner, wording.LONGEST_NAME))))]


def _private(view: SignInView, link: str, space: Space) -> Element:
    where, host = space.line(view.service or view.server, wording.LONGEST_NAME), link_host(link)
    not_now = execute(_("Not now"), actions.NOT_NOW, view.sign_in_id)
    if not host or weight(link) > LONGEST_LINK:
        text = wording.unreachable(where, "Teams", host)
        return card([rich(words(text))], [not_now], summary=text)
    buttons = [opens_page(_("Sign in"), link, style="positive"), *_said_to_be_done(view), not_now]
    text = _invitation(view, space.line(host, _HOST), space)
    through = _through(view, space)
    return card([rich(words(text)), *through, *_message(view, space)], buttons, summary=text)


def _said_to_be_done(view: SignInView) -> list[Element]:
    """Where nothing else tells us."""
    return [] if view.service else [execute(_("I’ve signed in"), actions.SIGNED_IN, view.sign_in_id)]


def _invitation(view: SignInView, host: str, space: Space) -> str:
    server = space.line(view.server, wording.LONGEST_NAME)
    if not view.service:
        told = _("Sign in to {server}. The link opens {host} and is yours alone, so don’t share it.")
        return told.format(server=server, host=host)
    service = space.line(view.service, wording.LONGEST_NAME)
    return _(
        "Connect your {service} account, which the tool server {server} needs. The link opens {host}, which asks you "
        "before it connects anything. It’s yours alone, so don’t share it. I go on by myself when you’re done. If the "
        "link is too old by then, “Get my link” gives you another."
    ).format(service=service, server=server, host=host)


def _message(view: SignInView, space: Space) -> list[Element]:
    """The server's own words, set apart."""
    if not view.message.strip():
        return []
    return [container("emphasis", rich(words(space.passage(view.message, _MESSAGE))))]
