"""The App Home and the list of the slash command."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from adapters.slack.render.home import home_view, overview_piece
from bot.domain import Content, Overview, Shown
from tests.fakes.slack.block_rules import view_mistakes
from tests.slack.shown import ANA, a_post, a_question, a_sign_in, an_approval, an_outcome

LINK = "https://acme.slack.com/archives/C1/p1700000000000100"


def shown(content: Content, post_id: str) -> Shown:
    return Shown(a_post(content, post_id), {"team": "T1", "channel": "C1", "parts": ["1.2"]})


def link(_shown: Shown) -> str:
    return LINK


def buttons(blocks: Any) -> list[str]:
    beside = ([block["accessory"]] if "accessory" in block else [] for block in blocks)
    rows = [block["elements"] if block["type"] == "actions" else row for block, row in zip(blocks, beside, strict=True)]
    return [told for row in rows for b in row for told in _told(b)]


def _told(element: Any) -> list[str]:
    if element["type"] == "overflow":
        return [option["value"] for option in element["options"]]
    return [f"{element['action_id']} {element.get('value', element.get('url'))}"]


TO_DECIDE = shown(an_approval(requester="Ben"), "approval:1")
ASKED: list[Content] = [an_approval("call-2"), a_question(), a_sign_in(), an_outcome()]
WAITING = tuple(shown(content, f"post:{number}") for number, content in enumerate(ASKED))
RECENT = shown(
    an_approval("call-3", status="approved", decided_by=("Ben",), result="Done.", result_tone="success"), "a:3"
)


def test_what_waits_can_be_settled_at_home() -> None:
    view = home_view(Overview((TO_DECIDE,), WAITING, (RECENT,)), link, ANA)
    assert buttons(view["blocks"]) == [
        *("approve call-1.1", "reject call-1.1", "edit call-1.1", "show_all call-1.1", "hand_over call-1.1"),
        f"open_thread {LINK}",
        *("take_back call-2", f"open_thread {LINK}"),
        *("answer q1", f"open_thread {LINK}"),
        *("get_link s1", f"open_thread {LINK}"),
        *("it_was_done o1", "try_again o1", "skip o1", f"open_thread {LINK}"),
        f"open_thread {LINK}",
    ]
    assert [b["text"]["text"] for b in view["blocks"] if b["type"] == "header"] == [
        "Needs your approval",
        "Your open requests",
        "Recent",
    ]
    assert "Approved by Ben · Name Team Meeting" in json.dumps(view, ensure_ascii=False)


def test_what_was_not_read_for_a_list_is_not_decided_in_it() -> None:
    """Rule 12: of a call with a megabyte of arguments nothing is on the App Home, so that nothing can be approved."""
    long = replace(an_approval(), arguments={}, unread=900_000, fingerprint="")
    view = home_view(Overview((shown(long, "post:1"),), (), ()), link, ANA)
    assert "approve call-1.1" not in buttons(view["blocks"])
    assert "show_all call-1.1" in buttons(view["blocks"])
    assert "900,000 characters hidden" in json.dumps(view)
    assert view_mistakes(view, surface="home") == []


def test_a_call_that_was_not_read_for_a_list_is_not_tried_again_in_it() -> None:
    """Rule 12: nothing on the App Home would tell which call is made again."""
    view = home_view(Overview((), (shown(an_outcome(arguments={}, unread=900_000), "post:1"),), ()), link, ANA)
    assert buttons(view["blocks"]) == [f"open_thread {LINK}"]
    assert "900,000 characters hidden" in json.dumps(view)
    assert view_mistakes(view, surface="home") == []


def test_a_post_that_is_nowhere_has_no_link() -> None:
    view = home_view(Overview((), (), (RECENT,)), lambda _: "", ANA)
    assert buttons(view["blocks"]) == []


def test_with_very_much_waiting_the_rest_is_counted() -> None:
    many = tuple(shown(an_approval(f"call-{n}"), f"post:{n}") for n in range(100))
    view = home_view(Overview(many[:16], many[:16], many[:10], 84, 84), link, ANA)
    decide = [value for value in buttons(view["blocks"]) if value.startswith("approve ")]
    assert f"{100 - len(decide)} more" in json.dumps(view, ensure_ascii=False)
    assert len(decide) >= 8
    assert view_mistakes(view, surface="home") == []


def test_what_does_not_fit_is_not_rendered() -> None:
    """Rule 13: two hundred calls with long arguments took 0.2 s, of which ten fit."""
    rendered = []

    def noted(one: Shown) -> str:
        rendered.append(one)
        return LINK

    waiting = tuple(shown(an_approval(f"call-{number}"), f"p:{number}") for number in range(200))
    home_view(Overview(waiting, (), waiting), noted, ANA)
    assert len(rendered) < 60


def test_with_nothing_waiting_it_says_how_to_begin() -> None:
    [block] = home_view(Overview((), (), ()), link, ANA)["blocks"]
    assert block["elements"][0]["elements"][0]["text"].startswith("You’re all caught up.")


def test_the_commands_list_has_links_and_no_buttons() -> None:
    piece = overview_piece(Overview((TO_DECIDE,), WAITING, (RECENT,)), link)
    assert all(block["type"] != "actions" for block in piece.blocks)
    assert json.dumps(piece.blocks).count(LINK) == 5
    assert piece.text == "1 request needs your approval. You have 4 open requests."


def test_the_commands_list_says_that_there_is_nothing() -> None:
    assert "all caught up" in overview_piece(Overview((), (), (RECENT,)), link).text


def test_what_did_not_run_is_shown_with_what_it_would_have_been_and_why_not() -> None:
    rejected = an_approval(status="rejected", decided_by=("Ben",), reason="too late")
    view = home_view(Overview((), (), (shown(rejected, "a:4"),)), link, ANA)
    text = json.dumps(view, ensure_ascii=False)
    assert "Rejected by Ben · too late · Name Team Meeting · Start 2026-11-21T10:00:00+01:00 · Duration 60" in text
