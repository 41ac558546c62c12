"""Arguments checked against a tool's input schema, with mistakes as sentences that say what to correct.

Imported only when a form is checked: jsonschema takes 0.2 s to load.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import Any

from jsonschema import ValidationError

from bot.forms.values import parse_date, parse_date_time, parse_time
from bot.safe_text import one_line
from bot.schemas.measuring import problem_of
from bot.schemas.validating import Format, TooMuchError, errors_in

# Arguments against a tool's input schema, in sentences that say what to mend.
#
# Imported only when a form is checked: jsonschema takes 0.2 s to load.
_MOST_ERRORS = 50
_LONGEST_SENTENCE = 300
_LONGEST_REPEATED = 190
"""Characters of a sentence with the value itself in it, so that it is not cut."""
_LONGEST_PLACE = 100
_LONGEST_READ = 2_000
"""Characters of a message or a list of options that are looked at."""
_MOST_OPTIONS = 50
_MOST_NAMES = 100
_UNCHECKABLE = (
    "The tool's own description of its arguments is not valid, so changes cannot be checked. "
    "Approve it as it is, or reject it."
)
_TOO_MUCH = "This is too large to be checked against the tool's own description of its arguments. Make it smaller."
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_BOUNDS = {
    "minimum": "Must be at least {}.",
    "maximum": "Must be at most {}.",
    "exclusiveMinimum": "Must be more than {}.",
    "exclusiveMaximum": "Must be less than {}.",
    "multipleOf": "Must be a multiple of {}.",
    "minLength": "Needs at least {} characters.",
    "maxLength": "May have at most {} characters.",
    "minItems": "Needs at least {} entries.",
    "maxItems": "May have at most {} entries.",
    "pattern": "Must match the pattern {}.",
    "const": "Must be {}.",
    "format": "Is not a valid {}.",
}


def mistakes(schema: Mapping[str, Any], arguments: Mapping[str, Any], fields: Collection[str]) -> dict[str, str]:
    """Field name → sentence for all that the schema does not accept; `""` gathers what belongs to no field.

    Raises nothing, and takes a bounded number of steps: a schema that cannot be used to check is a mistake of the form
    as a whole. Nothing is fetched for it, whatever it refers to.
    """
    try:
        if problem_of(schema):
            return {"": _UNCHECKABLE}
        return _by_field(errors_in(schema, dict(arguments), formats=_formats(), most=_MOST_ERRORS), fields)
    except TooMuchError:
        return {"": _TOO_MUCH}
    except Exception:  # noqa: BLE001 - a foreign schema breaks the validator in more ways than it documents
        return {"": _UNCHECKABLE}


def _by_field(errors: Iterable[ValidationError], fields: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    told_already = set()
    for error in errors:
        for path, sentence in _told(error):
            if (path, sentence) in told_already:
                continue
            told_already.add((path, sentence))
            field = str(path[0]) if path and path[0] in fields else ""
            where = " › ".join(map(str, path[1:] if field else path))
            where = where if len(where) <= _LONGEST_PLACE else "Within it"
            told = one_line((f"{where}: {sentence}" if where else sentence)[:_LONGEST_READ], _LONGEST_SENTENCE)
            if field not in found:
                found[field] = told
            elif field == "":
                both = f"{found['']} {told}"
                found[""] = both if len(both) <= _LONGEST_SENTENCE else found[""]
    return found


@cache
def _formats() -> Mapping[str, Format]:
    """The formats that forms check, dates and times as `bot.forms.values` reads them."""
    return {
        "date": lambda text: parse_date(text) is not None,
        "date-time": lambda text: parse_date_time(text) is not None,
        "email": lambda text: "@" in text,
        "ipv4": partial(_is_read_by, ipaddress.IPv4Address),
        "ipv6": partial(_is_read_by, ipaddress.IPv6Address),
        "time": lambda text: parse_time(text) is not None,
        "uuid": lambda text: _UUID.fullmatch(text) is not None,
    }


def _is_read_by(reader: Callable[[str], object], text: str) -> bool:
    try:
        reader(text)
    except ValueError:
        return False
    return True


def _told(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Where and what: one for each missing name, else one."""
    path = tuple(error.absolute_path)
    instance: Any = error.instance
    if error.validator == "required" and isinstance(error.validator_value, list):
        missing = [name for name in error.validator_value[:_MOST_NAMES] if name not in instance]
        return [((*path, name), "This is needed.") for name in missing]
    if error.validator in ("anyOf", "oneOf") and error.context:
        # "Not valid under any of the given schemas" helps nobody: tell of the first alternative that is not null.
        real = [inner for inner in error.context if inner.validator_value != "null"]
        return _told((real or error.context)[0])
    return [(path, _sentence(error))]


def _sentence(error: ValidationError) -> str:
    limit: Any = error.validator_value
    match error.validator:
        case "type":
            return f"Must be of type {' or '.join(limit) if isinstance(limit, list) else limit}."
        case "enum" if isinstance(limit, list):
            return f"Must be one of: {', '.join(map(str, limit[:_MOST_OPTIONS]))}."
        case str() as rule if rule in _BOUNDS:
            return _BOUNDS[rule].format(limit)
        case _:
            # It may repeat what is masked elsewhere, and half a secret is not recognised.
            return error.message if len(error.message) <= _LONGEST_REPEATED else "Does not fit the tool's description."
