"""The fields of a form as inputs: what a platform's inputs cannot hold is left as it is, and named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeVar

from bot.domain import Form
from bot.safe_text import beginning_of_list, holds_unseen, sentences
from graph.interrupts import FieldType, FormField
from translations import gettext as _

LONGEST_FIELD_LABEL = 150
LONGEST_NUMBER = 15
"""Digits that a number keeps in everybody's JSON."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_YES = ("yes", "true", "on", "1")

InputT = TypeVar("InputT")


class NotShowableError(Exception):
    """No input of the platform can hold the value and give it back unchanged."""


@dataclass(frozen=True, slots=True)
class Drawn(Generic[InputT]):
    """A field and its input."""

    field: FormField
    input: InputT


@dataclass(frozen=True, slots=True)
class DrawnForm(Generic[InputT]):
    """A form's inputs, and what is not among them."""

    drawn: tuple[Drawn[InputT], ...]
    kept: tuple[FormField, ...]
    """The fields that stay as they are."""


def drawn_form(
    form: Form,
    draw: Callable[[FormField, Any], InputT],
    size_of: Callable[[InputT], int],
    *,
    most_bytes: int,
    most_inputs: int | None = None,
) -> DrawnForm[InputT]:
    """Returns an input for each field, in order, as many as there is space for. Raises nothing.

    Of several fields of one name the first counts, since the names tell inputs apart.

    Args:
        draw: makes the input for a field and its value. May raise `NotShowableError`.
        size_of: bytes of an input as JSON.
        most_bytes: of all inputs.
        most_inputs: how many there may be; `None`: any number.
    """
    drawn: list[Drawn[InputT]] = []
    kept: list[FormField] = []
    left = most_bytes
    each_once: dict[str, FormField] = {}
    for field in form.fields:
        each_once.setdefault(field.name, field)
    for field in each_once.values():
        try:
            made = draw(field, form.values.get(field.name, field.default))
        except NotShowableError:
            kept.append(field)
            continue
        size = size_of(made)
        if len(drawn) == most_inputs or size > left:
            kept.append(field)
        else:
            drawn.append(Drawn(field, made))
            left -= size
    return DrawnForm(tuple(drawn), tuple(kept))


def _wanted(kind: FieldType) -> list[str]:
    """What is to be typed where others pick."""
    match kind:
        case FieldType.DATE:
            return [_("A date, such as 2026-11-21.")]
        case FieldType.TIME:
            return [_("A time, such as 09:30.")]
        case FieldType.DATE_TIME:
            return [_("A date and time, such as 2026-11-21T09:30.")]
        case FieldType.NUMBER:
            return [_("A number.")]
        case FieldType.INTEGER:
            return [_("A whole number.")]
        case FieldType.YES_NO:
            return [_("Yes or no.")]
        case _:
            return []


def hint(field: FormField, value: Any, longest: int, *, is_text: bool, any_of: str = "") -> tuple[str, int]:
    """Returns what is said about an input, and how many characters of that are left out; nothing where nothing is.

    Args:
        longest: characters that are shown of it.
        is_text: whether people type into it what others pick.
        any_of: a sentence with `{options}`, for those of a JSON field; empty: that they are one of these.
    """
    hints = [field.help] if field.help.strip() else []
    unseen = 0
    if is_text:
        hints += _wanted(field.type)
        if field.options:
            options, unseen = beginning_of_list(field.options, ", ", longest)
            is_list = field.type is FieldType.JSON and any_of
            hints.append((any_of if is_list else _("One of: {options}.")).format(options=options))
        if isinstance(value, str) and holds_unseen(value):
            hints.append(_("Holds invisible characters: {value}").format(value=value))
    text, further = beginning_of_list(sentences(hints, longest), " ", longest)
    return text, unseen + further


def in_text(value: Any) -> str:
    """Returns a value as it stands in a text input. Raises `NotShowableError`."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "yes" if value else "no"
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except (TypeError, ValueError, RecursionError):
        raise NotShowableError from None


def has_lines(field: FormField, text: str) -> bool:
    """Returns whether a text input needs several lines."""
    return field.multiline or field.type is FieldType.JSON or "\n" in text or "\r" in text


def number_in(field: FormField, value: Any) -> int | float | None:
    """Returns the number that a number input can hold and give back; `None`: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if field.type is FieldType.INTEGER:
        if not float(value).is_integer():
            return None
        value = int(value)
    return None if len(str(value)) > LONGEST_NUMBER or "e" in str(value) else value


def is_date(value: Any) -> bool:
    """Returns whether it is a day written as `2026-11-21`."""
    try:
        return isinstance(value, str) and bool(_DATE.fullmatch(value)) and bool(date.fromisoformat(value))
    except ValueError:
        return False


def is_time(value: Any) -> bool:
    """Returns whether it is a time of day written as `09:30`."""
    return isinstance(value, str) and bool(_TIME.fullmatch(value))


def is_yes(value: Any) -> bool:
    """Returns whether a switch is on."""
    return value is True or (isinstance(value, str) and value.strip().lower() in _YES)


def listed(value: Any) -> list[str] | None:
    """Returns a list of texts, as it is or as JSON, empty for nothing; `None`: it is something else."""
    try:
        found = json.loads(value) if isinstance(value, str) and value else value
    except (ValueError, RecursionError):
        return None
    if found is None or found == "":
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else None


def option_titles(options: Sequence[str], write: Callable[[str], str]) -> list[str]:
    """Returns what is shown for each option, as `write` shortens it; numbered where two would read alike."""
    shown = [write(option) for option in options]
    if len(set(shown)) == len(shown):
        return shown
    return [write(f"{number}. {text}") for number, text in enumerate(shown, 1)]
