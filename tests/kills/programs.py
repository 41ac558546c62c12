"""Ana's other agents, which call tools through the product while it is being killed; and Ana, who is asked about it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from tests.kills.facts import AT_REST_WITHIN, Facts, facts_at_rest, key_of
from tests.kills.mortal import MortalProduct
from tests.kills.people import PATIENCE, Ana, insisting
from tests.support.gateway_program import Called, GatewayProgram
from tests.support.product import ProductFolder
from tests.support.visitor import Thread, Visitor, visiting

ACT, LOOK = "effects__act", "effects__look"


@asynccontextmanager
async def ana_at(product: MortalProduct) -> AsyncIterator[Ana]:
    """Ana with the page open."""
    async with AsyncExitStack() as stack:
        browser = await insisting(lambda: stack.enter_async_context(visiting(product.url, "ana")))
        thread = await stack.enter_async_context(browser.thread(within=PATIENCE))
        yield Ana(thread, browser, random.Random(0))


async def asked_about(thread: Thread, key: str) -> str:
    """Wait until Ana is asked whether a call with this key may be made; the approval's id."""
    found: str = await thread.until(lambda: _waiting(thread, "approval", key), f"an approval of {key}")
    return found


async def asked_what_came_of(thread: Thread, key: str) -> str:
    """Wait until Ana is asked whether a call with this key was made; the outcome's id."""
    found: str = await thread.until(lambda: _waiting(thread, "outcome", key), f"an outcome of {key}")
    return found


async def approves(ana: Ana, key: str, browser: Visitor | None = None) -> str:
    """Ana approves a call with this key, once she is asked, in either of her browsers; the approval's id."""
    approval_id = await asked_about(ana.thread, key)
    results = await ana.click(browser or ana.other, [approval_id], "approve")
    assert results[approval_id]["kind"] == "settled", results
    return approval_id


async def result_of(program: GatewayProgram, tool: str, key: str, where: Callable[[], str] | None = None) -> Called:
    """The result of a call, which is made again until it is there. `where`: the address for each try; that of the
    program when not given."""

    async def again() -> Called:
        return await program.at(where() if where is not None else program.url).call(tool, key=key)

    while (called := await insisting(again)).still_waits:
        pass
    return called


async def happens(condition: Callable[[], bool], what: str) -> None:
    """Wait until something holds of files or of what a program was told."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"did not come: {what}") from None


async def programs_at_rest(home: ProductFolder, address: str | None = None) -> Facts:
    """What is on disk once nothing waits any more and all results are known to have been delivered, which is noted just
    after. The product runs."""
    found = await facts_at_rest(home, address)
    async with asyncio.timeout(AT_REST_WITHIN):
        while any(call["delivered_at"] is None for call in found.gateway_calls):
            await asyncio.sleep(0.02)
            found = await facts_at_rest(home, address)
    return found


def check_programs(facts: Facts) -> None:
    """Every call of a program has ended, and nothing waits or was given up."""
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert facts.waiting() == []
    assert {call["status"] for call in facts.gateway_calls} <= {"ended"}


def approvals_of(facts: Facts, key: str) -> list[str]:
    """What became of the approvals of calls with this key, in the order in which they were asked for: PostgreSQL gives
    rows back in any."""
    found = [approval for approval in facts.approvals if key_of(approval) == key]
    return [approval["status"] for approval in sorted(found, key=lambda approval: approval["asked_at"])]


def _waiting(thread: Thread, kind: str, key: str) -> str | None:
    for item in [*thread.asked, *thread.through_programs]:
        card = item["card"]
        if card and card["kind"] == kind and any(each["value"] == key for each in card["arguments"]):
            return str(item["id"])
    return None
