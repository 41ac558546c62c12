"""Characters that cannot be seen, or cannot be told from others.

*Unseen*: default-ignorable and format characters, controls and many combining marks on one letter, unless a script or
an emoji needs them where they stand. Sources: Unicode 15.1 `Default_Ignorable_Code_Point`, UAX #31 section 2.3 (joiners
in context), UTS #51 (emoji sequences).

*Alike*: `reads_one_way` goes by a list of what is clear rather than of what deceives (Unicode has thousands of those,
UTS 39): ASCII, the letters of European languages, Chinese, Japanese and Korean, some punctuation and pictures. Cyrillic
and Greek letters are drawn like Latin ones, and some katakana like Chinese characters: there a word is clear where a
letter that has no double says which script it is. Text from right to left never is: `/א/1/2` and `/1/2/א` are shown
alike. ASCII letters and digits that some fonts draw alike (`l` and `I`) count as clear: nearly every text has them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice

MOST_STACKED_MARKS = 8
"""Combining marks on one letter. The scripts of the world need up to five or so; many of them cover other lines."""
_ZWNJ, _ZWJ = "\u200c", "\u200d"
_KEYCAP = "\u20e3"
_LOOK_BACK = 3
"""Characters before a joiner that matter: a picture, its skin tone and its style."""
_SHORT_RUN = 16
"""Characters of a run that is remembered, with what was found in it."""
_LONGEST_RUN = 4_096
"""Characters of a run that are looked at together."""
_VIRAMA = 9
"""Canonical combining class of the signs that join two Indic consonants."""
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Default-ignorable characters, line and paragraph separators, and the blank letters of Hangul and Braille."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
"""What is suspicious in ASCII."""
_VISIBLE_FORMAT = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd]")
"""Format characters that draw something: Arabic number signs and their like."""
_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""Where emoji live; a superset of `Extended_Pictographic`, all of them visible."""
_KEEPABLE = re.compile("[\u200c\u200d\ufe00-\ufe02\ufe0e\ufe0f\u180b-\u180d\U000e0020-\U000e007f\U000e0100-\U000e01ef]")
"""What `is_kept_in_context` may keep."""
_SKIN = re.compile("[\U0001f3fb-\U0001f3ff]")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_BLACK_FLAG = "\U0001f3f4"
_FLAG = re.compile(
    "|".join(
        _BLACK_FLAG + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
        for region in ("gbeng", "gbsct", "gbwls")
    )
)
"""The only three tag sequences in use. Any other run of tag characters is a hidden message."""
_LONGEST_FLAG = 7


def unseen_in(text: str) -> Iterator[tuple[int, int]]:
    """Yields from where to where characters stand that are to be marked, in order: those that a reader would not see,
    and combining marks beyond `MOST_STACKED_MARKS`. Linear in time; text without any such character costs next to
    nothing."""
    for found in _patterns().needs_a_check.finditer(text, _first_odd(text)):
        (start, end), run = found.span(), found[0]
        earlier, after = text[max(start - _LOOK_BACK, 0) : start], text[end : end + 1]
        if len(run) <= _SHORT_RUN:
            for first, last in _unseen_in_short_run(earlier, run, after):
                yield start + first, start + last
        elif len(run) <= _LONGEST_RUN and all(map(_is_never_kept, set(run))):
            yield start, end
        else:
            for first, last in _unseen_in_run(earlier, run, after):
                yield start + first, start + last


@lru_cache(maxsize=4_096)
def _unseen_in_short_run(earlier: str, run: str, after: str) -> tuple[tuple[int, int], ...]:
    """`_unseen_in_run`, cached: a text with many such runs mostly repeats a few."""
    return tuple(_unseen_in_run(earlier, run, after))


def _unseen_in_run(earlier: str, run: str, after: str) -> Iterator[tuple[int, int]]:
    """What is to be marked of characters that have to be checked; `earlier`: the three before them, `after`: the one
    behind them. No other matters: what is kept for others' sake is kept for its neighbours."""
    text = earlier + run + after
    stacked, is_unseen, since = 0, False, 0
    for index, character in enumerate(run):
        stacks, suspicious, keepable = _kind_of(character)
        stacked = stacked + 1 if stacks else 0
        was_unseen = is_unseen
        # A neighbour that is unseen itself is no context to keep an invisible character for.
        is_unseen = suspicious and (is_unseen or not keepable or not is_kept_in_context(text, len(earlier) + index))
        is_unseen = is_unseen or stacked > MOST_STACKED_MARKS
        if is_unseen and not was_unseen:
            since = index
        elif was_unseen and not is_unseen:
            yield since, index
    if is_unseen:
        yield since, len(run)


class CleanParts:
    """Which parts of a text `unseen_in` finds nothing in, by a quick check: "no" may be wrong, "yes" never is.

    Of parts that are asked for from left to right each character is looked at once, however often the parts overlap.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._odd = _CONTROL if text.isascii() else _patterns().odd
        self._from, self._first_odd = 0, -1

    def is_clean(self, start: int, end: int) -> bool:
        """Returns whether the characters from `start` to `end` are clean."""
        if not self._from <= start <= self._first_odd:
            found = self._odd.search(self._text, start)
            self._from, self._first_odd = start, found.start() if found else len(self._text)
        return self._first_odd >= end


def count_suspicious(text: str, most: int) -> int:
    """Returns how many suspicious characters a text holds, counted up to `most`."""
    return sum(1 for _ in islice(_patterns().counted.finditer(text, _first_odd(text)), most))


def before_suspicious(text: str, most: int) -> int:
    """Returns where the beginning of a text ends that holds at most `most` suspicious characters: each takes time to
    judge."""
    counted = _patterns().counted.finditer(text, _first_odd(text))
    return next((found.start() for found in islice(counted, most, None)), len(text))


def _first_odd(text: str) -> int:
    """Where the first character stands that is suspicious, or a mark on another; most texts have none."""
    found = (_CONTROL if text.isascii() else _patterns().odd).search(text)
    return found.start() if found else len(text)


@lru_cache(maxsize=4_096)
def _kind_of(character: str) -> tuple[bool, bool, bool]:
    """Whether it stands on the letter before it, whether it is suspicious, and whether there is any context for it."""
    stacks = unicodedata.category(character) in ("Mn", "Me")
    return stacks, is_suspicious(character), _KEEPABLE.match(character) is not None


def _is_never_kept(character: str) -> bool:
    _, suspicious, keepable = _kind_of(character)
    return suspicious and not keepable


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Made when they are first needed: that takes 40 ms."""

    odd: re.Pattern[str]
    """A character that a reader would not see, unless its neighbours say otherwise, or a mark on another."""
    counted: re.Pattern[str]
    """One of the former, or more marks on one letter than `MOST_STACKED_MARKS`."""
    needs_a_check: re.Pattern[str]
    """Runs of the former with the marks around them, and too many marks on one letter."""


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    suspicious = f"{_class_of(lambda code: is_suspicious(chr(code)))}{_BEYOND}"
    # Not by way of its cache, which would be full of them: 1 MB.
    marks = _class_of(lambda code: _kind_of.__wrapped__(chr(code))[0] and not is_suspicious(chr(code)))
    stacked = f"[{marks}]{{{MOST_STACKED_MARKS + 1}}}"
    return _Patterns(
        odd=re.compile(f"[{suspicious}{marks}]"),
        counted=re.compile(f"[{suspicious}]|(?<=[{marks}]{{{MOST_STACKED_MARKS}}})[{marks}]"),
        needs_a_check=re.compile(f"[{marks}]*+[{suspicious}][{suspicious}{marks}]*+|{stacked}[{marks}]*+"),
    )


_BEYOND = "\U00010000-\U0001efff\U0001fb00-\U0001ffff\U0002fffe-\U0010ffff"
"""Everything beyond the basic plane but emoji and ideographs."""


def _class_of(is_in: Callable[[int], bool]) -> str:
    """Those of the basic plane, as the inside of a set of a regular expression."""
    runs = groupby(enumerate(filter(is_in, range(0x10000))), lambda pair: pair[1] - pair[0])
    codes = ([code for _, code in run] for _, run in runs)
    return "".join(f"{re.escape(chr(run[0]))}-{re.escape(chr(run[-1]))}" for run in codes)


def is_suspicious(character: str) -> bool:
    """Returns whether a reader would not see this character, or would not see what it does to its neighbours."""
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
    """Returns whether the suspicious character at `index` does there what it was made for, and nothing else."""
    character = text[index]
    if "\U000e0020" <= character <= "\U000e007f":
        return _in_a_flag(text, index)
    return _is_kept_between(text[max(index - _LOOK_BACK, 0) : index], character, text[index + 1 : index + 2])


@lru_cache(maxsize=4_096)
def _is_kept_between(earlier: str, character: str, after: str) -> bool:
    """`earlier`: up to three characters before it; `after`: the one behind it, or nothing."""
    before = earlier[-1:]
    if character == "\ufe0f" and before and before in "#*0123456789":
        return after == _KEYCAP
    if character in "\ufe0e\ufe0f":
        return bool(_PICTURE.match(before))
    if character in (_ZWJ, _ZWNJ):
        joins_pictures = character == _ZWJ and _ends_in_a_picture(earlier) and bool(_PICTURE.match(after))
        return joins_pictures or _joins_letters(before, after)
    if "\ufe00" <= character <= "\ufe02" or "\U000e0100" <= character <= "\U000e01ef":
        return bool(_IDEOGRAPH.match(before))
    if "\u180b" <= character <= "\u180d":
        return "\u1820" <= before <= "\u18aa"
    return False


def _ends_in_a_picture(text: str) -> bool:
    """Whether a picture, perhaps with its skin tone or style, stands at the end."""
    at = len(text) - 1
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
    start = text.rfind(_BLACK_FLAG, max(index - _LONGEST_FLAG + 1, 0), index)
    found = _FLAG.match(text, start) if start >= 0 else None
    return found is not None and index < found.end()


# ------------------------------------------------------------------------------------------- what looks alike

_LATIN = (
    "A-Za-z\u00c0-\u00cf\u00d1-\u00d6\u00d8-\u00f6\u00f8-\u0113\u0116-\u0131\u0134-\u0137\u0139-\u013e\u0141-\u0148"
    "\u014a-\u017e\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9"
)
"""Without those that are drawn like others: `Ð` like `Đ`, `ĕ` like `ě`, `ĳ`, `ĸ`, `ŀ`, `ŉ` and the long s."""
_CYRILLIC = "\u0400-\u045f\u0490\u0491"
_GREEK = "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03ce"
_KATAKANA = "\u30a1-\u30fa\u30fc"
_OTHER_LETTERS = f"\u3041-\u3096{_KATAKANA}\u4e00-\u9fff\uac00-\ud7a3"
_SIGNS = "—•«»¿¡€£¥§©®°±→、。「」『』，！？；：（）\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001f9ff"
"""Dashes, dots and quotes that could be taken for those of ASCII are not among them."""
_CLEAR = re.compile(f"[\\x00-\\x7f{_LATIN}{_CYRILLIC}{_GREEK}{_OTHER_LETTERS}{_SIGNS}]*+")
_WORD = re.compile(f"[0-9{_LATIN}{_CYRILLIC}{_GREEK}]+")
_SCRIPTS = tuple(re.compile(f"[{letters}]") for letters in (_LATIN, _CYRILLIC, _GREEK))
_DIGIT = re.compile("[0-9]")
_WITHOUT_DOUBLE = re.compile("[DFGLQRUVWdfgmqzДдЖжИиЙйЦцШшЩщЪъЫыЭэЮюЯяЂђЉљЊњЏџΔΘΞΣΨΩζθξψ]")
"""Letters of the three scripts that no letter of another is drawn like, and no digit."""
_LIKE_DIGITS = re.compile("[ЗзбЧчОоІіЅѕΟοΙι]+")
_KATAKANA_RUN = re.compile(f"[{_KATAKANA}一丿乂二亻三八力勹匕十千卜厶又口夕工才彐木へべぺり]+")
"""Katakana together with what looks like them."""
_IS_KATAKANA = re.compile(f"[{_KATAKANA}]")
_KATAKANA_WITHOUT_DOUBLE = re.compile(
    "[ァアゥウガキギクグケゲコゴサザシジスズセゼソゾダヂッツヅテデドネバパビピフブプボポマモャヤュユョラルレワン]"
)


def reads_one_way(text: str) -> bool:
    """Returns whether no other text looks the same, blanks aside. Raises nothing; linear in time."""
    if text.isascii():
        return True
    if not unicodedata.is_normalized("NFC", text) or not _CLEAR.fullmatch(text):
        return False
    return _words_are_clear(text) and all(map(_is_clear_run, _KATAKANA_RUN.findall(text)))


def _words_are_clear(text: str) -> bool:
    latin, cyrillic, greek = (letters.search(text) is not None for letters in _SCRIPTS)
    if not (cyrillic or greek):
        return True
    words = [word for word in _WORD.findall(text) if not word.isdigit()]
    if (cyrillic and greek) or not all(map(_is_of_one_script, words)):
        return False
    doubtful = [word for word in words if not _WITHOUT_DOUBLE.search(word)]
    if latin:
        return not doubtful
    return len(doubtful) < len(words) and not any(map(_LIKE_DIGITS.fullmatch, doubtful))


def _is_of_one_script(word: str) -> bool:
    """Whether it is; digits go with Latin letters alone, since letters of the others are drawn like them."""
    of_latin, *of_others = (letters.search(word) is not None for letters in _SCRIPTS)
    return [of_latin or _DIGIT.search(word) is not None, *of_others].count(True) == 1


def _is_clear_run(run: str) -> bool:
    kana = _IS_KATAKANA.findall(run)
    return not kana or (len(kana) == len(run) and _KATAKANA_WITHOUT_DOUBLE.search(run) is not None)
