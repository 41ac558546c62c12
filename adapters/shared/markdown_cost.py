"""How much of a model's Markdown can be formatted within a given time; what comes after is shown as it was written.

Our parser of Markdown is linear, but slow on dense texts: a bracket that opens no link takes it as long as a paragraph
of words. So what a text will cost is estimated, from what was measured, before it is parsed.
"""

from __future__ import annotations

import re

AFFORDABLE = 5_700.0
"""Microseconds of parsing, estimated, that one post may cost: about 4,000 characters of headings, items and links
alone, 40,000 of prose."""
_LINE = 14.0
"""Microseconds for a line that is not blank."""
_BLANK = 1.0
_CHARACTER = 0.02
_INDENT = 0.15
_OPENING, _IMAGE, _MARK, _SIGN = 38.0, 70.0, 5.0, 1.5
"""For each `[`, each `!` before one, each character that emphasis or code can begin with, and each other that is looked
at twice."""
_CELL = 2.5
_ADDRESS = 40.0
"""For each address, whose host has to be found."""
_BLOCK = 22.0
"""For each sign at the beginning of a line that opens a quotation, an item or a heading."""
_BEGINNING = re.compile(r"[ \t]*((?:(?:[-+*>#]+|[0-9]{1,9}[.)])[ \t]*)*)")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\n]*$)|~{3,})([^\n]*)")
_SIGNS = re.compile(r"[-+*>]|[0-9]+[.)]|#+")
_IN_LINE = re.compile(r"[]\\&<>:{}$%+=@^-]")


def affordable(text: str, most: float = AFFORDABLE) -> int:
    """How many characters of a text, whole lines only, can be parsed at that cost. Linear in what it returns."""
    start, left = 0, most
    fence = ""
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        left -= (end - start) * _CHARACTER
        if left >= 0:
            line = text[start:end]
            left -= _BLANK if fence else _cost_of(line)
            fence = _fence_after(line, fence)
        if left < 0:
            return start
        start = end
    return len(text)


def _fence_after(line: str, fence: str) -> str:
    """The marks by which the code that a line belongs to has begun; empty: the next line belongs to none."""
    found = _FENCE.match(line)
    if not found:
        return fence
    marks, info = found.groups()
    if not fence:
        return str(marks)
    return "" if marks.startswith(fence) and not info.strip() else fence


def _cost_of(line: str) -> float:
    if not line.strip():
        return _BLANK + _INDENT * len(line)
    beginning = _BEGINNING.match(line)
    signs = len(_SIGNS.findall(beginning[1])) if beginning else 0
    marks = sum(map(line.count, "*_~`"))
    cost = _LINE + _INDENT * (len(line) - len(line.lstrip())) + _BLOCK * signs + _MARK * marks
    cost += _OPENING * line.count("[") + _IMAGE * line.count("![") + _ADDRESS * line.count("://")
    return cost + _CELL * line.count("|") + _SIGN * len(_IN_LINE.findall(line))
