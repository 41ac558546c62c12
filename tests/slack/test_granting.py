"""Always allowing, asking somebody else, withdrawing and revoking in Slack."""

from __future__ import annotations

import pytest

from adapters.shared.clicks import CHOOSE_ONE, CHOOSE_SOMEBODY
from adapters.slack.inbound.answers import NO_COLLEAGUE
from bot.domain import GrantView
from tests.slack.serving import Served, a_card, serving
from tests.slack.stand_in_services import NOW, an_approval


async def opened(house: Served, button: str, user: str = "U1") -> dict[str, object]:
    await house.person(user).clicks(await a_card(house, always_offered=True), button)
    return await house.modal(user)


@pytest.mark.parametrize(("choice", "seconds"), [("1 h", 3_600), ("8 h", 28_800), ("7 days", 604_800)])
async def test_always_allowing_approves_and_says_for_how_long(choice: str, seconds: float) -> None:
    async with serving() as house:
        answer = await house.person().submits(await opened(house, "always"), {"duration": choice})
        assert answer.status == 200
        (decision,) = house.services.decisions
        assert (decision.verb, decision.approval_ids, decision.always_for) == ("approve", ("call-1.1",), seconds)


async def test_the_form_says_exactly_what_is_allowed() -> None:
    async with serving() as house:
        modal = await opened(house, "always")
        for words in ("create_event", "Team Meeting", "exactly this call", "revoke"):
            assert words in str(modal["blocks"])
        assert house.services.decisions == []


async def test_somebody_else_is_asked() -> None:
    async with serving() as house:
        modal = await opened(house, "hand_over")
        answer = await house.person().submits(modal, {"colleague": "U2"})
        assert "They are asked." in str(answer.json)
        (handover,) = house.services.handovers
        assert (handover.person.person_id, handover.approval_id, handover.to) == (
            "slack:T1:U1",
            "call-1.1",
            "slack:T1:U2",
        )


async def test_whoever_is_asked_has_the_name_that_slack_gives_them() -> None:
    async with serving() as house:
        await house.person().submits(await opened(house, "hand_over"), {"colleague": "U2"})
        house.slack.fail("users.info", error="internal_error", times=9)
        await house.person().submits(await opened(house, "hand_over"), {"colleague": "U3"})
        assert [handover.name for handover in house.services.handovers] == ["Ben", ""]


@pytest.mark.parametrize("facts", [{"is_restricted": True}, {"is_stranger": True}, {"is_bot": True}])
async def test_only_members_of_the_workspace_can_be_asked(facts: dict[str, bool]) -> None:
    async with serving() as house:
        house.slack.add_user("U9", name="Gus", **facts)
        answer = await house.person().submits(await opened(house, "hand_over"), {"colleague": "U9"})
        assert answer.json["errors"] == {"input:colleague": NO_COLLEAGUE}
        assert house.services.handovers == []


async def test_somebody_is_asked_by_their_address() -> None:
    async with serving() as house:
        house.services.may_decide["call-1.1"] = {"cara@example.com"}
        modal = await opened(house, "hand_over")
        answer = await house.person().submits(modal, {"address": "zoe@example.com"})
        assert answer.json["errors"] == {"input:address": "They may not decide this."}
        answer = await house.person().submits(modal, {"address": "cara@example.com"})
        assert "They are asked." in str(answer.json)
        assert [handover.to for handover in house.services.handovers] == ["zoe@example.com", "cara@example.com"]


@pytest.mark.parametrize(
    ("values", "said"),
    [({}, CHOOSE_SOMEBODY), ({"colleague": "U2", "address": "ben@example.com"}, CHOOSE_ONE)],
)
async def test_exactly_one_person_is_named(values: dict[str, str], said: str) -> None:
    async with serving() as house:
        answer = await house.person().submits(await opened(house, "hand_over"), values)
        assert answer.json["errors"] == {"input:colleague": said}
        assert house.services.handovers == []


async def test_who_may_not_decide_cannot_be_asked_and_the_form_says_so() -> None:
    async with serving() as house:
        modal = await opened(house, "hand_over")
        house.services.may_decide["call-1.1"] = {"slack:T1:U1"}
        answer = await house.person().submits(modal, {"colleague": "U2"})
        assert answer.json["errors"] == {"input:colleague": "They may not decide this."}


@pytest.mark.parametrize("button", ["always", "hand_over"])
async def test_what_is_settled_opens_no_form(button: str) -> None:
    async with serving() as house:
        card = await a_card(house, always_offered=True)
        house.services.approvals["call-1.1"] = an_approval(status="approved")
        await house.person().clicks(card, button)
        await house.hears("settled already")
        assert house.slack.views("U1") == []


async def test_the_requester_withdraws_and_nobody_else_can() -> None:
    async with serving() as house:
        card = await a_card(house)
        house.services.approvals["call-1.1"] = an_approval(requester="Ben")
        await house.person("U1").clicks(card, "take_back")
        await house.hears("Only who asked for it")
        await house.person("U2").clicks(card, "take_back")
        assert house.services.approvals["call-1.1"].status == "withdrawn"


async def test_grants_are_listed_at_home_and_revoked_there() -> None:
    async with serving() as house:
        grant = GrantView("g1", "calendar", "create_event", {"name": "Standup"}, NOW)
        house.services.given["g1"] = ("slack:T1:U1", grant)
        await house.person().opens_home()
        home = await house.slack.until(lambda: house.slack.home("U1"))
        assert "You always allow" in str(home["blocks"])
        await house.person().clicks(home, "revoke")
        await house.slack.until(lambda: "You always allow" not in str((house.slack.home("U1") or {})["blocks"]))
        assert house.services.given == {}


async def test_a_grant_is_shown_and_revoked_by_its_giver_alone() -> None:
    async with serving() as house:
        house.services.given["g1"] = ("slack:T1:U1", GrantView("g1", "calendar", "create_event", {}, NOW))
        await house.person("U2").opens_home()
        home = await house.slack.until(lambda: house.slack.home("U2"))
        assert "You always allow" not in str(home["blocks"])
