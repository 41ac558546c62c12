"""Whether a JSON Schema that somebody else wrote may be used: well formed, and of bounded effect. Pure.

References make a small schema a large one: forty definitions that each refer twice to the next stand for 2⁴⁰
subschemas. So it is counted what a schema comes to when each reference is replaced by what it refers to; a reference
back to where it stands counts as one. The time this takes grows with the schema as it is written.

Not by jsonschema's meta-schemas: validating 60 kB against them takes 0.2 s of CPU, and an unkind schema many times
that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_SUBSCHEMAS = 10_000
"""What a schema may come to. The tools of ordinary servers come to less than a hundred."""
DEEPEST = 64
"""Levels of subschemas. Validating takes four to six frames of Python's stack for each, and there are 1,000."""
LONGEST_REFERENCE = 1_000
"""Characters of a `$ref`; a longer one is not followed."""
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_OF_THE_VALUE_ITSELF = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose subschemas apply to the same value, not to a part of it."""
_ONE = frozenset(
    {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset({"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"})
_ONLY_NAMED = frozenset({"$defs", "definitions"})
"""Keywords whose subschemas apply nowhere unless something refers to them."""
_TEXTS = frozenset({"$dynamicRef", "$recursiveRef", "$ref", "$schema", "format", "pattern"})
_COUNTS = frozenset(
    {"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
)
_NUMBERS = frozenset({"maximum", "minimum"})
_EXCLUSIVE = frozenset({"exclusiveMaximum", "exclusiveMinimum"})
_OLD_DIALECTS = ("draft-03", "draft-04")
_NO_LISTED_ITEMS = "2020-12"


def problem_of(schema: Any) -> str | None:
    """Why a schema may not be used, to follow "its schema"; `None`: it may. Raises nothing."""
    try:
        count, depth = _Measure(schema).of(schema)
    except _NotWellFormedError as error:
        return f"is not valid: {error}"
    except _EndlessError as error:
        return f"refers to itself without end ({error})"
    except RecursionError:
        return f"is nested more than {DEEPEST} levels deep"
    if depth > DEEPEST:
        return f"is nested more than {DEEPEST} levels deep"
    if count > MOST_SUBSCHEMAS:
        shown = f"{count:,}" if count < 10**12 else "very many"
        return f"comes to {shown} subschemas when its references are followed, more than {MOST_SUBSCHEMAS:,}"
    return None


def referred_to(reference: str, root: Any) -> Any:
    """What a reference within a schema (`#`, `#/$defs/Name`) points to. Raises `LookupError` when it points nowhere,
    or elsewhere: nothing is ever fetched."""
    if reference == "#":
        return root
    if not reference.startswith("#/") or len(reference) > LONGEST_REFERENCE:
        raise LookupError(reference)
    found = root
    for written in reference[2:].split("/"):
        step = written.replace("~1", "/").replace("~0", "~")
        match found:
            case Mapping() if step in found:
                found = found[step]
            case list() if step.isdecimal() and len(step) < 6 and int(step) < len(found):
                found = found[int(step)]
            case _:
                raise LookupError(reference)
    return found


class _NotWellFormedError(Exception):
    """The message says what is wrong."""


class _EndlessError(Exception):
    """The message is the reference at which it was noticed."""


class _Measure:
    """Counts the subschemas of one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        written = root.get("$schema", "") if isinstance(root, Mapping) else ""
        self._dialect = written if isinstance(written, str) else ""
        self._known: dict[int, tuple[int, int]] = {}
        """`id` of a subschema → how many subschemas are in it, in how many levels."""
        self._open: set[int] = set()
        self._well_formed: set[int] = set()
        self._followed: dict[int, bool] = {}
        """`id` of a subschema → whether what applies to the same value has been followed to its end."""

    def of(self, schema: Any) -> tuple[int, int]:
        """How many subschemas it comes to, and in how many levels."""
        if isinstance(schema, bool):
            return 1, 1
        if not isinstance(schema, Mapping):
            raise _NotWellFormedError("a subschema must be an object or a boolean")
        if known := self._known.get(id(schema)):
            return known
        if id(schema) in self._open:
            return 1, 1
        self._open.add(id(schema))
        self._must_be_well_formed(schema)
        self._must_end(schema)
        count, depth = 1, 0
        for keyword, part in self._parts(schema):
            inner_count, inner_depth = self.of(part)
            if keyword not in _ONLY_NAMED:
                count, depth = count + inner_count, max(depth, inner_depth)
        self._open.discard(id(schema))
        self._known[id(schema)] = count, depth + 1
        return self._known[id(schema)]

    def _parts(self, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for keyword, value in schema.items():
            if keyword == "$ref":
                try:
                    yield keyword, referred_to(value, self._root)
                except LookupError:
                    continue  # what cannot be looked up is not checked here, and so costs nothing
            elif keyword in _LISTS and isinstance(value, list):
                for part in value:
                    yield keyword, part
            elif keyword in _ONE:
                yield keyword, value
            elif keyword in _NAMED:
                for part in value.values():
                    if not (keyword == "dependencies" and isinstance(part, list)):
                        yield keyword, part

    def _must_end(self, schema: Mapping[str, Any]) -> None:
        """Raise `_EndlessError` when the schema applies itself to the same value again."""
        followed = self._followed.get(id(schema))
        if followed is not None:
            if not followed:
                reference = schema.get("$ref")
                raise _EndlessError(ascii(reference)[:100] if reference else "by allOf, anyOf, oneOf, not or if")
            return
        self._followed[id(schema)] = False
        for keyword, part in self._parts(schema):
            if keyword in _OF_THE_VALUE_ITSELF and isinstance(part, Mapping):
                self._must_be_well_formed(part)
                self._must_end(part)
        self._followed[id(schema)] = True

    def _must_be_well_formed(self, schema: Mapping[str, Any]) -> None:
        if id(schema) in self._well_formed:
            return
        self._well_formed.add(id(schema))
        for keyword, value in schema.items():
            if not self._is_well_formed(keyword, value):
                raise _NotWellFormedError(f'"{keyword}" is not what JSON Schema wants there')

    def _is_well_formed(self, keyword: str, value: Any) -> bool:
        old = any(dialect in self._dialect for dialect in _OLD_DIALECTS)
        if keyword == "items" and isinstance(value, list):
            return bool(self._dialect) and _NO_LISTED_ITEMS not in self._dialect
        if keyword in _EXCLUSIVE and old and isinstance(value, bool):
            return True
        check = _CHECKS.get(keyword)
        return check is None or check(value)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _is_number(value: Any) -> bool:
    # neither infinity nor NaN, which JSON does not know
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping)


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str)),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_NUMBERS | _EXCLUSIVE, _is_number),
    **dict.fromkeys(_NAMED, _is_named),
    **dict.fromkeys(_LISTS - _ONE, lambda value: isinstance(value, list)),
    "dependencies": lambda value: (
        _is_named(value) and all(_are_texts(p) for p in value.values() if isinstance(p, list))
    ),
    "dependentRequired": lambda value: _is_named(value) and all(map(_are_texts, value.values())),
    "enum": lambda value: isinstance(value, list),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "required": _are_texts,
    "type": lambda value: all(map(_is_type, value)) if isinstance(value, list) else _is_type(value),
    "uniqueItems": lambda value: isinstance(value, bool),
}
"""What the keywords that are used here hold, where that does not depend on the dialect."""
