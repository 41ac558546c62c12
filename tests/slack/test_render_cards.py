"""What the cards say, to whom, and with which buttons."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.slack.render.blocks import SlackMessage
from adapters.slack.render.cards import argument_page, sign_in_piece
from adapters.slack.render.posts import help_piece, note, pieces, thread_start
from bot.domain import Content, Notice, Vote
from bot.safe_text import visible_excerpt
from graph.interrupts import FormField
from tests.slack.shown import a_post, a_question, a_sign_in, an_approval, an_outcome


def shown(content: Content) -> SlackMessage:
    [piece] = pieces(a_post(content))
    return piece


def buttons(piece: SlackMessage) -> dict[str, str]:
    """The words on the buttons of a message → their action_id and value, or URL."""
    rows = [block["elements"] for block in piece.blocks if block["type"] == "actions"]
    return {b["text"]["text"]: f"{b['action_id']} {b.get('value', b.get('url'))}" for row in rows for b in row}


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
    assert piece.blocks[0]["text"]["text"] == "Approve? calendar: create_event"
    assert fields(piece) == [
        *("Name", "Team Meeting", "Start", "2026-11-21T10:00:00+01:00", "Duration", "60", "Calendar", "primary")
    ]
    assert "The server calls it “Create event”." in everything(piece)
    assert "<!date^1795341600^{date_short_pretty} {time}|2026-11-22 10:00 UTC>" in everything(piece)
    assert "writes" in everything(piece)
    assert piece.text == "Approve? calendar: create_event. Ana asks. May decide: Ana."


HOSTILE_CLIENT = "cursor.\n*May decide:* <!channel> <@U9>\u202e anyone" + "x" * 200


@pytest.mark.parametrize("status", ["pending", "approved", "expired"])
def test_what_a_program_calls_itself_is_one_line_of_a_hundred_characters_and_pings_nobody(status: Any) -> None:
    """Rule 8: the name is the program's own word."""
    piece = shown(an_approval(client=HOSTILE_CLIENT, status=status))
    [told] = [text for text in texts_of(piece.blocks) if "Requested by" in text]
    name = told.partition("Requested by Ana, through ")[2].partition(" Rule: ")[0].removesuffix(".")
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
    assert buttons(shown(an_approval())) == {
        "Approve": "approve call-1.1",
        "Reject…": "reject call-1.1",
        "Edit…": "edit call-1.1",
        "Show all": "show_all call-1.1",
        "Ask somebody else…": "hand_over call-1.1",
        "Withdraw": "take_back call-1.1",
    }


def test_what_is_pressed_less_often_has_a_row_of_its_own() -> None:
    piece = shown(an_approval(always_offered=True, together=3))
    rows = [[each["text"]["text"] for each in b["elements"]] for b in piece.blocks if b["type"] == "actions"]
    assert rows == [
        ["Approve", "Reject…", "Edit…", "Show all", "Approve all 3…"],
        ["Always allow…", "Ask somebody else…", "Withdraw"],
    ]


def test_nobody_else_is_asked_where_nobody_else_may_decide() -> None:
    assert "Ask somebody else…" not in buttons(shown(an_approval(handing_offered=False)))


def test_withdrawing_asks_back_before_anything_is_sent() -> None:
    row = shown(an_approval()).blocks[-1]["elements"]
    assert ["confirm" in element for element in row] == [element["action_id"] == "take_back" for element in row]


def test_the_requesters_own_words_are_shown_as_theirs() -> None:
    for status in ("pending", "approved"):
        piece = shown(an_approval(status=status, quote="delete team <!channel> *now*"))
        said = next(b for b in piece.blocks if "wrote:" in str(b))
        assert said["elements"][1]["type"] == "rich_text_quote"
        assert "delete team <!channel> *now*" in str(said)
    assert "wrote:" not in everything(shown(an_approval()))


def test_rejections_handovers_and_escalation_are_told() -> None:
    votes = (Vote("Ben", "reject", 1.0),)
    told = everything(shown(an_approval(rejections=2, votes=votes, handed_to=("Chloe",), escalates_at=1_795_255_260.0)))
    assert "1 of 2 rejected: Ben" in told
    assert "Chloe" in told
    assert "Others may decide too from <!date^1795255260^" in told


def test_what_may_not_be_edited_has_no_edit_button() -> None:
    assert "Edit…" not in buttons(shown(an_approval(editable=False)))


def test_several_that_wait_together_can_be_approved_together() -> None:
    assert buttons(shown(an_approval(together=7)))["Approve all 7…"] == "approve_all call-1.1"


def test_an_approval_without_a_deadline_says_nothing_of_one() -> None:
    assert "Open until" not in everything(shown(an_approval(expires_at=None)))


def test_approvers_of_this_workspace_are_mentioned_and_no_others() -> None:
    approvers = ("slack:T1:U2", "slack-group:T1:S7", "slack:T2:U3", "web:ben", "slack:T1:U4> <!channel", "requester")
    piece = shown(an_approval(may_decide="Ben or members of finance", approvers=approvers))
    mentions = [b["elements"][0]["text"] for b in piece.blocks if b["type"] == "context"]
    assert mentions == ["For <@U2> <!subteam^S7>"]


def test_approvers_whose_names_nobody_knows_yet_are_shown_by_slack() -> None:
    words = "slack:T1:U2 or members of slack-group:T1:S7, but not Ana"
    piece = shown(an_approval(may_decide=words, approvers=("slack-group:T1:S7", "slack:T1:U2")))
    facts = piece.blocks[3]["elements"][0]["elements"]
    start = facts.index({"type": "user", "user_id": "U2"})
    assert [facts[start + 1]["text"], facts[start + 2], facts[start + 3]["text"]] == [
        " or members of ",
        {"type": "usergroup", "usergroup_id": "S7"},
        ", but not Ana",
    ]


def test_what_is_too_long_is_cut_with_a_count_beside_the_buttons() -> None:
    many = {f"argument_{number}": "word " * 1_000 for number in range(13)}
    piece = shown(an_approval(arguments=many))
    assert len(fields(piece)) == 20
    assert fields(piece)[1].endswith("more characters)")
    assert len(fields(piece)[1]) <= 500
    assert piece.blocks[-3]["elements"][0]["text"] == (
        "Not whole here: 10 arguments are shortened and 3 more arguments are left out. “Show all” has everything."
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
    ("status", "word"),
    [
        ("approved", "Approved"),
        ("rejected", "Rejected"),
        ("expired", "Expired"),
        ("superseded", "Superseded"),
        ("withdrawn", "Withdrawn"),
        ("void", "No longer valid"),
    ],
)
def test_a_settled_approval_has_no_buttons_and_says_what_was_decided(status: str, word: str) -> None:
    by = ("Ben", "Chloe") if status in ("approved", "rejected") else ()
    piece = shown(an_approval(status=status, decided_by=by, decided_at=1_795_255_260.0, reason="Too early."))
    assert buttons(piece) == {}
    assert piece.blocks[0]["text"]["text"] == f"{word}: calendar: create_event"
    assert f"{word} by Ben, Chloe." in everything(piece) or not by
    assert "Too early." in everything(piece)
    assert f"{word} <!date^1795255260^" in everything(piece)
    assert "Asked by Ana" in everything(piece)


def test_an_edit_shows_what_was_asked_and_what_was_approved() -> None:
    view = an_approval(
        status="approved",
        arguments={"name": "Standup", "duration": 15, "room": "Blue"},
        asked_arguments={"name": "Meeting", "duration": 15, "notes": "long"},
        decided_by=("Ben",),
    )
    assert fields(shown(view)) == [
        *("Name", "Meeting → Standup", "Room", "(not given) → Blue"),
        *("Notes", "long → (not given)", "Duration", "15"),
    ]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("approved", "Edited before it was approved: what was asked → what was approved."),
        ("void", "Changed: what was asked → what it was changed to."),
        ("superseded", "Changed: what was asked → what it was changed to."),
    ],
)
def test_only_of_an_approved_call_a_card_says_that_its_changes_were_approved(status: str, told: str) -> None:
    view = an_approval(status=status, arguments={"name": "Standup"}, asked_arguments={"name": "Meeting"})
    said_on_it = everything(shown(view))
    assert told in said_on_it
    assert ("approved" in said_on_it) is (status == "approved")


def test_what_came_of_the_call_is_on_its_card() -> None:
    view = an_approval(status="approved", decided_by=("Ben",), result="Failed: no such room", result_tone="error")
    assert "❌ Failed: no such room" in everything(shown(view))


# ------------------------------------------------------------------------------------------------ questions


def test_an_open_question_names_the_person_the_options_and_the_button() -> None:
    piece = shown(a_question())
    assert piece.blocks[0]["text"] == {"type": "mrkdwn", "text": "*A question for* <@U1>", "verbatim": True}
    assert "small, large" in everything(piece)
    assert buttons(piece) == {"Answer…": "answer q1"}


def test_a_question_to_somebody_of_another_platform_names_them_without_markup() -> None:
    piece = shown(a_question(requester_id="web:ana", requester="*Ana*"))
    assert piece.blocks[0]["text"] == {"type": "plain_text", "text": "A question for *Ana*", "emoji": False}


def test_an_answered_question_shows_the_answer_and_no_button() -> None:
    piece = shown(a_question(status="answered", answer="size: large"))
    assert buttons(piece) == {}
    assert "size: large" in everything(piece)


def test_the_public_card_of_a_sign_in_has_no_link_but_a_button_for_one() -> None:
    piece = shown(a_sign_in())
    assert "Waiting for Ana to sign in at mail (accounts.example.com)." in everything(piece)
    assert buttons(piece) == {"Get my link": "get_link s1"}


@pytest.mark.parametrize("status", ["done", "declined", "expired", "superseded"])
def test_a_finished_sign_in_has_no_buttons(status: Any) -> None:
    piece = shown(replace(a_sign_in(), status=status))
    assert buttons(piece) == {}
    assert "Ana" in piece.text


def test_the_private_link_is_in_its_button_with_its_host_in_the_text() -> None:
    link = "https://accounts.example.com/authorize?state=secret"
    piece = sign_in_piece(a_sign_in(host="looks.example"), link)
    assert buttons(piece) == {
        "Open the sign-in page": f"open_link {link}",
        "I have signed in": "signed_in s1",
        "Not now": "not_now s1",
    }
    assert "accounts.example.com" in piece.text
    assert "secret" not in piece.text


def test_a_link_that_is_no_web_address_is_not_offered() -> None:
    assert list(buttons(sign_in_piece(a_sign_in(), "javascript:alert(1)"))) == ["Not now"]


def test_an_attempt_whose_outcome_is_unknown_asks_what_came_of_it() -> None:
    piece = shown(an_outcome())
    assert piece.blocks[0]["text"]["text"] == "What came of it? calendar: create_event"
    assert list(buttons(piece).values()) == ["it_was_done o1", "try_again o1", "skip o1"]
    settled = shown(an_outcome(status="skip", settled_by="Ana"))
    assert buttons(settled) == {}
    assert "Skipped, says Ana." in everything(settled)


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
    assert [element["text"] for element in first["elements"]] == ["Ana", " asks:"]
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
    assert piece.blocks[-1]["elements"][0]["text"] == "Please reply here."
