"""Citations in a text while it is written: those that no source stands behind are taken out.

A citation is `[1]`; `[1, 2]` and `[1-3]` are some, too, where there are sources. Code and links are left as they are.
What is code is decided as CommonMark does, as far as an answer needs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

LONGEST_SPAN = 2_000
"""Characters that are looked ahead at most for the end of code within a line, of an address or of a link."""
_LONGEST_PREFIX = 40
_LONGEST_INFO = 200
_TAIL = 200
"""Characters of the text so far that are remembered."""
_SPECIAL = re.compile(
    r" (?=\\?\[|\\?\Z)|\\|\[|\](?=\(|\Z)|`|\n|h(?=ttps?://|(?:t(?:t(?:ps?(?::/?)?)?)?)?\Z)", re.IGNORECASE
)
_CITATION = re.compile(r" ?(\\?)\[([\d \t,;–-]{1,40})\\?\]")
_BEGUN = re.compile(r" ?\\?(?:\[[\d \t,;–-]{0,40}\\?)?")
_NUMBERS = re.compile(r"\s*\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*")
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_END_OF_ADDRESS = re.compile(r"[\s<>\"'`|\\^{}⟨⟩)]")
_END_OF_LINK = re.compile(r"[)\s]")
_RUN, _MARKS = re.compile(rf"`{{1,{LONGEST_SPAN}}}"), re.compile(rf"(?:`{{1,{LONGEST_SPAN}}}|~{{1,{LONGEST_SPAN}}})")
_END_OF_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n|#|>|[-*+][ \t]|\d+[.)][ \t]|```|~~~|\|)")
_PREFIX = re.compile(rf"[ \t>*+\d.)-]{{0,{_LONGEST_PREFIX}}}")
_OPEN_BRACKET = re.compile(r"\[[\d \t,;–-]*\Z")
_ONLY_BRACKETS = re.compile(r"(?:\A|\n)[ \t>*+\d.)\[\]-]*\Z")


class CitationFilter:
    """Takes citations out of a text that no source stands behind, while it is written: however the text is cut into
    pieces, what comes out is the same.

    Args:
        written: number of a source → what is written where it is cited.
    """

    def __init__(self, written: Mapping[int, str]) -> None:
        self.cited: set[int] = set()
        """The numbers that were cited so far."""
        self._written = written
        self._held = ""
        """What cannot be decided yet."""
        self._is_whole = False
        """Whether nothing follows."""
        self._out: list[str] = []
        self._tail = ""
        self._fence = ""
        """The mark that opened the code that goes on; empty: it is text."""
        self._at_line_start = True

    def add(self, text: str) -> str:
        """Take the next piece; returns what of the text is certain since."""
        return self._take(self._held + text)

    def rest(self) -> str:
        """The text has ended; returns what was held back."""
        self._is_whole = True
        return self._take(self._held)

    def _take(self, text: str) -> str:
        at = 0
        while at < len(text):
            step = self._in_code(text, at) if self._fence else self._in_text(text, at)
            if step is None:
                break
            at = step
        self._held = text[at:]
        out, self._out = "".join(self._out), []
        return out

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._tail = (self._tail + text[-_TAIL:])[-_TAIL:]

    # Each of these puts out a part of the text, and returns where the next one begins; `None`: more has to be known.

    def _in_code(self, text: str, at: int) -> int | None:
        if self._at_line_start:
            end = _line_end(text, at)
            line = text[at:end][:_LONGEST_INFO].lstrip(" \t>")
            if len(text[at:end]) < _LONGEST_INFO:
                if end is None and not self._is_whole and not line.rstrip(" \t").strip(self._fence[0]):
                    return None
                if self._closes(line):
                    self._fence = ""
        return self._put_line(text, at)

    def _closes(self, line: str) -> bool:
        mark = line.rstrip(" \t\n")
        return len(mark) >= len(self._fence) and not mark.strip(self._fence[0])

    def _put_line(self, text: str, at: int) -> int:
        end = _line_end(text, at)
        self._at_line_start = end is not None
        end = len(text) if end is None else end
        self._put(text[at:end])
        return end

    def _in_text(self, text: str, at: int) -> int | None:
        if self._at_line_start:
            opens = self._opening(text, at)
            if opens is None:
                return None
            self._at_line_start = False
            if opens:
                self._fence = opens
                return self._put_line(text, at)
        found = _SPECIAL.search(text, at)
        if found is None:
            self._put(text[at:])
            return len(text)
        if found.start() > at:
            self._put(text[at : found.start()])
            return found.start()
        return self._special(text, at)

    def _opening(self, text: str, at: int) -> str | None:
        """The mark that begins code of several lines here; empty: none does."""
        prefix = _PREFIX.match(text, at)
        begins = prefix.end() if prefix else at
        if begins == len(text):
            return "" if self._is_whole or begins - at == _LONGEST_PREFIX else None
        marks = _MARKS.match(text, begins)
        if marks is None:
            return ""
        sign, end = text[begins], marks.end()
        if end - begins < LONGEST_SPAN and end == len(text) and not self._is_whole:
            return None
        if not 3 <= end - begins < LONGEST_SPAN:
            return ""
        line_end = text.find("\n", end, end + _LONGEST_INFO)
        info = text[end : line_end if line_end >= 0 else end + _LONGEST_INFO]
        if sign == "`" and "`" in info:
            return ""
        if line_end < 0 and not self._is_whole and len(info) < _LONGEST_INFO:
            return None
        return text[begins:end] if line_end >= 0 or len(info) < _LONGEST_INFO else ""

    def _special(self, text: str, at: int) -> int | None:
        match text[at]:
            case "\n":
                self._put("\n")
                self._at_line_start = True
                return at + 1
            case "`":
                return self._code(text, at)
            case "]":
                return self._until(_END_OF_LINK, text, at, 2)
            case "h" | "H":
                address = _ADDRESS.match(text, at)
                if address is not None:
                    return self._until(_END_OF_ADDRESS, text, at, address.end() - at)
                return self._literally(text, at, 1) if self._is_whole else None
            case _:
                return self._bracket(text, at)

    def _literally(self, text: str, at: int, count: int) -> int:
        self._put(text[at : at + count])
        return at + len(text[at : at + count])

    def _until(self, end: re.Pattern[str], text: str, at: int, after: int) -> int | None:
        """Past what ends before this, or after `LONGEST_SPAN`."""
        if at + after > len(text):
            return self._literally(text, at, after) if self._is_whole else None
        found = end.search(text, at + after, at + LONGEST_SPAN)
        if found is None and len(text) < at + LONGEST_SPAN and not self._is_whole:
            return None
        return self._literally(text, at, (found.start() if found else at + LONGEST_SPAN) - at)

    def _code(self, text: str, at: int) -> int | None:
        """Code within a paragraph; marks that nothing closes are text."""
        marks = _run_end(text, at) - at
        if marks >= LONGEST_SPAN:
            return self._literally(text, at, LONGEST_SPAN)
        if at + marks == len(text) and not self._is_whole:
            return None
        begins, most = at + marks, at + marks + LONGEST_SPAN
        ends = _END_OF_PARAGRAPH.search(text, begins, most)
        for run in _RUN.finditer(text, begins, ends.start() + 1 if ends else most):
            end = _run_end(text, run.start())
            if end == len(text) and not self._is_whole and end - run.start() <= marks:
                return None
            if end - run.start() == marks:
                return self._literally(text, at, end - at)
        if ends is None and len(text) < most and not self._is_whole:
            return None
        return self._literally(text, at, marks)

    def _bracket(self, text: str, at: int) -> int | None:
        """A blank, a backslash or a bracket: perhaps a citation."""
        found = _CITATION.match(text, at)
        if found is None:
            if not self._is_whole and _BEGUN.fullmatch(text, at):
                return None
            return self._not_a_citation(text, at)
        if found.end() == len(text) and not self._is_whole:
            return None  # what follows says whether it is a link
        follows = text[found.end() : found.end() + 1]
        numbers = self._numbers(found[2])
        if numbers is None or (follows == "(" and not found[1]):
            return self._literally(text, at, found.end() - 1 - at)  # its last bracket may begin the link's address
        self._cite(numbers, found[0][: found[0].startswith(" ")])
        if follows == ":" and _ONLY_BRACKETS.search(self._tail):
            self._put("\\")  # else it would say where all links of that number lead
        return found.end()

    def _not_a_citation(self, text: str, at: int) -> int:
        if text[at] != "\\":
            return self._literally(text, at, 1)
        return self._literally(text, at, 1 if text[at + 1 : at + 2] == "\n" else 2)

    def _numbers(self, inside: str) -> list[int] | None:
        """The sources that are cited; `None`: it is no citation."""
        if not _NUMBERS.fullmatch(inside):
            return None
        parts = [(int(first), int(last or first)) for first, last in _PART.findall(inside)]
        is_one = len(parts) == 1 and parts[0][0] == parts[0][1]
        if parts[0][0] == 0 or not (is_one or self._written):
            return None
        return [number for first, last in parts for number in _known(self._written, first, last)]

    def _cite(self, numbers: Sequence[int], blank: str) -> None:
        self.cited.update(numbers)
        written = "".join(self._written[number] for number in dict.fromkeys(numbers))
        if written:
            self._put(written if written.startswith(" ") else blank + written)
        elif _OPEN_BRACKET.search(self._tail):
            self._put("…")  # else what is around it would become a citation


def _known(written: Mapping[int, str], first: int, last: int) -> Iterator[int]:
    return (number for number in written if first <= number <= last)


def _line_end(text: str, at: int) -> int | None:
    """Where the next line begins; `None`: this one goes on."""
    end = text.find("\n", at)
    return None if end < 0 else end + 1


def _run_end(text: str, at: int) -> int:
    found = _RUN.match(text, at)
    return found.end() if found else at
