"""What a person, and all in a channel, may use of the language model in a day."""

from __future__ import annotations

from decimal import Decimal

from bot.budgets import UNLIMITED, DailyBudget, DailyLimits
from bot.domain import Person
from bot.prices import ModelPrices, Prices
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from graph.usage import ModelUse
from tests.bot.conftest import SetClock

DAY = 86_400
PRICES = Prices("EUR", {"large": ModelPrices(Decimal(2), Decimal("0.5"), Decimal(10))})


def answer(given: int, *, cached: int = 0, made: int = 0) -> ModelUse:
    return ModelUse(calls=1, input_tokens=given, cached_tokens=cached, output_tokens=made, seconds=1.0)


async def warned(database: Database, budget: DailyBudget, person_id: str, channel: str = "") -> list[str]:
    async with database.reading() as tx:
        return [each.sentence for each in await budget.warnings(tx, person_id, channel)]


async def test_the_tokens_of_a_day_are_counted_per_person_and_begin_anew(database: Database, clock: SetClock) -> None:
    budget = DailyBudget(database, clock, DailyLimits(1_000))
    await budget.spent("web:ana", "any", answer(600))
    assert await budget.refusal("web:ana") is None
    await budget.spent("web:ana", "any", answer(300, made=100))
    assert await budget.refusal("web:ana") == ("You have used today’s 1,000 tokens. Resets at midnight UTC.")
    assert await budget.refusal("web:ben") is None
    after_a_restart = DailyBudget(database, clock, DailyLimits(1_000))
    assert await after_a_restart.refusal("web:ana") is not None
    clock.move(DAY)
    assert await after_a_restart.refusal("web:ana") is None


async def test_somebodys_accounts_on_two_platforms_have_one_budget(database: Database, clock: SetClock) -> None:
    async with database.writing(UNLOCKED) as tx:
        for person_id, email in (("slack:T1:U1", "ana@x"), ("teams:a:b", "ana@x"), ("web:ben", ""), ("web:cy", "")):
            await threads.remember(tx, Person(person_id, "x", email=email), clock())
        assert await threads.accounts_of(tx, "slack:T1:U1") == ("slack:T1:U1", "teams:a:b")
        assert await threads.accounts_of(tx, "web:ben") == ("web:ben",), "no address is nobody's"
        assert await threads.accounts_of(tx, "web:never-seen") == ("web:never-seen",)
    budget = DailyBudget(database, clock, DailyLimits(1_000))
    await budget.spent("slack:T1:U1", "any", answer(450))
    await budget.spent("teams:a:b", "any", answer(400))
    async with database.reading() as tx:
        keys = {each.key for who in ("slack:T1:U1", "teams:a:b") for each in await budget.warnings(tx, who, "")}
    assert len(keys) == 1, "they are warned once"
    await budget.spent("teams:a:b", "any", answer(150))
    assert await budget.refusal("slack:T1:U1") is not None
    assert await budget.refusal("teams:a:b") is not None
    assert await budget.refusal("web:ben") is None


async def test_without_a_budget_nothing_is_kept(database: Database, clock: SetClock) -> None:
    await DailyBudget(database, clock, UNLIMITED).spent("web:ana", "any", answer(10**8))
    assert await DailyBudget(database, clock, DailyLimits(1)).refusal("web:ana") is None


async def test_a_channels_budget_holds_for_everybody_in_it_and_nowhere_else(
    database: Database, clock: SetClock
) -> None:
    budget = DailyBudget(database, clock, UNLIMITED, of_channel=DailyLimits(1_000))
    await budget.spent("slack:T1:U1", "any", answer(600), "slack:T1:C1")
    await budget.spent("slack:T1:U2", "any", answer(400), "slack:T1:C1")
    refused = await budget.refusal("slack:T1:U3", "slack:T1:C1")
    assert refused == "Today’s 1,000 tokens of this channel are used up. Resets at midnight UTC."
    assert await budget.refusal("slack:T1:U1", "slack:T1:C2") is None
    assert await budget.refusal("slack:T1:U1") is None
    clock.move(DAY)
    assert await budget.refusal("slack:T1:U3", "slack:T1:C1") is None


async def test_at_four_fifths_of_a_budget_people_are_warned(database: Database, clock: SetClock) -> None:
    budget = DailyBudget(database, clock, DailyLimits(1_000), of_channel=DailyLimits(2_000))
    await budget.spent("web:ana", "any", answer(799), "web:c")
    assert await warned(database, budget, "web:ana", "web:c") == []
    await budget.spent("web:ana", "any", answer(1), "web:c")
    of_ana = "You have used 80 % of today’s 1,000 tokens. Resets at midnight UTC."
    assert await warned(database, budget, "web:ana", "web:c") == [of_ana]
    await budget.spent("web:ben", "any", answer(900), "web:c")
    of_channel = "85 % of today’s 2,000 tokens of this channel are used. Resets at midnight UTC."
    assert await warned(database, budget, "web:ana", "web:c") == [of_ana, of_channel]
    await budget.spent("web:ana", "any", answer(300), "web:c")
    assert await warned(database, budget, "web:ana", "web:c") == [], "what is used up is said when a turn is refused"


async def test_a_budget_of_money_counts_each_answer_by_its_price(database: Database, clock: SetClock) -> None:
    budget = DailyBudget(database, clock, DailyLimits(cost=Decimal("0.05")), prices=PRICES)
    await budget.spent("web:ana", "large", answer(10_000, cached=4_000, made=2_600))  # 0.012 + 0.002 + 0.026
    assert await budget.refusal("web:ana") is None
    assert await warned(database, budget, "web:ana") == [
        "You have used 80 % of today’s budget of 0.05 EUR. Resets at midnight UTC."
    ]
    await budget.spent("web:ana", "large", answer(0, made=999))
    assert await budget.refusal("web:ana") is None
    await budget.spent("web:ana", "large", answer(0, made=1))
    assert await budget.refusal("web:ana") == "You have used today’s budget of 0.05 EUR. Resets at midnight UTC."
    assert await budget.refusal("web:ben") is None


async def test_a_channels_budget_of_money_holds_beside_those_of_its_people(database: Database, clock: SetClock) -> None:
    limits = DailyLimits(tokens=1_000_000, cost=Decimal(100))
    budget = DailyBudget(database, clock, limits, of_channel=DailyLimits(cost=Decimal("2.5")), prices=PRICES)
    await budget.spent("web:ana", "large", answer(0, made=210_000), "web:c")
    assert await warned(database, budget, "web:ana", "web:c") == [
        "84 % of today’s budget of 2.50 EUR for this channel is used. Resets at midnight UTC."
    ]
    await budget.spent("web:ben", "large", answer(0, made=40_000), "web:c")
    used_up = "Today’s budget of 2.50 EUR for this channel is used up. Resets at midnight UTC."
    assert await budget.refusal("web:cy", "web:c") == used_up
    assert await budget.refusal("web:ana") is None
