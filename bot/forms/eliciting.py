"""The answer to a question that a tool put (MCP's form elicitation): typed by its form, checked by its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.forms.answering import read_answers
from bot.forms.inputs import inputs
from bot.forms.shapes import as_mapping
from bot.forms.typed import FormErrors
from graph.fields import FormField
from graph.models.arguments import trouble_with


def read_elicited(
    fields: Sequence[FormField], schema: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any] | FormErrors:
    """The values by property, as the schema accepts them. Raises nothing.

    An option stands for what it was made from: "yes" for true, say, where a property may be left open. Where the schema
    names its options by titles (`oneOf` of `const` and `title`, or `enumNames`), an option chosen by its title stands
    for its value.
    """
    answers = read_answers(fields, values)
    if isinstance(answers, FormErrors):
        return answers
    properties = as_mapping(as_mapping(schema).get("properties"))
    drawn = {one.form_field.name: one.choices for one in inputs(schema, {}, None)}
    chosen = {n: drawn[n].get(v, v) if isinstance(v, str) and n in drawn else v for n, v in answers.items()}
    meant = {name: _meant(as_mapping(properties.get(name)), value) for name, value in chosen.items()}
    from bot.forms.checking import mistakes  # noqa: PLC0415 - slow to load, and most starts never need it

    trouble = trouble_with(meant)
    errors = {"": f"This holds {trouble}."} if trouble else mistakes(schema, meant, {field.name for field in fields})
    return FormErrors(errors) if errors else meant


def _meant(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, list):
        items = as_mapping(schema.get("items"))
        return [_meant(items, item) for item in value]
    titles = _titles(schema)
    return titles.get(value, value) if isinstance(value, str) and value not in titles.values() else value


def _titles(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Title → value of what can be chosen."""
    for key in ("oneOf", "anyOf"):
        if isinstance(options := schema.get(key), list):
            named = map(as_mapping, options)
            return {str(one["title"]): one["const"] for one in named if "title" in one and "const" in one}
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list) and isinstance(names, list) and len(values) == len(names):
        return {str(name): value for name, value in zip(names, values, strict=True)}
    return {}
