"""Which characters cannot be seen, and where a script or an emoji needs one all the same.

Sources: Unicode 15.1 `Default_Ignorable_Code_Point`, UAX #31 section 2.3 (joiners in context), UTS #51 (emoji
sequences).
"""

from __future__ import annotations

import re
import unicodedata

_ZWNJ, _ZWJ = "\u200c", "\u200d"
_KEYCAP = "\u20e3"
_VIRAMA = 9
"""Canonical combining class of the signs that join two Indic consonants."""

_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Default-ignorable characters, line and paragraph separators, and the blank letters of Hangul and Braille."""

_VISIBLE_FORMAT = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]")
"""Format characters that draw something: Arabic number signs and their like."""

_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""Where emoji live; a superset of `Extended_Pictographic`, all of them visible."""

_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
"""The only three tag sequences in use. Any other run of tag characters is a hidden message."""


def is_suspicious(character: str) -> bool:
    """Whether a reader would not see this character, or would not see what it does to its neighbours."""
    if character in "\n\t":
        return False
    if _IGNORABLE.match(character):
        return True
    category = unicodedata.category(character)
    if category in ("Cc", "Cs"):
        return True
    if category == "Cf":
        return not _VISIBLE_FORMAT.match(character)
    code = ord(character)
    return 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE  # noncharacters


def is_kept_in_context(text: str, index: int) -> bool:
    """Whether the suspicious character at `index` does there what it was made for, and nothing else."""
    character = text[index]
    before = text[index - 1] if index > 0 else ""
    after = text[index + 1] if index + 1 < len(text) else ""
    if character == "\ufe0f" and before and before in "#*0123456789":
        return after == _KEYCAP
    if character in "\ufe0e\ufe0f":
        return bool(_PICTURE.match(before))
    if character in (_ZWJ, _ZWNJ):
        joins_pictures = character == _ZWJ and _ends_in_a_picture(text, index) and bool(_PICTURE.match(after))
        return joins_pictures or _joins_letters(before, after)
    if "\ufe00" <= character <= "\ufe02" or "\U000e0100" <= character <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    if "\u180b" <= character <= "\u180d":
        return "\u1820" <= before <= "\u18aa"
    if "\U000e0020" <= character <= "\U000e007f":
        return _in_a_flag(text, index)
    return False


def _ends_in_a_picture(text: str, end: int) -> bool:
    """Whether a picture, perhaps with its skin tone or style, stands right before `end`."""
    at = end - 1
    if at > 0 and text[at] == "\ufe0f":
        at -= 1
    if at > 0 and _SKIN.match(text[at]):
        at -= 1
    return at >= 0 and bool(_PICTURE.match(text[at]))


def _joins_letters(before: str, after: str) -> bool:
    """Arabic-like letters on both sides (Persian needs the non-joiner), or an Indic virama on one and a letter."""
    if not before or not after:
        return False
    if unicodedata.bidirectional(before) == "AL" and unicodedata.bidirectional(after) == "AL":
        return True
    virama_first = unicodedata.combining(before) == _VIRAMA and unicodedata.category(after).startswith("L")
    return virama_first or (unicodedata.category(before).startswith("L") and unicodedata.combining(after) == _VIRAMA)


def _in_a_flag(text: str, index: int) -> bool:
    """Whether the tag character at `index` belongs to one of the three flags."""
    for flag in _FLAGS:
        start = text.rfind(flag[0], max(index - len(flag) + 1, 0), index)
        if start >= 0 and text.startswith(flag, start) and index < start + len(flag):
            return True
    return False
