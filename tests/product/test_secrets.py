"""A secret in what a tool says is nowhere: not in the records, the logs, the page, nor in what the model is sent."""

from __future__ import annotations

import json

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.support import postgres_cluster
from tests.support.planted import COLD, LEAKS, TOKEN, assert_nowhere, plant
from tests.support.product import ProductFolder, product_here, product_process
from tests.support.product_records import all_that_is_kept, rows_in_records
from tests.support.tools import Workshop
from tests.support.visitor import Thread, visiting

ALLOWED = "version: 1\nrules:\n  - {name: all is allowed, match: {}, decide: allow}\n"
ASKED = "version: 1\nrules: []\n"


@pytest.fixture
def leaky(workshop_home: ProductFolder, shop: Workshop) -> ProductFolder:
    """The product whose tools tell secrets."""
    plant(workshop_home, shop)
    workshop_home.policy(ALLOWED)
    return workshop_home


async def all_leaks(thread: Thread) -> None:
    await thread.send(LEAKS)
    await thread.says("results:", "[secret: github token]")


async def test_a_seeded_secret_is_in_no_record_no_card_and_no_request_to_the_model(
    leaky: ProductFolder, model: FakeOpenAI
) -> None:
    async with product_here(leaky) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await all_leaks(thread)
        shown = json.dumps([*thread.entries.values(), thread.live_texts, thread.statuses], ensure_ascii=False)
        while_it_runs = list(all_that_is_kept(leaky))
    files = [*while_it_runs, *all_that_is_kept(leaky)]
    shared = {"deliveries", "posts", "attempts", "checkpoint_writes"}
    own = {"countersign.db", "countersign.db-wal", "countersign.checkpoints.db"}
    assert (shared if postgres_cluster.is_used() else own) <= {name for name, _ in files}
    assert sum("[secret: github token]" in text for _, text in files) >= 3
    for name, text in files:
        assert_nowhere(name, text)
    assert_nowhere("the page", shown)
    assert "[secret: badge]" in shown
    assert len(model.requests) >= 2
    assert "Signs in with [secret: github token]" in json.dumps(model.requests)
    for written in (json.dumps(model.requests, ensure_ascii=False), json.dumps(model.requests)):
        assert_nowhere("what the model was sent", written)


async def test_what_masked_results_say_is_still_of_use(leaky: ProductFolder, model: FakeOpenAI) -> None:
    async with product_here(leaky) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send("use leak_in_halves what=e; leak_what_it_was_given what=f")
        said = await thread.says("results:")
    assert "e begins [secret: github token] and ends" in said
    assert "f: [redacted], [secret: known value], [secret: known value], [secret: known value]" in said


async def test_a_seeded_secret_is_on_no_card_of_an_approval_nor_in_the_audit_log(leaky: ProductFolder) -> None:
    leaky.policy(ASKED)
    async with product_here(leaky) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send(f"use leak what={TOKEN}")
        (card,) = await thread.waiting()
        assert_nowhere("the card", json.dumps(card))
        assert "github token" in json.dumps(card["arguments"])
        async with visiting(url) as again, again.thread(thread.thread_id) as reopened:
            (seen,) = await reopened.waiting()
            assert_nowhere("the card of a page that is opened again", json.dumps(seen))
        await thread.approve(card["id"])
        done = await thread.card(card["id"], "approved", result="done")
        assert_nowhere("the decided card", json.dumps(done))
    assert_nowhere("the audit log", "\n".join(entries(leaky)))


async def test_a_form_shows_the_mask_and_what_is_not_touched_in_it_runs_as_it_was(
    leaky: ProductFolder, shop: Workshop
) -> None:
    leaky.policy(ASKED)
    async with product_here(leaky) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send(f"use make what={TOKEN} count=1")
        (card,) = await thread.waiting()
        form = (await ana.get(f"/api/approvals/{card['id']}/form")).body
        assert_nowhere("the form", json.dumps(form))
        mask = form["values"]["what"]
        assert mask.startswith(f"[secret: github token, {len(TOKEN)} characters, #")
        refused = await thread.approve(card["id"], values={"what": "my [secret: github token]", "count": 2})
        assert "mask" in json.dumps(refused)
        assert shop.done == []
        await thread.approve(card["id"], values={"what": f"my {mask}", "count": 2})
        await thread.card(card["id"], "approved", result="done")
    assert shop.done == [f"make my {TOKEN} 2"]


async def test_whoever_may_decide_can_look_at_what_is_hidden_and_nobody_else_sees_it(leaky: ProductFolder) -> None:
    """Rule 12, on the page: a private answer, and the audit log says who looked at which approval."""
    leaky.policy(ASKED)
    async with product_here(leaky) as url, visiting(url) as ana, ana.thread(within=COLD) as thread:
        await thread.send(f"use leak what={TOKEN}")
        (card,) = await thread.waiting()
        seen = await ana.post(f"/api/approvals/{card['id']}/look", {"id": "look-1"})
        (hidden,) = seen.body["secrets"]
        assert hidden["value"] == TOKEN
        assert hidden["name"] in json.dumps(card["arguments"])
        assert seen.body["fingerprint"] == card["fingerprint"]
        await thread.approve(card["id"])
        await thread.card(card["id"], "approved", result="done")
        posts = [entry for entry in thread.entries.values() if entry["kind"] == "post"]
        assert_nowhere("what everybody sees", json.dumps([posts, thread.live_texts, thread.statuses]))
        late = await ana.post(f"/api/approvals/{card['id']}/look", {"id": "look-2"})
        assert late.status == 409
        assert_nowhere("the answer once it is settled", json.dumps(late.body))
    looks = [entry for entry in map(json.loads, entries(leaky)) if entry["status"] == "looked"]
    assert [(look["approval"], look["settled"]["by"]) for look in looks] == [(card["id"], "Ana <web:ana> (requester)")]
    assert_nowhere("the audit log", "\n".join(entries(leaky)))


async def test_a_seeded_secret_is_not_in_the_logs_of_the_process(leaky: ProductFolder) -> None:
    async with product_process(leaky) as product, visiting(product.url) as ana, ana.thread(within=COLD) as thread:
        await all_leaks(thread)
        await product.terminate()
        assert "tool_call" in product.log()
        assert_nowhere("the log", product.log())


def entries(home: ProductFolder) -> list[str]:
    """The entries of the audit log."""
    return [entry for (entry,) in rows_in_records(home, "SELECT entry FROM audit")]
