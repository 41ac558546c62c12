"""What the cards say, to whom, and with which buttons."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from adapters.teams.render.cards import CardMention
from adapters.teams.render.elements import escape
from adapters.teams.render.posts import (
    Audience,
    activities,
    card_of,
    sign_in_link,
)
from bot.card_masks import PLAIN, masked
from bot.domain import CallActivity, Content, Said, Vote
from bot.safe_text import visible_excerpt
from graph.interrupts import FormField
from graph.presentation import CallPresentation, KnownId, Preview
from tests.fakes.teams.activity_rules import product_mistakes, refusals
from tests.fakes.teams.card_rules import mistakes
from tests.teams.examples import FOUR_EYES
from tests.teams.reading_cards import EVERYBODY, buttons, facts, said, shown
from tests.teams.shown import a_change, a_post, a_question, a_sign_in, an_approval, an_outcome

# ------------------------------------------------------------------------------------------------ approvals


def test_a_waiting_approval_says_what_who_and_until_when() -> None:
    card = shown(an_approval())
    assert said(card).splitlines() == [
        "calendar › “Create event”",
        "Requested by Ana · calendar › create_event",
        "Approver: Ana · Expires {{DATE(2026-11-22T10:00:00Z,SHORT)}} at {{TIME(2026-11-22T10:00:00Z)}}",
    ]
    assert facts(card) == [
        ("Name", "Team Meeting"),
        ("Start", "2026-11-21T10:00:00+01:00"),
        ("Duration", "60"),
        ("Calendar", "primary"),
    ]
    assert card["fallbackText"] == "Ana requests approval: calendar › “Create event”. Approver: Ana."


@pytest.mark.parametrize("status", ["pending", "approved"])
def test_what_a_program_calls_itself_is_one_literal_line_of_a_hundred_characters(status: str) -> None:
    """Rule 8: the name is the program's own word."""
    name = "cursor.\n- **May decide:** <at>Ben</at> [here](https://evil.example)\u202e anyone" + "x" * 200
    card = shown(an_approval(client=name, status=status))
    [told] = [line for line in said(card).splitlines() if "Requested by" in line]
    written = told.partition("Requested by Ana, through ")[2].partition(" · calendar ›")[0]
    assert "⟨U+202E⟩" in written and written.startswith("cursor. - ") and len(written.replace("\\", "")) <= 100
    assert "entities" not in card["msteams"]


def test_its_buttons_carry_the_approvals_id_and_nothing_else() -> None:
    assert buttons(shown(an_approval())) == {
        "Approve": "approve call-1.1",
        "Reject…": "reject call-1.1",
        "Edit…": "edit_dialog call-1.1",
        "Show all": "show_all call-1.1",
        "Ask someone else…": "hand_over_dialog call-1.1",
    }


@pytest.mark.parametrize(
    ("together", "in_row"),
    [(1, ["Approve", "Reject…", "Edit…"]), (3, ["Approve", "Reject…", "Edit…", "Approve all 3…"])],
)
def test_at_most_four_buttons_stand_in_the_row_and_the_rest_is_in_its_menu(together: int, in_row: list[str]) -> None:
    view = an_approval(always_offered=True, together=together, masks=1)
    actions = card_of(view, decides=True, asked=True)["actions"]
    assert [each["title"] for each in actions if each.get("mode") != "secondary"] == in_row
    assert [each["title"] for each in actions[len(in_row) :]] == [
        "Show all",
        "Allow for a while…",
        "Ask someone else…",
        "Look at hidden values…",
        "Withdraw…",
    ]


def test_what_deletes_is_approved_only_after_it_was_asked_once_more() -> None:
    view = an_approval(risk=("destroys",), title="Delete event")
    approve = card_of(view, decides=True)["actions"][0]
    assert (approve["type"], approve["title"]) == ("Action.ShowCard", "Approve…")
    assert said(approve["card"]) == "calendar › “Delete event”?\nThis deletes data."
    [confirmed] = approve["card"]["actions"]
    assert (confirmed["title"], confirmed["data"]["countersign"]) == ("Approve", "approve")
    assert approve["fallback"]["data"]["countersign"] == "show_all"


def test_nobody_decides_what_is_too_long_to_be_read_for_its_card() -> None:
    assert list(buttons(card_of(an_approval(unread=90_000, arguments={}), decides=True))) == ["Show all"]


def test_nobody_else_is_asked_where_nobody_else_may_decide() -> None:
    card = card_of(an_approval(handing_offered=False), decides=True)
    assert [action["title"] for action in card["actions"]] == ["Approve", "Reject…", "Edit…", "Show all"]


def test_withdrawing_is_for_who_asked() -> None:
    assert "Withdraw…" not in buttons(card_of(an_approval(), decides=True))
    assert list(buttons(card_of(an_approval(), decides=False, asked=True))) == ["Show all", "Withdraw…"]


def test_the_requesters_own_words_rejections_handovers_and_escalation_are_told() -> None:
    facts = {"quote": "delete **team** XYZ", "rejections": 2, "handed_to": ("Chloe",), "escalates_at": 1_795_255_260.0}
    told = str(card_of(an_approval(**facts, votes=(Vote("Ben", "reject", 1.0),)), decides=True))
    for words in ("Ana wrote: ", "delete **team** XYZ", "1 of 2 rejected: Ben", "Also asked: Chloe", "Escalates"):
        assert words in told
    assert "wrote: " not in str(card_of(an_approval(), decides=True))


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
    assert "Expires" not in said(shown(an_approval(expires_at=None)))
    assert "Expires an unknown time" in said(shown(an_approval(expires_at=float("nan"))))


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
    assert "Approvers see buttons here. Don’t see yours? Use “Show all”." in said(card)
    assert card["refresh"]["userIds"] == ["29:ben", "29:chloe"]
    assert "Approve…" in buttons(card_of(FOUR_EYES, decides=True))
    assert list(buttons(card_of(FOUR_EYES, decides=False))) == ["Show all"]


def test_a_card_is_refreshed_for_sixty_people_at_most_and_for_nobody_when_it_is_settled() -> None:
    audience = Audience("listed", tuple(f"29:{number}" for number in range(70)))
    assert len(shown(an_approval(), audience)["refresh"]["userIds"]) == 60
    assert "refresh" not in shown(an_approval(status="expired"), audience)
    assert "refresh" not in shown(an_approval(), EVERYBODY)


def test_whoever_is_to_hear_of_a_card_is_mentioned_while_it_waits() -> None:
    called = (CardMention("29:ben", "Ben Baker"), CardMention("29:x", "*Eve* <at>all</at> [x](http://e.example)\n"))
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
    assert "Requested by {\\{DATE" in said(card)
    assert facts(card) == [("X", "{\\{DATE(2017-02-14T06:08:00Z)}}")]
    assert "{{DATE(2017" not in json.dumps(card)


@pytest.mark.parametrize("plain", ["2026-11-21", "-5", "a_b_c", "1.5", "3 - 2", "#1", "R&D", "a & b", "50%", "Hi!"])
def test_what_can_mean_nothing_is_not_escaped(plain: str) -> None:
    assert escape(plain) == plain


def test_what_is_too_long_is_cut_with_a_count_beside_the_buttons() -> None:
    card = shown(an_approval(arguments={f"argument_{number}": "word " * 1_000 for number in range(13)}))
    assert len(facts(card)) == 10
    assert all(value.endswith("more characters)") and len(value) <= 500 for _, value in facts(card))
    assert said(card["body"]).splitlines()[-2] == "45,250 characters hidden, 3 arguments hidden."


def test_what_takes_many_bytes_is_cut_shorter() -> None:
    card = shown(an_approval(arguments={f"argument_{number}": "𝕏𝕏𝕏 " * 250 for number in range(10)}))
    assert len(json.dumps(card)) <= 28 * 1024
    assert all("more characters)" in value for _, value in facts(card))


def test_many_lines_are_cut_too_so_that_the_buttons_stay_in_sight() -> None:
    cut, is_cut = visible_excerpt("\n".join(map(str, range(100))), 500, 12)
    assert cut.count("\n") <= 24
    assert "more characters)" in cut
    assert is_cut
    assert visible_excerpt("", 9, 12) == ("(empty)", False)
    assert visible_excerpt("  ", 9, 12) == ("(2 blanks)", False)


def test_votes_that_do_not_suffice_yet_are_counted() -> None:
    view = an_approval(quorum=2, votes=(Vote("Ben", "approve", 1.0), Vote("Dan", "reject", 1.0)))
    assert "1 of 2 approved: Ben" in said(shown(view))


@pytest.mark.parametrize(
    ("risk", "beside", "colour"),
    [
        (("reads",), "", ""),
        (("writes",), "", ""),
        (("writes", "reaches outside"), "External", "Accent"),
        (("writes", "destroys"), "⚠ Deletes data", "Attention"),
        (("writes", "destroys", "reaches outside"), "⚠ Deletes data · External", "Attention"),
    ],
)
def test_only_what_deletes_or_reaches_outside_stands_beside_the_title(
    risk: tuple[str, ...], beside: str, colour: str
) -> None:
    first, second, *_ = shown(an_approval(risk=risk))["body"]
    columns = [column["items"][0] for column in first.get("columns", [])]
    assert [(each["text"], each["color"]) for each in columns[1:]] == ([(beside, colour)] if beside else [])
    assert second["text"] == "Requested by Ana · calendar › create\\_event".replace("\\", "")


def test_what_an_id_stands_for_is_told_once_and_its_fingerprint_last() -> None:
    known = KnownId(argument="event_id", value="e" * 36, title="Standup", source="calendar › list_events")
    kept = CallPresentation(trusted=True, main="event_id", known_ids=(known,))
    view = an_approval(tool="delete_event", title="Delete event", arguments={"event_id": "e" * 36}, presentation=kept)
    lines = said(shown(masked(view, PLAIN))).splitlines()
    assert lines[0] == "Delete event: Standup"
    assert facts(shown(masked(view, PLAIN))) == []
    assert lines[-1].startswith("Read from calendar › list_events · ID hidden (36 characters). Fingerprint: #")
    confused = replace(view, arguments={"event_id": "e" * 36, "note": "раypal"})
    assert said(shown(masked(confused, PLAIN))).splitlines()[-1].startswith("Approver: ")


def test_what_eyes_may_confuse_is_said_in_plain_words() -> None:
    view = masked(an_approval(arguments={"to": "раypal"}), PLAIN)
    assert "Some characters are easily confused with others. Fingerprint: #" in said(shown(view))


# ------------------------------------------------------------------------------------------------ settled


@pytest.mark.parametrize(
    ("status", "sign", "ended"),
    [
        ("approved", "✓", "Approved by Ben, Chloe"),
        ("rejected", "✕", "Rejected by Ben, Chloe"),
        ("expired", "⌛", "Expired"),
        ("superseded", "↷", "Replaced"),
        ("withdrawn", "↩", "Withdrawn"),
        ("void", "↻", "Asked again"),
    ],
)
def test_a_settled_approval_is_two_lines_and_has_nothing_to_decide(status: str, sign: str, ended: str) -> None:
    by = ("Ben", "Chloe") if status in ("approved", "rejected") else ()
    card = shown(an_approval(status=status, decided_by=by, decided_at=1_795_255_260.0))
    *lines, details = card["body"]
    assert [said(line) for line in lines] == [
        f"{sign} calendar › “Create event”",
        f"{ended}, {{{{TIME(2026-11-21T10:01:00Z)}}}}",
    ]
    assert [action["type"] for action in card["actions"]] == ["Action.ToggleVisibility"]
    assert card["actions"][0]["targetElements"] == [details["id"]] and details["isVisible"] is False
    for told in ("Requested by Ana", "Rule: writes need the requester", "{{DATE(2026-11-21T10:01:00Z,SHORT)}} at "):
        assert told in said(details)


def test_what_is_asked_again_says_so_once() -> None:
    why = "Asked again: calendar has changed since"
    card = shown(an_approval(status="void", result=why, decided_at=1_795_255_260.0))
    *lines, _details = card["body"]
    assert [said(line) for line in lines][1:] == [f"{why}, {{{{TIME(2026-11-21T10:01:00Z)}}}}"]


def test_what_a_preview_says_stands_below_its_source_and_not_among_the_values_that_run() -> None:
    preview = Preview(source="calendar › preview_update_event", before={"room": "Blue"}, after={"room": "Red"})
    view = an_approval(arguments={"hall": "North"}, presentation=CallPresentation(preview=preview))
    told = str(shown(view)["body"])
    assert told.index("North") < told.index("Preview from calendar") < told.index("Blue → Red")


def test_why_it_was_rejected_is_on_its_face() -> None:
    card = shown(an_approval(status="rejected", decided_by=("Ben",), reason="Too early."))
    assert said(card["body"][2]) == "Reason: Too early."


def test_a_call_that_failed_says_so_in_red_and_whoever_asked_can_retry_it() -> None:
    view = an_approval(status="approved", result="Failed: no such room", result_tone="error", retry_offered=True)
    card = card_of(view, decides=False, asked=True)
    assert said(card["body"][0]) == "✕ calendar › “Create event” · Failed: no such room"
    assert {run["color"] for run in card["body"][0]["inlines"]} == {"Attention"}
    assert [action["title"] for action in card["actions"]] == ["Retry", "Details"]
    assert card["actions"][0]["data"] == {"countersign": "retry", "id": "call-1.1"}
    assert [action["title"] for action in card_of(view, decides=False)["actions"]] == ["Details"]
    refreshed = shown(view, Audience("open", ("29:ana",)))
    assert refreshed["refresh"]["userIds"] == ["29:ana"]


def test_an_edit_shows_what_was_asked_and_what_was_approved() -> None:
    view = an_approval(
        status="approved",
        arguments={"name": "Standup", "duration": 15, "room": "Blue"},
        asked_arguments={"name": "Meeting", "duration": 15, "notes": "long"},
        decided_by=("Ben",),
        edited_by="Ben",
    )
    told = facts({"body": shown(view)["body"][-1]["items"]})
    assert ("Name", "Meeting → Standup") in told
    assert ("Room", "(not given) → Blue") in told
    assert said(shown(view)["body"][1]) == "Approved by Ben · Edited by Ben"


def test_what_came_of_the_call_and_the_notes_for_the_assistant_are_in_its_details() -> None:
    notes = (("Ben", "Book a room too."),)
    view = an_approval(status="approved", decided_by=("Ben",), result="Done: id 7", result_tone="success", notes=notes)
    told = said(shown(view)["body"][-1])
    assert ("Result", "✓ Done: id 7") in facts({"body": shown(view)["body"][-1]["items"]})
    assert "Ben added: Book a room too." in told


# ------------------------------------------------------------------------------------------------ unasked changes


def test_a_change_that_nobody_was_asked_about_is_one_quiet_line() -> None:
    card = shown(a_change(rule="tasks are allowed"))
    line, details = card["body"]
    assert (line["text"], line["size"], line["isSubtle"]) == (
        "✓ calendar › “Create event” · Allowed by rule “tasks are allowed”",
        "Small",
        True,
    )
    assert details["isVisible"] is False
    assert [action["title"] for action in card["actions"]] == ["Details"]


def test_whoever_always_allows_a_change_can_revoke_that_and_nobody_else_is_offered_it() -> None:
    view = a_change(grant_id="g1")
    assert buttons(card_of(view, decides=False, asked=True))["Revoke"] == "revoke g1"
    card = shown(view, Audience("open", ("29:ana",)))
    assert "Revoke" not in buttons(card)
    assert card["refresh"]["action"]["data"] == {"countersign": "refresh", "id": "attempt-1"}
    assert "refresh" not in shown(a_change(rule="x"), Audience("open", ("29:ana",)))


# ------------------------------------------------------------------------------------------------ calls of an answer


def test_the_calls_that_were_made_for_an_answer_are_folded_below_it() -> None:
    calls = (
        CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 1.4, "2 events"),
        CallActivity("2", "calendar", "find_room", "Find room", "failed", 1.5, 3.1, "no room"),
    )
    answer, listed = activities(a_post(Said("Two events.", activity=calls)), EVERYBODY)
    assert "attachments" not in answer and refusals(dict(listed)) == product_mistakes(dict(listed)) == []
    [attached] = listed["attachments"]
    row, steps = attached["content"]["body"]
    assert (row["actions"][0]["title"], row["actions"][0]["targetElements"]) == ("2 steps · 2.1 s", [steps["id"]])
    assert steps["isVisible"] is False
    assert said(steps).splitlines() == [
        "✓ calendar › “List events” · calendar › list_events · 0.4 s",
        "2 events",
        "✕ calendar › “Find room” · calendar › find_room · Failed · 1.6 s",
        "no room",
    ]
    assert len(activities(a_post(Said("Hello.")), EVERYBODY)) == 1


# ------------------------------------------------------------------------------------------------ the other cards


def test_a_question_of_few_fields_is_answered_on_its_card() -> None:
    card = shown(a_question())
    assert said(card).splitlines()[:3] == ["Question for Ana", "Which room?", "Two rooms are free."]
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
    assert said(card).endswith("Reply here.")


def test_an_answered_question_shows_the_answer_and_no_button() -> None:
    card = shown(a_question(status="answered", answer="size: large"))
    assert buttons(card) == {}
    assert "Ana: size: large" in said(card)


def test_the_public_card_of_a_sign_in_has_no_link_but_a_button_for_one() -> None:
    card = shown(a_sign_in())
    assert "Waiting for Ana to sign in to mail (accounts.example.com)." in said(card)
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
        "Sign in": link,
        "I’ve signed in": "signed_in s1",
        "Not now": "not_now s1",
    }
    assert "accounts.example.com" in said(card)
    assert "secret" not in said(card) + activity["summary"] + card["fallbackText"] + card["speak"]


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://a.example/" + "x" * 9_000])
def test_a_link_that_cannot_be_opened_is_not_offered(link: str) -> None:
    assert buttons(sign_in_link(a_sign_in(), link)["attachments"][0]["content"]) == {"Not now": "not_now s1"}


def test_an_attempt_whose_outcome_is_unknown_asks_what_came_of_it() -> None:
    card = shown(an_outcome())
    assert said(card).startswith("Did this go through? calendar › “Create event”")
    assert list(buttons(card).values()) == ["it_was_done o1", "try_again o1", "skip o1"]
    settled = shown(an_outcome(status="skip", settled_by="Ana"))
    assert buttons(settled) == {}
    assert "Skipped by Ana" in said(settled)


@pytest.mark.parametrize("card", [an_approval, a_question, a_sign_in, an_outcome, a_change])
def test_what_a_task_of_a_plan_asks_names_its_agent(card: Callable[..., Content]) -> None:
    (made,) = activities(a_post(card(agent="bookkeeper")), EVERYBODY)
    assert "the bookkeeper agent" in json.dumps(made["attachments"])
    (made,) = activities(a_post(card()), EVERYBODY)
    assert "the bookkeeper agent" not in json.dumps(made["attachments"])


def test_what_is_asked_again_says_why() -> None:
    again = an_approval(again="The event has changed since it was approved.")
    assert "The event has changed since it was approved." in str(shown(again))
