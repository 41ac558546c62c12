"""The password before the page."""

from __future__ import annotations

import pytest

from adapters.web.access import TRIES, WINDOW_SECONDS, PasswordGate
from adapters.web.bodies import RefusalError
from bot.limits import BeginningsHere
from tests.web.serving import browser_of, serve


async def test_nothing_is_told_before_the_password() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        session = await browser.hello()
        assert session["needs_password"] is True
        assert not {"people", "facts", "me"} & session.keys()
        assert (await browser.get("/api/threads"))[0] == 401
        assert (await browser.get("/api/events?thread=web%3Aone"))[0] == 401
        assert (await browser.post("/api/session", {"person": "web:ben"}))[0] == 401


async def test_the_right_password_opens_and_the_session_gets_a_new_token() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        before = browser.token
        status, session = await browser.post("/api/session", {"password": "open sesame"})
        assert status == 200
        assert session["needs_password"] is False
        assert session["csrf"] != before
        assert (await browser.get("/api/threads"))[0] == 200


async def test_a_wrong_password_is_401_and_opens_nothing() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        for wrong in ("", "open sesam", "open sesame "):
            status, body = await browser.post("/api/session", {"password": wrong})
            assert (status, body["error"]) == (401, "Wrong password.")
        assert (await browser.get("/api/threads"))[0] == 401


async def test_whoever_keeps_guessing_has_to_wait() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        for _ in range(TRIES):
            await browser.post("/api/session", {"password": "wrong"})
        headers = {"X-CSRF-Token": browser.token}
        right = {"password": "open sesame"}
        async with browser.http.post(f"{product.url}/api/session", json=right, headers=headers) as response:
            assert response.status == 429
            assert 0 < int(response.headers["Retry-After"]) <= WINDOW_SECONDS


async def test_signing_out_ends_it() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        await browser.post("/api/session", {"password": "open sesame"})
        await browser.hello()
        headers = {"X-CSRF-Token": browser.token}
        async with browser.http.delete(f"{product.url}/api/session", headers=headers) as response:
            assert (await response.json())["needs_password"] is True
        assert (await browser.get("/api/threads"))[0] == 401


async def test_one_address_that_guesses_does_not_slow_the_others() -> None:
    now = 0.0
    gate = PasswordGate("right", BeginningsHere(lambda: now))
    for _ in range(TRIES):
        with pytest.raises(RefusalError):
            await gate.check("wrong", "1.1.1.1")
    await gate.check("right", "2.2.2.2")
    with pytest.raises(RefusalError, match="Too many"):
        await gate.check("right", "1.1.1.1")
    now = WINDOW_SECONDS
    await gate.check("right", "1.1.1.1")


async def test_where_no_address_is_known_a_right_password_makes_no_others_guesses_undone() -> None:
    gate = PasswordGate("right", BeginningsHere(lambda: 0.0))
    for _ in range(TRIES - 1):
        with pytest.raises(RefusalError, match="Wrong password"):
            await gate.check("wrong", "")
    await gate.check("right", "")
    with pytest.raises(RefusalError, match="Wrong password"):
        await gate.check("wrong", "")
    with pytest.raises(RefusalError, match="Too many"):
        await gate.check("right", "")
    await gate.check("right", "1.1.1.1")


async def test_the_memory_of_guesses_is_bounded() -> None:
    guesses = BeginningsHere(lambda: 0.0, most_names=20)
    gate = PasswordGate("right", guesses)
    for number in range(30):
        with pytest.raises(RefusalError):
            await gate.check("wrong", str(number))
    assert len(guesses._windows[WINDOW_SECONDS]._begun) == 20
