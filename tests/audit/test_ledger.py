"""Rule 4, in the records: an attempt begins when its request leaves, and one that asked may have acted."""

from __future__ import annotations

from dataclasses import replace

from bot.records import attempts
from bot.records.locks import UNLOCKED
from bot.views import outcome_view
from graph.ports import (
    TRIED_BEFORE,
    AttemptUnknown,
    Beginning,
    Begun,
    Failed,
    NotApproved,
    OutcomeUnknown,
    Recorded,
    SettledByPerson,
    Succeeded,
)
from tests.audit.calls import NOON, tool
from tests.audit.test_log import Records, call, records  # noqa: F401  # the fixture

CALL_ID = "m1.0.0"
GONE = OutcomeUnknown("shop was not there any more")


async def recalled(records: Records, *, repeatable: bool = False) -> object:  # noqa: F811
    return await records.ledger.recall(CALL_ID, repeatable=repeatable)


async def status(records: Records) -> str:  # noqa: F811
    async with records.database.reading() as tx:
        latest = await attempts.latest(tx, CALL_ID)
    return latest.status if latest else "none"


async def test_recalling_a_call_writes_nothing(records: Records) -> None:  # noqa: F811
    assert await recalled(records) == Beginning(NOON)
    assert await status(records) == "none"


async def test_what_failed_before_its_request_left_is_never_seen_as_started(records: Records) -> None:  # noqa: F811
    failed = Failed("shop is unavailable. Nothing was called.")
    assert await records.ledger.unsent(replace(call(), recalled_at=NOON - 9), failed) == Begun(1)
    assert await recalled(records) == Recorded(failed)
    (entry,) = records.entries()
    assert (entry["status"], entry["duration"]) == ("failed", 9.0)


async def test_so_it_is_with_a_missing_account_and_the_call_may_be_made_then(records: Records) -> None:  # noqa: F811
    assert await records.ledger.unsent(replace(call(), recalled_at=NOON - 9), None) == Begun(1)
    assert await recalled(records) == Beginning(NOON)
    assert await records.ledger.begin(call()) == Begun(2)
    assert records.entries() == []


async def test_what_may_not_run_is_not_recorded_as_failed_either(records: Records) -> None:  # noqa: F811
    assert isinstance(await records.ledger.unsent(replace(call(), permitted=False), Failed("x")), NotApproved)
    assert await status(records) == "none"


async def test_what_was_started_and_never_ended_is_unknown_when_it_is_recalled(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    assert await recalled(records) == AttemptUnknown(1)
    assert records.statuses() == ["unknown"]


async def test_a_call_that_asked_goes_on_as_the_same_attempt(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    await records.ledger.waits(call(), 1)
    assert await recalled(records) == Beginning(NOON, waits=True)
    assert await records.ledger.begin(replace(call(), goes_on=True)) == Begun(1)
    assert await status(records) == "started"
    await records.ledger.finish(call(), 1, Succeeded("made"))
    assert records.statuses() == ["done"]


async def test_one_that_asked_and_waits_no_more_is_unknown_and_not_made_again(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    await records.ledger.waits(call(), 1)
    assert await records.ledger.unknown_after_question(call(), GONE) == AttemptUnknown(1, GONE.text)
    assert await records.ledger.begin(call()) == AttemptUnknown(1, GONE.text)


async def test_not_even_when_whoever_calls_does_not_know_that_it_asked(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    await records.ledger.waits(call(), 1)
    assert await records.ledger.begin(call()) == AttemptUnknown(1)


async def test_one_that_may_be_repeated_is_made_again(records: Records) -> None:  # noqa: F811
    reading = call(tool(repeatable=True))
    await records.ledger.begin(reading)
    await records.ledger.waits(call(), 1)
    assert await records.ledger.begin(reading) == Begun(2)


async def test_a_question_that_an_earlier_version_took_for_nothing_done_is_unknown(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    await records.ledger.did_nothing(call(), 1)
    assert await records.ledger.unknown_after_question(call(), GONE) == AttemptUnknown(2, GONE.text)


async def test_one_that_asked_and_is_given_up_was_not_simply_not_made(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    await records.ledger.waits(call(), 1)
    assert await records.ledger.close(CALL_ID, repeatable=False) == AttemptUnknown(1)


async def test_nor_was_one_that_may_be_repeated_though_nobody_is_asked_what_came_of_it(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call(tool(repeatable=True)))
    await records.ledger.waits(call(), 1)
    known = await records.ledger.close(CALL_ID, repeatable=True)
    assert isinstance(known, Recorded)
    assert isinstance(known.outcome, Failed)
    assert "unknown whether it did anything" in known.outcome.text
    assert [entry["status"] for entry in records.entries()] == ["failed"]


async def repeated(records: Records) -> None:  # noqa: F811
    """A call that may be repeated, and is: its first try asked something, or was cut off."""
    await records.ledger.begin(call(tool(repeatable=True)))
    await records.ledger.waits(call(), 1)
    assert await records.ledger.begin(call(tool(repeatable=True))) == Begun(2)


async def test_a_repeated_call_that_fails_before_it_is_sent_may_have_acted_in_its_first_try(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call(tool(repeatable=True)))
    await records.ledger.waits(call(), 1)
    known = await records.ledger.unsent(call(tool(repeatable=True)), Failed("shop is down. Nothing was called."))
    assert known == Recorded(Failed(f"shop is down. Nothing was called. {TRIED_BEFORE}"))
    assert await recalled(records, repeatable=True) == known


async def test_nor_was_a_repeated_call_simply_not_made_whose_second_try_did_nothing(records: Records) -> None:  # noqa: F811
    await repeated(records)
    await records.ledger.did_nothing(call(), 2)
    known = await records.ledger.close(CALL_ID, repeatable=True)
    assert known == Recorded(Failed(f"the call was not made. {TRIED_BEFORE}"))


async def test_what_a_repeated_call_returned_in_the_end_is_all_that_is_told(records: Records) -> None:  # noqa: F811
    await repeated(records)
    await records.ledger.finish(call(), 2, Succeeded("made"))
    assert await recalled(records, repeatable=True) == Recorded(Succeeded("made"))


async def test_what_the_server_said_is_on_the_card_and_told_to_the_model(records: Records) -> None:  # noqa: F811
    await records.ledger.begin(call())
    said = OutcomeUnknown("shop gave no answer (HTTP 422). It said: half done")
    assert await records.ledger.outcome_unknown(call(), 1, said) == AttemptUnknown(1, said.text)
    assert await recalled(records) == AttemptUnknown(1, said.text)
    async with records.database.writing(UNLOCKED) as tx:
        latest = await attempts.latest(tx, CALL_ID)
        assert latest is not None
        view = await outcome_view(tx, latest.attempt_id)
        await attempts.choose(tx, latest.attempt_id, "skip", "Ana", key="click")
    assert view is not None
    assert view.known == said.text
    assert await recalled(records) == SettledByPerson(was_done=False, by="Ana", text=said.text)


async def test_what_it_said_to_somebodys_account_is_on_no_card(records: Records) -> None:  # noqa: F811
    """Rule 11: the card is everybody's."""
    await records.ledger.begin(call())
    await records.ledger.outcome_unknown(call(), 1, OutcomeUnknown("mail of Dr. Brown", owner="web:ana"))
    async with records.database.reading() as tx:
        latest = await attempts.latest(tx, CALL_ID)
        assert latest is not None
        view = await outcome_view(tx, latest.attempt_id)
    assert view is not None
    assert view.known == ""
    assert await recalled(records) == AttemptUnknown(1, "mail of Dr. Brown", "web:ana")
