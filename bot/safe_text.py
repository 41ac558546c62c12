"""Text from models and tools made safe to show on any platform: the platform-independent half of rule 8.

Escaping for a platform's own markup (mentions, links, HTML) comes on top, in that platform's `render.py`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from bot.invisible import is_kept_in_context, is_suspicious

MOST_STACKED_MARKS = 8
"""Combining marks on one letter. The scripts of the world need up to five or so; towers of them hide other lines."""

_PLAIN = re.compile(r"[\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590]*")
"""Characters that need no second look: most text is made of nothing else."""
_JOINS_ON = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_LONGEST_HOST = 253
"""Characters (RFC 1035, without the root's dot)."""
_READ_DIFFERENTLY = re.compile(r"[\\ ßẞς]")
"""In a link: browsers take a backslash for a slash, and disagree with IDNA 2003 about these letters."""
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_OTHER_CASE = re.compile(r"[a-z_][A-Za-z0-9_.-]*")
_READS_LIKE_ANOTHER = re.compile(
    r"yes|no|-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|Infinity)|NaN"
    r"|\(.*\)|\".*\"|\{(?:\}|\".*\})|\[(?:\]|(?:[-\[{\"0-9]|true|false|null|NaN|Infinity).*\])"
)
"""Text on one line that numbers, booleans, nothing, quoted text, objects or lists could read like. No list begins like
one of our masks."""
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")


def visible(text: str) -> str:
    """The text with everything that cannot be seen made visible: U+202E becomes `⟨U+202E⟩`.

    Marked are bidirectional controls, zero-width and other invisible characters, control characters except newline
    and tab, and towers of combining marks. Joiners and variation selectors stay where a script or an emoji needs
    them; `\\r\\n` becomes `\\n`. Doing it twice changes nothing more.
    """
    text = text.replace("\r\n", "\n")
    if _PLAIN.fullmatch(text):
        return text
    shown: list[str] = []
    stacked, marked = 0, False
    for index, character in enumerate(text):
        stacked = stacked + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        # A neighbour that was marked itself is no context to keep an invisible character for.
        unseen = is_suspicious(character) and (marked or not is_kept_in_context(text, index))
        marked = unseen or stacked > MOST_STACKED_MARKS
        shown.append(f"⟨U+{ord(character):04X}⟩" if marked else character)
    return "".join(shown)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters (Unicode code points); what is left out is counted: "… (1,234 more characters)".

    Where the limit leaves no room for the count, an ellipsis alone says that something is missing.
    """
    if len(text) <= limit:
        return text
    for end in range(limit, 0, -1):
        kept = _before_a_whole_character(text, end)
        cut = f"{text[:kept]}… ({len(text) - kept:,} more characters)"
        if len(cut) <= limit:
            return cut
    return text[: max(limit - 1, 0)] + "…"[: max(limit, 0)]


def one_line(text: str, limit: int) -> str:
    """The text on one line, runs of white space as one space, at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


def argument_lines(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and value of each argument, whole and visible, in the order given.

    Text stays as it is (dates too), yes and no stand for booleans, nested values are compact JSON; text that would read
    like one of these is in quotes. No two values read alike, but for kinds of line ends. Raises nothing.
    """
    names = labels(arguments)
    return [(names[name], visible(_value_in_words(value))) for name, value in arguments.items()]


def labels(names: Iterable[str]) -> dict[str, str]:
    """A readable label for each argument name: `calendar_id` → "Calendar id".

    No two names have the same label: what is not in snake case keeps its own spelling, and is in quotes where that
    could be taken for a label.
    """
    return {name: _label(name) for name in names}


def link_host(url: str) -> str:
    """The host that a web link leads to, as a browser would go there; international names in their `xn--` spelling.

    Empty when the link is not `http` or `https`, or when browsers and libraries could disagree about its host: such a
    link is not to be offered.
    """
    if not url.isprintable() or _READ_DIFFERENTLY.search(url):
        return ""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "")[: _LONGEST_HOST + 1]
        host = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
    except ValueError:  # UnicodeError, from an impossible international name, is one too
        return ""
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or len(host) > _LONGEST_HOST:
        return ""
    return host if port is None else f"{host}:{port}"


def _before_a_whole_character(text: str, end: int) -> int:
    """Steps back from `end` so that no accent or emoji is cut in two; gives up after 16 code points."""
    for back in range(min(16, end)):
        position = end - back
        following = text[position]
        joined = text[position - 1] == "\u200d"
        if not (joined or _JOINS_ON.match(following) or unicodedata.category(following) in ("Mn", "Me", "Mc")):
            return position
    return end


def _label(name: str) -> str:
    if _SNAKE_CASE.fullmatch(name):
        return name[:1].upper() + name[1:].replace("_", " ")
    return name if _OTHER_CASE.fullmatch(name) else visible(json.dumps(name, ensure_ascii=False))


def _value_in_words(value: Any) -> str:
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False) if _READS_LIKE_ANOTHER.fullmatch(value) else value
        case bool():
            return "yes" if value else "no"
        case None:
            return "(nothing)"
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return f"(a {type(value).__name__} that cannot be shown)"
