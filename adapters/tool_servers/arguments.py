"""Checks a call's arguments against the tool's input schema, before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from adapters.tool_servers.text import one_line

LONGEST_COMPLAINT = 300
"""Characters."""

MOST_COMPLAINTS = 3


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why `schema` cannot be used as an input schema; `None`: it can."""
    dialect = _validator_class(schema)
    try:
        # Not `check_schema`: it refuses patterns that only JavaScript knows.
        error = next(dialect(dialect.META_SCHEMA).iter_errors(schema), None)
    except (RecursionError, TypeError, ValueError, Unresolvable, re.error):
        return "its input schema cannot be understood"
    return None if error is None else f"its input schema is not valid: {one_line(error.message, LONGEST_COMPLAINT)}"


def complaint_about(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, naming them; `None`: nothing.

    Formats (`date-time`, `uri`…) are annotations in JSON Schema and are left to the server. References to other
    documents are never followed.
    """
    registry: Registry[Any] = Registry()
    validator = _validator_class(schema)(schema, registry=registry)
    try:
        errors = sorted(validator.iter_errors(arguments), key=lambda error: [str(part) for part in error.absolute_path])
    except (Unresolvable, jsonschema.exceptions.UnknownType, re.error):
        return None  # a reference elsewhere, or a pattern that only JavaScript knows: the server checks for itself
    except RecursionError:
        return "they are nested too deeply"
    sentences = [_sentence(error) for error in errors[:MOST_COMPLAINTS]]
    if len(errors) > MOST_COMPLAINTS:
        sentences.append(f"and {len(errors) - MOST_COMPLAINTS} more")
    return "; ".join(sentences) or None


def _validator_class(schema: Mapping[str, Any]) -> type[Validator]:
    # 2020-12 is what MCP means when a schema does not say (specification 2025-11-25, "JSON Schema usage")
    dialect = {"$schema": schema["$schema"]} if isinstance(schema.get("$schema"), str) else {}
    return validator_for(dialect, default=jsonschema.Draft202012Validator)


def _sentence(error: jsonschema.ValidationError) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    if error.validator == "required":
        # one error for each missing name, which only the message tells: "'start' is a required property"
        names: Any = error.validator_value
        missing = next((name for name in names if error.message.startswith(repr(name))), "something")
        return f'"{one_line(f"{path}.{missing}".lstrip("."), 100)}" is missing'
    complaint = one_line(error.message, LONGEST_COMPLAINT)
    return f'"{one_line(path, 100)}": {complaint}' if path else complaint
