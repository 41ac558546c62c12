"""Arguments as the tool will take them: what a call leaves out has the default of its schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from policies.values import Blank, Doubt, Filled, Implied, Undetermined, same_json

DEEPEST = 100
"""Levels of arguments that are filled; of mappings beyond them only what they hold is known."""
MOST_SCHEMAS = 5_000
"""Schemas that are looked at for one call (FastMCP's largest tools have some hundreds); beyond them nothing is filled
either."""
MOST_ENTRIES = 30_000
"""Entries of mappings and lists, given and filled in, of one call; beyond them nothing is filled either: three
times the values that a call of a model may have (10,000), which take 30 ms."""


def with_defaults(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the defaults of their schema, also within objects and lists. Raises nothing.

    Leaving an argument out must not get a call around a rule about its value, nor must a `null` that many tools take
    for left out. Where it is not known which default applies (`anyOf` of several), a `Doubt` stands in its place;
    where a schema cannot be followed, or there is more to fill than `MOST_ENTRIES`, an `Undetermined` mapping. An
    object that is left out, without a default but with defaults within it, is `Implied`.
    """
    filled = _Filling(schema).filled(_Schemas((schema,)), dict(arguments), DEEPEST)
    return filled if isinstance(filled, Mapping) else arguments


def plain(value: Any) -> Any:
    """A filled value as JSON again, as far as it is known: without what is in doubt."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if not isinstance(item, Doubt | Blank | Implied)}
    if isinstance(value, list):
        return [plain(item) for item in value if not isinstance(item, Doubt | Blank)]
    return value


@dataclass(frozen=True, slots=True)
class _Schemas:
    """The schemas that describe one value."""

    sure: Sequence[Any] = ()
    perhaps: Sequence[Any] = ()
    """Those that may: branches of `anyOf`, what depends on other values."""


@dataclass(slots=True)
class _Expanded:
    """Schemas with all that they refer to."""

    sure: list[Mapping[str, Any]] = field(default_factory=list)
    perhaps: list[Mapping[str, Any]] = field(default_factory=list)
    is_whole: bool = True
    """False: something in them could not be followed."""
    properties: Mapping[str, _Schemas] = field(default_factory=dict)
    """What they say of each name."""
    others: Sequence[Any] = ()
    """What they say of names that are not among the properties."""


class _Filling:
    """One filling: follows references within one schema, and counts what it looks at and fills in."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_SCHEMAS
        self._entries = MOST_ENTRIES
        self._found: dict[_Key, _Expanded] = {}
        self._implying: set[_Key] = set()
        self._left_out: dict[tuple[_Key, int], tuple[Mapping[str, Any], int]] = {}

    def filled(self, schemas: _Schemas, value: Any, levels: int) -> Any:
        if not isinstance(value, Mapping | list):
            return value
        if levels == 0 or self._left < 0 or not self._afford(len(value)):
            return _unfilled(value, levels)
        key = _Key(tuple(map(id, schemas.sure)), tuple(map(id, schemas.perhaps)), isinstance(value, Mapping))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._described(schemas, value)
        if found.is_whole and not any(not _SAYING.isdisjoint(one) for one in (*found.sure, *found.perhaps)):
            return value
        if isinstance(value, Mapping):
            return self._object(key, found, value, levels)
        if not self._afford(len(value) * (len(found.sure) + len(found.perhaps) - 1)):
            return _unfilled(value, levels)
        return [self.filled(_item(found, at), item, levels - 1) for at, item in enumerate(value)]

    def _object(self, key: _Key, found: _Expanded, value: Mapping[str, Any], levels: int) -> Any:
        defaults = self._defaults(key, found, levels)
        if not self._afford(len(value) * len(found.others)):
            return _unfilled(value, levels)
        filled = Filled(value, defaults) if found.is_whole else Undetermined(value, defaults)
        for name, given in value.items():
            if given is not None:
                filled[name] = self.filled(_of_name(name, found), given, levels - 1)
        for name, default in defaults.items():
            if name not in value:
                filled[name] = default
            elif value[name] is None and not isinstance(default, Implied):
                filled[name] = Blank.UNSET if default is Blank.UNSET else _one_of([None, default])
        return filled

    def _defaults(self, key: _Key, found: _Expanded, levels: int) -> Mapping[str, Any]:
        """What the properties of an object are when they are left out. Counted again for each object, though made once:
        whatever goes through the arguments meets them as often."""
        kept = self._left_out.get((key, levels))
        if kept is not None:
            self._afford(kept[1])
            return kept[0]
        before, defaults = self._entries, {}
        for name, described in found.properties.items():
            if not self._afford(1):
                break
            default = self._default(described, levels)
            if default is _NONE:
                default = self._implied(described, levels)
            if default is not _NONE:
                defaults[name] = default
        self._left_out[key, levels] = defaults, before - self._entries
        return defaults

    def _afford(self, entries: int) -> bool:
        """Count entries; false: these are more than are left."""
        self._entries -= entries
        return self._entries >= 0

    def _described(self, schemas: _Schemas, value: Any) -> _Expanded:
        """The schemas of a value with what they say of each name."""
        found = self._expanded(schemas, value)
        found.others = (*_others(found.sure), *_others(found.perhaps))
        if not isinstance(value, Mapping):
            return found
        sure: dict[str, list[Any]] = {}
        perhaps: dict[str, list[Any]] = {}
        for ones, by_name in ((found.sure, sure), (found.perhaps, perhaps)):
            for one in ones:
                if not self._afford(len(_properties(one))):
                    found.is_whole = False
                    return found
                for name, described in _properties(one).items():
                    by_name.setdefault(name, []).append(described)
        found.properties = {
            name: _Schemas(tuple(sure.get(name, ())), tuple(perhaps.get(name, ()))) for name in {**sure, **perhaps}
        }
        return found

    def _default(self, described: _Schemas, levels: int) -> Any:
        """What a property is when it is left out; `_NONE` when nothing says so."""
        sure = [one["default"] for one in described.sure if isinstance(one, Mapping) and "default" in one]
        if not sure or described.perhaps:
            found = self._expanded(described, _ANY)
            if not sure and not found.is_whole:
                return Doubt(())  # what could not be followed may be, or hold, a default
            sure = sure or [one["default"] for one in found.sure if "default" in one]
            perhaps = [one["default"] for one in found.perhaps if "default" in one]
            if described.sure and sure:
                # A default of the property itself is what tools take; those in its branches are for their own values.
                perhaps = []
            options = [*sure, *perhaps] if sure else [*perhaps, Blank.MISSING] if perhaps else []
        else:
            options = sure
        if not options:
            return _NONE
        return _one_of(self._meant(described, option, levels) for option in options)

    def _implied(self, described: _Schemas, levels: int) -> Any:
        """What an object without a default of its own would hold by the defaults within it; `_NONE` when there are
        none. Within itself an object is not implied again: no tool makes one without end."""
        if not any(_may_hold(one) and self._may_be(one, {}) for one in (*described.sure, *described.perhaps)):
            return _NONE
        key = _Key(tuple(map(id, described.sure)), tuple(map(id, described.perhaps)), is_mapping=True)
        if key in self._implying:
            return _NONE
        self._implying.add(key)
        within = self.filled(described, {}, levels - 1)
        self._implying.remove(key)
        return Implied(within) if isinstance(within, Mapping) and within else _NONE

    def _meant(self, described: _Schemas, default: Any, levels: int) -> Any:
        return Blank.UNSET if default is None else self.filled(described, default, levels - 1)

    def _expanded(self, schemas: _Schemas, value: Any) -> _Expanded:
        found = _Expanded()
        seen: set[tuple[int, bool]] = set()
        waiting = [(one, True) for one in schemas.sure] + [(one, False) for one in schemas.perhaps]
        while waiting:
            schema, is_sure = waiting.pop()
            if not isinstance(schema, Mapping) or (id(schema), True) in seen or (id(schema), is_sure) in seen:
                continue
            self._left -= 1
            if self._left < 0:
                found.is_whole = False
                return found
            seen.add((id(schema), is_sure))
            (found.sure if is_sure else found.perhaps).append(schema)
            if not _DYNAMIC.isdisjoint(schema):
                found.is_whole = False
            if "$ref" in schema:
                target = self._at(schema["$ref"])
                if target is None:
                    found.is_whole = False
                waiting.append((target, is_sure))
            waiting += [(one, is_sure) for one in _schemas_in(schema, "allOf")]
            for key in ("anyOf", "oneOf"):
                branches = [one for one in _schemas_in(schema, key) if self._may_be(one, value)]
                waiting += [(one, is_sure and len(branches) == 1) for one in branches]
            waiting += [(schema[key], False) for key in ("then", "else") if key in schema]
            for key in ("dependentSchemas", "dependencies"):
                dependent = schema.get(key)
                if isinstance(dependent, Mapping):
                    waiting += [(one, False) for one in dependent.values()]
        return found

    def _may_be(self, schema: Any, value: Any) -> bool:
        """Whether a branch can describe a value at all; `null` never has defaults of its own."""
        for _ in range(DEEPEST):
            if not isinstance(schema, Mapping) or "$ref" not in schema or "type" in schema:
                break
            schema = self._at(schema["$ref"])
        said = schema.get("type") if isinstance(schema, Mapping) else None
        if value is _ANY:
            return said != "null"
        kind = "object" if isinstance(value, Mapping) else "array"
        return said is None or said == kind or (isinstance(said, list) and kind in said)

    def _at(self, reference: Any) -> Any:
        """What a `$ref` points at; `None` when it leads nowhere, or outside."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        schema: Any = self._root
        for step in reference.split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(schema, Mapping):
                schema = schema.get(name)
            elif isinstance(schema, list) and name.isdecimal() and len(name) < 6 and int(name) < len(schema):
                schema = schema[int(name)]
            else:
                return None
        return schema if isinstance(schema, Mapping) else None


@dataclass(frozen=True, slots=True)
class _Key:
    """Which schemas describe a value, by identity: they live as long as the filling; and of which kind it is."""

    sure: tuple[int, ...]
    perhaps: tuple[int, ...]
    is_mapping: bool


_ANY, _NONE = object(), object()
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
"""References that nobody follows here."""
_SAYING = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "items", "prefixItems"}
    | {"additionalItems"}
)
"""Keys of a schema that describe what is within a value."""
_HOLDING = frozenset({"properties", "$ref", "allOf", "anyOf", "oneOf", "then", "else"})
"""Keys of a schema that may lead to the properties of an object."""


def _one_of(options: Iterable[Any]) -> Any:
    different: list[Any] = []
    for option in options:
        if not any(option is one or _same(option, one) for one in different):
            different.append(option)
    return different[0] if len(different) == 1 else Doubt(tuple(different))


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, str | int | float | bool) and same_json(one, other)


def _may_hold(schema: Any) -> bool:
    """Whether a schema may say something of the properties of an object, by itself or by others."""
    return isinstance(schema, Mapping) and not _HOLDING.isdisjoint(schema)


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _unfilled(value: Any, levels: int) -> Any:
    """A value of which nobody knows what its mappings leave out."""
    if not isinstance(value, Mapping | list):
        return value
    if levels == 0:
        return Doubt(())
    if isinstance(value, list):
        return [_unfilled(item, levels - 1) for item in value]
    return Undetermined({name: _unfilled(item, levels - 1) for name, item in value.items()}, {})


def _of_name(name: str, found: _Expanded) -> _Schemas:
    """What describes the value of a name: its property, else perhaps what is said of the others."""
    described = found.properties.get(name, _Schemas())
    if described.sure or not found.others:
        return described
    return _Schemas(described.sure, (*described.perhaps, *found.others))


def _others(schemas: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    for schema in schemas:
        patterns = schema.get("patternProperties")
        if isinstance(patterns, Mapping):
            yield from patterns.values()
        for key in ("additionalProperties", "unevaluatedProperties"):
            if isinstance(schema.get(key), Mapping):
                yield schema[key]


def _item(found: _Expanded, at: int) -> _Schemas:
    return _Schemas(tuple(_of_items(found.sure, at)), tuple(_of_items(found.perhaps, at)))


def _of_items(schemas: Iterable[Mapping[str, Any]], at: int) -> Iterator[Any]:
    for schema in schemas:
        first = schema.get("prefixItems", schema.get("items"))
        if isinstance(first, list):
            if at < len(first):
                yield first[at]
            elif "prefixItems" in schema:
                yield schema.get("items")
            else:
                yield schema.get("additionalItems")
        else:
            yield schema.get("items")


def _schemas_in(schema: Mapping[str, Any], key: str) -> list[Any]:
    inner = schema.get(key)
    return inner if isinstance(inner, list) else []
