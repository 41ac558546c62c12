"""What the worst that a tool server may send costs: schemas, values against them, and messages. Each holds the event
loop in one go, so the limit is that of the loop, 50 ms."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from mcp.types import JSONRPCMessage

from adapters.tool_servers.incoming import ELEMENT, LARGEST_MESSAGE, LIST_OR_OBJECT, MEMBER
from adapters.tool_servers.sessions import complaint_about
from bench.figures import Figure, Limit
from bot.forms.editing import edit_fields, read_form
from bot.schemas.measuring import problem_of

LIMIT = Limit(50)
ROW = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
DOUBLING = {
    "$defs": {"d0": {}, **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, 30)}},
    "$ref": "#/$defs/d29",
}
VALUES: list[tuple[dict[str, Any], Any]] = [
    (ROW, {"a": "x", "b": 1}),
    ({"items": ROW}, [{"a": "x", "b": 1}] * 2_000),
    (DOUBLING, 1),
    ({"pattern": "(.*a.{100})"}, "ab" * 10_000),
    ({"anyOf": [{"type": "string"}] * 3_000}, list(range(100_000))),
    ({"uniqueItems": True}, [{"a": number} for number in range(20_000)]),
    ({"items": {"enum": [[*([1] * 1_000), option] for option in range(15)]}}, [[1] * 1_001] * 300),
    ({"items": {"multipleOf": 7**4_000}}, [10**4_200] * 200),
]
SCHEMAS: list[dict[str, Any]] = [
    {"allOf": [{}] * 20_000},
    {"properties": {f"p{n}": {"allOf": [{}, {}, {"type": "string"}]} for n in range(1_400)}},
    {"properties": {f"p{n}": {"$ref": "#/properties/" + "a/" * 400} for n in range(70)}},
]


def received() -> list[Figure]:
    """The worst of each kind, in milliseconds of CPU."""
    gc.collect()
    gc.freeze()  # as the product does when it listens
    try:
        return [
            Figure("the worst schema, measured", _worst(map(_measuring, SCHEMAS)), "ms", None, LIMIT),
            Figure("… a call checked against it", _worst(_checking(*each) for each in VALUES), "ms", None, LIMIT),
            Figure("… an edit drawn and checked", _worst(_editing(*each) for each in VALUES), "ms", None, LIMIT),
            Figure("the worst message, parsed by the SDK", _worst(map(_parsing, _messages())), "ms", None, LIMIT),
        ]
    finally:
        gc.unfreeze()


def _measuring(schema: dict[str, Any]) -> Callable[[], object]:
    return lambda: problem_of(schema)


def _checking(schema: dict[str, Any], value: Any) -> Callable[[], object]:
    return lambda: complaint_about({"it": value}, _within(schema))


def _editing(schema: dict[str, Any], value: Any) -> Callable[[], object]:
    arguments = {"it": value, "other": "a"}
    return lambda: (
        edit_fields(_within(schema), arguments, None),
        read_form(_within(schema), arguments, None, {"other": "b"}),
    )


def _within(schema: dict[str, Any]) -> dict[str, Any]:
    about = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", **about, "properties": {"it": schema, "other": {}}}


def _parsing(message: bytes) -> Callable[[], object]:
    return lambda: JSONRPCMessage.model_validate_json(message)


def _messages() -> Iterable[bytes]:
    """As large as they may be, each of one kind."""
    for inside in (
        json.dumps("a" * (LARGEST_MESSAGE - 100)),
        json.dumps("é" * (LARGEST_MESSAGE // 6 - 100)),
        f"[{'[],' * (LARGEST_MESSAGE // (LIST_OR_OBJECT + ELEMENT + 3))}1]",
        f"[{'[[[[[[]]]]]],' * (LARGEST_MESSAGE // (6 * LIST_OR_OBJECT + ELEMENT + 13))}1]",
        f"[{'1,' * (LARGEST_MESSAGE // (ELEMENT + 2))}1]",
        json.dumps({f"{number:x}": 1 for number in range(LARGEST_MESSAGE // (MEMBER + ELEMENT + 12))}),
    ):
        yield f'{{"jsonrpc": "2.0", "id": 1, "result": {{"content": [], "structuredContent": {inside}}}}}'.encode()


def _worst(works: Iterable[Callable[[], object]]) -> float:
    """The slowest of these, each the better of two times: what is imported or compiled first does not count."""
    return max(min(_took(work), _took(work)) for work in works)


def _took(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1_000
