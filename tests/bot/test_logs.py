from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote

import pytest
import structlog
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCRequest

from adapters.shared.serving import Limits, started_server
from bot.logs import MOST_MASKED, Mask, configure_logs, log_context
from policies.masking import Masker
from tests.support.cpu import at_most_cpu

SECRET = 'p"ass/wörd\\1'


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    """Gives the process its logging back as it was."""
    root = logging.getLogger()
    handlers, filters, level = list(root.handlers), list(root.filters), root.level
    yield
    root.handlers[:], root.filters[:] = handlers, filters
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def as_json(**options: Any) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(form="json", stream=stream, **options)
    return stream


def test_a_json_line_has_level_logger_time_message_and_values() -> None:
    stream = as_json()
    structlog.get_logger("bot.inbox").info("accepted", count=3)
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "info", "logger": "bot.inbox", "message": "accepted", "count": 3}


@pytest.mark.parametrize(
    "request_line", [b"GET /?code=a-secret HTTP/1.1\r\nHost: a\r\nHost: b", b"GET /?code=a-secret" + b"x" * 9_000]
)
async def test_a_request_that_is_no_http_is_no_mistake_of_ours(request_line: bytes) -> None:
    async def fails(_request: web.Request) -> web.Response:
        raise ZeroDivisionError

    stream = as_json()
    application = web.Application()
    application.router.add_get("/fails", fails)
    async with started_server(application, "127.0.0.1", 0, Limits()) as (host, port):
        for line in (request_line, b"GET /fails HTTP/1.1\r\nHost: a"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(line + b"\r\nConnection: close\r\n\r\n")
            await reader.read()
            writer.close()
    (logged,) = lines(stream)
    assert "ZeroDivisionError" in logged["exception"], "what is one is logged"


def test_a_console_line_is_readable_and_without_colours_off_a_terminal() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    structlog.get_logger("bot.inbox").info("accepted", count=3)
    assert "accepted" in stream.getvalue()
    assert "count=3" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_what_others_wrote_makes_no_line_of_its_own_and_gives_the_terminal_no_orders() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    forged = "gone\n2026-11-28T00:00:00Z [info     ] tool_call\x1b[2J\r\x9b2J"
    structlog.get_logger("any").info(forged, told="\x1b[2J", **{"a\nb": "\x07"})
    logging.getLogger("library").warning("cannot read %s", forged)
    structlog.get_logger("any").error("failed", exc_info=ValueError(forged))
    first, second, _third, *traceback = stream.getvalue().splitlines()
    assert r"gone\n2026-11-28T00:00:00Z [info     ] tool_call\x1b[2J\r\x9b2J" in first
    assert r"told=\x1b[2J" in first
    assert r"cannot read gone\n2026" in second
    assert traceback[-1].endswith(r"tool_call\x1b[2J\r\x9b2J"), "a traceback has its lines, and no orders"
    assert not set("\x1b\r\x9b\x07") & set(stream.getvalue())


@pytest.mark.parametrize("form", ["console", "json"])
def test_what_ends_a_line_or_turns_the_direction_of_writing_is_escaped_too(form: Literal["console", "json"]) -> None:
    stream = io.StringIO()
    configure_logs(form=form, stream=stream)
    forged = "gone\u20282026-11-28 [info] tool_call\u202e\u2066\u200f\x85\x9b2J"
    structlog.get_logger("any").info("read", told=forged, **{"a\u2029b": 1})
    assert len(stream.getvalue().splitlines()) == 1
    assert not set("\u2028\u2029\u202e\u2066\u200f\x85\x9b") & set(stream.getvalue())
    assert "u20282026-11-28 [info] tool_call" in stream.getvalue()
    if form == "json":
        assert lines(stream)[0]["told"] == forged


@pytest.mark.parametrize("before", ["\n", "\t", "\r", "\x1b"])
@pytest.mark.parametrize("told", ["sk-{}", "xoxb-{}", "Bearer {}", "https://h.example/?code={}"])
def test_a_console_line_has_no_secret_that_stood_behind_a_control_character(before: str, told: str) -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    logging.getLogger("library").warning("it said:%s", before + told.format("0123456789abcdef"))
    assert "it said:" in stream.getvalue()
    assert "0123456789abcdef" not in stream.getvalue()


def test_ids_are_on_every_line_within_their_context_and_on_none_after() -> None:
    stream = as_json()
    log = structlog.get_logger("x")
    with log_context(thread_id="web:1", delivery="d1"):
        with log_context(call_id="d1.0.0"):
            log.info("inner")
            logging.getLogger("a.library").info("from a library")
        log.info("outer")
    log.info("after")
    inner, library, outer, after = lines(stream)
    assert (inner["thread_id"], inner["delivery"], inner["call_id"]) == ("web:1", "d1", "d1.0.0")
    assert (library["message"], library["call_id"]) == ("from a library", "d1.0.0")
    assert outer["delivery"] == "d1"
    assert "call_id" not in outer
    assert "thread_id" not in after


async def test_tasks_keep_their_own_ids() -> None:
    stream = as_json()
    both_inside = asyncio.Barrier(2)

    async def work(thread_id: str) -> None:
        with log_context(thread_id=thread_id):
            await both_inside.wait()
            structlog.get_logger("x").info(thread_id)

    await asyncio.gather(work("web:1"), work("web:2"))
    assert all(line["thread_id"] == line["message"] for line in lines(stream))


def test_lines_below_the_level_are_left_out() -> None:
    stream = as_json(level="warning")
    structlog.get_logger("x").info("no")
    logging.getLogger("y").info("no")
    structlog.get_logger("x").warning("yes")
    assert [line["message"] for line in lines(stream)] == ["yes"]


def test_configuring_again_replaces_the_first_configuration() -> None:
    first = as_json()
    log = structlog.get_logger("x")
    log.info("one")
    second = as_json()
    log.info("two")
    assert [line["message"] for line in lines(first)] == ["one"]
    assert [line["message"] for line in lines(second)] == ["two"]


def fail_because_of(cause: Exception, error: Exception) -> None:
    token = "only-in-a-local-variable"  # noqa: F841 (a traceback with local variables would show it)
    raise error from cause


async def test_what_a_client_of_our_mcp_server_sends_is_quoted_by_no_library() -> None:
    stream = as_json()
    wrong = {"name": "make", "arguments": f"not an object: {SECRET}"}
    message = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=wrong)
    async with create_client_server_memory_streams() as ((answers, requests), (read, write)):
        server: Server[Any, Any] = Server("any")
        serving = asyncio.create_task(server.run(read, write, server.create_initialization_options(), stateless=True))
        await requests.send(SessionMessage(JSONRPCMessage(message)))
        answer = await answers.receive()
        await requests.aclose()
        await serving
    assert isinstance(answer, SessionMessage)
    assert "Invalid request parameters" in answer.message.model_dump_json()
    assert stream.getvalue() == ""


def test_an_exception_is_told_once_with_its_cause() -> None:
    stream = as_json()
    try:
        fail_because_of(ConnectionError("the line is dead"), RuntimeError("could not fetch"))
    except RuntimeError:
        structlog.get_logger("x").exception("turn failed")
    (line,) = lines(stream)
    assert line["exception"].count("RuntimeError: could not fetch") == 1
    assert line["exception"].count("ConnectionError: the line is dead") == 1


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_way_of_logging_gets_a_known_secret_out(form: Any) -> None:
    stream = io.StringIO()
    configure_logs(form=form, secrets=[SECRET], stream=stream)
    log = structlog.get_logger("x")
    message = f"in the message {SECRET}"
    log.info(message)
    log.info("in a value", value=SECRET, nested={"deep": [SECRET]})
    logging.getLogger("y").warning("in an argument %s", SECRET)
    log.info("in an address", to=f"https://x.example/{quote(SECRET, safe='')}/y")
    try:
        fail_because_of(OSError(f"in a cause {SECRET}"), ValueError(f"in an exception {SECRET}"))
    except ValueError:
        log.exception("failed", value=repr(SECRET))
    text = stream.getvalue()
    assert "in the message ***" in text
    for form_of_it in (SECRET, json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1], quote(SECRET, safe="")):
        assert form_of_it not in text


def test_local_variables_are_not_in_tracebacks() -> None:
    stream = io.StringIO()
    configure_logs(stream=stream)
    try:
        fail_because_of(OSError("y"), ValueError("x"))
    except ValueError:
        structlog.get_logger("x").exception("failed")
    assert "ValueError: x" in stream.getvalue()
    assert "'only-in-a-local-variable'" not in stream.getvalue()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdefgh.ijkl", "Authorization: Bearer ***"),
        ("Incorrect API key provided: sk-proj-ab***********yz.", "Incorrect API key provided: ***."),
        ("token=xoxb-123456-abcdef", "token=***"),
        ("token=xapp-1-A123456-abcdef", "token=***"),
        ("to postgresql://bot:pw@db/x", "to postgresql://***@db/x"),
        ("see https://a.example/cb?code=1&state=2 now", "see https://a.example/cb?*** now"),
        ('127.0.0.1 "GET /oauth/callback?code=1 HTTP/1.1" 200', '127.0.0.1 "GET /oauth/callback?*** HTTP/1.1" 200'),
        ("jwt eyJhbGciOiJI.eyJzdWIi.c2ln", "jwt ***"),
        ("a question? an answer: the-task is done", "a question? an answer: the-task is done"),
        ("https://a.example/path stays", "https://a.example/path stays"),
    ],
)
def test_what_looks_like_a_token_is_masked_and_ordinary_text_is_not(text: str, masked: str) -> None:
    assert Mask()(text) == masked


def test_an_access_log_has_no_query_strings() -> None:
    stream = as_json()
    logging.getLogger("aiohttp.access").info(
        '127.0.0.1 [21/Nov/2026] "POST /api/x?token=t1&y=2 HTTP/1.1" 200 10 "http://localhost/?secret=t2" "Agent/1 (?)"'
    )
    (line,) = lines(stream)
    assert "POST /api/x?*** HTTP/1.1" in line["message"]
    assert "t1" not in line["message"]
    assert "t2" not in line["message"]


def test_a_secret_that_begins_like_another_leaves_nothing_behind() -> None:
    assert Mask(["hunter2", "hunter2-and-more"])("it is hunter2-and-more or hunter2") == "it is *** or ***"


def test_a_short_value_does_not_turn_words_into_asterisks() -> None:
    assert Mask(["a", ""])("a banana") == "a banana"


def test_a_mask_does_not_show_its_secrets() -> None:
    assert SECRET not in repr(Mask([SECRET]))


_WORDS = st.text(st.characters(exclude_characters="*"), max_size=30)


@given(secret=_WORDS.filter(lambda text: len(text) >= 6), before=_WORDS, after=_WORDS)
def test_a_known_secret_never_remains(secret: str, before: str, after: str) -> None:
    assert secret not in Mask([secret])(before + secret + after)


@given(secret=_WORDS.filter(lambda text: len(text) >= 6), text=_WORDS)
def test_a_masked_json_line_is_still_json(secret: str, text: str) -> None:
    stream = as_json(secrets=[secret])
    structlog.get_logger("x").info(text, value=text + secret, url=f"https://x.example/?{text}")
    (line,) = [json.loads(line) for line in stream.getvalue().split("\n") if line]
    assert secret not in line["value"]


HOSTILE = ["https://a:b@", ".a", "http://", "eyJaaaaaaaa-", "GET /", "\uff50\uff41\uff53\uff53\uff1d", '\\"']


@pytest.mark.timed
@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("form", ["json", "console"])
def test_rule_13_a_line_that_is_made_to_take_long_does_not(unit: str, form: Any) -> None:
    configure_logs(form=form, stream=io.StringIO(), masker=Masker())
    log = structlog.get_logger("x")
    log.info("first", text=unit * 100)  # what is looked for is read and compiled when it is first needed
    with at_most_cpu(0.4):  # half a minute before, now 40 ms at most
        log.info("long", text=unit * 10_000, more={"list": [unit * 100] * 100})


def test_of_a_long_text_the_beginning_and_the_end_are_logged_without_half_a_secret() -> None:
    stream = as_json()
    word = "x" * 40
    text = "begin " + f"{word} " * 1_000 + "last words"
    structlog.get_logger("x").info("said", text=text)
    (line,) = lines(stream)
    assert line["text"].startswith(f"begin {word} {word}")
    assert line["text"].endswith(f"{word} last words")
    assert "characters left out" in line["text"]
    assert {len(each) for each in line["text"].split() if set(each) == {"x"}} == {40}
    assert len(line["text"]) < MOST_MASKED + 100
    assert (line["message"], line["level"]) == ("said", "info")
