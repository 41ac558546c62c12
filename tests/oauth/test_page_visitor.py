"""Who the web page's session says that a browser is, outside of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from adapters.web.access import Session, Sessions, visitor_of
from adapters.web.config import WebConfig
from bot.domain import Person
from bot.identity.sessions import PageSessions
from tests.web.serving import identity_on_records

CONFIG = WebConfig("127.0.0.1", 3978, secret=b"0123456789abcdef0123456789abcdef")
LOCKED = replace(CONFIG, password="open sesame")


def request_of(config: WebConfig, session: Session | None, **headers: str) -> web.Request:
    sessions = Sessions(config, lambda: 1000.0)
    response = web.Response()
    if session is not None:
        sessions.write(response, session)
    cookie = "; ".join(f"{morsel.key}={morsel.value}" for morsel in response.cookies.values())
    return make_mocked_request("POST", "/oauth/start", {"Host": "127.0.0.1:3978", "Cookie": cookie, **headers})


def session_of(config: WebConfig, person: str = "web:ben") -> Session:
    return replace(Sessions(config, lambda: 1000.0).begin(), person_id=person)


async def proven(config: WebConfig, request: Any, kept: PageSessions | None = None) -> str | None:
    return await visitor_of(config, Sessions(config, lambda: 1000.0, kept))(request)


async def test_a_session_proves_who_it_is() -> None:
    assert await proven(CONFIG, request_of(CONFIG, session_of(CONFIG))) == "web:ben"


async def test_no_session_proves_nothing() -> None:
    assert await proven(CONFIG, request_of(CONFIG, None)) is None


async def test_a_session_of_another_key_proves_nothing() -> None:
    other = replace(CONFIG, secret=b"another-secret-of-another-product!")
    assert await proven(CONFIG, request_of(other, session_of(other))) is None


async def test_without_the_password_a_session_proves_nothing() -> None:
    session = session_of(LOCKED)
    assert not session.signed_in
    async with identity_on_records(clock=lambda: 1000.0) as identity:
        kept = identity.sessions
        assert await proven(LOCKED, request_of(LOCKED, session), kept) is None
        assert await proven(LOCKED, request_of(LOCKED, replace(session, signed_in=True)), kept) is None
        signed_in = await Sessions(LOCKED, lambda: 1000.0, kept).sign_in(Person("web:ben", "Ben"))
        assert await proven(LOCKED, request_of(LOCKED, signed_in), kept) == "web:ben"


@pytest.mark.parametrize(
    "header", [{"X-Forwarded-For": "1.2.3.4"}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_what_the_page_refuses_proves_nothing(header: dict[str, str]) -> None:
    assert await proven(CONFIG, request_of(CONFIG, session_of(CONFIG), **header)) is None
