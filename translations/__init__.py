"""The language of what people read.

English sentences stand in the code where they are used, and are translated there, when they are shown:
`_("Approved by {names}").format(names=…)`. What several people see is in the language that the operator chose
(`LANGUAGE`), what one person sees is in theirs: whoever writes for one person does so within `in_language`. A task
inherits the language of whoever began it. Nothing here knows anything of the product: every package may import it.

`make translations` writes the sentences of the code into the catalogues, `{language}.po`, and what is made of these:
`{language}.mo`, and the page's own sentences, `adapters/web/static/sentences.{language}.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from pathlib import Path

SOURCE = "en"
"""The language of the sentences in the code."""
FOLDER = Path(__file__).parent
NAMES: Mapping[str, str] = {SOURCE: "English", "de": "Deutsch"}
"""The languages that there are, under the names that their speakers know."""
_WANTED = re.compile(r"[A-Za-z]{2,8}")
_MOST_WANTED = 20
"""Languages of a list that are looked at."""
_language: ContextVar[str] = ContextVar("language", default=SOURCE)
_shared: ContextVar[str] = ContextVar("shared language", default=SOURCE)


def gettext(sentence: str) -> str:
    """Returns a sentence in the language of whoever reads it; in English where it has no translation."""
    name = _language.get()
    return sentence if name == SOURCE else catalogue(name).gettext(sentence)


def ngettext(one: str, many: str, count: int) -> str:
    """Returns the form of a sentence that goes with a count, likewise."""
    name = _language.get()
    if name == SOURCE:
        return one if count == 1 else many
    return catalogue(name).ngettext(one, many, count)


def marked(sentence: str) -> str:
    """Returns a sentence as it is, to be translated by `gettext` when it is shown: for constants. Import it as `N_`."""
    return sentence


def language() -> str:
    """Returns the language that is written in now, such as `en` or `de`."""
    return _language.get()


@contextmanager
def in_language(name: str) -> Iterator[None]:
    """Within it, sentences, dates and numbers are written in that language. `name`: a key of `NAMES`."""
    token = _language.set(name)
    try:
        yield
    finally:
        _language.reset(token)


@contextmanager
def in_shared_language() -> Iterator[None]:
    """Within it, sentences are in the language of what several people see: for what is kept or sent, whoever's click
    led to it."""
    with in_language(_shared.get()):
        yield


def write_in(name: str) -> None:
    """From now on, what this task and those that it begins write for several people is in that language. `name`: a key
    of `NAMES`."""
    _language.set(name)
    _shared.set(name)


def choose(*wanted: str | None) -> str:
    """Returns the first language that there is, of what somebody wants: names of locales (`de-AT`, `de_DE.UTF-8`),
    values of `Accept-Language`, lists with colons as in the environment. The one that is written in now, where none of
    them is there."""
    for each in wanted:
        for part in re.split(r"[,:]", each or "", maxsplit=_MOST_WANTED)[:_MOST_WANTED]:
            found = _WANTED.match(part.strip())
            if found and found[0].lower() in NAMES:
                return found[0].lower()
    return language()


@cache
def catalogue(name: str) -> NullTranslations:
    """Returns the translations into a language. Reading them takes some milliseconds the first time."""
    with (FOLDER / f"{name}.mo").open("rb") as compiled:
        return GNUTranslations(compiled)


def load() -> None:
    """Reads all catalogues, before anybody waits for one."""
    for name in NAMES:
        if name != SOURCE:
            catalogue(name)
