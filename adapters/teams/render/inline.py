"""The inside of a Markdown paragraph → runs of text: styles, code, links that show their host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from markdown_it.tree import SyntaxTreeNode

from bot.safe_text import link_host, visible

LONGEST_URL = 2_000
"""Characters of a link's address; browsers and proxies take no much longer ones."""
_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}
_LONGEST_LABEL = 300
"""Characters of a link's text; a longer label stands before its link."""
_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"'`|\\^{}⟨⟩]+", re.IGNORECASE)
_END_OF_SENTENCE = ".,;:!?*_~'\""
_MAILTO = "mailto:"


@dataclass(frozen=True, slots=True)
class Run:
    """Some characters in one style. They are visible, and none of them is markup."""

    text: str
    styles: frozenset[str] = frozenset()
    """Of `bold`, `italic`, `strike`, `code`."""
    url: str = ""
    host: str = ""
    """Where the link leads, when its text does not say it: shown behind it."""


Runs = tuple[Run, ...]


def inline(node: SyntaxTreeNode) -> Runs:
    """What a paragraph, heading or table cell says."""
    return joined(run for child in node.children for run in _run(child, frozenset()))


def joined(runs: Iterable[Run]) -> Runs:
    """The runs without empty ones, neighbours of the same style as one."""
    made: list[Run] = []
    for run in runs:
        if made and not run.url and not made[-1].url and run.styles == made[-1].styles:
            made[-1] = replace(run, text=made[-1].text + run.text)
        elif run.text:
            made.append(run)
    return tuple(made)


def styled(runs: Iterable[Run], style: str) -> Runs:
    """The runs, all of them also in this style."""
    return joined(replace(run, styles=run.styles | {style}) for run in runs)


def words_of(runs: Iterable[Run]) -> str:
    """The text of runs with the hosts of links, without styles and addresses."""
    return "".join(f"{run.text} ({run.host})" if run.host else run.text for run in runs)


def _run(node: SyntaxTreeNode, styles: frozenset[str]) -> Iterator[Run]:
    match node.type:
        case "text":
            yield from _text(node.content, styles)
        case "softbreak" | "hardbreak":
            yield Run("\n", styles)
        case "code_inline":
            yield Run(visible(node.content), styles | {"code"})
        case "link":
            yield from _link(str(node.attrs.get("href", "")), joined(_children(node, frozenset())), styles)
        case "image":
            # Nothing is loaded that nobody asked for: an image is a link to it.
            yield from _link(str(node.attrs.get("src", "")), (Run(visible(node.content)),), styles)
        case kind if kind in _STYLES:
            yield from _children(node, styles | {_STYLES[kind]})
        case _:
            yield Run(visible(node.content), styles)


def _children(node: SyntaxTreeNode, styles: frozenset[str]) -> Iterator[Run]:
    for child in node.children:
        yield from _run(child, styles)


def _text(text: str, styles: frozenset[str]) -> Iterator[Run]:
    """Text, with addresses written out in it made links."""
    text = visible(text)
    end = 0
    for found in _ADDRESS.finditer(text):
        url = _without_end_of_sentence(found[0])
        if not is_address(url):
            continue
        yield Run(text[end : found.start()], styles)
        yield from _link(url, (Run(url),), styles)
        end = found.start() + len(url)
    yield Run(text[end:], styles)


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


def _link(url: str, label: Runs, styles: frozenset[str]) -> Iterator[Run]:
    """A link as "label (host)", or as the address alone where that is its label."""
    text = words_of(label).strip()
    if not is_address(url):
        yield Run(f"{text} ({visible(url)})" if url and url != text else text, styles)
        return
    host = url.removeprefix(_MAILTO).split("?")[0] if url.startswith(_MAILTO) else link_host(url)
    if not text:
        yield Run(host, styles, url)
    elif len(text) > _LONGEST_LABEL:
        yield Run(f"{text} ", styles)
        yield Run(host, styles, url)
    elif _is_its_address(text, url, host):
        yield Run(text, styles, url)
    else:
        yield Run(" ".join(text.split()), styles, url, host)


def _is_its_address(text: str, url: str, host: str) -> bool:
    """Whether a label begins with the very host that its link leads to, so that it hides nothing."""
    if url.startswith(_MAILTO):
        return text in (url, host)
    origin = f"{url.split(':', 1)[0]}://{host}"
    return text in (host, origin) or text.startswith((f"{origin}/", f"{origin}?", f"{origin}#"))
