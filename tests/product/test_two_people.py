"""Who may decide is judged on the server, from the policy, at the click."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.product import ProductFolder
from tests.support.tools import Workshop
from tests.support.visitor import Thread, visiting

POLICY = """
version: 1
rules:
  - name: looking is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: deleting needs a second pair of eyes
    match: {tool: delete}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
    reasonRequired: true
  - name: two people for many
    match: {tool: make, args: {what: "gold*"}}
    decide: ask
    approvers: [any]
    quorum: 2
  - name: soon over
    match: {tool: make, args: {what: egg}}
    decide: ask
    expiresIn: 1s
  - name: nothing breaks here
    match: {tool: fail}
    decide: deny
    reason: Nothing may be broken from chat.
"""


@pytest.fixture
def workshop_home(workshop_home: ProductFolder) -> ProductFolder:
    workshop_home.policy(POLICY)
    return workshop_home


@pytest.fixture
async def chloe_at_work(workshop_product: str, at_work: Thread) -> AsyncIterator[Thread]:
    async with visiting(workshop_product, "chloe") as chloe, chloe.thread(at_work.thread_id) as thread:
        yield thread


async def test_four_eyes_need_somebody_else(at_work: Thread, ben_at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use delete what=lamp")
    (card,) = await at_work.waiting()
    assert card["may_decide"] == "someone other than Ana"
    assert (await at_work.approve(card["id"]))["kind"] == "refused"
    assert shop.done == []
    assert (await ben_at_work.approve(card["id"]))["kind"] == "settled"
    await at_work.card(card["id"], "approved", result="deleted lamp")
    assert at_work.approvals()[0]["decided_by"] == ["Ben"]


async def test_whoever_edits_counts_as_a_requester_so_somebody_else_must_approve(
    at_work: Thread, ben_at_work: Thread, chloe_at_work: Thread, shop: Workshop
) -> None:
    await at_work.send("use delete what=lamp")
    (card,) = await at_work.waiting()
    changed = await ben_at_work.approve(card["id"], values={"what": "chair"})
    assert "Someone else" in changed["text"]
    await at_work.card(card["id"], "void")
    (again,) = await at_work.waiting()
    assert again["requester"] == "Ana, Ben"
    assert (await ben_at_work.approve(again["id"]))["kind"] == "refused"
    assert shop.done == []
    assert (await chloe_at_work.approve(again["id"]))["kind"] == "settled"
    await at_work.card(again["id"], "approved", result="deleted chair")
    assert shop.done == ["delete chair"]


async def test_a_quorum_of_two_needs_two_different_people(at_work: Thread, ben_at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=goldring")
    (card,) = await at_work.waiting()
    first = await at_work.approve(card["id"])
    assert (first["kind"], first["final"]) == ("settled", False)
    assert (await at_work.approve(card["id"]))["kind"] == "already_settled"
    assert shop.done == []
    assert (await ben_at_work.approve(card["id"]))["final"] is True
    await at_work.card(card["id"], "approved", result="made goldring")


async def test_one_rejection_settles_and_whoever_approved_may_still_reject(
    at_work: Thread, ben_at_work: Thread, shop: Workshop
) -> None:
    await at_work.send("use make what=goldring")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"])
    await at_work.reject(card["id"], "changed my mind")
    await at_work.card(card["id"], "rejected")
    assert (await ben_at_work.approve(card["id"]))["kind"] == "already_settled"
    assert shop.done == []


async def test_a_rejection_needs_a_reason_where_the_policy_says_so(at_work: Thread, ben_at_work: Thread) -> None:
    await at_work.send("use delete what=lamp")
    (card,) = await at_work.waiting()
    assert (await ben_at_work.reject(card["id"]))["kind"] == "invalid"
    assert (await ben_at_work.reject(card["id"], "keep it"))["kind"] == "settled"


async def test_an_approval_expires_and_the_model_is_told(at_work: Thread, shop: Workshop) -> None:
    await at_work.send("use make what=egg")
    (card,) = await at_work.waiting()
    await at_work.card(card["id"], "expired")
    await at_work.says("expired: nobody decided in time")
    assert (await at_work.approve(card["id"]))["kind"] == "already_settled"
    assert shop.done == []


async def test_a_denied_call_is_answered_with_a_sentence_that_can_be_passed_on(at_work: Thread) -> None:
    await at_work.send("use fail what=lamp")
    await at_work.says("blocked by policy: nothing may be broken from chat.")
    assert at_work.approvals() == []
