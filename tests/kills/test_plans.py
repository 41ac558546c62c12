"""The product dies at each durable write of a plan in turn, and every time the plan ends the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from bot.records import tables
from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.brain import wire_problems
from tests.kills.crash_points import COUNTDOWN, DIED, set_countdown
from tests.kills.facts import opened_anew, read_facts
from tests.kills.mortal import MortalProduct, mortal_product
from tests.kills.people import PATIENCE, Ana, insisting
from tests.support.finance import ANSWER, REQUEST, acts_of, brain, finance_company
from tests.support.installations import connected
from tests.support.product import ProductFolder
from tests.support.visitor import Json, Thread, visiting

pytestmark = [pytest.mark.kills, pytest.mark.timeout(900), pytest.mark.sqlite]

FEW_DEATHS, MANY_DEATHS = 6, 40
"""Crash points that are tried, one drawn from each of as many equal stretches of the plan."""
FAR = 1_000_000
ACTS = ["flag INV-8", "draft"]


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents. Whatever it was sent must have been in valid order."""
    async with fake_openai(brain) as server:
        yield server
    assert wire_problems(server) == []


@pytest.fixture
async def home(tmp_path: Path, model: FakeOpenAI) -> ProductFolder:
    """A company with agents."""
    return finance_company(ProductFolder(tmp_path), model)


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product; not started yet."""
    async with mortal_product(home) as product:
        yield product


async def test_a_plan_ends_the_same_at_whichever_write_the_product_dies(
    home: ProductFolder, product: MortalProduct, seed: int, tries: Callable[[int, int], int]
) -> None:
    deaths, countdown = tries(FEW_DEATHS, MANY_DEATHS), home.folder / "countdown"
    set_countdown(countdown, FAR)
    await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown)})
    async with asyncio.TaskGroup() as group:
        reviving = group.create_task(_revive(product, countdown))
        told, lengths = [], []
        for name in ("whole", "whole-again"):
            set_countdown(countdown, FAR)
            told.append(await _plan_of(home, product, name, seed))
            lengths.append(FAR - int(countdown.read_text()))
        points, rng = min(lengths), random.Random(seed)
        assert points > 2 * MANY_DEATHS, "the plan writes less than it should"
        stretch = points / deaths
        for point in (int((n + rng.random()) * stretch) for n in range(deaths)):
            set_countdown(countdown, point)
            told.append(await _plan_of(home, product, f"at{point}", seed))
        countdown.unlink(missing_ok=True)
        assert await product.listening()
        entries = {ana.thread.thread_id: await opened_anew(product.url, ana.thread.thread_id) for ana in told}
        product.ask_to_end()
    assert reviving.result() > deaths * 0.7, "too few of the plans were long enough"

    facts = read_facts(home)
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert facts.waiting() == []
    assert [a for a in facts.attempts if a["status"] == "started"] == []
    assert Counter(acts_of(home)) == {act: len(told) for act in ACTS}, "each was done once"
    assert {a["status"] for a in facts.approvals} == {"approved"}
    for ana in told:
        _ended_well(entries[ana.thread.thread_id])


async def _revive(product: MortalProduct, countdown: Path) -> int:
    """Start the product again whenever it died at a crash point, until it ends well. How often it died."""
    deaths = 0
    while (code := await product.wait()) == DIED:
        deaths += 1
        await product.start("-m", "tests.kills.crash_points", **{COUNTDOWN: str(countdown)})
    assert code == 0, product.log()[-3000:]
    return deaths


@asynccontextmanager
async def _ana(product: MortalProduct, name: str, seed: int) -> AsyncIterator[Ana]:
    async with AsyncExitStack() as stack:
        # The one before may have ended a moment before the process died.
        browsers = [await insisting(lambda: stack.enter_async_context(visiting(product.url, "ana"))) for _ in range(2)]
        thread = await stack.enter_async_context(browsers[0].thread(within=PATIENCE))
        yield Ana(thread, browsers[1], random.Random(f"{seed}:{name}"))


async def _plan_of(home: ProductFolder, product: MortalProduct, name: str, seed: int) -> Ana:
    """A plan from the request to its answer. What broke off in the middle is settled by what is true of it."""
    before = Counter(acts_of(home))
    async with _ana(product, name, seed) as ana:
        await ana.say(REQUEST, times=2)
        decided: set[str] = set()
        while ANSWER not in ana.thread.said:
            card: Json = await ana.thread.until(lambda: _next_card(ana.thread, decided), "a card, or the answer")
            if card is ANSWERED:
                break
            decided.add(card["id"])
            if card["kind"] == "approval":
                await ana.click(ana.other, [card["id"]], "approve")
                continue
            done = Counter(acts_of(home)) - before
            choice = "it_was_done" if any(act.startswith(card["tool"]) for act in done) else "try_again"
            assert (await ana.choose(card["id"], choice)).status == 200
        return ana


ANSWERED: Json = {"kind": "said"}


def _next_card(thread: Thread, decided: set[str]) -> Json | None:
    if ANSWER in thread.said:
        return ANSWERED
    cards = [*thread.approvals("pending"), *(c for c in thread.contents("outcome") if c["status"] == "open")]
    return next((card for card in cards if card["id"] not in decided), None)


def _ended_well(entries: list[Json]) -> None:
    said = [e["content"] for e in entries if e["kind"] == "post"]
    assert [c["text"] for c in said if c["kind"] == "said"] == ["I’ll split this up.", ANSWER]
    (plan,) = [c for c in said if c["kind"] == "plan"]
    assert {task["status"] for task in plan["tasks"]} == {"done"}, plan
    assert [i for i, times in Counter(e["id"] for e in entries).items() if times > 1] == []


async def test_a_plan_goes_on_days_after_its_product_was_killed_with_an_approval_open_in_the_middle(
    home: ProductFolder, product: MortalProduct, seed: int
) -> None:
    await product.start()
    async with _ana(product, "days", seed) as ana:
        await ana.say(REQUEST)
        flag = await _card(ana.thread, "flag")
        await product.kill()
        _let_days_pass(home)
        await product.start()
        await ana.click(ana.other, [flag], "approve")
        draft = await _card(ana.thread, "draft")
        await product.kill()
        await product.start()
        await ana.click(ana.other, [draft], "approve")
        await ana.hears(ANSWER)
        entries = await opened_anew(product.url, ana.thread.thread_id)
    assert acts_of(home) == ACTS
    _ended_well(entries)


async def test_a_plan_that_was_stopped_stays_so_when_the_product_is_killed_right_after(
    home: ProductFolder, product: MortalProduct, seed: int
) -> None:
    await product.start()
    async with _ana(product, "stopped", seed) as ana:
        await ana.say(REQUEST)
        (flag,) = await ana.thread.until(lambda: ana.thread.approvals("pending"), "a card")
        path = f"/api/threads/{quote(ana.thread.thread_id, safe='')}/stop"
        assert (await ana.post(ana.thread.visitor, path, {"id": ana.new_id()})).status == 200
        await product.kill()
        await product.start()
        await ana.thread.card(flag["id"], "superseded")
        await ana.thread.until(lambda: _states(ana.thread) == {"done", "stopped"}, "the plan is stopped")
        results = await ana.click(ana.other, [flag["id"]], "approve")
        assert results[flag["id"]]["kind"] == "already_settled"
        await ana.say("hey there")
        await ana.hears("hello there")
    assert acts_of(home) == []


async def _card(thread: Thread, tool: str) -> str:
    """Wait for the card of a call of this tool; its id."""
    found = await thread.until(
        lambda: [c for c in thread.approvals("pending") if c["tool"] == tool], f"a card of {tool}"
    )
    return str(found[0]["id"])


def _states(thread: Thread) -> set[str]:
    (plan,) = thread.contents("plan")
    return {task["status"] for task in plan["tasks"]}


def _let_days_pass(home: ProductFolder) -> None:
    """Everything in the records happened three days before it did."""
    earlier = {
        tables.plans: ("begun_at",),
        tables.plan_tasks: ("begun_at", "ended_at"),
        tables.approvals: ("asked_at",),
        tables.deliveries: ("accepted_at",),
        tables.threads: ("created_at", "updated_at"),
        tables.posts: ("at",),
    }
    with connected(home.database) as connection:
        for table, columns in earlier.items():
            connection.execute(sa.update(table).values({name: table.c[name] - 3 * 86_400 for name in columns}))
        connection.commit()
