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
from typing import Any, Protocol

import aiohttp
from yarl import URL

from adapters.shared.outages import AGAIN_SECONDS
from bot.safe_text import visible, visible_line

TOKEN_VARIABLE = "COUNTERSIGN_TOKEN"  # noqa: S105  # its name
"""Where the token is taken from: never from the command line, which everybody on the machine can read."""
WAIT_SECONDS = 20
"""Seconds that one request waits for a turn to end, before it is asked again."""
REQUEST_SECONDS = 60.0
LONGEST_LINE = 2_000
HELP = "Write to the bot. /new begins another conversation, /quit ends; Ctrl-C stops a turn that runs."
QUIT = frozenset({"/quit", "/exit"})


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
        return line.rstrip("\n") if line else None

    def write(self, text: str) -> None:
        """Writes at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def _read(self) -> None:
        while True:
            line = sys.stdin.readline()
            try:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            except RuntimeError:
                return  # the loop has ended
            if not line:
                return


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
            async with self._session.request(method, url, json=body, headers=self._headers) as response:
                said: Any = await response.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ChatRefused(f"{self._base} cannot be reached ({type(error).__name__}).") from None
        if not isinstance(said, dict):
            raise ChatRefused(f"{self._base} does not answer as a Countersign server does.")
        if response.status >= 400:  # of HTTP
            errors = "; ".join(f"{name}: {why}" for name, why in said.get("errors", {}).items())
            raise ChatRefused(visible(f"{said.get('detail', response.reason)} {errors}".strip()))
        return said

    async def events(self, thread_id: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        """What happens in a conversation, by name, until the connection ends."""
        url = self._base.joinpath("api", "v1", "threads", thread_id, "events")
        async with self._session.get(
            url, headers=self._headers, timeout=aiohttp.ClientTimeout(total=None, sock_read=REQUEST_SECONDS)
        ) as response:
            if response.status != 200:  # of HTTP
                return
            name, data = "", ""
            async for raw in response.content:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if not line and data:
                    with suppress(ValueError):
                        yield name, json.loads(data)
                    name, data = "", ""
                elif line.startswith("event:"):
                    name = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    data += line.removeprefix("data:").strip()


class Chat:
    """One person's conversation."""

    def __init__(self, client: ChatClient, terminal: Terminal) -> None:
        self._client = client
        self._terminal = terminal
        self._written = ""
        """Of the answer that is being written, what is there already."""
        self._skipped: set[str] = set()
        """What the person did not want to decide now."""

    async def run(self, thread_id: str = "") -> None:
        """Until the person ends it. Raises `ChatRefused` when there is no server at the beginning."""
        me = await self._client.call("GET", ["me"])
        self._line(f"You are {visible_line(str(me.get('name', '')), LONGEST_LINE)}. {HELP}")
        thread_id = thread_id or await self._new()
        while True:
            text = await self._terminal.ask("\nyou> ")
            if text is None or text.strip() in QUIT:
                return
            if text.strip() == "/new":
                thread_id = await self._new()
                continue
            if not text.strip():
                continue
            await self._until_stopped(thread_id, text)

    async def _new(self) -> str:
        return str((await self._client.call("POST", ["threads"], {}))["id"])

    async def _until_stopped(self, thread_id: str, text: str) -> None:
        """A turn, which Ctrl-C stops; at other times that ends the program."""
        turn = asyncio.create_task(self._turn(thread_id, text), name="chat turn")
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

    async def _turn(self, thread_id: str, text: str) -> None:
        self._written = ""
        streaming = asyncio.create_task(self._stream(thread_id), name="chat stream")
        try:
            sent = await self._client.call("POST", ["threads", thread_id, "messages"], {"text": text})
            await self._see_through(thread_id, str(sent["message_id"]))
        except asyncio.CancelledError:
            with suppress(ChatRefused):
                await self._client.call("POST", ["threads", thread_id, "stop"], {})
            raise
        finally:
            streaming.cancel()
            await asyncio.gather(streaming, return_exceptions=True)

    async def _stream(self, thread_id: str) -> None:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                async for name, event in self._client.events(thread_id):
                    if name == "text":
                        self._add(str(event.get("delta", "")))
            await asyncio.sleep(AGAIN_SECONDS)

    def _add(self, delta: str) -> None:
        if not self._written:
            self._terminal.write("\nbot> ")
        self._written += delta
        self._terminal.write(delta)

    async def _see_through(self, thread_id: str, message: str) -> None:
        while True:
            turn = await self._client.call("GET", ["threads", thread_id, "messages", message], wait=WAIT_SECONDS)
            if turn["status"] == "running":
                continue
            self._say(str(turn["answer"]))
            for notice in turn["notices"]:
                self._line(notice)
            if turn["status"] == "ended" or not await self._decide(turn):
                return
            self._written = ""

    def _say(self, answer: str) -> None:
        """The answer, unless it was there as it was written."""
        if answer and answer.strip() not in self._written:
            self._terminal.write("\nbot> " + answer)
            self._written = answer
        if self._written:
            self._terminal.write("\n")

    def _line(self, text: str) -> None:
        self._terminal.write(f"{text}\n")

    # ------------------------------------------------------------------------------- what waits

    async def _decide(self, turn: Mapping[str, Any]) -> bool:
        """Ask for what waits. Returns whether anything was settled, so that the turn goes on."""
        settled = False
        for clarification in turn["clarifications"]:
            settled |= await self._answer(clarification)
        for sign_in in turn["sign_ins"]:
            settled |= await self._sign_in(sign_in)
        for outcome in turn["outcomes"]:
            settled |= await self._outcome(outcome)
        for approval in turn["approvals"]:
            if approval["id"] not in self._skipped:
                settled |= await self._approve(approval)
        return settled

    async def _approve(self, approval: Mapping[str, Any]) -> bool:
        self._line(f"\n{approval['server']}: {approval['tool']} needs approval ({approval['may_decide']} may decide).")
        self._arguments(approval["arguments"])
        verb = await self._choice("[a]pprove, [r]eject, [l]ater", {"a": "approve", "r": "reject", "l": ""}, "l")
        if not verb:
            self._skipped.add(approval["id"])
            return False
        body = {"verb": verb}
        if verb == "reject":
            body["reason"] = await self._terminal.ask("why? ") or ""
        return await self._tried(["approvals", approval["id"], "decision"], body)

    async def _answer(self, clarification: Mapping[str, Any]) -> bool:
        self._line(f"\n{clarification['server'] or 'The bot'} asks: {clarification['question']}")
        fields = clarification["fields"]
        if not fields:
            text = await self._terminal.ask("answer> ")
            return bool(text) and await self._tried(["clarifications", clarification["id"], "answer"], {"text": text})
        values = {}
        for field in fields:
            options = f" ({', '.join(map(str, field['options']))})" if field.get("options") else ""
            label = visible_line(str(field.get("label") or field["name"]), LONGEST_LINE)
            typed = await self._terminal.ask(f"{label}{options}> ")
            if typed:
                values[field["name"]] = _typed(typed, str(field.get("type", "")))
        return await self._tried(["clarifications", clarification["id"], "answer"], {"values": values})

    async def _sign_in(self, sign_in: Mapping[str, Any]) -> bool:
        link = await self._client.call("GET", ["sign-ins", sign_in["id"], "link"])
        self._line(f"\n{sign_in['server']} needs you to sign in ({sign_in['host']}): {link.get('url', '')}")
        if not await self._choice("[d]one, [n]ot now", {"d": "done", "n": ""}, "n"):
            return await self._tried(["sign-ins", sign_in["id"]], {"done": False})
        return await self._tried(["sign-ins", sign_in["id"]], {"done": True})

    async def _outcome(self, outcome: Mapping[str, Any]) -> bool:
        self._line(f"\nWhat came of {outcome['server']}: {outcome['tool']} is not known. {outcome['known']}")
        choices = {"d": "it_was_done", "t": "try_again", "s": "skip"}
        choice = await self._choice("it was [d]one, [t]ry again, [s]kip", choices, "s")
        return await self._tried(["outcomes", outcome["id"]], {"choice": choice})

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
            self._line(str(text))
        return True

    def _arguments(self, arguments: Mapping[str, Any]) -> None:
        for name, value in arguments.items():
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            self._line(f"  {visible_line(name, LONGEST_LINE)}: {visible(written)}")


def _typed(text: str, kind: str) -> Any:
    """What was typed, as the value that a field of this type takes; what cannot be read is left to the server."""
    match kind:
        case "yes-no":
            return text.strip().lower() in {"y", "yes", "true", "1"}
        case "integer" | "number" | "json":
            with suppress(ValueError):
                return json.loads(text)
    return text


def chat_here(url: str, thread_id: str) -> int:
    """Talk with the bot at a server, in this terminal. Returns the exit code."""

    async def talk() -> None:
        await chat(url, os.environ.get(TOKEN_VARIABLE) or None, StandardTerminal(), thread_id)

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
