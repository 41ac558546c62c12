"""Accounts on the page: each person's own links, codes and connections, and questions that tools put."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import quote

from adapters.shared.live.entries import connections_json
from bot.domain import ClarificationView, ConnectionView, Refused, ServiceView, SignInView
from tests.support.views import NOW
from tests.web.serving import Browser, Product, browser_of
from tests.web.streaming import stream_of

THREAD = "web:one"
MESSAGES = f"/api/threads/{quote(THREAD, safe='')}/messages"
CODE = "K7QM-3DZP"
GITHUB = ConnectionView("c/1", "GitHub", "ana-gh", ("repo", "read:user"), NOW, None)


async def waits_for_a_code(product: Product) -> None:
    view = SignInView("s", "open", "github", "127.0.0.1", "", "Ana", "web:ana", service="GitHub", code_wanted=True)
    await product.services.post(THREAD, view)


async def disconnect(browser: Browser, connection_id: str) -> int:
    url = f"{browser.product.url}/api/connections/{quote(connection_id, safe='')}"
    async with browser.http.delete(url, headers={"X-CSRF-Token": browser.token}) as response:
        return response.status


async def test_a_code_is_entered_by_its_form(product: Product, ana: Browser) -> None:
    await waits_for_a_code(product)
    status, body = await ana.post("/api/sign-ins/s/code", {"id": "k", "code": CODE})
    assert (status, body["kind"]) == (200, "settled")
    [entry] = product.services.codes
    assert (entry.key, entry.person.person_id, entry.code, entry.sign_in_id) == ("web:k:web:ana", "web:ana", CODE, "s")


async def test_a_wrong_code_is_422_and_says_how_many_tries_are_left(product: Product, ana: Browser) -> None:
    await waits_for_a_code(product)
    status, body = await ana.post("/api/sign-ins/s/code", {"id": "k", "code": "AAAA-AAAA"})
    assert (status, list(body["errors"])) == (422, ["code"])


async def test_a_code_that_the_services_take_is_shown_to_nobody(product: Product, ana: Browser, ben: Browser) -> None:
    async with stream_of(ben, THREAD) as stream:
        await stream.until("thread")
        status, body = await ana.post(MESSAGES, {"id": "m-1", "text": f" {CODE.lower()} "})
        assert (status, body) == (202, {"accepted": True, "taken": True})
        await ana.post(MESSAGES, {"id": "m-2", "text": "afterwards"})
        assert (await stream.until("message"))["text"] == "afterwards", "the first message that anybody sees"
    assert [message.text for message in product.services.messages] == ["afterwards"]


async def test_words_that_only_look_like_a_code_are_a_message_like_others(product: Product, ana: Browser) -> None:
    product.services.code = "another"
    async with stream_of(ana, THREAD) as stream:
        await stream.until("thread")
        assert await ana.post(MESSAGES, {"id": "m-1", "text": CODE}) == (202, {"accepted": True})
        assert (await stream.until("message"))["text"] == CODE


async def test_everybody_sees_and_ends_only_their_own_connections(product: Product, ana: Browser, ben: Browser) -> None:
    product.services.accounts["c/1"] = ("web:ana", GITHUB)
    _, mine = await ana.get("/api/connections")
    assert [(c["service"], c["account"], c["scopes"], c["working"]) for c in mine["connections"]] == [
        ("GitHub", "ana-gh", ["repo", "read:user"], True)
    ]
    assert await ben.get("/api/connections") == (200, {"connections": [], "services": [], "code_wanted": False})
    assert await disconnect(ben, "c/1") == 403
    assert "c/1" in product.services.accounts
    assert await disconnect(ana, "c/1") == 200
    assert product.services.accounts == {}


async def test_services_at_which_no_account_works_can_be_connected(
    product: Product, ana: Browser, ben: Browser
) -> None:
    product.services.offered = {"github": ServiceView("github", "GitHub", ("repo",))}
    product.services.accounts["c/1"] = ("web:ana", replace(GITHUB, provider="github"))
    github = {"provider": "github", "service": "GitHub", "scopes": ["repo"]}
    assert (await ana.get("/api/connections"))[1]["services"] == []
    assert (await ben.get("/api/connections"))[1]["services"] == [github]
    product.services.accounts["c/1"] = ("web:ana", replace(GITHUB, provider="github", status="expired"))
    _, mine = await ana.get("/api/connections")
    assert ([c["status"] for c in mine["connections"]], mine["services"]) == (["expired"], [github])


async def test_a_link_to_connect_an_account_is_for_the_visitor_alone(product: Product, ana: Browser) -> None:
    product.services.offered = {"git hub": ServiceView("git hub", "GitHub")}
    status, body = await ana.post("/api/connections/git%20hub/link", {})
    assert (status, body) == (200, {"url": "https://bot.example.com/oauth/start?s=git hub-of-web:ana"})
    assert product.services.links_asked == [("web:ana", "git hub", "Ana")]
    assert (await ana.post("/api/connections/mail/link", {}))[0] == 404
    product.services.too_many_links = Refused("You have asked for many links.")
    status, body = await ana.post("/api/connections/git%20hub/link", {})
    assert (status, body["error"]) == (403, "You have asked for many links.")
    ana.token = "of another page"
    assert (await ana.post("/api/connections/git%20hub/link", {}))[0] == 403
    assert len(product.services.links_asked) == 3


async def test_a_code_that_nothing_waits_for_is_entered_beside_the_accounts(product: Product, ana: Browser) -> None:
    product.services.shown_codes.add("web:ana")
    assert (await ana.get("/api/connections"))[1]["code_wanted"]
    status, body = await ana.post("/api/connections/code", {"id": "k", "code": "AAAA-AAAA"})
    assert (status, "not the code" in body["error"]) == (403, True)
    assert (await ana.post("/api/connections/code", {"id": "k", "code": CODE}))[0] == 200
    entry = product.services.codes[-1]
    assert (entry.key, entry.person.person_id, entry.code, entry.sign_in_id) == ("web:k:web:ana", "web:ana", CODE, None)


async def test_disconnecting_needs_the_pages_own_token(product: Product, ana: Browser) -> None:
    product.services.accounts["c/1"] = ("web:ana", GITHUB)
    ana.token = "of another page"
    assert await disconnect(ana, "c/1") == 403
    assert "c/1" in product.services.accounts


async def test_what_a_service_calls_an_account_shows_what_cannot_be_seen() -> None:
    shown = connections_json([ConnectionView("c", "Git\u202ehub", "an\u200ba", ("re\u202epo",), NOW, None)])
    assert not {"\u202e", "\u200b"} & set(json.dumps(shown, ensure_ascii=False))


async def test_a_tools_question_is_declined_or_cancelled(product: Product, ana: Browser) -> None:
    for action in ("decline", "cancel"):
        view = ClarificationView(action, "open", "Which?", "", (), "Ana", "web:ana", server="shop")
        await product.services.post(THREAD, view)
        status, _ = await ana.post(f"/api/clarifications/{action}/dismissal", {"id": action, "action": action})
        assert status == 200
    assert [(c.clarification_id, c.action) for c in product.services.dismissals] == [
        ("decline", "decline"),
        ("cancel", "cancel"),
    ]
    assert (await ana.post("/api/clarifications/decline/dismissal", {"id": "k", "action": "accept"}))[0] == 400


async def test_whoever_is_not_signed_in_sees_no_accounts(product: Product) -> None:
    async with browser_of(product) as browser:
        browser.http.cookie_jar.clear()
        assert (await browser.get("/api/connections"))[0] == 401
        assert (await browser.get("/api/sign-ins/s/link"))[0] == 401
