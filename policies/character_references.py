"""HTML's references to characters (`&amp;`, `&#65;`) read as browsers read them, whatever numbers stand in them."""

from __future__ import annotations

import html
import re

_ZEROS = re.compile(r"&#([xX]?)0{9,}")
_TOO_LARGE = re.compile(r"&#(?:[0-9]{18,}|[xX][0-9A-Fa-f]{18,});?")
"""No character has such a number, not even with nine zeros before it."""
_NO_CHARACTER = "\ufffd"


def unescaped(text: str) -> str:
    """A text with the characters that its references name. Raises nothing, and is linear in the length of the text."""
    return html.unescape(with_readable_numbers(text)) if "&" in text else text


def with_readable_numbers(text: str) -> str:
    """A text whose numeric references mean the same and are short: Python reads no number of more than 4,300 digits,
    and its HTML parser raises `ValueError` at one. A number of no character is U+FFFD, as in browsers."""
    return _TOO_LARGE.sub(_NO_CHARACTER, _ZEROS.sub(r"&#\g<1>0", text)) if "&#" in text else text
