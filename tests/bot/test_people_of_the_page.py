"""People of the web page whose address an issuer vouches for, and what they may decide that was asked elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.domain import (
    AlreadySettled,
    ApprovalView,
    ConversationReference,
    Form,
    Handover,
    PendingApprovals,
    Person,
    Refused,
    Settled,
)
from bot.records import threads
from bot.records.locks import UNLOCKED
from tests.bot.routing import ANA, BEN, CARA, CHLOE, FAR, HERE, Routing

ANA_HERE, BEN_HERE, EVE_HERE = (Person(f"web:oidc.{name}", name.capitalize()) for name in ("ana", "ben", "eve"))
PAGE = ConversationReference("web", "web:t1", {"thread": "web:t1"}, direct=True)
HALL = "chat:w1:hall"
FINANCE = "chat-group:w1:finance"


@pytest.fixture
async def at_page(routing: Routing) -> Routing:
    """Ana and Ben have an account at each of the page and the chat, which both vouch for one address."""
    for one, other in ((ANA, ANA_HERE), (BEN, BEN_HERE)):
        routing.same_human(one, other)
        async with routing.database.writing(UNLOCKED) as tx:
            for person in (one, other):
                email = f"{one.name.lower()}@example.com"
                await threads.remember(tx, replace(person, email=email), routing.clock())
    return routing


async def test_who_has_an_account_where_it_was_asked_may_decide_on_the_page(at_page: Routing) -> None:
    approval_id = await at_page.ask()
    assert await at_page.services.queries.permitted(approval_id, BEN_HERE)
    assert isinstance(await at_page.services.approvals.edit_form(approval_id, BEN_HERE), Form)
    assert await at_page.click(BEN_HERE, approval_id) == Settled("Approved.")
    assert await at_page.click(BEN_HERE, approval_id) == Settled("Approved.")  # the same click, delivered twice
    at_page.clock.move(1)
    assert isinstance(await at_page.click(BEN_HERE, approval_id), AlreadySettled)


async def test_who_has_none_there_may_not_and_is_not_told_what_came_of_it(at_page: Routing) -> None:
    approval_id = await at_page.ask()
    page_only = Refused("On this page you can only approve what was requested here.")
    assert await at_page.click(EVE_HERE, approval_id) == page_only
    at_page.same_human(CARA, EVE_HERE)
    async with at_page.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, replace(CARA, email="cara@example.com"), at_page.clock())
    elsewhere = Refused("This was requested in a workspace where you have no known account.")
    assert await at_page.click(EVE_HERE, approval_id) == elsewhere
    await at_page.click(BEN, approval_id)
    assert await at_page.click(EVE_HERE, approval_id) == elsewhere


async def test_an_address_that_the_issuer_no_longer_vouches_for_opens_nothing(at_page: Routing) -> None:
    approval_id = await at_page.ask()
    at_page.page.emails.clear()
    assert isinstance(await at_page.click(BEN_HERE, approval_id), Refused)


async def test_an_address_of_two_people_where_it_was_asked_is_neithers_on_the_page(at_page: Routing) -> None:
    at_page.chat.emails[CHLOE.person_id] = "ben@example.com"
    await at_page.click(replace(CHLOE, email="ben@example.com"), await at_page.ask(call_id="another"))
    assert isinstance(await at_page.click(BEN_HERE, await at_page.ask()), Refused)


@pytest.mark.parametrize(
    ("how", "who", "told"),
    [
        ({"approvers": ("requester",)}, ANA_HERE, Settled),
        ({"approvers": ("requester",)}, BEN_HERE, Refused),
        ({"approvers": (BEN.person_id,)}, BEN_HERE, Settled),
        ({"approvers": (BEN_HERE.person_id,)}, BEN_HERE, Settled),
        ({"approvers": (FINANCE,)}, BEN_HERE, Settled),
        ({"approvers": (FINANCE,)}, ANA_HERE, Refused),
        ({"approvers": ("channel",)}, BEN_HERE, Settled),
        ({"self_approval": "fourEyes"}, ANA_HERE, Refused),
        ({"self_approval": "fourEyes"}, BEN_HERE, Settled),
    ],
)
async def test_on_the_page_they_may_what_their_other_account_may(
    at_page: Routing, how: dict[str, Any], who: Person, told: type
) -> None:
    at_page.chat.groups[FINANCE] = {BEN.person_id: True, ANA.person_id: False}
    at_page.chat.channels["chat:w1:room"] = {BEN.person_id}
    assert isinstance(await at_page.click(who, await at_page.ask(**how)), told)


async def test_in_a_direct_chat_the_requester_is_there_with_each_account(at_page: Routing) -> None:
    approval_id = await at_page.ask(place=replace(HERE, direct=True), approvers=("channel",))
    assert isinstance(await at_page.click(BEN_HERE, approval_id), Refused)
    assert isinstance(await at_page.click(ANA_HERE, approval_id), Settled)


async def test_two_accounts_of_one_human_are_one_vote_whether_the_first_is_the_pages(at_page: Routing) -> None:
    approval_id = await at_page.ask(quorum=2)
    assert await at_page.click(BEN_HERE, approval_id) == Settled("Recorded: 1 of 2 approvals", final=False)
    assert isinstance(await at_page.click(BEN, approval_id), AlreadySettled)
    assert await at_page.click(ANA_HERE, approval_id) == Settled("Approved.")


async def test_what_was_asked_on_the_page_is_decided_elsewhere_by_whom_the_rule_names_or_routes_it_to(
    at_page: Routing,
) -> None:
    asked = {"place": PAGE, "requesters": (ANA_HERE.person_id,)}
    named = await at_page.ask(call_id="named", approvers=(BEN.person_id,), **asked)
    assert isinstance(await at_page.click(CHLOE, named), Refused)
    assert await at_page.click(BEN, named) == Settled("Approved.")
    routed = await at_page.ask(HALL, call_id="routed", **asked)
    assert await at_page.click(CHLOE, routed) == Settled("Approved.")
    elsewhere = await at_page.ask(FAR, call_id="elsewhere", **asked)
    assert isinstance(await at_page.click(BEN, elsewhere), Refused)


async def test_whoever_asked_on_the_page_is_no_second_pair_of_eyes_elsewhere(at_page: Routing) -> None:
    how = {"place": PAGE, "requesters": (ANA_HERE.person_id,), "self_approval": "fourEyes"}
    approval_id = await at_page.ask(HALL, **how)
    assert isinstance(await at_page.click(ANA, approval_id), Refused)
    assert await at_page.click(BEN, approval_id) == Settled("Approved.")


async def test_a_rule_that_asks_the_requester_is_answered_with_any_account_where_it_is_shown(at_page: Routing) -> None:
    how = {"place": PAGE, "requesters": (ANA_HERE.person_id,), "approvers": ("requester",)}
    approval_id = await at_page.ask(HALL, **how)
    assert isinstance(await at_page.click(BEN, approval_id), Refused)
    assert await at_page.click(ANA, approval_id) == Settled("Approved.")


async def test_on_the_page_they_hand_over_and_withdraw_what_concerns_their_other_account(at_page: Routing) -> None:
    approval_id, approvals = await at_page.ask(), at_page.services.approvals
    handed = await approvals.hand_over(Handover("h", BEN_HERE, approval_id, CHLOE.person_id))
    assert isinstance(handed, Settled)
    assert isinstance(await approvals.hand_over(Handover("h", CHLOE, approval_id, "ben@example.com")), Settled)
    assert (await at_page.row(approval_id)).handed_to == (CHLOE.person_id, BEN.person_id)
    assert isinstance(await approvals.withdraw_request("w", approval_id, BEN_HERE), Refused)
    assert await approvals.withdraw_request("w", approval_id, ANA_HERE) == Settled("Withdrawn.")


async def test_a_rule_about_somebody_named_is_about_their_account_on_the_page_where_that_is_proven(
    at_page: Routing,
) -> None:
    """Rule 9; and nobody on the page becomes somebody else by their own word."""
    is_also = at_page.parts.directory.is_also
    assert await is_also(BEN_HERE.person_id, [BEN.person_id, ANA.person_id]) == {
        BEN.person_id: True,
        ANA.person_id: False,
    }
    assert await is_also(BEN.person_id, [BEN_HERE.person_id, "web:ben"]) == {BEN_HERE.person_id: True, "web:ben": False}
    assert await is_also("web:ben", [BEN.person_id]) == {BEN.person_id: False}


# --------------------------------------------------------------------------------------------------- what waits


async def decides(routing: Routing, person: Person, within: str = "", most: int = 10) -> list[str]:
    """Ids of the approvals that somebody is shown as theirs to decide."""
    found = await routing.services.queries.pending(person, within, most)
    contents = [shown.post.content for shown in found.to_decide]
    return [content.approval_id for content in contents if isinstance(content, ApprovalView)]


async def test_on_the_page_they_are_shown_what_they_may_decide_wherever_it_was_asked_newest_first(
    at_page: Routing,
) -> None:
    on_page = {"place": PAGE, "requesters": (ANA_HERE.person_id,)}
    in_chat = await at_page.ask(call_id="c1", approvers=(BEN.person_id,))
    at_page.clock.move(1)
    await at_page.ask(call_id="c2", approvers=(CHLOE.person_id,))
    far = await at_page.ask(FAR, call_id="c3", approvers=(BEN.person_id,), place=replace(HERE, key="mail:w2:t"))
    asked_here = await at_page.ask(call_id="c4", approvers=(BEN_HERE.person_id,), **on_page)
    at_page.clock.move(1)
    for_chat = await at_page.ask(call_id="c5", approvers=(BEN.person_id,), expires_in=60.0, **on_page)
    assert await decides(at_page, BEN_HERE) == [for_chat, asked_here, in_chat]
    assert await decides(at_page, BEN_HERE, "web:") == [for_chat, asked_here]
    assert await decides(at_page, BEN_HERE, "chat:w1:room:1") == [in_chat]
    assert await decides(at_page, BEN_HERE, "mail:") == await decides(at_page, BEN_HERE, "chat:w1:hall") == []
    assert await decides(at_page, BEN_HERE, most=1) == [for_chat]
    assert (await at_page.services.queries.pending(BEN_HERE, most=1)).more == 2
    assert await decides(at_page, BEN) == [for_chat, in_chat]
    assert await decides(at_page, EVE_HERE) == []
    at_page.clock.move(60)
    assert await decides(at_page, BEN) == [in_chat]
    assert isinstance(await at_page.click(BEN, far), Settled)  # named: told of it, wherever it was asked


async def test_what_anybody_may_decide_is_shown_on_the_page_to_those_who_are_where_it_was_asked(
    at_page: Routing,
) -> None:
    approval_id = await at_page.ask()
    at_page.chat.channels["chat:w1:room"] = {CHLOE.person_id}
    assert [await decides(at_page, person) for person in (BEN_HERE, ANA_HERE, CHLOE)] == [
        [],
        [approval_id],
        [approval_id],
    ]
    at_page.chat.channels["chat:w1:room"].add(BEN.person_id)
    assert await decides(at_page, BEN_HERE) == [approval_id]


async def test_where_nothing_waits_nobody_is_looked_up(at_page: Routing) -> None:
    await at_page.click(BEN, await at_page.ask())
    at_page.clock.move(3600)
    at_page.chat.asked.clear()
    at_page.page.asked.clear()
    assert await at_page.services.queries.pending(BEN_HERE) == PendingApprovals()
    assert at_page.chat.asked == at_page.page.asked == []
