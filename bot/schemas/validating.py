"""Values against a JSON Schema that somebody else wrote, in a bounded number of steps.

jsonschema validates in pure Python, with regular expressions that backtrack: a pattern, or a few references, can keep
it busy for ever. Here each keyword that is applied counts as a step, and so does what it looks through; patterns are
RE2's, in linear time; nothing is fetched, and errors beyond the first few are not looked for.

Imported late: jsonschema takes 0.2 s to load.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import jsonschema
import re2  # type: ignore[import-untyped]  # google-re2 ships no types
from jsonschema import FormatChecker, ValidationError
from jsonschema.exceptions import FormatError, UnknownType
from jsonschema.validators import create, validator_for

from bot.schemas.measuring import referred_to

STEPS = 4_000
"""Steps of one validation. A step takes about 7 µs on a slow core, so that all of them stay below the 50 ms for which
nothing from outside may hold the event loop. Seven hundred objects of two members take that many."""
CHARACTERS_PER_STEP = 200
"""Characters of an error's message that count as a step: jsonschema writes the value into it."""
ENTRIES_PER_STEP = 8
"""Entries of lists and objects, visited by a keyword, that count as a step."""
REGEX_WORK_PER_STEP = 3_000
"""Bytes of text times instructions of the pattern: what RE2 does in the worst case."""
LARGEST_PATTERN = 1_000
"""Instructions of RE2."""
REGEX_MEMORY = 1 << 17
"""Bytes that one pattern may take: RE2 gives up compiling a larger one after a millisecond."""
INSTRUCTIONS_PER_STEP = 10
"""Instructions of a pattern that count as a step: compiling takes the longer, the more there are."""
CHARACTERS_OF_A_PATTERN_PER_STEP = 10
"""Characters that count as a step of a pattern that RE2 does not know: they are read."""
STEPS_OF_A_FAILURE = 200
"""What a pattern counts as that RE2 gave up compiling."""
STEPS_OF_A_CLASS = 12
"""What each class of Unicode (`\\pL`, hundreds of ranges) in a pattern counts as, before it is compiled."""
LONGEST_FORMATTED = 1_000
"""Characters of a text whose `format` is looked at. No date, address or id is longer."""


class TooMuchError(Exception):
    """The steps are used up."""


class UncheckableError(Exception):
    """The schema refers to something that is not in it, or cannot be used to check."""


Format = Callable[[str], bool]


def errors_in(
    schema: Mapping[str, Any],
    value: Any,
    *,
    formats: Mapping[str, Format],
    most: int,
    steps: int = STEPS,
) -> list[ValidationError]:
    """What is wrong with the value, at most `most` errors. `formats`: the values of `format` that are looked at.

    Raises `TooMuchError` when that takes more than `steps` steps, `UncheckableError`, and `RecursionError` for what is
    nested too deeply. Not looked at, and so left to whoever wrote the schema: patterns that RE2 does not know (look-
    arounds, back references), `unevaluatedItems`, `unevaluatedProperties`, `$dynamicRef`, `$recursiveRef`.
    """
    shared = _Shared(schema, formats, steps)
    try:
        return list(islice(_bounded(_dialect(schema))(schema, format_checker=shared).iter_errors(value), most))
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, UnknownType) as error:
        # A schema that is none breaks the validator in more ways than it documents.
        raise UncheckableError(type(error).__name__) from None


class _Shared(FormatChecker):
    """What all keywords of one validation share: jsonschema hands this down to every subschema."""

    def __init__(self, root: Mapping[str, Any], formats: Mapping[str, Format], steps: int) -> None:
        super().__init__(())
        self.root = root
        self._formats = formats
        self._left = steps
        self._paid: set[str] = set()
        """Patterns that have been counted: each is compiled once at most."""

    def spend(self, steps: int) -> None:
        """Count steps. Raises `TooMuchError` when there are none left."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchError

    def check(self, instance: object, format: str) -> None:  # noqa: A002 - jsonschema's name
        """Part of jsonschema's `FormatChecker`."""
        fits = self._formats.get(format)
        if fits and isinstance(instance, str) and len(instance) <= LONGEST_FORMATTED and not fits(instance):
            raise FormatError(f"{instance!r} is not a {format!r}")

    def fits(self, pattern: str, text: str) -> bool | None:
        """Whether the text holds something that fits; `None`: that cannot be told here."""
        if pattern not in self._paid:
            self._paid.add(pattern)
            self.spend(STEPS_OF_A_CLASS * _classes_in(pattern))
            self.spend(_expression(pattern)[1])
        expression, _ = _expression(pattern)
        if expression is None:
            return None
        encoded = text.encode("utf-8", "replace")
        self.spend(1 + len(encoded) * expression.programsize // REGEX_WORK_PER_STEP)
        return expression.search(encoded) is not None


def _classes_in(pattern: str) -> int:
    return pattern.count("\\p") + pattern.count("\\P") if len(pattern) <= LARGEST_PATTERN else 0


@lru_cache(maxsize=1_000)
def _expression(pattern: str) -> tuple[Any, int]:
    """RE2's compiled pattern, and the steps that compiling it counts as; `None`: RE2 does not know it, or it is too
    large."""
    if len(pattern) > LARGEST_PATTERN:
        return None, 1
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = REGEX_MEMORY
    try:
        expression = re2.compile(pattern, options)
    except UnicodeEncodeError:
        return None, 1
    except re2.error as error:
        # Anything else is noticed while it is read: many schemas have patterns that RE2 does not know.
        is_large = "too large" in str(error)
        return None, STEPS_OF_A_FAILURE if is_large else 1 + len(pattern) // CHARACTERS_OF_A_PATTERN_PER_STEP
    size = expression.programsize
    return expression if size <= LARGEST_PATTERN else None, 1 + size // INSTRUCTIONS_PER_STEP


def _dialect(schema: Mapping[str, Any]) -> Any:
    # 2020-12 is what MCP means when a schema does not say (specification 2025-11-25, "JSON Schema usage")
    said = {"$schema": schema["$schema"]} if isinstance(schema.get("$schema"), str) else {}
    return validator_for(said, default=jsonschema.Draft202012Validator)


@cache
def _bounded(dialect: Any) -> Any:
    """The dialect's validator with keywords that count."""
    own = {**dialect.VALIDATORS, **{name: check for name, check in _OWN.items() if name in dialect.VALIDATORS}}
    known = tuple(own)
    # Up to draft 7 nothing counts beside `$ref`.
    alone = not {"$dynamicRef", "$recursiveRef"} & own.keys()

    def applicable(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        if alone and "$ref" in schema:
            return [("$ref", schema["$ref"])]
        # Of a subschema with thousands of keywords, only what is known is looked at.
        names = known if len(schema) > len(known) else schema
        return [(name, schema[name]) for name in names if name in own and name in schema]

    make: Any = create  # its types know neither a schema without an id nor keywords in an order of ours
    bounded = make(
        meta_schema=dialect.META_SCHEMA,
        validators={name: _counting(check, name in _LOOKS_THROUGH) for name, check in own.items()},
        type_checker=dialect.TYPE_CHECKER,
        id_of=lambda _: None,
        applicable_validators=applicable,
    )
    bounded.evolve = _evolved
    return bounded


def _evolved(validator: Any, **changes: Any) -> Any:
    """The validator for a subschema: always this one. jsonschema's own takes another, that does not count, for a
    subschema that names its dialect."""
    same = {"schema": validator.schema, "format_checker": validator.format_checker, "_resolver": validator._resolver}
    return type(validator)(**{**same, **changes})


_LOOKS_THROUGH = frozenset(
    {"additionalItems", "additionalProperties", "contains", "items", "patternProperties", "prefixItems"}
    | {"propertyNames"}
)
"""Keywords that go through the value, and not only through what the schema lists."""


def _counting(check: Any, looks_through: bool) -> Any:  # noqa: FBT001 - of the keyword, not of a call
    def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        spend = validator.format_checker.spend
        entries = len(wanted) if isinstance(wanted, list | dict) else 0
        if looks_through and isinstance(value, list | dict):
            entries += 4 * len(value)
        spend(1 + entries // ENTRIES_PER_STEP)
        for error in check(validator, wanted, value, schema) or ():
            spend(1 + len(error.message) // CHARACTERS_PER_STEP)
            yield error

    return counted


def _ref(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    part = referred_to(wanted, validator.format_checker.root)
    validator.format_checker.spend(len(wanted) // CHARACTERS_PER_STEP)
    yield from validator.descend(value, part)


def _pattern(validator: Any, wanted: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and validator.format_checker.fits(wanted, value) is False:
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def _pattern_properties(validator: Any, wanted: Mapping[str, Any], value: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for pattern, subschema in wanted.items():
            for name, part in value.items():
                if validator.format_checker.fits(pattern, name):
                    yield from validator.descend(part, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    # A name that may fit a pattern that cannot be told here is not held to be too many.
    extra = [n for n in value if n not in known and all(validator.format_checker.fits(p, n) is False for p in patterns)]
    if isinstance(wanted, dict):
        for name in extra:
            yield from validator.descend(value[name], wanted, path=name)
    elif wanted is False and extra:
        names, verb = ", ".join(map(repr, extra[:10])), "was" if len(extra) == 1 else "were"
        yield ValidationError(f"Additional properties are not allowed ({names} {verb} unexpected)")


def _enum(validator: Any, wanted: list[Any], value: Any, _: Any) -> Iterator[ValidationError]:
    if not any(_same(option, value, validator.format_checker) for option in wanted):
        yield ValidationError(f"{value!r} is not one of {wanted!r}")


def _const(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    if not _same(wanted, value, validator.format_checker):
        yield ValidationError(f"{wanted!r} was expected")


def _same(one: Any, other: Any, shared: _Shared) -> bool:
    """Whether two JSON values are equal; 1 equals 1.0, and not true."""
    if isinstance(one, list) and isinstance(other, list):
        shared.spend(1 + len(one) // ENTRIES_PER_STEP)
        return len(one) == len(other) and all(_same(a, b, shared) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        shared.spend(1 + len(one) // ENTRIES_PER_STEP)
        return len(one) == len(other) and all(n in other and _same(part, other[n], shared) for n, part in one.items())
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _unique_items(validator: Any, wanted: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    if wanted is not True or not isinstance(value, list):
        return
    # By their text, which takes linear time; 1 and 1.0 count as two.
    seen = set()
    for item in value:
        written = json.dumps(item, sort_keys=True)
        validator.format_checker.spend(1 + len(written) // CHARACTERS_PER_STEP)
        if written in seen:
            yield ValidationError(f"{value!r} has non-unique elements")
            return
        seen.add(written)


def _multiple_of(_: Any, wanted: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if isinstance(wanted, int) and isinstance(value, int):
        failed = value % wanted != 0
    elif abs(value) > 2**53:
        return  # beyond what floats tell apart
    else:
        quotient = value / wanted
        failed = quotient != quotient // 1
    if failed:
        yield ValidationError(f"{value!r} is not a multiple of {wanted}")


def _unchecked(*_: Any) -> None:
    """A keyword that is left to whoever wrote the schema."""


_OWN: Mapping[str, Any] = {
    "$dynamicRef": _unchecked,
    "$recursiveRef": _unchecked,
    "$ref": _ref,
    "additionalProperties": _additional_properties,
    "const": _const,
    "divisibleBy": _multiple_of,
    "enum": _enum,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "unevaluatedItems": _unchecked,
    "unevaluatedProperties": _unchecked,
    "uniqueItems": _unique_items,
}
