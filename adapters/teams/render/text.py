"""Foreign text made safe for where it stands in Teams.

There are three kinds of places. The text of a `TextRun` is literal, except that clients replace `{{DATE(…)}}` and
`{{TIME(…)}}` in it (`elements.words` sees to that). `TextBlock` and `FactSet` read a subset of Markdown, and the same
functions: `escape`. Labels, titles and placeholders are literal on some clients and Markdown on others: `label`.
The text of a message is Markdown in which HTML is active as well: `escape_message`.
"""

from __future__ import annotations

import re

from bot.safe_text import visible_line, visible_passage

_NBSP = "\u00a0"
_BLANKS = re.compile(r"(?<=\n) +| {2,}")
_ACTIVE = re.compile(r"(?<=\])\(|[\\`*\[\]~|<]|(?<![^\W_])_|_(?![^\W_])|&(?=#?[A-Za-z0-9]+;)")
"""What could begin or end Markdown within a line. An underscore between letters or digits cannot (CommonMark 6.2).

The bracket after `]` is escaped too, because older Teams apps take no notice of a backslash before `]`."""
_ACTIVE_IN_MESSAGES = re.compile(r"(?<=\])\(|[\\`*\[\]~|]|(?<![^\W_])_|_(?![^\W_])")
"""The same, without what becomes an entity."""
_MAY_BE_ACTIVE = re.compile(r"[\\`*\[\]~|_]")
_LINE_START = re.compile(
    r"^(?P<before> *[0-9]{1,9}(?=[.)](?:\s|$))| *(?=>|=|#{1,6}(?:\s|$)|[-+](?:[\s-]|$)|:-))(?P<sign>\S)", re.MULTILINE
)
"""A heading, a list, a quotation, a rule, or what makes a heading or a table of the line before."""
_FUNCTION = re.compile(r"\{(?=\{)")
_LOST = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MENTION = re.compile(r"<(?=\s*+/?\s*+at\b)", re.IGNORECASE)


def line(text: str, limit: int, unseen: int = 0) -> str:
    """One visible line of at most `limit` characters; "(empty)" for nothing, since Teams leaves empty text out.
    `unseen`: how many characters follow that are not in `text`."""
    return visible_line(text, limit, unseen) or "(empty)"[:limit]


def passage(text: str, limit: int) -> str:
    """Visible text of at most `limit` characters with its lines kept; "(empty)" for nothing."""
    shown = visible_passage(text, limit)
    return shown if shown.strip() else "(empty)"[:limit]


def label(text: str, limit: int, unseen: int = 0) -> str:
    """`line` for a label, a title or a placeholder: nothing in it is a link or a function anywhere."""
    return line(text, limit, unseen).replace("](", "] (").replace("{{", "{ {")


def spaced(text: str) -> str:
    """The text with its blanks kept: clients show several as one, and none at the beginning of a line."""
    return _BLANKS.sub(lambda found: _NBSP * len(found[0]), text.replace("\t", "    "))


def escape(text: str) -> str:
    """Visible text → Markdown of a `TextBlock` or a `FactSet` that shows just this text, line by line."""
    escaped = _FUNCTION.sub(r"{\\", _ACTIVE.sub(r"\\\g<0>", spaced(text)))
    lines = (one for one in escape_line_starts(escaped).split("\n") if one.strip())
    return "\n\n".join(lines)


def escape_message(text: str) -> str:
    """Visible text → Markdown of a message that shows just this text. Beginnings of lines are up to the caller."""
    escaped = _ACTIVE_IN_MESSAGES.sub(r"\\\g<0>", text) if _MAY_BE_ACTIVE.search(text) else text
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_line_starts(markdown: str) -> str:
    """Markdown whose lines are text: none of them begins a heading, a list, a quotation or a rule."""
    return _LINE_START.sub(r"\g<before>\\\g<sign>", markdown)


def without_mentions(code: str) -> str:
    """Code for a message, where nothing can be escaped: Teams' own tag for a mention gets another bracket."""
    return _MENTION.sub("‹", code)


def loses_characters(text: str) -> bool:
    """Whether a client may drop some of it: control characters and halves of surrogate pairs."""
    return _LOST.search(text) is not None
