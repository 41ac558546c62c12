"""The cards of a sign-in: the public one without its link, and that of its owner alone."""

from __future__ import annotations

from adapters.teams.actions import CODE_DIALOG, GET_LINK, NOT_NOW, SIGNED_IN
from adapters.teams.render.elements import Element, card, container, execute, opens_dialog, opens_page, rich, words
from adapters.teams.render.room import Room, fitted, weight
from bot.domain import SignInView
from bot.safe_text import link_host

_NAME = 100
_HOST = 100
_MESSAGE = 500
_LONGEST_LINK = 8_000
"""Bytes of a sign-in's link as JSON."""

_ENDS = {
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
        ends = _ACCOUNT_ENDS if view.service else _ENDS
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
