"""Links in a model's text: addresses written out, which of them may be offered, and whether a label hides its host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.safe_text import link_host

LONGEST_LABEL = 300
"""Characters of a link's text; a longer label stands before its link."""
_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"'`|\\^{}⟨⟩]+", re.IGNORECASE)
_END_OF_SENTENCE = ".,;:!?*_~'\""
_MAILTO = "mailto:"


def addresses_in(text: str) -> Iterator[tuple[int, str]]:
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
