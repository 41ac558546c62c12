"""The part of JSON Schema that decides how one argument is typed in; whatever is beyond it is typed as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.schemas.measuring import referred_to
from graph.fields import FieldType

_FORMATS = {
    "date": FieldType.DATE,
    "time": FieldType.TIME,
    "date-time": FieldType.DATE_TIME,
    "slack-user-id": FieldType.PERSON,
    "slack-channel-id": FieldType.CHANNEL,
}
"""JSON Schema leaves `format` open; the last two are ours, for tools that act on a chat platform."""
_TYPES = {"integer": FieldType.INTEGER, "number": FieldType.NUMBER, "boolean": FieldType.YES_NO}
_LONGEST_OPTION = 100
_MOST_OPTIONS = 100
"""Slack's selects hold 100; more options than that are typed."""
_LONGEST_DESCRIPTION = 1_000
"""Characters that are read of it; its help shows 300."""
_READ = frozenset(
    {"$ref", "allOf", "anyOf", "const", "default", "description", "enum", "format", "items", "maxLength", "oneOf"}
    | {"properties", "type"}
)
"""The keywords that say how something is typed in. Others are not carried along: a schema may hold thousands, and many
properties may refer to it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How one argument is typed in."""

    kind: FieldType | None
    """`None`: the schema leaves it open, so the current value decides."""
    nullable: bool = False
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Option text → the value it stands for."""
    description: str = ""
    default: Any = None
    long: bool = False
    """The schema expects more than a line of text."""


def shape_of(schema: Any, root: Mapping[str, Any]) -> Shape:
    """The shape of a property. Reads anything, also what is no valid schema; raises nothing."""
    merged, nullable = _merged(_read(schema), root)
    options = _enumerated(merged)
    if options is not None and len(options) <= _MOST_OPTIONS + 1 and None in options:
        nullable, options = True, [option for option in options if option is not None]
    choices = _choices(options or [])
    return Shape(
        kind=_kind(merged, options, choices),
        nullable=nullable,
        choices=choices,
        description=_text(merged.get("description"))[:_LONGEST_DESCRIPTION],
        default=merged.get("default"),
        long=isinstance(length := merged.get("maxLength"), int) and length > 200,
    )


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value when it is a mapping with text keys, else an empty one."""
    return value if isinstance(value, Mapping) and all(isinstance(key, str) for key in value) else {}


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema with its references and single alternatives folded in, and whether null is one alternative."""
    nullable = False
    for _ in range(10):  # longer chains exist only to go round in circles
        inner, nullable_here = _inner(schema, root)
        nullable = nullable or nullable_here
        if inner is None:
            break
        outer = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}
        schema = {**inner, **outer}
    types = schema.get("type")
    if isinstance(types, list):
        nullable = nullable or "null" in types
        rest = [kind for kind in types if kind != "null"]
        schema = {**schema, "type": rest[0] if len(rest) == 1 else None}
    return schema, nullable


def _inner(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, bool]:
    """What `$ref`, a one-element `allOf`, or the only alternative that is not null comes down to."""
    if isinstance(reference := schema.get("$ref"), str):
        return _resolved(reference, root), False
    if isinstance(parts := schema.get("allOf"), list) and len(parts) == 1:
        return _read(parts[0]), False
    for key in ("anyOf", "oneOf"):
        if isinstance(alternatives := schema.get(key), list):
            if len(alternatives) > _MOST_OPTIONS + 1:
                return None, False
            real = [part for part in map(_read, alternatives) if part.get("type") != "null"]
            nullable = len(real) < len(alternatives)
            if len(real) == 1:
                return real[0], nullable
            if real and all("const" in part for part in real):
                return {"enum": [part["const"] for part in real]}, nullable
            return None, nullable
    return None, False


def _resolved(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a local reference (`#/$defs/Name`) points to; empty for any other, nothing is fetched."""
    try:
        return {} if reference == "#" else _read(referred_to(reference, root))
    except LookupError:
        return {}


def _read(schema: Any) -> dict[str, Any]:
    return {key: schema[key] for key in _READ if key in schema} if isinstance(schema, Mapping) else {}


def _enumerated(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    options = schema.get("enum")
    return options if isinstance(options, list) else None


def _choices(options: Sequence[Any]) -> dict[str, Any]:
    """Option text → value; empty when the options cannot be told apart as text, or are no simple values."""
    if len(options) > _MOST_OPTIONS:
        return {}
    texts = list(_option_texts(options))
    if len(set(texts)) != len(options):
        return {}
    return dict(zip(texts, options, strict=True))


def _option_texts(options: Sequence[Any]) -> Iterator[str]:
    for option in options:
        match option:
            case bool():
                yield "true" if option else "false"
            case int() | float():
                yield str(option)[:_LONGEST_OPTION]
            case str() if option.strip() and len(option) <= _LONGEST_OPTION:
                yield option


def _kind(schema: Mapping[str, Any], options: Sequence[Any] | None, choices: Mapping[str, Any]) -> FieldType | None:
    if choices:
        return FieldType.CHOICE
    written = schema.get("type")
    if written == "string":
        return _FORMATS.get(_text(schema.get("format")), FieldType.TEXT)
    if isinstance(written, str) and written in _TYPES:
        return _TYPES[written]
    nested = written in ("array", "object") or "properties" in schema or "items" in schema or options is not None
    return FieldType.JSON if nested else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
