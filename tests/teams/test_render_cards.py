"""What the cards say, to whom, and with which buttons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from adapters.teams.render.arguments import argument_pages, beginning
from adapters.teams.render.dialogs import approve_all_dialog, note_dialog, reject_dialog, show_all_dialog
from adapters.teams.render.mentions import Mention
from adapters.teams.render.posts import (
    Audience,
    activities,
    card_of,
    greeting,
    help_activity,
    note,
    open_a_chat_first,
    overview_activity,
    sign_in_link,
)
from adapters.teams.render.text import escape
from bot.vocabulary import Content, Notice, Overview, Said, Vote
from graph.fields import FormField
from tests.fakes.teams.card_rules import mistakes
from tests.teams.examples import FOUR_EYES, OVERVIEW
from tests.teams.shown import a_post, a_question, a_sign_in, an_approval, an_outcome

Json = Mapping[str, Any]
EVERYBODY = Audience("open")
CHAT = Audience("personal")


def shown(content: Content, audience: Audience = EVERYBODY) -> Json:
    """The card of a post."""
    [activity] = activities(a_post(content), audience)
    return dict(activity["attachments"][0]["content"])


def buttons(card: Json) -> dict[str, str]:
    """The words on the buttons of a card → what they carry: name and id, or address."""
    return {action["title"]: _carried(action) for action in card.get("actions", [])}


def _carried(action: Json) -> str:
    if action["type"] == "Action.ShowCard":
        [action] = action["card"]["actions"]
    data = action.get("data", {})
    return action.get("url") or f"{data['countersign']} {data['id']}"


def facts(card: Json) -> list[tuple[str, str]]:
    sets = [element["facts"] for element in card["body"] if element["type"] == "FactSet"]
    return [(fact["title"], fact["value"]) for each in sets for fact in each]


def said(element: Any) -> str:
    """All words of a card, a line for each paragraph."""
    return "\n".join(_lines(element))


def _lines(element: Any) -> Iterator[str]:
    match element:
        case {"type": "TextBlock"}:
            yield element["text"]
        case {"type": "RichTextBlock"}:
            yield "".join(run["text"] for run in element["inlines"])
        case Mapping():
            for value in element.values():
                yield from _lines(value)
        case list() | tuple():
            for value in element:
                yield from _lines(value)


# ------------------------------------------------------------------------------------------------ approvals


def test_a_waiting_approval_says_what_who_and_until_when() -> None:
    card = shown(an_approval())
    assert said(card).splitlines() == [
        "Approve? calendar: create_event",
        "Ana asks for this. The server calls it “Create event”.",
        "Risk: writes",
        "May decide: Ana",
        "Rule: writes need the requester",
        "Open until {{DATE(2026-11-22T10:00:00Z,SHORT)}} at {{TIME(2026-11-22T10:00:00Z)}}",
    ]
    assert facts(card) == [
        ("Name", "Team Meeting"),
        ("Start", "2026-11-21T10:00:00+01:00"),
        ("Duration", "60"),
        ("Calendar", "primary"),
    ]
    assert card["fallbackText"] == "Approve? calendar: create_event. Ana asks. May decide: Ana."


def test_its_buttons_carry_the_approvals_id_and_nothing_else() -> None:
    assert buttons(shown(an_approval())) == {
        "Approve": "approve call-1.1",
        "Reject…": "reject call-1.1",
        "Edit…": "edit_dialog call-1.1",
        "Show all": "show_all call-1.1",
    }


def test_a_rejection_has_its_reason_on_the_card_or_where_that_is_not_possible_in_a_dialog() -> None:
    reject = shown(an_approval(reason_required=True))["actions"][1]
    [reason] = reject["card"]["body"]
    assert (reason["id"], reason["isRequired"]) == ("reason", True)
    assert reject["card"]["actions"][0]["associatedInputs"] == "auto"
    assert reject["fallback"]["data"] == {
        "countersign": "reject_dialog",
        "id": "call-1.1",
        "msteams": {"type": "task/fetch"},
    }
    assert "isRequired" not in shown(an_approval())["actions"][1]["card"]["body"][0]


def test_an_approval_falls_back_to_the_same_click_as_a_message() -> None:
    approve = shown(an_approval())["actions"][0]
    assert approve["verb"] == "approve"
    assert approve["fallback"]["type"] == "Action.Submit"
    assert approve["fallback"]["data"] == approve["data"] == {"countersign": "approve", "id": "call-1.1"}


def test_what_may_not_be_edited_has_no_edit_button() -> None:
    assert "Edit…" not in buttons(shown(an_approval(editable=False)))


def test_several_that_wait_together_can_be_approved_together() -> None:
    assert buttons(shown(an_approval(together=7)))["Approve all 7…"] == "approve_all_dialog call-1.1"


def test_an_approval_without_a_deadline_says_nothing_of_one() -> None:
    assert "Open until" not in said(shown(an_approval(expires_at=None)))
    assert "Open until an unknown time" in said(shown(an_approval(expires_at=float("nan"))))


# ------------------------------------------------------------------------------------------------ audiences


def test_where_anybody_may_decide_the_buttons_are_there_and_those_who_may_not_are_shown_something_else() -> None:
    card = shown(an_approval(), Audience("open", ("29:ana",)))
    assert "Approve" in buttons(card)
    assert card["refresh"] == {
        "action": {
            "type": "Action.Execute",
            "verb": "refresh",
            "data": {"countersign": "refresh", "id": "call-1.1"},
        },
        "userIds": ["29:ana"],
    }


def test_where_few_may_decide_only_they_are_shown_the_buttons() -> None:
    card = shown(FOUR_EYES, Audience("listed", ("29:ben", "29:chloe", "29:ben")))
    assert list(buttons(card)) == ["Show all"]
    assert "If yours do not appear, “Show all” has them." in said(card)
    assert card["refresh"]["userIds"] == ["29:ben", "29:chloe"]
    assert "Approve" in buttons(card_of(FOUR_EYES, decides=True))
    assert list(buttons(card_of(FOUR_EYES, decides=False))) == ["Show all"]


def test_a_card_is_refreshed_for_sixty_people_at_most_and_for_nobody_when_it_is_settled() -> None:
    audience = Audience("listed", tuple(f"29:{number}" for number in range(70)))
    assert len(shown(an_approval(), audience)["refresh"]["userIds"]) == 60
    assert "refresh" not in shown(an_approval(status="expired"), audience)
    assert "refresh" not in shown(an_approval(), EVERYBODY)


def test_whoever_is_to_hear_of_a_card_is_mentioned_while_it_waits() -> None:
    called = (Mention("29:ben", "Ben Baker"), Mention("29:x", "*Eve* <at>all</at> [x](http://e.example)\n"))
    audience = Audience("listed", ("29:ben",), mentions=called)
    card = shown(an_approval(), audience)
    texts = [entity["text"] for entity in card["msteams"]["entities"]]
    assert texts == ["<at>Ben Baker</at>", "<at>Eve atallat xhttpe.example</at>"]
    assert [entity["mentioned"]["id"] for entity in card["msteams"]["entities"]] == ["29:ben", "29:x"]
    assert all(text in said(card) for text in texts)
    assert mistakes(card) == []
    assert "entities" not in shown(an_approval(status="approved"), audience)["msteams"]


@pytest.mark.parametrize("may_decide", [True, False])
def test_in_a_direct_chat_nothing_is_refreshed(*, may_decide: bool) -> None:
    card = shown(an_approval(), Audience("personal", ("29:ana",), may_decide))
    assert "refresh" not in card
    assert ("Approve" in buttons(card)) == may_decide


# ------------------------------------------------------------------------------------------------ literal, and cut


def test_markup_in_arguments_is_literal() -> None:
    card = shown(an_approval(arguments={"note": "*bold* [x](http://e.example) <at>Ana</at>\n# no heading"}))
    assert facts(card) == [("Note", "\\*bold\\* \\[x\\]\\(http://e.example) \\<at>Ana\\</at>\n\n\\# no heading")]


def test_a_word_too_wide_for_a_column_stands_below_the_others() -> None:
    card = shown(an_approval(arguments={"first": "x" * 31, "second": "y" * 30, "z" * 40: "third"}))
    assert facts(card) == [("Second", "y" * 30)]
    assert said(card).splitlines()[2:4] == [f"First: {'x' * 31}", f"Z{'z' * 39}: third"]


def test_nothing_in_foreign_text_becomes_a_date() -> None:
    trick = "{{DATE(2017-02-14T06:08:00Z)}}"
    card = shown(an_approval(requester=trick, server=trick, arguments={"x": trick}))
    assert card["body"][1]["inlines"][0]["text"] == "{"
    assert facts(card) == [("X", "{\\{DATE(2017-02-14T06:08:00Z)}}")]
    assert "{{DATE(2017" not in json.dumps(card)


@pytest.mark.parametrize("plain", ["2026-11-21", "-5", "a_b_c", "1.5", "3 - 2", "#1", "R&D", "a & b", "50%", "Hi!"])
def test_what_can_mean_nothing_is_not_escaped(plain: str) -> None:
    assert escape(plain) == plain


def test_what_is_too_long_is_cut_with_a_count_beside_the_buttons() -> None:
    card = shown(an_approval(arguments={f"argument_{number}": "word " * 1_000 for number in range(13)}))
    assert len(facts(card)) == 10
    assert all(value.endswith("more characters)") and len(value) <= 500 for _, value in facts(card))
    assert said(card).splitlines()[-1] == (
        "Not whole here: 10 arguments are shortened and 3 more arguments are left out. “Show all” has everything."
    )


def test_what_takes_many_bytes_is_cut_shorter() -> None:
    card = shown(an_approval(arguments={f"argument_{number}": "𝕏𝕏𝕏 " * 250 for number in range(10)}))
    assert len(json.dumps(card)) <= 28 * 1024
    assert all("more characters)" in value for _, value in facts(card))


def test_many_lines_are_cut_too_so_that_the_buttons_stay_in_sight() -> None:
    cut = beginning("\n".join(map(str, range(100))), 500)
    assert cut.count("\n") <= 24
    assert "more characters)" in cut
    assert beginning("", 9) == "(empty)"
    assert beginning("  ", 9) == "(2 blanks)"


def test_votes_that_do_not_suffice_yet_are_counted() -> None:
    view = an_approval(quorum=2, votes=(Vote("Ben", "approve", 1.0), Vote("Dan", "reject", 1.0)))
    assert "Votes: 1 of 2 approved: Ben" in said(shown(view))


@pytest.mark.parametrize(
    ("risk", "colour", "words"),
    [
        (("reads",), "good", "Risk: reads"),
        (("writes", "reaches outside"), "warning", "Risk: writes, reaches outside"),
        (("writes", "destroys"), "attention", "Risk: ⚠ writes, destroys"),
    ],
)
def test_a_risk_has_its_colour_and_its_words(risk: tuple[str, ...], colour: str, words: str) -> None:
    [box] = [element for element in shown(an_approval(risk=risk))["body"] if element["type"] == "Container"]
    assert (box["style"], said(box)) == (colour, words)
    assert "Risk" not in said(shown(an_approval(risk=())))


# ------------------------------------------------------------------------------------------------ settled


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
    card = shown(an_approval(status=status, decided_by=by, decided_at=1_795_255_260.0, reason="Too early."))
    assert buttons(card) == {}
    lines = said(card).splitlines()
    assert lines[0] == f"{word}: calendar: create_event"
    assert lines[1] == (f"{word} by Ben, Chloe." if by else f"{word}.")
    assert "Reason: Too early." in lines
    assert f"{word} {{{{DATE(2026-11-21T10:01:00Z,SHORT)}}}} at {{{{TIME(2026-11-21T10:01:00Z)}}}}" in lines
    assert "Asked by Ana. Rule: writes need the requester." in lines


def test_an_edit_shows_what_was_asked_and_what_was_approved() -> None:
    view = an_approval(
        status="approved",
        arguments={"name": "Standup", "duration": 15, "room": "Blue"},
        asked_arguments={"name": "Meeting", "duration": 15, "notes": "long"},
        decided_by=("Ben",),
    )
    assert facts(shown(view)) == [
        ("Name", "Meeting → Standup"),
        ("Room", "(not given) → Blue"),
        ("Notes", "long → (not given)"),
        ("Duration", "15"),
    ]


def test_what_came_of_the_call_is_on_its_card() -> None:
    view = an_approval(status="approved", decided_by=("Ben",), result="Failed: no such room", result_tone="error")
    assert "✖ Failed: no such room" in said(shown(view))


# ------------------------------------------------------------------------------------------------ the other cards


def test_a_question_of_few_fields_is_answered_on_its_card() -> None:
    card = shown(a_question())
    assert said(card).splitlines()[:3] == ["A question for Ana", "Which room?", "Two rooms are free."]
    assert buttons(card) == {"Answer": "answer q1", "Open as a form…": "answer_dialog q1"}
    assert [element.get("id") for element in card["body"] if element["type"].startswith("Input.")] == ["field:size"]


def test_a_question_of_many_fields_is_answered_in_a_dialog() -> None:
    fields = tuple(FormField(name=f"f{number}", options=("a", "b")) for number in range(5))
    card = shown(a_question(fields=fields))
    assert buttons(card) == {"Answer…": "answer_dialog q1"}
    assert "f0: a, b" in said(card)


def test_a_question_without_fields_is_answered_with_a_reply() -> None:
    card = shown(a_question(fields=()))
    assert buttons(card) == {}
    assert said(card).endswith("Please reply here.")


def test_an_answered_question_shows_the_answer_and_no_button() -> None:
    card = shown(a_question(status="answered", answer="size: large"))
    assert buttons(card) == {}
    assert "Answered. Ana: size: large" in said(card)


def test_what_is_not_mine_has_no_buttons() -> None:
    for content in (a_question(), a_sign_in(), an_outcome()):
        assert buttons(card_of(content, decides=False, mine=False)) == {}
        assert buttons(card_of(content, decides=False, mine=True)) != {}


def test_the_public_card_of_a_sign_in_has_no_link_but_a_button_for_one() -> None:
    card = shown(a_sign_in())
    assert "Waiting for Ana to sign in at mail (accounts.example.com)." in said(card)
    assert buttons(card) == {"Get my link": "get_link s1"}


@pytest.mark.parametrize("status", ["done", "declined", "expired", "superseded"])
def test_a_finished_sign_in_has_no_buttons(status: str) -> None:
    card = shown(a_sign_in(status=status))
    assert buttons(card) == {}
    assert "Ana" in said(card)


def test_the_private_link_is_in_its_button_with_its_host_in_the_text() -> None:
    link = "https://accounts.example.com/authorize?state=secret"
    activity = sign_in_link(a_sign_in(host="looks.example"), link)
    card = activity["attachments"][0]["content"]
    assert buttons(card) == {
        "Open the sign-in page": link,
        "I have signed in": "signed_in s1",
        "Not now": "not_now s1",
    }
    assert "accounts.example.com" in said(card)
    assert "secret" not in said(card) + activity["summary"] + card["fallbackText"] + card["speak"]


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://a.example/" + "x" * 9_000])
def test_a_link_that_cannot_be_opened_is_not_offered(link: str) -> None:
    assert buttons(sign_in_link(a_sign_in(), link)["attachments"][0]["content"]) == {"Not now": "not_now s1"}


def test_an_attempt_that_broke_off_asks_what_came_of_it() -> None:
    card = shown(an_outcome())
    assert said(card).startswith("What came of it? calendar: create_event")
    assert list(buttons(card).values()) == ["it_was_done o1", "try_again o1", "skip o1"]
    settled = shown(an_outcome(status="skip", settled_by="Ana"))
    assert buttons(settled) == {}
    assert "Skipped, says Ana." in said(settled)


# ------------------------------------------------------------------------------------------------ dialogs


def test_show_all_has_every_character_of_every_argument() -> None:
    notes, deep = "".join(f"line {n}\n" for n in range(4_000)), {"a": ["ΩΩ"] * 900}
    pages = argument_pages({"notes": notes, "empty": "", "deep": deep})
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
    }
    assert list(buttons(show_all_dialog(an_approval(), 0, decides=False).card)) == ["Close"]
    assert list(buttons(show_all_dialog(an_approval(status="expired"), 0, decides=True).card)) == ["Close"]


def test_show_all_turns_its_pages() -> None:
    view = an_approval(arguments={"notes": "word " * 12_000})
    first, middle, last = (buttons(show_all_dialog(view, page, decides=False).card) for page in (-1, 1, 99))
    assert first == {"Next": "page 1:call-1.1", "Close": "close "}
    assert middle["Previous"] == "page 0:call-1.1"
    assert middle["Next"] == "page 2:call-1.1"
    assert list(last) == ["Previous", "Close"]


def test_what_approves_several_carries_exactly_the_ids_of_those_it_lists() -> None:
    card = approve_all_dialog([an_approval(), an_approval("call-1.2", tool="delete_event")]).card
    assert buttons(card) == {"Approve 2": "approve_all call-1.1 call-1.2"}
    assert "2. calendar: delete_event" in said(card)
    many = approve_all_dialog([an_approval(f"call-{number}") for number in range(60)]).card
    assert len(many["actions"][0]["data"]["id"].split()) == 40
    assert "20 more wait and are not in this list: approve these first." in said(many)
    assert said(approve_all_dialog([]).card) == "Nothing waits any more."


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
    assert all(word in help_activity()["text"] for word in ("approvals", "new", "stop", "help"))
    assert "help" in greeting()


def test_who_cannot_be_reached_is_asked_to_open_a_chat() -> None:
    assert open_a_chat_first("*Ana*")["text"].startswith("\\*Ana\\*, I cannot reach you privately.")


def test_the_overview_leads_to_what_can_be_decided_and_to_where_it_is_shown() -> None:
    card = overview_activity(OVERVIEW)["attachments"][0]["content"]
    entries = [element for element in card["body"] if element["type"] == "Container"]
    actions = [buttons(entry["items"][-1]) for entry in entries]
    assert actions[0]["Look and decide…"] == "show_all call-1.1"
    assert actions[0]["Open"].startswith("https://teams.microsoft.com/l/message/19%3Ax%40thread.v2/1700000000001?")
    assert actions[2] == {"Answer…": "answer_dialog q1"}
    assert actions[3] == {"Get my link": "get_link s1"}
    assert "2 wait for your decision; 3 of your requests wait." in card["fallbackText"]


def test_the_overview_shows_nothing_twice_and_counts_what_is_not_shown() -> None:
    [first, second] = OVERVIEW.to_decide
    twice = overview_activity(Overview((first, second), (first, second), ()))
    assert "You asked" not in said(twice["attachments"][0]["content"])
    many = overview_activity(Overview((first,) * 500, (), ()))["attachments"][0]["content"]
    assert "… and 488 more" in said(many)


def test_a_dialog_that_only_says_something_can_be_closed() -> None:
    assert buttons(note_dialog("That was settled already.").card) == {"Close": "close "}
