"""What people write in Teams, as plain words and Markdown. Pure: the `text/html` of a message → text and quotes.

Teams sends a message as HTML beside its text whenever there is more to it than words: mentions, emoji, lists, quotes.
What comes is not trusted: tags that Teams does not make are seen through, what is huge or nests without end is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Comment, Tag
from bs4.element import PreformattedString
from markdownify import ATX, MarkdownConverter

from bot.safe_text import visible_line, visible_passage
from policies.spellings import with_readable_numbers

MOST_HTML = 200_000
"""Characters. Teams: a message has about 28 KB."""
MOST_TAGS = 2_000
MOST_LEVELS = 40
"""How deep it may nest: lists in lists in quotes stay below 20."""
MOST_TEXT = 60_000
"""Characters that may come of it: each level of quotes and lists adds to every line within."""
MOST_UNCLOSED = 20
"""`<` that no `>` follows before the next: the parser looks for it to the end of the text, for each of them. Teams
escapes what people type; only the values of attributes may hold one."""
LONGEST_BLANK = 100
"""Spaces in a row. The converter's patterns take the square of that."""
MOST_QUOTES = 10
LONGEST_QUOTE = 2_000
"""Characters."""

OURSELVES = "\ue000"
"""Stands where we were mentioned, until the text is finished: a character of no script (private use)."""

_UNCLOSED = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_BLANK = re.compile(rf"[ \t]{{{LONGEST_BLANK},}}")
_SCHEMA = "http://schema.skype.com/"
_ITEM_TYPE = "itemtype"
_KEPT = frozenset(
    [
        *("a", "b", "blockquote", "br", "code", "del", "div", "em", "hr", "i", "li", "ol", "p", "pre", "s", "strong"),
        *("table", "tbody", "td", "th", "thead", "tr", "ul", *(f"h{level}" for level in range(1, 7))),
    ]
)
"""Tags that mean something; of the others only what is in them counts."""
_UNSEEN = ("script", "style", "head", "title", "template", "noscript", "attachment", "iframe", "object")
"""Tags whose content nobody sees. `attachment` stands for a file or card that comes beside the text."""
_SAME_AS = {"strike": "s", "codeblock": "pre", "section": "div", "article": "div", "header": "div", "footer": "div"}
_CODE = frozenset({"pre", "code"})
_WEB = ("http", "https", "mailto")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A message that the author replied to with a quote."""

    author: str
    text: str
    at: float
    """When it was written; 0: not said."""


@dataclass(frozen=True, slots=True)
class Written:
    """What somebody wrote, without what they quoted."""

    text: str
    """With `OURSELVES` wherever we were mentioned."""
    quotes: tuple[Quoted, ...] = ()


Mentions = Callable[[str, str], str]
"""What a mention says: `(its number in the message, its words)` → text, or `OURSELVES`."""


def read_html(html: str, mention: Mentions) -> Written | None:
    """The words of a message; `None`: it is too large or too strange to be read, so its plain text counts."""
    if len(html) > MOST_HTML or html.count("<") > 2 * MOST_TAGS or len(_UNCLOSED.findall(html)) > MOST_UNCLOSED:
        return None
    tree = BeautifulSoup(with_readable_numbers(html.replace(OURSELVES, "")), "html.parser")
    tags = tree.find_all(True)
    if len(tags) > MOST_TAGS or _is_too_deep(tags):
        return None
    _remove_unseen(tree)
    _replace_mentions(tree, mention)
    quotes = tuple(_take_quotes(tree))
    _replace_pictures(tree)
    _see_through_the_rest(tree)
    _shorten_blanks(tree)
    text = _tidied(_converter().convert_soup(tree))
    return Written(text, quotes) if len(text) <= MOST_TEXT else None


def _is_too_deep(tags: list[Tag]) -> bool:
    depths: dict[int, int] = {}
    for tag in tags:  # parents come before their children
        depth = depths.get(id(tag.parent), 0) + 1
        if depth > MOST_LEVELS:
            return True
        depths[id(tag)] = depth
    return False


def _remove_unseen(tree: BeautifulSoup) -> None:
    for text in tree.find_all(string=lambda text: isinstance(text, PreformattedString | Comment)):
        text.extract()
    for tag in tree.find_all(_UNSEEN):
        tag.decompose()


def _replace_mentions(tree: BeautifulSoup, mention: Mentions) -> None:
    found = [tag for tag in tree.find_all(["span", "at"]) if tag.name == "at" or _is(tag, "Mention")]
    for tag in found:
        number = str(tag.get("itemid") or tag.get("id") or "")
        tag.replace_with(mention(number, " ".join(tag.get_text().split())))


def _take_quotes(tree: BeautifulSoup) -> list[Quoted]:
    """Take the quoted messages out, however many there are; those beyond the limit are left out."""
    quotes: list[Quoted] = []
    for quote in tree.find_all("blockquote"):
        if quote.decomposed or not _is(quote, "Reply"):
            continue
        author, time = quote.find(itemprop="mri"), quote.find(itemprop="time")
        preview = quote.find(itemprop=["preview", "copy"]) or quote
        name = author.get_text() if isinstance(author, Tag) else ""
        at = moment(str(time.get("itemid") or "")) if isinstance(time, Tag) else 0.0
        if preview is quote and isinstance(author, Tag):
            author.extract()
        text = preview.get_text(" ") if isinstance(preview, Tag) else ""
        quotes.append(quoted(name, text, at))
        quote.decompose()
    return [quote for quote in quotes if quote.text][:MOST_QUOTES]


def quoted(author: str, text: str, at: float) -> Quoted:
    """A quote as it is kept: bounded, and nothing in it that cannot be seen."""
    words = " ".join(text.replace(OURSELVES, "").split())
    return Quoted(visible_line(author, 80) or "somebody", visible_passage(words, LONGEST_QUOTE), at)


def moment(milliseconds: str) -> float:
    """Seconds since the epoch from Teams' milliseconds; 0: it is no such number."""
    is_one = milliseconds.isascii() and milliseconds.isdigit() and len(milliseconds) <= 15
    return int(milliseconds) / 1000 if is_one else 0.0


def _replace_pictures(tree: BeautifulSoup) -> None:
    """Emoji are pictures whose other text is the character; pictures of people's are noted."""
    for tag in tree.find_all("emoji"):
        tag.replace_with(str(tag.get("alt") or ""))
    for tag in tree.find_all("img"):
        alt = visible_line(str(tag.get("alt") or ""), 200)
        is_emoji = _is(tag, "Emoji") or len(alt) <= 2
        tag.replace_with(alt if is_emoji and alt else f"[picture: {alt}]" if alt else "[picture]")


def _see_through_the_rest(tree: BeautifulSoup) -> None:
    """Leave only what the converter is known to read well."""
    for tag in tree.find_all(True):
        tag.name = _SAME_AS.get(tag.name, tag.name)
        if tag.name not in _KEPT:
            tag.unwrap()
        else:
            tag.attrs = {name: str(value) for name, value in tag.attrs.items() if _is_read(tag, name, str(value))}


def _shorten_blanks(tree: BeautifulSoup) -> None:
    tree.smooth()  # what stands in several pieces, one after the other, counts as one
    for text in tree.find_all(string=_BLANK):
        text.replace_with(_BLANK.sub(" " * LONGEST_BLANK, text))


def _is_read(tag: Tag, name: str, value: str) -> bool:
    if tag.name == "a":
        return name == "href"
    return tag.name == "ol" and name == "start" and value.isascii() and value.isdigit() and len(value) <= 4


def _is(tag: Tag, kind: str) -> bool:
    return str(tag.get(_ITEM_TYPE) or "") == f"{_SCHEMA}{kind}"


class _Converter(MarkdownConverter):
    """Markdown as people type it: nothing escaped, one marker for lists, links that say where they lead."""

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        href, label = str(el.get("href") or "").strip(), text.strip()
        if parent_tags & _CODE or not _is_web(href) or not label:
            return text
        if label in (href, href.removeprefix("mailto:"), href.rstrip("/")):
            return label
        return f"{label} ({href})"

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if "_inline" in parent_tags:
            return f" {text.strip()} "
        text = text.strip("\n")
        return f"\n{text}\n" if text else ""

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return " " if "_inline" in parent_tags else "\n"

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # The converter's own takes the square of the blanks in it.
        lines = text.rstrip(" \n").split("\n")
        first = next((number for number, line in enumerate(lines) if line.strip(" ")), len(lines))
        code = "\n".join(lines[first:])
        return f"\n\n```\n{code}\n```\n\n" if text else ""


def _converter() -> Any:
    return _Converter(heading_style=ATX, bullets="-", escape_asterisks=False, escape_underscores=False)


def _is_web(href: str) -> bool:
    try:
        return href.isprintable() and " " not in href and len(href) <= 2_000 and urlsplit(href).scheme in _WEB
    except ValueError:
        return False


def _tidied(text: str) -> str:
    # At no other kind of line break: what follows one in a quote would seem to stand outside of it.
    lines = (line.rstrip() for line in text.replace("\u00a0", " ").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
