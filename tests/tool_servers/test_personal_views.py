"""People who see other tools of the same server: nobody's view harms the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.tool_servers.listing import LARGEST_LISTING, MOST_LISTED, REMEMBERED, Catalogue
from adapters.tool_servers.personal import PersonalSession, SessionNotOpened
from adapters.tool_servers.servers import still_offered
from graph.ports import Failed, OutcomeUnknown, Succeeded
from policies.model import Annotations
from tests.tool_servers.fake_accounts import Drive, FakeCatalogues

from .conftest import call, until
from .test_personal import ANA, BEN, drive, known, names


def seen_by(server: Drive, **more: tuple[str, ...]) -> None:
    """Show each of them only these."""
    answer = server.answer

    def by_person(message: dict[str, Any], who: str, session: str, token: str) -> web.Response:
        server.tools = more[who]
        return answer(message, who, session, token)

    server.answer = by_person  # type: ignore[method-assign]


async def test_whoever_sees_fewer_tools_takes_none_from_the_others(tmp_path: Path) -> None:
    catalogues = FakeCatalogues()
    async with drive(tmp_path, catalogues=catalogues) as (servers, server, _):
        seen_by(server, ana=("whoami", "repeat"), ben=("whoami",))
        await known(servers)
        assert await call(servers, "drive__whoami", caller=BEN) == Succeeded("ben", owner="web:ben")
        assert await names(servers) == ["repeat", "whoami"]
        got = await call(servers, "drive__repeat", caller=BEN)
        assert got == Failed("drive no longer has the tool repeat. Nothing was called.")
        assert await names(servers) == ["repeat", "whoami"]
        assert isinstance(await call(servers, "drive__repeat", caller=ANA), Succeeded)
        (kept,) = catalogues.kept.values()
        assert sorted(entry["name"] for entry in kept) == ["repeat", "whoami"]


async def test_whoever_lacks_a_tool_that_needs_approval_does_not_stop_the_others(tmp_path: Path) -> None:
    async with drive(tmp_path, requireApproval=["repeat"]) as (servers, server, _):
        seen_by(server, ana=("whoami",), ben=("whoami", "repeat"))
        told = await call(servers, "drive__sign_in", caller=ANA)
        assert isinstance(told, Succeeded)
        assert "cannot be used" in told.text
        assert await servers.find("drive__whoami") is None
        await call(servers, "drive__sign_in", caller=BEN)
        assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")
        assert servers.unavailable() == []


async def test_what_one_person_sees_as_harmless_is_not_called_for_another(tmp_path: Path) -> None:
    async with drive(tmp_path, trustAnnotations=True) as (servers, _, _):
        await known(servers)
        (wipe, *_) = await servers.available()
        harmless = replace(wipe, annotations=Annotations(read_only=True))
        assert still_offered(harmless, [wipe]) == Failed(
            f"{wipe.full_name} has changed in the meantime. Nothing was called."
        )
        assert still_offered(wipe, [wipe]) is None


async def test_after_disconnecting_no_call_goes_on_with_the_old_account(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, _):
        await known(servers)
        never, answer = asyncio.Event(), server.answer

        async def nothing() -> AsyncIterator[bytes]:
            await never.wait()
            yield b""

        def silent(message: dict[str, Any], who: str, session: str, token: str) -> web.Response:
            if message.get("method") == "tools/call":
                return web.Response(body=nothing(), content_type="application/json")
            return answer(message, who, session, token)

        server.answer = silent  # type: ignore[method-assign]
        waiting = asyncio.create_task(call(servers, "drive__whoami", caller=ANA))
        of_drive: Any = servers._servers["drive"]
        session = of_drive._sessions["web:ana"]
        await until(lambda: session.busy, "the call")
        of_drive._retire(session)  # as when another call of hers was refused
        await servers.forget("web:ana", "drive")
        async with asyncio.timeout(10):
            assert isinstance(await waiting, OutcomeUnknown)
        never.set()


async def test_a_session_that_is_ended_before_it_began_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, _, _):
        of_drive: Any = servers._servers["drive"]
        session = of_drive._session_of("web:ana")
        assert isinstance(session, PersonalSession)
        session.lose("was left")
        async with asyncio.timeout(5):
            assert await session.opened() == SessionNotOpened("was left")
        assert isinstance(await call(servers, "drive__sign_in", caller=ANA), Succeeded)


def test_a_tool_is_forgotten_when_nobody_has_it_any_more() -> None:
    catalogue, one, two = Catalogue(), {"name": "one"}, {"name": "two"}
    catalogue.listed(REMEMBERED, [one, two])
    catalogue.listed("ana", [two])
    catalogue.listed("ben", [one, two, None, {"name": 3}])
    assert catalogue.entries == [one, two]
    catalogue.listed("ben", [two])
    assert catalogue.entries == [two, one]
    catalogue.lacks(REMEMBERED, "one")
    assert catalogue.entries == [two]


def test_rule_13_what_a_server_shows_to_many_people_is_not_kept_without_bound() -> None:
    catalogue = Catalogue()
    for person in range(20):
        catalogue.listed(str(person), [{"name": f"{person}-{number}"} for number in range(MOST_LISTED // 4)])
    assert len(catalogue.entries) == MOST_LISTED
    assert catalogue.entries[0] == {"name": "19-0"}
    for person in range(4):
        catalogue.listed(str(person), [{"name": f"large-{person}", "description": "x" * (LARGEST_LISTING // 2 - 100)}])
    assert [entry["name"] for entry in catalogue.entries] == ["large-3", "large-2"]
    catalogue.lacks("1", "large-1")
    assert len(catalogue.entries) == 2
