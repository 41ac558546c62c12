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


def cut_by_size(text: str, most: int, size_of: Callable[[int, int], int], *, longest: int) -> Iterator[tuple[str, int]]:
    """The text in parts whose size is at most `most`, none longer than `longest` characters, broken after a line, else
    after a space, where there is one; each with its size. Nothing is left out, line breaks included.

    `size_of`: the size of what stands from one place to another. It is asked from left to right, for a part that proves
    too large before the parts of that.
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
