"""A known secret as others may write it: in JSON, in an address, in HTML, in base64, in hexadecimal digits."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from urllib.parse import quote, quote_plus

_BITS = 6
"""Of a byte of base64."""
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def spellings(value: str) -> frozenset[bytes]:
    """The value in every way in which programs commonly write a text; the value itself is one of them."""
    written = {value, html.escape(value), *_in_json(value), *_in_address(value)}
    raw = value.encode("utf-8", "surrogatepass")
    return frozenset(
        {text.encode("utf-8", "surrogatepass") for text in written}
        | {raw.hex().encode(), raw.hex().upper().encode()}
        | _in_base64(raw)
    )


def _in_json(value: str) -> set[str]:
    plain = {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return plain | {text.replace("/", "\\/") for text in plain}  # as PHP writes it


def _in_address(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    written = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    return written | {_PERCENT.sub(lambda escape: escape[0].lower(), text) for text in written}


def _in_base64(raw: bytes) -> set[bytes]:
    """What base64 of any text with the value in it holds: at each of three offsets, the digits that are the value's
    alone; in both alphabets."""
    found = set()
    for before in range(3):
        digits = b64encode(bytes(before) + raw)
        first = -(-8 * before // _BITS)
        digits = digits[first : 8 * (before + len(raw)) // _BITS]
        found |= {digits, digits.translate(bytes.maketrans(b"+/", b"-_"))}
    return found
