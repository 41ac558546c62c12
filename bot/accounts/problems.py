"""Why nothing was connected, in words that tell nobody anything that is not theirs to know."""

from __future__ import annotations

from bot.accounts.pages import Problem

_AGAIN = "Ask the bot in chat for a new link."

UNKNOWN_LINK = Problem("unknown", f"This link does not exist, or a newer one has taken its place. {_AGAIN}")
UNKNOWN_STATE = Problem("unknown", f"Nobody is waited for with this answer (any more). {_AGAIN}")
USED = Problem("used", "This was used already. If your account is not connected, ask the bot in chat for a new link.")
OVERTAKEN = Problem("used", f"This sign-in was begun again, or finished, somewhere else. {_AGAIN}")
OLD_LINK = Problem("expired", f"This link is too old. {_AGAIN}")
OLD_STEP = Problem("expired", f"This took too long. {_AGAIN}")
OTHER_BROWSER = Problem(
    "foreign", f"This sign-in was begun in another browser. Go on there, or start anew: {_AGAIN.lower()}"
)
NOT_YOUR_PAGE = Problem(
    "foreign",
    "This link is for somebody who is signed in to the chat page. Open it in the browser in which you use that page.",
)
SOMEBODY_ELSE = Problem(
    "foreign",
    "This link is for somebody else. If it was sent to you, do not go on: your account would become theirs to use.",
)
OTHER_ADDRESS = Problem(
    "foreign",
    "The account that you chose has another e-mail address than the person in chat whom this link is for, so it was "
    "not connected. If this link is yours, choose the account with the address that you have in chat.",
)
OTHER_ADDRESS_OF_OURS = Problem(
    "foreign",
    "This answer came to the address of another service than the one you were sent to, so nothing was connected. One "
    f"of them may be trying to get your account at the other: tell whoever operates the bot. {_AGAIN}",
)
DENIED = Problem("denied", f"You did not allow it, so nothing was connected. If you change your mind: {_AGAIN.lower()}")
SERVICE_REFUSED = Problem("service", f"The service did not accept this sign-in, so nothing was connected. {_AGAIN}")
SERVICE_AWAY = Problem("service", "The service cannot be reached at the moment. Please try again in a few minutes.")
NOT_CONFIGURED = Problem("service", "This service is not configured any more. Tell whoever operates the bot.")
TOO_OFTEN = Problem("service", "This was tried too often. Please wait a few minutes, then try again.")
