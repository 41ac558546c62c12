"""The names of what people do on cards and in dialogs, on every platform.

They stand on cards that were posted long ago, so that none of them may change.
"""

from __future__ import annotations

# What a button settles; the id that comes with it is that of what it is about.
APPROVE = "approve"
REJECT = "reject"
EDIT = "edit"
"""Approves with other arguments."""
ALWAYS = "always"
"""Approves, and always allows the same call for a while."""
APPROVE_ALL = "approve_all"
"""The action's id holds the ids of all approvals that were shown, separated by spaces; on the button that opens the
list, the id of one."""
HAND_OVER = "hand_over"
"""Asks somebody else to decide."""
WITHDRAW = "take_back"
"""The requester does not want it any more. The text is on cards that were posted before, so it stays."""
REVOKE = "revoke"
"""Ends a standing approval; its id is that one's."""
ANSWER = "answer"
DECLINE = "decline"
"""A tool's question is answered with no."""
CANCEL = "cancel"
"""A tool's question is not answered at all."""
ENTER_CODE = "enter_code"
"""The one-time code that a sign-in ended with."""
DISCONNECT = "disconnect"
"""Ends a connection; its id is the connection's."""
FORGET = "forget"
"""Deletes something that is remembered of whoever clicks; its id is the memory's."""
FORGET_OF_CHANNEL = "forget_of_channel"
"""The same of the channel in which they click."""
FORGET_ALL = "forget_all"
REMEMBER_NOTHING = "remember_nothing"
"""Forgets everything of whoever clicks, and remembers nothing any more."""
REMEMBER_AGAIN = "remember_again"
OF_MEMORY = frozenset({FORGET, FORGET_OF_CHANNEL, FORGET_ALL, REMEMBER_NOTHING, REMEMBER_AGAIN})
"""What the buttons of the list of memories do, which shows what came of it."""
SIGNED_IN = "signed_in"
"""Only for links of the servers' own: with accounts, the callback knows."""
NOT_NOW = "not_now"
RETRY = "retry"
"""Has a call that was approved and failed proposed once more; its id is the approval's."""
IT_WAS_DONE = "it_was_done"
TRY_AGAIN = "try_again"
SKIP = "skip"
SETTLING = frozenset(
    {
        *(APPROVE, REJECT, EDIT, ALWAYS, WITHDRAW, REVOKE, ANSWER, DECLINE, CANCEL, ENTER_CODE, DISCONNECT),
        *(SIGNED_IN, NOT_NOW, RETRY, IT_WAS_DONE, TRY_AGAIN, SKIP),
        *OF_MEMORY,
    }
)
"""Actions that settle one thing: `adapters.shared.clicks.settle` takes each of them."""

# What a button shows.
SHOW_ALL = "show_all"
"""Of a waiting call its dialog approves, too, with a note; of a settled one these are its details."""
PAGE = "page"
"""Another page of that; its id is `{page}:{approval id}`."""
SHOW_HIDDEN = "look"
"""What is hidden in a waiting call, for one person who may decide it."""
SHOW_HIDDEN_PAGE = "look_page"
"""Another page of that; its id likewise."""
GET_LINK = "get_link"
"""Gives the owner of a sign-in a fresh link, privately."""
CONNECT = "connect"
"""Gives somebody a link to connect an account, privately; its id is the connection's name."""

# Inputs of our own forms.
REASON = "reason"
NOTE = "note"
"""What somebody adds for the model when they approve."""
CODE = "code"
"""Field of a one-time code. What is typed there is never shown again."""
DURATION = "duration"
"""The menu of how long a standing approval is for."""
COLLEAGUE = "colleague"
"""The menu of whom to ask."""
ADDRESS = "address"
"""The e-mail address of whom to ask, for those whom the menu does not have."""
