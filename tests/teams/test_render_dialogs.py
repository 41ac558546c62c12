"""What dialogs, notes and the overview say."""

from __future__ import annotations

import json

import pytest

from adapters.shared.wording import too_long_for_a_list
from adapters.teams.render.dialogs import (
    always_dialog,
    approve_all_dialog,
    argument_page,
    edit_dialog,
    note_dialog,
    reject_dialog,
    show_all_dialog,
)
from adapters.teams.render.elements import LARGEST_CARD, weight
from adapters.teams.render.posts import (
    activities,
    card_of,
    greeting,
    help_activity,
    note,
    open_a_chat_first,
    overview_activity,
)
from bot.domain import Form, Notice, Overview, Said, Together
from graph.interrupts import FormField
from graph.presentation import CallPresentation, Preview
from tests.teams.examples import OVERVIEW
from tests.teams.reading_cards import CHAT, buttons, said
from tests.teams.shown import a_post, an_approval

# ------------------------------------------------------------------------------------------------ dialogs


def test_show_all_has_every_character_of_every_argument() -> None:
    notes, deep = "".join(f"line {n}\n" for n in range(4_000)), {"a": ["ΩΩ"] * 900}
    arguments = {"notes": notes, "empty": "", "deep": deep}
    pages = [argument_page(arguments, page)[0] for page in range(argument_page(arguments, 0)[2])]
    assert len(pages) > 2
    texts: dict[str, str] = {}
    for box in (box for page in pages for box in page):
        title, *words = (run["text"] for run in box["inlines"])
        name = title.strip().removesuffix(" (continued)")
        texts[name] = texts.get(name, "") + "".join(words) + "\n"
    assert texts["Notes"].split() == notes.split()
    assert json.loads(texts["Deep"].replace("\n", "")) == deep
    assert texts["Empty"] == "(empty)\n"


def test_show_all_gives_the_buttons_to_whoever_may_decide() -> None:
    assert buttons(show_all_dialog(an_approval(), 0, decides=True).card) == {
        "Approve": "approve call-1.1",
        "Reject…": "reject call-1.1",
        "More…": "hand_over_dialog call-1.1",
    }
    assert list(buttons(show_all_dialog(an_approval(), 0, decides=False).card)) == ["Close"]
    assert list(buttons(show_all_dialog(an_approval(), 0, decides=False, asked=True).card)) == ["More…"]
    assert list(buttons(show_all_dialog(an_approval(status="expired"), 0, decides=True).card)) == ["Close"]


def test_whoever_may_decide_can_add_a_note_for_the_assistant_which_is_kept_on_other_pages() -> None:
    view = an_approval(arguments={"notes": "word " * 12_000})
    card = show_all_dialog(view, 1, decides=True, note="Book a room too.").card
    [note] = [element for element in card["body"] if element["type"] == "Input.Text"]
    assert (note["id"], note["label"], note["value"]) == (
        "note",
        "Add a note for the assistant (optional)",
        "Book a room too.",
    )
    sending = {action["title"]: action.get("associatedInputs") for action in card["actions"]}
    assert [sending[title] for title in ("Approve", "Previous", "Next")] == ["auto"] * 3
    assert "Input.Text" not in str(show_all_dialog(view, 1, decides=False).card)


def test_show_all_turns_its_pages() -> None:
    view = an_approval(arguments={"notes": "word " * 12_000})
    first, middle, last = (buttons(show_all_dialog(view, page, decides=False).card) for page in (-1, 1, 99))
    assert first == {"Next": "page 1:call-1.1"}
    assert middle["Previous"] == "page 0:call-1.1"
    assert middle["Next"] == "page 2:call-1.1"
    assert list(last) == ["Previous"]


def test_what_approves_several_carries_exactly_the_ids_of_those_it_lists() -> None:
    card = approve_all_dialog(Together((an_approval(), an_approval("call-1.2", tool="delete_event")), 0)).card
    assert buttons(card) == {"Approve 2": "approve_all call-1.1 call-1.2"}
    assert "2. calendar › “Create event”\nName: Team Meeting" in said(card)
    many = approve_all_dialog(Together(tuple(an_approval(f"call-{number}") for number in range(40)), 20)).card
    listed = len(many["actions"][0]["data"]["id"].split())
    assert 30 <= listed <= 40
    assert f"{60 - listed} more requests aren’t listed here. Decide them on their own cards." in said(many)
    assert said(approve_all_dialog(Together((), 3)).card) == too_long_for_a_list()


def test_whatever_approves_shows_what_would_change_and_why_it_is_asked_again() -> None:
    """As its card does: whoever approves there has not read that."""
    preview = Preview(source="calendar › preview_update_event", before={"room": "Blue"}, after={"room": "Red"})
    view = an_approval(presentation=CallPresentation(preview=preview), again="Asked again: calendar has changed since")
    for dialog in (
        approve_all_dialog(Together((view,), 0)),
        show_all_dialog(view, 0, decides=True),
        always_dialog(view),
    ):
        assert "Preview from calendar › preview_update_event" in said(dialog.card)
        assert "Room: Blue → Red" in said(dialog.card)
        assert view.again in said(dialog.card)


def test_an_edit_of_what_deletes_is_asked_once_more() -> None:
    deleting = an_approval(tool="delete_event", title="Delete event", risk=("writes", "destroys"))
    form = Form("Edit", (FormField(name="x"),), {})
    [unfolds] = edit_dialog("call-1.1", form, view=deleting).card["actions"]
    assert unfolds["type"] == "Action.ShowCard" and "This deletes data." in said(unfolds["card"])
    assert [each["title"] for each in unfolds["card"]["actions"]] == ["Save and approve"]
    [plain] = edit_dialog("call-1.1", form, view=an_approval()).card["actions"]
    assert plain["type"] == "Action.Submit"


def test_a_long_preview_leaves_space_for_the_values_below_it() -> None:
    sides = {
        each: {f"{number} {'Ω' * 90}": f"{each} {'Ω' * 900}" for number in range(20)} for each in ("before", "after")
    }
    view = an_approval(
        arguments={"notes": "Ω" * 30_000}, presentation=CallPresentation(preview=Preview(source="Ω" * 500, **sides))
    )
    assert weight(show_all_dialog(view, 0, decides=True).card) <= LARGEST_CARD
    assert weight(always_dialog(view).card) <= LARGEST_CARD


def test_what_approves_several_asks_once_more_where_one_of_them_deletes() -> None:
    deleting = an_approval("call-1.2", tool="delete_event", title="Delete event", risk=("writes", "destroys"))
    [button] = approve_all_dialog(Together((an_approval(), deleting), 0)).card["actions"]
    assert (button["type"], button["title"]) == ("Action.ShowCard", "Approve 2…")
    assert said(button["card"]) == "Approve 2 requests?\n1 of them deletes data."
    [meant] = button["card"]["actions"]
    assert (meant["title"], meant["data"]["id"]) == ("Approve 2", "call-1.1 call-1.2")


def test_a_reason_that_was_refused_is_shown_again_with_why() -> None:
    dialog = reject_dialog(an_approval(reason_required=True), {"reason": "A reason is needed."}, "no")
    assert "Reason: A reason is needed." in said(dialog.card)
    assert dialog.card["body"][-1]["value"] == "no"


# ------------------------------------------------------------------------------------------------ the rest


def test_a_notice_has_a_sign_for_its_tone_and_is_literal() -> None:
    texts = [activities(a_post(Notice("*Careful*.", tone)), CHAT)[0]["text"] for tone in ("info", "warning", "error")]
    assert texts == ["\\*Careful\\*.", "⚠ \\*Careful\\*.", "❗ \\*Careful\\*."]
    assert note("<at>Ana</at>\n# x")["text"] == "&lt;at&gt;Ana&lt;/at&gt;  \n\\# x"


def test_text_is_not_shown_as_a_card() -> None:
    with pytest.raises(ValueError, match="as text"):
        card_of(Said("x"), decides=False)


def test_the_help_names_every_command() -> None:
    assert all(word in help_activity()["text"] for word in ("approvals", "connections", "new", "stop", "help"))
    assert "help" in greeting()


def test_who_cannot_be_reached_is_asked_to_open_a_chat() -> None:
    assert open_a_chat_first("*Ana*")["text"].startswith("\\*Ana\\*, I can’t reach you privately.")


def test_the_overview_leads_to_what_can_be_decided_and_to_where_it_is_shown() -> None:
    card = overview_activity(OVERVIEW)["attachments"][0]["content"]
    entries = [element for element in card["body"] if element["type"] == "Container"]
    actions = [buttons(entry["items"][-1]) for entry in entries]
    assert actions[0]["Review…"] == "show_all call-1.1"
    assert actions[0]["Open"].startswith("https://teams.microsoft.com/l/message/19%3Ax%40thread.v2/1700000000001?")
    assert actions[2] == {"Answer…": "answer_dialog q1"}
    assert actions[3] == {"Get my link": "get_link s1"}
    assert "2 requests need your approval. You have 3 open requests." in card["fallbackText"]


def test_the_overview_counts_what_is_not_shown() -> None:
    [first, _] = OVERVIEW.to_decide
    many = overview_activity(Overview((first,) * 16, (), (), more_to_decide=484))["attachments"][0]["content"]
    listed = len([element for element in many["body"] if element["type"] == "Container"])
    assert 2 <= listed <= 12
    assert f"{500 - listed} more" in said(many)


def test_a_dialog_that_only_says_something_can_be_closed() -> None:
    assert buttons(note_dialog("That was settled already.").card) == {"Close": "close "}
