"""A model's Markdown → the pieces of an answer, in order: paragraphs, items of lists, code, quotations.

CommonMark with tables and strike-through. HTML is text, images are links, tables are preformatted text. What would
change lines that have been shown already while an answer is written is left out: headings by underlining, links whose
address comes later, tables without a bar at the beginning of their head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown_cost import affordable
from adapters.teams.render.citations import Citations
from adapters.teams.render.dialect import code_block, paragraph
from adapters.teams.render.inline import Run, Runs, inline, joined, styled, words_of
from adapters.teams.render.tables import as_text
from bot.safe_text import cut_lines, cut_text, visible

_DEEPEST_NESTING = 60
"""Levels of Markdown; what is nested deeper the parser would drop."""
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_RULE = "———"
"""Teams has no rules across."""
_EMPTY = "\u00a0"
_MOST = 999_999_999
"""The highest number of an item (CommonMark)."""


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """A table, if its head begins with a bar."""
    at = state.bMarks[start] + state.tShift[start]
    return state.src[at : at + 1] == "|" and table(state, start, end, silent)


_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST_NESTING})
    .enable(["table", "strikethrough"])
    .disable(["lheading", "reference"])
)
_PARSER.block.ruler.at("table", _table, {"alt": ["paragraph"]})

Written = Callable[[Citations], str]
"""Writes Teams' Markdown, and notes the sources that it names."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer that is not torn unless it is longer than a message."""

    written: Written
    plain: str
    """The same without styles, for when it has to be torn."""
    gap: str = "\n\n"
    """What separates it from the piece before it."""
    is_code: bool = False

    def torn(self, longest: int) -> Iterator[Piece]:
        """In parts of about `longest` characters."""
        if self.is_code:
            yield from map(_code, cut_lines(self.plain, longest))
        else:
            yield from (_paragraph((Run(text),)) for text in cut_text(self.plain, longest))


def tokens_of(text: str) -> Sequence[Token]:
    """The parts of a visible Markdown text, with the lines where they stand."""
    return _PARSER.parse(text)


def pieces(text: str) -> tuple[Piece, ...]:
    """The pieces of a Markdown text. Raises nothing; text that is nested beyond reason, and what comes after as much as
    can be formatted in time, is shown as it was written."""
    shown = visible(text)
    end = affordable(shown)
    tokens = tokens_of(shown[:end])
    if any(token.level >= _DEEPEST_NESTING - 1 for token in tokens):
        return (_code(shown),)
    formatted = (piece for node in SyntaxTreeNode(list(tokens)).children for piece in _pieces(node))
    as_written = shown[end:].strip("\n")
    return (*formatted, *([_code(as_written)] if as_written.strip() else ()))


def _pieces(node: SyntaxTreeNode) -> Iterator[Piece]:
    match node.type:
        case "heading":
            if runs := styled(_inline(node), "bold"):
                yield _paragraph(runs)
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
            yield _code(as_text([[words_of(_inline(cell)) for cell in row.children] for row in _rows(node)]))
        case _:
            if runs := _inline(node) or joined([Run(visible(node.content))]):
                yield _paragraph(runs)


def _rows(table: SyntaxTreeNode) -> Iterable[SyntaxTreeNode]:
    return (row for group in table.children for row in group.children)


def _inline(node: SyntaxTreeNode) -> Runs:
    return joined(run for child in node.children for run in inline(child))


# ------------------------------------------------------------------------------------------------ pieces


def _paragraph(runs: Runs) -> Piece:
    plain = "".join(_in_full(run) for run in runs)
    return Piece(partial(paragraph, runs), plain)


def _in_full(run: Run) -> str:
    return f"{run.text} ({run.url})" if run.url and run.text != run.url else run.text


def _code(code: str) -> Piece:
    return Piece(lambda _citations: code_block(code), code, is_code=True)


def _joined(inside: Sequence[Piece], change: Callable[[str], str], gap: str = "\n\n") -> Piece:
    """Several pieces as one, whose lines are changed."""

    def written(citations: Citations) -> str:
        texts = [text for piece in inside for text in (piece.gap, piece.written(citations))]
        return change("".join(texts[1:]))

    return Piece(written, "\n".join(piece.plain for piece in inside), gap)


def _quoted(markdown: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in markdown.split("\n"))


def _items(node: SyntaxTreeNode) -> Iterator[Piece]:
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
    box = next((box for written, box in _BOXES.items() if markdown.startswith(f"\\{written[:-2]}\\{written[-2:]}")), "")
    text = f"{box}{markdown[6:]}" if box else markdown
    first, *rest = text.split("\n")
    return "\n".join([sign + first, *(f"{' ' * len(sign)}{line}" if line else "" for line in rest)])
