"""The inputs that a call's schema gives: how each argument is typed in, what it shows, and JSON where the schema says
no more. `bot.forms.editing` reads what comes back."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from bot.forms.values import (
    LONGEST_TEXT,
    Moment,
    parse_date,
    parse_date_time,
    parse_time,
)
from bot.safe_text import labels, one_line, sentences
from bot.schemas.measuring import referred_to
from graph.interrupts import FieldType, FormField, as_far_as_offered
from graph.json_values import storable
from translations import gettext as _

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
class InputShape:
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


def shape_of(schema: Any, root: Mapping[str, Any]) -> InputShape:
    """The shape of a property. Reads anything, also what is no valid schema; raises nothing."""
    merged, nullable = _merged(_read(schema), root)
    options = _enumerated(merged)
    if options is not None and len(options) <= _MOST_OPTIONS + 1 and None in options:
        nullable, options = True, [option for option in options if option is not None]
    choices = _choices(options or [])
    return InputShape(
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
    for _step in range(10):  # a longer chain is a loop
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


# --------------------------------------------------------------------------------------------- inputs
MOST_INPUTS = 100
"""Inputs of one form. Slack's dialogs hold 95; nobody fills in more."""


_LONGEST_NAME = 100


_LONGEST_HELP = 300


_LONG_LINE = 120


_YES_OR_NO = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Input:
    """One argument in a form: how it is drawn, what it shows, and how what is typed becomes a value again."""

    form_field: FormField
    kind: FieldType
    """What an entry becomes; not `form_field.type` where the current value cannot be drawn as it should."""
    shown: Any
    """What the form shows at first; `None`: nothing."""
    null_when_empty: bool
    """Whether an emptied input means null rather than an argument left out: the schema needs it and allows null."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    moment: Moment | None = None
    """The time that is there now, whose offset an edit keeps."""
    nullable: bool = False
    """Whether the schema allows null."""
    default: Any = None
    """The schema's own, which a tool takes for an argument that is left out; `None`: there is none."""


def inputs(
    schema: Mapping[str, Any], arguments: Mapping[str, Any], editable: Collection[str] | None
) -> tuple[Input, ...]:
    """An input for each argument that the schema knows or the call has, in the schema's order; raises nothing.

    Left out, and so kept as they are: names that are not in `editable` (`None`: all are), names that are empty,
    longer than 100 characters or no text, values too long for an input, and what would be more than 100 inputs (what
    the call has, and what the schema needs, come first).
    """
    root = as_mapping(schema)
    properties = as_mapping(root.get("properties"))
    required = root.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set[str]()
    chosen = set(islice(_by_importance(properties, arguments, needed, editable), MOST_INPUTS))
    names = [name for name in dict.fromkeys([*properties, *arguments]) if name in chosen]
    label = labels(names)
    made = (
        _input(name, label[name], shape_of(properties.get(name), root), arguments, is_required=name in needed)
        for name in names
    )
    drawn = [one for one in made if one is not None]
    # What may be chosen stays known where it is not offered: it is typed then.
    fields = as_far_as_offered(one.form_field for one in drawn)
    return tuple(replace(one, form_field=form_field) for one, form_field in zip(drawn, fields, strict=True))


def _input(
    name: str, label: str, shape: InputShape, arguments: Mapping[str, Any], *, is_required: bool
) -> Input | None:
    value = arguments.get(name, shape.default)
    kind = shape.kind or _kind_of(value)
    required = is_required and not shape.nullable
    choices = shape.choices
    if kind is FieldType.YES_NO and value is None and not required:
        kind, choices = FieldType.CHOICE, _YES_OR_NO  # a checkbox cannot say "left open"
    drawn = _drawn(kind, value, choices)
    if drawn is None:
        return None
    drawn_as, shown, moment = drawn
    if drawn_as is FieldType.JSON:
        kind = FieldType.JSON
    form_field = FormField(
        name=name,
        label=one_line(label, _LONGEST_NAME),
        type=drawn_as,
        required=required,
        options=tuple(choices) if drawn_as is FieldType.CHOICE else (),
        help=_help(shape, drawn_as, moment),
        multiline=drawn_as is FieldType.JSON or (drawn_as is FieldType.TEXT and _is_long(shape, shown)),
        default=None if name in arguments else shown,
    )
    return Input(
        form_field,
        kind,
        shown,
        null_when_empty=is_required and shape.nullable,
        choices=choices,
        moment=moment,
        nullable=shape.nullable,
        default=shape.default,
    )


def _by_importance(
    properties: Mapping[str, Any],
    arguments: Mapping[str, Any],
    needed: Collection[str],
    editable: Collection[str] | None,
) -> Iterator[str]:
    """The names of all possible inputs, each once: what the call has, what the schema needs, the rest."""
    wanted = dict.fromkeys([*arguments, *(name for name in properties if name in needed), *properties])
    return (name for name in wanted if (editable is None or name in editable) and _is_a_name(name))


def _is_a_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and storable(name) == name


def _kind_of(value: Any) -> FieldType:
    match value:
        case bool():
            return FieldType.YES_NO
        case int():
            return FieldType.INTEGER
        case float():
            return FieldType.NUMBER
        case str():
            return FieldType.TEXT
        case _:
            return FieldType.JSON


def _drawn(kind: FieldType, value: Any, choices: Mapping[str, Any]) -> tuple[FieldType, Any, Moment | None] | None:
    """How a value is drawn, and as what; `None`: it is too long for any input.

    A value that is not what it should be ("tomorrow" for a date) is shown as it is, so that it can be mended.
    """
    if value is None:
        return kind, None, None
    if kind is FieldType.CHOICE:
        option = next((text for text, meant in choices.items() if type(meant) is type(value) and meant == value), None)
        if option is not None:
            return kind, option, None
    elif _is_itself(kind, value):
        return kind, value, None
    if isinstance(value, str) and kind is not FieldType.JSON:
        return _drawn_text(kind, value)
    written = _written(value)
    return None if len(written) > LONGEST_TEXT else (FieldType.JSON, written, None)


def _drawn_text(kind: FieldType, value: str) -> tuple[FieldType, Any, Moment | None] | None:
    if len(value) > LONGEST_TEXT:
        return None
    if kind is FieldType.DATE and parse_date(value):
        return kind, value, None
    if kind in (FieldType.TIME, FieldType.DATE_TIME):
        moment = parse_time(value) if kind is FieldType.TIME else parse_date_time(value)
        if moment is not None:
            return kind, str(moment.local()), moment
    return kind if kind in (FieldType.PERSON, FieldType.CHANNEL) else FieldType.TEXT, value, None


def _is_itself(kind: FieldType, value: Any) -> bool:
    """Whether an input for numbers or for yes and no can hold the value without turning it into text."""
    if isinstance(value, bool):
        return kind is FieldType.YES_NO
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    finite = whole or (isinstance(value, float) and math.isfinite(value))
    return (kind is FieldType.INTEGER and whole) or (kind is FieldType.NUMBER and finite)


def _written(value: Any) -> str:
    """The value as JSON, written no further than an input can hold."""
    parts = []
    room = LONGEST_TEXT
    try:
        for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
            parts.append(part)
            room -= len(part)
            if room < 0:
                break
    except (TypeError, ValueError, RecursionError):
        return " " * (LONGEST_TEXT + 1)  # not JSON at all: no input can hold it
    return "".join(parts)


def _is_long(shape: InputShape, shown: Any) -> bool:
    return shape.long or (isinstance(shown, str) and ("\n" in shown or "\r" in shown or len(shown) > _LONG_LINE))


def as_json() -> str:
    """Returns what is said of an input for anything nested."""
    return _("As JSON.")


def _help(shape: InputShape, drawn_as: FieldType, moment: Moment | None) -> str:
    hints = [shape.description] if shape.description.strip() else []
    if moment is not None and moment.offset:
        hints.append(_("In UTC.") if moment.offset in "Zz" else _("UTC offset {offset}.").format(offset=moment.offset))
    if drawn_as is FieldType.JSON:
        hints.append(as_json())
    return one_line(" ".join(sentences(hints, _LONGEST_HELP)), _LONGEST_HELP)
