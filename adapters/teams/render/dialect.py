"""Runs of text → Teams' Markdown for messages: bold, italic, struck out, code, links, and every other character as it
is. Sources: Teams' "Format your bot messages", CommonMark 0.31."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapters.teams.render.citations import Citations
from adapters.teams.render.inline import Run
from adapters.teams.render.text import escape_line_starts, escape_message, without_mentions

_MARKS = {"bold": "**", "italic": "*", "strike": "~~"}
_DESTINATION = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "&": "&amp;", "\\": "%5C"})
_BREAK = "  \n"
"""A line break within a paragraph."""


def paragraph(runs: Sequence[Run], citations: Citations) -> str:
    """Running text, several lines perhaps, none of which begins anything but a paragraph."""
    made: list[str] = []
    before = ""
    for run, following in zip(runs, [*runs[1:], None], strict=True):
        written = _written(run, before, _first(following), citations)
        if written.endswith("!") and following is not None and following.url:
            written = f"{written[:-1]}\\!"  # else the link would be an image
        made.append(written)
        before = written[-1:] or before
    lines = (line.strip(" \t") for line in "".join(made).split("\n"))
    return escape_line_starts("\n".join(line for line in lines if line)).replace("\n", _BREAK)


def code_block(code: str) -> str:
    """Preformatted text, whatever it holds."""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{without_mentions(code)}\n{fence}"


def _written(run: Run, before: str, after: str, citations: Citations) -> str:
    blanks, text, rest = _edges(run.text)
    if not text:
        return run.text
    if run.url:
        host = f" ({escape_message(run.host)})" if run.host else ""
        mark = citations.mark(text, run.url)
        return f"{blanks}[{escape_message(text)}]({run.url.translate(_DESTINATION)}){host}{mark}{rest}"
    marked = _code(text) if "code" in run.styles else escape_message(text)
    marks = [_MARKS[style] for style in _MARKS if style in run.styles]
    if not _can_be_marked(marked, blanks or before, rest or after):
        marks = []
    return f"{blanks}{''.join(marks)}{marked}{''.join(reversed(marks))}{rest}"


def _edges(text: str) -> tuple[str, str, str]:
    """Text without the blanks around it, which may not stand inside marks."""
    inside = text.strip()
    start = text.find(inside)
    return (text[:start], inside, text[start + len(inside) :]) if inside else (text, "", "")


def _first(run: Run | None) -> str:
    """How the next run begins, as far as it matters: with a mark, with a sign, or with a character of its own."""
    if run is None or run.text[:1].isspace():
        return run.text[:1] if run else ""
    if run.url:
        return "["
    if "code" in run.styles:
        return "`"
    return "*" if run.styles else run.text[:1]


def _can_be_marked(marked: str, before: str, after: str) -> bool:
    """Whether marks around this would be read as such (CommonMark's "flanking" rules), and not run into others."""
    if before[-1:] in ("*", "~") or after[:1] in ("*", "~"):
        return False
    opens = not before or before[-1].isspace() or not before[-1].isalnum() or marked[0].isalnum()
    closes = not after or after[0].isspace() or not after[0].isalnum() or marked[-1].isalnum()
    return opens and closes


def _code(text: str) -> str:
    shown = without_mentions(" ".join(text.split("\n")))
    longest = max(map(len, re.findall("`+", shown)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if shown[:1] in "` " or shown[-1:] in "` " else ""
    return f"{marks}{pad}{shown}{pad}{marks}"
