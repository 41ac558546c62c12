"""Cuts a document into passages: paragraph by paragraph, tables whole, with the page and the section of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_PASSAGE = 1_200
"""Characters. Our own choice: eight of them fit into a tool's result, and one says something."""
LONGEST_SECTION = 200
"""Characters of the headings above a passage."""
_PAGE = re.compile(r"<!--\s*(?:page|Slide number:)\s*(\d{1,6})\s*-->")
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_ROW = re.compile(r"\s*\|.*\|\s*")
_RULE = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document."""

    text: str
    page: int | None
    """`None`: the document has none."""
    section: str
    """The headings above it, outermost first; empty: there are none."""


def passages_of(text: str) -> list[Passage]:
    """The passages of a document in Markdown, in order. Every word of it is in one of them, page marks aside."""
    return [Passage(part, page, section) for page, section, part in _packed(_blocks(text))]


def _blocks(text: str) -> Iterator[tuple[int | None, str, str]]:
    """Paragraphs, tables and headings, each with its page and section."""
    page: int | None = None
    headings: list[tuple[int, str]] = []
    block: list[str] = []

    def section() -> str:
        return " › ".join(title for _, title in headings)[:LONGEST_SECTION]

    for line in [*text.splitlines(), ""]:
        mark, heading = _PAGE.fullmatch(line.strip()), _HEADING.fullmatch(line)
        ends = not line.strip() or mark or heading or (block and _is_row(block[-1]) != _is_row(line))
        if ends and block:
            yield page, section(), "\n".join(block)
            block = []
        if mark:
            page = int(mark[1])
        elif heading:
            level = len(heading[1])
            headings = [*(each for each in headings if each[0] < level), (level, heading[2].strip())]
            yield page, section(), line
        elif line.strip():
            block.append(line)


def _is_row(line: str) -> bool:
    return _ROW.fullmatch(line) is not None


def _packed(blocks: Iterator[tuple[int | None, str, str]]) -> Iterator[tuple[int | None, str, str]]:
    """Blocks put together as long as they are of one page and section, and are not too long."""
    where: tuple[int | None, str] | None = None
    together = ""
    for page, section, block in blocks:
        for part in _parts(block):
            if together and ((page, section) != where or len(together) + 2 + len(part) > LONGEST_PASSAGE):
                assert where is not None  # noqa: S101  # something is together
                yield *where, together
                together = ""
            together = f"{together}\n\n{part}" if together else part
            where = page, section
    if together and where is not None:
        yield *where, together


def _parts(block: str) -> Iterator[str]:
    """A block, in several parts where it is too long: a table by its rows, each part under its head."""
    if len(block) <= LONGEST_PASSAGE:
        yield block
        return
    lines = block.splitlines()
    head = lines[:2] if len(lines) > 2 and _RULE.fullmatch(lines[1]) else []
    head = head if sum(map(len, head)) < LONGEST_PASSAGE // 2 else []
    if head:
        yield from _rows(lines[2:], "\n".join(head))
    else:
        yield from _sentences(block)


def _rows(rows: list[str], head: str) -> Iterator[str]:
    part = head
    for row in rows:
        for piece in _sentences(row, LONGEST_PASSAGE - len(head) - 1):
            if len(part) + 1 + len(piece) > LONGEST_PASSAGE:
                yield part
                part = head
            part = f"{part}\n{piece}"
    yield part


def _sentences(text: str, most: int = LONGEST_PASSAGE) -> Iterator[str]:
    """A text in parts of at most so many characters, cut between sentences, else between words, else anywhere."""
    part = ""
    for sentence in _SENTENCE.split(text):
        for word in _pieces(sentence, most):
            if part and len(part) + 1 + len(word) > most:
                yield part
                part = ""
            part = f"{part} {word}" if part else word
    if part:
        yield part


def _pieces(sentence: str, most: int) -> Iterator[str]:
    while len(sentence) > most:
        end = sentence.rfind(" ", 1, most)
        end = end if end > 0 else most
        yield sentence[:end]
        sentence = sentence[end:].lstrip()
    if sentence:
        yield sentence
