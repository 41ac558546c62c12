"""One approval shown in several places, on several platforms: settled once, by the first valid click, everywhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.crypto import NewId
from bot.domain import AlreadySettled, ApprovalView, Overview, Person, Refused, Settled, Unknown
from bot.records.database import Database
from tests.bot.conftest import SetClock, until
from tests.bot.desks import ANA, BEN, CARA, FAR, HERE, NEAR, STRANGER, THREAD, Desks
from tests.support.overviews import everywhere


async def test_a_card_is_shown_in_its_thread_and_wherever_it_is_routed_to(desks: Desks) -> None:
    await desks.ask(FAR, NEAR)
    await until(lambda: desks.chat.view(THREAD) and desks.chat.view(NEAR) and desks.mail.view(FAR))


async def test_the_first_valid_click_anywhere_settles_it_and_every_card_says_so(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)
    await until(lambda: desks.chat.view(THREAD) and desks.mail.view(FAR))
    assert await desks.click(CARA, approval_id) == Settled("Approved.")
    assert isinstance(await desks.click(BEN, approval_id), AlreadySettled)
    for platform, key in ((desks.chat, THREAD), (desks.mail, FAR)):
        view = await until(lambda p=platform, k=key: (v := p.view(k)) and v.status == "approved" and v)
        assert view.decided_by == ("Cara",)


async def test_two_clicks_at_once_on_two_platforms_settle_it_once(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)
    results = await asyncio.gather(*(desks.click(person, approval_id) for person in (BEN, CARA)))
    assert sorted(type(result).__name__ for result in results) == ["AlreadySettled", "Settled"]


async def test_a_place_where_nothing_can_be_shown_holds_up_no_other(desks: Desks) -> None:
    desks.mail.broken.append(FAR)
    approval_id = await desks.ask(FAR)
    await until(lambda: desks.chat.view(THREAD))
    await desks.click(BEN, approval_id)
    await until(lambda: (view := desks.chat.view(THREAD)) and view.status == "approved")
    assert desks.mail.view(FAR) is None
    desks.mail.broken.clear()
    await until(lambda: (view := desks.mail.view(FAR)) and view.status == "approved")


async def test_after_a_restart_every_card_is_shown_that_was_not_yet(
    desks: Desks, database: Database, clock: SetClock, new_id: NewId
) -> None:
    desks.mail.broken.append(FAR)
    await desks.ask(FAR)
    await until(lambda: desks.chat.view(THREAD))
    await desks.outbox.stop(0.0)
    after = Desks(database, clock, new_id)
    await after.outbox.start()
    await until(lambda: after.mail.view(FAR))
    assert after.chat.view(THREAD) is None  # that one had arrived
    await after.outbox.stop(1.0)


async def test_routing_to_where_it_is_asked_shows_no_second_card(desks: Desks) -> None:
    await desks.ask(HERE.channel, FAR)
    await until(lambda: desks.chat.view(THREAD) and desks.mail.view(FAR))
    assert desks.chat.view(HERE.channel) is None


async def test_a_place_that_nobody_knows_is_left_out(desks: Desks) -> None:
    approval_id = await desks.ask("pigeon:loft")
    await until(lambda: desks.chat.view(THREAD))
    assert len(await desks.services.queries.shown(approval_id)) == 1


async def test_whoever_it_was_not_routed_to_may_not_decide(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)
    assert isinstance(await desks.click(STRANGER, approval_id), Refused)
    assert not await desks.services.queries.permitted(approval_id, STRANGER)
    assert await desks.services.queries.permitted(approval_id, CARA)


@pytest.mark.parametrize("how", [{"self_approval": "fourEyes"}, {"quorum": 2}])
async def test_where_two_accounts_could_be_one_human_the_platform_where_it_was_asked_decides(
    desks: Desks, how: dict[str, Any]
) -> None:
    approval_id = await desks.ask(FAR, **how)
    refused = await desks.click(CARA, approval_id)
    assert isinstance(refused, Refused)
    assert "could not be found out" in refused.text
    assert isinstance(await desks.click(BEN, approval_id), Settled)


@pytest.mark.parametrize("how", [{"self_approval": "fourEyes"}, {"quorum": 2}])
async def test_the_same_holds_for_two_accounts_in_two_workspaces_of_a_platform(
    desks: Desks, how: dict[str, Any]
) -> None:
    approval_id = await desks.ask("chat:w2:annex", **how)
    refused = await desks.click(Person("chat:w2:ana", "Ana"), approval_id)
    assert isinstance(refused, Refused)
    assert refused.text.endswith("please decide it in the workspace where it was asked.")
    assert isinstance(await desks.click(BEN, approval_id), Settled)


async def test_whoever_it_is_no_business_of_does_not_learn_either_what_came_of_it(desks: Desks) -> None:
    approval_id = await desks.ask()
    await desks.click(BEN, approval_id)
    refused = await desks.click(STRANGER, approval_id)
    assert isinstance(refused, Refused)
    assert "Ben" not in refused.text
    assert isinstance(await desks.click(ANA, approval_id), AlreadySettled)


async def test_a_message_that_is_recorded_is_ours(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)

    async def recorded() -> list[str]:
        async with asyncio.timeout(10):
            while not all(known := [s.reference for s in await desks.services.queries.shown(approval_id)]):
                await asyncio.sleep(0.005)
        return [str(next(iter((reference or {}).values()))) for reference in known]

    own, routed = await recorded()
    assert await desks.services.queries.is_ours(own, HERE.channel)
    assert await desks.services.queries.is_ours(routed, FAR)
    assert not await desks.services.queries.is_ours(own, "mail:w3:")
    assert not await desks.services.queries.is_ours(own[:-1], HERE.channel)
    assert not await desks.services.queries.is_ours("%", HERE.channel)


async def test_a_routed_card_can_be_read_and_listed_where_it_was_routed_to(desks: Desks) -> None:
    approval_id = await desks.ask(FAR)
    assert isinstance(await desks.services.queries.approval(approval_id, "mail:w2:"), ApprovalView)
    assert isinstance(await desks.services.queries.approval(approval_id, "mail:w3:"), Unknown)
    listed = (await desks.services.queries.overview(CARA, "mail:w2:", everywhere)).to_decide
    assert [shown.post.place.key for shown in listed] == [FAR]
    assert [
        shown.post.place.key for shown in (await desks.services.queries.overview(BEN, "chat:w1:", everywhere)).to_decide
    ] == [THREAD]
    assert await desks.services.queries.overview(STRANGER, "mail:w3:", everywhere) == Overview((), (), ())


async def test_a_card_is_found_in_every_place_that_shows_it(desks: Desks) -> None:
    approval_id = await desks.ask(FAR, NEAR)
    await until(lambda: desks.chat.view(NEAR) and desks.mail.view(FAR))
    assert [shown.post.place.key for shown in await desks.services.queries.shown(approval_id)] == [THREAD, FAR, NEAR]


async def test_a_routed_card_counts_only_what_was_routed_there_too(desks: Desks) -> None:
    approval_id = await desks.ask(FAR, call_id="c1")
    await desks.ask(call_id="c2")
    for within, together in (("mail:w2:", 1), ("chat:w1:", 2)):
        view = await desks.services.queries.approval(approval_id, within)
        assert isinstance(view, ApprovalView)
        assert view.together == together
    far = await until(lambda: desks.mail.view(FAR))
    assert far.together == 1
    await desks.ask(FAR, call_id="c3")
    view = await desks.services.queries.approval(approval_id, "mail:w2:")
    assert isinstance(view, ApprovalView)
    assert view.together == 2
