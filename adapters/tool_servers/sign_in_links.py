"""Finds the link to sign in with in a result, where the operator said how one looks (`signIn` in `mcp.json`). Pure.

Nothing is guessed: a server without `signIn` says that somebody must sign in by its protocol (an HTTP challenge, URL
elicitation), or not at all. What a tool returns may be a stranger's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from adapters.tool_servers.config import SignInRule
from adapters.tool_servers.replies import is_web_link
from adapters.tool_servers.results import LONGEST_JSON

DEEPEST = 20
"""Levels of structured content that are looked into."""

_LINK = re.compile(r"https://[^\s<>\"'`\\|{}^]+", re.IGNORECASE)
_AFTER_A_LINK = ".,;:!?)]*_"


def sign_in_link(rule: SignInRule, content: Sequence[Any], structured: Any) -> str | None:
    """The link that a person shall sign in with; `None`: it is an ordinary result, or an ordinary error.

    The first link to the rule's host, in the first text that its pattern is found in.
    """
    for text in _texts(content, structured):
        if rule.pattern.search(text.encode("utf-8", "replace")):
            found = (match.group().rstrip(_AFTER_A_LINK) for match in _LINK.finditer(text))
            return next((url for url in found if _leads_to(rule.host, url)), None)
    return None


def _leads_to(host: str, url: str) -> bool:
    # The whole authority is compared, so neither a user name nor another port is let through.
    return is_web_link(url) and urlsplit(url).netloc.lower() == host


def _texts(content: Sequence[Any], structured: Any) -> Iterator[str]:
    for block in content:
        if not isinstance(block, Mapping):
            continue
        resource = block.get("resource")
        inner = resource.get("text") if isinstance(resource, Mapping) else None
        for text in (block.get("text"), block.get("uri"), inner):
            if isinstance(text, str):
                yield from _leaves(_value(text))
    yield from _leaves(structured)


def _value(text: str) -> Any:
    """Text that is JSON says what it means only when it is read: it may write `&` as `\\u0026`."""
    try:
        return json.loads(text) if len(text) <= LONGEST_JSON and text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping() if depth < DEEPEST:
            for each in value.values():
                yield from _leaves(each, depth + 1)
        case list() if depth < DEEPEST:
            for each in value:
                yield from _leaves(each, depth + 1)
        case _:
            return
