"""Forms as values: the edit of a waiting call, the answer to a clarification, and the answer to a tool's question."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from bot.forms.inputs import Input, as_mapping, inputs
from bot.forms.values import (
    EntryError,
    FormErrors,
    is_empty,
    parse_date,
    parse_date_time,
    parse_time,
    typed_value,
)
from bot.readings import PAIRS
from graph.interrupts import FieldType, FormField
from graph.json_values import trouble_with
from policies.masking import NOT_SHOWN, Masked, masks_in, unmasked
from translations import gettext as _


def not_a_mask() -> str:
    """Returns what is said of something in square brackets that stands for no secret of its field."""
    return _(
        "A mask in square brackets stands for what it hides. Leave it, move it within this field or remove it. "
        "What you wrote is none of this field’s masks."
    )


def emptied() -> str:
    """Returns what is said of an emptied field, where the tool would take its own default."""
    return _("Left empty, the tool would use its own default. Enter a value.")


_LONGEST_MOMENT = 40
"""Characters of a date and time."""


def edit_fields(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    editable: Collection[str] | None,
    *,
    masked: Masked | None = None,
) -> tuple[tuple[FormField, ...], dict[str, Any]]:
    """The fields of an edit form, and what they show at first by name. Raises nothing.

    `schema` is the tool's input schema, `editable` names the arguments that may be changed (`None`: all of them).
    `masked`: the arguments as people see them; `None`: as they are. An argument whose very name is masked is not in the
    form. Times are shown without their UTC offset, which is in the field's help and stays as it is.
    """
    made = inputs(schema, _shown(arguments, masked), editable)
    return tuple(one.form_field for one in made), {
        one.form_field.name: one.shown for one in made if one.shown is not None
    }


def read_form(
    schema: Mapping[str, Any],
    arguments: Mapping[str, Any],
    editable: Collection[str] | None,
    values: Mapping[str, Any],
    *,
    masked: Masked | None = None,
) -> dict[str, Any] | FormErrors:
    """The new arguments of a call whose form came back with `values`. Raises nothing. `masked`: as for `edit_fields`.

    A field that was not touched (or is not in `values`) keeps its argument exactly; one that was emptied is left out,
    or null where the schema needs it and allows that. Where the schema has a default, which the tool would take for an
    argument that is left out, an emptied field is an empty text or null, as its type allows, or else a mistake.
    Arguments that are not in the form stay. All of it is then checked against the schema, `format` included. A mask
    never becomes an argument: in the field where it was shown it stands for what it hides, wherever in there and
    however often it stands by now; anywhere else it is a mistake.
    """
    shown = _shown(arguments, masked)
    hidden = masked.hidden if masked else {}
    made = {one.form_field.name: one for one in inputs(schema, shown, editable)}
    foreign = [str(name) for name in values if name not in made]
    if foreign:
        return FormErrors({"": _("This can’t be changed here: {names}.").format(names=", ".join(foreign)[:200])})
    edited = dict(arguments)
    errors: dict[str, str] = {}
    for name, entry in values.items():
        if _is_untouched(entry, made[name].shown) and not _is_needed_default(made[name], arguments):
            continue
        try:
            _take(edited, made[name], entry)
            if name in edited and edited[name] != arguments.get(name):
                edited[name] = _with_secrets(edited[name], shown.get(name), arguments.get(name), hidden)
        except EntryError as error:
            errors[name] = str(error)
    if not errors:
        from bot.forms.checking import mistakes  # noqa: PLC0415 - slow to load, and most starts never edit

        trouble = trouble_with(edited)
        errors = {"": _("This holds {trouble}.").format(trouble=trouble)} if trouble else mistakes(schema, edited, made)
        errors = errors or _ends_too_early(arguments, edited, made)
    return FormErrors(errors) if errors else edited


def _ends_too_early(before: Mapping[str, Any], edited: Mapping[str, Any], made: Collection[str]) -> dict[str, str]:
    """The mistake of a span of time that an edit turned round, such as a start that was moved without its end."""
    for pair in PAIRS:
        values = [edited.get(name) for name in pair]
        if values == [before.get(name) for name in pair] or not any(name in made for name in pair):
            continue
        start, end = map(_point_of, values)
        if start is None or end is None or (start.tzinfo is None) != (end.tzinfo is None):
            continue
        if end < start:
            return {pair[1] if pair[1] in made else pair[0]: _("The end must be after the start.")}
    return {}


def _point_of(value: Any) -> datetime | None:
    """The moment or the day that a text names; `None`: it names none."""
    text = value if isinstance(value, str) and len(value) <= _LONGEST_MOMENT else ""
    if not parse_date(text) and not parse_date_time(text):
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        return None


def _shown(arguments: Mapping[str, Any], masked: Masked | None) -> dict[str, Any]:
    """The arguments as the form shows them, by their own names."""
    if masked is None:
        return dict(arguments)
    pairs = zip(arguments, masked.value.items(), strict=True)
    return {name: value for name, (shown_as, value) in pairs if shown_as == name}


def _with_secrets(entered: Any, shown: Any, before: Any, hidden: Mapping[str, str]) -> Any:
    """What was entered, with what is behind the masks of its field. Raises `EntryError`."""
    here = {mask: hidden[mask] for mask in masks_in(_as_text(shown), hidden)}
    if masks_in(_as_text(entered), hidden) - here.keys():
        raise EntryError(not_a_mask())  # of another field
    if shown == before:
        return entered  # nothing is masked here, so that nothing in it is to be read as a mask
    if any(mask.startswith(NOT_SHOWN) for mask in here):
        raise EntryError(_("This is nested too deeply to be edited here."))
    try:
        return unmasked(entered, here)
    except (ValueError, RecursionError):
        raise EntryError(not_a_mask()) from None


def _take(edited: dict[str, Any], into: Input, entry: Any) -> None:
    name = into.form_field.name
    if not is_empty(entry):
        edited[name] = _styled(into, typed_value(into.kind, entry, into.choices))
    elif into.form_field.required:
        raise EntryError(_("Required"))
    elif into.null_when_empty:
        edited[name] = None
    elif into.default is not None:
        edited[name] = _emptied(into)
    else:
        edited.pop(name, None)


def _emptied(into: Input) -> Any:
    """The value of an emptied field whose argument would be its schema's default if it were left out: nobody saw that
    in the empty field. Raises `EntryError` where no value says that it is empty."""
    if into.kind is FieldType.TEXT:
        return ""
    if into.nullable:
        return None
    raise EntryError(emptied())


def _is_needed_default(one: Input, arguments: Mapping[str, Any]) -> bool:
    """Whether the form shows a default for an argument that the call lacks and the schema wants."""
    return one.form_field.required and one.form_field.name not in arguments and one.shown is not None


def _styled(into: Input, value: Any) -> Any:
    """Returns a time in the style of the one it replaces, so that a picker does not lose an offset."""
    if into.kind not in (FieldType.TIME, FieldType.DATE_TIME):
        return value
    moment = parse_time(value) if into.kind is FieldType.TIME else parse_date_time(value)
    return value if moment is None else str(moment.in_the_style_of(into.moment))


def _is_untouched(entry: Any, shown: Any) -> bool:
    return _as_text(entry) == _as_text(shown) or _is_the_same_number(entry, shown)


def _is_the_same_number(entry: Any, shown: Any) -> bool:
    """Whether a client wrote the number that it was given in its own way: JavaScript says 5 for 5.0."""
    if isinstance(shown, bool) or not isinstance(shown, int | float) or isinstance(entry, bool):
        return False
    try:
        return float(entry) == shown if isinstance(entry, str | int | float) else False
    except (ValueError, OverflowError):
        return False


def _as_text(entry: Any) -> str:
    """An entry as text, so that 5 and "5", or two kinds of line ending, do not count as a change."""
    if entry is None:
        return ""
    if isinstance(entry, str):
        return entry.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return json.dumps(entry, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(type(entry))


# ---------------------------------------------------------------------- the answer to a clarification
def read_answers(fields: Sequence[FormField], values: Mapping[str, Any]) -> dict[str, Any] | FormErrors:
    """The values by field name, each of its field's type. Raises nothing.

    Optional fields that were left empty are left out. Where a default stood in one and was taken out, it is an empty
    text, an empty list of options, or null: who left it out would be taken to mean the default.
    """
    known = {field.name: field for field in fields}
    foreign = [str(name) for name in values if name not in known]
    if foreign:
        return FormErrors({"": _("This was not asked for: {names}.").format(names=", ".join(foreign)[:200])})
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, asked in known.items():
        entry = values.get(name)
        if is_empty(entry):
            if asked.required:
                errors[name] = _("Required")
            elif name in values and asked.default is not None:
                answers[name] = _taken_out(asked)
            continue
        try:
            answers[name] = typed_value(asked.type, entry, {option: option for option in asked.options})
        except EntryError as error:
            errors[name] = str(error)
    return FormErrors(errors) if errors else answers


def _taken_out(asked: FormField) -> Any:
    if asked.type is FieldType.TEXT:
        return ""
    return [] if asked.type is FieldType.JSON and asked.options else None


# ------------------------------------------- the answer to a tool's question (MCP's form elicitation)
def read_elicited(
    fields: Sequence[FormField], schema: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any] | FormErrors:
    """The values by property, as the schema accepts them. Raises nothing.

    An option stands for what it was made from: "yes" for true, say, where a property may be left open. Where the schema
    names its options by titles (`oneOf` of `const` and `title`, or `enumNames`), an option chosen by its title stands
    for its value. A time has the offset and style of the default that stood in its field, which no picker shows.
    """
    answers = read_answers(fields, values)
    if isinstance(answers, FormErrors):
        return answers
    made = {one.form_field.name: one for one in inputs(schema, {}, None)}
    taken_out = [name for name, value in answers.items() if value is None and is_empty(values[name])]
    if unclear := [name for name in taken_out if name not in made or not made[name].nullable]:
        return FormErrors(dict.fromkeys(unclear, emptied()))
    properties = as_mapping(as_mapping(schema).get("properties"))
    chosen = {n: _chosen(made[n], v) if isinstance(v, str) and n in made else v for n, v in answers.items()}
    meant = {name: _Meanings(as_mapping(properties.get(name))).of(value) for name, value in chosen.items()}
    from bot.forms.checking import mistakes  # noqa: PLC0415 - slow to load, and most starts never need it

    trouble = trouble_with(meant)
    errors = (
        {"": _("This holds {trouble}.").format(trouble=trouble)}
        if trouble
        else mistakes(schema, meant, {field.name for field in fields})
    )
    return FormErrors(errors) if errors else meant


def _chosen(one: Input, entry: str) -> Any:
    if one.moment is not None and entry:
        return _styled(one, entry)
    return one.choices.get(entry, entry)


class _Meanings:
    """What the titles of options in a schema stand for. Read from it once, however many values are chosen."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    def of(self, value: Any) -> Any:
        """The value that was meant; in a list, each one."""
        if isinstance(value, list):
            return [self._items.of(item) for item in value]
        return self._titles.get(value, value) if isinstance(value, str) and value not in self._values else value

    @cached_property
    def _items(self) -> _Meanings:
        return _Meanings(as_mapping(self._schema.get("items")))

    @cached_property
    def _titles(self) -> Mapping[str, Any]:
        return _titles(self._schema)

    @cached_property
    def _values(self) -> frozenset[str]:
        return frozenset(value for value in self._titles.values() if isinstance(value, str))


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
