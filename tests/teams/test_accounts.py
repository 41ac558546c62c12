"""Accounts and the questions of tools in Teams: codes, connections, and a no that is an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from adapters.shared.clicks import not_known, settled_already, went_wrong
from adapters.teams.inbound.activities import CODE
from adapters.teams.inbound.clicks import needs_a_window
from adapters.teams.inbound.dialogs import not_connected, not_yours
from adapters.teams.inbound.messages import open_a_chat
from bot.domain import Refused
from tests.fakes.teams.server import ANA, BEN, GUS
from tests.support.teams_transports import Answer, Json
from tests.support.views import a_service, an_account
from tests.teams.serving import ANA_ID, Served, a_question, a_sign_in, serving, text_in

FETCH, SUBMIT = "task/fetch", "task/submit"
RIGHT, WRONG = "K7QM-3DZP", "CCCC-CCCC"


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        product.services.accounts["c1"] = (ANA_ID, an_account())
        yield product


def carries(name: str, subject: str, **inputs: object) -> Json:
    return {"data": {"countersign": name, "id": subject, **inputs}, "context": {"theme": "default"}}


async def fetched(product: Served, name: str, subject: str, user: str = ANA) -> str:
    answer = await product.person(user).invokes(FETCH, carries(name, subject), product.teams.group)
    assert answer.status == 200
    return json.dumps(answer.card, ensure_ascii=False)


async def submitted(product: Served, name: str, subject: str, user: str = ANA, **inputs: object) -> Answer:
    answer = await product.person(user).invokes(SUBMIT, carries(name, subject, **inputs), product.teams.group)
    assert answer.status == 200
    return answer


async def sign_in(product: Served, conversation: str = "") -> Json:
    view = a_sign_in(service="GitHub", code_wanted=True)
    return await product.card(view, conversation or product.teams.group)


# ------------------------------------------------------------------------------------------------ codes


async def test_a_code_is_entered_where_the_card_asks_for_it(product: Served) -> None:
    card = await sign_in(product)
    dialog = await product.person().opens(card, "code_dialog")
    answer = await product.person().submits(dialog, {"code": RIGHT}, name="enter_code")
    assert "Thank you, your account is connected." in str(answer.card)
    [entry] = product.services.codes
    assert (entry.code, entry.sign_in_id, entry.person.person_id) == (RIGHT, "s1", ANA_ID)


async def test_a_wrong_code_is_said_in_its_form_and_never_shown_again(product: Served) -> None:
    card = await sign_in(product)
    dialog = await product.person().opens(card, "code_dialog")
    with capture_logs() as logs:
        again = await product.person().submits(dialog, {"code": WRONG}, name="enter_code")
    assert "That is not the code that your browser shows." in str(again.card)
    assert WRONG not in json.dumps(again.json)
    assert WRONG not in str(logs)
    right = await product.person().submits(again, {"code": RIGHT}, name="enter_code")
    assert "connected" in str(right.card)
    assert len({entry.key for entry in product.services.codes}) == 2


async def test_a_code_that_teams_sends_twice_is_one(product: Served) -> None:
    dialog = await product.person().opens(await sign_in(product), "code_dialog")
    first = await product.person().submits(dialog, {"code": WRONG}, name="enter_code")
    await product.person().again(first)
    assert len({entry.key for entry in product.services.codes}) == 1


async def test_the_form_for_a_code_opens_for_its_owner_alone(product: Served) -> None:
    await sign_in(product)
    assert not_yours() in await fetched(product, "code_dialog", "s1", BEN)
    assert "Guests can’t use me" in await fetched(product, "code_dialog", "s1", GUS)
    answer = await submitted(product, "enter_code", "s1", BEN, code=RIGHT)
    assert "This sign-in is for somebody else only." in str(answer.card)
    assert product.services.sign_ins["s1"].status == "open"


async def test_the_form_of_a_settled_sign_in_is_not_opened(product: Served) -> None:
    await sign_in(product)
    product.services.sign_ins["s1"] = a_sign_in(service="GitHub", status="done")
    assert settled_already() in await fetched(product, "code_dialog", "s1")
    assert not_known().text in await fetched(product, "code_dialog", "s9")


async def test_a_client_without_dialogs_is_told_so(product: Served) -> None:
    await sign_in(product)
    value = {"countersign": "code_dialog", "id": "s1"}
    assert (await product.person().sends("message", product.teams.group, value=value)).status in {200, 201, 202}
    await product.hears(needs_a_window())


@pytest.mark.parametrize("code", [RIGHT, "k7qm – 3dzp", f"**{RIGHT}**."])
@pytest.mark.parametrize("place", ["personal", "group"])
async def test_a_quoted_code_is_kept_nowhere(product: Served, place: str, code: str) -> None:
    where = product.teams.personal(ANA) if place == "personal" else product.teams.group
    first = await product.person().says(where, code)
    await product.person().says(where, "what was that?", quoting=first.id)
    quoting = product.services.messages[-1]
    assert [quote["text"] for quote in quoting.origin["quotes"]] == [CODE]
    assert "3dzp" not in str(quoting).lower()


@pytest.mark.parametrize("words", ["the room is BLUE-ROOM", "it is about K7QM-3DZP " + "and more " * 12, "K7QM 3DZP?!"])
async def test_other_words_are_quoted_as_they_are(product: Served, words: str) -> None:
    first = await product.person().says(product.teams.personal(ANA), words)
    await product.person().says(product.teams.personal(ANA), "what was that?", quoting=first.id)
    assert [quote["text"] for quote in product.services.messages[-1].origin["quotes"]] == [words.strip()]


# ------------------------------------------------------------------------------------------------ connections


async def test_connections_are_listed_for_the_asker_alone(product: Served) -> None:
    thread = await product.thread()
    before = len(product.teams.posts(thread))
    await product.person().says(thread, "connections")
    assert "ana-alvarez" in await product.hears("GitHub")
    new = product.teams.posts(thread)[before:]
    assert {message["only_for"] for message in new} == {product.teams.address(ANA)}
    await product.person(BEN).says(thread, "Connections")
    await product.hears("No connected accounts.", BEN)
    assert [m for m in product.services.messages if "onnections" in m.text] == []


async def test_connections_are_not_listed_where_others_would_read_them(product: Served) -> None:
    product.teams.targeted = False
    product.teams.world.users[ANA].has_app = False
    thread = await product.thread()
    await product.person().says(thread, "connections")
    await product.teams.until(lambda: open_a_chat() in [text_in(m) for m in product.teams.posts(thread)])
    assert "GitHub" not in str(product.teams.posts(thread))


async def test_the_overview_has_them_too(product: Served) -> None:
    await product.person().says(product.teams.personal(ANA), "approvals")
    assert "ana-alvarez" in await product.hears("Your accounts")


@pytest.mark.parametrize("command", ["connections", "approvals"])
async def test_an_account_is_connected_from_the_list(product: Served, command: str) -> None:
    product.services.offered = {"github": a_service(), "notes": a_service("notes", service="Notes")}
    product.services.accounts["c1"] = (ANA_ID, an_account(provider="github"))
    await product.person().says(product.teams.personal(ANA), command)
    await product.hears("Connect an account")
    listed = product.chat()[-1]
    assert "Connect GitHub" not in json.dumps(listed)
    assert "/oauth/start" not in json.dumps(listed)
    dialog = await product.person().opens(listed, "connect_dialog")
    assert f"{product.services.address}/oauth/start?s=notes-of-{ANA_ID}" in json.dumps(dialog.card)
    assert [(who, what) for who, what, _ in product.services.links_asked] == [(ANA_ID, "notes")]
    assert "/oauth/start" not in json.dumps(product.chat())


async def test_who_gets_no_link_is_told_why(product: Served) -> None:
    product.services.offered = {"github": a_service()}
    assert "cannot be connected there" in await fetched(product, "connect_dialog", "nonsense")
    product.services.too_many_links = Refused("You have asked for many links.")
    assert "You have asked for many links." in await fetched(product, "connect_dialog", "github")


async def test_an_account_is_disconnected_after_a_second_thought(product: Served) -> None:
    await product.person().says(product.teams.personal(ANA), "connections")
    await product.hears("GitHub")
    listed = product.chat()[-1]
    dialog = await product.person().opens(listed, "disconnect_dialog")
    assert "Disconnect GitHub: ana-alvarez?" in str(dialog.card)
    assert product.services.accounts != {}
    answer = await product.person().submits(dialog, name="disconnect")
    assert "Your account at GitHub is disconnected." in str(answer.card)
    assert product.services.accounts == {}
    assert not_connected() in await fetched(product, "disconnect_dialog", "c1")


async def test_nobody_disconnects_somebody_elses_account(product: Served) -> None:
    shown = await fetched(product, "disconnect_dialog", "c1", BEN)
    assert not_connected() in shown
    assert "ana-alvarez" not in shown
    answer = await submitted(product, "disconnect", "c1", BEN)
    assert "Only the person whose account this is" in str(answer.card)
    assert product.services.accounts != {}


async def test_records_that_fail_are_said(product: Served) -> None:
    product.services.unreadable = RuntimeError("the disk is full")
    assert went_wrong() in await fetched(product, "disconnect_dialog", "c1")
    await product.person().says(product.teams.personal(ANA), "connections")
    await product.hears(went_wrong())


# ------------------------------------------------------------------------------------------------ questions of tools


@pytest.mark.parametrize(
    ("name", "action", "sentence"),
    [("decline", "decline", "Declined"), ("cancel", "cancel", "Canceled without an answer")],
)
async def test_a_question_of_a_tool_is_dismissed_on_its_card(
    product: Served, name: str, action: str, sentence: str
) -> None:
    card = await product.card(a_question(server="issues"), product.teams.group)
    answer = await product.person().clicks(card, name)
    [dismissal] = product.services.dismissals
    assert (dismissal.action, dismissal.clarification_id, dismissal.person.person_id) == (action, "q1", ANA_ID)
    assert sentence in str(answer.card)


async def test_it_is_dismissed_in_its_form_whatever_is_filled_in(product: Served) -> None:
    card = await product.card(a_question(server="issues"), product.teams.group)
    dialog = await product.person().opens(card, "answer_dialog")
    assert "From the tool server issues" in str(dialog.card)
    answer = await product.person().submits(dialog, name="decline")
    assert not answer.json
    assert product.services.questions["q1"].status == "declined"


async def test_a_mistake_in_its_form_keeps_what_was_typed_and_the_server_s_name(product: Served) -> None:
    card = await product.card(a_question(server="issues"), product.teams.group)
    dialog = await product.person().opens(card, "answer_dialog")
    product.services.mistakes = {"name": "Taken."}
    again = await product.person().submits(dialog, {"name": "Retro"}, name="answer")
    for words in ("Taken.", "Retro", "From the tool server issues", "'decline'"):
        assert words in str(again.card)


async def test_with_nothing_to_fill_in_it_is_accepted(product: Served) -> None:
    card = await product.card(a_question(server="issues", fields=()), product.teams.group)
    await product.person().clicks(card, "answer")
    [answer] = product.services.answers
    assert answer.values == {}
    assert product.services.questions["q1"].status == "answered"


async def test_nobody_else_dismisses_it(product: Served) -> None:
    card = await product.card(a_question(server="issues"), product.teams.group)
    answer = await product.person(BEN).clicks(card, "decline")
    assert answer.message == "This question is for somebody else."
    assert product.services.questions["q1"].status == "open"


async def test_it_is_dismissed_by_an_old_client_too(product: Served) -> None:
    card = await product.card(a_question(server="issues"), product.teams.group)
    await product.person().clicks(card, "cancel", fallback=True)
    assert product.services.questions["q1"].status == "cancelled"
