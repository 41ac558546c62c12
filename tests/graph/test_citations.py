"""Citations: which sources a turn has, what of an answer cites them, and that streamed text says the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from graph.citation_filter import CitationFilter
from graph.citations import (
    LOOKED_THROUGH,
    MOST_SOURCES,
    Source,
    as_kept,
    kept_sources,
    named_in_words,
    sources_in,
    with_numbers,
)
from tests.support.cpu import at_most_cpu

SEARCH, READ = "documents__search_documents", "documents__read_document"
TOOLS = frozenset({SEARCH, READ})


def passage(name: Any = "Handbook.pdf", page: Any = 3, text: str = "28 days", **more: Any) -> dict[str, Any]:
    return {"document_id": "d1", "name": name, "page": page, "section": None, "text": text, **more}


def result(*passages: dict[str, Any], call: str = "m.0.0", name: str = SEARCH, **more: Any) -> ToolMessage:
    return ToolMessage(json.dumps({"passages": passages, "note": ""}), tool_call_id=call, name=name, **more)


def through(pieces: Sequence[str], known: Sequence[int] = (1, 2)) -> str:
    citations = CitationFilter({number: f"[{number}]" for number in known})
    return "".join(map(citations.add, pieces)) + citations.rest()


# ------------------------------------------------------------------------------------------------ sources
def test_passages_are_numbered_through_the_turn_and_one_met_again_keeps_its_number() -> None:
    leave, pay = passage(), passage(name="Pay.docx", page=None, section="Bonus", text="none")
    known = sources_in([result(leave, pay), result(passage(page=4), leave, call="m.1.0", name=READ)], TOOLS)
    assert known.sources == (
        Source(1, "Handbook.pdf", 3),
        Source(2, "Pay.docx", None, "Bonus"),
        Source(3, "Handbook.pdf", 4),
    )
    assert known.numbers == {"m.0.0": (1, 2), "m.1.0": (3, 1)}


@pytest.mark.parametrize(
    "message",
    [
        result(passage(), name="mail__search"),
        result(passage(), name="evil__documents__search_documents"),
        result(passage(), status="error"),
        result(passage(), additional_kwargs={"owner": "web:ana"}),
        result(passage(page="3")),
        result(passage(name=7)),
        result({"name": "Handbook.pdf"}),
        ToolMessage("{", tool_call_id="c", name=SEARCH),
        ToolMessage("[1]", tool_call_id="c", name=SEARCH),
        ToolMessage('Approved with a note.\n\n{"passages": []}', tool_call_id="c", name=SEARCH),
        ToolMessage("[" * 100_000, tool_call_id="c", name=SEARCH),
    ],
    ids=lambda message: message.text[:40],
)
def test_anything_else_is_no_source(message: ToolMessage) -> None:
    """What another tool returns, what failed, what is one person's alone, and what cannot be read."""
    known = sources_in([message], TOOLS)
    assert known.sources == ()
    assert with_numbers([message], known) == [message]


def test_sources_are_bounded() -> None:
    many = [passage(text=f"{number}") for number in range(90)]
    results = [result(*[{**each, "page": page} for each in many], call=f"m.{page}.0") for page in range(5)]
    known = sources_in(results, TOOLS)
    assert len(known.sources) == MOST_SOURCES and known.numbers["m.3.0"][0] is None
    large = [result(passage(text="x" * 100_000), call=f"m.{page}.0") for page in range(9)]
    with at_most_cpu(0.3):
        assert len(sources_in(large, TOOLS).numbers) == LOOKED_THROUGH // 100_000 - 1
    assert sources_in([result(passage(name="a\nb" + "c" * 5_000))], TOOLS).sources == ()
    (named,) = sources_in([result(passage(name="a\n[2] b" + "c" * 900))], TOOLS).sources
    assert named.name.startswith("a [2] bcc") and len(named.name) == 200


def test_the_model_reads_the_number_of_each_passage() -> None:
    messages = [result(passage(), passage(page=4))]
    (shown,) = with_numbers(messages, sources_in(messages, TOOLS))
    read = json.loads(shown.text)
    assert [each["cite"] for each in read["passages"]] == ["[1]", "[2]"] and read["note"] == ""
    assert read["passages"][0] == {"cite": "[1]", **passage()}


def test_a_server_gives_no_passage_the_number_of_another() -> None:
    messages = [result(passage(cite="[2]"), passage(page=4, cite="[1]", more="kept"))]
    (shown,) = with_numbers(messages, sources_in(messages, TOOLS))
    assert [each["cite"] for each in json.loads(shown.text)["passages"]] == ["[1]", "[2]"]
    assert json.loads(shown.text)["passages"][1]["more"] == "kept"


def test_sources_are_kept_as_json_and_old_rows_have_none() -> None:
    sources = (Source(1, "a", 3, "b"), Source(2, "c"))
    assert kept_sources(json.loads(json.dumps(as_kept(sources)))) == sources
    assert kept_sources(None) == ()


def test_what_a_task_cites_is_named_in_words() -> None:
    sources = (Source(1, "Handbook.pdf", 3, "Leave"), Source(2, "Pay.docx"))
    told = named_in_words("28 days [1], no bonus[2]; `x[1]`.", sources)
    assert told == "28 days (Handbook.pdf, page 3, Leave), no bonus (Pay.docx); `x[1]`."


# ---------------------------------------------------------------------------------------------- citations
CASES = {
    "28 days [1], not 30 [7].": "28 days [1], not 30.",
    "[7] says so": " says so",
    "a[7][1][8] b": "a[1] b",
    "both [1, 2], one [1, 7], a range [1-3], none [8, 9]": "both [1][2], one [1], a range [1][2], none",
    r"escaped \[7\] and \[1]": "escaped and [1]",
    "`x[7]` ``y`[7]`` x[7]": "`x[7]` ``y`[7]`` x",
    "```py\nx[7]\n```\nx [7]": "```py\nx[7]\n```\nx",
    "- ~~~\n  x[7]\n  ~~~\n- x [7]": "- ~~~\n  x[7]\n  ~~~\n- x",
    "```\nnever closed [7]": "```\nnever closed [7]",
    "open `x [7]\n\n- y` [7]": "open `x\n\n- y`",
    "[7](https://example.com/[7]) and https://example.com/a[7] end [7]": (
        "[7](https://example.com/[7]) and https://example.com/a[7] end"
    ),
    "- [ ] open\n- [x] done\n[2026] [0] [abc]": "- [ ] open\n- [x] done\n[2026] [0] [abc]",
    "[[7]8] and [8 [7]]": "[…8] and [8…]",
    "[1]: https://evil.example\n\n[7][2]: https://evil.example": (
        "[1]\\: https://evil.example\n\n[2]\\: https://evil.example"
    ),
    "as it says [1]: 28": "as it says [1]: 28",
}


@pytest.mark.parametrize("text", CASES)
def test_a_citation_without_a_source_is_taken_out(text: str) -> None:
    assert through([text]) == through(list(text)) == CASES[text]


def test_without_any_source_a_list_of_numbers_is_a_list() -> None:
    assert through(["sorted: [1, 2, 3], as said [1]"], known=()) == "sorted: [1, 2, 3], as said"


PARTS = st.sampled_from(
    [
        *"[]17`()hs\\x,->:0– \n\t",
        *["  ", "\n\n", "- ", "> ", "[1]", "[7]", "[1,7]", "[1", "]:", "](", "``", "```", "~~~"],
        *["http", "http://", "https://a"],
    ]
)


@given(st.lists(PARTS, max_size=30), st.randoms(use_true_random=False))
def test_however_a_text_is_cut_the_same_comes_out(parts: list[str], random: Any) -> None:
    text = "".join(parts)
    cuts = sorted(random.sample(range(len(text) + 1), min(4, len(text))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = through([text])
    assert through(pieces) == through(list(text)) == whole


HOSTILE = ["[", "`", "` ", "h", "\\", "http://", "[1", "](", " ", "> ", "```\n", "[1]", "`a``b```c", "~", "\n"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    with at_most_cpu(3):
        through([text[at : at + 8] for at in range(0, len(text), 8)])
