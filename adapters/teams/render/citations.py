"""What Teams shows with an answer: that a model made it, where its links lead, and what people think of it.

Source: Microsoft's "Enhance AI-generated bot messages".
"""

from __future__ import annotations

from typing import Any

from adapters.shared.wording import line
from bot.safe_text import link_host

MOST_CITATIONS = 20
"""In a message; Teams refuses more."""
_NAME = 80
_ABSTRACT = 160
_LONGEST_HOST = 50
"""Characters of a host that is shown whole beside a name."""
_LONGEST_URL = 500
"""Characters; twenty of them leave most of a message to its text."""


class Citations:
    """The sources of one message, numbered as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def copy(self) -> Citations:
        """The same sources, apart from these."""
        made = Citations()
        made._numbers, made._names = dict(self._numbers), list(self._names)
        return made

    def mark(self, name: str, url: str) -> str:
        """What stands behind a link: ` [1]`. Empty where the link is not made a source."""
        host = link_host(url)
        if not host or len(host) > _LONGEST_HOST or len(url) > _LONGEST_URL:
            return ""
        if url not in self._numbers:
            if len(self._numbers) == MOST_CITATIONS:
                return ""
            self._numbers[url] = len(self._numbers) + 1
            # The name is a link too, so that it says where that leads.
            self._names.append(host if name == host else line(f"{host}: {name}", _NAME))
        return f" [{self._numbers[url]}]"

    def entity(self) -> dict[str, Any]:
        """The entity of the message: Teams takes one, with the label and the sources."""
        made: dict[str, Any] = {
            "type": "https://schema.org/Message",
            "@type": "Message",
            "@context": "https://schema.org",
            "additionalType": ["AIGeneratedContent"],
        }
        sources = [
            _source(number, name, url) for (url, number), name in zip(self._numbers.items(), self._names, strict=True)
        ]
        return {**made, "citation": sources} if sources else made


def _source(number: int, name: str, url: str) -> dict[str, Any]:
    appearance = {
        "@type": "DigitalDocument",
        "name": name,
        "url": url,
        "abstract": line(f"A page at {link_host(url)}", _ABSTRACT),
    }
    return {"@type": "Claim", "position": number, "appearance": appearance}
