"""Standing approvals: given with an approval, to oneself, for a while; listed, revoked, over."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain import AlreadySettled, GrantView, Refused, Settled, Unknown
from policies.approvers import DURATIONS, StandingApproval, digest_of
from policies.model import Call, Risk
from tests.bot.routing import ANA, BEN, LAMP, MAKE, Routing

HOURS_8 = DURATIONS["8 h"]


async def granted(routing: Routing, **how: Any) -> GrantView:
    """Ana always allows herself the call."""
    assert isinstance(await routing.click(ANA, await routing.ask(**how), always_for=HOURS_8), Settled)
    return (await routing.services.queries.standing_approvals(ANA))[0]


async def test_whoever_approves_may_allow_themselves_the_same_call_for_a_while(routing: Routing) -> None:
    approval_id = await routing.ask()
    assert (await routing.view(approval_id)).always_offered
    said = await routing.click(ANA, approval_id, always_for=HOURS_8)
    assert said == Settled("Approved. Identical requests from you run without asking for 8 hours.")
    until = routing.clock() + HOURS_8
    assert await routing.parts.standing_approvals.grants_of(ANA.person_id) == [
        StandingApproval(ANA.person_id, "workshop", "make", LAMP, until, (Risk.WRITES,))
    ]
    (view,) = await routing.services.queries.standing_approvals(ANA)
    assert (view.server, view.tool, view.arguments, view.until) == ("workshop", "make", {"what": "lamp"}, until)
    assert await routing.services.queries.standing_approvals(BEN) == ()


async def test_a_list_of_grants_shows_no_secrets(routing: Routing) -> None:
    secret = "ghp_" + "a1B2" * 9
    await routing.edit(ANA, await routing.ask(), {"what": secret}, always_for=HOURS_8)
    (view,) = await routing.services.queries.standing_approvals(ANA)
    assert secret not in str(view.arguments)


async def test_of_a_long_call_the_list_has_a_count_and_its_giver_can_see_all_of_it(routing: Routing) -> None:
    """Rule 8: what is too long for a list is whole where somebody asks for it; rule 11: its giver alone."""
    long = {"what": "x" * 30_000}
    view = await granted(routing, what=long["what"])
    assert (view.arguments, view.unread > 30_000) == ({}, True)
    queries = routing.services.queries
    whole = await queries.standing_approval(view.grant_id, ANA)
    assert isinstance(whole, GrantView)
    assert (whole.arguments, whole.unread) == (long, 0)
    assert isinstance(await queries.standing_approval(view.grant_id, BEN), Unknown)
    assert isinstance(await queries.standing_approval("unheard of", ANA), Unknown)
    await routing.services.approvals.revoke_standing_approval(view.grant_id, ANA)
    assert isinstance(await queries.standing_approval(view.grant_id, ANA), Unknown)


async def test_a_grant_is_over_in_time(routing: Routing) -> None:
    view = await granted(routing)
    routing.clock.move(HOURS_8)
    assert isinstance(await routing.services.queries.standing_approval(view.grant_id, ANA), Unknown)
    assert await routing.parts.standing_approvals.grants_of(ANA.person_id) == []
    assert isinstance(await routing.services.approvals.revoke_standing_approval(view.grant_id, ANA), AlreadySettled)


async def test_its_giver_revokes_it_and_nobody_else_does(routing: Routing) -> None:
    view = await granted(routing)
    assert isinstance(await routing.services.approvals.revoke_standing_approval(view.grant_id, BEN), Unknown)
    assert isinstance(await routing.services.approvals.revoke_standing_approval("unheard of", ANA), Unknown)
    assert isinstance(await routing.services.approvals.revoke_standing_approval(view.grant_id, ANA), Settled)
    assert isinstance(await routing.services.approvals.revoke_standing_approval(view.grant_id, ANA), AlreadySettled)
    assert await routing.services.queries.standing_approvals(ANA) == ()


async def test_the_newest_grant_for_a_call_replaces_the_one_before(routing: Routing) -> None:
    await granted(routing, call_id="c1")
    await routing.click(ANA, await routing.ask(call_id="c2"), always_for=DURATIONS["1 h"])
    assert [view.until for view in await routing.services.queries.standing_approvals(ANA)] == [
        routing.clock() + DURATIONS["1 h"]
    ]


@pytest.mark.parametrize("how", [{"self_approval": "fourEyes"}, {"quorum": 2}, {"always_allow": False}])
async def test_where_it_is_not_offered_it_is_refused_and_no_vote_is_counted(
    routing: Routing, how: dict[str, Any]
) -> None:
    approval_id = await routing.ask(**how)
    assert not (await routing.view(approval_id)).always_offered
    assert isinstance(await routing.click(BEN, approval_id, always_for=HOURS_8), Refused)
    assert await routing.votes(approval_id) == []
    assert await routing.services.queries.standing_approvals(BEN) == ()


@pytest.mark.parametrize("seconds", [0.0, -1.0, HOURS_8 + 1, float("inf"), float("nan")])
async def test_nobody_gives_themselves_another_time_than_is_offered(routing: Routing, seconds: float) -> None:
    approval_id = await routing.ask()
    assert isinstance(await routing.click(ANA, approval_id, always_for=seconds), Refused)
    assert (await routing.row(approval_id)).status == "pending"


async def test_a_rejection_allows_nothing(routing: Routing) -> None:
    approval_id = await routing.ask()
    assert isinstance(await routing.click(ANA, approval_id, "reject", always_for=HOURS_8), Refused)
    assert await routing.services.queries.standing_approvals(ANA) == ()


async def test_somebody_who_may_not_decide_is_granted_nothing(routing: Routing) -> None:
    approval_id = await routing.ask(approvers=("requester",))
    assert isinstance(await routing.click(BEN, approval_id, always_for=HOURS_8), Refused)
    assert await routing.services.queries.standing_approvals(BEN) == ()


async def test_with_an_edit_the_edited_call_is_granted(routing: Routing) -> None:
    said = await routing.edit(ANA, await routing.ask(), {"what": "chair"}, always_for=HOURS_8)
    assert said == Settled("Approved. Identical requests from you run without asking for 8 hours.")
    (grant,) = await routing.parts.standing_approvals.grants_of(ANA.person_id)
    assert grant.digest == digest_of(MAKE, {"what": "chair"})
    assert Call(MAKE, {"what": "chair"}).tool.name == grant.tool
