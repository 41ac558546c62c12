"""What was allowed or approved under one policy does not run under a stricter one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from mcp.types import ToolAnnotations

import app
from bot.approvals.requests import ApprovalRequests
from bot.ledger import AttemptLedger
from graph.ports import CallRecord
from tests.fakes.openai_server import FakeOpenAI
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry
from tests.support.visitor import Json, Thread, Visitor, visiting

FOUR_EYES = """
version: 1
rules:
  - name: two people
    match: {tool: "make*"}
    decide: ask
    approvers: [any]
    selfApproval: fourEyes
"""
ALLOWED = """
version: 1
rules:
  - name: all is allowed
    match: {tool: "*"}
    decide: allow
"""
DENIED = ALLOWED.replace("allow\n", "deny\n    reason: Not from chat.\n")

SMALL_IS_ALLOWED = """
version: 1
rules:
  - name: lamps are allowed
    match: {tool: "make*", args: {what: lamp}}
    decide: allow
  - name: the rest is asked about
    match: {tool: "make*"}
    decide: ask
"""
REQUESTER_DECIDES = """
version: 1
rules:
  - {name: the requester decides, match: {}, decide: ask, approvers: [requester], alwaysAllow: true}
"""
NO_CHAIRS = """
version: 1
rules:
  - {name: no chairs, match: {tool: make, args: {what: chair}}, decide: deny, reason: No chairs.}
  - {name: two people, match: {tool: make}, decide: ask, approvers: [any], quorum: 2}
"""
BEN_DECIDES = """
version: 1
rules:
  - name: Ben decides
    match: {tool: "make*"}
    decide: ask
    approvers: ["web:ben"]
"""


async def test_what_waits_for_approval_is_blocked_once_the_product_only_reads(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    workshop_home.variables["AGENT_MODE"] = "readOnly"
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        note = "Please make it in green. " * 20  # longer than what is kept of a result
        approved = {"id": "c1", "approvals": [card["id"]], "verb": "approve", "note": note}
        assert (await ana.post("/api/approvals/decisions", approved)).status == 200
        await thread.says("blocked by policy")
        card = await thread.card(card["id"], "approved", result="Nothing was done.")
    assert card["result"].startswith("Nothing was done. Blocked by policy: "), "the note stands on the card anyway"
    assert card["result_tone"] == "error", "those who approved it elsewhere read nothing but the card"
    assert shop.done == []


async def test_an_approval_given_under_one_rule_is_asked_anew_under_a_stricter_one(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    workshop_home.policy(FOUR_EYES)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread(thread_id) as thread,
    ):
        await thread.approve(card["id"])
        await thread.card(card["id"], "void")
        (again,) = await thread.waiting()
        assert (await thread.approve(again["id"]))["kind"] == "refused"
        assert shop.done == []
        async with ben.thread(thread_id) as bens:
            assert (await bens.approve(again["id"]))["kind"] == "settled"
        await thread.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_an_edit_into_what_is_denied_is_not_said_to_wait_for_somebody_else(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    workshop_home.policy(NO_CHAIRS)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        told = await thread.approve(card["id"], values={"what": "chair"})
        assert told["text"] == "Edited. Someone else must approve your edits."
        await thread.says("blocked by policy")
        await thread.card(card["id"], "approved", result="Nothing was done. Blocked by policy: No chairs.")
        assert (await thread.approve(card["id"]))["text"] == "Already approved by Ana."
    assert shop.done == []


async def test_a_call_that_was_allowed_and_waits_for_a_sign_in_is_asked_about_once_approval_is_required(
    workshop_home: ProductFolder, shop: Workshop, model: FakeOpenAI
) -> None:
    workshop_home.policy(ALLOWED)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make_with_account what=lamp")
        (sign_in,) = await thread.until(lambda: thread.contents("sign_in"))
        thread_id = thread.thread_id
    workshop_home.tool_servers({"workshop": entry(shop, requireApproval=["make_with_account"])})
    shop.signed_in = True
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await ana.post(f"/api/sign-ins/{sign_in['id']}", {"id": "a", "done": True})
        (card,) = await thread.waiting()
        assert shop.done == []
        await thread.approve(card["id"])
        await thread.says("made lamp with the account")
    assert shop.done == ["make_with_account lamp"]


def offer_send(shop: Workshop, **hints: bool) -> None:
    """The workshop has a tool `send`, with these annotations."""

    async def send(what: str) -> str:
        shop.done.append(f"send {what}")
        return f"sent {what}"

    if any(tool.name == "send" for tool in shop.server._tool_manager.list_tools()):
        shop.server.remove_tool("send")
    shop.server.add_tool(send, annotations=ToolAnnotations(**hints))


@pytest.mark.parametrize(("edit", "sent"), [({}, "lamp"), ({"what": "chair"}, "chair")], ids=["as it is", "edited"])
async def test_a_call_that_may_do_more_by_now_than_its_card_warned_of_is_asked_anew(
    workshop_home: ProductFolder, shop: Workshop, edit: dict[str, str], sent: str
) -> None:
    """Rule 12: a trusted server says "does not destroy" when the card is made, and "destroys" when it is clicked."""
    offer_send(shop, destructiveHint=False, openWorldHint=False)
    workshop_home.policy(REQUESTER_DECIDES)
    workshop_home.tool_servers({"workshop": entry(shop, trustAnnotations=True)})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use send what=lamp")
        (card,) = await thread.waiting()
        assert card["risk"] == ["writes"]
        thread_id = thread.thread_id
    offer_send(shop, destructiveHint=True, openWorldHint=False)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        ana.thread() as elsewhere,
        ana.thread(thread_id) as thread,
    ):
        await elsewhere.send("use send what=egg")  # which waits until the tools are listed
        await elsewhere.waiting()
        await thread.approve(card["id"], values=edit or None)
        (again,) = await thread.until(lambda: [c for c in thread.approvals("pending") if c["id"] != card["id"]])
        assert again["risk"] == ["destroys"]
        assert shop.done == []
        await thread.approve(again["id"])
        await thread.says(f"sent {sent}")
    assert shop.done == [f"send {sent}"]


@pytest.mark.parametrize(
    ("once", "now", "risk"),
    [
        ({"readOnlyHint": True}, {"destructiveHint": False}, ["writes"]),
        ({"destructiveHint": False}, {"destructiveHint": True}, ["destroys"]),
        ({"destructiveHint": False}, {"destructiveHint": False, "openWorldHint": True}, ["writes", "reaches outside"]),
    ],
    ids=["writes", "destroys", "reaches outside"],
)
async def test_what_is_always_allowed_is_asked_about_once_it_may_do_more_than_the_card_warned_of(
    workshop_home: ProductFolder,
    shop: Workshop,
    once: dict[str, bool],
    now: dict[str, bool],
    risk: list[str],
) -> None:
    """Rule 12: a trusted server's annotations change while somebody always allows themselves a call of its tool."""
    offer_send(shop, **{"openWorldHint": False, **once})
    workshop_home.policy(REQUESTER_DECIDES)
    workshop_home.tool_servers({"workshop": entry(shop, trustAnnotations=True)})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use send what=lamp")
        (card,) = await thread.waiting()
        always = {"id": "always", "approvals": [card["id"]], "verb": "approve", "always_for": "8 h"}
        assert (await ana.post("/api/approvals/decisions", always)).status == 200
        await thread.says("sent lamp")
        await thread.send("use send what=lamp")
        await thread.until(lambda: len(shop.done) == 2, "it is allowed")
    offer_send(shop, **{"openWorldHint": False, **now})
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use send what=lamp")
        (again,) = await thread.waiting()
        assert again["risk"] == risk
    assert shop.done == ["send lamp"] * 2


@pytest.fixture
def just_judged(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The second attempt of a product waits before it begins: when it does, and until when."""
    begin, calls, judged, may_begin = AttemptLedger.begin, count(1), asyncio.Event(), asyncio.Event()

    async def begin_when_told(ledger: AttemptLedger, record: CallRecord) -> Any:
        if next(calls) == 2:
            judged.set()
            await may_begin.wait()
        return await begin(ledger, record)

    monkeypatch.setattr(AttemptLedger, "begin", begin_when_told)
    return judged, may_begin


async def always_allowed(thread: Thread, card: Json) -> None:
    """Approve, and allow it for a while."""
    always = {"id": card["id"], "approvals": [card["id"]], "verb": "approve", "always_for": "8 h"}
    assert (await thread.visitor.post("/api/approvals/decisions", always)).status == 200


async def revoked(visitor: Visitor) -> None:
    """Revoke what is allowed for a while."""
    (given,) = (await visitor.get("/api/grants")).body["grants"]
    told = await visitor.delete(f"/api/grants/{given['id']}")
    assert told.body["text"] == "Revoked. You’ll be asked next time."


async def test_a_call_that_was_just_judged_is_asked_about_once_what_allows_it_is_revoked(
    workshop_home: ProductFolder, shop: Workshop, just_judged: tuple[asyncio.Event, asyncio.Event]
) -> None:
    """Rule 3: that people will be asked again holds from when it is said, also for a call that is about to begin."""
    judged, may_begin = just_judged
    workshop_home.policy(REQUESTER_DECIDES)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        await always_allowed(thread, card)
        await thread.says("made lamp")
        await thread.send("use make what=lamp")
        await judged.wait()
        await revoked(ana)
        may_begin.set()
        (again,) = await thread.waiting()
        assert again["id"] != card["id"]
    assert shop.done == ["make lamp 1"]


async def test_a_call_that_was_approved_itself_needs_no_standing_approval(
    workshop_home: ProductFolder, shop: Workshop, just_judged: tuple[asyncio.Event, asyncio.Event]
) -> None:
    judged, may_begin = just_judged
    workshop_home.policy(REQUESTER_DECIDES)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=shade;make what=lamp")
        shade, lamp = await thread.waiting(2)
        await thread.approve(shade["id"])
        await thread.card(shade["id"], "approved", result="made shade")
        await always_allowed(thread, lamp)
        await judged.wait()
        await revoked(ana)
        may_begin.set()
        await thread.says("made lamp")
        assert len(thread.approvals()) == 2
    assert shop.done == ["make shade 1", "make lamp 1"]


@pytest.mark.parametrize("mode", ["default", "safeWrite"])
async def test_an_approval_still_holds_after_a_restart_under_the_same_policy(
    workshop_home: ProductFolder, shop: Workshop, mode: str
) -> None:
    workshop_home.variables["AGENT_MODE"] = mode
    workshop_home.policy(FOUR_EYES.replace("fourEyes", "confirm"))
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.approve(card["id"])
        await thread.says("made lamp")
    assert shop.done == ["make lamp 1"]


async def test_an_approval_is_of_no_use_to_a_later_asking_after_the_edited_call_was_allowed(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 3: the call was edited into one that needs nobody, and waits for a sign-in. By the policy of afterwards
    somebody else has to approve it, and nobody has."""
    workshop_home.policy(SMALL_IS_ALLOWED)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make_with_account what=chair")
        (card,) = await thread.waiting()
        await thread.approve(card["id"], values={"what": "lamp"})
        (sign_in,) = await thread.until(lambda: thread.contents("sign_in"))
        thread_id = thread.thread_id
    workshop_home.policy(BEN_DECIDES)
    shop.signed_in = True
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread(thread_id) as thread,
    ):
        await ana.post(f"/api/sign-ins/{sign_in['id']}", {"id": "a", "done": True})
        (again,) = await thread.waiting()
        assert shop.done == []
        assert (await thread.approve(again["id"]))["kind"] == "refused"
        async with ben.thread(thread_id) as bens:
            assert (await bens.approve(again["id"]))["kind"] == "settled"
        await thread.says("made lamp with the account")
    assert shop.done == ["make_with_account lamp"]


@asynccontextmanager
async def ends_once_it_has_asked(home: ProductFolder) -> AsyncIterator[str]:
    """The process ends when a card is shown, and before the graph has kept that it was asked for."""
    ask = ApprovalRequests.ask

    async def ask_and_stay(self: ApprovalRequests, *what: Any) -> Any:
        await ask(self, *what)
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ApprovalRequests, "ask", ask_and_stay)
        patched.setattr(app, "SHUTDOWN_SECONDS", 0.0)
        async with product_here(home) as url:
            yield url


async def test_a_card_that_was_shown_before_the_policy_changed_is_no_approval_under_the_stricter_one(
    workshop_home: ProductFolder, shop: Workshop
) -> None:
    """Rule 3 and rule 6: whom the card asked is what its approval counts for, whatever was asked for in its place."""
    async with ends_once_it_has_asked(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    workshop_home.policy(BEN_DECIDES)
    async with (
        product_here(workshop_home) as url,
        visiting(url) as ana,
        visiting(url, "ben") as ben,
        ana.thread(thread_id) as thread,
    ):
        await thread.approve(card["id"])
        await thread.card(card["id"], "void")
        (again,) = await thread.waiting()
        assert (await thread.approve(again["id"]))["kind"] == "refused"
        assert shop.done == []
        async with ben.thread(thread_id) as bens:
            assert (await bens.approve(again["id"]))["kind"] == "settled"
        await thread.says("made lamp")
    assert shop.done == ["make lamp 1"]


@pytest.mark.parametrize(("policy", "done"), [(ALLOWED, ["make lamp 1"]), (DENIED, [])])
async def test_a_card_that_nobody_has_to_decide_any_more_says_so(
    workshop_home: ProductFolder, shop: Workshop, policy: str, done: list[str]
) -> None:
    """Rule 5: a click on it is not told that something was approved which is not asked for."""
    async with ends_once_it_has_asked(workshop_home) as url, visiting(url) as ana, ana.thread() as thread:
        await thread.send("use make what=lamp")
        (card,) = await thread.waiting()
        thread_id = thread.thread_id
    workshop_home.policy(policy)
    async with product_here(workshop_home) as url, visiting(url) as ana, ana.thread(thread_id) as thread:
        await thread.says("results")
        await thread.card(card["id"], "superseded")
        assert (await thread.approve(card["id"]))["kind"] != "settled"
    assert shop.done == done
