"""Rule 12: a server receives the arguments that were approved, value by value and type by type."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph.models.tool_calls import read_arguments
from graph.ports import Failed, Succeeded
from policies.approvers import digest_of
from tests.models.test_arguments import TEXTS, VALUES
from tests.support.examples import examples

from .conftest import lines, listening, made, running, server


@asynccontextmanager
async def noting_http(notes: Path) -> AsyncIterator[dict[str, Any]]:
    async with listening("noting.py", notes, "http") as (_, port):
        yield {"type": "http", "url": f"http://127.0.0.1:{port}/"}


@asynccontextmanager
async def noting_sse(notes: Path) -> AsyncIterator[dict[str, Any]]:
    async with listening("noting.py", notes, "sse") as (_, port):
        yield {"type": "sse", "url": f"http://127.0.0.1:{port}/"}


@asynccontextmanager
async def noting_stdio(notes: Path) -> AsyncIterator[dict[str, Any]]:
    yield server("noting.py", notes, "stdio")


def exactly(value: Any) -> Any:
    """A value as something that is equal only to one with the same types throughout (1, 1.0 and true are not)."""
    match value:
        case dict():
            return ("object", sorted((key, repr(exactly(item))) for key, item in value.items()))
        case list():
            return ("list", [exactly(item) for item in value])
        case _:
            return (type(value).__name__, repr(value))


@pytest.mark.parametrize("transport", [noting_stdio, noting_http, noting_sse])
def test_a_server_receives_what_was_approved(tmp_path: Path, transport: Any) -> None:
    notes = tmp_path / "notes"

    with asyncio.Runner() as runner:
        noting = transport(notes)
        servers_running = running(tmp_path, {"noting": runner.run(noting.__aenter__())})
        servers = runner.run(servers_running.__aenter__())
        tool = runner.run(servers.find("noting__note"))
        assert tool is not None

        @settings(max_examples=examples(35), suppress_health_check=list(HealthCheck))
        @given(st.dictionaries(TEXTS, VALUES, max_size=4))
        @example({"older_than_days": None, "empty": {}, "none": [], "text": "", "key\u2028": {"": [[], {}]}})
        @example({"zero": -0.0, "one": 1.0, "whole": 1, "yes": True, "large": 1e300, "small": 5e-324, "n": 2**53 - 1})
        @example({"_meta": {"progressToken": 1}, "arguments": {"name": "other"}, "text": "\ud7ff\ue000\U0010ffff\x7f"})
        def received(arguments: Mapping[str, Any]) -> None:
            approved = read_arguments(json.dumps(arguments))
            digest = digest_of(tool, approved)
            assert runner.run(made(servers, tool, approved)) == Succeeded("noted")
            arrived = ast.literal_eval(lines(notes)[-1])
            assert exactly(arrived) == exactly(arguments)
            assert digest_of(tool, arrived) == digest

        try:
            received()
        finally:
            runner.run(servers_running.__aexit__(None, None, None))
            runner.run(noting.__aexit__(None, None, None))


async def test_numbers_that_json_cannot_carry_are_not_sent_as_null(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, {"noting": server("noting.py", notes, "stdio")}) as servers:
        tool = await servers.find("noting__note")
        assert tool is not None
        for number in (float("inf"), float("-inf"), float("nan")):
            with pytest.raises(ValueError, match="JSON"):
                digest_of(tool, {"older_than_days": number})
        for number in (float("inf"), float("-inf"), float("nan"), 2**53):
            outcome = await made(servers, tool, {"older_than_days": [number]})
            assert isinstance(outcome, Failed)
            assert "Nothing was called" in outcome.text
    assert not notes.exists()
