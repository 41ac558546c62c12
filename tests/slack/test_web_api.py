from __future__ import annotations

import asyncio
import gzip
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
from aiohttp import web

from adapters.shared.calls import CallFailed
from adapters.shared.http import LONGEST_WAIT
from adapters.slack.web_api.client import WebApi
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support.cpu import at_most_cpu
from tests.support.moments import Moments
from tests.support.parsing import parsed_as_json

POST = "chat.postMessage"


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        yield running


async def one_token(_team: str) -> str:
    return "xoxb-1"


@asynccontextmanager
async def connected(api_url: str, moments: Moments | None = None, **options: Any) -> AsyncIterator[WebApi]:
    moments = moments or Moments()
    tokens = options.pop("tokens", one_token)
    sleep = options.pop("sleep", moments.sleep)
    api = WebApi(tokens, api_url, clock=moments.clock, sleep=sleep, jitter=lambda: 1.0, **options)
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/api/{method}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
    finally:
        await runner.cleanup()


async def post(api: WebApi, text: str, channel: str = "C1", **options: Any) -> Any:
    return await api.call("T1", POST, {"channel": channel, "text": text}, **options)


def texts(slack: FakeSlack, channel: str = "C1") -> list[str]:
    return [message["text"] for message in slack.messages(channel)]


# -------------------------------------------------------------------------------------------------- as whom


async def test_it_speaks_with_the_token_of_the_workspace(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Beta", token="xoxb-2", bot_user="UBOT2", bot_id="BBOT2")

    async def tokens(team: str) -> str:
        return {"T1": "xoxb-1", "T2": "xoxb-2"}[team]

    async with connected(slack.api_url, tokens=tokens) as api:
        assert (await api.call("T1", "auth.test"))["user_id"] == "UBOT"
        assert (await api.call("T2", "auth.test"))["user_id"] == "UBOT2"


async def test_arguments_arrive_whole_whether_they_are_read_or_written(slack: FakeSlack) -> None:
    blocks = [{"type": "section", "text": {"type": "plain_text", "text": "<&> ünï"}}]
    async with connected(slack.api_url) as api:
        answer = await api.call("T1", POST, {"channel": "C1", "text": "x", "blocks": blocks, "thread_ts": None})
        asked = {"channel": "C1", "limit": 3, "include_all_metadata": True}
        history = await api.call("T1", "conversations.history", asked)
    assert slack.calls_of(POST)[0].arguments == {"channel": "C1", "text": "x", "blocks": blocks}
    assert [message["ts"] for message in history["messages"]] == [answer["ts"]]


async def test_a_token_that_was_rotated_meanwhile_is_asked_for_again(slack: FakeSlack) -> None:
    slack.add_workspace(team="T2", name="Beta", token="xoxb-new", bot_user="UBOT2", bot_id="BBOT2")
    known, refused = ["xoxb-old"], []

    async def tokens(_team: str) -> str:
        return known[-1]

    def forget(team: str, token: str) -> None:
        refused.append((team, token))
        known.append("xoxb-new")

    async with connected(slack.api_url, tokens=tokens, refused=forget) as api:
        assert (await api.call("T2", "auth.test"))["team_id"] == "T2"
    assert refused == [("T2", "xoxb-old")]


async def test_a_token_that_stays_refused_is_asked_for_once_only(slack: FakeSlack) -> None:
    slack.revoke("xoxb-1")
    asked: list[str] = []

    async def tokens(_team: str) -> str:
        asked.append("!")
        return "xoxb-1"

    async with connected(slack.api_url, tokens=tokens) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "hello")
    assert (failed.value.error, failed.value.permanent) == ("token_revoked", True)
    assert len(asked) == 2
    assert len(slack.calls_of(POST)) == 1


async def test_tokens_that_change_all_the_time_are_not_tried_for_ever(slack: FakeSlack) -> None:
    made: list[str] = []

    async def tokens(_team: str) -> str:
        made.append("!")
        return f"xoxb-unknown-{len(made)}"

    async with connected(slack.api_url, tokens=tokens) as api:
        with pytest.raises(CallFailed):
            await post(api, "hello")
    assert len(slack.calls_of(POST)) == 2


async def test_reading_puts_its_arguments_into_the_address_since_slack_takes_no_json_there() -> None:
    seen: list[tuple[str, str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.query_string, request.headers["Authorization"]))
        return web.json_response({"ok": True})

    async with answering(answer) as url, connected(url) as api:
        await api.call("T1", "conversations.replies", {"channel": "C1", "limit": 5, "inclusive": False, "cursor": None})
        await post(api, "hello")
    bearer = "Bearer xoxb-1"
    assert seen == [("GET", "channel=C1&limit=5&inclusive=0", bearer), ("POST", "", bearer)]


# -------------------------------------------------------------------------------------------------- rate limits


async def test_a_429_is_waited_out(slack: FakeSlack) -> None:
    slack.fail(POST, status=429, retry_after=7)
    moments = Moments()
    async with connected(slack.api_url, moments) as api:
        await post(api, "late")
    assert texts(slack) == ["late"]
    assert moments.slept == [7]


async def test_a_429_holds_back_everybody_in_its_channel_and_nobody_elsewhere(slack: FakeSlack) -> None:
    slack.fail(POST, status=429, retry_after=5, when=lambda arguments: arguments["channel"] == "C1")
    moments = Moments()
    async with connected(slack.api_url, moments) as api:
        with pytest.raises(CallFailed) as first:
            await post(api, "a", patience=2)
        with pytest.raises(CallFailed) as second:
            await post(api, "b", patience=2)
        await post(api, "c", "D1", patience=2)
    assert (first.value.error, first.value.permanent, first.value.retry_after) == ("ratelimited", False, 5)
    assert second.value.retry_after == 5
    assert len([call for call in slack.calls_of(POST) if call.arguments["channel"] == "C1"]) == 1
    assert texts(slack, "D1") == ["c"]


async def test_a_429_on_reading_holds_for_the_whole_workspace(slack: FakeSlack) -> None:
    slack.fail("conversations.history", status=429, retry_after=30)
    async with connected(slack.api_url) as api:
        for channel in ("C1", "D1"):
            with pytest.raises(CallFailed):
                await api.call("T1", "conversations.history", {"channel": channel}, patience=2)
    assert len(slack.calls_of("conversations.history")) == 1


async def test_a_429_without_a_number_is_waited_out_too(slack: FakeSlack) -> None:
    slack.fail(POST, error="ratelimited")
    async with connected(slack.api_url) as api:
        await post(api, "late")
    assert texts(slack) == ["late"]


@pytest.mark.parametrize(
    ("said", "slept"), [("nan", 1), ("-nan", 1), ("inf", LONGEST_WAIT), ("1e300", LONGEST_WAIT), ("-5", 0.1)]
)
async def test_a_429_whose_number_is_none_neither_ends_the_waiting_nor_makes_it_endless(
    slack: FakeSlack, said: str, slept: float
) -> None:
    """Rule 13: with "nan" the same call was made again at once, hundreds of times in a second, and with "inf" nothing
    was posted in that channel until the next start."""
    slack.fail(POST, status=429, retry_after=float(said), times=2)
    moments = Moments()
    async with connected(slack.api_url, moments) as api:
        await post(api, "late", patience=10_000)
    assert texts(slack) == ["late"]
    assert moments.slept == pytest.approx([slept, slept])


async def test_posts_in_one_channel_are_not_paced_until_slack_refuses_one(slack: FakeSlack) -> None:
    moments = Moments()
    async with connected(slack.api_url, moments) as api:
        for number in range(30):
            await post(api, str(number))
        assert moments.slept == []
        slack.fail(POST, status=429, retry_after=7)
        for number in range(30, 34):
            await post(api, str(number))
    assert texts(slack) == [str(number) for number in range(34)]
    assert moments.slept == pytest.approx([7, 1, 1, 1])


async def test_a_storm_of_429_loses_nothing_repeats_nothing_and_keeps_the_order_in_each_thread(
    slack: FakeSlack,
) -> None:
    """Slack takes twelve posts within ten seconds in a channel, and refuses what is more."""
    moments, refused = Moments(), 0
    taken: list[float] = []

    def is_too_fast(_arguments: Any) -> bool:
        nonlocal refused
        if len([at for at in taken if at > moments.now - 10]) >= 12:
            refused += 1
            return True
        taken.append(moments.now)
        return False

    async def speak(api: WebApi, thread: int) -> None:
        for number in range(5):
            await post(api, f"{thread}.{number}", patience=1_000)

    slack.fail(POST, status=429, retry_after=3, times=math.inf, when=is_too_fast)
    async with connected(slack.api_url, moments) as api:
        await asyncio.gather(*(speak(api, thread) for thread in range(12)))
    for thread in range(12):
        said = [text for text in texts(slack) if text.startswith(f"{thread}.")]
        assert said == [f"{thread}.{number}" for number in range(5)]
    assert len(texts(slack)) == 60
    assert len(slack.calls_of(POST)) == 60 + refused
    assert refused > 0


async def test_who_waits_already_waits_longer_when_slack_says_so(slack: FakeSlack) -> None:
    moments, awake = Moments(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        moments.slept.append(seconds)
        until = moments.now + seconds
        await awake.wait()
        moments.now = max(moments.now, until)

    slack.fail(POST, status=429, retry_after=2)
    slack.fail(POST, status=429, retry_after=9, when=lambda arguments: arguments["text"] == "too much")
    async with connected(slack.api_url, moments, sleep=sleep) as api:
        awake.set()
        await post(api, "refused at first")  # from now on one a second
        awake.clear()
        moments.now += 1
        held = slack.hold(POST)
        refused = asyncio.create_task(post(api, "too much"))
        await held.reached()
        waiting = asyncio.create_task(post(api, "next"))
        await slack.until(lambda: moments.slept == [2, 1])
        held.release()
        await slack.until(lambda: moments.slept == [2, 1, 9])
        awake.set()
        await asyncio.gather(refused, waiting)
    assert moments.slept == [2, 1, 9, 9]  # after its second, nine more: a second behind the one that was refused


async def test_nobody_waits_longer_than_their_patience(slack: FakeSlack) -> None:
    slack.fail(POST, status=429, retry_after=3, times=math.inf)
    moments = Moments()
    async with connected(slack.api_url, moments) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "never", patience=10)
    assert failed.value.error == "ratelimited"
    assert sum(moments.slept) <= 10
    assert len(slack.calls_of(POST)) == 4


# -------------------------------------------------------------------------------------------------- trying again


@pytest.mark.parametrize("fault", [{"status": 503}, {"drop": True}, {"error": "internal_error"}])
async def test_reading_is_tried_again(slack: FakeSlack, fault: dict[str, Any]) -> None:
    slack.fail("users.info", **fault)
    async with connected(slack.api_url) as api:
        assert (await api.call("T1", "users.info", {"user": "U1"}))["user"]["id"] == "U1"


@pytest.mark.parametrize("fault", [{"status": 503}, {"drop": True}, {"error": "internal_error"}])
async def test_posting_is_not_tried_again_when_it_may_have_been_done(slack: FakeSlack, fault: dict[str, Any]) -> None:
    slack.fail(POST, **fault)
    async with connected(slack.api_url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "once")
    assert (failed.value.may_have_acted, failed.value.permanent) == (True, False)
    assert len(slack.calls_of(POST)) == 1


async def test_posting_is_tried_again_when_slack_says_that_nothing_was_done(slack: FakeSlack) -> None:
    slack.fail(POST, error="request_timeout")
    async with connected(slack.api_url) as api:
        await post(api, "once")
    assert texts(slack) == ["once"]


async def test_replacing_is_tried_again_since_twice_is_like_once(slack: FakeSlack) -> None:
    slack.fail("chat.update", status=500)
    async with connected(slack.api_url) as api:
        ts = (await post(api, "old"))["ts"]
        await api.call("T1", "chat.update", {"channel": "C1", "ts": ts, "text": "new"})
    assert texts(slack) == ["new"]


async def test_without_a_connection_even_posting_is_tried_again_until_patience_ends(unused_tcp_port: int) -> None:
    moments = Moments()
    async with connected(f"http://127.0.0.1:{unused_tcp_port}/api/", moments) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "hello", patience=10)
    assert (failed.value.error, failed.value.may_have_acted, failed.value.permanent) == ("connection", False, False)
    assert moments.slept == [0.25, 0.5, 1, 2, 4]


async def test_an_answer_that_does_not_come_is_a_timeout_after_which_anything_may_be_true(slack: FakeSlack) -> None:
    held = slack.hold(POST)
    async with connected(slack.api_url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "slow", patience=0.3)
    await held.reached()
    assert (failed.value.error, failed.value.may_have_acted) == ("timeout", True)


async def test_a_token_that_does_not_come_is_a_timeout_after_which_nothing_was_done(slack: FakeSlack) -> None:
    async def tokens(_team: str) -> str:
        await asyncio.Event().wait()
        return ""

    async with connected(slack.api_url, tokens=tokens) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "slow", patience=0.1)
    assert (failed.value.error, failed.value.may_have_acted) == ("timeout", False)


async def test_without_a_token_nothing_was_done_whatever_became_of_asking_for_it(slack: FakeSlack) -> None:
    async def tokens(_team: str) -> str:
        raise CallFailed("auth.test", "timeout", may_have_acted=True)

    async with connected(slack.api_url, tokens=tokens) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "slow")
    assert (failed.value.call, failed.value.error, failed.value.may_have_acted) == (POST, "timeout", False)


PERMANENT = [
    "channel_not_found",
    "not_in_channel",
    "is_archived",
    "account_inactive",
    "token_revoked",
    "invalid_auth",
    "invalid_blocks",
    "msg_too_long",
    "missing_scope",
    "message_not_found",
    "expired_trigger_id",
    "a_word_of_tomorrow",
]


@pytest.mark.parametrize("word", PERMANENT)
async def test_slack_means_what_it_says(slack: FakeSlack, word: str) -> None:
    slack.fail(POST, error=word, times=math.inf)
    async with connected(slack.api_url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "no")
    assert (failed.value.error, failed.value.permanent, failed.value.may_have_acted) == (word, True, False)
    assert len(slack.calls_of(POST)) == 1


STRANGE = {
    "a page": (200, "text/html", b"<h1>Welcome to the hotel</h1>"),
    "plain text": (200, "text/plain", b"ok"),
    "a list": (200, "application/json", b"[1]"),
    "a string": (200, "application/json", b'"ok"'),
    "nothing": (200, "application/json", b""),
    "broken JSON": (200, "application/json", b'{"ok": tr'),
    "bytes that are no text": (200, "application/json", b'{"ok": "\xff\xfe"}'),
    "a page of a proxy": (502, "text/html", b"<h1>Bad gateway</h1>"),
    "text of a proxy": (502, "text/plain", b"bad gateway"),
    "an error without a word": (200, "application/json", b'{"ok": false}'),
}


@pytest.mark.parametrize("name", STRANGE)
async def test_what_is_no_answer_of_slack_is_a_failure(name: str) -> None:
    status, kind, body = STRANGE[name]

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Content-Type": kind})

    async with answering(answer) as url, connected(url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "hello")
    assert failed.value.error == ("http_502" if status == 502 else "bad_answer")
    assert (failed.value.permanent, failed.value.may_have_acted) == (False, True)


HOSTILE = {
    "a flood": ("application/json", {}, [b" " * 1_000_000] * 40),
    "a flood of text": ("text/plain", {}, [b" " * 1_000_000] * 40),
    "a page without end": ("text/html", {}, [b" " * 1_000_000] * 40),
    "a compressed flood": ("application/json", {"Content-Encoding": "gzip"}, [gzip.compress(b" " * 40_000_000, 1)]),
    "an encoding that is slow to read": ("text/plain; charset=punycode", {}, [b"A" * 60_000 + b"-" + b"a" * 30_000]),
    "lists without end": ("application/json", {}, [b"[" + b"[]," * 1_000_000 + b"[]]"]),
    "a list nested without end": ("application/json", {}, [b"[" * 1_000_000]),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_answer_grows_without_bound_or_takes_long_to_read(name: str) -> None:
    """Rule 13: whatever stands in Slack's place says it."""
    kind, headers, pieces = HOSTILE[name]
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers=headers | {"Content-Type": kind})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            sent += len(piece)
        return response

    async with answering(answer) as url, connected(url) as api:
        with at_most_cpu(0.15), parsed_as_json() as parsed, pytest.raises(CallFailed) as failed:
            await post(api, "hello")
    assert max(parsed, default=0) < 100_000
    assert (failed.value.error, failed.value.may_have_acted) == ("bad_answer", True)
    assert sent < 20_000_000


async def test_texts_do_not_follow_a_redirect() -> None:
    """Rule 11: what an answer says is no reason to send what people wrote elsewhere."""
    asked = []

    async def away(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/api/elsewhere"})

    async with answering(away) as url, connected(url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "hello")
    assert asked == ["/api/chat.postMessage"]
    assert (failed.value.permanent, failed.value.may_have_acted) == (False, True)


async def test_a_refusal_without_words_is_permanent() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, text="no such page")

    async with answering(answer) as url, connected(url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "hello")
    assert (failed.value.error, failed.value.permanent) == ("http_404", True)


async def test_the_proxy_of_the_environment_is_used_unless_it_says_otherwise(
    slack: FakeSlack, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_tcp_port}")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with connected(slack.api_url) as api:
        await post(api, "past the proxy")
    monkeypatch.setenv("no_proxy", "elsewhere.example")
    async with connected(slack.api_url) as api:
        with pytest.raises(CallFailed) as failed:
            await post(api, "into the proxy")
    assert failed.value.error == "connection"
    assert texts(slack) == ["past the proxy"]


# -------------------------------------------------------------------------------------------------- what is logged


async def test_logs_hold_no_tokens_and_no_texts(slack: FakeSlack, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    slack.fail(POST, status=429, retry_after=1)
    slack.fail("users.info", status=500)
    with structlog.testing.capture_logs() as logged:
        async with connected(slack.api_url) as api:
            await post(api, "a secret text")
            await api.call("T1", "users.info", {"user": "U1"})
            broken = [{"type": "section", "text": {"type": "plain_text", "text": "a secret text" * 300}}]
            with pytest.raises(CallFailed) as failed:
                await api.call("T1", POST, {"channel": "C1", "text": "x", "blocks": broken})
    events = {entry["event"] for entry in logged}
    assert {"rate_limited", "call_retried"} <= events
    whole = f"{logged} {caplog.text} {failed.value!r} {failed.value.__cause__!r}"
    assert "secret text" not in whole
    assert "xoxb-1" not in whole
