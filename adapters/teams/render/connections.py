"""A person's accounts at services, as they see them themselves; never their tokens."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.teams.actions import DISCONNECT_DIALOG
from adapters.teams.render.elements import (
    Element,
    action_set,
    bold,
    card,
    container,
    heading,
    opens_dialog,
    rich,
    small,
    words,
)
from adapters.teams.render.moments import moment
from adapters.teams.render.room import MAX_CARD_BYTES, Room, fitted, weight
from bot.domain import ConnectionView

_NAME = 100
_SCOPES = 300
_ENTRY_BYTES = 2_600
_LIST_BYTES = MAX_CARD_BYTES - 2_000
"""Of all entries, so that there is room around them."""
NONE = "You have connected no account. I ask you for one when a tool needs it."


def connections_card(connections: Sequence[ConnectionView]) -> Element:
    """The accounts that a person has connected, as many as fit."""
    body: list[Element] = []
    room = _LIST_BYTES
    for view in connections:
        entry = connection_entry(view)
        room -= weight(entry)
        if room < 0:
            break
        body.append(entry)
    left = len(connections) - len(body)
    more = [small(f"… and {left:,} more")] if left else []
    shown = [heading("Your accounts"), *body, *more] if connections else [rich(words(NONE))]
    return card(shown, summary=connections_summary(connections))


def connections_summary(connections: Sequence[ConnectionView]) -> str:
    """It in a sentence."""
    if not connections:
        return NONE
    return f"You have connected {len(connections):,} {'account' if len(connections) == 1 else 'accounts'}."


def connection_entry(view: ConnectionView) -> Element:
    """One of them, with a way to end it."""
    return fitted(lambda room: _entry(view, room), _ENTRY_BYTES)


def account_name(view: ConnectionView, room: Room) -> str:
    """The service, and whose account it is there, where the service says so."""
    service = room.line(view.service, _NAME)
    return f"{service}: {room.line(view.account, _NAME)}" if view.account.strip() else service


def _entry(view: ConnectionView, room: Room) -> Element:
    scopes = [rich(words(room.line(", ".join(view.scopes), _SCOPES)), spacing="Small")] if view.scopes else []
    used = f"last used {moment(view.used_at)}" if view.used_at is not None else "not used yet"
    broken = [] if view.working else [small("It does not work any more: I will ask you to sign in again.")]
    end = action_set(opens_dialog("Disconnect…", DISCONNECT_DIALOG, view.connection_id))
    since = small(f"Connected {moment(view.since)}, {used}")
    return container("default", rich(bold(account_name(view, room))), *scopes, since, *broken, end, separator=True)
