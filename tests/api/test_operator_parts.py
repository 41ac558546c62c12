"""Operators see what was given up, have it tried again or give it up for good, and see people's accounts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from adapters.api.resources import place_of
from bot.console.waiting import MOST_QUESTIONS
from bot.domain import FileReference, Message, Settled
from bot.records import deliveries
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.task_threads import task_thread_id
from tests.api.serving import ANA, BEN, ApiUser, ServedApi
from tests.api.test_operator_audit import verified
from tests.api.things import THREAD


async def parked(served: ServedApi, kind: deliveries.DeliveryKind = "message", **body: Any) -> str:
    """A delivery was given up; its key."""
    if kind == "message":
        async with served.engine.at_work:  # nothing handles it first
            message = Message("m9", place_of(THREAD), ANA, "Make a lamp", served.clock(), **body)
            await served.services.inbox.accept(message)
            await park(served, "m9")
        await served.engine.rest()
        return "m9"
    await served.open(THREAD)
    async with served.database.writing(UNLOCKED) as tx:
        now = served.clock()
        await deliveries.add(tx, Delivery(f"{kind}:1", THREAD, kind, body, False, now, now))
    await park(served, f"{kind}:1")
    return f"{kind}:1"


async def park(served: ServedApi, key: str) -> None:
    """It is given up."""
    async with served.database.writing(UNLOCKED) as tx:
        await deliveries.park(tx, key, "ValueError: it is broken")


async def listed(user: ApiUser) -> list[Mapping[str, Any]]:
    """What operators see of it."""
    answer = await user.get("operator/parked")
    assert answer.status == 200, answer
    found: list[Mapping[str, Any]] = answer.body["parked"]
    return found


async def test_what_was_given_up_is_tried_again_as_if_it_had_been_sent_once_more(
    served: ServedApi, olga: ApiUser
) -> None:
    key = await parked(served)
    (one,) = await listed(olga)
    assert (one["id"], one["person"], one["text"], one["cause"]) == (
        key,
        "Ana",
        "Make a lamp",
        "ValueError: it is broken",
    )
    assert (one["can_retry"], one["why_not"]) == (True, "")
    done = await olga.post(f"operator/parked/{quote(key, safe='')}/retry")
    assert (done.status, done.body["text"]) == (200, "Trying again.")
    await served.engine.rest()
    async with served.database.reading() as tx:
        again = await deliveries.body_of(tx, f"again:2:{key}")
        assert await deliveries.is_handled(tx, f"again:2:{key}")
    assert again is not None
    assert again["text"] == "Make a lamp"
    assert await listed(olga) == []
    assert (await olga.post(f"operator/parked/{key}/retry")).status == 410
    await park(served, f"again:2:{key}")
    assert (await olga.post(f"operator/parked/{quote(f'again:2:{key}', safe='')}/retry")).status == 200
    async with served.database.reading() as tx:
        assert await deliveries.exists(tx, f"again:3:{key}")
    log = (await olga.get("operator/audit?outcome=acted")).body["entries"]
    assert [(each["entry"]["settled"]["choice"], each["entry"]["settled"]["of"]) for each in reversed(log)] == [
        ("had a delivery tried again", key),
        ("had a delivery tried again", f"again:2:{key}"),
    ]
    assert (await verified(olga))["faults"] == []


async def test_what_was_given_up_for_good_is_listed_no_more_and_does_nothing(served: ServedApi, olga: ApiUser) -> None:
    key = await parked(served)
    assert (await olga.post(f"operator/parked/{key}/giving-up")).status == 200
    assert await listed(olga) == []
    assert (await olga.post(f"operator/parked/{key}/giving-up")).status == 410
    assert (await olga.post("operator/parked/unknown/retry")).status == 410
    async with served.database.reading() as tx:
        assert await deliveries.is_handled(tx, key)


async def test_what_was_given_up_in_a_conversation_is_listed_no_more_once_its_owner_deletes_it(
    served: ServedApi, olga: ApiUser
) -> None:
    await parked(served)
    async with served.database.writing(UNLOCKED) as tx:
        for thread_id in (task_thread_id(THREAD, "m1.0.0", "a"), "web:another"):
            key = f"message in {thread_id}"
            await deliveries.add(tx, Delivery(key, thread_id, "message", {"text": "Make a vase"}, False, 0.0, 0.0))
            await deliveries.park(tx, key, "ValueError: it is broken")
    assert len(await listed(olga)) == 3
    assert isinstance(await served.services.inbox.delete("a click", THREAD, ANA, ()), Settled)
    assert [each["thread_id"] for each in await listed(olga)] == ["web:another"]


async def test_what_its_author_has_deleted_cannot_be_tried_again(served: ServedApi, olga: ApiUser) -> None:
    key = await parked(served)
    assert not await served.services.inbox.withdraw(key)
    assert await listed(olga) == []
    assert (await olga.post(f"operator/parked/{key}/retry")).status == 410


async def test_of_operators_who_have_the_same_tried_again_and_given_up_at_once_one_is_first(
    served: ServedApi, olga: ApiUser
) -> None:
    key = await parked(served)
    asked = [olga.post(f"operator/parked/{key}/{'retry' if n % 2 else 'giving-up'}") for n in range(12)]
    statuses = sorted(answer.status for answer in await asyncio.gather(*asked))
    assert statuses == [200, *[410] * 11]
    await served.engine.rest()
    log = (await olga.get("operator/audit?outcome=acted")).body["entries"]
    assert len(log) == 1


async def test_nothing_that_waits_gives_way_to_what_is_tried_again(served: ServedApi, olga: ApiUser) -> None:
    key = await parked(served)
    await served.wait_for(THREAD, "m1")
    assert (await olga.post(f"operator/parked/{key}/retry")).status == 409
    assert len(await listed(olga)) == 1


async def test_of_many_questions_those_that_wait_longest_are_listed(served: ServedApi, olga: ApiUser) -> None:
    await served.open(THREAD)
    asked = []
    for number in range(MOST_QUESTIONS + 1):
        served.clock.move(1)
        asked.append(await served.outcome(THREAD, "m1", number))
    waiting = (await olga.get("operator/waiting")).body
    assert [each["id"] for each in waiting["questions"]] == asked[:-1]
    assert waiting["most_questions"] == len(asked) - 1


@pytest.mark.parametrize("kind", ["call", "resume", "stop", "timer"])
async def test_what_can_only_be_asked_for_again_says_so(
    served: ServedApi, olga: ApiUser, kind: deliveries.DeliveryKind
) -> None:
    key = await parked(served, kind)
    (one,) = await listed(olga)
    assert not one["can_retry"]
    answer = await olga.post(f"operator/parked/{quote(key, safe='')}/retry")
    assert (answer.status, answer.body["detail"]) == (403, one["why_not"])


async def test_a_message_whose_files_are_gone_is_sent_again_by_its_author(served: ServedApi, olga: ApiUser) -> None:
    await parked(served, files=(FileReference("plan.pdf"),))
    (one,) = await listed(olga)
    assert one["why_not"] == "It came with files, which aren’t kept. Its author can send it again."


async def test_accounts_are_listed_page_by_page_without_what_opens_them(served: ServedApi, olga: ApiUser) -> None:
    for person in (ANA, BEN):
        await served.account(person)
    first = (await olga.get("operator/accounts?limit=1")).body
    second = (await olga.get(f"operator/accounts?limit=1&after={first['next']}")).body
    assert [each["person_id"] for each in (*first["accounts"], *second["accounts"])] == ["web:ana", "web:ben"]
    assert (second["next"], second["accounts"][0]["status"]) == ("", "active")
    assert set(second["accounts"][0]) == {
        *("id", "person_id", "person", "connection", "service", "account", "status", "since", "used_at")
    }


async def test_a_process_alone_says_how_it_is(olga: ApiUser) -> None:
    (replica,) = (await olga.get("operator/replicas")).body["replicas"]
    assert (replica["here"], replica["stopped"]) == (True, False)
    assert (await olga.get("operator/tool-servers")).body == {"servers": []}
    assert (await olga.post("operator/tool-servers/nothing/retry")).status == 404
