"""`python app.py chat`: a conversation in the terminal, with whatever waits for the person asked there and then."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from adapters.api.terminal import (
    EARLY_SECONDS,
    LONGEST_DATA,
    NOT_KNOWN,
    TOKEN_VARIABLE,
    ChatClient,
    ChatRefused,
    SpokenText,
    chat,
)
from tests.api.contract_clients import Caller, http, token, with_tokens
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.product.test_halting import GO_ON, STOP, STOPPED
from tests.support.brain import obedient
from tests.support.fixtures import connect, shop
from tests.support.forks import ROOT
from tests.support.ports import free_port
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry

__all__ = ["shop"]
WITHIN = 30.0
"""Seconds that anything may take."""
CONTROLS = "\x1b[2J\x1b]0;title\x07\x9b31m\r\b\ud83d"
"""What clears a screen, sets a title, colours, goes back, and is no character."""


@dataclass
class ScriptedTerminal:
    """Somebody who answers each question as the script says, and then closes the terminal."""

    script: list[tuple[str, str]]
    """Words of a question → what is typed."""
    shown: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What is typed → what happens before that."""

    async def ask(self, question: str) -> str | None:
        self.write(question)
        if not self.script:
            return None
        words, typed = self.script.pop(0)
        assert words in question, self.shown
        self.before.get(typed, lambda: None)()
        self.write(f"{typed}\n")
        return typed

    def write(self, text: str) -> None:
        self.shown += text
        self.changed.set()

    async def shows(self, text: str) -> None:
        """Wait until it is there."""
        async with asyncio.timeout(WITHIN):
            while text not in self.shown:
                self.changed.clear()
                await self.changed.wait()


def said(text: str) -> tuple[str, str]:
    """A message."""
    return "you>", text


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """A model service that does what the message says, and says what could control a terminal."""

    def brain(request: Request) -> Reply:
        match str(request["messages"][-1]["content"]).rpartition(": ")[2]:
            case "control me":
                return Reply(text=f"Look: {CONTROLS} is harmless.")
            case "make lines":
                return Reply(calls=[ToolUse("workshop__make", {"what": "lamp\nyou> "})])
        return obedient(request)

    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A product with that tool server and that model, which takes tokens."""
    home = with_tokens(ProductFolder(tmp_path))
    connect(home, shop, model)
    return home


@asynccontextmanager
async def talking(home: ProductFolder, terminal: ScriptedTerminal) -> AsyncIterator[asyncio.Task[None]]:
    """Ana at a terminal."""
    async with product_here(home) as url:
        task = asyncio.create_task(chat(url, token("ana"), terminal))
        yield task
        async with asyncio.timeout(WITHIN):
            await task


async def talked(home: ProductFolder, *script: tuple[str, str], **before: Callable[[], None]) -> str:
    """What stands on Ana's terminal when she has said all that."""
    terminal = ScriptedTerminal([*script], before=before)
    async with talking(home, terminal):
        pass
    assert terminal.script == [], terminal.shown
    return terminal.shown


async def test_what_the_bot_says_stands_there_while_it_works_and_once(home: ProductFolder, shop: Workshop) -> None:
    terminal = ScriptedTerminal([said("use report what=slow"), said("/new"), said("hello")])
    async with talking(home, terminal):
        await terminal.shows("\nbot> On it.")
        assert "Results" not in terminal.shown
        shop.may_end.set()
    assert re.findall("bot> .*", terminal.shown) == [
        "bot> On it.",
        "bot> Results: made all of slow",
        "bot> You said: hello",
    ]


async def test_what_the_server_says_never_controls_the_terminal(home: ProductFolder) -> None:
    home.tool_servers({})
    shown = await talked(home, said("control me"))
    assert "Look: ⟨U+001B⟩[2J" in shown
    assert "is harmless" in shown
    assert not re.search(r"[^\n\t\x20-\U0010ffff]|[\x7f-\x9f\ud800-\udfff]", shown)


def test_a_control_sequence_in_two_pieces_is_seen_as_well() -> None:
    terminal = ScriptedTerminal([])
    written = SpokenText(terminal)
    written.add("m", 1, "a\x1b")
    written.add("m", 2, "[31mb")
    written.add("m", 2, "again")
    written.add("m", 4, "a\x1b[31mb and c\x1b", is_all=True)
    written.whole("a\x1b[31mb and c\x1b[0m")
    written.add("m", 5, "too late")
    assert terminal.shown == "\nbot> a⟨U+001B⟩[31mb and c⟨U+001B⟩[0m\n"


async def test_approvals_are_asked_for_and_a_rejection_has_a_reason(home: ProductFolder, shop: Workshop) -> None:
    shown = await talked(
        home,
        said("use make what=lamp count=2; make what=bed; make what=desk"),
        ("[a]pprove", "what?"),
        ("[a]pprove", "a"),
        ("[a]pprove", "r"),
        ("why?", "there is one"),
        ("[a]pprove", "l"),
        said("/wait"),
        ("[a]pprove", "a"),
    )
    assert "workshop: make needs approval" in shown
    assert "  What: lamp\n  Count: 2\n  (writes, destroys, reaches outside)\n" in shown
    assert "It waits." in shown
    assert "there is one" in shown.rpartition("bot> Results: ")[2]
    assert sorted(shop.done) == ["make desk 1", "make lamp 2"]


async def test_no_value_of_a_call_reads_like_a_question_of_the_terminals(
    home: ProductFolder, model: FakeOpenAI
) -> None:
    shown = await talked(home, said("make lines"), ("[a]pprove", "l"))
    assert "  What: lamp\n    you> \n" in shown


async def test_a_question_is_answered_by_its_form(home: ProductFolder) -> None:
    shown = await talked(home, said("ask lamp"), ("Size", "7"))
    assert "The bot asks: Which lamp?" in shown
    assert "7" in shown.rpartition("bot> Results: ")[2]


async def test_a_sign_in_shows_its_link_and_goes_on_when_it_is_done(home: ProductFolder, shop: Workshop) -> None:
    def sign_in() -> None:
        shop.signed_in = True

    shown = await talked(
        home,
        said("use make_with_account what=lamp"),
        ("[a]pprove", "approve"),
        ("[d]one", "done"),
        done=sign_in,
    )
    assert "http" in shown.partition("needs you to sign in (accounts.example.com): ")[2][:10]
    assert shop.done == ["make_with_account lamp"]


async def test_what_came_of_a_call_is_asked_when_it_is_not_known(home: ProductFolder, shop: Workshop) -> None:
    home.tool_servers({"workshop": entry(shop, timeoutSeconds=3)})
    shown = await talked(home, said("use make_slowly what=lamp"), ("[a]pprove", "a"), ("[t]ry again", "d"))
    assert "What came of workshop: make_slowly is not known." in shown
    assert "as ana confirmed" in shown
    assert len(shop.done) == 1


async def test_that_everything_is_stopped_stands_there_once_and_the_answer_comes_later(home: ProductFolder) -> None:
    home.variables["OPERATORS"] = "web:olga"
    terminal = ScriptedTerminal([said("hello"), said("bye")])
    async with product_here(home) as url, http() as connections:
        olga = Caller(url, connections, token("olga"))
        assert (await olga.post(STOP, {"why": "a fire"})).status == 200
        talking = asyncio.create_task(chat(url, token("ana"), terminal))
        await terminal.shows(STOPPED)
        assert (await olga.post(GO_ON, {})).status == 200
        async with asyncio.timeout(WITHIN):
            await talking
    assert terminal.shown.count(STOPPED) == 1
    assert re.findall("bot> .*", terminal.shown) == ["bot> You said: hello", "bot> You said: bye"]


async def test_a_server_that_is_away_and_one_that_is_another_program_are_named(model: FakeOpenAI) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ChatRefused, match=f"{away}/? cannot be reached"):
        await chat(away, None, ScriptedTerminal([]))
    with pytest.raises(ChatRefused, match="does not answer as a Countersign server does"):
        await chat(model.base_url, None, ScriptedTerminal([]))


async def test_a_wrong_token_is_refused_with_the_servers_reason(home: ProductFolder) -> None:
    async with product_here(home) as url:
        with pytest.raises(ChatRefused, match="token"):
            await chat(url, "cs_wrong", ScriptedTerminal([]))


async def test_the_command_talks_over_pipes_and_ctrl_c_stops_the_turn(home: ProductFolder) -> None:
    async with product_here(home) as url:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "app.py",
            "chat",
            "--url",
            url,
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, TOKEN_VARIABLE: token("ana")},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(WITHIN):
            await process.stdout.readuntil(b"you> ")
            process.stdin.write(b"use report what=slow\n")
            await process.stdout.readuntil(b"bot> On it.")
            process.send_signal(signal.SIGINT)
            await process.stdout.readuntil(b"Stopped.\n")
            process.stdin.write("Grüß dich\n".encode())
            await process.stdout.readuntil("bot> You said: Grüß dich\n".encode())
            process.stdin.write(b"caf\xe9\n")
            await process.stdout.readuntil("bot> You said: caf\ufffd\n".encode())
            process.stdin.close()
            await process.stdout.read()
            assert await process.wait() == 0


# ------------------------------------------------------------------------------- servers of other kinds


APPROVAL: dict[str, Any] = {
    "id": "a",
    "server": "workshop",
    "tool": "make",
    "may_decide": "you",
    "arguments": {},
    "risk": [],
    "masks": 0,
    "fingerprint": "",
}
QUESTION: dict[str, Any] = {"id": "c", "server": "", "question": "What?", "context": "", "fields": []}


@asynccontextmanager
async def another_server(*turns: dict[str, Any], message: str = "m", events: bytes = b"") -> AsyncIterator[str]:
    """A server that answers as it likes: where a turn stands one after the other, the last one again and again."""
    left = [
        {"status": "waiting", "answer": "", "notices": [], "clarifications": [], "sign_ins": [], "outcomes": []}
        | {"approvals": []}
        | turn
        for turn in turns
    ]

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/events"):
            return web.Response(body=events, content_type="text/event-stream")
        if "/messages/" in request.path:
            return web.json_response(left.pop(0) if len(left) > 1 else left[0])
        return web.json_response({"name": "Ana", "id": "web:x", "message_id": message})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def talked_to(url: str, *script: tuple[str, str]) -> str:
    """What stands on the terminal at the end."""
    terminal = ScriptedTerminal([*script])
    async with asyncio.timeout(WITHIN):
        await chat(url, None, terminal)
    return terminal.shown


@pytest.mark.parametrize(
    ("turn", "message", "script"),
    [
        ({"approvals": [APPROVAL | {"arguments": ["lamp"]}]}, "m", []),
        ({"approvals": [APPROVAL | {"id": "/etc"}]}, "m", [("[a]pprove", "a")]),
        ({"clarifications": [QUESTION | {"fields": ["size"]}]}, "m", []),
        ({}, "/m", []),
    ],
)
async def test_an_answer_in_a_shape_that_is_not_known_ends_the_turn_alone(
    turn: dict[str, Any], message: str, script: list[tuple[str, str]]
) -> None:
    async with another_server(turn, message=message) as url:
        shown = await talked_to(url, said("hello"), *script)
    assert f"{NOT_KNOWN}\n\nyou> " in shown


async def test_lists_in_lists_without_end_are_left_to_the_server() -> None:
    question = QUESTION | {"fields": [{"name": "size", "type": "json"}]}
    async with another_server({"clarifications": [question]}, {"status": "ended", "answer": "Well."}) as url:
        assert "bot> Well." in await talked_to(url, said("hello"), ("size", "[" * 100_000))


async def test_a_count_of_masks_controls_no_terminal() -> None:
    async with another_server({"approvals": [APPROVAL | {"masks": CONTROLS[:4]}]}) as url:
        assert "  ⟨U+001B⟩[2J masked" in await talked_to(url, said("hello"))


async def test_a_server_that_does_not_wait_is_not_asked_again_at_once() -> None:
    async with another_server({"status": "running"}, {"status": "ended"}) as url:
        began = asyncio.get_running_loop().time()
        await talked_to(url, said("hello"))
    assert asyncio.get_running_loop().time() - began >= EARLY_SECONDS


async def test_of_an_event_without_end_no_more_is_kept_than_any_event_has() -> None:
    line = b'data: {"text": "' + b"x" * LONGEST_DATA + b'"}\n'
    deep = b"event: deep\ndata: " + b"[" * 100_000 + b"\n\n"
    events = b"event: post\nid: 7\n" + line + line + b"\n" + deep + b'event: status\ndata: {"n": 1}\n\n'
    async with another_server({}, events=events) as url, aiohttp.ClientSession() as session:
        got = [event async for event in ChatClient(session, url, None).events("web:x", "")]
    assert [(each.name, each.data, each.event_id) for each in got] == [("post", {}, "7"), ("status", {"n": 1}, "")]
