"""Checks a call's arguments against the tool's input schema, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema

from adapters.tool_servers.redaction import Redact, unchanged
from adapters.tool_servers.text import one_line
from bot.schemas.validating import TooMuchError, UncheckableError, errors_in

LONGEST_COMPLAINT = 300
"""Characters."""

LONGEST_READ = 2_000
"""Characters of a message that is told: it repeats the value, which may be long."""

MOST_COMPLAINTS = 3

MOST_ERRORS = 50
"""What is counted of them."""


def complaint_about(arguments: Mapping[str, Any], schema: Mapping[str, Any], redact: Redact = unchanged) -> str | None:
    """What is wrong with the arguments, naming them; `None`: nothing. Takes a bounded number of steps. What it repeats
    of them passes `redact` before it is cut: half a secret is not recognised.

    Formats (`date-time`, `uri`…) are annotations in JSON Schema and are left to the server, and so is all that cannot
    be checked here. References to other documents are never followed.
    """
    try:
        errors = errors_in(schema, dict(arguments), formats={}, most=MOST_ERRORS)
    except UncheckableError:
        return None  # a reference elsewhere: the server checks for itself
    except TooMuchError:
        return "they are too large to be checked against it; do it in smaller parts"
    except RecursionError:
        return "they are nested too deeply"
    errors.sort(key=lambda error: [str(part) for part in error.absolute_path])
    sentences = [_sentence(error, redact) for error in errors[:MOST_COMPLAINTS]]
    if len(errors) > MOST_COMPLAINTS:
        more = "at least " if len(errors) == MOST_ERRORS else ""
        sentences.append(f"and {more}{len(errors) - MOST_COMPLAINTS} more")
    return "; ".join(sentences) or None


def _sentence(error: jsonschema.ValidationError, redact: Redact) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    if error.validator == "required":
        # one error for each missing name, which only the message tells: "'start' is a required property"
        names: Any = error.validator_value
        missing = next((name for name in names if error.message.startswith(repr(name))), "something")
        return f'"{_told(f"{path}.{missing}".lstrip("."), 100, redact)}" is missing'
    complaint = _told(error.message, LONGEST_COMPLAINT, redact) or f"it does not fit “{error.validator}”"
    return f'"{_told(path, 100, redact)}": {complaint}' if path else complaint


def _told(text: str, limit: int, redact: Redact) -> str:
    """At most `limit` characters of a text without secrets; nothing of one that is too long to be looked through."""
    return one_line(redact(text), limit) if len(text) <= LONGEST_READ else ""
