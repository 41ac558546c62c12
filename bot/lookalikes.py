"""Which texts can be read in one way only: no other text looks the same.

A list of what is known to be clear rather than of what is known to deceive (Unicode has thousands of those, UTS 39):
ASCII, the letters of European languages, Chinese, Japanese and Korean, some punctuation and pictures. Cyrillic and
Greek letters are drawn like Latin ones, and some katakana like Chinese characters: there a word is clear where a letter
that has no double says which script it is. Text from right to left never is: `/א/1/2` and `/1/2/א` are shown alike.

ASCII letters and digits that some fonts draw alike (`l` and `I`) count as clear: nearly every text has them.
"""

from __future__ import annotations

import re
import unicodedata

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
    """Whether no other text looks the same, blanks aside. Raises nothing; linear in time."""
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
