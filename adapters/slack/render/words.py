"""Words for Slack: text made safe for its markup, times in the reader's own zone, mentions of people and groups.

Everything from models, tools and people goes into `plain_text` objects and `rich_text` elements, which are literal.
What is here is for the two places that are not: `mrkdwn` objects, which hold only our own words, and the fallback
`text` of a message.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from bot.safe_text import visible_line, visible_passage

LONGEST_FALLBACK = 3_900
"""Characters of a message's fallback text (Slack advises 4,000)."""

_LATEST = 9_999_999_999
"""Seconds since the epoch: ten digits, in the year 2286."""
_PERSON = re.compile(r"slack:(?P<team>[TE][A-Z0-9]{0,30}):(?P<id>[UW][A-Z0-9]{0,30})")
_GROUP = re.compile(r"slack-group:(?P<team>[TE][A-Z0-9]{0,30}):(?P<id>S[A-Z0-9]{0,30})")


def escape(text: str) -> str:
    """The text with Slack's three control characters as entities, so that none of it is markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def line(text: str, limit: int, unseen: int = 0) -> str:
    """One visible line of at most `limit` characters; "(empty)" for nothing, since Slack refuses empty text. `unseen`:
    how many characters follow that are not in `text`."""
    return visible_line(text, limit, unseen) or "(empty)"[:limit]


def passage(text: str, limit: int) -> str:
    """Visible text of at most `limit` characters with its lines kept; "(empty)" for nothing."""
    shown = visible_passage(text, limit)
    return shown if shown.strip() else "(empty)"[:limit]


def fallback(text: str) -> str:
    """Fallback text of a message: for notifications, search and screen readers. Escaped; at most 3,900 characters."""
    text = text.strip()
    escaped = escape(visible_passage(text, LONGEST_FALLBACK) or "(empty)")
    # An escape is up to five characters long.
    return escaped if len(escaped) <= LONGEST_FALLBACK else escape(visible_passage(text, LONGEST_FALLBACK // 5))


def moment(seconds: float) -> str:
    """A time as mrkdwn that each reader sees in their own zone: "today at 10:00", "21 Nov at 10:00"."""
    if not 0 <= seconds <= _LATEST:
        return "an unknown time"
    otherwise = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(seconds)}^{{date_short_pretty}} {{time}}|{otherwise}>"


def user_id(person: str, team: str) -> str | None:
    """The Slack id of a person of this workspace; `None`: they are not of it, or this is no id that Slack gives."""
    return _id_of(_PERSON, person, team)


def group_id(group: str, team: str) -> str | None:
    """The Slack id of a user group of this workspace, likewise."""
    return _id_of(_GROUP, group, team)


def mention(approver: str, team: str) -> str | None:
    """The mrkdwn that notifies a person or a group of this workspace; `None` for anybody else."""
    if user := user_id(approver, team):
        return f"<@{user}>"
    if group := group_id(approver, team):
        return f"<!subteam^{group}>"
    return None


def _id_of(pattern: re.Pattern[str], reference: str, team: str) -> str | None:
    found = pattern.fullmatch(reference)
    return found["id"] if found and found["team"] == team else None
