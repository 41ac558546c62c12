"""A call of another agent runs, waits for people, and hands over what came of it, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.domain import Person, Refused, Settled
from bot.gateway.calls import HANDED_SECONDS, GatewayLimits, ledger_call_id
from bot.gateway.views import GatewayCaller, GatewayCallView, GatewayRefusal
from bot.limits import NO_LIMIT
from bot.platform import PostFailed
from bot.records import attempts, deliveries, gateway_calls
from bot.records.database import Transaction
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from graph.ports import AccountNeeded, OutcomeUnknown, QuestionPut, Succeeded
from policies.approvers import DURATIONS
from tests.bot.conftest import until
from tests.gateway.core.stage import ANA, BEN, OPS, GatewayStage

RETURNED = {"content": [{"type": "text", "text": "fine"}], "structuredContent": {"k": 1}}


@pytest.fixture(autouse=True)
def returning(stage: GatewayStage) -> None:
    """Each tool returns the same."""
    stage.bench.outcomes |= {name: Succeeded("fine", returned=RETURNED) for name in stage.bench.names}


async def test_an_allowed_call_runs_and_gives_what_the_tool_returned(stage: GatewayStage) -> None:
    begun = await stage.begin("free")
    assert isinstance(begun, GatewayCallView) and (begun.status, begun.result) == ("running", None)
    waiting = asyncio.create_task(stage.calls.wait(begun.gateway_call_id, begun.changed_at, 60.0))
    await stage.work()
    ended = await waiting
    assert ended is not None and ended.result is not None
    assert (ended.status, ended.result.is_error, ended.result.text) == ("ended", False, "")
    assert (ended.result.content, ended.result.structured) == (RETURNED["content"], {"k": 1})


async def test_a_denied_call_is_an_error_with_the_reason_and_its_tool_is_not_listed(stage: GatewayStage) -> None:
    view = await stage.called("deny_it")
    assert view.result is not None and view.result.is_error
    assert "not here" in view.result.text
    listed = await stage.calls.tools(GatewayCaller(ANA, frozenset({ANA.person_id}), "editor"))
    assert [tool.name for tool in listed] == ["free", "ask", "ask_again", "ask_there", "ask_soon"]
    assert stage.bench.called == []


async def test_the_same_call_while_it_waits_is_the_same_approval_and_anothers_is_not(stage: GatewayStage) -> None:
    first, again = await stage.called("ask"), await stage.called("ask")
    assert again.gateway_call_id == first.gateway_call_id
    of_another = await stage.called("ask", client="crawler")
    of_ben = await stage.called("ask", by=BEN)
    different = await stage.called("ask", {"k": 2})
    views = [first, of_another, of_ben, different]
    assert len({view.waits_for.subject for view in views if view.waits_for}) == 4


async def test_what_is_approved_runs_once_and_is_handed_over_until_it_was_delivered(stage: GatewayStage) -> None:
    view = await stage.called("ask")
    assert (view.status, stage.bench.called) == ("waiting", [])
    assert view.waits_for is not None and "s: ask is waiting for approval by" in view.waits_for.text
    assert isinstance(await stage.decides(BEN, view), Settled)
    await stage.work()
    again = await stage.called("ask")  # nobody has fetched the result
    assert (again.gateway_call_id, again.status, len(stage.bench.called)) == (view.gateway_call_id, "ended", 1)
    await stage.fetched(again)
    anew = await stage.called("ask")
    assert (anew.gateway_call_id != view.gateway_call_id, anew.status, len(stage.bench.called)) == (True, "waiting", 1)


@pytest.mark.parametrize("ending", ["approved", "rejected", "stopped"])
async def test_each_step_of_a_call_is_told_once_to_whoever_measures(stage: GatewayStage, ending: str) -> None:
    view = await stage.called("ask")
    async with stage.database.reading() as tx:
        row = await gateway_calls.get(tx, view.gateway_call_id)
    assert row is not None
    if ending == "stopped":
        async with stage.database.writing(row.thread_id) as tx:
            await deliveries.add(tx, Delivery("stop", row.thread_id, "stop", {}, True, 0.0, 0.0))
    else:
        await stage.decides(BEN, view, "approve" if ending == "approved" else "reject")
    await stage.work()
    assert [(each.ran, each.ending, each.trouble) for each in stage.handled] == [
        ("began", "waits", ""),
        ("was ended" if ending == "stopped" else "resumed", "done", ""),
    ]
    assert {each.turn["requester"] for each in stage.handled if each.turn} == {ANA.person_id}
    assert [len(each.resumed) for each in stage.handled] == [0, 0 if ending == "stopped" else 1]


async def test_a_result_that_nobody_fetches_counts_for_a_day(stage: GatewayStage) -> None:
    first = await stage.called("free")
    stage.clock.move(24 * 3600 - 1.0)
    assert (await stage.called("free")).gateway_call_id == first.gateway_call_id
    stage.clock.move(1.0)
    assert (await stage.called("free")).gateway_call_id != first.gateway_call_id


async def test_nothing_is_kept_of_what_was_delivered_an_hour_ago(stage: GatewayStage) -> None:
    view, task = await stage.called("free"), await stage.called("free", {"k": 2}, task_seconds=7200.0)
    await stage.fetched(view)
    await stage.fetched(task)
    stage.clock.move(3601.0)
    async with stage.calls.running(), asyncio.timeout(20):
        while await stage.calls.wait(view.gateway_call_id, 0.0, 0.0) is not None:
            await asyncio.sleep(0.005)
        assert (await stage.now(task)).result is not None
    ids = (ledger_call_id(each.gateway_call_id) for each in (view, task))
    async with stage.database.reading() as tx:
        made = [await attempts.latest(tx, each) for each in ids]
        kept = [await attempts.returned_by(tx, each.attempt_id) for each in made if each is not None]
    assert kept == [None, RETURNED]


async def test_edited_arguments_run_as_edited_and_the_result_says_so(stage: GatewayStage) -> None:
    stage.bench.schemas["ask"] = {"type": "object", "properties": {"k": {"type": "integer"}}}
    sent: list[Any] = []
    stage.bench.outcomes["ask"] = lambda arguments: sent.append(arguments) or Succeeded("fine", returned=RETURNED)
    view = await stage.called("ask")
    assert isinstance(await stage.decides(BEN, view, arguments={"k": "2"}), Settled)
    await stage.work()
    result = (await stage.now(view)).result
    assert result is not None and (result.is_error, result.changed, sent) == (False, True, [{"k": 2}])
    assert result.text.startswith("Approved with changes") and result.content == RETURNED["content"]


async def test_what_somebody_always_allows_one_program_another_asks_for_anew(stage: GatewayStage) -> None:
    first = await stage.called("ask_again")
    assert isinstance(await stage.decides(ANA, first, always_for=DURATIONS["1 h"]), Settled)
    await stage.work()
    await stage.fetched(await stage.now(first))
    other = await stage.called("ask_again", client="another")
    again = await stage.called("ask_again")
    assert (other.status, again.status, len(stage.bench.called)) == ("waiting", "ended", 2)
    (view,) = await stage.parts.services.queries.standing_approvals(ANA)
    assert view.client == "editor"


async def test_what_is_rejected_is_an_error_with_the_reason_and_what_to_do_instead(stage: GatewayStage) -> None:
    view = await stage.called("ask")
    await stage.decides(BEN, view, "reject", reason="not today")
    await stage.work()
    result = (await stage.now(view)).result
    assert result is not None and result.is_error
    reason, _, advice = result.text.partition("\n\n")
    assert reason == "Rejected by Ben. Reason: not today"
    assert advice.startswith("Do not try to get the same done in another way")


async def test_what_nobody_decides_expires(stage: GatewayStage) -> None:
    view = await stage.called("ask_soon")
    stage.clock.move(3600.0)
    await stage.work()
    result = (await stage.now(view)).result
    assert result is not None and result.is_error and result.text.startswith("Expired")
    assert stage.bench.called == []


async def test_a_program_decides_nothing_that_was_asked_through_mcp(stage: GatewayStage) -> None:
    view = await stage.called("ask")
    refused = await stage.decides(ANA, view, via="api")
    assert isinstance(refused, Refused) and refused.text.startswith("Requested through /mcp")
    assert (await stage.now(view)).status == "waiting"
    assert isinstance(await stage.decides(ANA, view), Settled)


async def test_where_a_rule_routes_it_the_caller_gets_no_card_and_that_channel_decides(stage: GatewayStage) -> None:
    view = await stage.called("ask_there")
    assert [card.lane for card in await stage.cards(view)] == [OPS]
    assert isinstance(await stage.decides(ANA, view), Refused)  # the caller is not in that channel
    assert isinstance(await stage.decides(BEN, view), Settled)


async def test_without_a_rule_people_are_asked_where_the_gateway_asks_or_the_caller_is(stage: GatewayStage) -> None:
    own = await stage.called("ask")
    assert [(card.place, card.lane.partition(":mcp.")[0]) for card in await stage.cards(own)] == [(None, "slack:T1")]
    async with stage.database.reading() as tx:
        kept = await gateway_calls.get(tx, own.gateway_call_id)
    assert kept is not None and kept.thread_id == f"slack:T1:mcp.{own.gateway_call_id}"
    stage.restart(place=OPS)
    routed = await stage.called("ask", {"k": 2})
    assert [card.lane for card in await stage.cards(routed)] == [OPS]


async def test_a_card_that_cannot_be_shown_where_the_gateway_asks_is_shown_to_the_caller(stage: GatewayStage) -> None:
    stage.restart(place=OPS)
    stage.chat.failures = [PostFailed("channel_not_found", permanent=True)]
    with capture_logs() as logs:
        view = await stage.called("ask")
        await until(lambda: stage.chat.done)
    assert [(line["place"], line["named_by"]) for line in logs if line["event"] == "approval_not_shown"] == [
        (OPS, "GATEWAY_PLACE")
    ]
    told = (await stage.now(view)).waits_for
    assert told is not None and told.text.endswith("(in a direct message in Slack).")
    nobody = Person("issuer:nobody", "Nobody")
    stage.chat.failures = [PostFailed("channel_not_found", permanent=True)]
    unseen = await stage.called("ask", by=nobody)
    await until(lambda: not stage.chat.failures)
    async with asyncio.timeout(20):
        while (told := (await stage.now(unseen)).waits_for) and "couldn’t be shown to anyone" not in told.text:
            await asyncio.sleep(0.005)
    assert told is not None and "in the channel" not in told.text


async def test_who_can_be_asked_nowhere_is_told_so(stage: GatewayStage) -> None:
    nobody = ANA.__class__("issuer:nobody", "Nobody")
    view = await stage.called("ask", by=nobody)
    assert view.result is not None and "no place where they could be asked" in view.result.text
    assert not await stage.is_anything_asked()
    allowed, routed = await stage.called("free", by=nobody), await stage.called("ask_there", by=nobody)
    assert (allowed.status, [card.lane for card in await stage.cards(routed)]) == ("ended", [OPS])


async def test_what_only_a_caller_without_a_place_could_answer_ends_and_approvals_are_asked_where_the_gateway_asks(
    stage: GatewayStage,
) -> None:
    stage.restart(place=OPS)
    nobody = Person("issuer:nobody", "Nobody")
    assert [card.lane for card in await stage.cards(await stage.called("ask", by=nobody))] == [OPS]
    stage.bench.outcomes["free"] = OutcomeUnknown("no answer")
    unknown = await stage.called("free", by=nobody)
    assert unknown.result is not None and "no place where anybody could be asked" in unknown.result.text
    async with stage.database.reading() as tx:
        assert await attempts.unknown_in(tx, f"issuer:mcp.{unknown.gateway_call_id}") == []
    stage.bench.outcomes["free"] = AccountNeeded("s", "accounts.example.com")
    no_account = await stage.called("free", {"k": 2}, by=nobody)
    assert no_account.result is not None and "can turn on the page or a chat" in no_account.result.text
    question = QuestionPut(1, "Which seat?", (), {})
    stage.bench.outcomes["free"] = lambda _: Succeeded("none") if stage.bench.callers[-1].answers else question
    asked = await stage.called("free", {"k": 3}, by=nobody)
    assert asked.status == "ended" and [each.action for each in stage.bench.callers[-1].answers] == ["cancel"]


async def test_whoever_waits_or_looks_reads_no_arguments_which_may_be_megabytes(
    stage: GatewayStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await stage.called("ask", {"k": 1, "text": "x" * 500_000}, task_seconds=60.0)
    read: list[object] = []
    first = Transaction.first

    async def noted(self: Transaction, *what: Any) -> Any:
        row = await first(self, *what)
        read.append(getattr(row, "state", None))
        return row

    monkeypatch.setattr(Transaction, "first", noted)
    ana = GatewayCaller(ANA, frozenset({ANA.person_id}), "editor")
    for _ in range(3):
        assert await stage.calls.wait(view.gateway_call_id, view.changed_at, 0.0) is not None
    assert await stage.calls.view(ana, view.gateway_call_id) is not None
    assert await stage.calls.cancel(ana, view.gateway_call_id) is not None
    assert len(read) >= 5 and not any(read)


async def test_what_is_taken_back_is_asked_of_nobody_any_more(stage: GatewayStage) -> None:
    view = await stage.called("ask", task_seconds=60.0)
    ana = GatewayCaller(ANA, frozenset({ANA.person_id}), "editor")
    assert (
        await stage.calls.cancel(GatewayCaller(BEN, frozenset({BEN.person_id}), "editor"), view.gateway_call_id) is None
    )
    cancelled = await stage.calls.cancel(ana, view.gateway_call_id)
    assert cancelled is not None and (cancelled.status, cancelled.cancelled) == ("ended", True)
    await stage.work()
    assert not await stage.is_anything_asked() and stage.bench.called == []
    assert [(each.gateway_call_id, each.cancelled) for each in await stage.calls.listed(ana)] == [
        (view.gateway_call_id, True)
    ]
    anew = await stage.called("ask")
    assert anew.gateway_call_id != view.gateway_call_id


async def test_a_call_whose_approval_is_taken_away_by_a_stop_ends(stage: GatewayStage) -> None:
    view = await stage.called("ask")
    async with stage.database.reading() as tx:
        row = await gateway_calls.get(tx, view.gateway_call_id)
    assert row is not None
    async with stage.database.writing(row.thread_id) as tx:
        await deliveries.add(tx, Delivery("stop", row.thread_id, "stop", {}, True, 0.0, 0.0))
    await stage.work()
    ended = await stage.now(view)
    assert ended.result is not None and ended.result.is_error and "was not made" in ended.result.text
    assert (ended.status, ended.cancelled) == ("ended", False)
    assert not await stage.is_anything_asked() and stage.bench.called == []


async def test_so_many_calls_a_minute_and_under_way(stage: GatewayStage) -> None:
    stage.restart(limits=GatewayLimits(NO_LIMIT, 1))
    first = await stage.called("ask")
    refused = await stage.begin("ask", {"k": 2})
    assert isinstance(refused, GatewayRefusal) and refused.kind == "busy"
    assert (await stage.called("ask")).gateway_call_id == first.gateway_call_id  # it is no new one
    stage.restart(limits=GatewayLimits(1, 100))
    await stage.called("free")
    refused = await stage.begin("free", {"k": 2})
    assert isinstance(refused, GatewayRefusal) and refused.kind == "too_many" and "in 60 seconds" in refused.text
    stage.clock.move(60.0)
    assert (await stage.called("free", {"k": 2})).status == "ended"


async def test_a_call_of_which_nothing_has_changed_for_a_day_is_not_in_the_way_of_another(stage: GatewayStage) -> None:
    stage.restart(limits=GatewayLimits(NO_LIMIT, 1))
    await stage.called("ask")
    stage.clock.move(24 * 3600 - 1.0)
    assert isinstance(await stage.begin("ask", {"k": 2}), GatewayRefusal)
    stage.clock.move(2.0)
    assert isinstance(await stage.begin("ask", {"k": 2}), GatewayCallView)


@pytest.mark.parametrize("arguments", [{"k": float("inf")}, {"k": "a\0b"}, {"k": "\ud800"}])
async def test_arguments_that_not_every_server_reads_alike_are_refused(stage: GatewayStage, arguments: Any) -> None:
    refused = await stage.begin("free", arguments)
    assert isinstance(refused, GatewayRefusal) and refused.kind == "bad_arguments"


async def test_what_does_not_fit_the_schema_of_its_tool_is_refused_before_anybody_is_asked(stage: GatewayStage) -> None:
    stage.bench.schemas["ask"] = {"type": "object", "properties": {"k": {"type": "integer"}}, "required": ["title"]}
    refused = await stage.begin("ask", {"k": "x"})
    assert isinstance(refused, GatewayRefusal) and refused.kind == "bad_arguments"
    assert "\"k\": 'x' is not of type" in refused.text and '"title" is missing' in refused.text
    assert "s__ask" not in refused.text  # its client may know it by another name
    assert not await stage.is_anything_asked()
    assert isinstance(await stage.begin("ask", {"title": "x" * 3_000}), GatewayCallView)


async def test_an_unknown_outcome_is_for_the_caller_to_settle_and_no_program(stage: GatewayStage) -> None:
    stage.bench.outcomes["free"] = OutcomeUnknown("no answer")
    view = await stage.called("free")
    assert view.waits_for is not None and view.waits_for.kind == "outcome"
    assert isinstance(await stage.says(ANA, view, "it_was_done", via="api"), Refused)
    assert isinstance(await stage.says(ANA, view, "it_was_done"), Settled)
    await stage.work()
    result = (await stage.now(view)).result
    assert result is not None and result.is_error and result.text.startswith("Done, as Ana confirmed")


async def test_a_hundred_who_wait_are_told_at_once_and_look_at_nothing_before(stage: GatewayStage) -> None:
    view = await stage.called("ask")
    waiting = [asyncio.create_task(stage.calls.wait(view.gateway_call_id, view.changed_at, 60.0)) for _ in range(100)]
    await asyncio.sleep(0)
    await stage.decides(BEN, view)
    await stage.work()
    assert {each.status for each in await asyncio.gather(*waiting) if each} == {"ended"}


@pytest.mark.parametrize("becomes", ["delivered", "put back", "lost with its process"])
async def test_the_same_call_waits_for_a_result_that_is_on_its_way_to_a_client(
    stage: GatewayStage, becomes: str
) -> None:
    view = await stage.called("free")
    if becomes == "lost with its process":  # another one, of which only the row tells
        async with stage.database.writing(UNLOCKED) as tx:
            await gateway_calls.hand_out(tx, view.gateway_call_id, stage.clock())
    else:
        await stage.calls.hand_out(view)
    same = asyncio.create_task(stage.begin("free"))
    await asyncio.wait([same], timeout=0.05)
    assert not same.done()
    match becomes:
        case "delivered":
            await stage.calls.delivered(view.gateway_call_id)
        case "put back":
            await stage.calls.put_back(view.gateway_call_id)
        case _:
            stage.clock.move(HANDED_SECONDS)
    found = await same
    assert isinstance(found, GatewayCallView)
    assert (found.gateway_call_id == view.gateway_call_id) is (becomes != "delivered")


async def test_what_is_written_to_two_clients_is_put_back_only_when_neither_has_got_it(stage: GatewayStage) -> None:
    view = await stage.called("free")
    await stage.calls.hand_out(view)
    await stage.calls.hand_out(view)
    await stage.calls.put_back(view.gateway_call_id)
    same = asyncio.create_task(stage.begin("free"))
    await asyncio.wait([same], timeout=0.05)
    assert not same.done()
    await stage.calls.delivered(view.gateway_call_id)
    found = await same
    assert isinstance(found, GatewayCallView) and found.gateway_call_id != view.gateway_call_id
