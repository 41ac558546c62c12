"""Saying no in a sentence that a model can act on and a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError


class Refused(Exception):  # noqa: N818 - it is an answer, not a defect
    """The call cannot be done as asked, and nothing was changed. Its text is one sentence for people."""


def refusal_of(error: ValidationError) -> str:
    """Every mistake in a call's arguments, one sentence each, on one line."""
    return " ".join(_sentence(mistake) for mistake in error.errors(include_url=False))


def unknown_arguments(given: Sequence[str], known: Sequence[str]) -> str:
    """The sentence for arguments that the tool does not have."""
    names = ", ".join(f"“{name}”" for name in given)
    return f"Unknown argument {names}: this tool takes {', '.join(known) or 'none'}."


def _sentence(mistake: Any) -> str:
    name = ".".join(str(part) for part in mistake["loc"]) or "arguments"
    limits = mistake.get("ctx", {})
    match mistake["type"]:
        case "missing":
            return f"“{name}” is missing: give it a value."
        case "string_too_short":
            return f"“{name}” is empty: give it some text."
        case "string_too_long":
            return f"“{name}” is too long: {len(mistake['input'])} characters, at most {limits['max_length']} fit."
        case "too_long":
            return f"“{name}” has too many entries: at most {limits['max_length']} fit."
        case "uuid_parsing" | "uuid_type":
            return f"“{name}” is not an id: take the “id” (a UUID) from a list."
        case "literal_error":
            return f"“{name}” must be {limits['expected']}."
        case "value_error":
            return f"“{name}”: {limits['error']}"
        case _:
            return f"“{name}”: {mistake['msg']}."
