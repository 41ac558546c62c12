"""Block Kit's building bricks: one small function for each block and element that we use.

They build; keeping text within Slack's limits is the caller's, since only the caller knows what may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.slack.render.words import fallback

Block = dict[str, Any]
"""A block, an element or an object of Block Kit, as JSON."""

MOST_BLOCKS = 50
"""Blocks of a message (Slack)."""
LONGEST_HEADER = 150
"""Characters of a header (Slack)."""
LONGEST_TEXT = 3_000
"""Characters of a section's text (Slack), and what we allow one part of a rich text."""
LONGEST_URL = 3_000
"""Characters of a button's URL (Slack)."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One Slack message."""

    blocks: tuple[Block, ...]
    text: str
    """Fallback text, escaped."""


def piece(blocks: Sequence[Block], text: str) -> Piece:
    """A message with its fallback, which is escaped here."""
    return Piece(tuple(blocks), fallback(text))


# ------------------------------------------------------------------------------------------------ text


def plain(text: str) -> Block:
    """Literal text: no formatting, no mentions, no `:emoji:`."""
    return {"type": "plain_text", "text": text, "emoji": False}


def mrkdwn(text: str) -> Block:
    """Slack's markup, for our own words, times and mentions only."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


# ------------------------------------------------------------------------------------------------ blocks


def header(text: str) -> Block:
    """A title."""
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


def actions(*elements: Block) -> Block:
    """A row of buttons (Slack: 25), each with an action_id of its own."""
    return {"type": "actions", "elements": list(elements)}


def divider() -> Block:
    """A line."""
    return {"type": "divider"}


# ------------------------------------------------------------------------------------------------ buttons


def button(text: str, action_id: str, value: str, style: str = "") -> Block:
    """A button; `style` is `primary`, `danger` or nothing (Slack: 75 characters of text, 2,000 of value)."""
    made = {"type": "button", "text": plain(text), "action_id": action_id, "value": value}
    return {**made, "style": style} if style else made


def confirmed(element: Block, title: str, text: str, yes: str) -> Block:
    """An element that asks back before anything is sent (Slack: 100, 300 and 30 characters)."""
    asks = {"title": plain(title), "text": plain(text), "confirm": plain(yes), "deny": plain("Back")}
    return {**element, "confirm": asks}


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
