"""Always allowing, asking somebody else, withdrawing and revoking in Slack."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.shared.clicks import choose_one, choose_someone
from adapters.slack.inbound.answers import no_colleague
from adapters.slack.inbound.payloads import read_click
from adapters.slack.render.blocks import button
from bot.domain import Choice, GrantView
from tests.slack.serving import Served, a_card, serving
from tests.slack.shown import an_approval
from tests.support.views import NOW


async def opened(product: Served, button: str, user: str = "U1", **changes: Any) -> dict[str, Any]:
    await product.person(user).clicks(await a_card(product, always_offered=True, **changes), button)
    return await product.modal(user)


@pytest.mark.parametrize(("choice", "seconds"), [("1 h", 3_600), ("8 h", 28_800), ("7 days", 604_800)])
async def test_always_allowing_approves_and_says_for_how_long(choice: str, seconds: float) -> None:
    async with serving() as product:
        answer = await product.person().submits(await opened(product, "always"), {"duration": choice})
        assert answer.status == 200
        (decision,) = product.services.decisions
        assert decision.choices == (Choice("call-1.1", "approve", always_for=seconds),)


async def test_the_form_says_exactly_what_is_allowed() -> None:
    async with serving() as product:
        modal = await opened(product, "always")
        for words in ("create_event", "Team Meeting", "Identical requests from you", "Revoke it anytime"):
            assert words in str(modal["blocks"])
        assert product.services.decisions == []


async def test_somebody_else_is_asked() -> None:
    async with serving() as product:
        modal = await opened(product, "hand_over", approvers=("any",))
        answer = await product.person().submits(modal, {"colleague": "U2"})
        assert "They are asked." in str(answer.json)
        (handover,) = product.services.handovers
        assert (handover.person.person_id, handover.approval_id, handover.to) == (
            "slack:T1:U1",
            "call-1.1",
            "slack:T1:U2",
        )


async def test_whoever_is_asked_has_the_name_that_slack_gives_them() -> None:
    async with serving() as product:
        await product.person().submits(await opened(product, "hand_over", approvers=("any",)), {"colleague": "U2"})
        product.slack.fail("users.info", error="internal_error", times=9)
        await product.person().submits(await opened(product, "hand_over", approvers=("any",)), {"colleague": "U3"})
        assert [handover.name for handover in product.services.handovers] == ["Ben", ""]


@pytest.mark.parametrize("facts", [{"is_restricted": True}, {"is_stranger": True}, {"is_bot": True}])
async def test_only_members_of_the_workspace_can_be_asked(facts: dict[str, bool]) -> None:
    async with serving() as product:
        product.slack.add_user("U9", name="Gus", **facts)
        answer = await product.person().submits(
            await opened(product, "hand_over", approvers=("any",)), {"colleague": "U9"}
        )
        assert answer.json["errors"] == {"input:colleague": no_colleague()}
        assert product.services.handovers == []


async def test_somebody_is_asked_by_their_address() -> None:
    async with serving() as product:
        product.services.may_decide["call-1.1"] = {"cara@example.com"}
        modal = await opened(product, "hand_over", approvers=("any",))
        answer = await product.person().submits(modal, {"address": "zoe@example.com"})
        assert answer.json["errors"] == {"input:address": "They may not decide this."}
        answer = await product.person().submits(modal, {"address": "cara@example.com"})
        assert "They are asked." in str(answer.json)
        assert [handover.to for handover in product.services.handovers] == ["zoe@example.com", "cara@example.com"]


@pytest.mark.parametrize(
    ("values", "said"),
    [({}, choose_someone()), ({"colleague": "U2", "address": "ben@example.com"}, choose_one())],
)
async def test_exactly_one_person_is_named(values: dict[str, str], said: str) -> None:
    async with serving() as product:
        answer = await product.person().submits(await opened(product, "hand_over", approvers=("any",)), values)
        assert answer.json["errors"] == {"input:colleague": said}
        assert product.services.handovers == []


async def test_who_may_not_decide_cannot_be_asked_and_the_form_says_so() -> None:
    async with serving() as product:
        modal = await opened(product, "hand_over", approvers=("any",))
        product.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        answer = await product.person().submits(modal, {"colleague": "U2"})
        assert answer.json["errors"] == {"input:colleague": "They may not decide this."}


async def test_where_the_rule_names_everybody_only_those_who_may_can_be_chosen() -> None:
    async with serving() as product:
        product.services.may_decide["call-1.1"] = {"slack:T1:U1", "slack:T1:U2"}
        modal = await opened(product, "hand_over", approvers=("requester", "slack:T1:U2", "slack:T1:U3"))
        (menu,) = [block["element"] for block in modal["blocks"] if block["type"] == "input"]
        assert [(o["text"]["text"], o["value"]) for o in menu["options"]] == [("T1:u2", "slack:T1:U2")]
        answer = await product.person().submits(modal, {"colleague": "slack:T1:U2"})
        assert "They are asked." in str(answer.json)
        (handover,) = product.services.handovers
        assert (handover.to, handover.name) == ("slack:T1:U2", "Ben")


async def test_where_nobody_else_may_that_is_said() -> None:
    async with serving() as product:
        modal = await opened(product, "hand_over", approvers=("slack:T1:U1",))
        assert "No one else here can approve this." in str(modal["blocks"])
        assert not modal.get("submit")


@pytest.mark.parametrize("button", ["always", "hand_over"])
async def test_what_is_settled_opens_no_form(button: str) -> None:
    async with serving() as product:
        card = await a_card(product, always_offered=True)
        product.services.approvals["call-1.1"] = an_approval(status="approved")
        await product.person().clicks(card, button)
        await product.hears("Already settled")
        assert product.slack.views("U1") == []


async def test_the_requester_withdraws_and_nobody_else_can() -> None:
    async with serving() as product:
        card = await a_card(product)
        product.services.approvals["call-1.1"] = an_approval(requester_ids=("slack:T1:U2",))
        await product.person("U1").clicks(card, "ask_to_withdraw")
        answer = await product.person("U1").submits(await product.modal("U1"))
        assert "Only who asked for it" in str(answer.json)
        await product.person("U2").clicks(card, "ask_to_withdraw")
        modal = await product.modal("U2")
        assert "This cancels the request." in str(modal["blocks"])
        assert product.services.approvals["call-1.1"].status == "pending"
        await product.person("U2").submits(modal)
        assert product.services.approvals["call-1.1"].status == "withdrawn"


async def test_a_card_that_was_posted_before_there_was_a_menu_still_works() -> None:
    async with serving() as product:
        card = await a_card(product)
        row = {"type": "actions", "block_id": "old", "elements": [button("Withdraw", "take_back", "call-1.1")]}
        product.services.approvals["call-1.1"] = an_approval(requester_ids=("slack:T1:U1",))
        await product.person("U1").clicks({**card, "blocks": [row]}, "take_back")
        assert product.services.approvals["call-1.1"].status == "withdrawn"


async def test_what_is_chosen_in_the_menu_has_the_key_of_a_click() -> None:
    async with serving() as product:
        clicked = await product.person().clicks(await a_card(product), "show_all")
        click = read_click(clicked.payload, "T1")
        assert click is not None
        at = clicked.payload["actions"][0]["action_ts"]
        assert (click.action, click.value) == ("show_all", "call-1.1")
        assert click.key == f"slack:T1:{clicked.payload['message']['ts']}:{at}:U1"


async def test_grants_are_listed_at_home_and_revoked_there() -> None:
    async with serving() as product:
        grant = GrantView("g1", "calendar", "create_event", {"name": "Standup"}, NOW, client="cursor")
        product.services.given["g1"] = ("slack:T1:U1", grant)
        await product.person().opens_home()
        home = await product.slack.until(lambda: product.slack.home("U1"))
        assert "Standing approvals" in str(home["blocks"]) and "Only through cursor" in str(home["blocks"])
        await product.person().clicks(home, "revoke")
        await product.slack.until(lambda: "Standing approvals" not in str((product.slack.home("U1") or {})["blocks"]))
        assert product.services.given == {}


async def test_a_grant_is_shown_and_revoked_by_its_giver_alone() -> None:
    async with serving() as product:
        product.services.given["g1"] = ("slack:T1:U1", GrantView("g1", "calendar", "create_event", {}, NOW))
        await product.person("U2").opens_home()
        home = await product.slack.until(lambda: product.slack.home("U2"))
        assert "Standing approvals" not in str(home["blocks"])
