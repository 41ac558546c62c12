"""Somebody's connected accounts: on their App Home, and as the list that `/countersign connections` gives."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.slack.actions import DISCONNECT
from adapters.slack.render.blocks import (
    Block,
    Piece,
    actions,
    button,
    confirmed,
    context,
    flow,
    header,
    mrkdwn,
    piece,
    plain,
    rich_text,
    run,
    sentence,
)
from adapters.slack.render.words import line, moment
from bot.domain import ConnectionView

_NAME = 100
_SCOPES = 300
_IN_A_QUESTION = 60
"""Characters of a name where Slack has room for 300 in all."""
_LISTED = 15
"""Accounts in the list of the slash command: three blocks each, of the 50 that a message has (Slack)."""
NONE = "No account of yours is connected. When a tool needs one, I send you a link that only you can see."


def connection_blocks(view: ConnectionView) -> list[Block]:
    """One account, with the button to disconnect it."""
    account = [run(f" as {line(view.account, _NAME)}")] if view.account.strip() else []
    ended = [] if view.working else [run("\nIt does not work any more: the next call asks you to sign in again.")]
    times = f"Connected {moment(view.since)}"
    if view.used_at is not None:
        times += f", last used {moment(view.used_at)}"
    allowed = [plain(line(f"Allowed: {', '.join(view.scopes)}", _SCOPES))] if view.scopes else []
    return [
        rich_text(flow([run(line(view.service, _NAME), "bold"), *account, *ended])),
        context(mrkdwn(times), *allowed),
        actions(_disconnect(view)),
    ]


def connections_piece(views: Sequence[ConnectionView]) -> Piece:
    """Somebody's accounts, for them alone."""
    if not views:
        return piece([sentence(NONE)], NONE)
    blocks = [header("Your connected accounts")]
    for view in views[:_LISTED]:
        blocks += connection_blocks(view)
    if (more := len(views) - _LISTED) > 0:
        blocks.append(context(plain(f"… and {more:,} more")))
    return piece(blocks, f"Connected: {', '.join(line(view.service, _NAME) for view in views[:_LISTED])}.")


def _disconnect(view: ConnectionView) -> Block:
    name = line(view.service, _IN_A_QUESTION)
    whose = f" ({line(view.account, _IN_A_QUESTION)})" if view.account.strip() else ""
    return confirmed(
        button("Disconnect", DISCONNECT, view.connection_id, "danger"),
        "Disconnect?",
        f"I forget your account at {name}{whose} and tell {name} so. Tools that need it ask you to sign in again.",
        "Disconnect",
    )
