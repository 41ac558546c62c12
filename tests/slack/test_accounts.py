"""Accounts in Slack: codes, connections, and the questions of tool servers, between the buttons and the services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.slack.actions import Origin
from adapters.slack.render.cards import sign_in_piece
from adapters.slack.render.forms import answer_modal, code_modal
from adapters.slack.render.home import connections_piece
from adapters.slack.render.posts import pieces
from bot.domain import ClarificationView, Content, Form
from graph.interrupts import FieldType, FormField
from tests.slack.serving import Served, serving
from tests.slack.shown import ANA, a_connection, a_post, a_tools_question, an_account_wanted
from tests.support.slack_doors import Json

ORIGIN = Origin("q1", "C1", "1700000000.000200", "1700000000.000100")
LINK = "https://bot.example.com/oauth/start?s=only-for-ana"


def shown(content: Content) -> Any:
    [piece] = pieces(a_post(content))
    return piece


def buttons(blocks: Any) -> dict[str, str]:
    """The words on the buttons → their action_id and value, or URL."""
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return {b["text"]["text"]: f"{b['action_id']} {b.get('value', b.get('url'))}" for row in rows for b in row}


async def a_code_wanted(house: Served, **changes: Any) -> Json:
    """The card of a sign-in of Ana's whose browser shows a code."""
    view = an_account_wanted(code_wanted=True, **changes)
    house.services.sign_ins["s1"] = (view, LINK)
    return await house.card(view)


# ------------------------------------------------------------------------------------------------ cards of sign-ins


def test_the_card_names_the_service_and_for_which_server() -> None:
    piece = shown(an_account_wanted())
    assert piece.text == "Waiting for Ana to sign in at Google, for the tool server calendar."
    assert buttons(piece.blocks) == {"Get my link": "get_link s1"}


def test_a_server_that_is_the_service_is_named_once() -> None:
    piece = shown(an_account_wanted(server="notes", service="notes"))
    assert piece.text == "Waiting for Ana to sign in at notes."


def test_a_card_that_waits_for_a_code_has_a_button_for_it() -> None:
    piece = shown(an_account_wanted(code_wanted=True))
    assert "tell me the code that their browser shows" in piece.text
    assert buttons(piece.blocks) == {"Enter code…": "enter_code s1", "Get my link": "get_link s1"}


def test_nobody_says_that_they_have_signed_in_where_the_house_knows() -> None:
    piece = sign_in_piece(an_account_wanted(), LINK)
    assert buttons(piece.blocks) == {"Open the sign-in page": f"open_link {LINK}", "Not now": "not_now s1"}
    assert "only-for-ana" not in piece.text
    assert "bot.example.com" in piece.text
    theirs = buttons(sign_in_piece(an_account_wanted(service=""), LINK).blocks)
    assert "I have signed in" in theirs


# ------------------------------------------------------------------------------------------------ codes


async def test_a_code_is_entered_in_a_form() -> None:
    async with serving() as house:
        ana = house.person()
        await ana.clicks(await a_code_wanted(house), "enter_code")
        submitted = await ana.submits(await house.modal(), {"code": " k7qm 3dzp"})
        assert "not the code" in str(submitted.errors)
        submitted = await ana.submits(await house.modal(), {"code": "K7QM-3DZP"})
        assert "is connected" in json.dumps(submitted.view)
        assert [(entry.sign_in_id, entry.person.person_id) for entry in house.services.codes] == [
            ("s1", "slack:T1:U1")
        ] * 2
        assert "K7QM" not in str(house.slack.messages("C1")) + str(house.told())


async def test_each_try_in_the_same_form_counts_and_the_same_try_delivered_twice_does_not() -> None:
    async with serving() as house:
        ana = house.person()
        await ana.clicks(await a_code_wanted(house), "enter_code")
        modal = await house.modal()
        first = await ana.submits(modal, {"code": "CCCC-CCCC"})
        await ana.submits_again(first)
        second = await ana.submits(modal, {"code": "CCCC-CCCD"})
        assert first.payload["view"]["hash"] == second.payload["view"]["hash"]
        keys = [entry.key for entry in house.services.codes]
        assert keys[0] == keys[1] != keys[2]
        assert "CCCC" not in str(keys)


async def test_nobody_else_gets_the_form_of_a_code() -> None:
    async with serving() as house:
        await house.person("U2").clicks(await a_code_wanted(house), "enter_code")
        await house.hears("Only the person whose sign-in this is", "U2")
        assert house.slack.views("U2") == []


@pytest.mark.parametrize("changes", [{"code_wanted": False}, {"status": "done", "code_wanted": False}])
async def test_a_card_that_is_out_of_date_opens_no_form(changes: Any) -> None:
    async with serving() as house:
        card = await a_code_wanted(house)
        house.services.sign_ins["s1"] = (an_account_wanted(**changes), LINK)
        await house.person().clicks(card, "enter_code")
        await house.hears("No code is waited for here")


@pytest.mark.parametrize("text", ["K7QM-3DZP", "ask K7QM-3DZP", " `k7qm-3dzp` "])
async def test_a_code_after_the_command_is_taken_and_not_posted(text: str) -> None:
    async with serving() as house:
        await house.person().commands(text, "C1")
        await house.hears("is connected")
        assert [entry.code for entry in house.services.codes] == ["K7QM-3DZP"]
        assert house.slack.messages("C1") == []
        assert house.services.messages == []


async def test_a_code_in_the_form_of_the_shortcut_is_taken_and_not_posted() -> None:
    async with serving() as house:
        card = await a_code_wanted(house)
        before = len(house.slack.messages("C1"))
        await house.person().asks_about(card)
        submitted = await house.person().submits(await house.modal(), {"question": "K7QM-3DZP"})
        assert "is connected" in json.dumps(submitted.view)
        assert len(house.slack.messages("C1")) == before
        assert house.services.messages == []


async def test_a_message_that_is_a_code_is_quoted_to_nobody() -> None:
    async with serving() as house:
        ana, ben = house.person(), house.person("U2")
        said = await ana.says("C1", f"{ana.bot} K7QM-3DZP")
        await ben.asks_about(said.message)
        modal = await house.modal("U2")
        await ben.submits(modal, {"question": "what is this?"})
        await house.slack.until(lambda: len(house.services.messages) == 2)
        assert "K7QM" not in json.dumps(modal)
        assert "K7QM" not in house.services.messages[1].text
        assert "K7QM" not in str([m for m in house.slack.messages("C1") if m.get("bot_id")])


def test_the_form_of_a_code_names_the_service() -> None:
    assert "signed in at Google." in json.dumps(code_modal(an_account_wanted(), ORIGIN))


# ------------------------------------------------------------------------------------------------ connections


async def test_the_command_lists_my_accounts_with_a_button_that_asks_back() -> None:
    async with serving() as house:
        house.services.accounts = {"c1": ("slack:T1:U1", a_connection()), "c2": ("slack:T1:U2", a_connection())}
        await house.person().commands("connections", "C1")
        [listed] = house.slack.ephemerals("U1")
        assert "ana@example.com" in json.dumps(listed["blocks"])
        assert buttons(listed["blocks"]) == {"Disconnect": "disconnect c1"}
        assert "confirm" in listed["blocks"][-1]["elements"][0]
        await house.person().clicks(listed, "disconnect")
        await house.hears("Your account at Google is disconnected.")
        assert list(house.services.accounts) == ["c2"]
        await house.person().commands("connections", "C1")
        await house.hears("No account of yours is connected")


async def test_somebody_elses_account_is_not_disconnected() -> None:
    async with serving() as house:
        house.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        await house.person().commands("connections", "C1")
        [listed] = house.slack.ephemerals("U1")
        clicked = await house.person().clicks(listed, "disconnect")
        house.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        payload = {**clicked.payload, "user": {**clicked.payload["user"], "id": "U2"}}
        await house.door.interaction(payload)
        await house.slack.until(lambda: "Only the person whose account this is" in str(house.slack.world.ephemerals))
        assert "c1" in house.services.accounts


async def test_the_home_lists_them_and_is_made_anew_afterwards() -> None:
    async with serving() as house:
        house.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        ana = house.person()
        await ana.opens_home()
        home = await house.slack.until(lambda: house.slack.home("U1"))
        assert "Your connected accounts" in json.dumps(home)
        await ana.clicks(home, "disconnect")
        assert "is disconnected" in json.dumps(await house.modal())
        await house.slack.until(lambda: "disconnect" not in json.dumps(house.slack.home("U1")))


def test_an_account_that_does_not_work_says_what_happens_next() -> None:
    piece = connections_piece((a_connection(working=False),))
    assert "the next call asks you to sign in again" in json.dumps(piece.blocks)


def test_more_accounts_than_a_message_holds_are_counted() -> None:
    piece = connections_piece(tuple(a_connection(connection_id=f"c{n}") for n in range(20)))
    assert "… and 5 more" in json.dumps(piece.blocks, ensure_ascii=False)
    assert len(piece.blocks) <= 50


# ------------------------------------------------------------------------------------------------ questions of tools


def test_a_tools_question_says_who_asks_and_can_be_declined() -> None:
    piece = shown(a_tools_question())
    assert "From the tool server cinema" in json.dumps(piece.blocks)
    assert piece.text == "A question for Ana from the tool server cinema: Which seat?"
    assert buttons(piece.blocks) == {"Answer…": "answer q1", "Decline": "decline q1", "Cancel": "cancel q1"}


def test_it_is_answered_by_a_reply_only_where_it_asks_for_one_thing() -> None:
    one = a_tools_question(fields=(FormField(name="seat"),))
    assert "simply reply here" in json.dumps(shown(one).blocks)
    assert "reply" not in json.dumps(shown(a_tools_question()).blocks)


@pytest.mark.parametrize(("status", "word"), [("declined", "Declined"), ("cancelled", "Cancelled")])
def test_a_question_that_got_no_answer_says_so(status: str, word: str) -> None:
    piece = shown(a_tools_question(status=status))
    assert buttons(piece.blocks) == {}
    assert word in json.dumps(piece.blocks)
    assert "tool server cinema" in json.dumps(piece.blocks)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_cancelling_are_recorded_at_once(action: str) -> None:
    async with serving() as house:
        view = a_tools_question()
        house.services.questions["q1"] = ("slack:T1:U1", Form(view.question, view.fields, {}))
        card = await house.card(view)
        await house.person("U2").clicks(card, action)
        await house.hears("for somebody else", "U2")
        clicked = await house.person().clicks(card, action)
        assert clicked.status == 200
        dismissal = house.services.dismissals[-1]
        assert (dismissal.clarification_id, dismissal.action) == ("q1", action)
        assert dismissal.person.person_id == "slack:T1:U1"


async def test_its_form_names_the_server_and_is_typed_by_its_fields() -> None:
    async with serving() as house:
        fields = (
            FormField(name="seats", type=FieldType.INTEGER),
            FormField(name="snacks", type=FieldType.JSON, options=("popcorn", "nachos"), default='["nachos"]'),
            FormField(name="films", type=FieldType.JSON, options=tuple(f"Film {n}" for n in range(12)), required=False),
        )
        view = ClarificationView("q1", "open", "What?", "", fields, "Ana", "slack:T1:U1", server="cinema")
        house.services.questions["q1"] = ("slack:T1:U1", Form("What?", fields, {"snacks": '["nachos"]'}))
        house.services.cards["q1"] = view
        await house.person().clicks(await house.card(view), "answer")
        modal = await house.modal()
        assert "The tool server cinema asks" in json.dumps(modal)
        kinds = [block["element"]["type"] for block in modal["blocks"] if block["type"] == "input"]
        assert kinds == ["number_input", "checkboxes", "multi_static_select"]
        submitted = await house.person().submits(modal, {"seats": 2, "films": ["Film 3", "Film 11"]})
        assert submitted.view is None
        (answer,) = house.services.answers
        assert dict(answer.values) == {"seats": "2", "snacks": ["nachos"], "films": ["Film 3", "Film 11"]}


async def test_nothing_ticked_is_an_empty_list_or_no_answer() -> None:
    async with serving() as house:
        fields = tuple(
            FormField(name=name, type=FieldType.JSON, options=("a", "b"), required=name == "needed")
            for name in ("needed", "free")
        )
        view = a_tools_question(fields=fields)
        house.services.questions["q1"] = ("slack:T1:U1", Form("What?", fields, {}))
        await house.person().clicks(await house.card(view), "answer")
        await house.person().submits(await house.modal(), {})
        (answer,) = house.services.answers
        assert dict(answer.values) == {"needed": [], "free": None}


async def test_a_question_without_fields_is_accepted() -> None:
    async with serving() as house:
        view = a_tools_question(fields=())
        house.services.questions["q1"] = ("slack:T1:U1", Form("Book it?", (), {}))
        house.services.cards["q1"] = view
        assert "Accept…" in buttons(shown(view).blocks)
        await house.person().clicks(await house.card(view), "answer")
        modal = await house.modal()
        assert modal["submit"]["text"] == "Accept"
        assert (await house.person().submits(modal, {})).view is None
        assert dict(house.services.answers[0].values) == {}


@pytest.mark.parametrize("value", ['["b", "a"]', '["c"]', '{"a": 1}', "not json", '["a", "a"]'])
def test_a_list_that_ticking_would_change_is_text(value: str) -> None:
    field = FormField(name="x", type=FieldType.JSON, options=("a", "b"))
    view = answer_modal(Form("What?", (field,), {"x": value}), ORIGIN, ANA)
    [element] = [block["element"] for block in view["blocks"] if block["type"] == "input"]
    assert (element["type"], element["initial_value"]) == ("plain_text_input", value)


def test_the_models_own_questions_look_as_before() -> None:
    view = a_tools_question(server="")
    assert buttons(shown(view).blocks) == {"Answer…": "answer q1"}
    assert "tool server" not in json.dumps(shown(view).blocks)
