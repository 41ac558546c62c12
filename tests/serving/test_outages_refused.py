"""Rule 1: while the records are away, what needs them is refused on every route, and nothing is acknowledged."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.outages import AWAY as SENTENCE
from adapters.shared.outages import OutageAnswers, note_refusal
from adapters.shared.serving import Limits, started_server
from bot.records.database import NotOnDisk
from tests.support.outage import AWAY, FULL, GONE


@dataclass
class Records:
    """What a route needs; `fault`: what they raise."""

    fault: Exception | None = None

    async def use(self, _request: web.Request) -> web.Response:
        if self.fault is not None:
            raise self.fault
        return web.json_response({})

    async def use_for_programs(self, request: web.Request) -> web.Response:
        if self.fault is not None:
            note_refusal(request, self.fault)
            return web.json_response({"title": "Service Unavailable"}, status=503)
        return web.json_response({})

    async def no_use(self, _request: web.Request) -> web.Response:
        return web.json_response({})


@dataclass(frozen=True)
class Client:
    """Sends requests."""

    base: str
    http: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, str, Mapping[str, str]]:
        """Status, body and headers."""
        async with self.http.get(self.base + path, headers=headers) as response:
            return response.status, await response.text(), response.headers


@asynccontextmanager
async def serving(records: Records) -> AsyncIterator[Client]:
    application = web.Application(middlewares=[OutageAnswers().middleware])
    application.router.add_get("/of/{person}", records.use)
    application.router.add_get("/further", records.use)
    application.router.add_get("/programs", records.use_for_programs)
    application.router.add_get("/static", records.no_use)
    async with started_server(application, "127.0.0.1", 0, Limits()) as (host, port), aiohttp.ClientSession() as http:
        yield Client(f"http://{host}:{port}", http)


@pytest.mark.parametrize("fault", [*AWAY.values(), NotOnDisk("checkpoints")], ids=[*AWAY, "not on disk"])
async def test_a_program_reads_json_and_is_told_when_to_come_again(fault: Exception) -> None:
    async with serving(Records(fault)) as client:
        status, body, headers = await client.get("/of/ana")
    assert (status, json.loads(body)) == (503, {"error": SENTENCE})
    assert headers["Content-Type"].startswith("application/json")
    assert headers["Retry-After"] == "5"
    assert headers["Cache-Control"] == "no-store"


async def test_a_person_reads_a_page() -> None:
    async with serving(Records(GONE)) as client:
        status, body, headers = await client.get("/of/ana", Accept="text/html,*/*")
    assert (status, SENTENCE in body) == (503, True)
    assert headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in headers["Content-Security-Policy"]


async def test_each_cause_is_said_once_until_it_works_again() -> None:
    records = Records(GONE)
    async with serving(records) as client:
        with capture_logs() as logged:
            for _ in range(3):
                assert (await client.get("/of/ana"))[0] == 503
                assert (await client.get("/further"))[0] == 503
                assert (await client.get("/static"))[0] == 200  # says nothing of the records
                assert (await client.get("/nothing"))[0] == 404
            records.fault = NotOnDisk("checkpoints")
            await client.get("/of/ana")
        told = [line for line in logged if line["log_level"] in {"warning", "error"}]
        assert [line["cause"] for line in told] == ["OperationalError", "NotOnDisk"]
        assert {line["event"] for line in told} == {"requests_refused"}
        assert told[0]["what"] == "GET /of/{person}"
        assert told[0]["says"] == "connection refused"
        assert not any(line.get("exc_info") for line in logged)

        records.fault = None
        with capture_logs() as logged:
            assert (await client.get("/further"))[0] == 200
            records.fault = FULL
            assert (await client.get("/further"))[0] == 503
        assert [line["event"] for line in logged] == ["requests_taken_again", "requests_refused"]


async def test_what_programs_are_told_in_a_form_of_their_own_is_said_too() -> None:
    records = Records(FULL)
    async with serving(records) as client:
        with capture_logs() as logged:
            for _ in range(2):
                assert (await client.get("/programs"))[:2] == (503, '{"title": "Service Unavailable"}')
            records.fault = None
            assert (await client.get("/programs"))[0] == 200
    assert [line["event"] for line in logged if line["log_level"] != "debug"] == [
        "requests_refused",
        "requests_taken_again",
    ]
    assert logged[0]["what"] == "GET /programs"


async def test_a_defect_is_none() -> None:
    async with serving(Records(RuntimeError("ours"))) as client:
        with capture_logs() as logged:
            assert (await client.get("/of/ana"))[0] == 500
    assert [line for line in logged if line["event"] == "requests_refused"] == []


async def test_what_goes_on_after_an_answer_says_each_cause_once() -> None:
    async def fails() -> None:
        raise GONE

    async def works() -> None:
        pass

    async def all_of(*work: Any) -> list[Any]:
        tasks = BackgroundTasks("anywhere")
        with capture_logs() as logged:
            for each, name in work:
                tasks.start(each(), name)
                await tasks.drain(1.0)
        return [line for line in logged if line["log_level"] in {"warning", "error"}]

    told = await all_of((fails, "command"), (works, "answer"), (fails, "command"), (fails, "link"))
    assert [(line["event"], "exc_info" in line and bool(line["exc_info"])) for line in told] == [
        ("background_task_failed", False)
    ]
    assert len(await all_of((fails, "command"), (works, "command"), (fails, "command"))) == 2
