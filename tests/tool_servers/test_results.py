"""What becomes of a tool's result on its way to the model."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.tool_servers.outcomes import NOTHING, bounded
from adapters.tool_servers.text import clean, one_line, shorten
from graph.ports import Succeeded
from policies.masking import Masker

from .conftest import outcome_of

LIMIT = 256


def result(*content: Any, structured: Any = None, limit: int = 16_000, **more: Any) -> Succeeded:
    return outcome_of(content, structured, limit=limit, **more)


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def test_texts_follow_each_other_line_by_line() -> None:
    assert result(text("one"), text("two")) == Succeeded("one\ntwo", "")


def test_no_content_is_said_in_words() -> None:
    assert result().text == NOTHING
    assert result(text("")).text == NOTHING


@pytest.mark.parametrize(
    ("said", "structured"),
    [
        (['{"a": 1}'], {"a": 1}),
        (["7"], {"result": 7}),
        (["plain"], {"result": "plain"}),
        (["1", "2"], {"result": [1, 2]}),
        (["a", "b"], {"result": ["a", "b"]}),
        (["a"], {"result": ["a"]}),
        (["plain"], {"content": "plain"}),
        (["[1, 2]"], {"result": [1, 2]}),
        (["a", "b"], {"result": [{"type": "text", "text": "a", "annotations": None}, {"type": "text", "text": "b"}]}),
    ],
)
def test_structured_content_that_repeats_the_text_is_not_said_twice(said: list[str], structured: Any) -> None:
    assert result(*map(text, said), structured=structured).text == "\n".join(said)


def test_structured_content_that_says_more_is_added() -> None:
    assert result(text("Found 2."), structured={"hits": [1, 2]}).text == 'Found 2.\n{"hits": [1, 2]}'
    assert result(structured={"a": "ü"}).text == '{"a": "ü"}'


def test_what_cannot_be_read_is_named_with_type_and_size() -> None:
    image = {"type": "image", "data": "A" * 16_000, "mimeType": "image/png"}
    audio = {"type": "audio", "data": "AAA=", "mimeType": "audio/wav"}
    blob = {"type": "resource", "resource": {"uri": "file:///a.zip", "blob": "AAAA", "mimeType": "application/zip"}}
    assert result(image, audio, blob).text.split("\n") == [
        "[image: image/png, 12 kB, left out]",
        "[audio: audio/wav, 2 bytes, left out]",
        "[resource: file:///a.zip, application/zip, 3 bytes, left out]",
    ]


def test_resources_and_links_are_said_as_text() -> None:
    link = {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "title": "The\nfirst"}
    note = {"type": "resource", "resource": {"uri": "note://1", "text": "inside"}}
    assert result(link, note).text == "[link: The first, file:///a.txt]\n[resource: note://1]\ninside"


def test_content_of_a_kind_not_known_yet_is_named() -> None:
    assert (
        result({"type": "hologram", "data": "x"}, 7).text
        == "[hologram, left out]\n[something that is no content block]"
    )


def test_control_characters_and_terminal_codes_are_taken_out() -> None:
    assert result(text("a\x00\x1b[31mred\x1b[0m\x9b\r\nb\tc\x7f")).text == "ared\nb\tc"


def test_a_long_result_is_cut_with_a_sentence_and_kept_whole_for_the_record() -> None:
    long = "x" * 20_000
    got = result(text(long))
    assert len(got.text.encode()) <= 16_000
    assert got.text.endswith("of 20,000 bytes were left out.]")
    kept = got.text.count("x")
    assert f"{20_000 - kept:,} of" in got.text
    assert got.whole == long


def test_a_result_of_exactly_the_limit_is_left_alone() -> None:
    assert result(text("x" * LIMIT), limit=LIMIT) == Succeeded("x" * LIMIT, "")


def test_a_cut_never_splits_a_character() -> None:
    got = result(text("€" * 500), limit=LIMIT).text
    assert set(got.partition("\n")[0]) == {"€"}


def test_what_we_gave_to_the_server_in_confidence_comes_back_redacted() -> None:
    got = result(text("key=hunter2hunter2!"), structured={"k": "hunter2hunter2"}, secrets={"hunter2hunter2", "hunter2"})
    assert got.text == 'key=[redacted]!\n{"k": "[redacted]"}'


def test_a_result_is_otherwise_left_as_it_is() -> None:
    assert result(text("The password: swordfish")).text == "The password: swordfish"


def test_an_error_is_told_in_the_servers_words_without_what_looks_like_a_secret() -> None:
    said = "no access: postgres://bob:swordfish@db/x, Bearer abcdefghijkl, api_key='abc def', ghp_0123456789abcdef"
    got = outcome_of([text(said)], is_error=True).text
    assert got.startswith("files reported an error: no access: postgres://[redacted]@db/x")
    for secret in ("swordfish", "abcdefghijkl", "abc def", "0123456789"):
        assert secret not in got


def test_an_error_is_short_and_an_empty_one_is_said_in_words() -> None:
    assert len(outcome_of([text("x" * 5_000)], is_error=True).text) < 1_100
    assert outcome_of([text(" ")], is_error=True).text.startswith("files reported an error: ")


def test_a_secret_is_taken_out_before_an_error_is_cut() -> None:
    secret = "s" * 40
    got = outcome_of([text("x" * 980 + " " + secret)], secrets={secret}, is_error=True).text
    assert "ss" not in got


BLOCKS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "resource", "uri", "data", "blob", "mimeType", "name", "result"]), inner
        )
    ),
    max_leaves=10,
) | st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link"])},
    optional={"text": st.text(), "resource": st.dictionaries(st.just("text"), st.text()), "data": st.text()},
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=2_000)


@settings(deadline=None)  # a busy machine is no mistake
@given(st.lists(BLOCKS, max_size=5), BLOCKS, st.integers(LIMIT, 1_000))
def test_whatever_a_server_returns_becomes_bounded_printable_text(content: list[Any], extra: Any, limit: int) -> None:
    got = outcome_of(content, extra, limit=limit)
    assert 0 < len(got.text.encode()) <= limit
    assert not got.whole or len(got.whole.encode()) > limit
    assert all(c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cs"} for c in got.text + got.whole)
    outcome_of(content, extra, is_error=True).text.encode()


@settings(deadline=None)  # a busy machine is no mistake
@given(ANY_TEXT, st.integers(LIMIT, 3_000))
def test_a_bounded_text_is_the_text_or_its_beginning(whole: str, limit: int) -> None:
    whole = clean(whole)
    got = bounded(whole, limit)
    assert len(got.encode()) <= limit
    assert got == whole or whole.startswith(got.rpartition("\n\n[Cut here: ")[0])


@settings(deadline=None)  # a busy machine is no mistake
@given(ANY_TEXT, st.integers(1, 50))
def test_a_line_is_one_line_within_its_limit(whole: str, limit: int) -> None:
    line = one_line(whole, limit)
    assert len(line) <= limit
    assert line.splitlines() in ([], [line])
    assert len(shorten(whole, limit)) <= limit


@settings(deadline=None)  # a busy machine is no mistake
@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(whole: str) -> None:
    once = clean(whole)
    assert clean(once) == once
    json.dumps(once).encode()


# ---------------------------------------------------------------------------------------- secrets that are configured

MASKED = Masker(values=["known-to-the-product"]).mask
TOKEN = "ghp_" + "a1B2" * 9


def masked(*content: Any, **more: Any) -> str:
    return result(*content, mask=MASKED, **more).text


def test_a_secret_that_was_cut_in_two_by_a_content_block_is_put_together_and_masked() -> None:
    halves = (text(f"it is {TOKEN[:20]}"), text(f"{TOKEN[20:]}, you see"), text("more"))
    assert masked(*halves) == "it is [secret: github token], you see\nmore"
    thirds = (text(TOKEN[:14]), text(TOKEN[14:28]), text(TOKEN[28:]))
    assert masked(*thirds) == "[secret: github token]"
    assert masked(text("known-to"), text("-the-product")) == "[secret: known value]"
    assert masked(text("password:"), text("correct-horse-9")) == "password:[secret: password]"


def test_a_secret_that_is_hidden_by_control_characters_is_masked() -> None:
    assert masked(text(f"it is {TOKEN[:9]}\x00\x1b[1m{TOKEN[9:]}.")) == "it is [secret: github token]."


@pytest.mark.parametrize("before", range(170, 200))
def test_a_secret_in_a_name_is_masked_before_the_name_is_cut(before: int) -> None:
    link = {"type": "resource_link", "name": "x", "uri": "u" * before + f"?{TOKEN}"}
    inside = {"type": "resource", "resource": {"uri": "u" * before + f"?{TOKEN}", "mimeType": TOKEN, "blob": "AAAA"}}
    assert TOKEN[:5] not in masked(link, inside)


def test_an_error_keeps_whole_masks() -> None:
    said = f"token {TOKEN}, password=hunter22 at postgresql://app:s3cret-9@db"
    assert outcome_of([text(said)], server="one", mask=MASKED, is_error=True).text == (
        "one reported an error: token [secret: github token], password=[secret: password] "
        "at postgresql://app:[secret: password]@db"
    )
