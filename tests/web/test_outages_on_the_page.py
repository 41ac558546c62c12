"""Rule 1: while the records are away, the page is told so in one sentence; nothing is accepted that is not kept."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest
from structlog.testing import capture_logs

from adapters.shared.outages import AWAY as SENTENCE
from bot.domain import Person
from tests.support.outage import AWAY, GONE
from tests.web.serving import Browser, Product
from tests.web.streaming import Stream, snapshot, stream_of

THREAD = "web:one"
MESSAGES = "/api/threads/web%3Aone/messages"
MESSAGE = {"id": "m", "text": "Hello"}


@pytest.fixture
def away(product: Product, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Exception:
    """Every use of the records raises this."""
    error: Exception = getattr(request, "param", GONE)

    async def fails(*_given: object, **_named: object) -> None:
        raise error

    for name in ("accept", "owned", "view", "cards_that_wait", "stop"):
        monkeypatch.setattr(product.services, name, fails)
    return error


@pytest.mark.parametrize("away", AWAY.values(), ids=AWAY, indirect=True)
async def test_what_cannot_be_kept_or_read_is_refused_in_a_sentence(ana: Browser, away: Exception) -> None:
    with capture_logs() as logged:
        answers = [
            await ana.post(MESSAGES, MESSAGE),
            await ana.post("/api/threads/web%3Aone/stop", {"id": "s"}),
            await ana.get("/api/threads"),
            await ana.get("/api/events?thread=web:one"),
        ]
    assert answers == [(503, {"error": SENTENCE})] * 4
    told = [line for line in logged if line["log_level"] in {"warning", "error"}]
    assert [(line["event"], line["cause"]) for line in told] == [("requests_refused", type(away.orig).__name__)]  # type: ignore[attr-defined]
    assert not any(line.get("exc_info") for line in logged)


async def test_what_needs_no_records_is_served_meanwhile(ana: Browser, away: Exception) -> None:
    assert (await ana.get("/api/session"))[0] == 200
    async with ana.http.get(f"{ana.product.url}/") as page:
        assert page.status == 200


async def test_who_waits_for_records_that_are_away_is_disconnected_and_whoever_comes_is_refused(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked of PostgreSQL is waited for much longer, if nothing arrives there."""
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def answers_late(_person: Person) -> None:
        asked.set()
        await given_up.wait()
        raise GONE

    async with stream_of(ana, THREAD) as stream:
        await snapshot(stream)
        monkeypatch.setattr(product.services, "owned", answers_late)
        product.sender.hub.threads_changed()
        await asked.wait()
        product.sender.hub.lose_records()
        with pytest.raises(aiohttp.ClientError):
            while await stream.next() is not None:
                pass
        assert await ana.get("/api/events?thread=web:one") == (503, {"error": SENTENCE})
        given_up.set()


async def test_open_streams_end_and_are_one_line_in_the_log_however_many(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page that was open said so in a line of its own."""

    async def gone(_person: Person) -> None:
        raise GONE

    async def to_its_end(stream: Stream) -> None:
        with pytest.raises(aiohttp.ClientError):  # it does not look like the end of a conversation
            while await stream.next() is not None:
                pass

    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(stream_of(ana, THREAD)) for _ in range(3)]
        for stream in streams:
            await snapshot(stream)
        monkeypatch.setattr(product.services, "owned", gone)
        with capture_logs() as logged:
            await ana.post(MESSAGES, MESSAGE)
            product.sender.hub.threads_changed()
            await asyncio.gather(*map(to_its_end, streams))
    told = [line for line in logged if line["log_level"] in {"warning", "error"}]
    assert [line["event"] for line in told] == ["requests_refused"]
