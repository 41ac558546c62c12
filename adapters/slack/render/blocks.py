"""Words and blocks: text escaped for Slack's markup, times in the reader's zone, mentions, and Block Kit's elements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.safe_text import visible_passage
from translations import gettext as _

LONGEST_FALLBACK = 3_900
"""Characters of a message's fallback text (Slack advises 4,000)."""
LONGEST_TASK_TITLE = 256
"""Characters of a task card's title (Slack, of tasks in a stream; of the block it names no limit)."""
_BRACKETS = str.maketrans({"<": "‹", ">": "›"})
_LATEST = 9_999_999_999
"""Seconds since the epoch: ten digits, in the year 2286."""
_PERSON = re.compile(r"slack:(?P<team>[TE][A-Z0-9]{0,30}):(?P<id>[UW][A-Z0-9]{0,30})")
_GROUP = re.compile(r"slack-group:(?P<team>[TE][A-Z0-9]{0,30}):(?P<id>S[A-Z0-9]{0,30})")


def escape(text: str) -> str:
    """The text with Slack's three control characters as entities, so that none of it is markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fallback(text: str) -> str:
    """Fallback text of a message: for notifications, search and screen readers. Escaped; at most 3,900 characters."""
    text = text.strip()
    escaped = escape(visible_passage(text, LONGEST_FALLBACK) or _("(empty)"))
    # An escape is up to five characters long.
    return escaped if len(escaped) <= LONGEST_FALLBACK else escape(visible_passage(text, LONGEST_FALLBACK // 5))


def without_brackets(text: str) -> str:
    """Text for a place whose description is silent about markup: none of it can begin a mention or a link."""
    return text.translate(_BRACKETS)


def reader_time(seconds: float) -> str:
    """A time as mrkdwn that each reader sees in their own zone: "today, 10:00", "21 Nov, 10:00"."""
    if not 0 <= seconds <= _LATEST:
        return _("at an unknown time")
    otherwise = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(seconds)}^{{date_short_pretty}}, {{time}}|{otherwise}>"


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


# ------------------------------------------------------------ one function for each block and element
# Keeping text within Slack's limits is the caller's, since only the caller knows what may be left out.


Block = dict[str, Any]
"""A block, an element or an object of Block Kit, as JSON."""
MOST_BLOCKS = 50
"""Blocks of a message (Slack)."""
LONGEST_TEXT = 3_000
"""Characters of a section's text (Slack), and what we allow one part of a rich text."""
LONGEST_URL = 3_000
"""Characters of a button's URL (Slack)."""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """One Slack message."""

    blocks: tuple[Block, ...]
    text: str
    """Fallback text, escaped."""


def piece(blocks: Sequence[Block], text: str) -> SlackMessage:
    """A message with its fallback, which is escaped here."""
    return SlackMessage(tuple(blocks), fallback(text))


# ------------------------------------------------------------------------------------------------ text
def plain(text: str) -> Block:
    """Literal text: no formatting, no mentions, no `:emoji:`."""
    return {"type": "plain_text", "text": text, "emoji": False}


def mrkdwn(text: str) -> Block:
    """Slack's markup, for our own words, times and mentions only."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


# ------------------------------------------------------------------------------------------------ blocks
def header(text: str) -> Block:
    """A title (Slack: 150 characters)."""
    return {"type": "header", "text": plain(text)}


def section(text: Block) -> Block:
    """A paragraph."""
    return {"type": "section", "text": text}


def fields(texts: Iterable[Block]) -> Block:
    """Texts in two columns (Slack: 10 of them, 2,000 characters each)."""
    return {"type": "section", "fields": list(texts)}


def context(*texts: Block) -> Block:
    """Small print (Slack: 10 elements)."""
    return {"type": "context", "elements": list(texts)}


def button_row(*elements: Block) -> Block:
    """A row of buttons (Slack: 25), each with an action_id of its own."""
    return {"type": "actions", "elements": list(elements)}


def task_card(task_id: str, title: str, status: str, output: str = "") -> Block:
    """One task, with a sign for its status: `pending`, `in_progress`, `complete` or `error`. `output` is literal.

    https://docs.slack.dev/reference/block-kit/blocks/task-card-block
    """
    made = {"type": "task_card", "task_id": task_id, "title": without_brackets(title), "status": status}
    return {**made, "output": sentence(output)} if output else made


def plan(title: str, tasks: Sequence[Block]) -> Block:
    """Task cards under a title, which is plain text.

    https://docs.slack.dev/reference/block-kit/blocks/plan-block
    """
    return {"type": "plan", "title": without_brackets(title), "tasks": list(tasks)}


def divider() -> Block:
    """A line."""
    return {"type": "divider"}


# ------------------------------------------------------------------------------------------------ buttons
def button(text: str, action_id: str, value: str, style: str = "") -> Block:
    """A button; `style` is `primary`, `danger` or nothing (Slack: 75 characters of text, 2,000 of value)."""
    made = {"type": "button", "text": plain(text), "action_id": action_id, "value": value}
    return {**made, "style": style} if style else made


def confirmed(element: Block, title: str, text: str, yes: str) -> Block:
    """An element that asks for confirmation before anything is sent (Slack: 100, 300 and 30 characters)."""
    asks = {"title": plain(title), "text": plain(text), "confirm": plain(yes), "deny": plain(_("Back"))}
    return {**element, "confirm": asks}


def overflow(action_id: str, entries: Sequence[tuple[str, str]]) -> Block:
    """A menu behind three dots: text and value of each entry (Slack: 5 of them, 75 and 150 characters)."""
    options = [{"text": plain(text), "value": value} for text, value in entries]
    return {"type": "overflow", "action_id": action_id, "options": options}


def link_button(text: str, action_id: str, url: str) -> Block:
    """A button that opens a page. Slack tells us of the click too."""
    return {"type": "button", "text": plain(text), "action_id": action_id, "url": url}


# ------------------------------------------------------------------------------------------------ rich text
def rich_text(*elements: Block) -> Block:
    """Formatted text whose characters are literal."""
    return {"type": "rich_text", "elements": list(elements)}


def flow(elements: Iterable[Block]) -> Block:
    """Running text of a rich text block."""
    return {"type": "rich_text_section", "elements": list(elements)}


def run(text: str, *styles: str) -> Block:
    """Some characters in one style; `styles` of `bold`, `italic`, `strike`, `code`."""
    made: Block = {"type": "text", "text": text}
    return {**made, "style": dict.fromkeys(sorted(styles), True)} if styles else made


def link(url: str, text: str, *styles: str) -> Block:
    """A link in a rich text."""
    made: Block = {"type": "link", "url": url, "text": text}
    return {**made, "style": dict.fromkeys(sorted(styles), True)} if styles else made


def quote(text: str) -> Block:
    """Somebody's words, set apart."""
    return {"type": "rich_text_quote", "elements": [run(text)]}


def preformatted(text: str) -> Block:
    """Text with its spaces and lines as they are."""
    return {"type": "rich_text_preformatted", "elements": [run(text)]}


def sentence(text: str) -> Block:
    """A paragraph of literal text."""
    return rich_text(flow([run(text)]))
