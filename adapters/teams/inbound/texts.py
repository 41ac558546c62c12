"""What a message of Teams says: its HTML, attachments and mentions as plain words. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bs4 import BeautifulSoup, Comment, Tag
from bs4.element import PreformattedString
from markdownify import ATX, MarkdownConverter

from adapters.shared.messages import WORDLESS, apart, attachment_notes, file_name
from adapters.shared.untrusted_json import part, parts, words
from adapters.teams.ids import token
from bot.safe_text import shorten, visible_line, visible_passage
from policies.spellings import unescaped, with_readable_numbers

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
LONGEST_EMOJI = 16
"""Characters of an emoji: a family has eleven. Longer ones are names of pictures, which others have given them."""
OURSELVES = "\ue000"
"""Stands where we were mentioned, until the text is finished: a character of no script (private use)."""
MENTIONED = "\ue001"
"""Stands before the `@` of another person's name, until the text is finished."""
_UNCLOSED = re.compile(r"<(?=[^<>]*(?:<|\Z))")
_MARKS = re.compile(f"[{OURSELVES}{MENTIONED}]")
_BLANK = re.compile(rf"[ \t]{{{LONGEST_BLANK},}}")
_SCHEMA = "http://schema.skype.com/"
_ITEM_TYPE = "itemtype"
_KEPT = frozenset(
    [
        *("a", "b", "blockquote", "br", "code", "del", "div", "em", "hr", "i", "li", "ol", "p", "pre", "q", "s"),
        *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul", *(f"h{level}" for level in range(1, 7))),
    ]
)
"""Tags that mean something; of the others only what is in them counts."""
_UNSEEN = (
    *("script", "style", "head", "title", "template", "noscript", "attachment", "iframe", "object"),
    *("audio", "canvas", "video", "select", "textarea", "uriobject"),
)
"""Tags whose content nobody sees. `attachment` stands for a file or card that comes beside the text."""
_HIDDEN = re.compile(
    r"(?:display|mso-hide)\s*+:\s*+(?:none|all)|visibility\s*+:\s*+(?:hidden|collapse)"
    r"|(?<![\w-])(?:left|top|text-indent)\s*+:\s*+-[0-9]{3}"
    r"|(?<![\w-])color\s*+:\s*+transparent|font-size\s*+:\s*+[01]?(?:\.[0-9]*+)?p[tx]"
    r"|(?:opacity|font-size|max-height)\s*+:\s*+0*+(?:\.0*+)?[a-z%]*+\s*+(?:;|!|\Z)",
    re.IGNORECASE,
)
"""Styles of what nobody sees."""
_STYLE_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_MARKING = re.compile(
    r"<(?:a|blockquote|pre|code|codeblock|samp|kbd|tt|table|s|strike|del|q|img|emoji|caption|cite|figcaption|readonly)\b"
    r"|<[^<>]*\s(?:hidden|style)\b",
    re.IGNORECASE,
)
"""Tags that set something apart as not said by the author, not meant or not seen; plain text is without them."""
_SAME_AS = {
    "strike": "s",
    "samp": "code",
    "kbd": "code",
    "tt": "code",
    "codeblock": "pre",
    "cite": "q",
    **dict.fromkeys(("caption", "figcaption", "readonly"), "blockquote"),
    **dict.fromkeys(("section", "article", "header", "footer", "aside", "main", "nav", "address"), "div"),
    **dict.fromkeys(("figure", "details", "summary", "dt", "dd", "center"), "div"),
}
_CODE = frozenset({"pre", "code"})
_BLOCKS = ("blockquote", "pre", "table")
_INLINE = ("b", "em", "i", "strong", *(f"h{level}" for level in range(1, 7)))
_TICKS = re.compile(r"`{3,}")
_WEB = ("http", "https", "mailto")


@dataclass(frozen=True, slots=True)
class QuotedMessage:
    """A message that the author replied to with a quote."""

    author: str
    text: str
    at: float
    """When it was written; 0: not said."""


@dataclass(frozen=True, slots=True)
class Written:
    """What somebody wrote, without what they quoted."""

    text: str
    """The text, with `OURSELVES` wherever the bot was mentioned."""
    quotes: tuple[QuotedMessage, ...] = ()


Mentions = Callable[[str, str], str]
"""What a mention says: `(its number in the message, its words)` → text, or `OURSELVES`."""


def read_html(html: str, mention: Mentions) -> Written | None:
    """The words of a message; `None`: it is too large or too strange to be read, so its plain text counts: as quoted
    where the HTML says of a part of it that it is."""
    if len(html) > MOST_HTML or html.count("<") > 2 * MOST_TAGS or len(_UNCLOSED.findall(html)) > MOST_UNCLOSED:
        return None
    tree = BeautifulSoup(_MARKS.sub("", with_readable_numbers(html)), "html.parser")
    tags = tree.find_all(True)
    if len(tags) > MOST_TAGS or _is_too_deep(tags):
        return None
    _remove_unseen(tree)
    _replace_mentions(tree, mention)
    quotes = tuple(_take_quotes(tree))
    _replace_pictures(tree)
    _see_through_the_rest(tree)
    _see_through_what_hides_blocks(tree)
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
    for tag in tree.find_all(_is_unseen):
        if not tag.decomposed:
            tag.decompose()


def _is_unseen(tag: Tag) -> bool:
    style = _STYLE_COMMENT.sub("", str(tag.get("style") or ""))
    return tag.name in _UNSEEN or tag.has_attr("hidden") or _HIDDEN.search(style) is not None


def _replace_mentions(tree: BeautifulSoup, mention: Mentions) -> None:
    found = [tag for tag in tree.find_all(["span", "at"]) if tag.name == "at" or _is(tag, "Mention")]
    for tag in found:
        number = str(tag.get("itemid") or tag.get("id") or "")
        tag.replace_with(mention(number, " ".join(tag.get_text().split())))


def _take_quotes(tree: BeautifulSoup) -> list[QuotedMessage]:
    """Take the quoted messages out, however many there are; those beyond the limit are left out."""
    quotes: list[QuotedMessage] = []
    for quote in tree.find_all("blockquote"):
        if quote.decomposed or not _is(quote, "Reply"):
            continue
        author, time = quote.find(itemprop="mri"), quote.find(itemprop="time")
        preview = quote.find(itemprop=["preview", "copy"]) or quote
        name = author.get_text() if isinstance(author, Tag) else ""
        at = parse_milliseconds(str(time.get("itemid") or "")) if isinstance(time, Tag) else 0.0
        if preview is quote and isinstance(author, Tag):
            author.extract()
        text = preview.get_text(" ") if isinstance(preview, Tag) else ""
        quotes.append(quoted(name, text, at))
        quote.decompose()
    return [quote for quote in quotes if quote.text][:MOST_QUOTES]


def quoted(author: str, text: str, at: float) -> QuotedMessage:
    """A quote as it is kept: bounded, and nothing in it that cannot be seen."""
    words = " ".join(text.replace(OURSELVES, "").split())
    return QuotedMessage(visible_line(author, 80) or "somebody", visible_passage(words, LONGEST_QUOTE), at)


def parse_milliseconds(milliseconds: str) -> float:
    """Seconds since the epoch from Teams' milliseconds; 0: it is no such number."""
    is_one = milliseconds.isascii() and milliseconds.isdigit() and len(milliseconds) <= 15
    return int(milliseconds) / 1000 if is_one else 0.0


def _replace_pictures(tree: BeautifulSoup) -> None:
    """Emoji are pictures whose other text is the character; pictures of people's are noted."""
    for tag in tree.find_all("emoji"):
        alt = visible_line(str(tag.get("alt") or ""), 200)
        tag.replace_with(alt if _is_emoji(alt) else f"[picture: {alt}]")
    for tag in tree.find_all("img"):
        alt = visible_line(str(tag.get("alt") or ""), 200)
        is_emoji = _is_emoji(alt) if _is(tag, "Emoji") else len(alt) <= 2
        tag.replace_with(alt if is_emoji and alt else f"[picture: {alt}]" if alt else "[picture]")


def _is_emoji(alt: str) -> bool:
    """Whether it is one, and no name of a picture: those have letters, of which an emoji is one at most (ℹ)."""
    return len(alt) <= LONGEST_EMOJI and sum(c.isalpha() for c in alt) <= 1


def _see_through_the_rest(tree: BeautifulSoup) -> None:
    """Leave only what the converter is known to read well."""
    for tag in tree.find_all(True):
        tag.name = _SAME_AS.get(tag.name, tag.name)
        if tag.name not in _KEPT:
            tag.unwrap()
        else:
            tag.attrs = {name: str(value) for name, value in tag.attrs.items() if _is_read(tag, name, str(value))}


def _see_through_what_hides_blocks(tree: BeautifulSoup) -> None:
    """In a heading or bold letters, a quote, code or a table would stand in one line with other words, as if it was
    none of these."""
    for block in tree.find_all(_BLOCKS):
        for around in block.find_parents(_INLINE):
            around.unwrap()


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
        # In one line with where it leads, by which it is known as a label, which others may have written.
        href, label = str(el.get("href") or "").strip(), " ".join(text.split())
        if parent_tags & _CODE or not label or not el.has_attr("href"):
            return text
        if not _is_web(href):
            return f"{label} (link:)"
        is_itself = label in (href, href.rstrip("/")) or ("@" in label and label == href.removeprefix("mailto:"))
        return label if is_itself else f"{label} ({href})"

    def convert_s(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        # Each line by itself: what goes over several is not struck out everywhere, and may hold a quote.
        return text if parent_tags & _CODE else "\n".join(map(_struck_out, text.split("\n")))

    convert_del = convert_s

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
        fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(code)), default=2) + 1)  # it may hold fences itself
        return f"\n\n{fence}\n{code}\n{fence}\n\n" if text else ""


def _struck_out(line: str) -> str:
    bare = line.strip(" \t")
    return line.replace(bare, f"~~{bare}~~") if bare else line


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


# ---------------------------------------------------------------------- attachments, by name and size
# Nothing is fetched.

_UPLOADED = "application/vnd.microsoft.teams.file.download.info"
"""A file sent to the bot in a personal chat."""
_SHARED = "reference"
"""A file shared in a channel or a group chat."""


def file_notes(activity: Mapping[str, Any], *, pictures: bool) -> list[str]:
    """A line for each file; for pictures too, unless they stand in the text already."""
    files = [attached for attached in parts(activity, "attachments") if _is_noted(attached, pictures=pictures)]
    return attachment_notes(files, _file)


def _is_noted(attached: Mapping[str, Any], *, pictures: bool) -> bool:
    kind = words(attached, "contentType")
    return kind in (_UPLOADED, _SHARED) or (pictures and kind.startswith("image/"))


def _file(file: Mapping[str, Any]) -> tuple[str, object]:
    otherwise = "a picture" if words(file, "contentType").startswith("image/") else "a file"
    content = part(file, "content")
    return file_name(words(file, "name"), otherwise), content.get("fileSize", content.get("size"))


# ---------------------------------------------------------------------------- messages in plain words
# Mentions by name, the bot's own removed, quotes apart.

Activity = Mapping[str, Any]
_MOST_MENTIONS = 100
_AT = re.compile(r"<at(?:\s[^<>]*)?>([^<]*)</at>")
"""Names have no tags in them (Teams writes `&lt;`), so that a text full of `<` is read in one pass."""
_QUOTED = re.compile(r'<quoted messageId="[^"<>]*"\s*/>')
"""Stands in the text where a message is quoted; what it says is in an entity."""
_ADDRESS = re.compile(r"[ \t]*[,:]?[ \t]*")
"""What follows a name at the beginning of a sentence that speaks to it."""
_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True)
class MentionInText:
    """Somebody who is mentioned in a message, in the order of Teams' entities."""

    words: str
    """How the message writes it."""
    is_us: bool


def mentions_us(activity: Activity) -> bool:
    """Whether the message speaks to the bot."""
    return any(mention.is_us for mention in mentions_in(activity))


def mentions_in(activity: Activity) -> tuple[MentionInText, ...]:
    """Who is mentioned."""
    us = token(activity, "recipient", "id")
    entities = [entity for entity in parts(activity, "entities") if words(entity, "type").lower() == "mention"]
    return tuple(_mention(entity, us) for entity in entities[:_MOST_MENTIONS])


def _mention(entity: Activity, us: str) -> MentionInText:
    written = _TAG.sub("", words(entity, "text")) or words(entity, "mentioned", "name")
    return MentionInText(" ".join(unescaped(written).split()), us != "" and token(entity, "mentioned", "id") == us)


def written_in(activity: Activity) -> Written:
    """The words of a message without the mention of ourselves, its files noted by name and size, and what it quotes.

    A message without words but with a mention or a file says so; the text of one without anything is empty.
    """
    mentions = mentions_in(activity)
    html = _html(activity)
    rich = read_html(html, lambda number, text: _in_words(number, text, mentions)) if html else None
    written = rich or Written(_quoted_where_unclear(html, _plain(activity, mentions)))
    notes = file_notes(activity, pictures=rich is None)
    text = "\n".join(line for line in (_named(_without_us(written.text)), *notes) if line)
    if not text and any(mention.is_us for mention in mentions):
        text = WORDLESS
    return Written(text, (*written.quotes, *_quotes_beside(activity))[:MOST_QUOTES])


def _html(activity: Activity) -> str:
    """The message as HTML; empty: there is none."""
    for attached in parts(activity, "attachments"):
        html = words(attached, "content")
        if words(attached, "contentType") == "text/html" and html.strip():
            return html
    return ""


def _quoted_where_unclear(html: str, plain: str) -> str:
    """The plain text of a message. Where its HTML says of a part of it that it is quoted or code, the text does not say
    which: all of it is marked as quoted."""
    return "\n".join(f"> {line}" for line in plain.splitlines()) if _MARKING.search(html) else plain


def _plain(activity: Activity, mentions: Sequence[MentionInText]) -> str:
    """The plain text, in which mentions are tags. What somebody typed that looks like one is in no entity."""
    text = _QUOTED.sub("", _MARKS.sub("", words(activity, "text"))).replace("\u00a0", " ")
    count, known = 0, {mention.words for mention in mentions}

    def replaced(tag: re.Match[str]) -> str:
        nonlocal count
        said = " ".join(unescaped(tag.group(1)).split())
        if said not in known:
            return tag.group()
        count += 1
        return _in_words(str(count - 1), said, mentions)

    return shorten(_AT.sub(replaced, text), MOST_TEXT)


def _in_words(number: str, text: str, mentions: Sequence[MentionInText]) -> str:
    """A mention by its number where its words agree, else by its words: two may bear the same name."""
    index = int(number) if number.isascii() and number.isdigit() and len(number) <= 3 else len(mentions)
    if index < len(mentions) and mentions[index].words == text:
        is_us = mentions[index].is_us
    else:
        alike = [mention.is_us for mention in mentions if mention.words == text]
        is_us = bool(alike) and all(alike)
    return OURSELVES if is_us else f"{MENTIONED}@{visible_line(text.removeprefix('@'), 80)}"


def _named(text: str) -> str:
    """The text with names apart from what they follow."""
    first, *further = text.split(MENTIONED)
    said, last = [first], first[-1:]
    for piece in further:
        said.append(apart(last, piece))
        last = piece[-1:]
    return "".join(said)


def _without_us(text: str) -> str:
    said: list[str] = []
    end, at_start = 0, True
    for found in re.finditer(OURSELVES, text):
        before = text[end : found.start()]
        end = found.end()
        at_start = at_start and not before.strip()
        said.append(before)
        end += _hole(text, end, at_start=at_start, after_space=before[-1:].isspace())
    said.append(text[end:])
    return "".join(said).strip()


def _hole(text: str, end: int, *, at_start: bool, after_space: bool) -> int:
    """How many characters after a mention of ourselves go with it."""
    if at_start:
        address = _ADDRESS.match(text, end)
        return len(address.group()) if address else 0
    return 1 if after_space and text.startswith(" ", end) else 0


def _quotes_beside(activity: Activity) -> list[QuotedMessage]:
    """Quotes that Teams' newer clients send as entities."""
    found = (part(e, "quotedReply") for e in parts(activity, "entities") if words(e, "type") == "quotedReply")
    quotes = (quoted(words(q, "senderName"), words(q, "preview"), parse_milliseconds(words(q, "time"))) for q in found)
    return [quote for quote in quotes if quote.text]
