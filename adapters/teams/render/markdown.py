"""An answer as Teams messages: a model's Markdown in Teams' dialect, with its sources, on few pages, and streamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from adapters.shared.markdown import (
    AFFORDABLE,
    BOXES,
    Run,
    Runs,
    affordable,
    blocks_in,
    joined,
    parser,
    runs_in,
    table_as_text,
    words_of,
)
from adapters.shared.wording import line, source_name
from adapters.teams.render.elements import escape_line_starts, escape_message, without_mentions
from bot.safe_text import cut_lines, cut_text, link_host, visible, visible_passage
from graph.citations import Source
from translations import gettext as _

MOST_CITATIONS = 20
"""Citations in a message; Teams refuses more."""
_NAME = 80
_ABSTRACT = 160
_LONGEST_HOST = 50
"""Characters of a host that is shown whole beside a name."""
_CITED = re.compile(r"\[([1-9]|1[0-9]|20)\]")
"""A citation in an answer; Teams knows no more of them in a message."""
_LONGEST_URL = 500
"""Characters; twenty of them leave most of a message to its text."""


class Citations:
    """The sources of one message, numbered as they come; with them Teams says that a model made it.

    Source: Microsoft's "Enhance AI-generated bot messages".
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._cited: set[int] = set()
        """Numbers that the text itself has in brackets, as an answer cites documents."""

    def copy(self) -> Citations:
        """Returns a copy that changes independently."""
        made = Citations()
        made._numbers, made._names = dict(self._numbers), list(self._names)
        made._cited = set(self._cited)
        return made

    def text(self, text: str, after: str) -> str:
        """Escaped text, but for citations of documents, of which Teams makes references. What this gives rests on what
        came before alone, since answers are shown while they are written: a number that a link has already is text, and
        links after a citation get no number.

        Args:
            after: what follows the text.
        """
        made: list[str] = []
        end = 0
        for found in _CITED.finditer(text):
            number = int(found[1])
            follows = text[found.end() : found.end() + 1] or after[:1]
            if number <= len(self._numbers) or follows in {"(", ":"}:
                continue
            self._cited.add(number)
            made += [escape_message(text[end : found.start()]), found[0]]
            end = found.end()
        return "".join([*made, escape_message(text[end:])])

    def mark(self, name: str, url: str) -> str:
        """What stands behind a link: ` [1]`. Empty where the link is not made a source."""
        host = link_host(url)
        if not host or len(host) > _LONGEST_HOST or len(url) > _LONGEST_URL:
            return ""
        if url not in self._numbers:
            if self._cited or len(self._numbers) == MOST_CITATIONS:
                return ""
            self._numbers[url] = len(self._numbers) + 1
            # The name is a link too, so that it says where that leads.
            self._names.append(host if name == host else line(f"{host}: {name}", _NAME))
        return f" [{self._numbers[url]}]"

    def entity(self, documents: Sequence[Source] = ()) -> dict[str, Any]:
        """The entity of the message: Teams takes one, with the label and the sources.

        Args:
            documents: what the whole answer cites.
        """
        made: dict[str, Any] = {
            "type": "https://schema.org/Message",
            "@type": "Message",
            "@context": "https://schema.org",
            "additionalType": ["AIGeneratedContent"],
        }
        sources = [
            _source(number, name, url) for (url, number), name in zip(self._numbers.items(), self._names, strict=True)
        ]
        sources += [_passage(each) for each in documents if each.number in self._cited]
        return {**made, "citation": sources[:MOST_CITATIONS]} if sources else made


def _source(number: int, name: str, url: str) -> dict[str, Any]:
    appearance = {
        "@type": "DigitalDocument",
        "name": name,
        "url": url,
        "abstract": line(_("A page at {host}").format(host=link_host(url)), _ABSTRACT),
    }
    return {"@type": "Claim", "position": number, "appearance": appearance}


def _passage(source: Source) -> dict[str, Any]:
    appearance = {
        "@type": "DigitalDocument",
        "name": line(source.name, _NAME),
        "abstract": source_name(source, _ABSTRACT),
    }
    return {"@type": "Claim", "position": source.number, "appearance": appearance}


LONGEST_URL = 2_000
"""Characters of a link's address; browsers and proxies take no much longer ones."""
_MARKS = {"bold": "**", "italic": "*", "strike": "~~"}
_DESTINATION = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", "&": "&amp;", "\\": "%5C"})
_BREAK = "  \n"
"""A line break within a paragraph."""


def paragraph(runs: Sequence[Run], citations: Citations | None = None) -> str:
    """Running text, several lines perhaps, none of which begins anything but a paragraph.

    Args:
        citations: notes the sources that it names; `None`: nothing in it is one.
    """
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


def _written(run: Run, before: str, after: str, citations: Citations | None) -> str:
    blanks, text, rest = _edges(run.text)
    if not text:
        return run.text
    if run.url:
        host = f" ({escape_message(run.host)})" if run.host else ""
        mark = citations.mark(text, run.url) if citations is not None else ""
        return f"{blanks}[{escape_message(text)}]({run.url.translate(_DESTINATION)}){host}{mark}{rest}"
    if "code" in run.styles:
        marked = _code_words(text)
    else:
        marked = escape_message(text) if citations is None else citations.text(text, rest or after)
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
CitedText = Callable[[Citations], str]
"""Writes Teams' Markdown, and notes the sources that it names."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of an answer that is not torn unless it is longer than a message."""

    written: CitedText
    plain: str
    """The text without styles, for when it has to be cut."""
    gap: str = "\n\n"
    """What separates it from the piece before it."""
    is_code: bool = False

    def torn(self, longest: int) -> Iterator[AnswerPart]:
        """Yields parts of about `longest` characters."""
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


# ------------------------------------------------------------------------------------------------ pages

LONGEST_ANSWER = 40_000
"""Characters of an answer; more is cut with a count. It makes four messages or so, and takes 20 ms at most."""
LONGEST_MESSAGE = 12_000
"""UTF-16 units of a message's text: 24 KB, and sources take as much again (Teams: 100 KB in all as UTF-16, of which
Microsoft advises 80; 40 KB until 2024)."""
_LONGEST_PART, _SHORTEST_PART = 10_000, 2_000
"""Characters of the parts of a piece that is too long; escapes make five of one at most."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one message says."""

    text: str = ""
    citations: Citations = field(default_factory=Citations)


def pages(text: str) -> tuple[Page, ...]:
    """A model's Markdown as messages; none when it says nothing. Raises nothing."""
    return packed(pieces(visible_passage(text, LONGEST_ANSWER)))


def packed(parts: Iterable[AnswerPart], longest: int = LONGEST_MESSAGE) -> tuple[Page, ...]:
    """Pieces on pages, each as full as it may be."""
    made: list[Page] = []
    texts: list[str] = []
    left, citations = longest, Citations()

    def turn() -> None:
        nonlocal texts, left, citations
        if texts:
            made.append(Page("".join(texts), citations))
        texts, left, citations = [], longest, Citations()

    for piece in parts:
        if len(piece.plain) > longest:
            turn()
            made += packed(piece.torn(min(longest, _LONGEST_PART)), longest)
            continue
        noted = citations.copy()
        written = [piece.gap, piece.written(noted)] if texts else [piece.written(noted)]
        if texts and sum(map(units, written)) > left:
            turn()
            noted = Citations()
            written = [piece.written(noted)]
        needed = sum(map(units, written))
        if needed <= left:
            texts += written
            left, citations = left - needed, noted
        else:
            half = max(len(piece.plain) // 2, _SHORTEST_PART)
            made += packed(piece.torn(min(half, _LONGEST_PART)), longest)
    turn()
    return tuple(page for page in made if page.text)


def units(text: str) -> int:
    """Length of a text as UTF-16, in which Teams counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# ------------------------------------------------------------------- text that is still being written
# Teams wants every frame of a stream, and the final message, to begin with all that was shown before.
LONGEST_STREAM = 8_000
"""UTF-16 units that are streamed; what comes after them waits for the final message, whose first part holds 12,000."""
_LONGEST_SOURCE = 16_000
_PLAIN_WORDS = re.compile(r"[^\W\d_][\w ,;.?'’\"()€$%–—-]*")
"""The beginning of a paragraph that is words and nothing else: what follows cannot make markup of it."""
_CONTAINERS = ("bullet_list_open", "ordered_list_open")


def streamable(text: str) -> str:
    """The beginning of an answer whose rendering cannot change any more. Raises nothing.

    When `text` grows, what this gives grows too: it always begins with what it gave before, and the first message of
    the whole answer begins with it, whenever that holds more than this.
    """
    shown = visible(text[:_LONGEST_SOURCE])
    shown = shown[: affordable(shown, AFFORDABLE / 2)]
    lines = shown.split("\n")
    begun = _begun_at(tokens_of(shown), len(lines) - 1)
    tail = _plain_words("\n".join(lines[begun:]).lstrip())
    settled = "\n".join(lines[:begun])
    made = packed([*pieces(settled), *pieces(tail)], LONGEST_STREAM)
    return made[0].text if made else ""


def _begun_at(tokens: Sequence[Token], complete: int) -> int:
    """The line at which the part begins that may still change; `complete`: how many lines have their end."""
    blocks = [token for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    if not blocks:
        return complete
    last = blocks[-1]
    start, end = last.map or [0, 0]
    if last.type in _CONTAINERS:
        items = [token for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
        return max((item.map[0] for item in items if item.map and item.map[0] >= start), default=start)
    if last.type in ("heading_open", "hr"):
        return end if end <= complete else start
    if last.type == "code_block":
        return start
    # A paragraph, a quotation or a table goes on until a blank line, a fence until its own end.
    return end if end < complete else start


def _plain_words(text: str) -> str:
    """The complete words that a paragraph begins with, before anything that might be markup."""
    found = _PLAIN_WORDS.match(text)
    return found[0].rpartition(" ")[0].rstrip() if found else ""
