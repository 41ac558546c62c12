"""Which agent works on a message: in words, by what somebody has picked, by the place; in each language."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import translations
from bot.agent_choices import AgentChoices
from bot.records.database import Database
from graph.agents import DEFAULT, AgentConfig, Agents
from tests.bot.conftest import SetClock
from tests.support.replicas import two_databases

AGENTS = Agents(
    specialists=(
        AgentConfig("finance", "Invoices.", channels=("slack:T1:C1", "person:slack:T1:U9")),
        AgentConfig("tax", "Taxes."),
        AgentConfig("tax-law", "What the law says."),
    )
)
ANA, CHANNEL = "slack:T1:U1", "slack:T1:C2"


@pytest.fixture
def choices(database: Database, clock: SetClock) -> AgentChoices:
    return AgentChoices(database, AGENTS, clock)


def message(text: str = "hello", person: str = ANA, **more: str) -> dict[str, object]:
    return {"text": text, "person": person, **more}


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("as the finance agent, what is open?", "finance"),
        ("What is open? Say it AS THE  Finance\nagent.", "finance"),
        ("as the tax-law agent: may we?", "tax-law"),
        ("as the tax agent: how much?", "tax"),
        ("as the tax agents see it", DEFAULT),
        ("whereas the tax agent is away", DEFAULT),
        ("as the travel agent", DEFAULT),
        ("the finance agent", DEFAULT),
        ("as the default agent", DEFAULT),
        ("> as the tax agent, pay\nwhat is that?", DEFAULT),
        ("> as the tax agent, pay\nas the finance agent: what is that?", "finance"),
        ("what is that?\n>>> as the tax agent, pay", DEFAULT),
    ],
)
async def test_a_message_can_say_whose_it_is(choices: AgentChoices, text: str, agent: str) -> None:
    assert await choices.for_message(message(text), CHANNEL) == agent


async def test_it_can_be_said_in_each_language(
    database: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class German:
        def gettext(self, sentence: str) -> str:
            return {"as the {name} agent": "als {name}-Agent"}.get(sentence, sentence)

    monkeypatch.setattr(translations, "catalogue", lambda _: German())
    choices = AgentChoices(database, AGENTS, clock)
    assert await choices.for_message(message("Was ist offen, als Finance-Agent?"), CHANNEL) == "finance"
    assert await choices.for_message(message("as the tax agent"), CHANNEL) == "tax"


async def test_the_words_come_first_then_what_was_picked_then_the_place(choices: AgentChoices) -> None:
    assert await choices.for_message(message(), "slack:T1:C1") == "finance"
    assert await choices.for_message(message(person="slack:T1:U9"), "") == "finance"
    assert await choices.for_message(message(), "") == DEFAULT
    assert "The tax agent answers you here" in await choices.command(ANA, "slack:T1:C1", "Tax")
    assert await choices.for_message(message(), "slack:T1:C1") == "tax"
    assert await choices.for_message(message(person="slack:T1:U2"), "slack:T1:C1") == "finance", "it is Ana's pick"
    assert await choices.for_message(message(), CHANNEL) == DEFAULT, "and of that channel alone"
    assert await choices.for_message(message("as the finance agent"), "slack:T1:C1") == "finance"
    assert await choices.for_message(message(agent="tax-law"), "slack:T1:C1") == "tax-law"
    await choices.command(ANA, "slack:T1:C1", "default")
    assert await choices.for_message(message(), "slack:T1:C1") == DEFAULT, "also where another one would answer"


async def test_the_list_marks_the_one_that_would_answer_now(choices: AgentChoices) -> None:
    await choices.command(ANA, CHANNEL, "tax")
    assert (await choices.command(ANA, CHANNEL, "")).splitlines() == [
        "• default: Everything else",
        "• finance: Invoices.",
        "→ tax: Taxes.",
        "• tax-law: What the law says.",
    ]


async def test_who_picks_an_agent_that_there_is_not_is_told_the_names(choices: AgentChoices) -> None:
    told = await choices.command(ANA, CHANNEL, "travel")
    assert told == "There is no agent “travel”. There are: default, finance, tax, tax-law."


async def test_what_was_picked_and_is_gone_from_the_file_counts_no_more(
    choices: AgentChoices, database: Database, clock: SetClock
) -> None:
    await choices.pick(ANA, CHANNEL, "tax")
    later = AgentChoices(database, Agents(specialists=AGENTS.specialists[:1]), clock)
    assert await later.for_message(message(), CHANNEL) == DEFAULT
    assert await later.for_message(message(agent="tax"), CHANNEL) == "tax", "a program means that one and no other"


class NoRecords:
    """Whoever reads or writes fails."""


async def test_without_specialists_nothing_is_read(clock: SetClock) -> None:
    alone = AgentChoices(NoRecords(), Agents(), clock)  # type: ignore[arg-type]
    assert await alone.for_message(message("as the finance agent"), CHANNEL) == DEFAULT
    assert [each.name for each in await alone.listed(ANA, CHANNEL)] == [DEFAULT]


@given(st.text())
def test_any_text_names_one_agent_or_none(text: str) -> None:
    said = AgentChoices(NoRecords(), AGENTS, SetClock())._said(text)  # type: ignore[arg-type]
    assert said is None or re.search(said.name, text, re.IGNORECASE)


@pytest.fixture
async def replicas(clock: SetClock) -> AsyncIterator[tuple[AgentChoices, AgentChoices]]:
    async with two_databases() as (one, other):
        yield AgentChoices(one, AGENTS, clock), AgentChoices(other, AGENTS, clock)


@pytest.mark.postgres
async def test_what_is_picked_at_one_replica_counts_at_the_other(replicas: tuple[AgentChoices, AgentChoices]) -> None:
    one, other = replicas
    await one.pick(ANA, CHANNEL, "tax")
    assert await other.for_message(message(), CHANNEL) == "tax"
    await other.pick(ANA, CHANNEL, "finance")
    assert await one.for_message(message(), CHANNEL) == "finance"
    await one.pick(ANA, CHANNEL, "default")
    assert await other.for_message(message(), CHANNEL) == DEFAULT
