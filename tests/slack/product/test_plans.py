"""A plan in Slack: one post that is updated in place, approvals in the same thread, and one answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import as_, connected
from tests.slack.product.talk import Json, Talk, words
from tests.support.finance import ANSWER, REQUEST, acts_of, asking_first, finance_company
from tests.support.product import ProductFolder
from tests.support.slack_people import SlackPerson


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model of all agents."""
    async with fake_openai(asking_first) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, slack: FakeSlack, model: FakeOpenAI) -> ProductFolder:
    """A company with agents, in Slack."""
    return finance_company(ProductFolder(tmp_path, connected(slack)), model)


def plans(talk: Talk) -> list[Json]:
    """The posts of plans in the thread: made of task cards, so what can be read of them here is their text."""
    return [each for each in talk.of_the_bot() if str(each["text"]).startswith("Plan")]


@pytest.mark.usefixtures("both_modes")
async def test_a_plan_is_one_post_and_what_its_tasks_ask_is_asked_in_its_thread(
    talk: Talk, home: ProductFolder, ben: SlackPerson
) -> None:
    await talk.mentions(REQUEST)
    flag = await talk.card("orders › flag", "INV-8")
    (plan,) = plans(talk)
    assert acts_of(home) == []
    await as_(ben, talk).mentions("hello")
    await as_(ben, talk).told("Waiting on someone else", "orders › flag")
    await talk.clicks(flag, "approve")
    await talk.says("To whom?")
    await talk.replies("to Klee")
    draft = await talk.card("mail › draft")
    await talk.clicks(draft, "approve")
    await talk.says("INV-8 is 0.50 above its order")
    assert acts_of(home) == ["flag INV-8", "draft"]
    await talk.slack.until(lambda: "all 4 tasks done" in str(talk.now(plan)["text"]))
    assert len(plans(talk)) == 1, "updated in place"
    answers = [each for each in talk.of_the_bot() if "INV-8 is 0.50 above" in words(each)]
    assert len(answers) == 1, ANSWER


async def test_nobody_else_decides_answers_or_stops_what_a_task_asks(
    talk: Talk, home: ProductFolder, ben: SlackPerson
) -> None:
    await talk.mentions(REQUEST)
    flag, bens = await talk.card("orders › flag"), as_(ben, talk)
    await bens.clicks(flag, "approve")
    await bens.told("can’t approve this")
    await bens.mentions("stop")
    await bens.told("Waiting on someone else", "orders › flag")
    assert acts_of(home) == []
    await talk.clicks(flag, "approve")
    await talk.says("To whom?")
    await bens.replies("to Mallory")
    await bens.mentions("to Mallory")
    await bens.told("Waiting on someone else", "an answer")
    await talk.replies("to Klee")
    await talk.card("mail › draft")
    await bens.clicks(flag, "approve")
    await bens.told("Already approved by Ana")
    assert acts_of(home) == ["flag INV-8"]


async def test_stop_in_the_thread_ends_the_plan(talk: Talk, home: ProductFolder) -> None:
    await talk.mentions(REQUEST)
    flag = await talk.card("orders › flag")
    (plan,) = plans(talk)
    await talk.mentions("stop")
    await talk.settled(flag, "stopped")
    await talk.slack.until(lambda: "Plan stopped" in str(talk.now(plan)["text"]))
    assert acts_of(home) == []
