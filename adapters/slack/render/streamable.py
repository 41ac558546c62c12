"""A model's text while it is being written, as Markdown for a stream (`markdown_text`).

Slack parses it, so it is defused rather than parsed: what is streamed is shown for seconds only. Where that changed
anything (`file.py` and `evil.example` both get a blank, since either may be a host), the finished post replaces the
stream with what `markdown` makes of the text as it was written; a stream stays only where it reads as that does.
Nothing in it may ping, load an image, or hide where a link leads. Nor may anything in it be an address: a stream
cannot be told not to unfurl, and Slack, which fetches what it unfurls, would carry out whatever a prompt was made to
write into it.
"""

from __future__ import annotations

import re

from adapters.slack.render.words import escape
from bot.safe_text import visible

_LINK = re.compile(
    r"!?\[(?P<label>[^\[\]]*)\]\(\s*(?P<url>(?:https?://|mailto:)[^\s()]+)(?:\s[^()]*)?\)", re.IGNORECASE
)
"""A whole link or image; both are shown as "label (address)"."""
_HALF_LINK = re.compile(r"\](?=[(\[:])")
"""Where Markdown would join a label to an address, wherever the rest of it is. A space in between undoes that."""
_BARE_SITE = re.compile(r"(?<=\w)[.\u3002\uff0e\uff61](?=[^\W\d_]{2}|xn--)", re.IGNORECASE)
"""The dot before what could be the last part of a host: Slack makes links of addresses without a scheme, too."""
_CALL_TO_ALL = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)


def streamable(text: str) -> str:
    """The text, perhaps cut anywhere, safe to append to a stream. Raises nothing.

    Line by line, so that what was streamed stays true: when `a` ends in a newline, `streamable(a + b)` begins with
    `streamable(a)`.
    """
    return "\n".join(map(_line, text.replace("\r\n", "\n").split("\n")))


def _line(text: str) -> str:
    if not text:
        return text
    shown = _LINK.sub(lambda found: f"{found['label']} ({found['url']})".lstrip(), visible(text))
    shown = _BARE_SITE.sub(r"\g<0> ", _HALF_LINK.sub("] ", shown).replace("://", ": //"))
    return escape(_CALL_TO_ALL.sub("@ ", shown))
