"""A model's Markdown, read for any platform: its blocks, the inside of a paragraph, links that show where they lead.

CommonMark with tables and strike-through. HTML is text, and images are links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from bot.safe_text import link_host, visible

LONGEST_LINK_TEXT = 300
"""Characters of a link's text; a longer label stands before its link."""
_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"'`|\\^{}⟨⟩]+", re.IGNORECASE)
_END_OF_SENTENCE = ".,;:!?*_~'\""
_MAILTO = "mailto:"
BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
"""How an item of a task list begins → the box that is shown."""
_DEEPEST_NESTING = 60
"""Levels of Markdown; what is nested deeper the parser would drop."""
_WIDEST = 80
"""Characters of a line of a table as text up to which its columns are lined up."""
_MARKUP = re.compile(r"[\n&*<\[\\\]_`~]|!(?=\[)")
"""Where something other than text may begin, by the rules that are on. The parser's own set has what extensions might
use (`#`, `!`, `$`, …), and each of these characters costs a microsecond."""
_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}


@dataclass(frozen=True, slots=True)
class Run:
    """Some characters in one style. They are visible, and none of them is markup."""

    text: str
    styles: frozenset[str] = frozenset()
    """Some of `bold`, `italic`, `strike`, `code`."""
    url: str = ""
    host: str = ""
    """Where the link leads, when its text does not say it: shown behind it."""


Runs = tuple[Run, ...]


# ------------------------------------------------------------------------------------------------ blocks
def parser() -> MarkdownIt:
    """Returns a parser of what models write."""
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST_NESTING})
    made.inline.terminator_re = _MARKUP
    return made.enable(["table", "strikethrough"])


def blocks_in(text: str, reader: MarkdownIt) -> tuple[Sequence[SyntaxTreeNode], str]:
    """Returns the blocks of a text, and what is to be shown after them as it was written, in lines of code: all of a
    text that is nested beyond reason, and what comes after as much as can be formatted in time. Raises nothing."""
    shown = visible(text)
    end = affordable(shown)
    tokens = reader.parse(shown[:end])
    if any(token.level >= _DEEPEST_NESTING - 1 for token in tokens):
        return (), shown
    as_written = shown[end:].strip("\n")
    return SyntaxTreeNode(tokens).children, as_written if as_written.strip() else ""


def table_as_text(rows: Iterable[Iterable[str]]) -> str:
    """Returns a table as lines of text, columns lined up where the lines stay short; the first row is its head."""
    cells = [[cell.replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    if sum(widths) + 3 * len(widths) > _WIDEST:
        widths = [0] * len(widths)
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    ruler = "-+-".join("-" * (width or 3) for width in widths)
    return "\n".join([lines[0], ruler, *lines[1:]])


# ------------------------------------------------------------------------------------------------ within a paragraph
def runs_in(block: SyntaxTreeNode, longest_url: int) -> Runs:
    """Returns what a paragraph, a heading or a cell of a table says.

    Args:
        longest_url: characters of an address that may be a link.
    """
    return joined(
        run for line in block.children for node in line.children for run in _runs(node, frozenset(), longest_url)
    )


def joined(runs: Iterable[Run]) -> Runs:
    """Returns the runs without empty ones, neighbours of the same style as one."""
    made: list[Run] = []
    for run in runs:
        if made and not run.url and not made[-1].url and run.styles == made[-1].styles:
            made[-1] = replace(run, text=made[-1].text + run.text)
        elif run.text:
            made.append(run)
    return tuple(made)


def words_of(runs: Iterable[Run]) -> str:
    """Returns the text of runs with the hosts of links, without styles and addresses."""
    return "".join(f"{run.text} ({run.host})" if run.host else run.text for run in runs)


def _runs(node: SyntaxTreeNode, styles: frozenset[str], longest_url: int) -> Iterator[Run]:
    match node.type:
        case "text":
            yield from _text(node.content, styles, longest_url)
        case "softbreak" | "hardbreak":
            yield Run("\n", styles)
        case "code_inline":
            yield Run(visible(node.content), styles | {"code"})
        case "link":
            label = joined(run for child in node.children for run in _runs(child, frozenset(), longest_url))
            yield from _link(str(node.attrs.get("href", "")), label, styles, longest_url)
        case "image":
            # Nothing is loaded that nobody asked for: an image is a link to it.
            label = (Run(visible(node.content)),)
            yield from _link(str(node.attrs.get("src", "")), label, styles, longest_url)
        case kind if kind in _STYLES:
            for child in node.children:
                yield from _runs(child, styles | {_STYLES[kind]}, longest_url)
        case _:
            yield Run(visible(node.content), styles)


def _text(text: str, styles: frozenset[str], longest_url: int) -> Iterator[Run]:
    """Text, with addresses written out in it made links."""
    text = visible(text)
    end = 0
    for start, url in _addresses_in(text):
        if is_address(url, longest_url):
            yield Run(text[end:start], styles)
            yield from _link(url, (Run(url),), styles, longest_url)
            end = start + len(url)
    yield Run(text[end:], styles)


def _link(url: str, label: Runs, styles: frozenset[str], longest_url: int) -> Iterator[Run]:
    """A link as "label (host)", or as the address alone where that is its label."""
    text = words_of(label).strip()
    if not is_address(url, longest_url):
        yield Run(f"{text} ({visible(url)})" if url and url != text else text, styles)
        return
    host = host_of(url)
    if not text:
        yield Run(host, styles, url)
    elif len(text) > LONGEST_LINK_TEXT:
        yield Run(f"{text} ", styles)
        yield Run(host, styles, url)
    elif names_its_host(text, url):
        yield Run(text, styles, url)
    else:
        code = {"code"} if all("code" in run.styles for run in label) else set()
        yield Run(text, styles | code, url, host)


# ------------------------------------------------------------------------------------------------ links
def _addresses_in(text: str) -> Iterator[tuple[int, str]]:
    """Yields where each address in a text begins, and the address."""
    for found in _ADDRESS.finditer(text):
        yield found.start(), _without_end_of_sentence(found[0])


def is_address(url: str, longest: int) -> bool:
    """Whether a link of at most `longest` characters may be offered: web addresses whose host is beyond doubt, and mail
    addresses."""
    if len(url) > longest or not url.isprintable():
        return False
    return bool(link_host(url)) or (url.startswith(_MAILTO) and "@" in url)


def host_of(url: str) -> str:
    """Returns the host that an address leads to, or whom a mail address is of."""
    return url.removeprefix(_MAILTO).split("?")[0] if url.startswith(_MAILTO) else link_host(url)


def names_its_host(label: str, url: str) -> bool:
    """Whether a label begins with the very host that its link leads to, so that it hides nothing."""
    host = host_of(url)
    if url.startswith(_MAILTO):
        return label in (url, host)
    origin = f"{url.split(':', 1)[0]}://{host}"
    return label in (host, origin) or label.startswith((f"{origin}/", f"{origin}?", f"{origin}#"))


def _without_end_of_sentence(url: str) -> str:
    """The address without what belongs to the text around it: full stops, and brackets that it did not open."""
    unopened = {closing: url.count(closing) - url.count(opening) for opening, closing in ("()", "[]")}
    end = len(url)
    while url[end - 1] in _END_OF_SENTENCE or unopened.get(url[end - 1], 0) > 0:
        end -= 1
        if url[end] in unopened:
            unopened[url[end]] -= 1
    return url[:end]


# ------------------------------------------------------------------------------------------------ what parsing costs
# The parser is linear, but slow on dense texts: a bracket that opens no link takes it as long as a paragraph of words.
# So what a text will cost is estimated, from what was measured, before it is parsed; what is too much is shown as it
# was written.

AFFORDABLE = 5_700.0
"""Microseconds of parsing, estimated, that one post may cost: about 4,000 characters of headings, items and links
alone, 40,000 of prose."""
_LINE = 14.0
"""Microseconds for a line that is not blank."""
_BLANK = 1.0
_CHARACTER = 0.02
_INDENT = 0.15
_BRACKET, _IMAGE, _MARK, _SIGN = 38.0, 70.0, 5.0, 1.5
"""For each `[`, each `!` before one, each character that emphasis or code can begin with, and each other that is looked
at twice."""
_CELL = 2.5
_ADDRESS_COST = 40.0
"""For each address, whose host has to be found."""
_BLOCK = 22.0
"""For each sign at the beginning of a line that opens a quotation, an item or a heading."""
_BEGINNING = re.compile(r"[ \t]*((?:(?:[-+*>#]|[0-9]{1,9}[.)])[ \t]*)*)")
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
    cost += _BRACKET * line.count("[") + _IMAGE * line.count("![") + _ADDRESS_COST * line.count("://")
    return cost + _CELL * line.count("|") + _SIGN * len(_IN_LINE.findall(line))
