"""Budgets of one person and of one channel: tokens of the language model in a day, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bot.dates import day_of, number_in_words
from bot.domain import Clock
from bot.limits import NO_LIMIT
from bot.prices import NO_PRICES, Prices
from bot.records import daily_usage, model_usage, threads
from bot.records.daily_usage import UsedInDay
from bot.records.database import Database, Transaction
from bot.records.locks import UNLOCKED
from bot.records.model_usage import UsageOf
from bot.usage import usage_of
from graph.usage import ModelUse, total_tokens
from translations import gettext as _

if TYPE_CHECKING:
    from graph.state import Turn

WARNS_AT = Decimal("0.8")
"""Part of a budget from which on people are told."""


@dataclass(frozen=True, slots=True)
class DailyLimits:
    """What may be used of the language model in a day (UTC)."""

    tokens: int = NO_LIMIT
    cost: Decimal = Decimal(NO_LIMIT)
    """In the currency of the prices."""

    def __bool__(self) -> bool:
        return self.tokens != NO_LIMIT or self.cost != NO_LIMIT


UNLIMITED = DailyLimits()


@dataclass(frozen=True, slots=True)
class BudgetWarning:
    """Most of a budget is used. Whoever it is for is told once."""

    key: str
    """The same for all warnings of one budget and day."""
    sentence: str
    is_of_person: bool
    """Whether it is for the person alone; else for everybody in the channel."""


class DailyBudget:
    """Limits what a person may use of the language model in a day (UTC), with all their accounts together, and what may
    be used in a channel. Fills `graph.ports.Budget`.

    Args:
        of_person: of each of them.
        of_channel: of all people in a channel together.
        prices: by which an answer is counted when it comes. A model without a price costs nothing.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        of_person: DailyLimits,
        *,
        of_channel: DailyLimits = UNLIMITED,
        prices: Prices = NO_PRICES,
    ) -> None:
        self._database = database
        self._clock = clock
        self._of_person = of_person
        self._of_channel = of_channel
        self._prices = prices

    async def refusal(self, person_id: str, channel: str = "") -> str | None:
        """Returns the sentence that tells somebody that one of today's budgets is used up; `None`: none is.

        Args:
            channel: in which they ask; empty: in a direct chat.
        """
        if not self._has_limit(channel):
            return None
        async with self._database.reading() as tx:
            budgets = await self._budgets(tx, person_id, channel)
        return next((each.refusal() for each in budgets if each.used >= each.most), None)

    async def spent(self, person_id: str, model: str, use: ModelUse, channel: str = "") -> None:
        """Records what an answer came to; nothing is kept while there is no limit."""
        tokens, cost = total_tokens(use), self._prices.cost_of(model, use) or Decimal(0)
        if not tokens or not self._has_limit(channel):
            return
        async with self._database.writing_apart(UNLOCKED) as tx:  # each statement adds to what is there
            if self._of_person:
                await daily_usage.add(tx, person_id, self._today(), tokens, cost)
            if channel and self._of_channel:
                await daily_usage.add(tx, _channel_name(channel), self._today(), tokens, cost)

    async def lost(self, turn: Turn, model: str, use: ModelUse) -> None:
        """Records what went into tries that gave no answer in a turn, which keeps nothing of them."""
        await self.lost_of(usage_of(turn, self._clock()), model, use)

    async def lost_of(self, of: UsageOf, model: str, use: ModelUse) -> None:
        """The same, also where it is no turn."""
        async with self._database.writing_apart(UNLOCKED) as tx:
            await model_usage.add_lost(tx, of, model, use)
        await self.spent(of.person_id, model, use, of.channel)

    async def warnings(self, tx: Transaction, person_id: str, channel: str) -> Sequence[BudgetWarning]:
        """Of the budgets of which at least `WARNS_AT` is used, but not all: that is said when the next turn is
        refused."""
        if not self._has_limit(channel):
            return ()
        budgets = await self._budgets(tx, person_id, channel)
        return [
            BudgetWarning(f"budget:{self._today()}:{each.name}", each.warning(), each.is_of_person)
            for each in budgets
            if WARNS_AT * each.most <= each.used < each.most
        ]

    def _has_limit(self, channel: str) -> bool:
        return bool(self._of_person or (channel and self._of_channel))

    async def _budgets(self, tx: Transaction, person_id: str, channel: str) -> Sequence[_Budget]:
        """Those that there are for this person and this channel, with what is used of them today."""
        found: list[_Budget] = []
        if self._of_person:
            accounts = await threads.accounts_of(tx, person_id)
            used = await daily_usage.of_day(tx, accounts, self._today())
            found += self._compared(accounts[0], self._of_person, used, is_of_person=True)
        if channel and self._of_channel:
            name = _channel_name(channel)
            used = await daily_usage.of_day(tx, [name], self._today())
            found += self._compared(name, self._of_channel, used, is_of_person=False)
        return found

    def _compared(self, name: str, limits: DailyLimits, used: UsedInDay, *, is_of_person: bool) -> Iterator[_Budget]:
        if limits.tokens != NO_LIMIT:
            yield _Budget(name, Decimal(used.tokens), Decimal(limits.tokens), "", is_of_person)
        if limits.cost != NO_LIMIT:
            yield _Budget(f"cost:{name}", used.cost, limits.cost, self._prices.currency, is_of_person)

    def _today(self) -> str:
        return day_of(self._clock()).isoformat()


@dataclass(frozen=True, slots=True)
class _Budget:
    """What may be used in a day, and is used."""

    name: str
    """Whose, and of what: the same for all accounts of one human."""
    used: Decimal
    most: Decimal
    currency: str
    """Empty: it is in tokens."""
    is_of_person: bool
    """Else of a channel."""

    def refusal(self) -> str:
        """That it is used up."""
        if self.currency:
            of_person = _("You have used today’s budget of {amount}. Resets at midnight UTC.")
            of_channel = _("Today’s budget of {amount} for this channel is used up. Resets at midnight UTC.")
        else:
            of_person = _("You have used today’s {amount} tokens. Resets at midnight UTC.")
            of_channel = _("Today’s {amount} tokens of this channel are used up. Resets at midnight UTC.")
        return (of_person if self.is_of_person else of_channel).format(amount=self._amount())

    def warning(self) -> str:
        """How much of it is used."""
        if self.currency:
            of_person = _("You have used {percent} % of today’s budget of {amount}. Resets at midnight UTC.")
            of_channel = _(
                "{percent} % of today’s budget of {amount} for this channel is used. Resets at midnight UTC."
            )
        else:
            of_person = _("You have used {percent} % of today’s {amount} tokens. Resets at midnight UTC.")
            of_channel = _("{percent} % of today’s {amount} tokens of this channel are used. Resets at midnight UTC.")
        told = of_person if self.is_of_person else of_channel
        return told.format(percent=int(100 * self.used / self.most), amount=self._amount())

    def _amount(self) -> str:
        if not self.currency:
            return number_in_words(int(self.most))
        decimals = max(2, -int(self.most.normalize().as_tuple().exponent))
        return f"{number_in_words(float(self.most), decimals=decimals)} {self.currency}"


def _channel_name(channel: str) -> str:
    """What stands for a channel where persons are counted."""
    return f"channel:{channel}"
