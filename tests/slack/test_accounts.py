"""Accounts in Slack: codes, connections, and the questions of tool servers, between the buttons and the services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.slack.actions import Origin
from adapters.slack.render.cards import sign_in_piece
from adapters.slack.render.forms import answer_modal, code_modal
from adapters.slack.render.home import connections_piece, home_view
from adapters.slack.render.posts import pieces
from bot.domain import ClarificationView, Content, Form, Overview, Person, Refused
from graph.interrupts import FieldType, FormField
from tests.fakes.slack.block_rules import view_mistakes
from tests.slack.serving import Served, serving
from tests.slack.shown import ANA, a_connection, a_post, a_tools_question, an_account_wanted
from tests.support.slack_transports import Json
from tests.support.views import a_service

ORIGIN = Origin("q1", "C1", "1700000000.000200", "1700000000.000100")
LINK = "https://bot.example.com/oauth/start?s=only-for-ana"


def shown(content: Content) -> Any:
    [piece] = pieces(a_post(content))
    return piece


def buttons(blocks: Any) -> dict[str, str]:
    """The words on the buttons → their action_id and value, or URL."""
    rows = [block["elements"] for block in blocks if block["type"] == "actions"]
    return {b["text"]["text"]: f"{b['action_id']} {b.get('value', b.get('url'))}" for row in rows for b in row}


async def a_code_wanted(product: Served, **changes: Any) -> Json:
    """The card of a sign-in of Ana's whose browser shows a code."""
    view = an_account_wanted(code_wanted=True, **changes)
    product.services.keep(view)
    product.services.links["s1"] = LINK
    return await product.card(view)


# ------------------------------------------------------------------------------------------------ cards of sign-ins


def test_the_card_names_the_service_and_for_which_server() -> None:
    piece = shown(an_account_wanted())
    assert piece.text == "Waiting for Ana to sign in to Google for calendar."
    assert buttons(piece.blocks) == {"Sign in": "get_link s1"}


def test_a_server_that_is_the_service_is_named_once() -> None:
    piece = shown(an_account_wanted(server="notes", service="notes"))
    assert piece.text == "Waiting for Ana to sign in to notes."


def test_a_card_that_waits_for_a_code_has_a_button_for_it() -> None:
    piece = shown(an_account_wanted(code_wanted=True))
    assert "enter the code from their browser" in piece.text
    assert buttons(piece.blocks) == {"Enter code…": "enter_code s1", "Sign in": "get_link s1"}


def test_nobody_says_that_they_have_signed_in_where_the_product_knows() -> None:
    piece = sign_in_piece(an_account_wanted(), LINK)
    assert buttons(piece.blocks) == {"Open sign-in page": f"open_link {LINK}", "Not now": "not_now s1"}
    assert "only-for-ana" not in piece.text
    assert "bot.example.com" in piece.text
    theirs = buttons(sign_in_piece(an_account_wanted(service=""), LINK).blocks)
    assert "I’ve signed in" in theirs


# ------------------------------------------------------------------------------------------------ codes


async def test_a_code_is_entered_in_a_form() -> None:
    async with serving() as product:
        ana = product.person()
        await ana.clicks(await a_code_wanted(product), "enter_code")
        submitted = await ana.submits(await product.modal(), {"code": " k7qm 3dzp"})
        assert "not the code" in str(submitted.errors)
        submitted = await ana.submits(await product.modal(), {"code": "K7QM-3DZP"})
        assert "is connected" in json.dumps(submitted.view)
        assert [(entry.sign_in_id, entry.person.person_id) for entry in product.services.codes] == [
            ("s1", "slack:T1:U1")
        ] * 2
        assert "K7QM" not in str(product.slack.messages("C1")) + str(product.told())


async def test_each_try_in_the_same_form_counts_and_the_same_try_delivered_twice_does_not() -> None:
    async with serving() as product:
        ana = product.person()
        await ana.clicks(await a_code_wanted(product), "enter_code")
        modal = await product.modal()
        first = await ana.submits(modal, {"code": "CCCC-CCCC"})
        await ana.submits_again(first)
        second = await ana.submits(modal, {"code": "CCCC-CCCD"})
        assert first.payload["view"]["hash"] == second.payload["view"]["hash"]
        keys = [entry.key for entry in product.services.codes]
        assert keys[0] == keys[1] != keys[2]
        assert "CCCC" not in str(keys)


async def test_nobody_else_gets_the_form_of_a_code() -> None:
    async with serving() as product:
        await product.person("U2").clicks(await a_code_wanted(product), "enter_code")
        await product.hears("Only the person signing in", "U2")
        assert product.slack.views("U2") == []


@pytest.mark.parametrize("changes", [{"code_wanted": False}, {"status": "done", "code_wanted": False}])
async def test_a_card_that_is_out_of_date_opens_no_form(changes: Any) -> None:
    async with serving() as product:
        card = await a_code_wanted(product)
        product.services.keep(an_account_wanted(**changes))
        await product.person().clicks(card, "enter_code")
        await product.hears("No code is needed here")


@pytest.mark.parametrize("text", ["K7QM-3DZP", "ask K7QM-3DZP", " `k7qm-3dzp` "])
async def test_a_code_after_the_command_is_taken_and_not_posted(text: str) -> None:
    async with serving() as product:
        await product.person().commands(text, "C1")
        await product.hears("is connected")
        assert [entry.code for entry in product.services.codes] == ["K7QM-3DZP"]
        assert product.slack.messages("C1") == []
        assert product.services.messages == []


async def test_a_code_in_the_form_of_the_shortcut_is_taken_and_not_posted() -> None:
    async with serving() as product:
        card = await a_code_wanted(product)
        before = len(product.slack.messages("C1"))
        await product.person().asks_about(card)
        submitted = await product.person().submits(await product.modal(), {"question": "K7QM-3DZP"})
        assert "is connected" in json.dumps(submitted.view)
        assert len(product.slack.messages("C1")) == before
        assert product.services.messages == []


async def test_a_message_that_is_a_code_is_quoted_to_nobody() -> None:
    async with serving() as product:
        ana, ben = product.person(), product.person("U2")
        said = await ana.says("C1", f"{ana.bot} K7QM-3DZP")
        await ben.asks_about(said.message)
        modal = await product.modal("U2")
        await ben.submits(modal, {"question": "what is this?"})
        await product.slack.until(lambda: len(product.services.messages) == 2)
        assert "K7QM" not in json.dumps(modal)
        assert "K7QM" not in product.services.messages[1].text
        assert "K7QM" not in str([m for m in product.slack.messages("C1") if m.get("bot_id")])


def test_the_form_of_a_code_names_the_service() -> None:
    assert "sign in to Google" in json.dumps(code_modal(an_account_wanted(), ORIGIN))


# ------------------------------------------------------------------------------------------------ connections


async def test_the_command_lists_my_accounts_with_a_button_that_asks_back() -> None:
    async with serving() as product:
        product.services.accounts = {"c1": ("slack:T1:U1", a_connection()), "c2": ("slack:T1:U2", a_connection())}
        await product.person().commands("connections", "C1")
        [listed] = product.slack.ephemerals("U1")
        assert "ana@example.com" in json.dumps(listed["blocks"])
        assert buttons(listed["blocks"]) == {"Disconnect": "disconnect c1"}
        assert "confirm" in listed["blocks"][-1]["elements"][0]
        await product.person().clicks(listed, "disconnect")
        await product.hears("Your account at Google is disconnected.")
        assert list(product.services.accounts) == ["c2"]
        await product.person().commands("connections", "C1")
        await product.hears("No connected accounts")


async def test_somebody_elses_account_is_not_disconnected() -> None:
    async with serving() as product:
        product.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        await product.person().commands("connections", "C1")
        [listed] = product.slack.ephemerals("U1")
        clicked = await product.person().clicks(listed, "disconnect")
        product.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        payload = {**clicked.payload, "user": {**clicked.payload["user"], "id": "U2"}}
        await product.transport.interaction(payload)
        await product.slack.until(
            lambda: "Only the person whose account this is" in str(product.slack.world.ephemerals)
        )
        assert "c1" in product.services.accounts


async def test_the_home_lists_them_and_is_made_anew_afterwards() -> None:
    async with serving() as product:
        product.services.accounts = {"c1": ("slack:T1:U1", a_connection())}
        ana = product.person()
        await ana.opens_home()
        home = await product.slack.until(lambda: product.slack.home("U1"))
        assert "Connected accounts" in json.dumps(home)
        await ana.clicks(home, "disconnect")
        assert "is disconnected" in json.dumps(await product.modal())
        await product.slack.until(lambda: "disconnect" not in json.dumps(product.slack.home("U1")))


async def test_a_button_of_the_home_gives_whoever_presses_it_a_link_of_their_own() -> None:
    async with serving() as product:
        product.services.offered = {"google": a_service("google", service="Google"), "github": a_service()}
        product.services.accounts = {"c1": ("slack:T1:U1", a_connection(provider="google"))}
        ana = product.person()
        await ana.opens_home()
        home = await product.slack.until(lambda: product.slack.home("U1"))
        assert "/oauth/start" not in json.dumps(home)
        assert "Connect Google" not in json.dumps(home)
        await ana.clicks(home, "connect")
        modal = await product.modal()
        assert f"{product.services.address}/oauth/start?s=github-of-slack:T1:U1" in json.dumps(modal["blocks"])
        assert "your GitHub account" in json.dumps(modal["blocks"])
        assert product.services.links_asked == [("slack:T1:U1", "github", "Ana")]
        await ana.clicks(modal, "open_link")
        assert product.told() == []


async def test_who_asks_for_too_many_links_is_told_so_there() -> None:
    async with serving() as product:
        product.services.offered = {"github": a_service()}
        product.services.too_many_links = Refused("You have asked for many links.")
        await product.person().opens_home()
        home = await product.slack.until(lambda: product.slack.home("U1"))
        await product.person().clicks(home, "connect")
        assert "You have asked for many links." in json.dumps(await product.modal())


def test_services_that_do_not_fit_on_the_home_are_counted() -> None:
    many = tuple(a_service(f"s{n}", service="Service " * 40) for n in range(200))
    view = home_view(Overview((), (), ()), lambda _: "", Person("slack:T1:U1", "Ana"), services=many)
    assert view_mistakes(view, surface="home") == []
    shown = json.dumps(view, ensure_ascii=False)
    assert f"{200 - shown.count('accessory')} more" in shown
    assert "You’re all caught up." in shown
    accounts = tuple(a_connection(f"c{n}") for n in range(200))
    full = home_view(Overview((), (), ()), lambda _: "", Person("slack:T1:U1", "Ana"), (), accounts, services=many)
    assert view_mistakes(full, surface="home") == []
    assert json.dumps(full).count("accessory") >= 5


def test_an_account_that_does_not_work_says_what_happens_next() -> None:
    piece = connections_piece((a_connection(status="revoked"),))
    assert "Access expired." in json.dumps(piece.blocks)


def test_more_accounts_than_a_message_holds_are_counted() -> None:
    piece = connections_piece(tuple(a_connection(connection_id=f"c{n}") for n in range(20)))
    assert "5 more" in json.dumps(piece.blocks, ensure_ascii=False)
    assert len(piece.blocks) <= 50


# ------------------------------------------------------------------------------------------------ questions of tools


def test_a_tools_question_says_who_asks_and_can_be_declined() -> None:
    piece = shown(a_tools_question())
    assert "Asked by cinema" in json.dumps(piece.blocks)
    assert piece.text == "Question for Ana from cinema: Which seat?"
    assert buttons(piece.blocks) == {"Answer…": "answer q1", "Decline": "decline q1", "Cancel": "cancel q1"}


def test_it_is_answered_by_a_reply_only_where_it_asks_for_one_thing() -> None:
    one = a_tools_question(fields=(FormField(name="seat"),))
    assert "or reply here" in json.dumps(shown(one).blocks)
    assert "reply" not in json.dumps(shown(a_tools_question()).blocks)


@pytest.mark.parametrize(("status", "word"), [("declined", "Declined"), ("cancelled", "Canceled")])
def test_a_question_that_got_no_answer_says_so(status: str, word: str) -> None:
    piece = shown(a_tools_question(status=status))
    assert buttons(piece.blocks) == {}
    assert word in json.dumps(piece.blocks)
    assert "Asked by cinema" in json.dumps(piece.blocks)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_cancelling_are_recorded_at_once(action: str) -> None:
    async with serving() as product:
        view = a_tools_question()
        product.services.keep(view)
        card = await product.card(view)
        await product.person("U2").clicks(card, action)
        await product.hears("for somebody else", "U2")
        clicked = await product.person().clicks(card, action)
        assert clicked.status == 200
        dismissal = product.services.dismissals[-1]
        assert (dismissal.clarification_id, dismissal.action) == ("q1", action)
        assert dismissal.person.person_id == "slack:T1:U1"


async def test_its_form_names_the_server_and_is_typed_by_its_fields() -> None:
    async with serving() as product:
        fields = (
            FormField(name="seats", type=FieldType.INTEGER),
            FormField(name="snacks", type=FieldType.JSON, options=("popcorn", "nachos"), default='["nachos"]'),
            FormField(name="films", type=FieldType.JSON, options=tuple(f"Film {n}" for n in range(12)), required=False),
        )
        view = ClarificationView("q1", "open", "What?", "", fields, "Ana", "slack:T1:U1", server="cinema")
        product.services.filled_in = {"snacks": '["nachos"]'}
        product.services.keep(view)
        await product.person().clicks(await product.card(view), "answer")
        modal = await product.modal()
        assert "cinema asks this" in json.dumps(modal)
        kinds = [block["element"]["type"] for block in modal["blocks"] if block["type"] == "input"]
        assert kinds == ["number_input", "checkboxes", "multi_static_select"]
        submitted = await product.person().submits(modal, {"seats": 2, "films": ["Film 3", "Film 11"]})
        assert submitted.view is None
        (answer,) = product.services.answers
        assert dict(answer.values) == {"seats": "2", "snacks": ["nachos"], "films": ["Film 3", "Film 11"]}


async def test_nothing_ticked_is_an_empty_list_or_no_answer() -> None:
    async with serving() as product:
        fields = tuple(
            FormField(name=name, type=FieldType.JSON, options=("a", "b"), required=name == "needed")
            for name in ("needed", "free")
        )
        view = a_tools_question(fields=fields)
        product.services.keep(view)
        await product.person().clicks(await product.card(view), "answer")
        await product.person().submits(await product.modal(), {})
        (answer,) = product.services.answers
        assert dict(answer.values) == {"needed": [], "free": None}


async def test_a_question_without_fields_is_accepted() -> None:
    async with serving() as product:
        view = a_tools_question(fields=())
        product.services.keep(view)
        assert "Accept…" in buttons(shown(view).blocks)
        await product.person().clicks(await product.card(view), "answer")
        modal = await product.modal()
        assert modal["submit"]["text"] == "Accept"
        assert (await product.person().submits(modal, {})).view is None
        assert dict(product.services.answers[0].values) == {}


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
