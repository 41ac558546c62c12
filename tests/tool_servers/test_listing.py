"""What becomes of the tools that a server lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.config import ServerConfig, StdioTransport
from adapters.tool_servers.listing import (
    LARGEST_LISTING,
    LARGEST_PASSED_ON,
    LARGEST_SCHEMA,
    MOST_LISTED,
    MOST_REPORTED,
    MOST_TOOLS,
    Catalogue,
    ListingSpace,
    ToolListing,
    masked,
    read_listing,
)
from adapters.tool_servers.text import unchanged
from policies.masking import Masker
from policies.model import Annotations, Lookup
from policies.trust import known_to_read
from tests.support.examples import examples

OBJECT = {"type": "object"}


def listing(*entries: Any, **said: Any) -> ToolListing:
    transport = StdioTransport("x", (), {}, Path())
    return read_listing(ServerConfig(name="one", transport=transport, fingerprint="f", **said), entries)


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": OBJECT, **more}


def test_what_is_read_for_cards_is_known_of_each_tool_that_has_such_an_argument() -> None:
    takes_id = {"type": "object", "properties": {"event_id": {"type": "string"}}}
    reads = {"annotations": {"readOnlyHint": True}}
    found = listing(
        tool("delete", inputSchema=takes_id),
        tool("list"),
        tool("get", **reads),
        tool("writes"),
        trust_annotations=True,
        lookups={"event_id": Lookup("get", "event_id"), "room": Lookup("gone", "room")},
        preview_tools={"delete": "writes"},
    )
    delete, _, listed, _ = found.tools
    assert (dict(delete.lookups), delete.preview_tool) == ({"event_id": Lookup("get", "event_id")}, "writes")
    assert (dict(listed.lookups), listed.preview_tool) == ({}, "")
    assert found.skipped == (
        "gone is in `lookupTools`, but the server has no such tool",
        "writes is in `previewTools`, but the server does not say that it only reads",
    )


def names(found: ToolListing) -> list[str]:
    return [each.name for each in found.tools]


def test_a_tool_is_known_with_all_that_its_server_and_the_operator_say() -> None:
    found = listing(
        tool(
            "write",
            title="Write\nit",
            description="Writes.\x00",
            annotations={"readOnlyHint": False, "destructiveHint": True, "idempotentHint": "yes"},
        ),
        category="office",
        require_approval=frozenset({"write"}),
        trust_annotations=True,
    )
    (write,) = found.tools
    assert (write.full_name, write.title, write.description) == ("one__write", "Write it", "Writes.")
    assert write.annotations == Annotations(read_only=False, destructive=True, idempotent=None, open_world=None)
    assert (write.category, write.fingerprint, write.input_schema) == ("office", "f", OBJECT)
    assert write.annotations_trusted
    assert write.requires_approval
    assert not write.repeatable
    assert not write.personal


def test_without_annotations_nothing_is_assumed() -> None:
    (read,) = listing(tool("read")).tools
    assert read.annotations == Annotations()
    assert not (read.annotations_trusted or read.repeatable)


@pytest.mark.parametrize(
    ("said", "repeatable"),
    [
        ({"trust_annotations": True}, True),
        ({"trust_annotations": False}, False),
        ({"idempotent_tools": frozenset({"read"})}, True),
        ({"read_only_tools": frozenset({"read"})}, True),
        ({"read_only_tools": frozenset({"other"})}, False),
    ],
)
def test_a_tool_may_be_repeated_when_the_operator_says_so(*, said: dict[str, Any], repeatable: bool) -> None:
    (read,) = listing(tool("read", annotations={"readOnlyHint": True}), **said).tools
    assert read.repeatable is repeatable


def test_what_the_operator_lists_as_reading_reads_whatever_the_server_says() -> None:
    found = listing(tool("look", annotations={"readOnlyHint": False}), tool("act"), read_only_tools=frozenset({"look"}))
    assert [(one.name, one.reads_only, known_to_read(one)) for one in found.tools] == [
        ("act", False, False),
        ("look", True, True),
    ]


def test_the_title_in_the_annotations_comes_first() -> None:
    assert listing(tool("a", title="A", annotations={"title": "B"})).tools[0].title == "B"


def test_the_tools_come_in_the_order_of_their_names() -> None:
    assert names(listing(tool("b"), tool("a"))) == ["a", "b"]


def test_only_the_chosen_tools_are_there() -> None:
    found = listing(tool("a"), tool("b"), tools=frozenset({"a"}))
    assert names(found) == ["a"]
    assert found.skipped == ()


def test_names_that_no_tool_has_are_reported() -> None:
    found = listing(
        tool("a"), tools=frozenset({"a", "b"}), idempotent_tools=frozenset({"c"}), read_only_tools=frozenset({"d"})
    )
    assert [sentence.split()[0] for sentence in found.skipped] == ["b", "c", "d"]
    assert found.problem is None


def test_an_approval_for_a_tool_that_is_not_there_withholds_them_all() -> None:
    found = listing(tool("a"), require_approval=frozenset({"a", "delet"}))
    assert found.problem is not None
    assert found.problem.endswith("does not have: delet")


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "a tool",
        {},
        {"name": 7, "inputSchema": OBJECT},
        {"name": "", "inputSchema": OBJECT},
        {"name": "a b", "inputSchema": OBJECT},
        {"name": "a\n", "inputSchema": OBJECT},
        {"name": "<!channel>", "inputSchema": OBJECT},
        {"name": "\u202eevil", "inputSchema": OBJECT},
        {"name": "x" * 129, "inputSchema": OBJECT},
        {"name": "no-schema"},
        {"name": "list", "inputSchema": {"type": "array"}},
        {"name": "any", "inputSchema": {}},
        {"name": "true", "inputSchema": True},
        {"name": "bad", "inputSchema": {"type": "object", "properties": 7}},
        {"name": "unknown-type", "inputSchema": {"type": "object", "properties": {"a": {"type": "colour"}}}},
        {"name": "endless", "inputSchema": {"type": "object", "properties": {"a": {"maximum": float("inf")}}}},
        {"name": "huge", "inputSchema": {"type": "object", "description": "x" * LARGEST_SCHEMA}},
    ],
)
def test_a_tool_that_is_not_in_order_is_left_out_and_the_others_stay(entry: Any) -> None:
    found = listing(entry, tool("good"))
    assert names(found) == ["good"]
    (sentence,) = found.skipped
    assert "was left out" in sentence
    assert sentence.isprintable()


def test_the_second_tool_of_a_name_is_left_out() -> None:
    found = listing(tool("a", description="first"), tool("a", description="second"))
    assert [each.description for each in found.tools] == ["first"]
    assert found.skipped == ("'a' was left out: there is another one of that name",)


def test_there_is_a_limit_to_tools_and_descriptions() -> None:
    found = listing(*(tool(f"t{i:03}", description="x" * 2_000) for i in range(MOST_TOOLS + 2)))
    assert len(found.tools) == MOST_TOOLS
    assert len(found.skipped) == 2
    assert all(len(each.description) == 1_024 for each in found.tools)


def test_long_names_are_shortened_for_the_model_and_stay_apart() -> None:
    found = listing(tool("x" * 100 + "1"), tool("x" * 100 + "2"))
    full_names = {each.full_name for each in found.tools}
    assert len(full_names) == 2
    assert all(len(name) <= 64 for name in full_names)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "inputSchema", "type", "properties", "annotations", "$ref", "$schema", "$id"]),
            inner,
        )
    ),
)
SCHEMAS = st.dictionaries(
    st.sampled_from(["properties", "required", "$ref", "$schema", "$id", "$defs", "allOf", "pattern", "enum"]), ANYTHING
).map(lambda schema: {**schema, "type": "object"})
ENTRIES = ANYTHING | st.fixed_dictionaries(
    {"name": st.text(max_size=5), "inputSchema": ANYTHING | SCHEMAS},
    optional={"annotations": ANYTHING, "title": ANYTHING},
)


@settings(max_examples=examples(20))
@given(st.lists(ENTRIES, max_size=5))
def test_no_listing_makes_it_fail(entries: list[Any]) -> None:
    found = listing(*entries)
    assert len({each.full_name for each in found.tools}) == len(found.tools)
    for each in found.tools:
        json.dumps(dict(each.input_schema))
        assert each.schema_hash


def test_no_secret_is_in_what_is_told_of_a_tool() -> None:
    token, known = "ghp_" + "a1B2" * 9, "handed-to-it"
    properties = {
        "how": {"type": "string", "description": f"like {token}", "enum": ["fast", token], "default": "fast"},
        "password": {"type": "string", "default": "correct-horse-9"},
        "api_key": {"type": "string"},
    }
    entry = tool("write", title=f"Write {token[:9]}\x00{token[9:]}", description=f"With {known}.") | {
        "inputSchema": {"type": "object", "properties": properties, "required": ["password"], "examples": [token]}
    }
    transport = StdioTransport("x", (), {}, Path())
    server = ServerConfig(name="one", transport=transport, fingerprint="f", secrets=frozenset({known}))
    (found,) = read_listing(server, [entry], mask=Masker().mask).tools
    mask = "[secret: github token]"
    assert (found.title, found.description) == (f"Write {mask}", "With [redacted].")
    assert found.input_schema == {
        "type": "object",
        "properties": {
            "how": {"type": "string", "description": f"like {mask}", "enum": ["fast", mask], "default": "fast"},
            "password": {"type": "string"},
            "api_key": {"type": "string"},
        },
        "required": ["password"],
        "examples": [mask],
    }


# ------------------------------------------------------------------------------------------- hostile schemas (rule 13)

DOUBLING = {
    "type": "object",
    "$defs": {"d0": {}, **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, 30)}},
    "properties": {"a": {"$ref": "#/$defs/d29"}},
}


def test_a_tool_whose_schema_comes_to_too_much_is_withheld_with_the_reason() -> None:
    """Rule 13: measured when tools are listed."""
    found = listing(tool("good"), tool("bad", inputSchema=DOUBLING))
    assert names(found) == ["good"]
    (said,) = found.skipped
    assert said.startswith("'bad' was left out: its input schema comes to")
    assert "subschemas when its references are followed" in said


def test_a_tool_whose_schema_refers_to_itself_without_end_is_withheld() -> None:
    """Rule 13."""
    found = listing(tool("bad", inputSchema={"type": "object", "allOf": [{"$ref": "#"}]}))
    assert found.tools == ()
    assert "refers to itself without end" in found.skipped[0]


def test_what_may_be_read_of_a_listing_is_bounded() -> None:
    """Rule 13: bytes, entries and what is reported of them."""
    large = {"type": "object", "description": "x" * 60_000}
    read = masked([tool(f"t{number}", inputSchema=large) for number in range(1_000)], unchanged, ListingSpace())
    assert len(json.dumps(read)) < 1.1 * LARGEST_LISTING
    found = listing(*read)
    assert len(found.tools) == LARGEST_LISTING // 60_100
    assert len(found.skipped) == MOST_REPORTED + 1
    assert "all together are too large" in found.skipped[0]


def test_only_so_many_entries_are_looked_at() -> None:
    """Rule 13."""
    asked = []
    read = masked(
        [tool("t", description=str(number)) for number in range(5_000)],
        lambda text: asked.append(text) or text,
        ListingSpace(),
    )
    assert len(asked) <= 2 * MOST_LISTED
    assert listing(*read).skipped[-1].startswith("and ")


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_a_schema_that_is_deeper_than_the_stack_withholds_its_tool_alone(depth: int) -> None:
    """Rule 13."""
    deep: Any = {}
    for _ in range(depth):
        deep = {"items": deep}
    read = masked(
        [tool("bad", inputSchema={**OBJECT, "properties": {"a": deep}}), tool("good")], unchanged, ListingSpace()
    )
    found = listing(*read)
    assert names(found) == ["good"]
    assert found.skipped[0].startswith("'bad' was left out: its input schema is")


def test_what_is_only_passed_on_is_bounded_and_costs_no_tool_its_place() -> None:
    """Rule 13: an output schema may be as large as it likes."""
    entry = tool("t", outputSchema={"x": "y" * 10_000_000}, _meta={"a": 1}, more=1)
    (read,) = masked([entry], unchanged, ListingSpace())
    assert read == tool("t", _meta={"a": 1})
    (read,) = masked([tool("t", icons=[float("nan")], execution={"a": 2**70})], unchanged, ListingSpace())
    assert read == tool("t")
    most = LARGEST_PASSED_ON // 60_002
    entries = [tool(f"t{number}", outputSchema="y" * 60_000) for number in range(most + 5)]
    read = masked(entries, unchanged, ListingSpace())
    assert read == [*entries[:most], *(tool(f"t{number}") for number in range(most, most + 5))]
    catalogue = Catalogue()
    catalogue.listed("web:ana", entries)
    assert catalogue.entries == read


def test_tools_are_declared_as_their_server_lists_them_without_secrets() -> None:
    said = tool(
        "make",
        title="Make\nit",
        description="Makes. " * 1_000,
        annotations={"title": "Maker", "readOnlyHint": "perhaps", "more": [1]},
        outputSchema={**OBJECT, "properties": {"a": {"type": "string", "title": "hunter2hunter2"}}},
        icons=[{"src": "https://x/hunter2hunter2.png"}],
        _meta={"a/b": {"c": "hunter2hunter2"}},
    )
    found = listing(tool("plain"), said, {"name": 7}, secrets=frozenset({"hunter2hunter2"}))
    without = json.loads(json.dumps(said).replace("hunter2hunter2", "[redacted]"))
    assert found.declared == {"one__plain": tool("plain"), "one__make": without}


def test_tools_that_the_operator_left_out_are_not_declared() -> None:
    assert listing(tool("a"), tool("b"), tools=frozenset({"a"})).declared.keys() == {"one__a"}
