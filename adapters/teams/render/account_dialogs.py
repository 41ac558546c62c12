"""Dialogs about accounts: the one-time code of a sign-in, and the end of a connection."""

from __future__ import annotations

from adapters.teams import actions
from adapters.teams.render.connections import account_name
from adapters.teams.render.dialogs import Dialog, mistakes
from adapters.teams.render.elements import Element, bold, card, needed, rich, submit, text_line, words
from adapters.teams.render.room import Room, fitted
from bot.domain import ConnectionView, SignInView

_NAME = 100
_LONGEST_CODE = 40
"""Characters of a code with whatever is pasted around it; it has nine itself."""


def code_dialog(view: SignInView, mistake: str = "") -> Dialog:
    """The form for the code that a browser shows. What was typed is never shown again. `mistake`: what was wrong."""
    typed = {**text_line(actions.CODE, "Code", longest=_LONGEST_CODE), **needed(required=True)}

    def build(room: Room) -> Element:
        service = room.line(view.service or view.server, _NAME)
        told = (
            f"Enter the code that your browser shows since you have signed in at {service}. It has to be your own "
            "browser, and a link that I gave to you."
        )
        body = [rich(words(told)), *mistakes({"": mistake} if mistake else {}, {}, room), typed]
        connect = submit("Connect", actions.ENTER_CODE, view.sign_in_id, style="positive")
        return card(body, [connect], summary="Enter the code")

    return Dialog("Enter the code", fitted(build), "small")


def disconnect_dialog(view: ConnectionView) -> Dialog:
    """Whether a connection is really to be ended."""

    def build(room: Room) -> Element:
        told = (
            "It is of no use to me from then on, and what I keep of it is deleted. When a tool needs it again, I ask "
            "you to sign in anew."
        )
        end = submit("Disconnect", actions.DISCONNECT, view.connection_id, inputs="none", style="destructive")
        keep = submit("Keep it", actions.CLOSE, "", inputs="none")
        body = [rich(bold(f"Disconnect {account_name(view, room)}?")), rich(words(told))]
        return card(body, [end, keep], summary="Disconnect?")

    return Dialog("Disconnect", fitted(build), "small")
