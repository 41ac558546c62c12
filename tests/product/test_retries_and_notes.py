"""A call that failed is requested again by its requester, once; and what approvers add reaches the model."""

from __future__ import annotations

import json
from urllib.parse import quote

from tests.fakes.openai_server import FakeOpenAI
from tests.product.test_outcomes import approve_one
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Answer, Json, Thread, Visitor, visiting

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"


async def retry(thread: Thread, approval_id: str, click: str) -> Answer:
    return await thread.visitor.post(f"/api/approvals/{quote(approval_id, safe='')}/retry", {"id": click})


async def test_what_failed_is_asked_about_again_as_it_was_and_the_model_is_not_asked_first(
    at_work: Thread, ben_at_work: Thread, model: FakeOpenAI
) -> None:
    failed = await approve_one(at_work, "use fail what=lamp")
    shown = await at_work.card(failed, "approved", result="failed: ")
    await at_work.says("lamp is broken")
    asked = len(model.requests)
    assert shown["retry_offered"]

    at_work.visitor.http.headers["Accept-Language"] = "de"  # what is kept is for all who read here
    assert (await retry(ben_at_work, failed, "c1")).status == 403
    first, again, other = [await retry(at_work, failed, click) for click in ("c2", "c2", "c3")]
    assert [answer.status for answer in (first, again, other)] == [200, 200, 409]

    (card,) = await at_work.waiting()
    assert (card["tool"], card["arguments"]) == ("fail", shown["arguments"])
    assert card["id"] != failed
    assert len(model.requests) == asked
    await at_work.until(lambda: not at_work.approvals("approved")[0]["retry_offered"])
    await at_work.approve(card["id"])
    await at_work.card(card["id"], "approved", result="failed: ")
    await at_work.until(lambda: len(model.requests) == asked + 1)
    assert "Retry: " in str(model.requests[-1])


async def test_nothing_is_retried_that_went_well_or_is_not_decided(at_work: Thread) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    assert (await retry(at_work, card["id"], "c1")).status == 403
    await at_work.approve(card["id"])
    done = await at_work.card(card["id"], "approved", result="done")
    assert not done["retry_offered"]
    assert (await retry(at_work, card["id"], "c2")).status == 403
    assert (await retry(at_work, "nothing", "c3")).status == 404


async def test_nothing_is_retried_while_something_waits_in_the_conversation(at_work: Thread) -> None:
    await at_work.send("use fail what=lamp; make what=chair")
    lamp, chair = await at_work.waiting(2)
    await at_work.approve(lamp["id"])
    await at_work.card(lamp["id"], "approved", result="failed: ")
    assert (await retry(at_work, lamp["id"], "c1")).status == 403
    await at_work.approve(chair["id"])
    await at_work.says("made chair")
    assert (await retry(at_work, lamp["id"], "c2")).status == 200


async def test_a_secret_that_an_approver_put_in_is_in_the_call_that_is_made_again_and_nothing_of_it_at_the_model(
    at_work: Thread, model: FakeOpenAI, shop: Workshop
) -> None:
    await at_work.send("use fail what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"], values={"what": f"{SECRET} and a lamp"})
    await at_work.card(card["id"], "approved", result="failed: ")
    await at_work.says("a lamp is broken")
    assert (await retry(at_work, card["id"], "c1")).status == 200
    (again,) = await at_work.waiting()
    assert again["fingerprint"] == at_work.approvals("approved")[0]["fingerprint"], "it is the same call"
    asked = len(model.requests)
    await at_work.approve(again["id"])
    await at_work.until(lambda: len(model.requests) > asked)
    assert f"{SECRET[:8]}" not in json.dumps([request["messages"] for request in model.requests])
    assert "and a lamp" in json.dumps(model.requests[-1]["messages"])


async def test_nothing_is_retried_in_a_conversation_that_was_deleted(at_work: Thread, model: FakeOpenAI) -> None:
    failed = await approve_one(at_work, "use fail what=lamp")
    await at_work.card(failed, "approved", result="failed: ")
    await at_work.says("lamp is broken")
    asked = len(model.requests)
    address = f"/api/threads/{quote(at_work.thread_id, safe='')}/deletion"
    assert (await at_work.visitor.post(address, {"id": "c1"})).status == 200
    assert (await retry(at_work, failed, "c2")).status == 404
    assert len(model.requests) == asked


async def test_a_retry_and_a_note_outlast_a_restart(workshop_home: ProductFolder, shop: Workshop) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        failed = await approve_one(thread, "use fail what=lamp")
        await thread.card(failed, "approved", result="failed: ")
        await thread.says("lamp is broken")
        assert (await retry(thread, failed, "c1")).status == 200
        thread_id = thread.thread_id
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        (card,) = await thread.waiting()
        assert (await retry(thread, failed, "c2")).status == 409
        body = {"id": "c3", "approvals": [card["id"]], "verb": "approve", "note": "Try the chair next"}
        assert (await ana.post("/api/approvals/decisions", body)).status == 200
        shown = await thread.card(card["id"], "approved", result="failed: ")
        assert shown["notes"] == [{"name": "Ana", "text": "Try the chair next"}]
        await thread.says('Ana adds: "Try the chair next"')


async def test_each_of_several_approvers_adds_a_note_and_the_call_runs_as_it_was_asked(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(
        "version: 1\nrules:\n  - {name: two people, match: {}, decide: ask, approvers: [any], quorum: 2}\n"
    )
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread() as thread,
    ):
        await thread.send("use make what=lamp count=2")
        (card,) = await thread.waiting()
        for visitor, note in ((ana, "Paint it red"), (ben, "Not too bright")):
            body = {"id": "c1", "approvals": [card["id"]], "verb": "approve", "note": note}
            assert (await visitor.post("/api/approvals/decisions", body)).status == 200
        await thread.card(card["id"], "approved", result="made lamp")
        told = await thread.says("made lamp", "paint it red", "not too bright")
        assert told.index("Paint it red") < told.index("made lamp")
        assert shop.done == ["make lamp 2"]


async def test_a_secret_of_an_approver_stays_from_the_model_however_often_the_call_is_retried(
    at_work: Thread, model: FakeOpenAI
) -> None:
    await at_work.send("use fail what=lamp")
    (card,) = await at_work.waiting()
    await at_work.approve(card["id"], values={"what": f"{SECRET} and a lamp"})
    for click in ("c1", "c2"):
        await at_work.card(card["id"], "approved", result="failed: ")
        assert (await retry(at_work, card["id"], click)).status == 200
        (card,) = await at_work.waiting()
        asked = len(model.requests)
        await at_work.approve(card["id"])
        await at_work.until(lambda: len(model.requests) > asked)  # noqa: B023 - waited for within the loop
    assert SECRET[:8] not in json.dumps([request["messages"] for request in model.requests])


async def test_a_secret_of_an_edit_that_was_asked_again_is_not_told_either(
    workshop_home: ProductFolder, model: FakeOpenAI
) -> None:
    workshop_home.policy(
        "version: 1\nrules:\n"
        "  - {name: others, match: {}, decide: ask, approvers: [any], selfApproval: fourEyes, editable: [what]}\n"
    )
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        visiting(url, "chloe") as chloe,
        ana.thread() as thread,
    ):

        async def decides(visitor: Visitor, card: Json, **more: Json) -> None:
            body = {"id": "c1", "approvals": [card["id"]], "verb": "approve", **more}
            assert (await visitor.post("/api/approvals/decisions", body)).status == 200

        await thread.send("use fail what=lamp")
        (card,) = await thread.waiting()
        await decides(ben, card, values={"what": f"{SECRET} and a lamp"})
        await thread.card(card["id"], "void")
        (edited,) = await thread.waiting()
        await decides(chloe, edited)
        await thread.card(edited["id"], "approved", result="failed: ")
        await thread.says("is broken")
        assert (await retry(thread, edited["id"], "c1")).status == 200
        (again,) = await thread.waiting()
        asked = len(model.requests)
        await decides(chloe, again)
        await thread.until(lambda: len(model.requests) > asked)
    assert SECRET[:8] not in json.dumps([request["messages"] for request in model.requests])


async def test_a_secret_in_a_note_stays_from_the_model(at_work: Thread, model: FakeOpenAI) -> None:
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    body = {"id": "c1", "approvals": [card["id"]], "verb": "approve", "note": f"log in with {SECRET}"}
    assert (await at_work.visitor.post("/api/approvals/decisions", body)).status == 200
    told = await at_work.says("Ana adds", "made lamp")
    assert "log in with [secret: github token]" in told
    assert SECRET[:8] not in json.dumps([request["messages"] for request in model.requests])
