"""What people do in a conversation, turn after turn, while the product is being killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tests.kills.people import Ana, Sent, name_of, settling_outcomes
from tests.kills.programs import ACT, asked_about, result_of
from tests.support.gateway_program import GatewayProgram, programs

LEAST_TURNS = 4
Habit = Callable[[Ana, str], Awaitable[None]]
"""One turn, about something of this name."""


async def live(ana: Ana, dying_is_over: asyncio.Event, habits: Sequence[Habit] | None = None) -> list[str]:
    """Take turn after turn while the product is being killed, and then ask whether anybody is there. Returns the
    outcomes that she had to settle. `habits`: what she does, `HABITS` when not given."""
    turn = 0
    number = name_of(ana.thread)
    async with settling_outcomes(ana, ["skip", "it_was_done"]) as settled:
        while turn < LEAST_TURNS or not dying_is_over.is_set():
            await ana.rng.choice(habits or HABITS)(ana, f"{number}-{turn}")
            turn += 1
        await ana.say(f"hey {number}-last")
        await ana.hears(f"hello {number}-last")
    return settled


async def _decides(ana: Ana, key: str) -> None:
    """Every card is approved and rejected at once, from two browsers; the first one wins."""
    await ana.say(f"do {key}", times=ana.rng.choice([1, 2, 3]))
    for card in await ana.cards(key):
        verbs = ana.rng.sample(["approve", "reject"], 2)
        clicks = [ana.click(b, [card], v) for b, v in zip([ana.thread.visitor, ana.other], verbs, strict=True)]
        kinds = [next(iter(results.values()))["kind"] for results in await asyncio.gather(*clicks)]
        assert sorted(kinds) == ["already_settled", "settled"], kinds
    await ana.hears(f"done {key}")


async def _clicks_twice(ana: Ana, key: str) -> None:
    """One click on Approve all arrives three times."""
    await ana.say(f"do {key}")
    cards, click = await ana.cards(key), ana.new_id()
    browsers = [ana.thread.visitor, ana.other, ana.thread.visitor]
    answers = await asyncio.gather(*(ana.click(b, cards, "approve", click) for b in browsers))
    assert {result["kind"] for results in answers for result in results.values()} == {"settled"}
    await ana.hears(f"done {key}")


async def _approves_impatiently(ana: Ana, key: str) -> None:
    """Two different clicks on the same Approve."""
    await ana.say(f"do {key}", times=2)
    first, second = await ana.cards(key)
    await asyncio.gather(*(ana.click(b, [first], "approve") for b in (ana.thread.visitor, ana.other)))
    await ana.click(ana.other, [second], ana.rng.choice(["approve", "reject"]))
    await ana.hears(f"done {key}")


async def _changes_her_mind(ana: Ana, key: str) -> None:
    """Something new while one act is approved and one still waits."""
    await ana.say(f"do {key}")
    first, _ = await ana.cards(key)
    if ana.rng.random() < 0.5:
        await ana.click(ana.thread.visitor, [first], "approve")
    await ana.say(f"hey {key}-instead", times=2)
    await ana.hears(f"hello {key}-instead")


async def _crosses_herself(ana: Ana, key: str) -> None:
    """Something new is on its way while she approves: what the click settled first runs first."""
    message = await ana.say(f"do {key}")
    first, second = await ana.cards(key)
    both = [first, second] if ana.rng.random() < 0.5 else [first]
    await asyncio.gather(
        ana.say(f"hey {key}-instead"), ana.click(ana.other, both, "approve"), ana.click(ana.other, [second], "reject")
    )
    await ana.hears(f"hello {message.key}-instead")


async def _is_in_a_hurry(ana: Ana, key: str) -> None:
    """Two messages at once; the second gives up what the first one asked for."""
    await ana.say(f"do {key}a")
    await ana.say(f"do {key}b")
    await ana.click(ana.other, await ana.cards(f"{key}b"), "approve")
    await ana.hears(f"done {key}b")


async def _stops_what_waits(ana: Ana, key: str) -> None:
    message = await ana.say(f"do {key}")
    await ana.some_card(key)
    await _stop(ana, message)


async def _stops_what_runs(ana: Ana, key: str) -> None:
    """Stop right after Approve, while the acts run or are about to."""
    message = await ana.say(f"do {key}")
    await ana.click(ana.thread.visitor, await ana.cards(key), "approve")
    await _stop(ana, message)


async def _stop(ana: Ana, message: Sent) -> None:
    message.stopped = await ana.stop()
    if not message.stopped:
        await ana.hears(f"done {message.key}")


async def retries(ana: Ana, key: str) -> None:
    """What she approved fails, so she has it proposed once more, approves that, and it works. Where the product died in
    the middle of the call, nobody knows whether it failed, and there is no Retry."""
    await ana.say(f"try {key}")
    card = await ana.card(f"{key}/try")
    await ana.click(ana.other, [card], "approve")
    await ana.hears(f"done {key}")
    clicked = await ana.retry(card, key)
    if clicked == ["refused", "refused"]:
        return
    assert clicked == ["settled", "already_settled"], clicked
    again = await ana.card(f"{key}/try", but=[card])
    await ana.click(ana.thread.visitor, [again], "approve")
    await ana.hears(f"hello {key}")


async def changes_what_drifts(ana: Ana, key: str) -> None:
    """What a change would do is another thing at the time of the call, so she is asked again, and approves that, too.
    Where the product died before the first card was kept, it was looked at once more then, and drifts no longer."""
    await ana.say(f"change drift-{key}")
    await ana.approves_until(f"done drift-{key}", f"drift-{key}/change")


async def _chats(ana: Ana, key: str) -> None:
    await ana.say(f"hey {key}", times=2)
    await ana.hears(f"hello {key}")


async def _lets_a_program_act(ana: Ana, key: str) -> None:
    """A program of hers calls a tool, and again until it has the result; she decides."""
    async with programs() as http, asyncio.TaskGroup() as group:
        program = GatewayProgram(ana.thread.visitor.url, http, name=ana.rng.choice(["cursor", "claude-code"]))
        calling = group.create_task(result_of(program, ACT, key, where=lambda: ana.thread.visitor.some_url(ana.rng)))
        card, verb = await asked_about(ana.thread, key), ana.rng.choice(["approve", "approve", "reject"])
        results = await ana.click(ana.other, [card], verb)
        assert [each["kind"] for each in results.values()] == ["settled"], results
    said = calling.result()
    assert said.text.startswith("Rejected by Ana") == (verb == "reject"), said


HABITS: tuple[Habit, ...] = (
    _decides,
    _decides,
    _clicks_twice,
    _approves_impatiently,
    _changes_her_mind,
    _crosses_herself,
    _is_in_a_hurry,
    _stops_what_waits,
    _stops_what_runs,
    _chats,
    retries,
    changes_what_drifts,
    _lets_a_program_act,
    _lets_a_program_act,
)
