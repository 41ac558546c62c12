"""The inside of a Markdown paragraph → elements of a rich text: styles, code, links that show their host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from markdown_it.tree import SyntaxTreeNode

from adapters.slack.render.blocks import LONGEST_URL, Block, link, run
from bot.safe_text import link_host, visible

Elements = tuple[Block, ...]

_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}
_LONGEST_LABEL = 300
"""Characters of a link's text; a longer label stands before its link."""
_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"'`|\\^{}⟨⟩]+", re.IGNORECASE)
_END_OF_SENTENCE = ".,;:!?*_~'\""
_MAILTO = "mailto:"


def inline(node: SyntaxTreeNode, *styles: str) -> Elements:
    """What a paragraph, heading or table cell says, in elements whose text is visible and not empty."""
    return joined(element for child in node.children for element in _element(child, styles))


def joined(elements: Iterable[Block]) -> Elements:
    """The elements without empty ones, neighbours of the same style as one."""
    made: list[Block] = []
    append(made, elements)
    return tuple(made)


def append(made: list[Block], elements: Iterable[Block]) -> None:
    """Add elements to joined ones."""
    for _, group in groupby(filter(_text_of, elements), key=_look):
        first, *rest = group
        if first["type"] != "text":
            made += (first, *rest)
            continue
        last = made[-1] if made else {}
        if last.get("type") == "text" and last.get("style") == first.get("style"):
            made[-1] = {**last, "text": "".join(map(_text_of, (last, first, *rest)))}
        else:
            made.append({**first, "text": "".join(map(_text_of, (first, *rest)))} if rest else first)


def _text_of(element: Block) -> str:
    return str(element["text"])


def _look(element: Block) -> tuple[str, Any]:
    return element["type"], element.get("style")


def styled(elements: Iterable[Block], style: str) -> Elements:
    """The elements, all of them also in this style."""
    return joined({**element, "style": {**element.get("style", {}), style: True}} for element in elements)


def size(elements: Iterable[Block]) -> int:
    """Characters that elements hold: their text and, in links, the address."""
    return sum(len(element["text"]) + len(element.get("url", "")) for element in elements)


def words(elements: Iterable[Block]) -> str:
    """The text of elements, without styles and addresses."""
    return "".join(element["text"] for element in elements)


def _element(node: SyntaxTreeNode, styles: Sequence[str]) -> Iterator[Block]:
    match node.type:
        case "text":
            yield from _text(node.content, styles)
        case "softbreak" | "hardbreak":
            yield run("\n", *styles)
        case "code_inline":
            yield run(visible(node.content), *styles, "code")
        case "link":
            yield from _link(str(node.attrs.get("href", "")), joined(_children(node, ())), styles)
        case "image":
            # Nothing is loaded that nobody asked for: an image is a link to it.
            yield from _link(str(node.attrs.get("src", "")), joined([run(visible(node.content))]), styles)
        case kind if kind in _STYLES:
            yield from _children(node, (*styles, _STYLES[kind]))
        case _:
            yield run(visible(node.content), *styles)


def _children(node: SyntaxTreeNode, styles: Sequence[str]) -> Iterator[Block]:
    for child in node.children:
        yield from _element(child, styles)


def _text(text: str, styles: Sequence[str]) -> Iterator[Block]:
    """Text, with addresses written out in it made links."""
    text = visible(text)
    end = 0
    for found in _ADDRESS.finditer(text):
        url = _without_end_of_sentence(found[0])
        if not is_address(url):
            continue
        yield run(text[end : found.start()], *styles)
        yield from _link(url, (run(url),), styles)
        end = found.start() + len(url)
    yield run(text[end:], *styles)


def _without_end_of_sentence(url: str) -> str:
    """The address without what belongs to the text around it: full stops, and brackets that it did not open."""
    unopened = {closing: url.count(closing) - url.count(opening) for opening, closing in ("()", "[]")}
    end = len(url)
    while url[end - 1] in _END_OF_SENTENCE or unopened.get(url[end - 1], 0) > 0:
        end -= 1
        if url[end] in unopened:
            unopened[url[end]] -= 1
    return url[:end]


def is_address(url: str) -> bool:
    """Whether a link may be offered: web addresses whose host is beyond doubt, and mail addresses."""
    if len(url) > LONGEST_URL or not url.isprintable():
        return False
    return bool(link_host(url)) or (url.startswith(_MAILTO) and "@" in url)


def _link(url: str, label: Elements, styles: Sequence[str]) -> Iterator[Block]:
    """A link as "label (host)", or as the address alone where that is its label."""
    text = words(label).strip()
    if not is_address(url):
        yield run(f"{text} ({visible(url)})" if url and url != text else text, *styles)
        return
    host = url.removeprefix(_MAILTO).split("?")[0] if url.startswith(_MAILTO) else link_host(url)
    if not text:
        yield link(url, host, *styles)
    elif len(text) > _LONGEST_LABEL:
        yield run(f"{text} ", *styles)
        yield link(url, host, *styles)
    elif _is_its_address(text, url, host):
        yield link(url, text, *styles)
    else:
        code = ("code",) if all(element.get("style", {}).get("code") for element in label) else ()
        yield link(url, text, *styles, *code)
        yield run(f" ({host})", *styles)


def _is_its_address(text: str, url: str, host: str) -> bool:
    """Whether a label begins with the very host that its link leads to, so that it hides nothing."""
    if url.startswith(_MAILTO):
        return text in (url, host)
    origin = f"{url.split(':', 1)[0]}://{host}"
    return text in (host, origin) or text.startswith((f"{origin}/", f"{origin}?", f"{origin}#"))
