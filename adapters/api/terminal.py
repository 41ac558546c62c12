"""`python app.py chat`: a conversation in the terminal, over the HTTP API of a server that runs.

What the model writes comes as it is written; what waits for the person is asked there and then.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp
from yarl import URL

from adapters.shared.outages import AGAIN_SECONDS
from bot.events import happens
from bot.safe_text import visible, visible_line, written_arguments

TOKEN_VARIABLE = "COUNTERSIGN_TOKEN"  # noqa: S105  # its name
"""Where the token is taken from: never from the command line, which everybody on the machine can read."""
WAIT_SECONDS = 20
"""Seconds that one request waits for a turn to end, before it is asked again."""
REQUEST_SECONDS = 60.0
LONGEST_LINE = 2_000
LONGEST_LINK = 10_000
READY_SECONDS = 5.0
"""Longest wait for the stream, before a message is sent that could be answered at once."""
LARGEST_EVENT = 16 * 1024 * 1024
"""Bytes of an event, which is one line: a whole conversation may be in it."""
LONGEST_DATA = 1024 * 1024
"""Characters of the data of an event that are looked at: what the terminal shows of events is never as long."""
LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer of the server's."""
EARLY_SECONDS = 0.5
"""Pause after an answer that says, without any waiting, that a turn runs."""
UNEXPECTED = (LookupError, TypeError, AttributeError, ValueError, RecursionError)
"""What comes of an answer in another shape than this program knows."""
NOT_KNOWN = "The server answers in a way that this program does not know: one of them is older."
HELP = (
    "Write to the bot. /new begins another conversation, /wait asks again about what waits, /quit ends; Ctrl-C stops a "
    "turn that runs."
)
QUIT = frozenset({"/quit", "/exit"})
BOT = "\nbot> "


class ChatRefused(Exception):  # noqa: N818  # an answer
    """The server did not do it; the text is a sentence for whoever sits there."""


class Terminal(Protocol):
    """Where somebody sits."""

    async def ask(self, question: str) -> str | None:
        """What they type; `None`: they have closed it."""
        ...

    def write(self, text: str) -> None:
        """Show text as it is; without a line break at its end."""
        ...


class StandardTerminal:
    """Standard input and output."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        # Reading blocks, and nothing can break it off: a thread of the event loop's would hold up the end.
        self._reader = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._began = self._closed = False

    async def ask(self, question: str) -> str | None:
        """The next line."""
        if not self._began:
            self._began = True
            self._reader.start()
        self.write(question)
        line = await self._lines.get() if not self._closed or not self._lines.empty() else ""
        self._closed = not line
        return line.rstrip("\r\n") if line else None

    def write(self, text: str) -> None:
        """Writes at once; what the terminal's encoding lacks as a question mark."""
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()

    def _read(self) -> None:
        while True:
            line = sys.stdin.buffer.readline().decode(sys.stdin.encoding or "utf-8", "replace")
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:
                return  # the loop has ended
            if not line:
                return


@dataclass(frozen=True, slots=True)
class ChatEvent:
    """Something that happened in a conversation."""

    name: str
    data: Mapping[str, Any]
    event_id: str
    """Empty: it has none."""


class ChatClient:
    """The API as a client uses it. Raises `ChatRefused`."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str | None) -> None:
        self._session = session
        self._base = URL(url)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def call(self, method: str, path: Sequence[str], body: Any = None, **query: Any) -> Mapping[str, Any]:
        """One request; the JSON of its answer.

        Args:
            path: parts below `/api/v1`.
        """
        url = self._base.joinpath("api", "v1", *path).with_query(query)
        try:
            async with self._session.request(
                method, url, json=body, headers=self._headers, allow_redirects=False
            ) as response:
                said = await _json_of(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ChatRefused(f"{self._base} cannot be reached ({type(error).__name__}).") from None
        if not isinstance(said, dict) or 300 <= response.status < 400:  # of HTTP
            raise ChatRefused(f"{self._base} does not answer as a Countersign server does ({response.status}).")
        if response.status >= 400:  # of HTTP
            errors = said.get("errors") or {}
            listed = "; ".join(f"{name}: {why}" for name, why in errors.items()) if isinstance(errors, dict) else ""
            raise ChatRefused(visible(f"{said.get('detail', response.reason)} {listed}".strip()))
        return said

    async def events(self, thread_id: str, last: str) -> AsyncIterator[ChatEvent]:
        """What happens in a conversation until the connection ends. `last`: id of the last event that is known."""
        url = self._base.joinpath("api", "v1", "threads", thread_id, "events")
        async with self._session.get(
            url,
            headers={**self._headers, "Last-Event-ID": last} if last else self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_read=REQUEST_SECONDS),
            read_bufsize=LARGEST_EVENT,
            allow_redirects=False,
        ) as response:
            if response.status != 200:  # of HTTP
                return
            name, data, event_id = "", "", ""
            async for raw in response.content:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if not line:
                    with suppress(ValueError, RecursionError):
                        event = json.loads(data) if len(data) <= LONGEST_DATA else {}
                        if isinstance(event, dict):
                            yield ChatEvent(name, event, event_id)
                    name, data, event_id = "", "", ""
                elif line.startswith("event:"):
                    name = line.removeprefix("event:").strip()
                elif line.startswith("data:") and len(data) <= LONGEST_DATA:
                    data += line.removeprefix("data:").strip()
                elif line.startswith("id:"):
                    event_id = line.removeprefix("id:").strip()


class SpokenText:
    """What the bot says, on a terminal: as it is written, and the rest of it, or all, once it is known whole."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._all = ""
        """All that was written of this turn."""
        self._message = ""
        """Which answer is being written."""
        self._text = ""
        """As far as it is there."""
        self._count = 0
        """How many of its pieces are."""
        self._over: set[str] = set()
        """Answers that are there whole."""

    def add(self, message: str, number: int, text: str, *, is_all: bool = False) -> None:
        """The next piece of an answer, which is its `number`-th. `is_all`: it is all pieces up to there."""
        if message in self._over:
            return
        if message != self._message:
            self._end()
            self._message, self._text, self._count = message, "", 0
        if number <= self._count:
            return
        self._count = number
        shown = visible(text)
        self._write(shown[len(self._text) :] if is_all else shown)

    def posted(self, message: str, text: str) -> None:
        """An answer that was being written is there whole."""
        if message == self._message:
            self.whole(text)

    def whole(self, answer: str) -> None:
        """The answer, whole."""
        shown = visible(answer).strip()
        begun = self._text.lstrip()
        if begun and shown.startswith(begun):
            self._write(shown[len(begun) :])
        elif shown and shown not in self._all:
            self._end()
            self._write(shown)
        self._end()

    def _write(self, text: str) -> None:
        if not text:
            return
        if not self._text:
            self._terminal.write(BOT)
        self._text += text
        self._all += text
        self._terminal.write(text)

    def _end(self) -> None:
        if self._text:
            self._terminal.write("\n")
        if self._message:
            self._over.add(self._message)
        self._message, self._text, self._count = "", "", 0


class Chat:
    """One person's conversation."""

    def __init__(self, client: ChatClient, terminal: Terminal) -> None:
        self._client = client
        self._terminal = terminal
        self._thread = ""
        self._message = ""
        """What was written last."""
        self._last_event = ""
        self._written = SpokenText(terminal)
        self._skipped: set[str] = set()
        """What the person did not want to decide now."""

    async def run(self, thread_id: str = "") -> None:
        """Until the person ends it. Raises `ChatRefused` when there is no server at the beginning."""
        me = await self._client.call("GET", ["me"])
        self._line(f"You are {_short(me.get('name', ''))}. {HELP}")
        try:
            self._thread = thread_id or await self._new()
        except UNEXPECTED:
            raise ChatRefused(NOT_KNOWN) from None
        while True:
            text = await self._terminal.ask("\nyou> ")
            if text is None or text.strip() in QUIT:
                return
            if text.strip():
                await self._until_stopped(text.strip())

    async def _new(self) -> str:
        return str((await self._client.call("POST", ["threads"]))["id"])

    async def _until_stopped(self, text: str) -> None:
        """What a line asks for; Ctrl-C stops a turn, and ends the program at other times."""
        turn = asyncio.create_task(self._do(text), name="chat turn")
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, RuntimeError):  # not on Windows, nor beside the main thread
            loop.add_signal_handler(signal.SIGINT, turn.cancel)
        try:
            await asyncio.wait([turn])
        finally:
            with suppress(NotImplementedError, RuntimeError):
                loop.remove_signal_handler(signal.SIGINT)
            turn.cancel()
        try:
            turn.result()
        except asyncio.CancelledError:
            self._line("\nStopped.")
        except ChatRefused as refused:
            self._line(str(refused))
        except UNEXPECTED:
            self._line(NOT_KNOWN)

    async def _do(self, text: str) -> None:
        match text:
            case "/new":
                self._thread, self._message, self._last_event = await self._new(), "", ""
            case "/wait":
                self._skipped.clear()
                if self._message:
                    await self._turn("")
                else:
                    self._line("Nothing waits here.")
            case _:
                await self._turn(text)

    async def _turn(self, text: str) -> None:
        """Send a message (empty: none), and see through what comes of it."""
        self._written = SpokenText(self._terminal)
        ready = asyncio.Event()
        streaming = asyncio.create_task(self._stream(self._thread, ready), name="chat stream")
        try:
            await happens(ready, READY_SECONDS)
            if text:
                sent = await self._client.call("POST", ["threads", self._thread, "messages"], {"text": text})
                self._message = str(sent["message_id"])
            await self._see_through()
        except asyncio.CancelledError:
            with suppress(ChatRefused):
                await self._client.call("POST", ["threads", self._thread, "stop"])
            raise
        finally:
            streaming.cancel()
            await asyncio.gather(streaming, return_exceptions=True)

    async def _stream(self, thread_id: str, ready: asyncio.Event) -> None:
        """Write what the bot says while it says it. Without a stream the answers come whole."""
        while True:
            with suppress(aiohttp.ClientError, TimeoutError, ValueError):  # a line that is longer than any event
                async for event in self._client.events(thread_id, self._last_event):
                    self._last_event = event.event_id or self._last_event
                    self._take(event)
                    if event.name == "status":  # it comes when all that there is was sent
                        ready.set()
                    elif ready.is_set():
                        self._tell_stop(event)
            ready.set()
            await asyncio.sleep(AGAIN_SECONDS)

    def _take(self, event: ChatEvent) -> None:
        match event.name, event.data:
            case "text", {"message_id": str(message), "n": int(number), "delta": str(text), **more}:
                self._written.add(message, number, text, is_all=bool(more.get("whole")))
            case "post", {"id": str(post), "content": {"kind": "said", "text": str(text)}}:
                self._written.posted(post.removeprefix("said:"), text)

    def _tell_stop(self, event: ChatEvent) -> None:
        """That an operator has stopped everything: nothing else may come for hours."""
        match event.name, event.data:
            case "post", {"id": str(post), "content": {"kind": "notice", "text": str(text)}}:
                if post.startswith("halted:"):
                    self._line(f"\n{visible(text)}")

    async def _see_through(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            asked_at = clock()
            turn = await self._client.call(
                "GET", ["threads", self._thread, "messages", self._message], wait=WAIT_SECONDS
            )
            if turn["status"] == "running":
                if clock() - asked_at < EARLY_SECONDS:  # it does not wait
                    await asyncio.sleep(EARLY_SECONDS)
                continue
            self._written.whole(str(turn["answer"]))
            for source in turn.get("sources", ()):
                self._line(visible(_cited(source)))
            for notice in turn["notices"]:
                self._line(visible(str(notice)))
            if turn["status"] == "ended":
                return
            if not await self._decide(turn):
                self._line("It waits. A message replaces what waits for you; /wait asks again.")
                return

    def _line(self, text: str) -> None:
        self._terminal.write(f"{text}\n")

    # ------------------------------------------------------------------------------- what waits

    async def _decide(self, turn: Mapping[str, Any]) -> bool:
        """Ask for what waits. Returns whether anything was settled, so that the turn goes on."""
        settled = False
        for clarification in turn["clarifications"]:
            settled |= await self._answer(clarification)
        for sign_in in (each for each in turn["sign_ins"] if each["status"] == "open"):
            settled |= await self._sign_in(sign_in)
        for outcome in turn["outcomes"]:
            settled |= await self._outcome(outcome)
        for approval in turn["approvals"]:
            if approval["id"] not in self._skipped:
                settled |= await self._approve(approval)
        return settled

    async def _approve(self, approval: Mapping[str, Any]) -> bool:
        self._line(f"\n{_named(approval)} needs approval: {_short(approval['may_decide'])} may decide.")
        self._arguments(approval["arguments"])
        if approval["risk"]:
            self._line(f"  ({_short(', '.join(approval['risk']))})")
        if approval["masks"]:
            self._line(f"  {_short(approval['masks'])} masked; fingerprint {_short(approval['fingerprint'])}")
        verb = await self._choice("[a]pprove, [r]eject, [l]ater", {"a": "approve", "r": "reject", "l": ""}, "l")
        if not verb:
            self._skipped.add(approval["id"])
            return False
        body = {"verb": verb}
        if verb == "reject":
            body["reason"] = await self._terminal.ask("why? ") or ""
        done = await self._tried(["approvals", approval["id"], "decision"], body)
        if not done:
            self._skipped.add(approval["id"])
        return done

    async def _answer(self, clarification: Mapping[str, Any]) -> bool:
        self._line(f"\n{_short(clarification['server']) or 'The bot'} asks: {visible(clarification['question'])}")
        if clarification["context"]:
            self._line(visible(clarification["context"]))
        where = ["clarifications", clarification["id"]]
        if clarification["server"]:
            letters = {"a": "answer", "d": "decline", "l": ""}
            choice = await self._choice("[a]nswer, [d]ecline, [l]ater", letters, "l")
            if choice == "decline":
                return await self._tried([*where, "dismissal"], {"action": "decline"})
            if not choice:
                return False
        fields = clarification["fields"]
        if not fields:
            text = await self._terminal.ask("answer> ")
            return bool(text) and await self._tried([*where, "answer"], {"text": text})
        values: dict[str, Any] = {}
        for field in fields:
            typed = await self._terminal.ask(f"{_label(field)}> ")
            if typed is None:
                return False
            if typed.strip():
                values[field["name"]] = _typed(typed.strip(), str(field.get("type", "")))
        return await self._tried([*where, "answer"], {"values": values})

    async def _sign_in(self, sign_in: Mapping[str, Any]) -> bool:
        where = ["sign-ins", sign_in["id"]]
        try:
            link = await self._client.call("GET", [*where, "link"])
        except ChatRefused as refused:
            self._line(str(refused))
            return False
        service = _short(sign_in["service"] or sign_in["server"])
        address = visible_line(str(link["url"]), LONGEST_LINK)
        self._line(f"\n{service} needs you to sign in ({_short(sign_in['host'])}): {address}")
        if text := link.get("message"):
            self._line(visible(str(text)))
        choices = {"d": "done", "n": "not now", "l": ""}
        question = "[d]one, [n]ot now, [l]ater"
        if sign_in["code_wanted"]:
            choices["c"], question = "code", f"[c]ode that the browser shows, {question}"
        match await self._choice(question, choices, "l"):
            case "code":
                code = await self._terminal.ask("code> ") or ""
                return bool(code.strip()) and await self._tried([*where, "code"], {"code": code.strip()})
            case "":
                return False
            case said:
                return await self._tried(where, {"done": said == "done"})

    async def _outcome(self, outcome: Mapping[str, Any]) -> bool:
        self._line(f"\nWhat came of {_named(outcome)} is not known. {visible(outcome['known'])}")
        self._arguments(outcome["arguments"])
        choices = {"d": "it_was_done", "t": "try_again", "s": "skip", "l": ""}
        choice = await self._choice("it was [d]one, [t]ry again, [s]kip, [l]ater", choices, "l")
        return bool(choice) and await self._tried(["outcomes", outcome["id"]], {"choice": choice})

    async def _choice(self, question: str, choices: Mapping[str, str], closed: str) -> str:
        """One of the letters. `closed`: which it is when the terminal was closed."""
        while True:
            typed = await self._terminal.ask(f"{question}> ")
            letter = closed if typed is None else typed.strip().lower()[:1]
            if letter in choices:
                return choices[letter]

    async def _tried(self, path: Sequence[str], body: Mapping[str, Any]) -> bool:
        try:
            said = await self._client.call("POST", path, body)
        except ChatRefused as refused:
            self._line(str(refused))
            return False
        if text := said.get("text"):
            self._line(visible(str(text)))
        return True

    def _arguments(self, arguments: Mapping[str, Any]) -> None:
        for label, written in written_arguments(arguments):
            # Indented, so that no value reads like a line of ours.
            self._line(f"  {_short(label)}: {visible(written)}".replace("\n", "\n    "))


async def _json_of(response: aiohttp.ClientResponse) -> Any:
    """What it says; `None`: what is no JSON, or too much. Raises `aiohttp.ClientError`."""
    raw = await response.content.read(0)
    async for piece in response.content.iter_chunked(2**16):
        raw += piece
        if len(raw) > LARGEST_ANSWER:
            return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _short(text: Any) -> str:
    """Text of the server's on one line."""
    return visible_line(str(text), LONGEST_LINE)


def _named(call: Mapping[str, Any]) -> str:
    return f"{_short(call['server'])}: {_short(call['tool'])}"


def _label(field: Mapping[str, Any]) -> str:
    """What is asked for, with what may be chosen."""
    label = _short(field.get("label") or field["name"])
    if options := field.get("options"):
        label += f" ({', '.join(_short(each) for each in options)})"
    return label if field.get("required", True) else f"{label} (optional)"


def _typed(text: str, kind: str) -> Any:
    """What was typed, as the value that a field of this type takes; what cannot be read is left to the server."""
    match kind:
        case "yes-no":
            return text.strip().lower() in {"y", "yes", "true", "1"}
        case "integer" | "number" | "json":
            with suppress(ValueError, RecursionError):
                return json.loads(text)
    return text


def _cited(source: Mapping[str, Any]) -> str:
    """What an answer cites, in one line."""
    page = f"page {source['page']}" if source["page"] is not None else ""
    return f"[{source['number']}] " + ", ".join(filter(None, [source["name"], page, source["section"]]))


def chat_here(url: str, thread_id: str) -> int:
    """Talk with the bot at a server, in this terminal. Returns the exit code."""

    async def talk() -> None:
        await chat(url, os.environ.get(TOKEN_VARIABLE, "").strip() or None, StandardTerminal(), thread_id)

    try:
        asyncio.run(talk())
    except ChatRefused as refused:
        sys.stderr.write(f"countersign: {refused}\n")
        return 1
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    return 0


async def chat(url: str, token: str | None, terminal: Terminal, thread_id: str = "") -> None:
    """Talk with the bot at a server. Raises `ChatRefused`."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        await Chat(ChatClient(session, url, token), terminal).run(thread_id)
