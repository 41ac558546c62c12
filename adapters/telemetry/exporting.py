"""Where spans go: collectors by OTLP over HTTP, Langfuse among them. All of it in threads of their own: nobody waits
for a collector, and what it does not take in time is lost.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from adapters.telemetry.tracing import Tracing
from bot.events import happens
from bot.repeated_failures import RepeatedFailure
from graph.observing import Happening

log = structlog.get_logger(__name__)
LANGFUSE_CLOUD = "https://cloud.langfuse.com"
MOST_WAITING = 2_000
"""Happenings that wait to be traced; further ones are dropped."""
TRACED_EVERY_SECONDS = 0.5
TRIED_SECONDS = 300.0
"""For how long the same spans are sent again to a collector that is away. One that is replaced is back by then, and
what it fails at each time must not hold up all else for ever."""
AGAIN_SECONDS = 5.0
"""Between two tries, each of which has the library's own time (`OTEL_EXPORTER_OTLP_TIMEOUT`)."""
FLUSH_SECONDS = 1.5
"""Seconds that the end of the process waits for what has not been sent."""


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
"""https://www.rfc-editor.org/rfc/rfc9110#name-fields"""


_TOO_LARGE = 413
_AWAY = frozenset({408, 429})
"""HTTP statuses of a collector that has no time now; those from 500 on as well."""


class HeadersError(ValueError):
    """Headers that cannot be sent. The message repeats nothing of them: there are keys in them."""


class TracesNotTakenError(Exception):
    """A collector did not take spans."""


class TooMuchToTraceError(Exception):
    """More happens than can be traced."""


class AnsweredSession(requests.Session):
    """Connections on which no body of an answer is read: it may be of any length, and come slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = True
        self.status = 0
        """Of the newest answer; 0: none came."""
        self.hooks["response"].append(self._without_body)

    def _without_body(self, response: requests.Response, **_how: object) -> None:
        response.close()
        self.status = response.status_code
        if 300 <= response.status_code < 400:  # the library, which follows none, takes these for taken
            raise requests.HTTPError(f"it answered {response.status_code}")


class ToldExporter(SpanExporter):
    """Sends spans again while their collector is away: the library gives them up after ten seconds, and what comes
    meanwhile waits behind them. What is too large for it at once, or for a proxy before it, is sent in halves. Says
    once that they are not taken, until they are: the library would say so each time.

    Args:
        exporter: sends them.
        to: the collector's host.
        session: over which they are sent.
        pause: seconds before they are sent again.
    """

    def __init__(
        self, exporter: SpanExporter, to: str, session: AnsweredSession, *, pause: float = AGAIN_SECONDS
    ) -> None:
        self._exporter = exporter
        self.to = to
        self._session = session
        self._pause = pause
        self._ends = threading.Event()
        self._failure = RepeatedFailure("traces_not_sent", over="traces_sent_again")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans. Blocks, for `TRIED_SECONDS` at most."""
        is_taken = self._send(spans, time.monotonic() + TRIED_SECONDS)
        return SpanExportResult.SUCCESS if is_taken else SpanExportResult.FAILURE

    def _send(self, spans: Sequence[ReadableSpan], until: float) -> bool:
        """Returns whether all of them were taken."""
        while True:
            self._session.status = 0
            if self._exporter.export(spans) is SpanExportResult.SUCCESS:
                self._failure.worked()
                return True
            status = self._session.status
            if status == _TOO_LARGE and len(spans) > 1:
                half = len(spans) // 2
                return all([self._send(spans[:half], until), self._send(spans[half:], until)])
            self._failure.failed(TracesNotTakenError(), to=self.to, status=status or None)
            if not _is_away(status) or time.monotonic() >= until or self._ends.wait(self._pause):
                return False

    def shutdown(self) -> None:
        """Send nothing more, and give up what is being tried again."""
        self._ends.set()
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return True


def _is_away(status: int) -> bool:
    """Whether nobody has refused what was sent: nobody answered, or a proxy did."""
    return status == 0 or status in _AWAY or status >= 500


def collector(address: str, headers: str | None) -> ToldExporter:
    """Returns a collector. All else that `OTEL_EXPORTER_OTLP_*` say of it is read from the environment.

    Args:
        address: where it takes traces.
        headers: as `OTEL_EXPORTER_OTLP_HEADERS` has them.

    Raises:
        HeadersError: they cannot be sent.
    """
    given, session = headers_in(headers) if headers else None, AnsweredSession()
    return _told(OTLPSpanExporter(endpoint=address, headers=given, session=session), address, session)


def headers_in(written: str) -> dict[str, str]:
    """Returns the headers in `name=value,name=value`, in which names and values are encoded as in addresses
    (https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables). The
    library leaves out what it does not understand, and logs it, keys as well.

    Raises:
        HeadersError: one of them is none.
    """
    found: dict[str, str] = {}
    for number, piece in enumerate(written.split(","), 1):
        name, equals, value = (unquote(part).strip() for part in piece.partition("="))
        if not (name or equals):
            continue
        if not (equals and _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise HeadersError(f"number {number} is no header. Write name=value,name=value, encoded as in addresses.")
        found[name.lower()] = value
    return found


def langfuse(host: str, public_key: str, secret_key: str) -> ToldExporter:
    """Returns Langfuse (https://langfuse.com/integrations/native/opentelemetry).

    Args:
        host: its address.
    """
    headers = {"Authorization": basic(public_key, secret_key), "x-langfuse-ingestion-version": "4"}
    address = f"{host.rstrip('/')}/api/public/otel/v1/traces"
    session = AnsweredSession()
    return _told(OTLPSpanExporter(endpoint=address, headers=headers, session=session), address, session)


def basic(user: str, password: str) -> str:
    """Returns the header of basic authentication (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _told(exporter: OTLPSpanExporter, address: str, session: AnsweredSession) -> ToldExporter:
    for name in ("opentelemetry.exporter", "opentelemetry.exporter.otlp.proto.http.trace_exporter"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # That spans are lost behind those that are not taken is said with these.
    logging.getLogger("opentelemetry.sdk._shared_internal").setLevel(logging.ERROR)
    return ToldExporter(exporter, urlsplit(address).hostname or "", session)


class TracedLater:
    """Fills `graph.observing.Observer`: has spans made in a thread, many at a time. One by one, between other things,
    each takes four times as long; with content it takes milliseconds."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._waiting: deque[Happening] = deque()
        self._dropped = RepeatedFailure("traces_dropped")
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work, name="tracing", daemon=True)
        self._thread.start()

    def note(self, happening: Happening) -> None:
        """Have it traced; it is dropped while too much waits."""
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(happening)
        else:
            self._dropped.failed(TooMuchToTraceError())

    def shutdown(self) -> None:
        """Trace what waits, and nothing more, and send what is left. Waits for that."""
        self._ends.set()
        self._thread.join()
        self._tracing.shutdown()

    def _work(self) -> None:
        while not self._ends.wait(TRACED_EVERY_SECONDS):
            self._trace()
        self._trace()

    def _trace(self) -> None:
        while self._waiting:
            happening = self._waiting.popleft()
            try:
                self._tracing.note(happening)
            except Exception:
                log.exception("telemetry_failed", about=type(happening).__name__)
        self._dropped.worked()


async def finished(work: Callable[[], None], seconds: float) -> bool:
    """Does what may wait for others in a thread, which is waited for so long. Returns whether it is done."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="telemetry ends", daemon=True).start()
    await happens(done, seconds)
    if not done.is_set():
        log.warning("traces_lost", note="a collector did not take what was left in time")
    return done.is_set()
