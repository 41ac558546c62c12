"""One approval shown in several places, on several platforms: settled once, by the first valid click, everywhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.crypto import NewId
from bot.domain import AlreadySettled, ApprovalView, Overview, Person, Refused, Settled, Unknown
from bot.records import posts
from bot.records.database import Database
from tests.bot.conftest import SetClock, until
from tests.bot.routing import ANA, BEN, CARA, FAR, HERE, NEAR, STRANGER, THREAD, Routing
from tests.support.overviews import everywhere


async def test_a_card_is_shown_in_its_thread_and_wherever_it_is_routed_to(routing: Routing) -> None:
    await routing.ask(FAR, NEAR)
    await until(lambda: routing.chat.view(THREAD) and routing.chat.view(NEAR) and routing.mail.view(FAR))


async def test_the_first_valid_click_anywhere_settles_it_and_every_card_says_so(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)
    await until(lambda: routing.chat.view(THREAD) and routing.mail.view(FAR))
    assert await routing.click(CARA, approval_id) == Settled("Approved.")
    assert isinstance(await routing.click(BEN, approval_id), AlreadySettled)
    for platform, key in ((routing.chat, THREAD), (routing.mail, FAR)):
        view = await until(lambda p=platform, k=key: (v := p.view(k)) and v.status == "approved" and v)
        assert view.decided_by == ("Cara",)


async def test_two_clicks_at_once_on_two_platforms_settle_it_once(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)
    results = await asyncio.gather(*(routing.click(person, approval_id) for person in (BEN, CARA)))
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]


async def test_a_place_where_nothing_can_be_shown_holds_up_no_other(routing: Routing) -> None:
    routing.mail.broken.append(FAR)
    approval_id = await routing.ask(FAR)
    await until(lambda: routing.chat.view(THREAD))
    await routing.click(BEN, approval_id)
    await until(lambda: (view := routing.chat.view(THREAD)) and view.status == "approved")
    assert routing.mail.view(FAR) is None
    routing.mail.broken.clear()
    await until(lambda: (view := routing.mail.view(FAR)) and view.status == "approved")


async def test_after_a_restart_every_card_is_shown_that_was_not_yet(
    routing: Routing, database: Database, clock: SetClock, new_id: NewId
) -> None:
    routing.mail.broken.append(FAR)
    await routing.ask(FAR)
    await until(lambda: routing.chat.view(THREAD))
    async with database.reading() as tx:
        while THREAD in await posts.lanes_with_unsent(tx):  # shown, and not noted yet
            await asyncio.sleep(0)
    await routing.outbox.stop(0.0)
    after = Routing(database, clock, new_id)
    await after.outbox.start()
    await until(lambda: after.mail.view(FAR))
    assert after.chat.view(THREAD) is None  # that one had arrived
    await after.outbox.stop(1.0)


async def test_routing_to_where_it_is_asked_shows_no_second_card(routing: Routing) -> None:
    await routing.ask(HERE.channel, FAR)
    await until(lambda: routing.chat.view(THREAD) and routing.mail.view(FAR))
    assert routing.chat.view(HERE.channel) is None


async def test_a_place_that_nobody_knows_is_left_out(routing: Routing) -> None:
    approval_id = await routing.ask("pigeon:loft")
    await until(lambda: routing.chat.view(THREAD))
    assert len(await routing.services.queries.shown(approval_id)) == 1


async def test_whoever_it_was_not_routed_to_may_not_decide(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)
    assert isinstance(await routing.click(STRANGER, approval_id), Refused)
    assert not await routing.services.queries.permitted(approval_id, STRANGER)
    assert await routing.services.queries.permitted(approval_id, CARA)


@pytest.mark.parametrize("how", [{"self_approval": "fourEyes"}, {"quorum": 2}])
async def test_where_two_accounts_could_be_one_human_the_platform_where_it_was_asked_decides(
    routing: Routing, how: dict[str, Any]
) -> None:
    approval_id = await routing.ask(FAR, **how)
    refused = await routing.click(CARA, approval_id)
    assert isinstance(refused, Refused)
    assert "couldn’t verify" in refused.text
    assert isinstance(await routing.click(BEN, approval_id), Settled)


@pytest.mark.parametrize("how", [{"self_approval": "fourEyes"}, {"quorum": 2}])
async def test_the_same_holds_for_two_accounts_in_two_workspaces_of_a_platform(
    routing: Routing, how: dict[str, Any]
) -> None:
    approval_id = await routing.ask("chat:w2:annex", **how)
    refused = await routing.click(Person("chat:w2:ana", "Ana"), approval_id)
    assert isinstance(refused, Refused)
    assert refused.text.endswith("Approve it in the workspace where it was requested.")
    assert isinstance(await routing.click(BEN, approval_id), Settled)


async def test_whoever_it_is_no_business_of_does_not_learn_either_what_came_of_it(routing: Routing) -> None:
    approval_id = await routing.ask()
    await routing.click(BEN, approval_id)
    refused = await routing.click(STRANGER, approval_id)
    assert isinstance(refused, Refused)
    assert "Ben" not in refused.text
    assert isinstance(await routing.click(ANA, approval_id), AlreadySettled)


async def test_a_message_that_is_recorded_is_ours(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)

    async def recorded() -> list[str]:
        async with asyncio.timeout(10):
            while not all(known := [s.reference for s in await routing.services.queries.shown(approval_id)]):
                await asyncio.sleep(0.005)
        return [str(next(iter((reference or {}).values()))) for reference in known]

    own, routed = await recorded()
    assert await routing.services.queries.is_ours(own, HERE.channel)
    assert await routing.services.queries.is_ours(routed, FAR)
    assert not await routing.services.queries.is_ours(own, "mail:w3:")
    assert not await routing.services.queries.is_ours(own[:-1], HERE.channel)
    assert not await routing.services.queries.is_ours("%", HERE.channel)


async def test_a_routed_card_can_be_read_and_listed_where_it_was_routed_to(routing: Routing) -> None:
    approval_id = await routing.ask(FAR)
    assert isinstance(await routing.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert isinstance(await routing.services.queries.approval(approval_id, "mail:w3:"), Unknown)
    listed = (await routing.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    assert [shown.post.place.key for shown in listed] == [FAR]
    assert [
        shown.post.place.key
        for shown in (await routing.services.queries.overview(BEN, "chat:w1:", everywhere)).to_decide
    ] == [THREAD]
    assert await routing.services.queries.overview(STRANGER, "mail:w3:", everywhere) == Overview((), (), ())


async def test_a_card_is_found_in_every_place_that_shows_it(routing: Routing) -> None:
    approval_id = await routing.ask(FAR, NEAR)
    await until(lambda: routing.chat.view(NEAR) and routing.mail.view(FAR))
    assert [shown.post.place.key for shown in await routing.services.queries.shown(approval_id)] == [THREAD, FAR, NEAR]


async def test_a_routed_card_counts_only_what_was_routed_there_too(routing: Routing) -> None:
    approval_id = await routing.ask(FAR, call_id="c1")
    await routing.ask(call_id="c2")
    for within, together in (("mail:w2:", 1), ("chat:w1:", 2)):
        view = await routing.services.queries.approval(approval_id, within)
        assert isinstance(view, ApprovalView)
        assert view.together == together
    far = await until(lambda: routing.mail.view(FAR))
    assert far.together == 1
    await routing.ask(FAR, call_id="c3")
    view = await routing.services.queries.approval(approval_id, "mail:w2:")
    assert isinstance(view, ApprovalView)
    assert view.together == 2
