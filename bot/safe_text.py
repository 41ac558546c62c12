"""Text from models and tools made safe to show, whatever the platform: made visible, shortened, written, cut in parts.

Escaping for a platform's own markup (mentions, links, HTML) comes on top, in that platform's `render.py`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

import orjson

from bot.characters import CleanParts, before_suspicious, unseen_in
from bot.dates import number_in_words
from translations import gettext as _
from translations import ngettext

MOST_NAMED = 1_000
"""Arguments of a call that have readable labels; more are shown under their own names, or as one JSON text."""
LONGEST_NAME = 200
"""Characters of an argument's name that has a readable label."""
LONGEST_WIDENING = 10
"""Characters that `visible` makes of one at most: `⟨U+10FFFF⟩`."""
_MARK = "⟨U+"
"""How a mark begins."""
_LARGE = 20_000
"""Characters of JSON up to which a nested value is written with blanks, as people read it."""
_MORE = 500
"""Characters that are looked at beyond those that are shown."""
_MOST_SUSPICIOUS = 2_000
"""Characters of a text that may be invisible and are judged; an answer in Persian has as many within 60,000."""
_JOINS_ON = re.compile("[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_LONGEST_HOST = 253
"""Characters (RFC 1035, without the root's dot)."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
_READ_DIFFERENTLY = re.compile(r"[\\ ßẞς]")
"""In a link: browsers take a backslash for a slash, and disagree with IDNA 2003 about these letters."""
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_OTHER_CASE = re.compile(r"[a-z_][A-Za-z0-9_.-]*|\[(?:secret|not shown): [^\]]*\]")
"""Names that no label reads like; one of them is a mask in a name's place."""
_READS_LIKE_ANOTHER = re.compile(
    r"yes|no|-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|Infinity)|NaN"
    r"|\(.*\)|\".*\"|\{(?:\}|\".*\})|\[(?:\]|(?:[-\[{\"0-9]|true|false|null|NaN|Infinity).*\])"
)
"""Text on one line that numbers, booleans, nothing, quoted text, objects or lists could read like. No list begins like
one of our masks."""
_LEAST_FILL = 0.5
"""How full a part of a long text is at least when it is broken at a space, so that one early space does not make many
parts."""
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")


def visible(text: str) -> str:
    """Returns the text with everything that cannot be seen made visible: U+202E becomes `⟨U+202E⟩`.

    Marked are bidirectional controls, zero-width and other invisible characters, control characters except newline and
    tab, and too many combining marks on one letter. Joiners and variation selectors stay where a script or an emoji
    needs them; `\\r\\n` becomes `\\n`. Doing it twice changes nothing more.
    """
    return _visible_beginning(text, len(text) * LONGEST_WIDENING)[0]


def apart_from_marks(text: str) -> str:
    """Returns the text with marks that somebody wrote themselves told apart from those that `visible` makes: a written
    `⟨U+202E⟩` becomes `⟨U+27E8⟩U+202E⟩`. For a text as it was written, once; `visible` comes later, any number of
    times."""
    return text.replace(_MARK, f"⟨U+{ord(_MARK[0]):04X}⟩{_MARK[1:]}")


def holds_unseen(text: str) -> bool:
    """Returns whether `visible` would change more than the ends of its lines."""
    return next(unseen_in(text.replace("\r\n", "\n")), None) is not None


def widest_in(text: str) -> Callable[[int, int], int]:
    """Returns a function that says how many characters the part from `start` to `end` takes at most when it is visible.
    Parts have to be asked for from left to right."""
    clean = CleanParts(text).is_clean
    return lambda start, end: end - start if clean(start, end) else LONGEST_WIDENING * (end - start)


def _visible_beginning(text: str, most: int) -> tuple[str, int]:
    """`visible`, and how many characters come after it: of a text that grows to more than `most` characters by its
    marks, what stands behind the mark that goes beyond that."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    shown: list[str] = []
    done = length = 0
    for start, end in unseen_in(text):
        # A mark has more than one character: what is behind as many as `most` of them is beyond it anyway.
        marks = [*map(_mark, text[start : min(end, start + most + 1)])]
        marked = "".join(marks)
        shown.append(text[done:start])
        length += start - done + len(marked)
        if length > most:
            space_left = most - (length - len(marked))
            # As many marks as there is space for, with the one that goes beyond it.
            count = next(number for number, size in enumerate(accumulate(map(len, marks)), 1) if size > space_left)
            return "".join([*shown, *marks[:count]]), len(text) - start - count
        shown.append(marked)
        done = end
    return ("".join([*shown, text[done:]]) if shown else text), 0


@lru_cache(maxsize=1_024)
def _mark(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"


# ------------------------------------------------------------------------------------------- shortened


def shorten(text: str, limit: int, unseen: int = 0) -> str:
    """Returns at most `limit` code points of a text; what is left out is counted: "… (1,234 more characters)".

    Where the limit leaves no space for the count, an ellipsis alone says that something is missing.

    Args:
        unseen: characters that follow and are not in `text` at all.
    """
    return shortened(text, limit, unseen)[0]


def shortened(text: str, limit: int, unseen: int = 0) -> tuple[str, int]:
    """Returns `shorten`, and how many characters are left out."""
    if len(text) <= limit and not unseen:
        return text, 0
    least = len(_more(max(len(text) - limit, 0) + unseen))
    for end in range(min(limit - least, len(text)), 0, -1):
        kept = _before_a_whole_character(text, end) if end < len(text) else end
        left_out = len(text) - kept + unseen
        cut = f"{text[:kept]}{_more(left_out)}"
        if len(cut) <= limit:
            return cut, left_out
    kept = max(limit - 1, 0)
    return text[:kept] + "…"[: max(limit, 0)], len(text) - min(kept, len(text)) + unseen


def _more(count: int) -> str:
    return _("… ({count} more characters)").format(count=number_in_words(count))


_ENDS = (".", "!", "?", "…", ":", ";")


def one_line(text: str, limit: int) -> str:
    """Returns the text on one line, runs of white space as one space, at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


def sentences(texts: Sequence[str], longest: int) -> list[str]:
    """Returns texts that stand one behind the other, with a full stop where one ends without any and another follows:
    schemas describe arguments without. One of more than `longest` characters is cut anyway, and stays as it is."""
    *former, last = texts or [""]
    return [*(text if len(text) > longest else _with_full_stop(text) for text in former), last]


def _with_full_stop(text: str) -> str:
    ended = text.rstrip()
    return text if ended.endswith(_ENDS) else f"{ended}."


def visible_line(text: str, limit: int, unseen: int = 0) -> str:
    """Returns `one_line` of `visible`. Of a long text only the beginning is looked at; what comes after that is counted
    as it was written. `unseen` as for `shorten`."""
    text = text.lstrip() if text[:1].isspace() else text
    shown, further = _beginning(text, 2 * limit, limit)
    return shorten(" ".join(shown.split()), limit, further + unseen)


def visible_passage(text: str, limit: int) -> str:
    """Returns `shorten` of `visible`, likewise."""
    shown, unseen = _beginning(text, limit, limit)
    return shorten(shown, limit, unseen)


def visible_excerpt(text: str, limit: int, lines: int) -> tuple[str, int]:
    """Returns at most `limit` characters and `lines` lines of a text made visible, with the count of what is left out,
    and that count; 0: nothing is. Never empty: "(empty)" for nothing, "(3 blanks)" for blanks alone."""
    shown, unseen = _beginning(text, limit, limit)
    if not shown.strip() and not (unseen and text.strip()):
        blanks = ngettext("({count} blank)", "({count} blanks)", len(text)).format(count=number_in_words(len(text)))
        return (blanks if text else _("(empty)")), 0
    rows = shown.split("\n", lines)
    if len(rows) > lines:
        limit = min(limit, len(shown) - len(rows[-1]) + len(_more(1_000_000)))
    return shortened(shown, limit, unseen)


def beginning_of_list(texts: Sequence[str], separator: str, limit: int) -> tuple[str, int]:
    """Returns as much of texts, one after the other with `separator` in between, as `visible_line` looks at to show
    `limit` characters, and how many characters come after that."""
    most = space_left = 2 * limit + _MORE + 1
    kept: list[str] = []
    for number, text in enumerate(texts):
        if number:
            kept.append(separator)
            space_left -= len(separator) if separator.strip() or space_left < most else 0
        # Blanks that all of it begins with are not shown.
        blanks = len(text) - len(text.lstrip()) if space_left == most else 0
        kept.append(text[: blanks + max(space_left, 0)])
        space_left -= len(kept[-1]) - blanks
        if space_left <= 0:
            rest = texts[number + 1 :]
            return "".join(kept), len(text) - len(kept[-1]) + sum(map(len, rest)) + len(separator) * len(rest)
    return "".join(kept), 0


def _beginning(text: str, most: int, limit: int) -> tuple[str, int]:
    """The part of a text, about `most` characters, that has to be examined to show `limit` of it, made visible, and how
    many come after that. Where many are suspicious it is less, since each has to be judged by its neighbours."""
    beginning = text if len(text) <= most + _MORE else text[: most + _MORE]
    end = before_suspicious(beginning, min(max(limit // 2, 200), _MOST_SUSPICIOUS))
    shown, unseen = _visible_beginning(beginning[:end], most + _MORE)
    return shown, unseen + len(text) - end


def _before_a_whole_character(text: str, end: int) -> int:
    """Steps back from `end` so that no accent or emoji is cut in two; gives up after 16 code points, where nothing is
    left at the end that joins what follows."""
    for back in range(min(16, end)):
        position = end - back
        following = text[position]
        joined = text[position - 1] == "\u200d"
        if not (joined or _JOINS_ON.match(following) or unicodedata.category(following) in ("Mn", "Me", "Mc")):
            return position
    while end and text[end - 1] == "\u200d":
        end -= 1
    return end


# ------------------------------------------------------------------------------------------- arguments


def written_arguments(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields label and value of each argument, whole, in the order given. Raises nothing.

    Text stays as it is (dates too), yes and no stand for booleans, nested values are compact JSON; text that would read
    like one of these is in quotes. No two values read alike, but for kinds of line ends. Very many arguments, or names
    that are no names, are one JSON text. Nothing is `visible` yet: of a long value only a part has to be.
    """
    if is_unwieldy(arguments):
        yield _("All arguments, as JSON"), written_value(arguments)
        return
    names = labels(arguments)
    yield from ((names[name], written_value(value)) for name, value in arguments.items())


def is_unwieldy(arguments: Mapping[str, Any]) -> bool:
    """Returns whether arguments are too many to be listed one by one, or have names that are too long for that."""
    return len(arguments) > MOST_NAMED or any(len(name) > LONGEST_NAME for name in arguments)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Returns a readable label for each argument name: `calendar_id` → "Calendar id". It is not `visible` yet.

    No two names have the same label: what is not in snake case keeps its own spelling, and is in quotes where that
    could be taken for a label.
    """
    return {name: _label(name) for name in names}


def written_value(value: Any) -> str:
    """Returns a value in words, or as compact JSON. Raises nothing."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False) if _READS_LIKE_ANOTHER.fullmatch(value) else value
        case bool():
            return "yes" if value else "no"
        case None:
            return "(nothing)"
        case int():
            return _json(value)
    return (_large_json(value) if isinstance(value, Mapping | list | tuple) else "") or _json(value)


def _label(name: str) -> str:
    if _SNAKE_CASE.fullmatch(name):
        return name[:1].upper() + name[1:].replace("_", " ")
    return name if _OTHER_CASE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _large_json(value: Any) -> str:
    """JSON without blanks, which is written ten times as fast; empty where the value is not large, or holds what this
    cannot write (integers of more than 64 bits, halves of characters, cycles)."""
    try:
        written = orjson.dumps(value)
    except (TypeError, RecursionError):
        return ""
    return written.decode() if len(written) > _LARGE else ""


def _json(value: Any) -> str:
    try:
        return int.__repr__(value) if type(value) is int else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        return _("(can’t be shown)")


# ------------------------------------------------------------------------------------------- links


def link_host(url: str) -> str:
    """Returns the host that a web link leads to, as a browser would go there; international names as `xn--…`.

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


# ------------------------------------------------------------------------------------------- in parts


def cut_text(text: str, longest: int) -> Iterator[str]:
    """Yields the text in parts of at most `longest` characters, broken after a line or a space where there is one. No
    character is lost."""
    start = 0
    while len(text) - start > longest:
        least, most = start + int(longest * _LEAST_FILL), start + longest
        end = max(text.rfind(mark, least, most) + 1 for mark in "\n ") or most
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:] if start else text


def cut_lines(text: str, longest: int) -> Iterator[str]:
    """Yields the text in parts of whole lines, without the line break between two parts. Only longer lines are
    broken."""
    start = 0
    while len(text) - start >= longest:
        end = text.rfind("\n", start, start + longest)
        after = end + 1
        if end < 0 and text[start + longest : start + longest + 1] in ("", "\n"):
            end, after = start + longest, start + longest + 1
        elif end < 0:
            end = after = text.rfind(" ", start + int(longest * _LEAST_FILL), start + longest) + 1 or start + longest
        if end > start:
            yield text[start:end]
        start = after
    if start < len(text):
        yield text[start:] if start else text


def cut_by_size(text: str, most: int, size_of: Callable[[int, int], int], *, longest: int) -> Iterator[tuple[str, int]]:
    """Yields the text in parts, each with its size, broken after a line, else after a space, where there is one.
    Nothing is left out, line breaks included.

    Args:
        most: the largest size of a part, but for single characters.
        size_of: the size of the text from one place to another. It is asked from left to right, for a part that proves
            too large before the parts of that.
        longest: characters of a part at most.
    """
    # The ends of the parts that proved too large, the innermost last, and how long parts may be within each.
    within = [(len(text), longest)]
    start = 0
    while within:
        stop, longest = within[-1]
        if start == stop:
            within.pop()
            continue
        end = _end_of_part(text, start, stop, longest)
        length, size = end - start, size_of(start, end)
        if size <= most or length == 1:
            yield text[start:end], size
            start = end
        else:
            within.append((end, max(1, min(length // 2, length * most // size))))


def _end_of_part(text: str, start: int, stop: int, longest: int) -> int:
    if stop - start <= longest:
        return stop
    least, most = start + int(longest * _LEAST_FILL), start + longest
    return text.rfind("\n", least, most) + 1 or text.rfind(" ", least, most) + 1 or most
