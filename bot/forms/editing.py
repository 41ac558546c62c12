"""Forms as values: the edit of a waiting call, the answer to a clarification, and the answer to a tool's question."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bot.forms.inputs import Input, as_mapping, inputs
from bot.forms.values import EntryError, FormErrors, is_empty, parse_date_time, parse_time, typed_value
from graph.fields import FieldType, FormField
from graph.models.tool_calls import trouble_with
from policies.redaction import NOT_SHOWN, Masked, unmasked

MASKED = (
    "A mask in square brackets stands for what it hides: leave it as it is, move it within this field, or take it out. "
    "What you wrote here is none of this field's masks."
)


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
    or null where the schema needs it and allows that. Arguments that are not in the form stay. All of it is then
    checked against the schema, `format` included. A mask never becomes an argument: in the field where it was shown it
    stands for what it hides, wherever in there and however often it stands by now; anywhere else it is a mistake.
    """
    shown = _shown(arguments, masked)
    hidden = masked.hidden if masked else {}
    made = {one.form_field.name: one for one in inputs(schema, shown, editable)}
    foreign = [str(name) for name in values if name not in made]
    if foreign:
        return FormErrors({"": f"This cannot be changed here: {', '.join(foreign)[:200]}."})
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
        errors = {"": f"This holds {trouble}."} if trouble else mistakes(schema, edited, made)
    return FormErrors(errors) if errors else edited


def _shown(arguments: Mapping[str, Any], masked: Masked | None) -> dict[str, Any]:
    """The arguments as the form shows them, by their own names."""
    if masked is None:
        return dict(arguments)
    pairs = zip(arguments, masked.value.items(), strict=True)
    return {name: value for name, (shown_as, value) in pairs if shown_as == name}


def _with_secrets(entered: Any, shown: Any, before: Any, hidden: Mapping[str, str]) -> Any:
    """What was entered, with what is behind the masks of its field. Raises `EntryError`."""
    written, was = _as_text(entered), _as_text(shown)
    here = {mask: secret for mask, secret in hidden.items() if mask in was}
    if any(mask in written for mask in hidden.keys() - here.keys()):
        raise EntryError(MASKED)  # of another field
    if shown == before:
        return entered  # nothing is masked here, so that nothing in it is to be read as a mask
    if any(mask.startswith(NOT_SHOWN) for mask in here):
        raise EntryError("This is nested too deeply to be edited here.")
    try:
        return unmasked(entered, here)
    except (ValueError, RecursionError):
        raise EntryError(MASKED) from None


def _take(edited: dict[str, Any], into: Input, entry: Any) -> None:
    name = into.form_field.name
    if not is_empty(entry):
        edited[name] = _styled(into, typed_value(into.kind, entry, into.choices))
    elif into.form_field.required:
        raise EntryError("This is needed.")
    elif into.null_when_empty:
        edited[name] = None
    else:
        edited.pop(name, None)


def _is_needed_default(one: Input, arguments: Mapping[str, Any]) -> bool:
    """Whether the form shows a default for an argument that the call lacks and the schema wants."""
    return one.form_field.required and one.form_field.name not in arguments and one.shown is not None


def _styled(into: Input, value: Any) -> Any:
    """Times in the style of the one they replace, so that a picker does not lose an offset."""
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


# ------------------------------------------- the answer to a tool's question (MCP's form elicitation)


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
