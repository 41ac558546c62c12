"""One log for everything: console lines or JSON, with the ids of what is being worked on, and without secrets.

Modules log with `structlog.get_logger(__name__)`. Libraries' `logging` records come out in the same form.

Lines are written in a thread of their own, so that nobody waits for whoever reads them: a pipe that nobody empties
takes 64 kB and then holds up whoever writes to it. Lines wait instead, so many and no more; what does not fit is
dropped and counted, and the count is written as soon as there is room again.
"""

from __future__ import annotations

import atexit
import io
import json
import logging
import logging.config
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO
from urllib.parse import quote

import structlog
from structlog.typing import Processor

from policies.masking import Masker
from policies.secret_shapes import IN_LOGS, any_of, without_guessed

_SHORTEST_SECRET = 6
"""Characters; shorter values would turn ordinary words into asterisks."""
MOST_MASKED = 12_000
"""Characters of a line in which secrets are looked for; of a longer one the beginning and the end are logged. Looking
happens where it is logged, and takes up to 4 ms of CPU for a thousand characters that somebody has made for it."""
_END = 2_000
"""Characters of these that are taken from the end, where a traceback says what went wrong."""
_LONGEST_WORD = 500
"""Characters without a blank that may be left out where a text is cut, so that no half of a secret stays."""
_LONGEST_REMEMBERED = 100
"""Characters of a text that is remembered to hold no secret."""
_MOST_REMEMBERED = 1_000
"""Such texts that are remembered; then it begins anew."""

_UNSEEN = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Beyond ASCII what ends a line or turns the direction of writing, and what JSON leaves as it is."""
_CONTROL = re.compile(f"[\x00-\x1f{_UNSEEN}]")
_CONTROL_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_UNSEEN}]")
"""Without tabs and line breaks."""
_CONTROL_IN_JSON = re.compile(f"[{_UNSEEN}]")

MOST_LINES = 10_000
"""Lines that wait to be written."""
MOST_CHARACTERS = 4_000_000
"""Characters of all lines that wait."""
FLUSH_SECONDS = 2.0
"""Seconds that the end of the process waits for the reader of its log."""

_CHATTY = (
    "httpx",
    "httpx2",
    "httpcore",
    "openai",
    "mcp",
    "aiosqlite",
    "asyncio",
    "alembic",
    "procrastinate",
    "slack_sdk",
    "slack_bolt",
    "markdown_it",
    "urllib3",
)
"""Libraries that tell of every request or statement at the levels below warning."""
_TOLD_BY_US = ("psycopg",)
"""Libraries that warn of each connection that is lost or cannot be made, again and again while the server is away. Who
uses them learns it, too, and says it once."""
_BLAMES_US = ("a2a",)
"""Libraries that log every request that is not as it has to be as a mistake of ours, with what it said."""
_SERVER, _NO_HTTP = "aiohttp.server", "aiohttp.http_exceptions"
"""The logger that writes a traceback for each request that is not HTTP, with the beginning of its address, and the
module of those errors. The client is at fault, and is answered 400."""

_QUOTES_WHAT_CAME = str(Path("mcp", "shared", "session.py"))
"""Warns of messages that it does not understand, in the name of nobody, and quotes them: a client's arguments may be in
them. Whoever sent one is told in the answer."""

NOTHING_ELSE = Masker((), ())
"""Knows no pattern and no value; fields that are called like secrets it masks all the same."""


def configure_logs(
    *,
    level: str = "info",
    form: Literal["console", "json"] = "console",
    secrets: Iterable[str] = (),
    masker: Masker = NOTHING_ELSE,
    stream: TextIO | None = None,
) -> None:
    """Sends all logs to one place, and masks them there.

    Masking is the last thing done to a line, tracebacks included, so that no way of logging gets around it.

    Args:
        level: a name of `logging`, in any case; what is below is left out.
        secrets: values of this process that no line may hold.
        masker: masks what else may be a secret.
        stream: standard error when none is given.
    """
    target = stream or sys.stderr
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_common(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *_renderer(form, Mask(secrets, masker), colors=target.isatty()),
        ],
    )
    # Only a file that somebody else may have to empty is written to in a thread.
    handler: logging.Handler = logging.StreamHandler(target)
    if stream is None:
        handler = WrittenByThread(target, partial(_dropped, formatter))
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter):
            root.removeHandler(old)
            old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in _TOLD_BY_US:
        logging.getLogger(name).setLevel(logging.ERROR)
    root.addFilter(_is_no_quotation)
    logging.getLogger(_SERVER).addFilter(_is_http)
    for name in _BLAMES_US:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_common(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _is_no_quotation(record: logging.LogRecord) -> bool:
    return record.levelno != logging.WARNING or not record.pathname.endswith(_QUOTES_WHAT_CAME)


def _is_http(record: logging.LogRecord) -> bool:
    return record.exc_info is None or type(record.exc_info[1]).__module__ != _NO_HTTP


@contextmanager
def log_context(
    *, thread_id: str | None = None, delivery: str | None = None, call_id: str | None = None
) -> Iterator[None]:
    """Puts these ids on every line that is logged within, in this task and in those it starts."""
    given = {"thread_id": thread_id, "delivery": delivery, "call_id": call_id}
    with structlog.contextvars.bound_contextvars(**{key: value for key, value in given.items() if value is not None}):
        yield


class Mask:
    """Takes secrets out of a text: the values it was given, addresses' queries, whatever looks like a token, and what
    the masker knows of."""

    def __init__(self, secrets: Iterable[str] = (), masker: Masker = NOTHING_ELSE) -> None:
        self._masker = masker
        forms = {form for secret in secrets if len(secret) >= _SHORTEST_SECRET for form in _forms(secret)}
        self._known = any_of(forms)
        self._clean: set[str] = set()
        """Short texts in which nothing was found, and no others: names and events come again on every line."""

    def __call__(self, text: str) -> str:
        """Returns the text with `***` in place of each secret."""
        if text in self._clean:
            return text
        masked = self._masked(text)
        if masked == text and len(text) <= _LONGEST_REMEMBERED:
            if len(self._clean) >= _MOST_REMEMBERED:
                self._clean = set()
            self._clean.add(text)
        return masked

    def _masked(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(IN_LOGS, text)
        return self._masker.mask(without_guessed(text, IN_LOGS))

    def __repr__(self) -> str:
        return "Mask(…)"


def _forms(secret: str) -> set[str]:
    """A secret as it may stand in a log: plain, within JSON, within a Python string, within an address."""
    return {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]} | {
        quote(secret, safe="", errors="surrogatepass"),
        quote(secret, errors="surrogatepass"),
    }


def _dropped(formatter: logging.Formatter, count: int) -> str:
    """The line that takes the place of those that nobody read in time."""
    record = logging.LogRecord(__name__, logging.WARNING, "", 0, f"{count} log lines were dropped", None, None)
    return formatter.format(record)


def _common() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderer(form: Literal["console", "json"], mask: Mask, *, colors: bool) -> list[Processor]:
    if form == "json":
        # Masked value by value: a mask over the finished line could take a quotation mark with it.
        return [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            lambda _logger, _method, event: _LineMask(mask).within(event),
            structlog.processors.JSONRenderer(ensure_ascii=False),
            lambda _logger, _method, line: _CONTROL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", str(line)),
        ]
    # The plain traceback: the pretty ones show the local variables.
    console = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)
    return [
        structlog.processors.format_exc_info,
        lambda _logger, _method, event: _for_a_terminal(event, mask),
        console,
        lambda _logger, _method, line: mask(_shortened(str(line), MOST_MASKED)),
    ]


def _for_a_terminal(event: Mapping[str, Any], mask: Mask) -> Mapping[str, Any]:
    """A line in which a terminal finds nothing to obey, and which does not go on in another line, but for a traceback.
    What is no text is shown as Python writes it, which is so already. Masked before: a token is known by the beginning
    of a word, and none begins behind the letter of an escape."""
    return {
        _ascii(key, _CONTROL): _ascii(
            mask(_shortened(text, MOST_MASKED)), _CONTROL_IN_LINES if key in {"exception", "stack"} else _CONTROL
        )
        if isinstance(text, str)
        else text
        for key, text in event.items()
    }


def _ascii(text: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda found: ascii(found[0])[1:-1], text)


class _LineMask:
    """Masks the values of one line, as many of their characters as a line may have."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._space_left = MOST_MASKED

    def within(self, value: Any) -> Any:
        """The value without secrets, and without what exceeds the line's limit."""
        match value:
            case None | bool() | int() | float():
                return value
            case Mapping():
                shown: dict[Any, Any] = {}
                # The short values first, so that what is left out is of the long ones.
                for key in sorted(value, key=lambda key: len(value[key]) if isinstance(value[key], str) else 0):
                    if self._space_left <= 0:
                        break
                    self._space_left -= len(str(key)[:_LONGEST_WORD]) + 1
                    shown[key] = self.within(value[key])
                return {self._mask(str(key)[:_LONGEST_WORD]): shown[key] for key in value if key in shown}
            case list() | tuple() | set() | frozenset():
                return [self.within(inner) for inner in value if self._space_left > 0]
            case _:
                return self._text(str(value))

    def _text(self, text: str) -> str:
        shown = _shortened(text, max(self._space_left, 0))
        self._space_left -= len(shown)
        return self._mask(shown)


def _shortened(text: str, limit: int) -> str:
    """A text of at most about `limit` characters: the beginning and the end, cut where a word ends."""
    if len(text) <= limit:
        return text
    end = min(_END, limit // 3)
    first, last = text[: limit - end], text[len(text) - end :]
    # Half of a secret would not be recognised: neither a half word nor the rest of a private key stays.
    first = first[: max(first.rfind(" "), first.rfind("\n"), len(first) - _LONGEST_WORD, 0)]
    last = last[last.rfind("-----END ") + 1 :]
    found = re.search(r"\s", last[:_LONGEST_WORD])
    last = last[found.end() if found else _LONGEST_WORD :]
    return f"{first} […{len(text) - len(first) - len(last):,} characters left out…] {last}"


# ------------------------------------------------------------------------------------------- writing lines


class WrittenByThread(logging.Handler):
    """Formats records where they are logged, as ids of the task go into a line, and writes them in a thread.

    Args:
        dropped: gives the line that says how many lines were dropped.
    """

    def __init__(self, stream: TextIO, dropped: Callable[[int], str]) -> None:
        super().__init__()
        self._stream = stream
        self._say_dropped = dropped
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        self._writing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._is_stuck = False
        atexit.register(self.close)

    def emit(self, record: logging.LogRecord) -> None:
        """Queues a line; never waits for its reader."""
        with self._changed:
            if len(self._lines) >= MOST_LINES:  # not worth the time that it takes to write and to mask it
                self._dropped += 1
                return
        try:
            line = self.format(record) + "\n"
        except Exception as fault:  # noqa: BLE001  # as every handler: what cannot be formatted stops nobody
            line = self._unwritable(record, fault) + "\n"
        with self._changed:
            if self._is_over:
                return
            if len(self._lines) >= MOST_LINES or self._characters + len(line) > MOST_CHARACTERS:
                self._dropped += 1
                return
            self._lines.append(line)
            self._characters += len(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _unwritable(self, record: logging.LogRecord, fault: Exception) -> str:
        """What is said of a line that cannot be formatted: where it is logged. `logging` would print what it should
        have said, as it is, with the secrets in it."""
        where = f"{record.pathname}:{record.lineno}: a line could not be written ({type(fault).__name__})"
        about = logging.LogRecord(record.name, logging.ERROR, record.pathname, record.lineno, where, None, None)
        return self.format(about)

    def flush(self) -> None:
        """Waits until all is written, `FLUSH_SECONDS` at most."""
        with self._changed:
            if not self._is_stuck:  # it was waited for already, and has not taken a line since
                done = self._changed.wait_for(lambda: not self._lines and not self._writing, FLUSH_SECONDS)
                self._is_stuck = not done

    def close(self) -> None:
        """Writes what waits, as far as it is taken in time; nothing more is."""
        atexit.unregister(self.close)
        self.flush()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        super().close()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._is_over)
                if not self._lines:
                    return
                text = "".join(self._lines)
                if self._dropped:
                    text += self._say_dropped(self._dropped) + "\n"
                self._lines.clear()
                self._characters = self._dropped = 0
                self._writing = True
            self._put(text)
            with self._changed:
                self._writing = self._is_stuck = False
                self._changed.notify_all()

    def _put(self, text: str) -> None:
        """Writes to the file descriptor where there is one: the stream's own lock, held while its reader is away, would
        keep the interpreter from ending."""
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError, io.UnsupportedOperation):
            descriptor = None
        try:
            if descriptor is None:
                self._stream.write(text)
                self._stream.flush()
                return
            left = text.encode(errors="backslashreplace")
            while left:
                left = left[os.write(descriptor, left) :]
        except (OSError, ValueError):
            pass  # nobody reads it any more, and there is nowhere to say so
