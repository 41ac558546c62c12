"""Who is an operator."""

from __future__ import annotations

import pytest

from bot.approvals.directory import PeopleDirectory
from bot.domain import Person
from bot.identity.operators import Operators, named_by
from bot.identity.principal import Principal
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.settings import Settings, SettingsError, load_settings
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.policies.builders import a_policy

GROUP = "slack-group:T1:S1"
ANA, ANA_IN_SLACK, BEN = "web:ana", "slack:T1:UANA", "web:ben"


@pytest.fixture
async def directory(database: Database, clock: SetClock) -> PeopleDirectory:
    """Ana is the same in Slack and on the page."""
    web, slack = RecordingPlatform("web"), RecordingPlatform("slack")
    web.emails[ANA] = slack.emails[ANA_IN_SLACK] = "ana@example.com"
    slack.groups[GROUP] = {ANA_IN_SLACK: True, "slack:T1:UBEN": False}
    async with database.writing(UNLOCKED) as tx:
        for person_id in (ANA, ANA_IN_SLACK):
            await threads.remember(tx, Person(person_id, "Ana", email="ana@example.com"), clock())
    return PeopleDirectory({"web": web, "slack": slack}, database, clock, patience=0.5)


@pytest.mark.parametrize("references", [[ANA], [ANA_IN_SLACK], [GROUP], [BEN, GROUP]])
async def test_an_operator_is_one_with_any_account(directory: PeopleDirectory, references: list[str]) -> None:
    operators = Operators(references, directory)
    assert await operators.includes(Person(ANA, "Ana"))
    assert await operators.includes(Principal(Person(ANA, "Ana"), accounts=frozenset({ANA, ANA_IN_SLACK})))


@pytest.mark.parametrize("references", [[], [BEN]])
async def test_nobody_else_is_one(directory: PeopleDirectory, references: list[str]) -> None:
    assert not await Operators(references, directory).includes(Person(ANA, "Ana"))


async def test_who_cannot_be_looked_up_is_none(directory: PeopleDirectory) -> None:
    assert not await Operators([GROUP], directory).includes(Person(BEN, "Ben"))
    assert not await Operators(["entra-group:t:g"], directory).includes(Person(ANA, "Ana"))


def test_an_operator_that_could_be_nobody_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERATORS", "web:ana, somebody")
    with pytest.raises(SettingsError, match="OPERATORS: has 2 entries, and number 2 is neither a person nor a group"):
        load_settings(None)
    assert Settings(_env_file=None, operators="web:ana,slack-group:T1:S3").operators == ("web:ana", "slack-group:T1:S3")


def test_operators_and_whoever_a_rule_of_now_names_are_named() -> None:
    policies = [
        a_policy("match: {requester: 'web:asks'}, decide: allow"),
        a_policy(
            "match: {requester: [web:one, 'slack-group:T1:S1']}, decide: ask, approvers: [any, web:two], "
            "quorum: 2, escalateAfter: 1h, escalateTo: ['web:three'], routeTo: ['slack:T1:C4']"
        ),
    ]
    is_named = named_by([BEN], lambda: policies[-1])
    named = [BEN, "web:one", "web:two", "web:three", "slack:T1:C4"]
    assert all(map(is_named, named))
    assert not any(map(is_named, ("web:asks", "web:eve", "web:on")))
    policies.pop()
    assert is_named("web:asks")
    assert not is_named("web:one"), "the rules were read anew"
