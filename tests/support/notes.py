"""A tool server that demands people's own accounts, those people's browsers, and a scan for what must be nowhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from mcp.server.fastmcp import FastMCP
from yarl import URL

from tests.fakes.oauth import Browser, ProtectedServer, Shown, protected_server
from tests.fakes.oauth.mcp_server import caller
from tests.support.planted import TOKEN as PLANTED
from tests.support.product import ProductFolder
from tests.support.product_records import all_that_is_kept
from tests.support.visitor import Answer, Json, Thread, Visitor

SERVER = "notes"
ALLOWED = "version: 1\nrules:\n  - {name: all is allowed, match: {}, decide: allow}\n"
_SECRET = ("s", "state", "code", "nonce", "ticket")
"""Parameters of addresses that only one browser may see."""


@dataclass
class Notes:
    """The server, what was written in whose name, and the secrets: of those who signed in, and what a tool tells."""

    server: ProtectedServer
    written: list[tuple[str, str]] = field(default_factory=list)
    secrets: set[str] = field(default_factory=lambda: {PLANTED}, repr=False)
    tools: list[FastMCP] = field(default_factory=list)
    """Where its tools are, once it runs."""

    def upgraded(self) -> None:
        """The server has a new version, whose tool takes more; sessions that are open stay so."""

        def write(what: str, colour: str = "red") -> str:
            """Write a note in a colour."""
            self.written.append((caller(), f"{colour} {what}"))
            return f"{caller()} wrote {colour} {what}"

        for mcp in self.tools:
            mcp.remove_tool("write")
            mcp.tool(title="Write it")(write)

    def all_secrets(self) -> set[str]:
        """All that there have been."""
        return {each for each in {*self.secrets, *self.server.secrets} if len(each) > 7}

    def noting(self, shown: Shown) -> Shown:
        """Remember what a browser has seen on its way."""
        for address in shown.visited:
            self.secrets |= {value for name, value in parse_qsl(urlsplit(address).query) if name in _SECRET}
        if 'class="code"' in shown.text:
            self.secrets |= {shown.code, shown.code.lower()}
        return shown

    async def consents(self, browser: Browser, link: str) -> Shown:
        """Open a link, read what it is for, go on, and say yes at the service."""
        offered = self.noting(await browser.open(link))
        assert offered.status == 200, offered.words
        return self.noting(await browser.press(offered))


def hold_codes(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """The server is slow to give tokens for codes. Returns what is set once it is asked for some, and what has to be
    set before it answers."""
    exchange, asked, answers = notes.server.exchange_authorization_code, asyncio.Event(), asyncio.Event()

    async def slow(*code: object) -> object:
        asked.set()
        await answers.wait()
        return await exchange(*code)  # type: ignore[arg-type]

    monkeypatch.setattr(notes.server, "exchange_authorization_code", slow)
    return asked, answers


@asynccontextmanager
async def notes_server() -> AsyncIterator[Notes]:
    """The server, running."""
    written: list[tuple[str, str]] = []
    tools: list[FastMCP] = []

    def write(what: str) -> str:
        """Write a note."""
        written.append((caller(), what))
        return f"{caller()} wrote {what}"

    def add_tools(mcp: FastMCP) -> None:
        mcp.tool(title="Write it", description=f"Write a note, with {PLANTED}.")(write)
        tools.append(mcp)

    async with protected_server(add_tools) as server:
        yield Notes(server, written, tools=tools)


def entry(notes: Notes, **more: Any) -> Json:
    """Its entry in `mcp.json`."""
    return {"url": notes.server.url, "auth": "oauth", **more}


# ------------------------------------------------------------------------------------------- at the page


@asynccontextmanager
async def browser_of(visitor: Visitor, account: str) -> AsyncIterator[Browser]:
    """Another tab of a visitor's browser. `account`: who they are at the service."""
    async with Browser(account) as browser:
        for cookie in visitor.http.cookie_jar:
            browser.session.cookie_jar.update_cookies({cookie.key: cookie.value}, URL(visitor.url))
        yield browser


async def asked_to_sign_in(thread: Thread, status: str = "open", count: int = 1) -> list[Json]:
    """Wait until so many sign-ins with this status are shown."""
    found: list[Json] = await thread.until(
        lambda: len(found := [c for c in thread.contents("sign_in") if c["status"] == status]) >= count and found,
        f"{count} sign-ins, {status}",
    )
    return found


async def asked_for_link(visitor: Visitor, sign_in: Json) -> Answer:
    """Press "Get my link"."""
    return await visitor.get(f"/api/sign-ins/{sign_in['id']}/link")


async def link_of(notes: Notes, visitor: Visitor, sign_in: Json) -> str:
    """The link, as its owner gets it."""
    answer = await asked_for_link(visitor, sign_in)
    assert answer.status == 200, answer
    url = answer.body["url"]
    notes.secrets.add(url.partition("?s=")[2])
    return str(url)


async def signs_in(notes: Notes, thread: Thread, account: str) -> Shown:
    """Do what the newest card asks for, with this account at the service."""
    sign_in = (await asked_to_sign_in(thread))[-1]
    link = await link_of(notes, thread.visitor, sign_in)
    async with browser_of(thread.visitor, account) as browser:
        return await notes.consents(browser, link)


# ------------------------------------------------------------------------------------------- nowhere


def assert_kept_secret(notes: Notes, home: ProductFolder, told: Iterable[tuple[str, str]]) -> None:
    """No token, code, verifier, state or link is in the records or in what was told. `told`: text by where it is."""
    secrets = notes.all_secrets()
    for where, text in [*all_that_is_kept(home), *told]:
        for secret in secrets:
            assert secret not in text, f"a secret is in {where}: …{text[max(0, text.find(secret) - 300) :][:200]}"


def shown_to(threads: Iterable[Thread]) -> str:
    """Everything that people were shown in conversations."""
    return json.dumps([[*t.entries.values(), t.live_texts, t.statuses] for t in threads], ensure_ascii=False)
