"""Patterns over text: globs and regular expressions, both in linear time (RE2), whatever a model sends."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import re2  # type: ignore[import-untyped]  # google-re2 ships no types

Likeness = Callable[[str], object]
"""Something true for a text that fits."""

NOTHING = r"[^\x00-\x{10FFFF}]"
"""A regular expression that no text fits."""


def glob(pattern: str) -> Likeness:
    """Whether a whole text fits a glob (`*`, `?`, `[abc]`, `[!abc]`); case counts, and `*` goes over lines."""
    return whole(of_glob(pattern))


def whole(pattern: str) -> Likeness:
    """Whether a whole text fits a regular expression in RE2's syntax; `.` fits a line break too.

    Raises `ValueError` with RE2's own words when it is none, or is too large (RE2: 8 MB).
    """
    fitting = compiled(pattern, captures=False).fullmatch
    return lambda text: fitting(text.encode("utf-8", "replace")) is not None


def perhaps(patterns: Iterable[str]) -> Likeness:
    """Whether a text may fit one of several regular expressions as a whole, were it only written a little otherwise:
    in other case, with spaces around it, or with Unicode's other forms of the same letters."""
    fitting = compiled("|".join(f"(?:{pattern})" for pattern in patterns), case_counts=False, captures=False).fullmatch
    return lambda text: any(fitting(variant.encode("utf-8", "replace")) is not None for variant in _variants(text))


def compiled(pattern: str, *, case_counts: bool = True, captures: bool = True) -> Any:
    """RE2's compiled pattern. Raises `ValueError` with its words."""
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = not captures
    options.case_sensitive = case_counts
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0] if error.args else error
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from None


def literally(text: str) -> str:
    """The regular expression of this very text."""
    written: str = re2.escape(text.encode("utf-8", "replace").decode())
    return written


def of_glob(pattern: str) -> str:
    """The regular expression of a glob. A bracket that does not close stands for itself."""
    written, at = [], 0
    while at < len(pattern):
        sign, at = pattern[at], at + 1
        end = pattern.find("]", at + 1 + pattern.startswith("!", at)) if sign == "[" else -1
        if end >= 0:
            written.append(_class(pattern[at:end]))
            at = end + 1
        else:
            written.append({"*": ".*", "?": "."}.get(sign) or literally(sign))
    return "".join(written)


def _class(inner: str) -> str:
    negated, inner = inner.startswith("!"), inner.removeprefix("!")
    parts, at = [], 0
    while at < len(inner):
        low = high = inner[at]
        at += 1
        if inner.startswith("-", at) and at + 1 < len(inner):
            high, at = inner[at + 1], at + 2
        if low <= high:
            parts.append(f"{literally(low)}-{literally(high)}")
    if not parts:
        return "." if negated else NOTHING
    return f"[{'^' * negated}{''.join(parts)}]"


def _variants(text: str) -> tuple[str, ...]:
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).strip()
    return (text,) if plain == text else (text, plain)
