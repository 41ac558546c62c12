"""Long texts in parts: broken between lines or words where there are any, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_LEAST_FILL = 0.5
"""How full a part is at least when it is broken at a space, so that one early space does not make many parts."""


def cut_text(text: str, longest: int) -> Iterator[str]:
    """The text in parts of at most `longest` characters, broken after a line or a space where there is one."""
    start = 0
    while len(text) - start > longest:
        least, most = start + int(longest * _LEAST_FILL), start + longest
        end = max(text.rfind(mark, least, most) + 1 for mark in "\n ") or most
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:] if start else text


def cut_lines(text: str, longest: int) -> Iterator[str]:
    """The text in parts of whole lines, without the line break between two parts; only longer lines are broken."""
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


def cut_by_size(text: str, most: int, size_of: Callable[[str], int], *, longest: int) -> Iterator[tuple[str, int]]:
    """The text in parts whose size is at most `most`, none longer than `longest` characters, broken after a line, else
    after a space, where there is one; each with its size. Nothing is left out, line breaks included."""
    start = 0
    while start < len(text):
        end = _end_of_part(text, start, longest)
        part = text[start:end]
        size = size_of(part)
        if size <= most or len(part) == 1:
            yield part, size
        else:
            yield from cut_by_size(part, most, size_of, longest=max(1, min(len(part) // 2, len(part) * most // size)))
        start = end


def _end_of_part(text: str, start: int, longest: int) -> int:
    if len(text) - start <= longest:
        return len(text)
    least, most = start + int(longest * _LEAST_FILL), start + longest
    return next((at + 1 for mark in "\n " if (at := text.rfind(mark, least, most)) >= 0), most)
