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
from translations import gettext as _
from translations import ngettext

_MOST_ERRORS = 50
_LONGEST_SENTENCE = 300
_LONGEST_REPEATED = 190
"""Characters of a sentence with the value itself in it, so that it is not cut."""
_LONGEST_PLACE = 100
_LONGEST_READ = 2_000
"""Characters of a message or a list of options that are looked at."""
_MOST_OPTIONS = 50
_MOST_NAMES = 100
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def mistakes(schema: Mapping[str, Any], arguments: Mapping[str, Any], fields: Collection[str]) -> dict[str, str]:
    """Field name → sentence for all that the schema does not accept; `""` gathers what belongs to no field.

    Raises nothing, and takes a bounded number of steps: a schema that cannot be used to check is a mistake of the form
    as a whole. Nothing is fetched for it, whatever it refers to.
    """
    try:
        if problem_of(schema):
            return {"": _uncheckable()}
        return _by_field(errors_in(schema, dict(arguments), formats=_formats(), most=_MOST_ERRORS), fields)
    except TooMuchError:
        return {"": _("This is too large to check. Make it smaller.")}
    except Exception:  # noqa: BLE001 - a foreign schema breaks the validator in more ways than it documents
        return {"": _uncheckable()}


def _uncheckable() -> str:
    return _("The tool’s description of its arguments is invalid, so edits can’t be checked. Approve or reject as is.")


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
            where = where if len(where) <= _LONGEST_PLACE else _("Within it")
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
        return [((*path, name), _("Required")) for name in missing]
    if error.validator in ("anyOf", "oneOf") and error.context:
        # "Not valid under any of the given schemas" helps nobody: tell of the first alternative that is not null.
        real = [inner for inner in error.context if inner.validator_value != "null"]
        return _told((real or error.context)[0])
    return [(path, _sentence(error))]


def _sentence(error: ValidationError) -> str:
    limit: Any = error.validator_value
    match error.validator:
        case "type":
            kinds = " / ".join(map(str, limit)) if isinstance(limit, list) else str(limit)
            return _("Must be of type {type}.").format(type=kinds)
        case "enum" if isinstance(limit, list):
            return _("Must be one of: {options}.").format(options=", ".join(map(str, limit[:_MOST_OPTIONS])))
        case str() as rule if bound := _bound(rule, limit):
            return bound
        case _:
            # It may repeat what is masked elsewhere, and half a secret is not recognised.
            short = len(error.message) <= _LONGEST_REPEATED
            if not short:
                return _("Doesn’t fit the tool’s description.")
            return _("Doesn’t fit the tool’s description: {reason}").format(reason=error.message)


def _bound(rule: str, limit: Any) -> str:  # noqa: PLR0912  # a sentence each
    """A limit in a sentence; empty: it is none of these."""
    match rule:
        case "minimum":
            sentence = _("Must be at least {limit}.")
        case "maximum":
            sentence = _("Must be at most {limit}.")
        case "exclusiveMinimum":
            sentence = _("Must be more than {limit}.")
        case "exclusiveMaximum":
            sentence = _("Must be less than {limit}.")
        case "multipleOf":
            sentence = _("Must be a multiple of {limit}.")
        case "minLength":
            sentence = ngettext(
                "Needs at least {limit} character.", "Needs at least {limit} characters.", _count(limit)
            )
        case "maxLength":
            sentence = ngettext("At most {limit} character.", "At most {limit} characters.", _count(limit))
        case "minItems":
            sentence = ngettext("Needs at least {limit} entry.", "Needs at least {limit} entries.", _count(limit))
        case "maxItems":
            sentence = ngettext("At most {limit} entry.", "At most {limit} entries.", _count(limit))
        case "pattern":
            sentence = _("Must match the pattern {limit}.")
        case "const":
            sentence = _("Must be {limit}.")
        case "format":
            sentence = _("Not a valid {limit}.")
        case "uniqueItems":
            sentence = _("Entries must differ.")
        case _:
            return ""
    return sentence.format(limit=limit)


def _count(limit: Any) -> int:
    return limit if isinstance(limit, int) else 2
