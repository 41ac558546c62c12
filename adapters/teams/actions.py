"""The names by which Teams sends clicks and forms back to us, and what we write on them: opaque ids, nothing else."""

from __future__ import annotations

from typing import Any

# ------------------------------------------------------------------------------------------------ on cards
# `Action.Execute` with the name as its `verb`, falling back to `Action.Submit`; both carry `action_data(name, id)`.
APPROVE = "approve"
REJECT = "reject"
"""Submits the reason from the card's `Action.ShowCard`."""
TAKE_BACK = "take_back"
"""The requester does not want it any more."""
REVOKE = "revoke"
"""Ends a grant; its id is the grant's."""
REFRESH = "refresh"
"""Asked by Teams by itself for those whom the card names: what this person is to see."""
ANSWER = "answer"
"""Submits the inputs of a question that stand on its card."""
DECLINE = "decline"
"""A tool's question is answered with no."""
CANCEL = "cancel"
"""A tool's question is not answered at all."""
GET_LINK = "get_link"
"""Gives the owner of a sign-in a fresh link, privately."""
SIGNED_IN = "signed_in"
"""Only for links of the servers' own: with accounts, the callback knows."""
NOT_NOW = "not_now"
IT_WAS_DONE = "it_was_done"
TRY_AGAIN = "try_again"
SKIP = "skip"

# ------------------------------------------------------------------------------------------------ dialogs
# `Action.Submit` with `dialog_data(name, id)`: Teams asks with `task/fetch` for the dialog, then sends `task/submit`
# with the data of the button in it: `action_data(name, id)` again, with the inputs beside it.
REJECT_DIALOG = "reject_dialog"
"""For clients without `Action.ShowCard`'s inputs, and for reasons that do not fit in one line."""
EDIT_DIALOG = "edit_dialog"
SHOW_ALL = "show_all"
LOOK_DIALOG = "look_dialog"
"""Shows what is hidden in a waiting call to whoever may decide it, alone."""
APPROVE_ALL_DIALOG = "approve_all_dialog"
ANSWER_DIALOG = "answer_dialog"
ALWAYS_DIALOG = "always_dialog"
HAND_OVER_DIALOG = "hand_over_dialog"
CODE_DIALOG = "code_dialog"
DISCONNECT_DIALOG = "disconnect_dialog"
"""Asks whether that is meant; its id is the connection's."""

EDIT = "edit"
"""Submits an edit dialog."""
APPROVE_ALL = "approve_all"
"""Submits the dialog that shows several approvals; its id is those shown, separated by spaces."""
ALWAYS = "always"
"""Approves, and always allows the same call for a while."""
HAND_OVER = "hand_over"
"""Asks somebody else to decide."""
ENTER_CODE = "enter_code"
"""Submits the one-time code of a sign-in."""
DISCONNECT = "disconnect"
"""Ends a connection."""
PAGE = "page"
"""Another page of a "show all" dialog; its id is `{page}:{approval id}`."""
LOOK_PAGE = "look_page"
"""Another page of what is hidden; its id likewise."""
CLOSE = "close"
"""Closes a dialog that only shows."""

# ------------------------------------------------------------------------------------------------ inputs
ACTION = "countersign"
"""Name, in an action's data, of the action; nothing that lacks it is ours."""
SUBJECT = "id"
REASON = "reason"
"""Id of the reason's input."""
CODE = "code"
"""Id of the input for a one-time code. What comes in it is never shown again."""
DURATION = "duration"
"""Id of the menu of how long a grant is for."""
COLLEAGUE = "colleague"
"""Id of the people picker; its value is an object id."""
ADDRESS = "address"
"""Name of the input for the e-mail address, or the object id, of whom to ask: not every client has a people picker."""
_FIELD = "field:"

# ------------------------------------------------------------------------------------------------ the rest
COMMANDS = ("approvals", "connections", "new", "stop", "help")
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
