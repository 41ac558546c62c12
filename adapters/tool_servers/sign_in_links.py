"""Recognises that a server gave a link to sign in with in place of a result. Pure, whatever comes.

Servers that predate URL elicitation do so, in words meant for a model. The link is for one person, so no model and no
channel may see it. Recognised with care: a call that is taken for "not done yet" is made again. In an error a link and
words about signing in suffice; in a result the link must be all that it is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from adapters.tool_servers.replies import is_web_link

LONGEST_RESULT = 2_000
"""Characters of a result that may still be nothing but a request to sign in."""

LONGEST_AROUND_A_GRANT = 80
"""Characters beside a link that begins a grant, without any word of what it is for: more is a text that mentions it."""

MOST_LINKS = 3
"""Links of a result that may still be nothing but a request to sign in."""

_LINK = re.compile(r"https?://[^\s<>\"'`\\|{}^]+", re.IGNORECASE)
_AFTER_A_LINK = ".,;:!?)]*_"
_WORDS = re.compile(
    r"\b(?:sign(?:ed|ing)?[ -]?in|log(?:ged|ging)?[ -]?in|re-?auth\w*|authori[sz]\w*|authenticat\w*|unauthori[sz]ed"
    r"|unauthenticated|oauth|consent|grant(?:ed|ing)? access|(?:connect|link)(?:ing)? (?:your|an|the) \w+)\b",
    re.IGNORECASE,
)
_ACT = r"(?:sign[ -]?in|log[ -]?in|re-?auth\w*|authori[sz]e|authenticate|connect|grant access|give (?:your )?consent)"
_NEED = re.compile(
    rf"\b(?:please|must|need(?:s|ed)? to|have to|has to|required to|first|before) (?:\w+ ){{0,3}}{_ACT}\b"
    rf"|\b{_ACT}\b(?: \w+){{0,3}} (?:first|to continue|to proceed|and (?:then )?(?:try|retry))\b"
    r"|\b(?:sign[ -]?in|log[ -]?in|authentication|authori[sz]ation|consent)(?: is)? (?:required|needed)\b"
    r"|\bauth(?:entication|ori[sz]ation)?[ _-](?:is )?(?:required|needed)\b"
    r"|\b(?:not (?:yet )?(?:signed[ -]in|logged[ -]in|authenticated|authori[sz]ed|connected)"
    r"|unauthori[sz]ed|unauthenticated)\b",
    re.IGNORECASE,
)
"""What is said when nothing was done."""
_DID = re.compile(
    r"\b(?:created|saved|sent|deleted|removed|updated|booked|scheduled|posted|uploaded|ordered)\b", re.IGNORECASE
)
"""What is said when something was: made again after "created; please sign in to see it", the call creates twice."""
_DID_NOT = re.compile(
    r"\b(?:no|not|nothing|none|never|cannot|unable|fail\w*|be|before|until|once|after|when|if|unless)\b|n't\b",
    re.IGNORECASE,
)
"""What stands before it in a sentence that says the opposite."""
_END_OF_SENTENCE = re.compile(r"[.!?;\n]")
_PLACES = re.compile(
    r"(?:^|[/._-])(?:o?auth2?|authori[sz]e|authori[sz]ation|authenticate|sign-?in|log-?in|sso|consent|connect|device)"
    r"(?:$|[/._-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link in place of a result."""

    url: str = field(repr=False)
    said: str
    """What the server said around it, without any link."""


def link_in_error(content: Sequence[Any], structured: Any) -> Link | None:
    """The link that a person shall sign in with, by an error; `None`: it is another error."""
    texts = list(_texts(content, structured))
    links = (_link(texts, url) for url in _links(texts) if _is_for_signing_in(url))
    return next((link for link in links if _begins_a_grant(link.url) or _WORDS.search(link.said)), None)


def link_in_result(content: Sequence[Any], structured: Any) -> Link | None:
    """The link that a person shall sign in with, when a result is nothing but that; `None`: it is a result."""
    texts = list(_texts(content, structured))
    urls = _links(texts)
    # Beside the beginning of a grant, which is one for certain, there may be some help.
    chosen = [url for url in urls if _begins_a_grant(url)] or urls
    if len(chosen) != 1 or len(urls) > MOST_LINKS or sum(map(len, set(texts))) - 2 * len(chosen[0]) > LONGEST_RESULT:
        return None
    link = _link(texts, chosen[0])
    if not _is_for_signing_in(link.url) or _something_was_done(link.said):
        return None
    alone = _begins_a_grant(link.url) and len(link.said) <= LONGEST_AROUND_A_GRANT
    return link if alone or _NEED.search(link.said) else None


def _something_was_done(said: str) -> bool:
    sentences = ((sentence, _DID.search(sentence)) for sentence in _END_OF_SENTENCE.split(said))
    return any(did and not _DID_NOT.search(sentence[: did.start()]) for sentence, did in sentences)


def without_links(text: str) -> str:
    """The text without any link: for what everybody sees while a tool runs."""
    return _LINK.sub("(link)", text)


def asks_to_sign_in(texts: Sequence[str]) -> bool:
    """Whether a question holds a link to sign in with: everybody in the thread would see it."""
    return link_in_error([{"text": text} for text in texts], None) is not None


def _link(texts: Sequence[str], url: str) -> Link:
    said = " ".join(dict.fromkeys(_LINK.sub("(link)", text) for text in texts))
    return Link(url, said)


def _links(texts: Sequence[str]) -> list[str]:
    found = (match.group().rstrip(_AFTER_A_LINK) for text in texts for match in _LINK.finditer(text))
    return list(dict.fromkeys(url for url in found if is_web_link(url)))


def _is_for_signing_in(url: str) -> bool:
    parts = urlsplit(url)
    return _begins_a_grant(url) or _PLACES.search(f"{parts.hostname or ''}{parts.path}") is not None


def _begins_a_grant(url: str) -> bool:
    """Whether it is an authorisation request by RFC 6749, 4.1.1."""
    try:
        asked = parse_qs(urlsplit(url).query, max_num_fields=100)
    except ValueError:
        return False
    return "client_id" in asked and not {"response_type", "redirect_uri"}.isdisjoint(asked)


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
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


def _leaves(value: Any, depth: int = 0) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping() if depth < 20:
            for each in value.values():
                yield from _leaves(each, depth + 1)
        case list() if depth < 20:
            for each in value:
                yield from _leaves(each, depth + 1)
        case _:
            return
