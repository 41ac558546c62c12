"""What turns have used of language models, and what that cost, for whoever may know it: a person their own, operators
everybody's. Costs are computed when they are read, by the prices of now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from bot.approvals.directory import PeopleDirectory
from bot.dates import day_of, number_in_words
from bot.domain import Clock, Person
from bot.prices import Prices
from bot.records import model_usage
from bot.records.database import Database, Pauses, Transaction
from bot.records.model_usage import GroupedBy, UsageOf, UsageSum
from bot.task_threads import turn_of_call
from graph.agents import name_in
from graph.usage import ModelUse, Usage, added, total_tokens
from translations import gettext as _
from translations import ngettext

if TYPE_CHECKING:
    from graph.state import Turn

RECENT_DAYS = 30
"""Days that a person's own usage goes back, today among them."""
MOST_GROUPS = 1_000
"""People, channels or others that operators are told of at once."""
NO_USE = ModelUse(calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, seconds=0.0)
_SMALLEST = Decimal("0.01")
_SAID = "said:"
"""How the ids of what the model said begin (`bot.outbox.said`)."""


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """Usage added up, over models."""

    key: str
    """Of what: a person, a channel (empty: direct chats), an agent, a model or a day; empty: of one's own time."""
    use: ModelUse
    models: tuple[str, ...]
    """Their names, in order."""
    cost: Decimal | None
    """`None`: there are no prices, or none for one of the models."""


@dataclass(frozen=True, slots=True)
class OwnUsage:
    """What somebody has used, with all their accounts."""

    today: UsageTotal
    recent: UsageTotal
    """In `RECENT_DAYS` days."""
    days: tuple[UsageTotal, ...]
    """The days of them on which anything was used, the newest first."""
    currency: str
    """Empty: there are no prices."""


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """What the turn of an answer has used, with the tasks of its plans."""

    total: UsageTotal
    currency: str


@dataclass(frozen=True, slots=True)
class UsageOfEverybody:
    """What everybody has used between two days."""

    since: str
    until: str
    groups: tuple[UsageTotal, ...]
    """Those with the most tokens first."""
    is_cut: bool
    """There are more, with fewer tokens."""
    currency: str


async def keep_usage(tx: Transaction, turn: Turn, usage: Usage, now: float) -> None:
    """Keep what a turn has used so far, in the place of what was kept of it before."""
    await model_usage.keep(tx, usage_of(turn, now), usage)


def usage_of(turn: Turn, now: float) -> UsageOf:
    """Whose the usage of a turn is."""
    return UsageOf(
        turn=turn["delivery"],
        message=turn_of_call(f"{turn['delivery']}.0.0"),
        agent=name_in(turn),
        thread_id=turn["thread_id"],
        person_id=turn["requester"],
        channel=turn["channel"],
        day=day_of(now).isoformat(),
        at=now,
    )


class UsageReports:
    """Reads it.

    Args:
        is_operator: whether somebody may see what belongs to others.
        note_reading: writes into the audit log that they did.
    """

    def __init__(
        self,
        database: Database,
        directory: PeopleDirectory,
        clock: Clock,
        prices: Prices,
        *,
        is_operator: Callable[[Person], Awaitable[bool]],
        note_reading: Callable[[Person, str], Awaitable[None]],
    ) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock
        self._prices = prices
        self._is_operator = is_operator
        self._note_reading = note_reading

    async def own(self, person: Person) -> OwnUsage:
        """What somebody has used themselves."""
        accounts = await self._directory.accounts_of(person.person_id)
        today = day_of(self._clock())
        since = today - timedelta(days=RECENT_DAYS - 1)
        async with self._database.reading() as tx:
            sums = await model_usage.of_people(tx, accounts, since.isoformat())
        days = sorted(_by_key(sums, self._prices), key=lambda total: total.key, reverse=True)
        of_today = [each for each in sums if each.key == today.isoformat()]
        return OwnUsage(
            today=total_of("", of_today, self._prices),
            recent=total_of("", sums, self._prices),
            days=tuple(days),
            currency=self._prices.currency,
        )

    async def of_answer(self, post_id: str, person: Person) -> AnswerUsage | None:
        """What the turn of something that the model said has used; `None`: nothing is known, or it is somebody else's
        turn, and they are no operator."""
        if not post_id.startswith(_SAID):
            return None
        message = turn_of_call(f"{post_id.removeprefix(_SAID)}.0")
        async with self._database.reading() as tx:
            sums = await model_usage.of_message(tx, message)
        if not sums:
            return None
        if any(each.key != person.person_id for each in sums):
            accounts = await self._directory.accounts_of(person.person_id)
            if any(each.key not in accounts for each in sums):
                if not await self._is_operator(person):
                    return None
                await self._note_reading(person, "usage")
        return AnswerUsage(total_of("", sums, self._prices), self._prices.currency)

    async def of_everybody(
        self, operator: Person, by: GroupedBy, since: date | None = None, until: date | None = None
    ) -> UsageOfEverybody | None:
        """What everybody has used; `None`: this is no operator.

        Args:
            since: the first day; `None`: `RECENT_DAYS` before the last one.
            until: the last day; `None`: today.
        """
        if not await self._is_operator(operator):
            return None
        last = until or day_of(self._clock())
        first = since or date.fromordinal(max(last.toordinal() - RECENT_DAYS + 1, 1))
        await self._note_reading(operator, "usage")
        days = first.isoformat(), last.isoformat()
        totals = _by_key(await self._between(by, *days), self._prices)
        totals.sort(key=lambda total: (-total_tokens(total.use), total.key))
        return UsageOfEverybody(*days, tuple(totals[:MOST_GROUPS]), len(totals) > MOST_GROUPS, self._prices.currency)

    async def _between(self, by: GroupedBy, first: str, last: str) -> Sequence[UsageSum]:
        """What everybody has used from one day to another, by model. Day by day: SQLite's statements run in the event
        loop, and one over a year holds it for seconds."""
        used: dict[tuple[str, str], UsageSum] = {}
        pauses = Pauses()
        async with self._database.reading() as tx:
            day = await model_usage.next_day(tx, first, last)
            while day is not None:
                for each in await model_usage.of_day(tx, by, day):
                    known = used.get((each.key, each.model))
                    used[each.key, each.model] = each if known is None else model_usage.together(known, each)
                await pauses.when_due()
                day = await model_usage.next_day(tx, (date.fromisoformat(day) + timedelta(days=1)).isoformat(), last)
        return list(used.values())


def _by_key(sums: Sequence[UsageSum], prices: Prices) -> list[UsageTotal]:
    grouped: dict[str, list[UsageSum]] = {}
    for each in sums:
        grouped.setdefault(each.key, []).append(each)
    return [total_of(key, of_key, prices) for key, of_key in grouped.items()]


def total_of(key: str, sums: Iterable[UsageSum], prices: Prices) -> UsageTotal:
    """Adds usage up, and says what it costs by the prices of now."""
    use, cost, names = NO_USE, Decimal(0) if prices.currency else None, set[str]()
    for each in sums:
        of_model = ModelUse(
            calls=each.calls,
            input_tokens=each.input_tokens,
            cached_tokens=each.cached_tokens,
            output_tokens=each.output_tokens,
            seconds=each.seconds,
        )
        use = added(use, of_model)
        price = prices.cost_of(each.model, of_model)
        cost = None if cost is None or price is None else cost + price
        names.add(each.model)
    return UsageTotal(key, use, tuple(sorted(names)), cost)


# ------------------------------------------------------------------------------------------------ in words


def use_in_words(total: UsageTotal, currency: str) -> str:
    """Usage in a line: "3 model calls · 12,345 tokens in (8,000 cached), 678 out · 4.2 s · 0.03 EUR"."""
    use = total.use
    calls = ngettext("{count} model call", "{count} model calls", use["calls"])
    given = _("{input} tokens in, {output} out")
    if use["cached_tokens"]:
        given = _("{input} tokens in ({cached} cached), {output} out")
    parts = [
        calls.format(count=number_in_words(use["calls"])),
        given.format(
            input=number_in_words(use["input_tokens"]),
            cached=number_in_words(use["cached_tokens"]),
            output=number_in_words(use["output_tokens"]),
        ),
        _("{seconds} s").format(seconds=number_in_words(use["seconds"], decimals=1)),
    ]
    if currency:
        parts.append(cost_in_words(total.cost, currency))
    return " · ".join(parts)


def cost_in_words(cost: Decimal | None, currency: str) -> str:
    """A cost: "1.23 EUR", or that nobody has set the price."""
    if cost is None:
        return _("price not set")
    if 0 < cost < _SMALLEST:
        return _("less than {amount} {currency}").format(
            amount=number_in_words(float(_SMALLEST), decimals=2), currency=currency
        )
    return f"{number_in_words(float(cost), decimals=2)} {currency}"


def own_usage_title() -> str:
    """The heading of what somebody has used."""
    return _("What your requests used of the language model")


def own_usage_in_words(own: OwnUsage) -> list[tuple[str, str]]:
    """What somebody has used, in lines: of when, and what."""
    return [
        (_("Today"), use_in_words(own.today, own.currency)),
        (_("{count} days").format(count=RECENT_DAYS), use_in_words(own.recent, own.currency)),
    ]
