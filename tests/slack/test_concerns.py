"""What a person is shown of what concerns them: nothing that was asked where they are not."""

from __future__ import annotations

from typing import Any

from tests.slack.serving import Served, serving
from tests.slack.shown import an_approval


async def listed(product: Served, user: str = "U1") -> str:
    """What the command lists for somebody."""
    await product.person(user).commands("approvals", "C1")
    return str(product.slack.ephemerals(user)[-1]["blocks"])


def anybodys(product: Served, **changes: Any) -> None:
    """An approval in C1 that anybody may decide."""
    product.services.approvals["call-1.1"] = an_approval(approvers=("any",), **changes)


async def test_what_anybody_may_decide_is_shown_to_members_of_its_channel() -> None:
    async with serving() as product:
        anybodys(product)
        assert "Create event" in await listed(product)
        product.slack.add_user("U5", name="Eve")
        product.slack.world.channels["C1"].members.add("U5")  # joined since; believed five minutes later
        assert "Create event" not in await listed(product, "U5")
        assert len(product.slack.calls_of("conversations.members")) == 1


async def test_members_are_found_on_every_page() -> None:
    async with serving() as product:
        anybodys(product)
        product.slack.world.channels["C1"].members |= {f"UA{number}" for number in range(1_500)}
        product.slack.world.channels["C1"].members.add("UZZ")
        product.slack.add_user("UZZ", name="Zed")
        assert "Create event" in await listed(product, "UZZ")
        assert len(product.slack.calls_of("conversations.members")) == 2


async def test_where_nobody_knows_who_is_in_the_channel_it_is_not_shown() -> None:
    async with serving() as product:
        anybodys(product)
        product.slack.fail("conversations.members", error="channel_not_found")
        assert "Create event" not in await listed(product)


async def test_what_a_rule_gives_to_somebody_is_shown_to_them_without_asking() -> None:
    async with serving() as product:
        product.services.approvals["call-1.1"] = an_approval(approvers=("slack:T1:U1",))
        assert "Create event" in await listed(product)
        assert product.slack.calls_of("conversations.members") == []
