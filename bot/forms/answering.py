"""The answer to a clarification's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.forms.typed import EntryError, FormErrors, is_empty, typed_value
from graph.fields import FormField


def read_answers(fields: Sequence[FormField], values: Mapping[str, Any]) -> dict[str, Any] | FormErrors:
    """The values by field name, each of its field's type. Raises nothing.

    Optional fields that were left empty are left out.
    """
    known = {field.name: field for field in fields}
    foreign = [str(name) for name in values if name not in known]
    if foreign:
        return FormErrors({"": f"This was not asked for: {', '.join(foreign)[:200]}."})
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, field in known.items():
        entry = values.get(name)
        if is_empty(entry):
            if field.required:
                errors[name] = "This is needed."
            continue
        try:
            answers[name] = typed_value(field.type, entry, {option: option for option in field.options})
        except EntryError as error:
            errors[name] = str(error)
    return FormErrors(errors) if errors else answers
