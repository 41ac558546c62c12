"""Arguments as the tool will take them: what a call leaves out has the default of its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEEPEST = 20
"""Levels of arguments that are filled; beyond them nothing is."""


def with_defaults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the defaults of their schema, also within objects and lists. Raises nothing.

    Leaving an argument out must not get a call around a rule about its value. Only `properties`, `items` and `$ref`
    within the schema are followed: what holds in every case.
    """
    return _object_filled(schema, arguments, schema, DEEPEST)


def _filled(schema: Any, value: Any, root: Mapping[str, Any], levels: int) -> Any:
    schema = _resolved(schema, root, levels)
    if levels == 0 or not isinstance(schema, Mapping):
        return value
    if isinstance(value, Mapping):
        return _object_filled(schema, value, root, levels)
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_filled(schema["items"], item, root, levels - 1) for item in value]
    return value


def _object_filled(
    schema: Mapping[str, Any], value: Mapping[str, Any], root: Mapping[str, Any], levels: int
) -> Mapping[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return value
    filled = dict(value)
    for name, described in properties.items():
        if name in value:
            filled[name] = _filled(described, value[name], root, levels - 1)
        elif isinstance(described, Mapping) and "default" in described:
            filled[name] = described["default"]
    return filled


def _resolved(schema: Any, root: Mapping[str, Any], levels: int) -> Any:
    """What a chain of `$ref` ends at; `None` when it leads nowhere."""
    for _ in range(levels):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        reference = schema["$ref"]
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        schema = root
        for step in reference[2:].split("/"):
            schema = schema.get(step) if isinstance(schema, Mapping) else None
    return None
