"""The routes and their pages over real sockets; what decides is a stand-in that does as it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any, get_args, get_type_hints

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.oauth.pages import HtmlPage, connected, offer, problem, security_headers, show_code, sign_in_routes
from adapters.shared.outages import AWAY as SENTENCE
from adapters.shared.outages import OutageAnswers
from bot.accounts.flow import Connected, FlowProblem, GoTo, Offer, ShowCode
from tests.fakes.oauth import Browser
from tests.oauth.parts import proves
from tests.support.outage import GONE

OFFER = Offer("Notes", "Ana", "Slack", ("read", "write"), "Slack")
CONNECTED = Connected("Notes", "ana@notes", "Ana", "Slack")
HOSTILE = '"><script>alert(1)</script>\u202e\x00'


@dataclass
class ScriptedFlow:
    """`Flow` that answers what it is told and remembers what it was asked."""

    offers: Offer | FlowProblem = OFFER
    starts: GoTo | FlowProblem = field(default_factory=lambda: GoTo("http://127.0.0.1:9/consent?state=x", "cookie-1"))
    backs: GoTo | Connected | ShowCode | FlowProblem = CONNECTED
    fails: Exception | None = None
    asked: list[Any] = field(default_factory=list)

    async def offered(self, token: str, *, visitor: str | None = None) -> Offer | FlowProblem:
        self.asked.append(("offered", token))
        self._fail()
        return self.offers

    async def start(self, token: str, *, visitor: str | None, cookie: str | None) -> GoTo | FlowProblem:
        self.asked.append(("start", token, visitor, cookie))
        self._fail()
        return self.starts

    async def back(
        self, query: Mapping[str, str], *, cookie: str | None, connection: str = ""
    ) -> GoTo | Connected | ShowCode | FlowProblem:
        self.asked.append(("back", dict(query), cookie, *([connection] if connection else [])))
        self._fail()
        return self.backs

    def _fail(self) -> None:
        if self.fails is not None:
            raise self.fails


@asynccontextmanager
async def serving(flow: ScriptedFlow, *, visitor: str | None = None, secure: bool = False) -> AsyncIterator[str]:
    application = web.Application(middlewares=[OutageAnswers().middleware])
    application.add_routes(sign_in_routes(flow, proves(visitor), secure=secure))
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_the_page_says_what_for_whom_and_has_one_button() -> None:
    flow = ScriptedFlow()
    async with serving(flow) as base, Browser() as browser:
        shown = await browser.open(f"{base}/oauth/start?s=tok")
        assert shown.status == 200
        for word in (
            "Connect Notes",
            "Ana asks in Slack",
            "read",
            "write",
            "Slack confirms that you are Ana",
            "did someone send you this link?",
        ):
            assert word in shown.words, shown.words
        assert shown.text.count("<button") == 1
        assert "<script" not in shown.text
        assert flow.asked == [("offered", "tok")]
        assert "Set-Cookie" not in shown.headers


async def test_without_proof_the_page_says_that_a_code_comes() -> None:
    words = offer(Offer("Notes", "Ana", "Microsoft Teams", (), ""), "tok").html
    assert "a code for you to send to the bot" in words
    assert "Microsoft Teams" in words


async def test_the_button_goes_on_with_a_cookie_for_this_browser() -> None:
    flow = ScriptedFlow()
    async with serving(flow, visitor="web:ana") as base, Browser(stop_at="http://127.0.0.1:9/") as browser:
        page = await browser.open(f"{base}/oauth/start?s=tok")
        arrived = await browser.press(page)
        assert arrived.url == "http://127.0.0.1:9/consent?state=x"
        assert flow.asked[-1] == ("start", "tok", "web:ana", None)
        await browser.open(f"{base}/oauth/callback?state=x&code=c")
        assert flow.asked[-1] == ("back", {"state": "x", "code": "c"}, "cookie-1")
        await browser.press(page)
        assert flow.asked[-1] == ("start", "tok", "web:ana", "cookie-1")


@pytest.mark.parametrize("secure", [True, False])
async def test_the_cookie_is_for_nobody_else(*, secure: bool) -> None:
    async with (
        serving(ScriptedFlow(), secure=secure) as base,
        Browser() as browser,
        browser.session.post(f"{base}/oauth/start", data={"s": "t"}, allow_redirects=False) as response,
    ):
        cookie = response.headers["Set-Cookie"]
        assert response.status == 303
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert f"Path={'/' if secure else '/oauth'};" in cookie
    assert "Domain" not in cookie
    assert "Max-Age=3600" in cookie
    assert ("; Secure" in cookie) is secure
    assert cookie.startswith("__Host-") is secure  # no subdomain can set it


async def test_another_sites_page_cannot_press_the_button() -> None:
    flow = ScriptedFlow()
    async with serving(flow) as base, Browser() as browser:
        page = await browser.open(f"{base}/oauth/start?s=tok")
        for site in ("cross-site", "same-site"):
            assert (await browser.press(page, site=site)).status == 403
        for origin in ("https://evil.example", "null", base.replace("http", "ftp") + "0"):
            async with browser.session.post(
                f"{base}/oauth/start", data={"s": "tok"}, headers={"Origin": origin}, allow_redirects=False
            ) as response:
                assert response.status == 403
        assert [each[0] for each in flow.asked] == ["offered"]
        async with browser.session.post(
            f"{base}/oauth/start", data={"s": "tok"}, headers={"Origin": base}, allow_redirects=False
        ) as response:
            assert response.status == 303


async def test_previews_have_no_effect() -> None:
    flow = ScriptedFlow()
    async with serving(flow) as base, Browser() as browser:
        for path in ("/oauth/start?s=tok", "/oauth/callback?state=x&code=c"):
            async with browser.session.head(base + path) as response:
                assert response.status == 405
        for _ in range(3):
            await browser.open(f"{base}/oauth/start?s=tok")
        assert {each[0] for each in flow.asked} == {"offered"}


@pytest.mark.parametrize(
    "path",
    [
        "/oauth/callback?state=a&state=b&code=c",
        "/oauth/callback?state=x&code=" + "c" * 5000,
        "/oauth/callback?" + "&".join(f"p{i}=1" for i in range(30)),
        "/oauth/callback?state=x%00",
        "/oauth/start?s=a&s=b",
    ],
)
async def test_an_address_that_cannot_be_ours_reaches_nothing(path: str) -> None:
    flow = ScriptedFlow()
    async with serving(flow) as base, Browser() as browser:
        shown = await browser.open(base + path)
        assert shown.status == 400
        assert flow.asked == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/x-www-form-urlencoded", 400),
        (b"s=a&s=b", "application/x-www-form-urlencoded", 400),
        (b"s=a&t=b", "application/x-www-form-urlencoded", 400),
        (b"t=a", "application/x-www-form-urlencoded", 400),
        (b"s=" + b"x" * 5000, "application/x-www-form-urlencoded", 400),
        (b"s=" + b"x" * 9000, "application/x-www-form-urlencoded", 413),
        (b'{"s": "a"}', "application/json", 400),
        (b"--x\r\n\r\n", "multipart/form-data; boundary=x", 400),
        (b"s=\xff\xfe%ff", "application/x-www-form-urlencoded", 303),
    ],
)
async def test_a_form_that_is_not_the_buttons_is_refused(body: bytes, kind: str, status: int) -> None:
    async with (
        serving(ScriptedFlow()) as base,
        Browser() as browser,
        browser.session.post(
            f"{base}/oauth/start", data=body, headers={"Content-Type": kind}, allow_redirects=False
        ) as response,
    ):
        assert response.status == status, await response.text()


async def test_the_end_names_account_and_service() -> None:
    async with serving(ScriptedFlow()) as base, Browser() as browser:
        shown = await browser.open(f"{base}/oauth/callback?state=x&code=c")
        assert (shown.status, "ana@notes" in shown.words) == (200, True)
        assert "return to Slack" in shown.words


async def test_where_nothing_waits_for_the_account_nobody_is_told_that_something_goes_on() -> None:
    flow = ScriptedFlow(backs=replace(CONNECTED, goes_on=False))
    async with serving(flow) as base, Browser() as browser:
        shown = await browser.open(f"{base}/oauth/callback?state=x&code=c")
        assert "is connected for Ana" in shown.words
        assert "goes on" not in shown.words


async def test_the_code_is_shown_with_what_to_do() -> None:
    flow = ScriptedFlow(backs=ShowCode("Notes", "ana@notes", "K7QM-3DZP"))
    async with serving(flow) as base, Browser() as browser:
        shown = await browser.open(f"{base}/oauth/callback?state=x&code=c")
        assert shown.code == "K7QM-3DZP"
        assert "10 minutes" in shown.words
        assert "Don’t share this code" in shown.words
        assert "in the chat" in shown.words
        flow.backs = replace(flow.backs, in_chat=False)  # type: ignore[arg-type]
        assert "where you got the link" in (await browser.open(f"{base}/oauth/callback?state=x&code=c")).words


KINDS = get_args(get_type_hints(FlowProblem)["kind"])


@pytest.mark.parametrize("kind", KINDS)
async def test_every_problem_has_a_page_of_its_own(kind: Any) -> None:
    flow = ScriptedFlow(offers=FlowProblem(kind, "Ask <b>again</b>."), backs=FlowProblem(kind, "Ask again."))
    async with serving(flow) as base, Browser() as browser:
        shown = await browser.open(f"{base}/oauth/start?s=tok")
        assert 400 <= shown.status < 600
        assert shown.status != 500
        assert "Ask <b>again</b>." in shown.words
        assert "<form" not in shown.text
        assert (await browser.open(f"{base}/oauth/callback?state=x")).status == shown.status
    assert len({problem(FlowProblem(each, "")).html.partition("</title>")[0] for each in KINDS}) == len(KINDS)


async def test_what_breaks_shows_a_reference_and_logs_no_secret() -> None:
    flow = ScriptedFlow(fails=RuntimeError("code=very-secret"))
    async with serving(flow) as base, Browser() as browser:
        with capture_logs() as logged:
            shown = await browser.open(f"{base}/oauth/callback?state=x&code=very-secret")
        assert shown.status == 500
        assert logged[0]["reference"] in shown.words
        assert "very-secret" not in str(logged) + shown.text
        assert logged[0]["error"] == "RuntimeError"
        assert logged[0]["where"].startswith("test_pages.py:")


@pytest.mark.parametrize("path", ["/oauth/start?s=tok", "/oauth/callback?state=x", "/oauth/callback?state=x&state=y"])
async def test_every_page_is_kept_to_itself(path: str) -> None:
    async with serving(ScriptedFlow()) as base, Browser() as browser:
        headers = (await browser.open(base + path)).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] in ("no-referrer", "same-origin")
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_leads_on_over_plain_http_where_there_is_tls() -> None:
    assert " http:" not in security_headers(secure=True)["Content-Security-Policy"]


def pages_of(word: str) -> list[HtmlPage]:
    scopes = (word, *[f"scope-{number}" for number in range(100)])
    return [
        offer(Offer(word, word, word, scopes, word), word),
        connected(Connected(word, word, word, word)),
        show_code(ShowCode(word, word, word)),
        problem(FlowProblem("service", word)),
    ]


class Outline(HTMLParser):
    """The tags of a page with the names of their attributes."""

    def __init__(self, page: HtmlPage) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.feed(page.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))


def test_nobodys_name_can_write_a_page() -> None:
    for hostile, harmless in zip(pages_of(HOSTILE), pages_of("harmless"), strict=True):
        assert Outline(hostile).tags == Outline(harmless).tags


def test_nobodys_name_can_turn_a_page_around() -> None:
    for page in pages_of(HOSTILE)[1:]:
        assert "⟨U+202E⟩" in page.html


def test_many_scopes_are_counted() -> None:
    assert "and 71 more" in pages_of("word")[0].html


@pytest.mark.parametrize("path", ["/oauth/start?s=tok", "/oauth/callback?state=x&code=very-secret"])
async def test_while_the_records_are_away_the_page_says_so_and_the_log_no_secret(path: str) -> None:
    async with serving(ScriptedFlow(fails=GONE)) as base, Browser() as browser:
        with capture_logs() as logged:
            shown = [await browser.open(base + path) for _ in range(2)]
    assert [each.status for each in shown] == [503, 503]
    assert SENTENCE in shown[0].words
    assert "style-src 'sha256-" in shown[0].headers["Content-Security-Policy"]  # one of the pages of a sign-in
    assert [line["event"] for line in logged if line["log_level"] in {"warning", "error"}] == ["requests_refused"]
    assert "very-secret" not in str(logged)
    assert not any(line.get("exc_info") for line in logged)
