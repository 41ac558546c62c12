"""Collectors that answer otherwise than they should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from adapters.telemetry.exporting import HeadersError, collector, headers_in

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
