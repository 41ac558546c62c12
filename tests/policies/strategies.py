"""Any policy, any call, any facts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from policies.conditions import (
    AllConditions,
    AllOf,
    AnyOf,
    Between,
    Condition,
    Equals,
    Glob,
    Hours,
    Not,
    OneOf,
    Present,
    Regex,
)
from policies.judging import Policy, Rule
from policies.model import Allow, Annotations, Argument, Ask, Call, Deny, Facts, Match, Mode, Tool

GROUP = "slack-group:T1:S1"
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

extremes: st.SearchStrategy[Any] = st.sampled_from(
    [10**400, -(10**400), 5e-324, "\ud800", "\u202eab", "\x00", "１", "9" * 5_000, "1e999", "nan", "Ａ", "a" * 5_000]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | extremes,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
hints = st.sampled_from([True, False, None])
few_words = st.sampled_from(["a", "b", "create_event", "list_it", "*", "a*", "[", "web", ""])
commands = st.sampled_from(["m365 list", "m365 remove", "list; x", "'", "", "m365 list --x remove"]) | st.text(
    max_size=9
)
any_annotations = st.builds(Annotations, hints, hints, hints, hints)
schemas: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"properties": {"command": {"type": "string"}}, "required": ["command"]},
        {"properties": {"a": {"default": 1}, "b": {"$ref": "#/properties/b"}}},
        {"properties": 7, "required": 7},
    ]
)
tools = st.builds(
    Tool,
    server=few_words,
    name=few_words,
    annotations=any_annotations,
    annotations_trusted=st.booleans(),
    requires_approval=st.booleans(),
    input_schema=schemas,
)
arguments = st.dictionaries(few_words, json_values, max_size=3) | st.fixed_dictionaries(
    {"command": commands | json_values}
)
texts = st.sampled_from(["", "please do it now", "do it now", "now"]) | st.text(max_size=8)
calls = st.builds(Call, tool=tools, arguments=arguments, quote=texts)
any_facts = st.builds(
    Facts,
    mode=st.sampled_from(Mode),
    requester=few_words,
    platform=few_words,
    place=few_words,
    at=st.datetimes(timezones=st.just(UTC)) | st.sampled_from([_FIRST, _LAST]),
    groups=st.dictionaries(st.just(GROUP), hints),
    client=few_words,
    agent=few_words,
    agent_asks=st.booleans(),
    said=st.lists(texts, max_size=2).map(tuple),
)
leaves: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Equals, json_values),
    st.builds(OneOf, st.lists(json_values, max_size=2).map(tuple)),
    st.builds(Glob, few_words),
    st.builds(Regex, st.sampled_from(["a.*", "", "(a|b)+", "[^a]"])),
    st.builds(Between, st.none() | st.floats(allow_nan=False), st.none() | st.integers()),
    st.builds(Present, st.booleans()),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(AnyOf, inner),
        st.builds(AllOf, inner),
        st.builds(AllConditions, st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=3,
)
keys = few_words | st.sampled_from(["$.a", "$..a", "$[*]", "$.a[*].b", "$['']"])
maybe = st.none() | few_words


def matches(modes: st.SearchStrategy[Mode | None]) -> st.SearchStrategy[Match]:
    return st.builds(
        Match,
        server=maybe,
        tool=maybe,
        command=st.none() | st.sampled_from(["*", "* list*", "[", "m365 *"]),
        args=st.lists(st.builds(Argument.of, keys, conditions), max_size=2).map(tuple),
        annotations=st.dictionaries(st.sampled_from(["readOnlyHint", "openWorldHint"]), st.booleans(), max_size=1),
        mode=modes,
        platform=maybe,
        channel=maybe,
        client=st.lists(few_words, max_size=2).map(tuple),
        agent=st.lists(few_words, max_size=2).map(tuple),
        requester=st.lists(few_words | st.just(GROUP), max_size=2).map(tuple),
        time=st.none() | st.builds(Hours, st.sampled_from(["UTC", "Asia/Tokyo"]), st.just(frozenset({5})), st.just(60)),
    )


verdicts: st.SearchStrategy[Allow | Ask | Deny] = st.one_of(
    st.builds(Allow, rule=st.just("r"), reads=st.booleans()),
    st.builds(Ask, rule=st.just("r"), reads=st.booleans(), always_allow=st.sampled_from([True, None])),
    st.builds(Deny, rule=st.just("r"), reason=st.just("no")),
)


def policies(modes: st.SearchStrategy[Mode | None]) -> st.SearchStrategy[Policy]:
    return st.lists(rules(modes), max_size=4).map(lambda made: Policy(rules=tuple(made)))


def rules(modes: st.SearchStrategy[Mode | None]) -> st.SearchStrategy[Rule]:
    return st.builds(Rule, name=st.just("r"), match=matches(modes), verdict=verdicts)


any_mode = st.none() | st.sampled_from(Mode)
any_policy = policies(any_mode)
