"""The cards of a sign-in: the public one, which everybody sees, and the private one with the link."""

from __future__ import annotations

from adapters.slack.actions import ENTER_CODE, GET_LINK, NOT_NOW, OPEN_LINK, SIGNED_IN
from adapters.slack.render.blocks import (
    LONGEST_URL,
    Block,
    Piece,
    actions,
    button,
    link_button,
    piece,
    quote,
    rich_text,
    sentence,
)
from adapters.slack.render.words import line, passage
from bot.domain import SignInView
from bot.safe_text import link_host

_NAME = 100
_HOST = 100
_MESSAGE = 500

_ENDS = {
    "done": "{owner} has signed in at {where}.",
    "declined": "{owner} did not sign in at {where} this time.",
    "expired": "The sign-in of {owner} at {where} has expired.",
    "superseded": "The sign-in of {owner} at {where} is not needed any more.",
}
_CODE = (
    "In the end your browser may show a code: then press “Enter code…” on the card, or simply write the code to me. "
    "Sign in only if it was you who asked for this, and pass neither link nor code on."
)


def sign_in_card(view: SignInView) -> Piece:
    """The public message of a sign-in, without its link."""
    owner, where = line(view.owner, _NAME), where_to(view)
    if view.status != "open":
        text = _ENDS[view.status].format(owner=owner, where=where)
        return piece([sentence(text)], text)
    text = f"Waiting for {owner} to sign in at {where} ({line(view.host, _HOST)})."
    if view.service:
        text = f"Waiting for {owner} to sign in at {where}{_for_whom(view)}."
    if view.code_wanted:
        text = f"Waiting for {owner} to tell me the code that their browser shows, to connect their account at {where}."
    return piece([sentence(text), actions(*sign_in_buttons(view))], text)


def sign_in_piece(view: SignInView, link: str) -> Piece:
    """The private message of a sign-in, for its owner alone. The link is in its button, not in its text."""
    where, host = where_to(view), link_host(link)
    not_now = button("Not now", NOT_NOW, view.sign_in_id)
    if not host or len(link) > LONGEST_URL:
        why = "too long for Slack" if host else "no safe web address"
        text = f"The sign-in page of {where} cannot be opened from here: its link is {why}."
        return piece([sentence(text), actions(not_now)], text)
    text = f"Please sign in at {where}{_for_whom(view)}. The link leads to {line(host, _HOST)} and is yours alone."
    told = [sentence(_CODE)] if view.service else _in_its_words(view)
    # Where an account of the house's is connected, the house itself knows when that is done.
    done = [] if view.service else [button("I have signed in", SIGNED_IN, view.sign_in_id, "primary")]
    code = [_enter_code(view)] if view.code_wanted else []
    buttons = actions(link_button("Open the sign-in page", OPEN_LINK, link), *done, *code, not_now)
    return piece([sentence(text), *told, buttons], text)


def sign_in_buttons(view: SignInView) -> list[Block]:
    """What its owner can do about an open sign-in, where others see the buttons too."""
    code = [_enter_code(view)] if view.code_wanted else []
    return [*code, button("Get my link", GET_LINK, view.sign_in_id)]


def where_to(view: SignInView) -> str:
    """Name of what somebody signs in to: the service whose account is wanted, or the server that gave the link."""
    return line(view.service or view.server, _NAME)


def _for_whom(view: SignInView) -> str:
    """The tool server that is to act with the account, unless it is the service itself."""
    server = line(view.server, _NAME)
    return f", for the tool server {server}" if view.service and server != where_to(view) else ""


def _in_its_words(view: SignInView) -> list[Block]:
    return [rich_text(quote(passage(view.message, _MESSAGE)))] if view.message.strip() else []


def _enter_code(view: SignInView) -> Block:
    return button("Enter code…", ENTER_CODE, view.sign_in_id, "primary")
