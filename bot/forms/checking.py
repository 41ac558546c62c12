"""Arguments against a tool's input schema, in sentences that say what to mend.

Imported only when a form is checked: jsonschema takes 0.2 s to load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry

from bot.forms.moments import parse_date_time, parse_time
from bot.safe_text import one_line

_MOST_ERRORS = 50
_LONGEST_SENTENCE = 300
_UNCHECKABLE = (
    "The tool's own description of its arguments is not valid, so changes cannot be checked. "
    "Approve it as it is, or reject it."
)
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

    Raises nothing: a schema that cannot be used to check is a mistake of the form as a whole. Nothing is fetched for
    it, whatever it refers to.
    """
    try:
        return _by_field(_errors(dict(schema), arguments), fields)
    except Exception:  # noqa: BLE001 - a foreign schema breaks the validator in more ways than it documents
        return {"": _UNCHECKABLE}


def _errors(schema: dict[str, Any], arguments: Mapping[str, Any]) -> list[ValidationError]:
    validator_class = validator_for(schema, default=Draft202012Validator)
    validator_class.check_schema(schema)
    # An empty registry: without one jsonschema would fetch what a schema refers to.
    validator = validator_class(schema, format_checker=_formats(), registry=Registry())
    return list(islice(validator.iter_errors(arguments), _MOST_ERRORS))


def _by_field(errors: Iterable[ValidationError], fields: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for error in errors:
        for path, sentence in _told(error):
            field = str(path[0]) if path and path[0] in fields else ""
            where = " › ".join(map(str, path[1:] if field else path))
            told = one_line(f"{where}: {sentence}" if where else sentence, _LONGEST_SENTENCE)
            if field not in found:
                found[field] = told
            elif field == "":
                found[""] = one_line(f"{found['']} {told}", _LONGEST_SENTENCE)
    return found


@cache
def _formats() -> FormatChecker:
    """The standard formats, with dates and times as forms write them (see `moments`)."""
    checker = FormatChecker()
    checker.checks("date-time")(lambda value: not isinstance(value, str) or parse_date_time(value) is not None)
    checker.checks("time")(lambda value: not isinstance(value, str) or parse_time(value) is not None)
    return checker


def _told(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Where and what: one for each missing name, else one."""
    path = tuple(error.absolute_path)
    instance: Any = error.instance
    if error.validator == "required" and isinstance(error.validator_value, list):
        missing = [name for name in error.validator_value if name not in instance]
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
            return f"Must be one of: {', '.join(map(str, limit))}."
        case str() as rule if rule in _BOUNDS:
            return _BOUNDS[rule].format(limit)
        case _:
            return error.message
