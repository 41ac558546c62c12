"""Whether a call was asked for in so many words: the quote that a write needs in `safeWrite` mode."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

FEWEST_WORDS = 3
"""Words in a row of a quote that is not a whole message: fewer are found in anything."""
FEWEST_OF_A_MESSAGE = 2
"""Words of a whole message that asks for something: “delete XYZ” may, “yes” and “hello” do not."""

_QUOTED_LINE = re.compile(r"\s*(?:>|&gt;)")
_QUOTED_TO_THE_END = re.compile(r"\s*(?:>|&gt;){3}")
"""Slack's mark of a quote that goes on to the end of the message."""
_CODE = "```"
_AROUND = "\"'«»"
_ALIKE = str.maketrans(dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟″", '"') | dict.fromkeys("‐‑‒–—−", "-"))
"""Typographic signs that platforms, keyboards and models put in place of plain ones."""
_WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts whose words stand without spaces between them (Thai, Lao, Burmese, Khmer, Japanese, Chinese)."""
_WORD = re.compile(rf"[{_WITHOUT_SPACES}]{{2}}|[^\W{_WITHOUT_SPACES}]+")
"""Two characters of those scripts count as one word."""


def own_words(text: str) -> tuple[str, ...]:
    """A message (Markdown) without what its author did not write themselves: the stretches between lines that quote
    somebody else (`> …`), from `>>>` on everything, and blocks of code (```` ``` ````), which people paste."""
    stretches: list[list[str]] = [[]]
    in_code = False
    for line in text.split("\n"):
        if not in_code and _QUOTED_LINE.match(line):
            if _QUOTED_TO_THE_END.match(line):
                break
            stretches.append([])
            continue
        first, *others = _before_a_quote(line).split(_CODE)
        for number, part in enumerate([first, *others]):
            if number:
                in_code = not in_code
                stretches.append([])
            if not in_code:
                stretches[-1].append(part)
    written = ("\n".join(lines).strip() for lines in stretches)
    return tuple(stretch for stretch in written if stretch)


def is_quoted(quote: str, said: Iterable[str]) -> bool:
    """Whether `quote` is in one of the texts that somebody wrote: a whole one of at least two words, or at least three
    whole words of it in a row.

    Neither case nor white space matters, nor quotation marks around it, nor how Unicode writes the same letters and
    signs, nor characters that cannot be seen.
    """
    wanted = _folded(quote).strip(_AROUND).strip()
    words = len(_WORD.findall(wanted))
    return words >= FEWEST_OF_A_MESSAGE and any(_is_in(wanted, words, _folded(text)) for text in said)


def _before_a_quote(line: str) -> str:
    """A line up to where it quotes after a line break of another kind (U+2028, form feed), which some show as one."""
    kept: list[str] = []
    for piece in line.splitlines(keepends=True):
        if kept and _QUOTED_LINE.match(piece):
            break
        kept.append(piece)
    return "".join(kept)


def _is_in(wanted: str, words: int, text: str) -> bool:
    if wanted == text.strip(_AROUND).strip():
        return True
    if words < FEWEST_WORDS:
        return False
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_joined(text[at - 1 : at], wanted[0]) or _joined(wanted[-1], text[end : end + 1])):
            return True
        at = text.find(wanted, at + 1)
    return False


def _joined(before: str, after: str) -> bool:
    """Whether two characters belong to one word."""
    return before.isalnum() and after.isalnum() and not re.search(f"[{_WITHOUT_SPACES}]", before + after)


def _folded(text: str) -> str:
    if not text.isascii():
        seen = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = unicodedata.normalize("NFKC", seen.casefold()).translate(_ALIKE)
    return " ".join(text.casefold().replace("`", "'").split())
