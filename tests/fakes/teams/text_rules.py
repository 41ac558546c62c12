"""Markdown as Teams reads it: what a text must not turn into.

In cards a subset of Markdown is active (no code, no HTML); in messages all of it, and some HTML. Every text is read
both ways, since clients differ.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from bot.safe_text import link_host

_CODE = ("backticks", "code", "fence")
_ADDRESS = re.compile(r"https?://([^\s/?#\\]*)", re.IGNORECASE)
_CITED = re.compile(r"^\s*(?:\[\d+\]\s*)*")
_AT = re.compile(r"<\s*/?\s*at\b[^>]*>", re.IGNORECASE)


def _reads_any_link(parser: MarkdownIt) -> MarkdownIt:
    """Also links that run something: they are what we look for."""

    def leads_anywhere(url: str) -> bool:
        return True

    parser.validateLink = leads_anywhere  # type: ignore[method-assign]  # markdown-it documents it as the way
    return parser


_WHOLE = _reads_any_link(MarkdownIt("commonmark", {"html": True}).enable(["strikethrough", "table"]))
_NO_CODE = _reads_any_link(MarkdownIt("commonmark", {"html": False}).disable([*_CODE, "html_block", "html_inline"]))


def card_text_mistakes(text: str) -> Iterator[str]:
    """What is wrong with the Markdown of a `TextBlock`, a fact or a label."""
    found = {mistake for parser in (_WHOLE, _NO_CODE) for mistake in _links_and_images(parser, text)}
    yield from sorted(found)


def message_text_mistakes(text: str, mentions: Collection[str] = ()) -> Iterator[str]:
    """What is wrong with the Markdown of a message. `mentions`: the `<at>…</at>` for which it has an entity."""
    for mention in mentions:
        if mention not in text:
            yield f"the mention {mention!r} is not in the text"
        text = text.replace(mention, "somebody")
    if _AT.search(text):
        yield "<at> without an entity"
    yield from sorted(set(_links_and_images(_WHOLE, text)))
    yield from sorted({f"HTML: {node.content[:40]!r}" for node in _nodes(_WHOLE, text) if "html" in node.type})


def _links_and_images(parser: MarkdownIt, text: str) -> Iterator[str]:
    for node in _nodes(parser, text):
        if node.type == "image":
            yield f"an image of {node.attrs.get('src')}"
        elif node.type == "link":
            yield from _hidden(node)


def _hidden(node: SyntaxTreeNode) -> Iterator[str]:
    """A link has to show where it leads: in its label, or in brackets behind it."""
    url = str(node.attrs.get("href", ""))
    label, behind = _words(node), _CITED.sub("", _behind(node))
    if url.startswith("mailto:"):
        address = url.removeprefix("mailto:").split("?")[0]
        if address not in label and not behind.startswith(f"({address})"):
            yield f"a link that does not show {address}"
        return
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield f"a link to {url!r}"
        return
    hosts = {parts.hostname, link_host(url)} - {""}
    shows = any(host in label.lower() or behind.lower().startswith(f"({host})") for host in hosts)
    if not shows:
        yield f"a link that does not show its host {parts.hostname}"
    for other in _ADDRESS.findall(label):
        if urlsplit(f"//{other}").hostname not in hosts:
            yield f"a link to {parts.hostname} that looks like one to {other}"


def _behind(node: SyntaxTreeNode) -> str:
    """The text that follows on the same line."""
    words, following = "", node.next_sibling
    while following is not None and following.type not in ("softbreak", "hardbreak"):
        words += _words(following)
        following = following.next_sibling
    return words


def _words(node: SyntaxTreeNode) -> str:
    return node.content or "".join(map(_words, node.children))


def _nodes(parser: MarkdownIt, text: str) -> Iterator[SyntaxTreeNode]:
    yield from SyntaxTreeNode(parser.parse(text)).walk()
