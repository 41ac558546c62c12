"""What the cards say, to whom, and with which buttons."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.shared.wording import deletes
from adapters.slack.actions import Origin
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.cards import argument_page, sign_in_piece
from adapters.slack.render.forms import arguments_modal
from adapters.slack.render.posts import help_piece, note, pieces, thread_start
from bot.domain import Content, Notice, Vote
from bot.safe_text import visible_excerpt
from graph.interrupts import FormField
from graph.presentation import CallPresentation, Preview
from tests.fakes.slack.block_rules import mistakes
from tests.slack.shown import a_change, a_post, a_question, a_sign_in, an_approval, an_outcome


def shown(content: Content) -> SlackMessage:
    [piece] = pieces(a_post(content))
    return piece


def buttons(piece: SlackMessage) -> dict[str, str]:
    """The words on the buttons of a message → their action_id and value, or URL."""
    rows = [block["elements"] for block in piece.blocks if block["type"] == "actions"]
    beside = [block["accessory"] for block in piece.blocks if "accessory" in block]
    shown_ = [b for row in [*rows, beside] for b in row if b["type"] == "button"]
    return {b["text"]["text"]: f"{b['action_id']} {b.get('value', b.get('url'))}" for b in shown_}


def menu(piece: SlackMessage) -> dict[str, str]:
    """The words in the menu behind ⋯ → the value of each entry."""
    rows = [block["elements"] for block in piece.blocks if block["type"] == "actions"]
    found = [b for row in rows for b in row if b["type"] == "overflow"]
    return {option["text"]["text"]: option["value"] for b in found for option in b["options"]}


def title(piece: SlackMessage) -> str:
    """The first line, in bold."""
    [run] = piece.blocks[0]["elements"][0]["elements"]
    assert run["style"] == {"bold": True}
    return str(run["text"])


def fields(piece: SlackMessage) -> list[str]:
    """Labels, which are bold, and values, which are literal."""
    made = [text for block in piece.blocks for text in block.get("fields", [])]
    return [text["text"][1:-1] if text["type"] == "mrkdwn" else text["text"] for text in made]


def texts_of(block: Any) -> list[str]:
    """Every text that is shown, however deep."""
    match block:
        case {"text": str(text)}:
            return [text]
        case dict():
            return [text for value in block.values() for text in texts_of(value)]
        case list() | tuple():
            return [text for value in block for text in texts_of(value)]
        case _:
            return []


def everything(piece: SlackMessage) -> str:
    return json.dumps(piece.blocks, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ approvals


def test_a_waiting_approval_says_what_who_and_until_when() -> None:
    piece = shown(an_approval())
    assert title(piece) == "calendar › “Create event”"
    assert piece.blocks[1]["elements"][0]["text"] == "Requested by Ana · calendar › create_event · Changes data"
    assert fields(piece) == [
        *("Name", "Team Meeting", "Start", "2026-11-21T10:00:00+01:00", "Duration", "60", "Calendar", "primary")
    ]
    assert "Expires <!date^1795341600^{date_short_pretty}, {time}|2026-11-22 10:00 UTC>" in everything(piece)
    assert "Approver: Ana" in everything(piece)
    assert piece.text == "Ana requests approval: calendar › “Create event”. Approver: Ana."


HOSTILE_CLIENT = "cursor.\n*May decide:* <!channel> <@U9>\u202e anyone" + "x" * 200


def test_what_a_program_calls_itself_is_one_line_of_a_hundred_characters_and_pings_nobody() -> None:
    """Rule 8: the name is the program's own word."""
    piece = shown(an_approval(client=HOSTILE_CLIENT))
    [told] = [text for text in texts_of(piece.blocks) if "Requested by" in text]
    name = told.partition("Requested by Ana, through ")[2].partition(" · calendar")[0]
    assert "\n" not in name and "\u202e" not in name and "⟨U+202E⟩" in name and len(name) <= 100
    assert "<!channel>" not in piece.text and "\n" not in piece.text


def test_labels_are_bold_unless_something_in_them_could_be_formatting() -> None:
    piece = shown(an_approval(arguments={"start_at": "now", "*bold*": "*now*", "ключ": "_x_"}))
    labels_ = [text for block in piece.blocks for text in block.get("fields", [])][::2]
    assert [(text["type"], text["text"]) for text in labels_] == [
        ("mrkdwn", "*Start at*"),
        ("plain_text", '"*bold*"'),
        ("plain_text", '"ключ"'),
    ]


def test_its_buttons_carry_the_approvals_id_and_nothing_else() -> None:
    piece = shown(an_approval())
    assert buttons(piece) == {"Approve": "approve call-1.1", "Reject…": "reject call-1.1", "Edit…": "edit call-1.1"}
    assert menu(piece) == {
        "Show all": "show_all call-1.1",
        "Ask someone else…": "hand_over call-1.1",
        "Withdraw…": "ask_to_withdraw call-1.1",
    }


def test_at_most_four_buttons_and_a_menu_of_five_stand_on_it() -> None:
    piece = shown(an_approval(always_offered=True, together=3, masks=1))
    assert list(buttons(piece)) == ["Approve", "Reject…", "Edit…", "Approve all 3…"]
    assert list(menu(piece)) == [
        *("Show all", "Allow for a while…", "Ask someone else…", "Look at hidden values…", "Withdraw…")
    ]
    assert [block["type"] for block in piece.blocks].count("actions") == 1


def test_an_id_that_is_too_long_for_a_menu_stands_on_buttons() -> None:
    """Slack: the value of a menu's entry has 150 characters at most, that of a button 2,000."""
    view = an_approval("call-" + "1" * 150)
    piece = shown(view)
    assert menu(piece) == {}
    assert buttons(piece)["Withdraw…"] == f"ask_to_withdraw {view.approval_id}"
    assert mistakes(list(piece.blocks)) == []


def test_only_approve_is_coloured_and_deleting_asks_once_more() -> None:
    for risk, asks in ((("writes",), False), (("destroys",), True)):
        piece = shown(an_approval(risk=risk))
        [row] = [block["elements"] for block in piece.blocks if block["type"] == "actions"]
        assert [element.get("style") for element in row] == ["primary", None, None, None]
        assert ["confirm" in element for element in row] == [asks, False, False, False]
        assert ("⚠️ Deletes data" in everything(piece)) is asks


def test_what_overwrites_what_its_card_shows_is_no_deletion() -> None:
    """Only with both sides, as a tool told them: without what comes in its place, it may be gone."""
    sides = {"before": {"room": "Blue"}, "after": {"room": "Red"}}
    for told, word in (
        ({}, "Overwrites data"),
        ({"after": {}}, "⚠️ Deletes data"),
        ({"before": {}}, "⚠️ Deletes data"),
        ({"problem": "unavailable"}, "⚠️ Deletes data"),
    ):
        preview = Preview(source="calendar › preview_update_event", **{**sides, **told})
        view = an_approval(risk=("writes", "destroys"), presentation=CallPresentation(trusted=True, preview=preview))
        assert f"· {word}" in everything(shown(view))
        assert deletes(view) is (word != "Overwrites data")


def test_a_server_that_is_not_trusted_takes_no_warning_away_with_a_preview() -> None:
    preview = Preview(source="calendar › preview_delete", before={"room": "Blue"}, after={"room": "Red"})
    view = an_approval(risk=("writes", "destroys"), presentation=CallPresentation(preview=preview))
    assert "⚠️ Deletes data" in everything(shown(view))
    assert deletes(view)


def test_nobody_else_is_asked_where_nobody_else_may_decide() -> None:
    assert "Ask someone else…" not in menu(shown(an_approval(handing_offered=False)))


def test_the_requesters_own_words_are_shown_as_theirs() -> None:
    for status in ("pending", "approved"):
        view = an_approval(status=status, quote="delete team <!channel> *now*")
        blocks = shown(view).blocks if status == "pending" else arguments_modal(view, 0, Origin())["blocks"]
        said = next(b for b in blocks if "wrote:" in str(b))
        assert said["elements"][1]["type"] == "rich_text_quote"
        assert "delete team <!channel> *now*" in str(said)
    assert "wrote:" not in everything(shown(an_approval()))


def test_rejections_handovers_and_escalation_are_told() -> None:
    votes = (Vote("Ben", "reject", 1.0),)
    told = everything(shown(an_approval(rejections=2, votes=votes, handed_to=("Chloe",), escalates_at=1_795_255_260.0)))
    assert "1 of 2 rejected: Ben" in told
    assert "Chloe" in told
    assert "Escalates <!date^1795255260^" in told


def test_what_may_not_be_edited_has_no_edit_button() -> None:
    assert "Edit…" not in buttons(shown(an_approval(editable=False)))


def test_several_that_wait_together_can_be_approved_together() -> None:
    assert buttons(shown(an_approval(together=7)))["Approve all 7…"] == "approve_all call-1.1"


def test_an_approval_without_a_deadline_says_nothing_of_one() -> None:
    assert "Expires" not in everything(shown(an_approval(expires_at=None)))


def small_print(piece: SlackMessage) -> list[str]:
    """The texts of the line that says who may decide."""
    lines = [[text["text"] for text in b["elements"]] for b in piece.blocks if b["type"] == "context"]
    return next(line for line in lines if line[0].startswith("Approver"))


def test_approvers_of_this_workspace_are_mentioned_and_no_others() -> None:
    approvers = ("slack:T1:U2", "slack-group:T1:S7", "slack:T2:U3", "web:ben", "slack:T1:U4> <!channel", "requester")
    piece = shown(an_approval(may_decide="Ben or members of finance", approvers=approvers, expires_at=None))
    assert small_print(piece) == ["Approver: Ben or members of finance", "<@U2> <!subteam^S7>"]


def test_where_slack_knows_all_who_may_decide_their_mentions_suffice() -> None:
    one = an_approval(may_decide="Ben", approvers=("slack:T1:U2",), expires_at=None)
    assert small_print(shown(one)) == ["Approver: <@U2>"]
    two = replace(one, approvers=("slack:T1:U2", "slack-group:T1:S7"))
    assert small_print(shown(two)) == ["Approvers: <@U2>, <!subteam^S7>"]
    assert small_print(shown(replace(two, four_eyes=True)))[0] == "Approver: Ben"


def test_approvers_whose_names_nobody_knows_yet_are_shown_by_slack() -> None:
    words = "slack:T1:U2 or members of slack-group:T1:S7, except Ana"
    approvers = ("slack-group:T1:S7", "slack:T1:U2")
    piece = shown(an_approval(may_decide=words, approvers=approvers, four_eyes=True, expires_at=None))
    assert small_print(piece) == ["Approver:", "<@U2>", "or members of", "<!subteam^S7>", ", except Ana"]


def test_what_is_too_long_is_cut_with_a_count_beside_the_buttons() -> None:
    many = {f"argument_{number}": "word " * 1_000 for number in range(13)}
    piece = shown(an_approval(arguments=many))
    assert len(fields(piece)) == 20
    assert fields(piece)[1].endswith("more characters)")
    assert len(fields(piece)[1]) <= 500
    assert piece.blocks[-3]["elements"][0]["text"] == (
        "45,250 characters hidden, 3 arguments hidden. “Show all” has everything."
    )


def test_many_lines_are_cut_too_so_that_the_buttons_stay_in_sight() -> None:
    cut, is_cut = visible_excerpt("\n".join(map(str, range(100))), 500, 12)
    assert cut.count("\n") <= 24
    assert "more characters)" in cut
    assert is_cut
    assert visible_excerpt("", 9, 12) == ("(empty)", False)
    assert visible_excerpt("  ", 9, 12) == ("(2 blanks)", False)


def test_markup_in_arguments_is_literal() -> None:
    piece = shown(an_approval(arguments={"note": "<!channel> *bold* <@U9>"}))
    note_field = piece.blocks[2]["fields"][1]
    assert note_field == {"type": "plain_text", "text": "<!channel> *bold* <@U9>", "emoji": False}


def test_votes_that_do_not_suffice_yet_are_counted() -> None:
    piece = shown(an_approval(quorum=2, votes=(Vote("Ben", "approve", 1.0),)))
    assert "1 of 2 approved: Ben" in everything(piece)


@pytest.mark.parametrize(
    ("status", "sign", "word"),
    [
        ("approved", "✓ ", "Approved"),
        ("rejected", "✕ ", "Rejected"),
        ("expired", "– ", "Expired"),
        ("superseded", "– ", "Replaced"),
        ("withdrawn", "– ", "Withdrawn"),
        ("void", "– ", "Asked again"),
    ],
)
def test_a_settled_approval_takes_two_lines_and_has_its_details_behind_a_button(
    status: str, sign: str, word: str
) -> None:
    by = ("Ben", "Chloe") if status in ("approved", "rejected") else ()
    view = an_approval(status=status, decided_by=by, decided_at=1_795_255_260.0, arguments={"name": "Standup"})
    piece = shown(view)
    assert [block["type"] for block in piece.blocks] == ["section", "context"]
    assert piece.blocks[0]["text"]["text"] == f"{sign}*calendar › “Create event”* · Name Standup"
    ended = f"{word} by Ben, Chloe" if by else word
    assert piece.blocks[1]["elements"][0]["text"].startswith(f"{ended}, <!date^1795255260^")
    assert buttons(piece) == {"Details": "show_all call-1.1"}
    details = " ".join(texts_of(arguments_modal(view, 0, Origin())["blocks"]))
    assert "Requested by Ana" in details and "Rule: everything else asks the requester" in details and ended in details


def test_a_title_is_bold_only_where_nothing_in_the_line_could_be_formatting() -> None:
    """Rule 8: what models and servers wrote is literal."""
    for value in ("*bold*", "<!channel>", "a_b", "~x~", ":rotating_light:", "`code`", "https://evil.example"):
        [section, *_] = shown(an_approval(status="expired", arguments={"name": value})).blocks
        assert section["text"]["type"] == "plain_text"
    [section, *_] = shown(an_approval(status="expired", arguments={"name": "Q&A: 9:00–10:00"})).blocks
    assert section["text"]["text"].endswith("· Name Q&amp;A: 9:00–10:00")


def test_what_is_asked_again_says_so_once() -> None:
    piece = shown(an_approval(status="void", result="Asked again: calendar has changed", decided_at=1_795_255_260.0))
    assert [block["type"] for block in piece.blocks] == ["section", "context"]
    assert piece.blocks[1]["elements"][0]["text"].startswith("Asked again: calendar has changed, <!date^1795255260^")


def test_a_rejection_says_why() -> None:
    told = everything(shown(an_approval(status="rejected", decided_by=("Ben",), reason="Too *early*.")))
    assert "Rejected by Ben: Too *early*." in told


def test_an_edit_shows_what_was_asked_and_what_was_approved() -> None:
    view = an_approval(
        status="approved",
        arguments={"name": "Standup", "duration": 15, "room": "Blue"},
        asked_arguments={"name": "Meeting", "duration": 15, "notes": "long"},
        decided_by=("Ben",),
        edited_by="Ben",
    )
    piece = shown(view)
    assert "Name Meeting → Standup" in piece.blocks[0]["text"]["text"]
    assert "Edited by Ben" in everything(piece)


def test_what_a_settled_card_has_no_space_for_is_counted() -> None:
    """Rule 12."""
    view = an_approval(status="approved", arguments={"a": "x" * 300, "b": "two\nlines", "c": "y"}, fingerprint="ab-cd")
    told = everything(shown(view))
    assert "2 values hidden" in told and "ab-cd" in told


def test_a_call_that_failed_looks_different_from_one_that_was_done_and_can_be_retried() -> None:
    failed = {"status": "approved", "decided_by": ("Ben",), "result": "Failed: no such room", "result_tone": "error"}
    piece = shown(an_approval(**failed, retry_offered=True))
    assert piece.blocks[0]["text"]["text"].startswith("❌ ")
    assert "Failed: no such room" in texts_of(piece.blocks[1])
    assert buttons(piece) == {"Retry": "retry call-1.1", "Details": "show_all call-1.1"}
    assert "Retry" not in buttons(shown(an_approval(**failed)))
    done = shown(an_approval(status="approved", decided_by=("Ben",), result="Done", result_tone="success"))
    assert done.blocks[0]["text"]["text"].startswith("✓ ")


# ------------------------------------------------------------------------------------------------ changes
def test_a_change_that_nobody_was_asked_about_is_one_quiet_line() -> None:
    piece = shown(a_change(rule="tasks are free", grant_id=None))
    assert [block["type"] for block in piece.blocks] == ["context"]
    assert piece.text == "✓ calendar › “Create event” · Name Team Meeting · Allowed by rule “tasks are free”"


def test_a_change_under_a_standing_approval_can_be_stopped_from_its_line() -> None:
    piece = shown(a_change(grant_id="g1"))
    assert piece.blocks[0]["text"]["text"].endswith("Standing approval of Ana")
    assert buttons(piece) == {"Revoke": "revoke g1"}
    failed = shown(a_change(grant_id="g1", result="Failed: full", result_tone="error"))
    assert failed.text.startswith("❌ ") and "Failed: full" in failed.text


# ------------------------------------------------------------------------------------------------ questions


def test_an_open_question_names_the_person_the_options_and_the_button() -> None:
    piece = shown(a_question())
    assert piece.blocks[0]["text"] == {"type": "mrkdwn", "text": "Question for <@U1>", "verbatim": True}
    assert "small, large" in everything(piece)
    assert buttons(piece) == {"Answer…": "answer q1"}


def test_a_question_to_somebody_of_another_platform_names_them_without_markup() -> None:
    piece = shown(a_question(requester_id="web:ana", requester="*Ana*"))
    assert piece.blocks[0]["text"] == {"type": "plain_text", "text": "Question for *Ana*", "emoji": False}


def test_an_answered_question_shows_the_answer_and_no_button() -> None:
    piece = shown(a_question(status="answered", answer="size: large"))
    assert buttons(piece) == {}
    assert "size: large" in everything(piece)


def test_the_public_card_of_a_sign_in_has_no_link_but_a_button_for_one() -> None:
    piece = shown(a_sign_in())
    assert "Waiting for Ana to sign in to mail at accounts.example.com." in everything(piece)
    assert buttons(piece) == {"Sign in": "get_link s1"}


@pytest.mark.parametrize("status", ["done", "declined", "expired", "superseded"])
def test_a_finished_sign_in_has_no_buttons(status: Any) -> None:
    piece = shown(replace(a_sign_in(), status=status))
    assert buttons(piece) == {}
    assert "Ana" in piece.text


def test_the_private_link_is_in_its_button_with_its_host_in_the_text() -> None:
    link = "https://accounts.example.com/authorize?state=secret"
    piece = sign_in_piece(a_sign_in(host="looks.example"), link)
    assert buttons(piece) == {
        "Open sign-in page": f"open_link {link}",
        "I’ve signed in": "signed_in s1",
        "Not now": "not_now s1",
    }
    assert "accounts.example.com" in piece.text
    assert "secret" not in piece.text


def test_a_link_that_is_no_web_address_is_not_offered() -> None:
    assert list(buttons(sign_in_piece(a_sign_in(), "javascript:alert(1)"))) == ["Not now"]


def test_an_attempt_whose_outcome_is_unknown_asks_what_came_of_it() -> None:
    piece = shown(an_outcome())
    assert "Did this go through? calendar › “Create event”" in texts_of(piece.blocks[0])
    assert list(buttons(piece).values()) == ["it_was_done o1", "try_again o1", "skip o1"]
    settled = shown(an_outcome(status="skip", settled_by="Ana"))
    assert buttons(settled) == {}
    assert "Skipped by Ana" in everything(settled)


# ------------------------------------------------------------------------------------------------ the rest


def test_a_notice_has_a_sign_for_its_tone() -> None:
    texts = [shown(Notice("Careful.", tone)).blocks[0]["text"]["text"] for tone in ("info", "warning", "error")]
    assert texts == ["Careful.", "⚠️ Careful.", "❗ Careful."]


def test_the_fallback_is_escaped_however_long() -> None:
    assert note("<!channel> & co").text == "&lt;!channel&gt; &amp; co"
    assert len(note("<" * 3_000).text) <= 4_000


def test_a_thread_of_a_command_begins_with_what_was_asked_word_for_word() -> None:
    piece = thread_start("Ana", "book *it* <!here>", "the message")
    first, asked, about, quoted = piece.blocks[0]["elements"]
    assert [element["text"] for element in first["elements"]] == ["Ana asks:"]
    assert asked == {"type": "rich_text_quote", "elements": [{"type": "text", "text": "book *it* <!here>"}]}
    assert quoted["elements"][0]["text"] == "the message"
    assert about["elements"][0]["text"] == "About this message:"
    assert len(thread_start("Ana", "book").blocks[0]["elements"]) == 2


def test_the_help_names_every_verb() -> None:
    assert all(verb in help_piece().text for verb in ("ask", "approvals", "connections", "stop", "help"))


def test_show_all_has_every_character_of_every_argument() -> None:
    notes, deep = "".join(f"line {n}\n" for n in range(4_000)), {"a": ["b"] * 900}
    arguments = {"notes": notes, "empty": "", "deep": deep}
    pages = [argument_page(arguments, page)[0] for page in range(argument_page(arguments, 0)[2])]
    assert len(pages) > 2
    texts: dict[str, str] = {}
    for block in (block for page in pages for block in page):
        label, box = block["elements"]
        name = label["elements"][0]["text"].removesuffix(" (continued)")
        texts[name] = texts.get(name, "") + box["elements"][0]["text"] + "\n"
    assert texts["Notes"].split() == notes.split()
    assert json.loads(texts["Deep"].replace("\n", "")) == deep
    assert texts["Empty"] == "(empty)\n"


def test_a_question_without_options_lists_none() -> None:
    piece = shown(a_question(fields=(FormField(name="why"),)))
    assert [block["type"] for block in piece.blocks] == ["section", "rich_text", "context", "actions"]


def test_a_question_without_fields_is_answered_with_a_reply() -> None:
    piece = shown(a_question(fields=()))
    assert buttons(piece) == {}
    assert piece.blocks[-1]["elements"][0]["text"] == "Reply here to answer."


@pytest.mark.parametrize("card", [an_approval, a_question, a_sign_in, an_outcome, a_change])
def test_what_a_task_of_a_plan_asks_names_its_agent(card: Callable[..., Content]) -> None:
    assert "the bookkeeper agent" in json.dumps(shown(card(agent="bookkeeper")).blocks)
    assert "agent" not in json.dumps(shown(card()).blocks)


def test_what_is_asked_again_says_why() -> None:
    again = an_approval(again="The event has changed since it was approved.")
    assert "The event has changed since it was approved." in str(shown(again).blocks)
