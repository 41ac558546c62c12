"""The names by which Slack sends clicks and forms back to us, and what we write on them: opaque ids, nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

# ------------------------------------------------------------------------------------------------ buttons
# The value of each is the id of what it is about: an approval, a clarification, a sign-in, an outcome, a post.
OPEN_LINK = "open_link"
"""A button with a URL: Slack opens it and tells us too."""
FEEDBACK = "feedback"
"""The feedback element; its value is `good:{post id}` or `bad:{post id}`."""
OPEN_THREAD = "open_thread"
"""A button with the permanent link of a thread, on the App Home."""

MENU = "menu"
"""The menu behind ⋯. What is chosen there is `{action} {approval id}` (`chosen_in_menu`)."""
ASK_TO_WITHDRAW = "ask_to_withdraw"
"""Asks once more before something is withdrawn: an entry of a menu cannot."""
_LONGEST_ENTRY = 150
"""Characters of the value of an entry of a menu (Slack)."""


def menu_value(action: str, subject: str) -> str:
    """Returns the value of an entry of the menu."""
    return f"{action} {subject}"


def fits_menu(subject: str) -> bool:
    """Returns whether an id is short enough for every entry of the menu."""
    return len(menu_value(ASK_TO_WITHDRAW, subject)) <= _LONGEST_ENTRY


def chosen_in_menu(value: str) -> tuple[str, str]:
    """Returns the action that was chosen in the menu, and the id that it is about."""
    action, _space, subject = value.partition(" ")
    return action, subject


# ------------------------------------------------------------------------------------------------ the rest
SHORTCUT = "ask_about_message"
COMMAND = "/countersign"
QUESTION = "question"
"""Name of the question's input in the shortcut's form."""


class Modal(StrEnum):
    """callback_id of each modal."""

    REJECT = "reject_form"
    EDIT = "edit_form"
    ANSWER = "answer_form"
    APPROVE_ALL = "approve_all_form"
    ALWAYS = "always_form"
    HAND_OVER = "hand_over_form"
    CODE = "code_form"
    ASK = "ask_form"
    """The form of the message shortcut."""
    CONNECT = "connect"
    """Holds a link for whom it is opened for, alone."""
    WITHDRAW = "withdraw_form"
    SHOW_ALL = "show_all_form"
    """Everything of a waiting call, for somebody who may decide it: approves, with a note."""
    NOTE = "note"
    """Only says something."""


INPUT = "value"
"""action_id of every input in a modal; its block_id is `input:{field name}`."""


DELETION = "deletion"
"""block_id of what is ticked before a modal approves something that deletes."""


def block_of(field: str) -> str:
    """block_id of a field's input (Slack: 255 characters; names of fields have 100 at most)."""
    return f"input:{field}"


_LONGEST_METADATA = 3_000
"""Characters (Slack)."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a modal remembers of where it was opened (`private_metadata`)."""

    subject: str = ""
    """Id of what it is about; several (approve all) are separated by spaces."""
    channel: str = ""
    message_ts: str = ""
    thread_ts: str = ""
    home: bool = False
    """Opened from the App Home, which is then to be shown anew."""

    def dump(self) -> str:
        """Returns it as text for `private_metadata`."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})


def load_origin(private_metadata: str) -> Origin:
    """Read it back. Raises `ValueError` for anything that `Origin.dump` did not write."""
    if len(private_metadata) > _LONGEST_METADATA:
        raise ValueError("longer than any modal's metadata")
    try:
        return Origin(**json.loads(private_metadata))
    except TypeError as error:
        raise ValueError("not the metadata of one of our modals") from error
