"""A model's Markdown in Slack: faithful, whole, harmless, and split where it hurts least."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.render.markdown import Code, Flow, Grid, HorizontalRule, Listing, parts, words
from adapters.slack.render.posts import pieces
from bot.domain import CallActivity, Said
from bot.safe_text import cut_lines, cut_text, visible
from tests.fakes.slack.block_rules import mistakes
from tests.slack.shown import TRICKS, a_post
from tests.support.examples import examples


def rich(markdown: str) -> list[dict[str, Any]]:
    """The rich text of an answer that is one message."""
    [piece] = pieces(a_post(Said(markdown)))
    return [element for block in piece.blocks if block["type"] == "rich_text" for element in block["elements"]]


def line_of(markdown: str) -> list[tuple[str, str]]:
    """Each element of an answer of one paragraph: its text, and its styles or address."""
    [section] = rich(markdown)
    return [(e["text"], e.get("url") or " ".join(sorted(e.get("style", {})))) for e in section["elements"]]


# ------------------------------------------------------------------------------------------------ faithful


def test_styles() -> None:
    assert line_of("a **b** *c* ~~d~~ `e *f*` ***g***") == [
        *(("a ", ""), ("b", "bold"), (" ", ""), ("c", "italic"), (" ", ""), ("d", "strike"), (" ", "")),
        *(("e *f*", "code"), (" ", ""), ("g", "bold italic")),
    ]


def test_a_heading_is_a_bold_line_above_its_text() -> None:
    assert line_of("# One\ntwo\n\nthree") == [("One", "bold"), ("\ntwo\n\nthree", "")]


def test_lines_stay_lines() -> None:
    assert line_of("one\ntwo") == [("one\ntwo", "")]


def test_code_is_kept_to_the_letter() -> None:
    [box] = rich("```py\n  if a < b & c:\n\n\tpass  \n```")
    assert box == {
        "type": "rich_text_preformatted",
        "elements": [{"type": "text", "text": "  if a < b & c:\n\n\tpass  "}],
    }


def test_nested_lists_are_indented_and_numbers_go_on() -> None:
    lists = rich("1. a\n2. b\n   - c\n   - d\n3. e\n\n5) f")
    assert [(x["style"], x.get("indent", 0), x.get("offset", 0), len(x["elements"])) for x in lists] == [
        ("ordered", 0, 0, 2),
        ("bullet", 1, 0, 2),
        ("ordered", 0, 2, 1),
        ("ordered", 0, 4, 1),
    ]


def test_code_inside_an_item_stands_between_two_parts_of_the_list() -> None:
    kinds = [element["type"] for element in rich("- a\n  ```\n  code\n  ```\n- b")]
    assert kinds == ["rich_text_list", "rich_text_preformatted", "rich_text_list"]


def test_tasks_have_boxes() -> None:
    [tasks] = rich("- [ ] open\n- [x] done\n- [link](https://a.example)")
    assert [words(item["elements"]) for item in tasks["elements"]] == ["☐ open", "☑ done", "link (a.example)"]


def test_quotations_are_set_apart_with_the_lists_in_them() -> None:
    quoted, listed = rich("> one\n>\n> two\n>\n> - three")
    assert quoted == {"type": "rich_text_quote", "elements": [{"type": "text", "text": "one\n\ntwo"}]}
    assert listed["border"] == 1


def test_a_rule_is_a_divider() -> None:
    [piece] = pieces(a_post(Said("a\n\n---\n\nb")))
    assert [block["type"] for block in piece.blocks] == ["rich_text", "divider", "rich_text", "context_actions"]


def test_a_table_is_a_table_and_ends_its_message() -> None:
    first, second = pieces(a_post(Said("before\n\n| a | b |\n|:-:|--:|\n| **1** | |\n\nafter")))
    assert [block["type"] for block in first.blocks] == ["rich_text", "table"]
    table = first.blocks[1]
    assert [setting["align"] for setting in table["column_settings"]] == ["center", "right"]
    cells = [[words(cell["elements"][0]["elements"]) for cell in row] for row in table["rows"]]
    assert cells == [["a", "b"], ["1", " "]]
    assert second.blocks[0]["elements"][0]["elements"][0]["text"] == "after"
    assert first.text == "before\na | b\n1 |"


def test_a_word_on_the_way_to_an_answer_asks_for_no_feedback() -> None:
    (piece,) = pieces(a_post(Said("I will look.", final=False)))
    assert [block["type"] for block in piece.blocks] == ["rich_text"]


def test_the_last_message_asks_for_feedback_and_no_other() -> None:
    *others, last = pieces(a_post(Said("word " * 10_000), "said:m7"))
    assert others
    assert last.blocks[-1]["type"] == "context_actions"
    [element] = last.blocks[-1]["elements"]
    assert element["action_id"] == "feedback"
    assert [element[f"{kind}_button"]["value"] for kind in ("positive", "negative")] == ["good:said:m7", "bad:said:m7"]
    assert all(block["type"] != "context_actions" for piece in others for block in piece.blocks)


def test_below_an_answer_stands_what_was_done_for_it_under_the_names_that_the_operator_knows() -> None:
    """Rule 8: what a server calls itself or its tools is not in it, and nothing in it is formatting."""
    calls = (
        CallActivity("1", "calendar", "list_events", "Delete everything", "done", 1.0, 1.4, "2 events"),
        CallActivity("2", "<!channel>", "*find* :tada:", "Find", "failed", 1.5, 3.1, "no room"),
        CallActivity("3", "tasks", "add_task", "Add task", "unknown", 2.0, 3.1),
    )
    *others, last = pieces(a_post(Said("word " * 10_000, activity=calls)))
    assert [block["type"] for block in last.blocks] == ["rich_text", "context", "context_actions"]
    told = "✓ calendar › list_events · ❌ <!channel> › *find* :tada: · ⚠️ tasks › add_task"
    assert last.blocks[1]["elements"] == [{"type": "plain_text", "text": told, "emoji": False}]
    assert "list_events" not in str([last.text, *others]), "it is once, and in no notification"


def test_of_many_calls_the_first_are_named_and_the_rest_is_counted() -> None:
    calls = tuple(CallActivity(str(n), "s", f"t{n}", "", "done", 1.0, 2.0) for n in range(20))
    (piece,) = pieces(a_post(Said("Done.", activity=calls, earlier_calls=1_000)))
    (told,) = piece.blocks[-2]["elements"]
    assert told["text"] == " · ".join([*(f"✓ s › t{n}" for n in range(6)), "1,014 more"])


def test_a_call_that_was_made_several_times_is_named_once_with_how_often() -> None:
    ends: list[tuple[str, Literal["done", "failed"]]] = [("a", "done"), ("b", "done"), ("a", "done"), ("a", "failed")]
    calls = tuple(CallActivity(str(n), "s", tool, "", state, 1.0, 2.0) for n, (tool, state) in enumerate(ends))
    (piece,) = pieces(a_post(Said("Done.", activity=calls)))
    (told,) = piece.blocks[-2]["elements"]
    assert told["text"] == "✓ s › a ×2 · ✓ s › b · ❌ s › a"


def test_a_word_on_the_way_to_an_answer_names_no_calls() -> None:
    call = CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 1.4)
    (piece,) = pieces(a_post(Said("I will look.", final=False, activity=(call,))))
    assert [block["type"] for block in piece.blocks] == ["rich_text"]


def test_an_empty_answer_is_still_a_message() -> None:
    for nothing in ("", " \n", "[a]: https://a.example"):
        assert pieces(a_post(Said(nothing)))[0].blocks[0]["type"] == "rich_text"


# ------------------------------------------------------------------------------------------------ links


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[docs](https://a.example/x)", [("docs", "https://a.example/x"), (" (a.example)", "")]),
        ("[https://a.example/x](https://a.example/x)", [("https://a.example/x", "https://a.example/x")]),
        ("[a.example](https://a.example/x)", [("a.example", "https://a.example/x")]),
        ("<https://a.example/>", [("https://a.example/", "https://a.example/")]),
        (
            "see https://a.example/b_c_d.",
            [("see ", ""), ("https://a.example/b_c_d", "https://a.example/b_c_d"), (".", "")],
        ),
        ("(https://a.example/b_(c))", [("(", ""), ("https://a.example/b_(c)", "https://a.example/b_(c)"), (")", "")]),
        ("[mail](mailto:a@b.example)", [("mail", "mailto:a@b.example"), (" (a@b.example)", "")]),
        ("![chart](https://a.example/c.png)", [("chart", "https://a.example/c.png"), (" (a.example)", "")]),
        ("[](https://a.example/)", [("a.example", "https://a.example/")]),
        ("[`x`](https://a.example/)", [("x", "https://a.example/"), (" (a.example)", "")]),
    ],
)
def test_a_link_says_where_it_leads(written: str, shown: list[tuple[str, str]]) -> None:
    assert line_of(written) == shown


@pytest.mark.parametrize(
    "written",
    [
        "[https://good.example](https://evil.example)",
        "[https://good.example/](https://evil.example)",
        "[good.example](https://evil.example)",
        "[https://evil.example.good.example/](https://evil.example)",
        "[https://good.example@evil.example/](https://good.example@evil.example/)",
        "https://good.example@evil.example/",
        "[https://good.example/](https://good.example\\\\@evil.example)",
    ],
)
def test_a_label_that_looks_like_another_address_does_not_hide_the_host(written: str) -> None:
    assert line_of(written)[-1] == (" (evil.example)", "")


@pytest.mark.parametrize(
    "written",
    [
        "[x](javascript:alert(1))",
        "[x](data:text/html,hi)",
        "[x](ftp://a.example/y)",
        f"[x](https://a.example/{'y' * 3_000})",
        "<javascript:alert(1)>",
        "[x](//evil.example)",
    ],
)
def test_a_link_that_should_not_be_followed_is_text(written: str) -> None:
    assert all(
        "url" not in e for piece in pieces(a_post(Said(written))) for e in piece.blocks[0]["elements"][0]["elements"]
    )


def test_html_and_slacks_own_markup_are_literal() -> None:
    assert line_of("<b>x</b> <!channel> <@U1> &lt;!here&gt; <#C1|b>") == [
        ("<b>x</b> <!channel> <@U1> <!here> <#C1|b>", "")
    ]


def test_characters_hidden_in_entities_are_shown() -> None:
    assert line_of("pay &#x202E;001") == [("pay ⟨U+202E⟩001", "")]


# ------------------------------------------------------------------------------------------------ long


def test_a_long_fence_goes_on_as_a_fence_and_loses_no_line() -> None:
    code = "\n".join(f"line {number} {'x' * 50}" for number in range(600))
    made = pieces(a_post(Said(f"Look:\n\n```\n{code}\n```\n\nDone.")))
    boxes = [
        e["elements"][0]["text"]
        for piece in made
        for block in piece.blocks
        if block["type"] == "rich_text"
        for e in block["elements"]
        if e["type"] == "rich_text_preformatted"
    ]
    assert len(made) > 2
    assert "\n".join(boxes) == code


def test_a_long_table_is_split_by_rows_with_its_head() -> None:
    rows = "".join(f"| {number} | {'x' * 30} |\n" for number in range(250))
    made = pieces(a_post(Said(f"| n | x |\n|-|-|\n{rows}")))
    tables = [block for piece in made for block in piece.blocks if block["type"] == "table"]
    assert [len(table["rows"]) for table in tables] == [100, 100, 53]
    assert all(words(table["rows"][0][0]["elements"][0]["elements"]) == "n" for table in tables)


def test_a_table_of_long_cells_is_split_too_and_one_of_a_huge_cell_is_text() -> None:
    made = pieces(a_post(Said("| a |\n|-|\n" + f"| {'x' * 4_000} |\n" * 6)))
    tables = [block for piece in made for block in piece.blocks if block["type"] == "table"]
    assert [len(table["rows"]) for table in tables] == [3, 3, 3]
    assert all(mistakes(list(piece.blocks)) == [] for piece in made)
    assert "table" not in str(pieces(a_post(Said(f"| a |\n|-|\n| {'x' * 9_600} |"))))


def test_a_table_that_is_too_wide_or_one_of_very_many_is_text() -> None:
    wide = "|a" * 21 + "|\n" + "|-" * 21 + "|\n" + "|b" * 21 + "|\n"
    assert rich(wide)[0]["type"] == "rich_text_preformatted"
    many = pieces(a_post(Said("| a |\n|-|\n| b |\n\ntext\n\n" * 9)))
    assert len(many) == 6
    assert sum(block["type"] == "table" for piece in many for block in piece.blocks) == 5


def test_a_table_as_text_is_lined_up() -> None:
    many = pieces(a_post(Said("| a |\n|-|\n| b |\n\ntext\n\n" * 5 + "| name | n |\n|-|-|\n| long name | 1 |")))
    [box] = [e for e in many[-1].blocks[0]["elements"] if e["type"] == "rich_text_preformatted"]
    assert box["elements"][0]["text"] == "name      | n\n----------+--\nlong name | 1"


def test_nesting_beyond_reason_is_shown_as_it_was_written() -> None:
    assert parts(">" * 300 + " deep") == (Code(">" * 300 + " deep"),)


def test_a_very_long_answer_is_cut_with_a_count() -> None:
    made = pieces(a_post(Said("word " * 50_000)))
    assert len(made) < 12
    assert "more characters)" in made[-1].text


WRITTEN = st.lists(
    st.sampled_from(
        ["word", "*a*", "**b", "`c`", "[d](https://e.example/f)", "\n", "\n\n", "- ", "1. ", "> ", "# ", "|", "  "]
    )
    | st.sampled_from(
        ["```\n", "---\n", "| a | b |\n|-|-|\n| c | d |\n", "~~", "![", "](", "<", "&amp;", "\\", "https://g.example"]
    )
    | st.text(max_size=8),
    max_size=60,
).map(" ".join)


@settings(max_examples=examples(50))
@given(WRITTEN | st.sampled_from(TRICKS), st.sampled_from([1, 1, 1, 40]))
def test_no_word_of_an_answer_is_lost(markdown: str, times: int) -> None:
    markdown = "\n\n".join([markdown] * times)
    wanted = [text for part in parts(markdown) for text in texts_of(part)]
    read = "\n".join(piece_text for piece in pieces(a_post(Said(markdown))) for piece_text in shown_texts(piece.blocks))
    squeezed = "".join(read.split())
    for text in wanted:
        for word in text.split()[:50]:
            assert word[:1_000] in squeezed


def texts_of(part: object) -> list[str]:
    match part:
        case Flow():
            return [words(part.elements)]
        case Listing():
            return [words(item) for item in part.items]
        case Grid():
            return [words(cell) for row in part.rows for cell in row]
        case Code():
            return [part.text]
        case HorizontalRule():
            return []
    raise AssertionError(part)


def shown_texts(value: Any) -> list[str]:
    match value:
        case dict():
            own = [value["text"]] if isinstance(value.get("text"), str) else []
            return own + [text for inner in value.values() if not isinstance(inner, str) for text in shown_texts(inner)]
        case list() | tuple():
            return [text for inner in value for text in shown_texts(inner)]
        case _:
            return []


@settings(max_examples=examples(50))
@given(WRITTEN, st.sampled_from([1, 30, 120]))
def test_every_answer_is_within_the_limits(markdown: str, times: int) -> None:
    for piece in pieces(a_post(Said("\n\n".join([markdown] * times)))):
        assert mistakes(list(piece.blocks)) == []


@given(st.text(), st.integers(1, 50))
def test_cutting_text_loses_nothing(text: str, longest: int) -> None:
    cut = list(cut_text(text, longest))
    assert "".join(cut) == text
    assert all(0 < len(one) <= longest for one in cut)


@given(st.text("ab \n"), st.integers(1, 50))
def test_cutting_lines_loses_no_more_than_the_breaks_between(text: str, longest: int) -> None:
    cut = list(cut_lines(text, longest))
    assert "".join(cut).replace("\n", "") == text.replace("\n", "")
    assert all(0 < len(one) <= longest for one in cut)


@pytest.mark.parametrize("trick", TRICKS, ids=range(len(TRICKS)))
def test_plain_text_is_the_same_text(trick: str) -> None:
    """What Markdown has no opinion on arrives as it was, made visible."""
    if trick.startswith(("pay", "e\u0301", "word", "x")):
        shown = "".join(
            "".join(texts) for piece in pieces(a_post(Said(trick))) for texts in shown_texts(piece.blocks[0])
        )
        assert visible(trick).strip()[:2_000] in shown
