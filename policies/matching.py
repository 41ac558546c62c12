"""Does a rule fit a call? Three answers: yes, no, and "could not be found out"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from policies.model import Call, Facts, Tool
from policies.rules import Match, is_group
from policies.trust import believed


class Fit(Enum):
    """How a match relates to a call."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """It depends on a group that could not be looked up."""


def fit(match: Match, call: Call, facts: Facts) -> Fit:
    """Whether every given field of `match` fits. `UNKNOWN` only when nothing else already says no."""
    answers = set(_answers(match, call, facts))
    if Fit.NO in answers:
        return Fit.NO
    return Fit.UNKNOWN if Fit.UNKNOWN in answers else Fit.YES


def _answers(match: Match, call: Call, facts: Facts) -> Iterator[Fit]:
    tool = call.tool
    yield _either(match.server is None or match.server == tool.server)
    yield _either(match.tool is None or fnmatchcase(tool.name, match.tool))
    yield _either(match.mode is None or match.mode == facts.mode)
    yield _either(match.platform is None or match.platform == facts.platform)
    yield _either(match.channel is None or match.channel == facts.place)
    yield _either(_annotations_fit(match.annotations, tool))
    yield _either(all(_argument_fits(name, wanted, call) for name, wanted in match.args.items()))
    yield _requester_fit(match.requester, facts)


def _either(fits: bool) -> Fit:  # noqa: FBT001 - the value itself, not a switch
    return Fit.YES if fits else Fit.NO


def _annotations_fit(wanted: Mapping[str, bool], tool: Tool) -> bool:
    if not wanted:
        return True
    if not tool.annotations_trusted:
        return False
    facts = believed(tool)
    hints = {
        "readOnlyHint": facts.read_only,
        "destructiveHint": facts.destructive,
        "idempotentHint": facts.idempotent,
        "openWorldHint": facts.open_world,
    }
    return all(hints.get(hint) is value for hint, value in wanted.items())


def _argument_fits(name: str, wanted: Any, call: Call) -> bool:
    """An argument that is left out has its schema's default: leaving it out must not get a call around a rule."""
    given = {**_defaults(call.tool.input_schema), **call.arguments}
    if name not in given:
        return False
    value = given[name]
    if isinstance(wanted, str) and isinstance(value, str):
        return fnmatchcase(value, wanted)
    return same_json(wanted, value)


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: p["default"] for name, p in properties.items() if isinstance(p, Mapping) and "default" in p}


def same_json(one: Any, other: Any) -> bool:
    """Equality of JSON values: `1` and `1.0` are the same, `1` and `true` are not.

    Goes only as deep as `one`, which comes from a policy and is therefore shallow, whatever a model sends as `other`.
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, dict | list):
        return False
    return isinstance(other, str | int | float | None) and bool(one == other)


def _requester_fit(wanted: str | None, facts: Facts) -> Fit:
    if wanted is None:
        return Fit.YES
    if not is_group(wanted):
        return _either(wanted == facts.requester)
    member = facts.groups.get(wanted)
    return Fit.UNKNOWN if member is None else _either(member)
