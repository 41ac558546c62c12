"""Collectors that answer otherwise than they should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from adapters.telemetry.exporting import AnsweredSession, HeadersError, ToldExporter, collector, headers_in
from adapters.telemetry.ids import TraceIds
from adapters.telemetry.tracing import Tracing

WITHIN = 10.0


@contextmanager
def answering(answer: bytes, *, body: bytes = b"") -> Iterator[tuple[str, list[int]]]:
    """A server that answers one request, and sends pieces of a body without end. Gives its address, and how many bytes
    of it were sent once nobody took more."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                count = 0
                try:
                    connection.sendall(answer)
                    while body and count < 50_000_000:
                        connection.sendall(body)
                        count += len(body)
                except OSError:
                    pass
                sent.append(count)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/traces", sent
        thread.join(WITHIN)


@pytest.mark.parametrize("status", [301, 304, 307])
def test_what_a_collector_answers_with_a_redirect_was_not_taken(status: int) -> None:
    answer = f"HTTP/1.1 {status} Elsewhere\r\nLocation: https://elsewhere.example.com/\r\nContent-Length: 0\r\n\r\n"
    with answering(answer.encode()) as (url, _):
        assert collector(url, None).export([]) is SpanExportResult.FAILURE


def test_an_answer_without_end_is_not_read() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"
    with answering(answer, body=b"x" * 100_000) as (url, sent):
        assert collector(url, None).export([]) is SpanExportResult.SUCCESS
    assert sent[0] < 20_000_000


class Sending(SpanExporter):
    """What sends spans: how it ends each time, and with which status (0: nobody answered)."""

    def __init__(self, *statuses: int) -> None:
        self.session = AnsweredSession()
        self.left = list(statuses)
        self.tried = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.session.status = self.left.pop(0)
        self.tried.set()
        return SpanExportResult.SUCCESS if self.session.status == 200 else SpanExportResult.FAILURE


def test_while_a_collector_is_away_the_same_spans_are_sent_again() -> None:
    sending = Sending(0, 503, 0, 200)
    assert ToldExporter(sending, "c", sending.session, pause=0.0).export([]) is SpanExportResult.SUCCESS


@pytest.mark.parametrize("status", [307, 400, 403, 413])
def test_what_a_collector_refuses_is_not_sent_again(status: int) -> None:
    sending = Sending(status, 200)
    assert ToldExporter(sending, "c", sending.session, pause=0.0).export([]) is SpanExportResult.FAILURE
    assert sending.left == [200]


class Narrow(SpanExporter):
    """What sends spans to a collector that takes three of them at once."""

    def __init__(self, *too_large: object) -> None:
        self.session = AnsweredSession()
        self.taken: list[object] = []
        self.too_large = too_large

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        fits = len(spans) <= 3 and not set(self.too_large) & {*spans}
        self.session.status = 200 if fits else 413
        self.taken += spans if fits else []
        return SpanExportResult.SUCCESS if fits else SpanExportResult.FAILURE


def test_spans_that_are_too_large_together_are_sent_in_halves() -> None:
    spans = [ReadableSpan(f"span {number}") for number in range(11)]
    narrow = Narrow()
    assert ToldExporter(narrow, "c", narrow.session).export(spans) is SpanExportResult.SUCCESS
    assert narrow.taken == spans


def test_a_span_that_is_too_large_takes_no_other_with_it() -> None:
    spans = [ReadableSpan(f"span {number}") for number in range(11)]
    narrow = Narrow(spans[4])
    assert ToldExporter(narrow, "c", narrow.session).export(spans) is SpanExportResult.FAILURE
    assert narrow.taken == spans[:4] + spans[5:]


def test_what_a_collector_fails_at_each_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.telemetry.exporting.TRIED_SECONDS", 0.0)
    sending = Sending(500, 500)
    assert ToldExporter(sending, "c", sending.session, pause=0.0).export([]) is SpanExportResult.FAILURE
    assert sending.left == [500]


def test_the_end_waits_for_no_further_try() -> None:
    sending = Sending(0)
    exporter = ToldExporter(sending, "c", sending.session, pause=WITHIN)
    thread = threading.Thread(target=exporter.export, args=([],), daemon=True)
    thread.start()
    assert sending.tried.wait(WITHIN)
    exporter.shutdown()
    thread.join(WITHIN / 2)
    assert not thread.is_alive()


class Ending(SpanProcessor):
    """Takes spans, and lets the end wait for something."""

    def __init__(self, until: threading.Event | None) -> None:
        self.until = until
        self.is_over = threading.Event()

    def shutdown(self) -> None:
        if self.until is not None:
            self.until.wait(WITHIN)
        self.is_over.set()


def test_at_the_end_one_collector_does_not_wait_for_another() -> None:
    back = threading.Event()
    away, other = Ending(back), Ending(None)
    tracing = Tracing(TraceIds(b"a key"), [away, other], "1")
    thread = threading.Thread(target=tracing.shutdown, daemon=True)
    thread.start()
    assert other.is_over.wait(WITHIN / 2)
    back.set()
    thread.join(WITHIN)
    assert away.is_over.is_set()


def test_headers_are_read_as_everybody_writes_them() -> None:
    written = "x-team=ops, Authorization=Basic%20YTpi==,api-key=a b=c,,empty="
    assert headers_in(written) == {"x-team": "ops", "authorization": "Basic YTpi==", "api-key": "a b=c", "empty": ""}


@pytest.mark.parametrize(
    "wrong", ["t0p-s3cret", "authorization: Basic t0p-s3cret==", "key=t0p%0As3cret", "key=t0p-s3crét", "=t0p-s3cret"]
)
def test_what_is_no_header_is_said_by_its_number_and_not_repeated(wrong: str) -> None:
    with pytest.raises(HeadersError) as found:
        collector("http://127.0.0.1:9/v1/traces", f"x-team=ops,{wrong}")
    assert "number 2" in str(found.value)
    assert "t0p" not in str(found.value)
