"""What a person is shown of what concerns them: nothing that was asked where they are not."""

from __future__ import annotations

from typing import Any

from tests.slack.serving import Served, serving
from tests.slack.stand_in_services import an_approval


async def listed(house: Served, user: str = "U1") -> str:
    """What the command lists for somebody."""
    await house.person(user).commands("approvals", "C1")
    return str(house.slack.ephemerals(user)[-1]["blocks"])


def anybodys(house: Served, **changes: Any) -> None:
    """An approval in C1 that anybody may decide."""
    house.services.approvals["call-1.1"] = an_approval(approvers=("any",), **changes)


async def test_what_anybody_may_decide_is_shown_to_members_of_its_channel() -> None:
    async with serving() as house:
        anybodys(house)
        assert "create_event" in await listed(house)
        house.slack.add_user("U5", name="Eve")
        house.slack.world.channels["C1"].members.add("U5")  # joined since; believed five minutes later
        assert "create_event" not in await listed(house, "U5")
        assert len(house.slack.calls_of("conversations.members")) == 1


async def test_members_are_found_on_every_page() -> None:
    async with serving() as house:
        anybodys(house)
        house.slack.world.channels["C1"].members |= {f"UA{number}" for number in range(1_500)}
        house.slack.world.channels["C1"].members.add("UZZ")
        house.slack.add_user("UZZ", name="Zed")
        assert "create_event" in await listed(house, "UZZ")
        assert len(house.slack.calls_of("conversations.members")) == 2


async def test_where_nobody_knows_who_is_in_the_channel_it_is_not_shown() -> None:
    async with serving() as house:
        anybodys(house)
        house.slack.fail("conversations.members", error="channel_not_found")
        assert "create_event" not in await listed(house)


async def test_what_a_rule_gives_to_somebody_is_shown_to_them_without_asking() -> None:
    async with serving() as house:
        house.services.approvals["call-1.1"] = an_approval(approvers=("slack:T1:U1",))
        assert "create_event" in await listed(house)
        assert house.slack.calls_of("conversations.members") == []
