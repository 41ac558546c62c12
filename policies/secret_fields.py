"""Secrets that stand after their name: `password=…`, `"api_key": "…"`, `token: …`, `--client-secret …`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from policies.patterns import compiled
from policies.placeholders import is_placeholder, is_reference
from policies.secret_shapes import Span

LONGEST = 16 * 1024
"""Bytes of a quoted value; what is longer is no password."""

FIRST_LOOK = 256
"""Bytes of a value without quotes that are looked at to see whether it is a secret."""

_NAMES = {
    "password": r"passw(?:or)?d|pwd|passphrase|passcode|(?-i:[A-Z0-9]_PASS)",
    "key": r"(?:api|access|secret|private|account|shared[-_]?access|encryption|signing|master|storage|subscription"
    r"|webhook)[-_. ]?key",
    "token": r"(?:access|refresh|auth|bearer|api|id|session|bot|app|private|security|oauth|deploy|device|csrf|xsrf)"
    r"[-_. ]?token|(?-i:[A-Z0-9]_TOKEN)|\btoken",
    "secret": r"secret",
}
"""Kind of secret → how names end that stand before it."""
_KINDS = tuple(_NAMES)
_CLOSE, _SEPARATOR = len(_KINDS) + 1, len(_KINDS) + 2
_ANY_NAME = f"(?:{'|'.join(f'({name})' for name in _NAMES.values())})[0-9]?"
_FIELD = rf"{_ANY_NAME}(\\*[\"'`]\]?)?[ \t]*(=>|:=|={{1,3}}|:|\\u003d|%3d)[ \t]*"
_FIND_FIELD = compiled(f"(?i){_FIELD}")
_READ_FIELD = re.compile(f"(?i){_FIELD}".encode())
"""RE2 says where a field is, in linear time over all of a text; what stands where is read faster by `re`."""
_MASKED = re.compile(rb"\\*[\"'`]?\[secret: [a-z][a-z0-9 -]{0,39}\](?:[\s\"'`\\,;&<>(){}\[\]|]|\Z)")
"""A value that is a mask already."""
_OPTION = compiled(rf"(?i)(?:^|[\s\"'`])--[a-z0-9-]*{_ANY_NAME}[ \t]+")
_DEPTHS = (0, 1, 3, 7)
"""Backslashes before a quote that begins or ends something: none, or within one, two or three texts of JSON."""
_BACKSLASH = ord("\\")
_BARE = re.compile(rb"(?:[^\s\"'`\\,;&<>(){}\[\]|]|\\[^\snrtu\"'`])+")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![^\s,}\]\\])")
_OPENING = re.compile(rb"(?:[bfru]{1,2})?(\\*)([\"'`])")
_AFTER_AN_END = re.compile(rb"\s*(?:[,:}\]]|\Z)")
_BEGINS_LINE = re.compile(rb"(?:\A|[\n\"'`{,]|\\[nrt])[ \t]*(?:-[ \t]+|export[ \t]+)?[A-Za-z0-9_.-]*\Z")
_ENDS_LINE = re.compile(rb"[ \t]*(?:[\r\n\"'`},#]|\Z|\\[nrt])")
_PATH = re.compile(rb"[/~]|[A-Za-z]:\\")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_DIGIT = re.compile(rb"[0-9]")
_LOOK_BACK = 80
"""Bytes before a name that are looked at to see where it stands."""


def fields(text: bytes) -> Iterator[Span]:
    """The values of all fields that are called like secrets. Linear in time."""
    done = 0
    for at in _FIND_FIELD.finditer(text):
        found = _READ_FIELD.match(text, at.start()) if at.start() >= done else None
        if found is not None and not _MASKED.match(text, found.end()):
            kind = _kind_of(found)
            value = _secret(text, _quoted(text, found) or _bare(text, found, kind), kind)
            if value is not None:
                done = value[1]
                yield *value, kind
    for found in _OPTION.finditer(text) if b"--" in text else ():
        value = _secret(text, _argument(text, found.end()), _kind_of(found))
        if value is not None:
            yield *value, _kind_of(found)


def kind_of_field(name: str, value: str) -> str | None:
    """The kind of secret that a field is by its name and value; `None`: none."""
    written = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value)}".encode("utf-8", "surrogatepass")
    return next((kind for start, _, kind in fields(written) if start > len(name)), None)


def _kind_of(found: Any) -> str:
    return _KINDS[next(group for group in range(len(_KINDS)) if found.start(group + 1) >= 0)]


def _secret(text: bytes, value: tuple[int, int] | None, kind: str) -> tuple[int, int] | None:
    """The value, to its end, if it is a secret."""
    if value is None:
        return None
    start, end = value
    written = text[start:end]
    if len(written) < (3 if kind == "password" else 8) or is_placeholder(written):
        return None
    if kind == "token" and len(written) < 16 and not _mixed(written):
        return None
    if len(written) < FIRST_LOOK:
        return value
    rest = _BARE.match(text, end)
    return (start, rest.end()) if rest else value


def _quoted(text: bytes, found: Any) -> tuple[int, int] | None:
    """A value in quotes, which may be escaped themselves (JSON within JSON): `\\"…\\"`."""
    opening = _OPENING.match(text, found.end())
    if opening is None or len(opening[1]) not in _DEPTHS:
        return None
    if not found.group(_CLOSE) and _AFTER_AN_END.match(text, opening.end()):
        return None  # this quote ends the text in which the name stands
    end = _end_of_quoted(text, opening.end(), len(opening[1]), opening[2])
    return None if end is None else (opening.end(), end)


def _end_of_quoted(text: bytes, start: int, depth: int, quote: bytes) -> int | None:
    """Where a value ends that was opened by a quote behind `depth` backslashes: where the quote is closed, or one
    further out, or the line ends. `None`: too far away."""
    limit = start + LONGEST
    for at in _positions(text, quote, start, limit):
        escapes = _backslashes_before(text, at, start)
        outer = next((out for out in _DEPTHS if out <= depth and escapes % (2 * (out + 1)) == out), None)
        if outer is not None:
            return _within_line(text, start, at - outer, quote)
    return _within_line(text, start, len(text), quote) if len(text) <= limit or b"\n" in text[start:limit] else None


def _positions(text: bytes, quote: bytes, start: int, limit: int) -> Iterator[int]:
    at = text.find(quote, start, limit)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1, limit)


def _backslashes_before(text: bytes, at: int, start: int) -> int:
    first = at
    while first > start and text[first - 1] == _BACKSLASH:
        first -= 1
    return at - first


def _within_line(text: bytes, start: int, end: int, quote: bytes) -> int:
    line = text.find(b"\n", start, end)
    end = line if line >= 0 else end
    if quote == b'"':
        return end
    # Single quotes and backticks may stand in a JSON text: its own quotes end them too.
    outside = text.find(b'"', start, end)
    return end if outside < 0 else outside - _backslashes_before(text, outside, start)


def _bare(text: bytes, found: Any, kind: str) -> tuple[int, int] | None:
    """A value without quotes."""
    at, separator = found.end(), found.group(_SEPARATOR)
    if found.group(_CLOSE) and separator == b":":
        number = _NUMBER.match(text, at)
        return number.span() if number else None
    value = _BARE.match(text, at, at + FIRST_LOOK)
    if value is None or text[value.end() : value.end() + 1] in (b"(", b"["):
        return None  # a call, or a part of something, in code
    if is_reference(value[0]):
        return None
    if kind == "password" and found.group(1).lower() == b"pwd" and _PATH.match(value[0]):
        return None  # the working directory
    if separator == b":" and not _mixed(value[0]):
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
        alone = kind == "password" and _BEGINS_LINE.search(before) and _ENDS_LINE.match(text, value.end())
        return value.span() if alone else None
    return value.span()


def _argument(text: bytes, at: int) -> tuple[int, int] | None:
    """What follows `--password`; a plain word goes on with the sentence about it."""
    opening = _OPENING.match(text, at)
    if opening is not None and len(opening[1]) in _DEPTHS:
        end = _end_of_quoted(text, opening.end(), len(opening[1]), opening[2])
        return None if end is None else (opening.end(), end)
    value = _BARE.match(text, at, at + FIRST_LOOK)
    return None if value is None or value[0].isalpha() else value.span()


def _mixed(value: bytes) -> bool:
    """Whether it looks made up: letters and digits, six characters at least."""
    return len(value) >= 6 and _LETTER.search(value) is not None and _DIGIT.search(value) is not None
