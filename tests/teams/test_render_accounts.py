"""What is shown of accounts and of the questions that tools put."""

from __future__ import annotations

import json

import pytest

from adapters.teams.render.dialogs import answer_dialog, code_dialog, disconnect_dialog
from adapters.teams.render.elements import LARGEST_CARD, weight
from adapters.teams.render.overview import no_accounts
from adapters.teams.render.posts import connections_activity, overview_activity, sign_in_link
from bot.domain import Form, Overview, Shown
from graph.interrupts import FormField
from tests.support.views import a_service
from tests.teams.examples import OVERVIEW
from tests.teams.reading_cards import Json, buttons, said, shown
from tests.teams.shown import a_post, a_question, a_sign_in, an_account

LINK = "https://bot.example.com/oauth/start?s=very-secret"


def card_in(activity: Json) -> Json:
    return dict(activity["attachments"][0]["content"])


# ------------------------------------------------------------------------------------------------ sign-ins


def test_an_account_that_is_needed_is_named_by_its_service() -> None:
    card = shown(a_sign_in(service="GitHub", message=""))
    assert said(card) == "Waiting for Ana to connect their GitHub account, which the tool server mail needs."
    assert buttons(card) == {"Get my link": "get_link s1"}


def test_a_code_is_asked_for_while_a_browser_shows_one() -> None:
    card = shown(a_sign_in(service="GitHub", code_wanted=True))
    assert buttons(card) == {"Enter code…": "code_dialog s1", "Get my link": "get_link s1"}
    assert "Ana, your browser shows a code." in said(card)


@pytest.mark.parametrize("status", ["done", "declined", "expired", "superseded"])
def test_an_account_that_is_settled_has_no_buttons_and_names_the_service(status: str) -> None:
    card = shown(a_sign_in(service="GitHub", status=status, code_wanted=False))
    assert buttons(card) == {}
    assert "GitHub" in said(card)


def test_the_private_card_of_an_account_waits_for_the_browser_and_not_for_a_button() -> None:
    card = card_in(sign_in_link(a_sign_in(service="GitHub", message=""), LINK))
    assert buttons(card) == {"Sign in": LINK, "Not now": "not_now s1"}
    assert "your GitHub account, which the tool server mail needs" in said(card)
    assert "opens bot.example.com" in said(card)
    assert json.dumps(card).count("very-secret") == 1


def test_the_private_card_of_a_link_that_a_server_gave_asks_when_it_is_done() -> None:
    card = card_in(sign_in_link(a_sign_in(), LINK))
    assert buttons(card) == {
        "Sign in": LINK,
        "I’ve signed in": "signed_in s1",
        "Not now": "not_now s1",
    }


def test_the_form_for_a_code_names_the_service_and_what_was_wrong_and_never_what_was_typed() -> None:
    dialog = code_dialog(a_sign_in(service="GitHub"), "That is not it.")
    assert "signing in to GitHub" in said(dialog.card)
    assert "That is not it." in said(dialog.card)
    [typed] = [element for element in dialog.card["body"] if element["type"] == "Input.Text"]
    assert (typed["id"], typed["isRequired"], "value" in typed) == ("code", True, False)
    assert buttons(dialog.card) == {"Connect": "enter_code s1"}


# ------------------------------------------------------------------------------------------------ accounts


def test_each_account_is_listed_with_a_way_to_end_it() -> None:
    broken = an_account(connection_id="c2", service="mail", account="", scopes=(), used_at=None, status="revoked")
    card = card_in(connections_activity((an_account(), broken)))
    first, second = (element for element in card["body"] if element["type"] == "Container")
    assert said(first).splitlines()[:2] == ["GitHub: ana-alvarez", "repo, read:user"]
    assert "Last used" in said(first)
    assert "Access expired" not in said(first)
    assert buttons(first["items"][-1]) == {"Disconnect…": "disconnect_dialog c1"}
    assert said(second).splitlines()[0] == "mail"
    assert "Not used yet" in said(second)
    assert "Access expired. Sign in again when asked." in said(second)


def test_nobodys_accounts_are_a_sentence() -> None:
    card = card_in(connections_activity(()))
    assert said(card) == no_accounts()


def test_accounts_that_do_not_fit_are_counted() -> None:
    many = tuple(an_account(connection_id=f"c{n}", scopes=("word " * 60,)) for n in range(100))
    card = card_in(connections_activity(many))
    listed = sum(element["type"] == "Container" for element in card["body"])
    assert f"{100 - listed} more" in said(card)
    assert listed > 10


def test_services_are_offered_below_the_accounts_and_those_that_do_not_fit_are_counted() -> None:
    accounts = tuple(an_account(connection_id=f"c{n}", scopes=("word " * 60,)) for n in range(100))
    services = tuple(a_service(f"s{n}", scopes=("word " * 60,)) for n in range(50))
    card = card_in(connections_activity(accounts, services))
    listed = json.dumps(card).count('"connect_dialog"')
    assert f"{50 - listed} more" in said(card)
    assert listed >= 5
    assert weight(card) <= LARGEST_CARD


def test_the_overview_has_the_accounts_too() -> None:
    card = card_in(overview_activity(OVERVIEW, (), (an_account(),)))
    assert "Your accounts" in said(card)
    assert "disconnect_dialog" in json.dumps(card)


def test_the_overview_leads_to_the_form_for_a_code() -> None:
    waiting = Shown(a_post(a_sign_in(service="GitHub", code_wanted=True)), None)
    card = card_in(overview_activity(Overview((), (waiting,), ())))
    [entry] = [element for element in card["body"] if element["type"] == "Container"]
    assert said(entry).splitlines()[0] == "Connect your GitHub account"
    assert buttons(entry["items"][-1]) == {"Enter code…": "code_dialog s1", "Get my link": "get_link s1"}


def test_an_account_is_ended_after_a_second_thought() -> None:
    card = disconnect_dialog(an_account()).card
    assert said(card).splitlines()[0] == "Disconnect GitHub: ana-alvarez?"
    assert buttons(card) == {"Disconnect": "disconnect c1", "Keep it": "close "}


# ------------------------------------------------------------------------------------------------ questions of tools


def test_a_question_of_a_tool_names_its_server_first_and_can_be_declined_and_cancelled() -> None:
    card = shown(a_question(server="issues", context=""))
    assert said(card).splitlines()[:2] == ["The tool server issues asks Ana", "Which room?"]
    assert buttons(card) == {
        "Answer": "answer q1",
        "Open as a form…": "answer_dialog q1",
        "Decline": "decline q1",
        "Cancel": "cancel q1",
    }
    assert card["fallbackText"].startswith("The tool server issues asks")


def test_a_question_of_a_tool_with_nothing_to_fill_in_is_accepted_with_a_button() -> None:
    card = shown(a_question(server="issues", fields=()))
    assert buttons(card) == {"Accept": "answer q1", "Decline": "decline q1", "Cancel": "cancel q1"}


@pytest.mark.parametrize("count", [1, 3, 9])
def test_a_plain_reply_is_offered_where_it_can_be_an_answer(count: int) -> None:
    fields = tuple(FormField(name=f"f{number}") for number in range(count))
    assert ("or reply here" in said(shown(a_question(server="issues", fields=fields)))) == (count == 1)


def test_a_question_of_the_model_cannot_be_declined() -> None:
    assert not {"decline q1", "cancel q1"} & set(buttons(shown(a_question())).values())


@pytest.mark.parametrize(
    ("status", "sentence"),
    [("declined", "Declined"), ("cancelled", "Canceled without an answer")],
)
def test_what_was_not_answered_says_so(status: str, sentence: str) -> None:
    card = shown(a_question(server="issues", status=status))
    assert said(card).endswith(sentence)
    assert buttons(card) == {}


def test_its_form_names_the_server_too() -> None:
    form = Form("Which label?", (FormField(name="label"),), {})
    card = answer_dialog("q1", form, server="issues").card
    assert said(card).splitlines()[:2] == ["From the tool server issues", "Which label?"]
    assert buttons(card) == {"Answer": "answer q1", "Decline": "decline q1", "Cancel": "cancel q1"}
    assert [action["associatedInputs"] for action in card["actions"]] == ["auto", "none", "none"]
    assert buttons(answer_dialog("q1", form).card) == {"Answer": "answer q1"}


def test_in_the_overview_a_question_of_a_tool_names_its_server() -> None:
    waiting = Shown(a_post(a_question(server="issues")), None)
    assert "issues asks: Which room?" in said(overview_activity(Overview((), (waiting,), ())))
