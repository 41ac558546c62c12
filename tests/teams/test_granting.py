"""Always allowing, asking somebody else, withdrawing and revoking in Teams."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import choose_one, choose_someone, settled_already
from adapters.teams.ids import person_id
from bot.domain import Choice, GrantView
from tests.fakes.teams.activities import card_action
from tests.fakes.teams.server import ANA, BEN, CHLOE, TENANT
from tests.support.teams_transports import Answer
from tests.support.views import NOW
from tests.teams.serving import Served, a_card, an_approval, serving
from tests.teams.test_dialogs import FETCH, SUBMIT, carries, closes, fetched, says

ANA_ID, BEN_ID = person_id(TENANT, ANA), person_id(TENANT, BEN)


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval(always_offered=True, requester_ids=(ANA_ID,))
        yield product


async def submitted(product: Served, name: str, user: str = ANA, **inputs: object) -> Answer:
    return await product.person(user).invokes(SUBMIT, carries(name, **inputs), product.teams.group)


@pytest.mark.parametrize(("choice", "seconds"), [("1 h", 3_600), ("8 h", 28_800), ("7 days", 604_800)])
async def test_always_allowing_approves_and_says_for_how_long(product: Served, choice: str, seconds: float) -> None:
    dialog = await fetched(product, "always_dialog")
    assert says(dialog, "Identical requests from you then run without asking.")
    assert closes(await product.person().submits(dialog, {"duration": choice}, name="always"))
    (decision,) = product.services.decisions
    assert decision.choices == (Choice("call-1.1", "approve", always_for=seconds),)


@pytest.mark.parametrize("duration", ["", "for ever", "1e9", 3_600])
async def test_no_other_duration_is_taken(product: Served, duration: object) -> None:
    assert says(await submitted(product, "always", duration=duration), "Choose a duration.")
    assert product.services.decisions == []


async def test_somebody_else_is_asked(product: Served) -> None:
    dialog = await fetched(product, "hand_over_dialog")
    answer = await product.person().submits(dialog, {"colleague": BEN.upper()}, name="hand_over")
    assert says(answer, "They are asked.")
    (handover,) = product.services.handovers
    assert (handover.person.person_id, handover.approval_id, handover.to) == (ANA_ID, "call-1.1", BEN_ID)


async def test_who_may_not_decide_cannot_be_asked(product: Served) -> None:
    product.services.may_decide["call-1.1"] = {ANA_ID}
    assert says(await submitted(product, "hand_over", colleague=BEN), "They may not decide this.")


@pytest.mark.parametrize("typed", ["ben@example.com", " Ben@Example.com "])
async def test_somebody_is_asked_by_their_address_where_there_is_no_picker(product: Served, typed: str) -> None:
    product.services.may_decide["call-1.1"] = {"ben@example.com", "Ben@Example.com"}
    assert says(await submitted(product, "hand_over", address=typed), "They are asked.")
    assert [handover.to for handover in product.services.handovers] == [typed.strip()]


async def test_somebody_is_asked_by_their_object_id_where_there_is_no_picker(product: Served) -> None:
    assert says(await submitted(product, "hand_over", address=BEN.upper()), "They are asked.")
    assert [handover.to for handover in product.services.handovers] == [BEN_ID]


async def test_whoever_is_asked_has_the_name_that_teams_gives_them(product: Served) -> None:
    await submitted(product, "hand_over", colleague=BEN)
    assert [handover.name for handover in product.services.handovers] == ["Ben Baker"]


async def test_whoever_is_not_in_the_conversation_has_the_name_that_graph_gives_them(product: Served) -> None:
    product.teams.world.conversations[product.teams.group].members.discard(BEN)
    await submitted(product, "hand_over", colleague=BEN)
    product.teams.world.graph_permissions.clear()
    product.teams.world.conversations[product.teams.group].members.discard(CHLOE)
    await submitted(product, "hand_over", colleague=CHLOE)
    assert [handover.name for handover in product.services.handovers] == ["Ben Baker", ""]


@pytest.mark.parametrize("here", [True, False])
async def test_a_guest_cannot_be_asked(product: Served, *, here: bool) -> None:
    product.teams.world.users[BEN].role = "guest"
    if not here:
        product.teams.world.conversations[product.teams.group].members.discard(BEN)
    assert says(await submitted(product, "hand_over", colleague=BEN), "not guests")
    assert product.services.handovers == []


@pytest.mark.parametrize("colleague", ["", "Ben", "../../users", None])
async def test_only_people_of_the_organisation_can_be_asked(product: Served, colleague: object) -> None:
    assert says(await submitted(product, "hand_over", colleague=colleague), choose_someone())
    assert product.services.handovers == []


async def test_what_was_typed_is_kept_beside_what_is_wrong_with_it(product: Served) -> None:
    answer = await submitted(product, "hand_over", address="Ben Baker")
    assert says(answer, choose_someone())
    assert says(answer, "'value': 'Ben Baker'")
    assert says(await submitted(product, "hand_over", colleague=BEN, address="ben@example.com"), choose_one())
    assert product.services.handovers == []


@pytest.mark.parametrize("fallback", [False, True])
async def test_a_forged_button_on_a_card_hands_nothing_over(product: Served, *, fallback: bool) -> None:
    card = await a_card(product, product.teams.group)
    data = {"countersign": "hand_over", "id": "call-1.1", "colleague": BEN}
    if fallback:
        await product.person().sends("message", product.teams.group, value=data, replyToId=card["id"])
    else:
        value = card_action({"type": "Action.Execute", "verb": "hand_over"}, data, "manual")
        await product.person().invokes("adaptiveCard/action", value, product.teams.group, card["id"])
    assert product.services.handovers == []


@pytest.mark.parametrize("name", ["always_dialog", "hand_over_dialog"])
async def test_what_is_settled_opens_no_form(product: Served, name: str) -> None:
    product.services.approvals["call-1.1"] = an_approval(status="approved")
    assert says(await fetched(product, name), settled_already())


async def test_the_requester_withdraws_where_everything_is_shown_and_nobody_else_can(product: Served) -> None:
    assert says(await fetched(product, "show_all", user=ANA), "Withdraw")
    assert not says(await fetched(product, "show_all", user=BEN), "Withdraw")
    assert says(await submitted(product, "take_back", BEN), "Only who asked for it")
    assert closes(await submitted(product, "take_back", ANA))
    assert product.services.approvals["call-1.1"].status == "withdrawn"


async def test_withdrawing_on_the_card_asks_once_more(product: Served) -> None:
    card = await a_card(product, product.teams.personal(ANA), requester_ids=(ANA_ID,))
    dialog = await product.person().opens(card, "withdraw_dialog")
    assert says(dialog, "This cancels the request.")
    assert product.services.approvals["call-1.1"].status == "pending"
    assert closes(await product.person().submits(dialog, {}, name="take_back"))
    assert product.services.approvals["call-1.1"].status == "withdrawn"


async def test_grants_are_listed_with_the_approvals_and_revoked_there(product: Served) -> None:
    given = GrantView("g1", "calendar", "create_event", {"name": "Standup"}, NOW, client="cursor")
    product.services.given["g1"] = (ANA_ID, given)
    await product.person().says(product.teams.personal(ANA), "approvals")
    await product.hears("Standing approvals")
    (listed,) = (message for message in product.chat(ANA) if "Standing approvals" in str(message))
    assert "Only through cursor" in str(listed)
    assert (await product.person().clicks(listed, "revoke", subject="g1")).status == 200
    assert product.services.given == {}


async def test_a_fetched_dialog_changes_nothing(product: Served) -> None:
    for name in ("take_back", "revoke", "always", "hand_over"):
        await product.person().invokes(FETCH, carries(name), product.teams.group)
    assert product.services.approvals["call-1.1"].status == "pending"
    assert product.services.handovers == product.services.decisions == []
