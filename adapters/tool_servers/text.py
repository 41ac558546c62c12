"""Makes text from tool servers safe to pass on: no control characters, no terminal codes, bounded.

Bidirectional and invisible characters stay: the renderers make them visible, and a model may need to see them.
"""

from __future__ import annotations

import re

_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")
_LINK = re.compile(r"[a-z][a-z0-9+.-]{0,40}://[^\s<>\"'`\\|{}^]+", re.IGNORECASE)
"""The length of a scheme is bounded (the longest that is registered has 30 characters), so that looking is linear."""


def clean(text: str) -> str:
    """The text without terminal codes and control characters; line feeds and tabs stay, and it always encodes."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    bare = _CONTROLS.sub("", _TERMINAL_CODES.sub("", unified))
    return _LONE_SURROGATES.sub("\ufffd", bare)


def without_links(text: str) -> str:
    """The text without any link: for what everybody sees, where a link may be for one person."""
    return _LINK.sub("(link)", text)


def one_line(text: str, limit: int) -> str:
    """The text cleaned and on one line, at most `limit` characters; an ellipsis ends what was cut."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def shorten(text: str, limit: int) -> str:
    """The text cleaned, its lines kept, at most `limit` characters; an ellipsis ends what was cut."""
    whole = clean(text).strip()
    return whole if len(whole) <= limit else whole[: max(limit - 1, 0)].rstrip() + "…"


def cut_to_bytes(text: str, limit: int) -> str:
    """The longest beginning of `text` that is at most `limit` bytes of UTF-8; cuts between characters."""
    return text.encode("utf-8", "replace")[: max(limit, 0)].decode("utf-8", "ignore")
