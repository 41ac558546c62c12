"""What was done for an answer is listed with it: each call with how it stands, when, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.crypto import NewId
from bot.domain import CallActivity, Said
from bot.ledger import AttemptLedger
from bot.outbox import said
from bot.views import MOST_ACTIVITIES
from graph.ports import Begun, CallRecord, Failed, OutcomeUnknown, Spoken, Succeeded
from policies.model import Tool
from tests.bot.conftest import RecordingPlatform, SetClock, until
from tests.bot.services_stage import ANA, THREAD, Stage
from tests.bot.test_kept_returns import ledger_of

LOOK = Tool(server="workshop", name="look", title="Look around", reads_only=True)
ANSWER = Spoken("m1.1", "Two lamps.")


@pytest.fixture
def ledger(stage: Stage, new_id: NewId) -> AttemptLedger:
    return ledger_of(stage, new_id)


def look(call_id: str) -> CallRecord:
    """A call of Ana's that reads."""
    return CallRecord(THREAD, call_id, ANA.person_id, LOOK, {}, "d" * 64, None)


async def looks(ledger: AttemptLedger, call_id: str, outcome: Succeeded | Failed) -> None:
    """It is made, and this comes of it."""
    begun = await ledger.begin(look(call_id))
    assert isinstance(begun, Begun)
    await ledger.finish(look(call_id), begun.attempt, outcome)


async def shown(stage: Stage, platform: RecordingPlatform, spoken: Spoken = ANSWER) -> Said:
    """What is said, as it is shown."""
    async with stage.database.writing(THREAD) as tx:
        await stage.outbox.say(tx, said(THREAD, spoken))

    def found() -> list[Any]:
        posts = [post for post in platform.shown.values() if post.post_id == f"said:{spoken.message_id}"]
        return [post.content for post in posts]

    (content,) = await until(found)
    assert isinstance(content, Said)
    return content


async def test_calls_are_listed_as_they_were_asked_for(
    stage: Stage, platform: RecordingPlatform, clock: SetClock, ledger: AttemptLedger
) -> None:
    began = clock()
    assert await ledger.begin(look("m1.0.1")) == Begun(1)
    await looks(ledger, "m1.0.0", Failed("nothing to see"))
    await looks(ledger, "m1.0.10", Succeeded("a lamp"))
    clock.move(3)
    await ledger.finish(look("m1.0.1"), 1, Succeeded("two lamps", owner=ANA.person_id))
    await looks(ledger, "m10.0.0", Succeeded("of another turn"))
    answer = await shown(stage, platform)
    call = CallActivity("m1.0.0", "workshop", "look", "Look around", "failed", began, began, "nothing to see")
    assert answer.activity == (
        call,
        replace(call, call_id="m1.0.1", state="done", ended_at=began + 3, result=""),
        replace(call, call_id="m1.0.10", state="done", result="a lamp"),
    )
    assert answer.earlier_calls == 0


async def test_of_a_call_that_is_tried_again_there_is_the_last_try(
    stage: Stage, platform: RecordingPlatform, ledger: AttemptLedger
) -> None:
    record = replace(look("m1.0.0"), tool=replace(LOOK, repeatable=True))
    await ledger.begin(record)
    await ledger.begin(record)  # after a crash
    await ledger.finish(record, 2, Succeeded("a lamp"))
    assert [(call.state, call.result) for call in (await shown(stage, platform)).activity] == [("done", "a lamp")]


async def test_what_nobody_knows_is_said(stage: Stage, platform: RecordingPlatform, ledger: AttemptLedger) -> None:
    await ledger.begin(look("m1.0.0"))
    await ledger.outcome_unknown(look("m1.0.0"), 1, OutcomeUnknown("gone"))
    assert [call.state for call in (await shown(stage, platform)).activity] == ["unknown"]


async def test_of_many_calls_the_newest_are_listed_and_the_rest_is_counted(
    stage: Stage, platform: RecordingPlatform, clock: SetClock, ledger: AttemptLedger
) -> None:
    for number in range(MOST_ACTIVITIES + 3):
        await looks(ledger, f"m1.0.{number}", Succeeded("a lamp"))
        clock.move(1)
    answer = await shown(stage, platform)
    assert [call.call_id for call in answer.activity] == [f"m1.0.{n}" for n in range(3, MOST_ACTIVITIES + 3)]
    assert answer.earlier_calls == 3


@pytest.mark.parametrize("spoken", [Spoken("m1.1", "I look further.", final=False), Spoken("m1.0", "No need to look.")])
async def test_only_an_answer_after_calls_has_a_list(
    stage: Stage, platform: RecordingPlatform, ledger: AttemptLedger, spoken: Spoken
) -> None:
    await looks(ledger, "m1.0.0", Succeeded("a lamp"))
    assert (await shown(stage, platform, spoken)).activity == ()
    assert (await shown(stage, platform, Spoken("m1.2", "Two."))).activity
