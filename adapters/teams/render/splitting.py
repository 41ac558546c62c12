"""Long texts in parts: broken between lines or words where there are any, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

_LEAST_FILL = 0.5
"""How full a part is at least when it is broken at a space, so that one early space does not make many parts."""


def cut_text(text: str, longest: int) -> Iterator[str]:
    """The text in parts of at most `longest` characters, broken after a line or a space where there is one."""
    while len(text) > longest:
        end = max(text.rfind(mark, int(longest * _LEAST_FILL), longest) + 1 for mark in "\n ")
        end = end or longest
        yield text[:end]
        text = text[end:]
    if text:
        yield text


def cut_lines(text: str, longest: int) -> Iterator[str]:
    """The text in parts of whole lines, without the line break between two parts; only longer lines are broken."""
    taken: list[str] = []
    room = longest
    for line in chain.from_iterable(cut_text(line, longest) if line else [line] for line in text.split("\n")):
        if taken and len(line) + 1 > room:
            yield from filter(None, ["\n".join(taken)])
            taken, room = [], longest
        taken.append(line)
        room -= len(line) + 1
    yield from filter(None, ["\n".join(taken)])
