"""The names by which Teams sends clicks and forms back to us, and what we write on them: opaque ids, nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

# ------------------------------------------------------------------------------------------------ on cards
# `Action.Execute` with the name as its `verb`, falling back to `Action.Submit`; both carry `action_data(name, id)`.
REFRESH = "refresh"
"""Asked by Teams by itself for those whom the card names: what this person is to see."""


class DialogButton(StrEnum):
    """Buttons that open a dialog.

    `Action.Submit` with `dialog_data(name, id)`: Teams asks with `task/fetch` for the dialog, then sends `task/submit`
    with the data of the button in it: `action_data(name, id)` again, with the inputs beside it.
    """

    REJECT = "reject_dialog"
    """For clients without `Action.ShowCard`'s inputs, and for reasons that do not fit in one line."""
    EDIT = "edit_dialog"
    SHOW_HIDDEN = "look_dialog"
    """Shows what is hidden in a waiting call to whoever may decide it, alone."""
    APPROVE_ALL = "approve_all_dialog"
    ANSWER = "answer_dialog"
    WITHDRAW = "withdraw_dialog"
    """Asks whoever asked for a call whether they mean it."""
    ALWAYS = "always_dialog"
    HAND_OVER = "hand_over_dialog"
    CODE = "code_dialog"
    DISCONNECT = "disconnect_dialog"
    """Asks whether that is meant; its id is the connection's."""
    CONNECT = "connect_dialog"
    """Has a link to connect an account, for whoever opens it alone; its id is the connection's name."""


CLOSE = "close"
"""Closes a dialog that only shows."""

# ------------------------------------------------------------------------------------------------ inputs
ACTION = "countersign"
"""Name, in an action's data, of the action; nothing that lacks it is ours."""
SUBJECT = "id"
_FIELD = "field:"

# ------------------------------------------------------------------------------------------------ the rest
COMMANDS = ("approvals", "connections", "memory", "usage", "agent", "new", "stop", "help")
"""What a person may write to the bot as a command; the app's manifest lists them."""


def action_data(name: str, subject: str) -> dict[str, Any]:
    """What a button carries."""
    return {ACTION: name, SUBJECT: subject}


def dialog_data(name: str, subject: str) -> dict[str, Any]:
    """What a button carries that opens a dialog."""
    return {**action_data(name, subject), "msteams": {"type": "task/fetch"}}


def input_id(field: str) -> str:
    """Id of a form field's input: apart from our own names, whatever a tool calls its arguments."""
    return f"{_FIELD}{field}"
