"""The language of what people read.

English sentences stand in the code where they are used, and are translated there, when they are shown:
`_("Approved by {names}, {time}").format(…)`. What several people see is in the language that the operator chose
(`LANGUAGE`), what one person sees is in theirs: whoever writes for one person does so within `in_language`. A task
inherits the language of whoever began it. Nothing here knows anything of the product: every package may import it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SOURCE = "en"
"""The language of the sentences in the code."""
_language: ContextVar[str] = ContextVar("language", default=SOURCE)


def gettext(sentence: str) -> str:
    """Returns a sentence in the language of whoever reads it."""
    return sentence


def ngettext(one: str, many: str, count: int) -> str:
    """Returns the form of a sentence that goes with a count, in the language of whoever reads it."""
    return one if count == 1 else many


def language() -> str:
    """Returns the language that is written in now, such as `en` or `de`."""
    return _language.get()


@contextmanager
def in_language(name: str) -> Iterator[None]:
    """Within it, sentences, dates and numbers are written in that language. One that there is no catalogue of is
    English."""
    token = _language.set(name)
    try:
        yield
    finally:
        _language.reset(token)
