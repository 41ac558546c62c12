"""A plan in Teams: one post that is updated in place, approvals in the same conversation, and one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.fakes.teams.server import FakeTeams
from tests.support.finance import REQUEST, acts_of, asking_first, finance_company
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.teams.product.conftest import connected
from tests.teams.product.talk import Talk, words


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(asking_first) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, teams: FakeTeams, model: FakeOpenAI) -> ProductFolder:
    """A company with agents, in Teams."""
    return finance_company(ProductFolder(tmp_path, connected(teams)), model)


@pytest.fixture(params=["personal", "channel"])
def anywhere(request: pytest.FixtureRequest, teams: FakeTeams, ana: TeamsPerson) -> Talk:
    """A conversation of Ana's, in places with and without threads."""
    return Talk(teams, ana, {"personal": ana.chat, "channel": teams.channel}[request.param])


async def test_a_plan_is_one_post_and_what_its_tasks_ask_is_asked_in_its_conversation(
    anywhere: Talk, home: ProductFolder
) -> None:
    await anywhere.mentions(REQUEST)
    flag = await anywhere.card("orders › flag", "INV-8")
    await anywhere.says("Plan", "check", "mail")
    assert acts_of(home) == []
    await anywhere.clicks(flag, "approve")
    await anywhere.says("To whom?")
    await anywhere.mentions("to Klee")
    draft = await anywhere.card("mail › draft")
    await anywhere.clicks(draft, "approve")
    await anywhere.says("INV-8 is 0.50 above its order")
    assert acts_of(home) == ["flag INV-8", "draft"]
    await anywhere.says("all 4 tasks done")
    assert len([each for each in anywhere.of_the_bot() if "all 4 tasks done" in words(each)]) == 1
    assert not [each for each in anywhere.of_the_bot() if "of 4 tasks done" in words(each)], "updated in place"
    assert len([each for each in anywhere.of_the_bot() if "INV-8 is 0.50 above" in words(each)]) == 1


async def test_stop_ends_the_plan(anywhere: Talk, home: ProductFolder) -> None:
    await anywhere.mentions(REQUEST)
    flag = await anywhere.card("orders › flag")
    await anywhere.mentions("stop")
    await anywhere.settled(flag, "stopped")
    await anywhere.says("Plan stopped")
    assert acts_of(home) == []
