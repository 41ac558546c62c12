"""The arguments of functions as services take them: each takes another part of JSON Schema. What is taken away only
guides the model less; calls are judged, shown and made by the tool's own schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOICES = ("allOf", "anyOf", "oneOf")
_MOST_HOPS = 10
"""References that are followed from one to the next."""
_KEPT = frozenset({"type", "title", "description", "minimum", "maximum", "minItems", "maxItems"})
_FORMATS = frozenset({"date-time", "date", "time", "float", "double", "int32", "int64"})


def root_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema with `type: object` and `properties` at its root, and without a choice there: of its branches,
    all properties are taken over, and what each of them requires (for `allOf`: any).

    Anthropic's service refuses a request with a choice at the root of a tool's `input_schema`.
    """
    branches = {
        key: [_resolved(branch, schema) for branch in schema[key]]
        for key in _CHOICES
        if isinstance(schema.get(key), list)
    }
    own = _resolved(schema, schema)
    properties: dict[str, Any] = {}
    required = _required(own)
    for key, several in branches.items():
        for branch in several:
            properties |= _properties(branch)
        each = [set(_required(branch)) for branch in several]
        if each:
            required |= dict.fromkeys(sorted(set.union(*each) if key == "allOf" else set.intersection(*each)))
    kept = {key: value for key, value in own.items() if key not in _CHOICES and key != "required"}
    root = {**kept, "type": "object", "properties": properties | _properties(own)}
    return {**root, "required": list(required)} if required else root


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, or what it refers to within the same document; what is neither says nothing."""
    for _ in range(_MOST_HOPS):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = root if reference.startswith("#/") else None
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**found, **rest} if isinstance(found, Mapping) else rest
    return {}


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return {str(name): value for name, value in found.items()} if isinstance(found, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> dict[str, None]:
    found = schema.get("required")
    return dict.fromkeys(name for name in found if isinstance(name, str)) if isinstance(found, list) else {}


def documented_by_google(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that Google's service is documented to take as `parametersJsonSchema`: what it lists for
    `responseJsonSchema` (https://ai.google.dev/api/generate-content). `allOf` becomes one schema, `const` an `enum`."""
    root = root_object(schema)
    kept = _documented(root)
    definitions = {
        name: _documented(value)
        for key in ("definitions", "$defs")
        if isinstance(root.get(key), Mapping)
        for name, value in root[key].items()
    }
    return {**kept, "$defs": definitions} if definitions else kept


def _documented(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        return {}  # `true`: anything
    if isinstance(reference := schema.get("$ref"), str):
        # Nothing else may stand beside it.
        place, _, name = reference.rpartition("/")
        return {"$ref": f"#/$defs/{name}"} if place in {"#/definitions", "#/$defs"} else {}
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values):
        kept["enum"] = values
    if schema.get("format") in _FORMATS:
        kept["format"] = schema["format"]
    if isinstance(schema.get("properties"), Mapping):
        kept["properties"] = {name: _documented(value) for name, value in _properties(schema).items()}
        required = [name for name in _required(schema) if name in kept["properties"]]
        kept |= {"required": required} if required else {}
    items, several = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):  # the way of drafts before 2020-12
        items, several = None, items
    if isinstance(items, Mapping):
        kept["items"] = _documented(items)
    if isinstance(several, list):
        kept["prefixItems"] = [_documented(item) for item in several]
    if isinstance(others := schema.get("additionalProperties"), bool | Mapping):
        kept["additionalProperties"] = others if isinstance(others, bool) else _documented(others)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            kept[key] = [_documented(branch) for branch in schema[key]]
    for branch in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        kept = _both(kept, _documented(branch))
    return kept


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """One schema for two that both hold, as far as they say the same."""
    if "$ref" in other:
        return one or other
    joined = {**other, **one}
    if "properties" in one and "properties" in other:
        joined["properties"] = {**other["properties"], **one["properties"]}
    if "required" in one and "required" in other:
        joined["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    return joined
