"""Patterns over text: globs and regular expressions, both in linear time (RE2), whatever a model sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Generic, TypeVar

import re2  # type: ignore[import-untyped]  # google-re2 ships no types

from policies.spellings import (
    MOST_PIECES,
    certain_pieces,
    composed,
    decoded,
    encoded,
    in_one_group,
    in_pieces,
    may_lead_elsewhere,
    spellings,
    unmarked,
    with_plain_dashes,
)

Likeness = Callable[[str], object]
"""Something true for a text that fits."""
_bare = methodcaller("strip", " \t\"'<>()[]{}#@")
"""A part of a list without what may stand around it."""
FEW = 20
"""Texts that RE2 finds at once in one of any length; of more, a list is looked up text by text."""
_SIGN = re.compile(r"\\?[#@](?=\w)")
"""Before the name of a channel, a person or a ticket, which many tools take without it; perhaps escaped."""
_ESCAPED_SIGN = re.compile(r"\\([ ()+:./-])")
"""Of those between the groups of an identifier."""
LARGEST_SENT = 1 << 20
"""Bytes that RE2 may use for one pattern of rules that somebody sends. RE2 holds all other threads up while it prepares
a pattern: with its own 8 MB for 150 ms of CPU, with these for 30."""
MOST_SENT = 2_000_000
"""Instructions of RE2 in all patterns of such rules: a second of CPU. A word has one for each sign, a class of letters
of all languages a thousand."""
NOTHING = r"[^\x00-\x{10FFFF}]"
"""A regular expression that no text fits."""


@dataclass(slots=True)
class _Allowance:
    """What patterns may still take."""

    left: int

    def take(self, instructions: int) -> None:
        """One more pattern. Raises `ValueError` when it is too much."""
        self.left -= instructions
        if self.left < 0:
            raise ValueError("all patterns together are too large")


_allowance: ContextVar[_Allowance | None] = ContextVar("pattern_allowance", default=None)
"""`None`: there is no limit but that of each pattern, as for the operator's own files."""


@contextmanager
def as_sent() -> Iterator[None]:
    """Within it, patterns are of rules that somebody sends to a process that serves others: large ones raise
    `ValueError`, each alone (`LARGEST_SENT`) and together (`MOST_SENT`)."""
    before = _allowance.set(_Allowance(MOST_SENT))
    try:
        yield
    finally:
        _allowance.reset(before)


def glob(pattern: str) -> Likeness:
    """Whether a whole text fits a glob (`*`, `?`, `[abc]`, `[!abc]`); case counts, and `*` goes over lines."""
    return whole(of_glob(pattern))


def whole(pattern: str) -> Likeness:
    """Whether a whole text fits a regular expression in RE2's syntax; `.` fits a line break too.

    Raises `ValueError` with RE2's own words when it is none, or is too large (RE2: 8 MB).
    """
    fitting = compiled(pattern, captures=False).fullmatch
    return lambda text: fitting(encoded(text)) is not None


def any_glob(patterns: Iterable[str]) -> Likeness:
    """Whether a whole text fits one of several globs, in any case."""
    together = "|".join(f"(?:{of_glob(pattern)})" for pattern in patterns)
    fitting = compiled(together, case_counts=False, captures=False).fullmatch
    return lambda text: fitting(encoded(text)) is not None


def perhaps(patterns: Iterable[str]) -> Likeness:
    """Whether a text may fit one of several regular expressions as a whole, were it only written otherwise, or were it
    read as several (`policies.spellings`). Of a text of which that cannot be said, it may."""
    together = "|".join(f"(?:{pattern})" for pattern in dict.fromkeys(_with_others(patterns)))
    fitting = compiled(together, case_counts=False, captures=False).fullmatch
    ends = r"[ \t\"'<>()\[\]{}]*"
    piece = compiled(f"(?m)^{ends}[#@]?(?:{together}){ends}$", case_counts=False, captures=False, lines=True).search

    def alike(text: str) -> bool:
        variants = spellings(text)
        if variants is None:
            return True
        if any(fitting(encoded(variant)) is not None for variant in variants):
            return True
        lists = filter(None, map(in_pieces, variants))
        return any(piece(encoded(lines)) is not None for lines in lists)

    return alike


def perhaps_one_of(texts: Iterable[str]) -> Likeness:
    """`perhaps` of these very texts. However many they are, a text costs the same: they are looked up."""
    texts = tuple(texts)
    if not texts:
        return lambda _: False
    if len(texts) <= FEW:
        return perhaps(map(literally, texts))
    wanted = frozenset(_key(text) for text in _with_others(texts))
    bare, longest = frozenset(map(_bare, wanted)), max(map(len, wanted))

    def alike(text: str) -> bool:
        variants = spellings(text)
        if variants is None or any(len(v) <= longest and _key(v) in wanted for v in variants):
            return True
        lists = filter(None, map(in_pieces, variants))
        return not all(bare.isdisjoint(map(_bare, _key(lines).split("\n"))) for lines in lists)

    return alike


def _key(text: str) -> str:
    """Returns one key for texts that differ in case alone, or in lone surrogates, which UTF-8 cannot hold."""
    return (text if text.isascii() else text.encode("utf-8", "replace").decode()).casefold()


def certainly(pattern: str) -> Likeness:
    """Whether a text fits a regular expression as a whole, however a tool reads it: with escapes decoded, without what
    cannot be seen, and each of its parts where it is plainly several. In another case, or trimmed, it need not. An
    address that mail programs may read as another one's fits nothing surely."""
    fitting = whole(pattern)

    def surely(text: str) -> bool:
        if not fitting(text):
            return False
        readings, pieces = decoded(text), certain_pieces(text)
        if readings is None or len(pieces) > MOST_PIECES:
            return False
        if any(map(may_lead_elsewhere, pieces or [text])):
            return False
        return all(map(fitting, pieces)) and all(map(fitting, readings))

    return surely


def _with_others(patterns: Iterable[str]) -> Iterator[str]:
    """The patterns or texts, and the same without a sign before them, without the groups of an identifier, with
    hyphens for dashes, and in Unicode's composed form, which other spellings of a text have."""
    for pattern in patterns:
        yield pattern
        literal = _ESCAPED_SIGN.sub(r"\1", with_plain_dashes(pattern))
        if (identifier := in_one_group(literal)) != literal and identifier.isalnum():
            yield identifier
        if sign := _SIGN.match(pattern):
            yield pattern[sign.end() :]
        if not pattern.isascii():
            others = [pattern, composed(pattern), unmarked(pattern)]
            if "[" not in pattern:  # behind it a hyphen has a meaning of its own
                others.append(with_plain_dashes(others[-1]))
            yield from others[1:]
            yield from (other.replace("ß", "ss").replace("ẞ", "ss") for other in others)  # as in capitals


def compiled(pattern: str, *, case_counts: bool = True, captures: bool = True, lines: bool = False) -> Any:
    """RE2's compiled pattern; with `lines`, nothing in it fits a line break. Raises `ValueError` with RE2's words."""
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = not captures
    options.never_nl = lines
    options.case_sensitive = case_counts
    allowance = _allowance.get()
    if allowance is not None:
        options.max_mem = LARGEST_SENT
    try:
        made = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0] if error.args else error
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from None
    if allowance is not None:
        allowance.take(made.programsize)
    return made


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


# ------------------------------------------------------------ which of many patterns can match at all
# The literals that patterns need are looked for all at once: most texts have no secret, which a hundred regular
# expressions find out in 60 µs and one set of literals in 1 µs.

_Sought = TypeVar("_Sought")


class Needles(Generic[_Sought]):
    """Each thing that is looked for, by the pieces of which a text has at least one where it holds such a thing."""

    def __init__(self, sought: Iterable[tuple[_Sought, Collection[bytes]]]) -> None:
        """What is sought, and its needles, in capitals or not. What has none may be in any text."""
        by_needle: dict[bytes, list[_Sought]] = {}
        self._anywhere: list[_Sought] = []
        for each, needles in sought:
            if not needles:
                self._anywhere.append(each)
            for needle in needles:
                by_needle.setdefault(needle, []).append(each)
        self._by_needle = tuple(by_needle.values())
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.case_sensitive = False
        self._set = re2.Set.SearchSet(options)
        for needle in by_needle:
            self._set.Add(re2.escape(needle))
        self._set.Add("")  # in every text: so that "none" is RE2's word for "not enough memory" alone
        self._set.Compile()

    def whose_are_in(self, text: bytes) -> Collection[_Sought]:
        """What may be in a text (UTF-8), each once; all of it when RE2 has not enough memory to say. Linear in time."""
        found = self._set.Match(text)
        if not found:
            return dict.fromkeys([*self._anywhere, *(each for some in self._by_needle for each in some)])
        if len(found) == 1:  # the empty one
            return self._anywhere
        named = (each for index in found if index < len(self._by_needle) for each in self._by_needle[index])
        return dict.fromkeys([*self._anywhere, *named])
