"""What a server returned reaches a program as it came, but without secrets, and bounded."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings

from adapters.tool_servers import returned as returned_module
from adapters.tool_servers.returned import LARGEST_DATA, LONGEST_RETURNED, MOST_BLOCKS
from policies.masking import Masker
from tests.tool_servers.conftest import outcome_of
from tests.tool_servers.test_results import BLOCKS, TOKEN, text

KNOWN = 'hunter2 "quoted" € secret'
MASK = Masker(values=["known-to-the-product"]).mask
PICTURE = {"type": "image", "data": base64.b64encode(b"\x89PNG\r\n" * 20).decode(), "mimeType": "image/png"}


def returned(*content: Any, structured: Any = None, **more: Any) -> Any:
    outcome = outcome_of(content, structured, keeps_returned=True, mask=MASK, secrets=[KNOWN, "hunter2hunter2"], **more)
    return outcome.returned


def content_of(*content: Any, **more: Any) -> list[Any]:
    blocks: list[Any] = returned(*content, **more)["content"]
    return blocks


def test_content_of_all_kinds_comes_as_the_server_returned_it() -> None:
    blocks = [
        {"type": "text", "text": "one\r\ntwo\x1b[1m €", "annotations": {"audience": ["user"], "priority": 0.5}},
        PICTURE,
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "_meta": {"a/b": [1, None, {"c": True}]}},
        {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "in it"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "//79"}},
        {"type": "resource_link", "uri": "file:///c", "name": "c", "title": "C", "size": 12},
        {"type": "hologram", "depth": {"x": [1.5]}},
    ]
    structured = {"rows": [{"a": 1, "b": None}], "ü": "€"}
    assert returned(*blocks, structured=structured) == {"content": blocks, "structuredContent": structured}
    assert returned(text("x")) == {"content": [text("x")]}


def test_nothing_is_kept_unless_a_program_takes_it_in() -> None:
    assert outcome_of([text("x")]).returned is None
    assert outcome_of([text("x")], is_error=True).returned is None


def test_an_error_is_told_and_returned() -> None:
    failed = outcome_of(
        [text("no: Bearer abcdefghijkl")], {"code": 7}, is_error=True, keeps_returned=True, owner="web:a"
    )
    assert failed.returned == {"content": [text("no: Bearer [redacted]")], "structuredContent": {"code": 7}}
    assert (failed.text, failed.owner) == ('files reported an error: no: Bearer [redacted]\n{"code": 7}', "web:a")


@pytest.mark.parametrize("secret", [TOKEN, KNOWN, "known-to-the-product"])
def test_secrets_are_taken_out_wherever_a_text_may_stand(secret: str) -> None:
    inside = base64.b64encode(f"it is {secret}.".encode()).decode()
    blocks = [
        {"type": "text", "text": f"it is {secret}", "_meta": {secret: [{"deep": f"x {secret} y"}]}},
        {"type": "image", "data": f"{secret}!", "mimeType": secret},
        {"type": "resource", "resource": {"uri": f"file:///?{secret}", "text": f"a {secret} b"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": inside}},
        {"type": "resource_link", "uri": "file:///c", "name": secret, "title": secret},
        {"type": "hologram", "said": [secret], secret: 1},
    ]
    got = returned(*blocks, structured={"a": [{"b": secret}], secret: "x"})
    assert len(got["content"]) == len(blocks)
    written = json.dumps(got, ensure_ascii=False)
    assert secret not in written
    assert json.dumps(secret, ensure_ascii=False)[1:-1] not in written
    assert secret not in base64.b64decode(got["content"][3]["resource"]["blob"]).decode()


def test_a_field_that_is_called_like_a_secret_is_masked_and_all_else_stays() -> None:
    got = returned(structured={"password": "correct-horse-9", "rows": [1, 2], "note": "fine"})["structuredContent"]
    assert got == {"password": "[secret: password]", "rows": [1, 2], "note": "fine"}


def test_a_secret_that_was_cut_in_two_or_is_hidden_by_control_characters_is_masked() -> None:
    halves = (text(f"it is {TOKEN[:20]}"), text(f"{TOKEN[20:]}, you see"), text("more\x07"))
    assert content_of(*halves) == [text("it is [secret: github token], you see"), text(""), text("more\x07")]
    assert content_of(text(f"a\x07 {TOKEN[:9]}\x1b[1m{TOKEN[9:]}.")) == [text("a [secret: github token].")]


def test_binary_data_that_holds_what_we_gave_to_the_server_is_not_passed_on() -> None:
    blob = base64.b64encode(b"\xff\xfe" + b"hunter2hunter2" + b"\xff").decode()
    (block,) = content_of({"type": "image", "data": blob, "mimeType": "image/png"})
    assert block == text(f"[image, {len(blob)} characters, left out: it held a secret]")


def test_what_is_too_much_is_left_out_with_a_sentence() -> None:
    most = LONGEST_RETURNED
    assert content_of(text("x" * (most + 5)))[0]["text"].endswith("\n\n[Cut here: 21 characters were left out.]")
    first, second = content_of(text("x" * most), text("y" * 70))
    assert (first["text"].count("x"), second["text"]) == (most - 32, "\n\n[Cut here: 70 characters were left out.]")
    assert content_of(*[text("x")] * (MOST_BLOCKS + 2))[-1] == text("[… and 2 more parts]")
    half = {"type": "image", "data": "A" * (LARGEST_DATA // 2 + 4), "mimeType": "image/png"}
    kept, left_out = content_of(half, half)
    assert kept == half
    assert left_out["text"] == (
        f"[image, {LARGEST_DATA // 2 + 4:,} characters, left out: no more than {LARGEST_DATA:,} are passed on in all]"
    )
    huge = {"type": "hologram", "rows": ["x" * most]}
    assert content_of(huge)[0]["text"].startswith("[content, 1,000,0")


@pytest.mark.parametrize(
    ("structured", "said"),
    [
        ({"a": "x" * LONGEST_RETURNED}, "structured content, 1,000,009 characters, left out: no more than 1,000,000"),
        ({"a": float("nan")}, "structured content, left out: it held a number that JSON cannot carry"),
        ({"a": 2**70}, "structured content, left out: it held an integer beyond"),
        ([1, 2], "structured content that is no object, left out"),
    ],
)
def test_structured_content_that_cannot_be_passed_on_is_left_out_whole(structured: Any, said: str) -> None:
    got = returned(text("x"), structured=structured)
    assert got.keys() == {"content"}
    assert got["content"][1]["text"].startswith(f"[{said}")


def test_what_is_no_block_is_said_in_words() -> None:
    assert content_of(7) == [text("[something that is no content block]")]


def test_masks_that_break_json_are_made_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(said: str) -> str:
        return said.replace('"swordfish', "[gone]")

    got = returned_module.as_returned([], {"a": ['"swordfish'], "b": "swordfish", "c": 1}, careless)
    assert got["structuredContent"] == {"a": ["[gone]"], "b": "[redacted]", "c": 1}


@settings(deadline=None)  # a busy machine is no mistake
@given(BLOCKS, BLOCKS)
def test_whatever_a_server_returns_can_be_kept(block: Any, structured: Any) -> None:
    got = returned(block, block, structured=structured)
    assert json.loads(json.dumps(got, allow_nan=False)) == got
    assert all(isinstance(each, dict) for each in got["content"])
