"""Rules 4 and 10: half of a surrogate pair in what a server says is shown as the replacement character, and the message
is read like any other. The SDK's parser refuses it whole: its call waited until its time was up and ended as unknown,
although the server had said what came of it.

Programs that cut a text at so many UTF-16 units, as JavaScript does, cut an emoji in two.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from adapters.tool_servers import incoming
from adapters.tool_servers.incoming import with_whole_characters
from graph.ports import Failed, Succeeded
from tests.support.cpu import at_most_cpu
from tests.support.examples import examples

from .conftest import bare_server, call, running
from .http_odd import odd_http

HALF = "\ud83d"
RESULTS: list[tuple[dict[str, Any], str]] = [
    ({"content": [{"type": "text", "text": f"cut {HALF}"}]}, "cut \ufffd"),
    ({"content": [{"type": "text", "text": "smile \U0001f600, \\ud83d"}]}, "smile \U0001f600, \\ud83d"),
    ({"content": [], "structuredContent": {f"na{HALF}me": f"{HALF}cut"}}, '{"na\ufffdme": "\ufffdcut"}'),
    (
        {"content": [{"type": "resource", "resource": {"uri": f"file:///{HALF}", "text": f"a{HALF}"}}]},
        "[resource: file:///\ufffd]\na\ufffd",
    ),
]
FAILURE = {"content": [{"type": "text", "text": f"no {HALF}"}], "isError": True}


@pytest.mark.parametrize(("result", "shown"), RESULTS)
async def test_a_programs_result_with_half_a_character_is_a_result(
    tmp_path: Path, result: dict[str, Any], shown: str
) -> None:
    async with running(tmp_path, {"odd": bare_server("odd.py", tmp_path)}) as servers:
        assert await call(servers, "odd__echo", result=json.dumps(result)) == Succeeded(shown, "")
        failed = await call(servers, "odd__echo", result=json.dumps(FAILURE))
        assert isinstance(failed, Failed)
        assert "no \ufffd" in failed.text
        failed = await call(servers, "odd__fail", error=json.dumps({"code": -32000, "message": f"no {HALF}"}))
        assert isinstance(failed, Failed)
        assert "no \ufffd" in failed.text


@pytest.mark.parametrize("how", ["echo", "event"])
async def test_a_result_over_http_with_half_a_character_is_a_result(tmp_path: Path, how: str) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        for result, shown in RESULTS:
            assert await call(servers, f"odd__{how}", result=json.dumps(result)) == Succeeded(shown, "")
        failed = await call(servers, f"odd__{how}", result=json.dumps(FAILURE))
        assert isinstance(failed, Failed)
        assert "no \ufffd" in failed.text


def test_a_question_under_half_an_id_ends_no_session() -> None:
    """An answer under such an id could not be written, and with that the session ended, with all calls on it."""
    asked = {"jsonrpc": "2.0", "id": HALF, "method": "elicitation/create", "params": {}}
    assert incoming.elicitation_in(json.dumps(asked).encode(), None, _nowhere) is None


async def _nowhere(_: dict[str, Any]) -> None:
    pass


async def test_a_body_with_bytes_that_are_no_utf_8_is_read(tmp_path: Path) -> None:
    async with odd_http() as odd, running(tmp_path, {"odd": {"url": odd.url}}) as servers:
        outcome = await call(servers, "odd__echo", result=json.dumps(RESULTS[0][0]), raw=True)
    assert isinstance(outcome, Succeeded)
    assert outcome.text.rstrip("\ufffd") == "cut "


@pytest.fixture
def in_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "REPLACED_AT_ONCE", 5)


texts = st.text(st.sampled_from('\ud83d\udbff\ude00\udc00\U0001f600\\uad8"\n\xe4'))


@settings(max_examples=examples(60))
@given(st.recursive(texts, lambda of: st.lists(of) | st.dictionaries(texts, of)))
@example("\\ud800\udc00")
@example("\ud800\ud800\udc00\udc00")
@pytest.mark.usefixtures("in_small_steps")
def test_every_json_is_read_as_python_reads_it_but_for_halves_of_characters(value: Any) -> None:
    """However it is cut into steps; pairs, escaped backslashes and what merely looks like an escape stay."""
    read = from_json(asyncio.run(with_whole_characters(json.dumps(value).encode())))
    assert read == whole(json.loads(json.dumps(value)))


@pytest.mark.parametrize("text", [b"a", rb"\\", rb"\\ud83d"], ids=["plain", "backslashes", "what looks like one"])
def test_a_long_text_with_one_half_holds_nobody_up(text: bytes) -> None:
    """Rule 13: looking for escapes in 4 MB without any took 0.1 s."""
    message = b'"%b%b"' % (text * (4_000_000 // len(text)), rb"\ud83d")
    with at_most_cpu(0.05):
        read = asyncio.run(with_whole_characters(message))
    assert read == message.removesuffix(rb'\ud83d"') + rb'\ufffd"'


@given(st.binary())
def test_what_is_no_json_does_not_make_it_fail(message: bytes) -> None:
    assert isinstance(asyncio.run(with_whole_characters(message)), bytes)


def whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [whole(each) for each in value]
        case _:
            return {whole(name): whole(each) for name, each in value.items()}
