"""What turns have used of language models: kept once for each turn, and shown to whom it concerns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

import pytest

from bot.approvals.directory import PeopleDirectory
from bot.budgets import UNLIMITED, DailyBudget
from bot.domain import Person
from bot.prices import ModelPrices, Prices
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.usage import MOST_GROUPS, UsageReports, keep_usage, use_in_words
from graph.state import Turn
from graph.usage import ModelUse, Usage, added, with_use
from tests.bot.conftest import SetClock

ANA = Person("web:ana", "Ana", email="ana@example.com")
ANA_IN_SLACK = Person("slack:T1:U1", "Ana", email="ana@example.com")
BEN = Person("web:ben", "Ben")
DAY = 86_400.0
PRICES = Prices("EUR", {"large": ModelPrices(Decimal(2), Decimal("0.5"), Decimal(10))})


def use(given: int, made: int, *, cached: int = 0, calls: int = 1) -> ModelUse:
    return ModelUse(calls=calls, input_tokens=given, cached_tokens=cached, output_tokens=made, seconds=1.5)


def turn_of(person: Person, delivery: str, *, channel: str = "", agent: str = "") -> Turn:
    turn = Turn(
        delivery=delivery,
        requester=person.person_id,
        requester_name=person.name,
        time_zone="UTC",
        platform="web",
        channel=channel,
        thread_id="web:t1",
    )
    if agent:
        turn["agent"] = agent
    return turn


@dataclass
class Usages:
    """Usage in real records, and who has read others'."""

    database: Database
    clock: SetClock
    read: list[str] = field(default_factory=list)

    async def keep(self, turn: Turn, usage: Usage) -> None:
        async with self.database.writing(UNLOCKED) as tx:
            await keep_usage(tx, turn, usage, self.clock())

    def reports(self, prices: Prices = PRICES, operators: Sequence[Person] = ()) -> UsageReports:
        async def is_operator(person: Person) -> bool:
            return person in operators

        async def note(person: Person, what: str) -> None:
            self.read.append(f"{person.person_id} {what}")

        directory = PeopleDirectory({}, self.database, self.clock)
        return UsageReports(self.database, directory, self.clock, prices, is_operator=is_operator, note_reading=note)


@pytest.fixture
def usages(database: Database, clock: SetClock) -> Usages:
    return Usages(database, clock)


async def test_what_is_kept_again_replaces_what_was_kept(usages: Usages) -> None:
    turn = turn_of(ANA, "m1")
    await usages.keep(turn, {"large": use(100, 10)})
    await usages.keep(turn, {"large": use(300, 40, cached=50, calls=2), "small": use(7, 1)})
    own = await usages.reports().own(ANA)
    assert own.today.use == use(307, 41, cached=50, calls=3) | {"seconds": 3.0}
    assert own.today.models == ("large", "small")


async def test_a_turn_that_goes_on_tomorrow_stays_with_the_day_it_began(usages: Usages) -> None:
    turn = turn_of(ANA, "m1")
    await usages.keep(turn, {"large": use(100, 10)})
    usages.clock.now += DAY
    await usages.keep(turn, {"large": use(200, 20)})
    own = await usages.reports().own(ANA)
    assert own.today.use["calls"] == 0
    assert [each.use["input_tokens"] for each in own.days] == [200]


async def test_what_gave_no_answer_adds_to_what_is_kept_of_its_turn(usages: Usages) -> None:
    turn, budget = turn_of(ANA, "m1"), DailyBudget(usages.database, usages.clock, UNLIMITED)
    await budget.lost(turn, "large", use(70, 3))
    await usages.keep(turn, {"large": use(100, 10)})
    await budget.lost(turn, "large", use(80, 4))
    await usages.keep(turn, {"large": use(100, 10)})
    own = await usages.reports().own(ANA)
    of_answer = await usages.reports().of_answer("said:m1.0", ANA)
    assert own.today.use == use(250, 17, calls=3) | {"seconds": 4.5}
    assert of_answer is not None
    assert of_answer.total.use == own.today.use


async def test_own_usage_goes_back_thirty_days_and_no_further(usages: Usages) -> None:
    await usages.keep(turn_of(ANA, "m1"), {"large": use(100, 10)})
    usages.clock.now += 29 * DAY
    assert (await usages.reports().own(ANA)).recent.use["input_tokens"] == 100
    usages.clock.now += DAY
    assert (await usages.reports().own(ANA)).recent.use["input_tokens"] == 0


async def test_tasks_of_plans_belong_to_the_answer_that_they_are_for(usages: Usages) -> None:
    await usages.keep(turn_of(ANA, "m1"), {"large": use(100, 10)})
    await usages.keep(turn_of(ANA, "m1.0.0/find", agent="finder"), {"large": use(50, 5)})
    await usages.keep(turn_of(ANA, "m11"), {"large": use(9, 9)})
    found = await usages.reports().of_answer("said:m1.2", ANA)
    assert found is not None
    assert found.total.use["input_tokens"] == 150


async def test_of_an_answer_only_the_one_who_asked_and_operators_know_it(usages: Usages) -> None:
    await usages.keep(turn_of(ANA, "m1"), {"large": use(100, 10)})
    reports = usages.reports(operators=[BEN])
    assert await reports.of_answer("said:m1.0", Person("web:chloe", "Chloe")) is None
    assert not usages.read
    assert await reports.of_answer("said:m1.0", BEN) is not None
    assert usages.read == ["web:ben usage"]
    assert await reports.of_answer("card:m1.0", ANA) is None
    assert await reports.of_answer("said:m9.0", ANA) is None


async def test_everybodys_usage_is_for_operators_and_the_audit_log_says_so(usages: Usages) -> None:
    await usages.keep(turn_of(ANA, "m1", channel="slack:T1:C1"), {"large": use(100, 10)})
    await usages.keep(turn_of(BEN, "m2", agent="finder"), {"small": use(900, 10)})
    reports = usages.reports(operators=[ANA])
    assert await reports.of_everybody(BEN, "person") is None
    grouped = {}
    for by in ("person", "channel", "agent", "model", "day"):
        found = await reports.of_everybody(ANA, by)  # type: ignore[arg-type]
        assert found is not None
        grouped[by] = [each.key for each in found.groups]
    today = (await reports.own(ANA)).days[0].key
    assert grouped == {
        "person": ["web:ben", "web:ana"],
        "channel": ["", "slack:T1:C1"],
        "agent": ["finder", "default"],
        "model": ["small", "large"],
        "day": [today],
    }
    assert usages.read == ["web:ana usage"] * 5
    before = await reports.of_everybody(ANA, "person", date(2020, 1, 1), date(2020, 1, 2))
    assert before is not None
    assert not before.groups


async def test_who_used_the_most_comes_first_whatever_models_it_were(usages: Usages) -> None:
    await usages.keep(turn_of(ANA, "m1"), {"large": use(500, 10), "small": use(500, 10)})
    await usages.keep(turn_of(BEN, "m2"), {"large": use(900, 10)})
    found = await usages.reports(operators=[ANA]).of_everybody(ANA, "person")
    assert found is not None
    assert [(each.key, each.use["input_tokens"]) for each in found.groups] == [("web:ana", 1_000), ("web:ben", 900)]


async def test_of_more_than_can_be_told_those_are_left_out_that_used_least_and_no_part_of_a_sum(
    usages: Usages,
) -> None:
    async with usages.database.writing(UNLOCKED) as tx:
        for number in range(MOST_GROUPS + 1):
            who = Person(f"web:{number}", "Somebody")
            each_used = {"large": use(5_000 - number, 1), "small": use(1, 1)}
            await keep_usage(tx, turn_of(who, f"m{number}"), each_used, usages.clock())
    found = await usages.reports(operators=[ANA]).of_everybody(ANA, "person")
    assert found is not None
    assert (len(found.groups), found.is_cut) == (MOST_GROUPS, True)
    assert all(each.models == ("large", "small") and each.use["calls"] == 2 for each in found.groups)
    assert found.groups[-1].key == f"web:{MOST_GROUPS - 1}"
    by_day = await usages.reports(operators=[ANA]).of_everybody(ANA, "day")
    assert by_day is not None
    assert ([each.use["calls"] for each in by_day.groups], by_day.is_cut) == ([2 * MOST_GROUPS + 2], False)


async def test_what_was_used_in_a_long_time_is_added_up_while_others_have_their_turn(usages: Usages) -> None:
    days = 200
    async with usages.database.writing(UNLOCKED) as tx:
        for number in range(days):
            each_used = {"large": use(10, 1), "small": use(1, 1)}
            await keep_usage(tx, turn_of(ANA, f"m{number}"), each_used, usages.clock() - number * DAY)
    first = date.fromtimestamp(usages.clock()) - timedelta(days=2 * days)
    asking = asyncio.ensure_future(usages.reports(operators=[ANA]).of_everybody(ANA, "person", first))
    turns = 0
    while not asking.done():
        await asyncio.sleep(0)
        turns += 1
    found = await asking
    assert found is not None
    (total,) = found.groups
    assert (total.use["calls"], total.use["input_tokens"], total.models) == (2 * days, 11 * days, ("large", "small"))
    assert turns > 5


async def test_before_the_first_day_that_there_is_nothing_was_used(usages: Usages) -> None:
    found = await usages.reports(operators=[ANA]).of_everybody(ANA, "day", until=date(1, 1, 2))
    assert found is not None
    assert (found.since, found.groups) == ("0001-01-01", ())


@pytest.mark.parametrize(
    ("model", "used", "words"),
    [
        ("large", use(1_000_000, 100_000, cached=400_000), "2.40 EUR"),
        ("large", use(10, 1), "less than 0.01 EUR"),
        ("large", use(0, 0), "0.00 EUR"),
        ("unheard of", use(0, 0), "0.00 EUR"),
        ("unheard of", use(1_000, 1), "price not set"),
    ],
)
async def test_a_cost_is_computed_when_it_is_read(usages: Usages, model: str, used: ModelUse, words: str) -> None:
    await usages.keep(turn_of(ANA, "m1"), {model: used})
    own = await usages.reports().own(ANA)
    assert use_in_words(own.today, own.currency).endswith(f" · {words}")
    without = await usages.reports(Prices()).own(ANA)
    assert (without.today.cost, without.currency) == (None, "")
    assert "EUR" not in use_in_words(without.today, without.currency)


def test_usage_adds_up_by_model() -> None:
    usage = with_use(with_use({}, "large", use(1, 2)), "large", use(3, 4, cached=1))
    assert with_use(usage, "small", use(5, 6)) == {"large": added(use(1, 2), use(3, 4, cached=1)), "small": use(5, 6)}
