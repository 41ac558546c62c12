"""What a click gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settled:
    """The click settled it, or was counted."""

    text: str
    """One sentence for the person who clicked."""
    final: bool = True
    """False: the vote counts, and more are needed."""


@dataclass(frozen=True, slots=True)
class AlreadySettled:
    """Somebody (perhaps the same person) was earlier; nothing changed."""

    text: str


@dataclass(frozen=True, slots=True)
class Refused:
    """This person may not, or not now; nothing changed. Only the person who clicked sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no such thing; nothing changed."""

    text: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The form has mistakes; nothing changed and the input is kept."""

    errors: Mapping[str, str]
    """Field name → what is wrong and how to mend it; the key `""` is about the form as a whole."""


ClickResult = Settled | AlreadySettled | Refused | Unknown | Invalid
