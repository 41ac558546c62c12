"""A model's Markdown as the pieces of an answer in Teams' dialect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown import BOXES, Run, Runs, blocks_in, joined, parser, runs_in, table_as_text, words_of
from adapters.teams.render.citations import Citations
from adapters.teams.render.elements import escape_line_starts, escape_message, without_mentions
from bot.safe_text import cut_lines, cut_text, visible

LONGEST_URL = 2_000
"""Characters of a link's address; browsers and proxies take no much longer ones."""
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
    marked = _code_words(text) if "code" in run.styles else escape_message(text)
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


def _code_words(text: str) -> str:
    shown = without_mentions(" ".join(text.split("\n")))
    longest = max(map(len, re.findall("`+", shown)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if shown[:1] in "` " or shown[-1:] in "` " else ""
    return f"{marks}{pad}{shown}{pad}{marks}"


# ------------------------------------------------------- documents: the pieces of an answer, in order
# CommonMark with tables and strike-through. HTML is text, images are links, tables are preformatted text. What would
# change lines that have been shown already while an answer is written is left out: headings by underlining, links whose
# address comes later, tables without a bar at the beginning of their head.

_RULE = "———"
"""Teams has no rules across."""
_EMPTY = "\u00a0"
_MOST = 999_999_999
"""The highest number of an item (CommonMark)."""


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """A table, if its head begins with a bar."""
    at = state.bMarks[start] + state.tShift[start]
    return state.src[at : at + 1] == "|" and table(state, start, end, silent)


_PARSER = parser().disable(["lheading", "reference"])
_PARSER.block.ruler.at("table", _table, {"alt": ["paragraph"]})
Written = Callable[[Citations], str]
"""Writes Teams' Markdown, and notes the sources that it names."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of an answer that is not torn unless it is longer than a message."""

    written: Written
    plain: str
    """The same without styles, for when it has to be torn."""
    gap: str = "\n\n"
    """What separates it from the piece before it."""
    is_code: bool = False

    def torn(self, longest: int) -> Iterator[AnswerPart]:
        """In parts of about `longest` characters."""
        if self.is_code:
            yield from map(_code, cut_lines(self.plain, longest))
        else:
            yield from (_paragraph((Run(text),)) for text in cut_text(self.plain, longest))


def tokens_of(text: str) -> Sequence[Token]:
    """The parts of a visible Markdown text, with the lines where they stand."""
    return _PARSER.parse(text)


def pieces(text: str) -> tuple[AnswerPart, ...]:
    """The pieces of a Markdown text, in order. Raises nothing."""
    blocks, as_written = blocks_in(text, _PARSER)
    formatted = (piece for node in blocks for piece in _pieces(node))
    return (*formatted, *([_code(as_written)] if as_written else ()))


def _pieces(node: SyntaxTreeNode) -> Iterator[AnswerPart]:
    match node.type:
        case "heading":
            if runs := _inline(node):
                yield _paragraph(joined(replace(run, styles=run.styles | {"bold"}) for run in runs))
        case "fence" | "code_block":
            if code := visible(node.content.rstrip("\n")):
                yield _code(code)
        case "hr":
            yield _paragraph((Run(_RULE),))
        case "blockquote":
            inside = [piece for child in node.children for piece in _pieces(child)]
            if inside:
                yield _joined(inside, _quoted)
        case "bullet_list" | "ordered_list":
            yield from _items(node)
        case "table":
            yield _code(table_as_text([words_of(_inline(cell)) for cell in row.children] for row in _rows(node)))
        case _:
            if runs := _inline(node) or joined([Run(visible(node.content))]):
                yield _paragraph(runs)


def _rows(table: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    return (row for group in table.children for row in group.children)


def _inline(node: SyntaxTreeNode) -> Runs:
    """What a paragraph, heading or table cell says. The label of a link is one line."""
    runs = runs_in(node, LONGEST_URL)
    return tuple(replace(run, text=" ".join(run.text.split())) if run.host else run for run in runs)


# ------------------------------------------------------------------------------------------------ pieces
def _paragraph(runs: Runs) -> AnswerPart:
    plain = "".join(_in_full(run) for run in runs)
    return AnswerPart(partial(paragraph, runs), plain)


def _in_full(run: Run) -> str:
    return f"{run.text} ({run.url})" if run.url and run.text != run.url else run.text


def _code(code: str) -> AnswerPart:
    return AnswerPart(lambda _citations: code_block(code), code, is_code=True)


def _joined(inside: Sequence[AnswerPart], change: Callable[[str], str], gap: str = "\n\n") -> AnswerPart:
    """Several pieces as one, whose lines are changed."""

    def written(citations: Citations) -> str:
        texts = [text for piece in inside for text in (piece.gap, piece.written(citations))]
        return change("".join(texts[1:]))

    return AnswerPart(written, "\n".join(piece.plain for piece in inside), gap)


def _quoted(markdown: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in markdown.split("\n"))


def _items(node: SyntaxTreeNode) -> Iterator[AnswerPart]:
    """The items of a list, each with all that it holds."""
    first = min(max(int(node.attrs.get("start", 1)), 0), _MOST - len(node.children))
    for number, item in enumerate(node.children, first):
        sign = f"{number}. " if node.type == "ordered_list" else "- "
        inside = [piece for child in item.children for piece in _pieces(child)] or [_paragraph((Run(_EMPTY),))]
        gap = "\n\n" if number == first and not _can_follow_at_once(node, first) else "\n"
        yield _joined(inside, partial(_indented, sign), gap)


def _can_follow_at_once(node: SyntaxTreeNode, first: int) -> bool:
    """Whether a list may stand right below the text of an item (CommonMark: numbers only from 1)."""
    is_nested = node.parent is not None and node.parent.type == "list_item"
    return is_nested and (node.type == "bullet_list" or first == 1)


def _indented(sign: str, markdown: str) -> str:
    box = next((box for written, box in BOXES.items() if markdown.startswith(f"\\{written[:-2]}\\{written[-2:]}")), "")
    text = f"{box}{markdown[6:]}" if box else markdown
    first, *rest = text.split("\n")
    return "\n".join([sign + first, *(f"{' ' * len(sign)}{line}" if line else "" for line in rest)])
