"""The process of `local-slack`, and what a test can see of the workspace in it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import aiohttp

from tests.slack.local.packages import LOCAL_SLACK

Mode = Literal["events", "socket"]
T = TypeVar("T")

TEAM, CHANNEL, BOT, APP = "T1", "C1", "UBOT", "A1"
BOT_TOKEN, APP_TOKEN, SIGNING_SECRET = "xoxb-local", "xapp-local", "local-signing-secret"
STARTS_WITHIN = 20.0
PATIENCE = 20.0
"""Seconds to wait for anything, on a machine that runs many tests at once."""


def configuration(mode: Mode, request_url: str) -> dict[str, Any]:
    """One workspace with Ana, Ben, the bot, and a channel that they are in."""
    return {
        "workspace": {"name": "Acme", "domain": "acme", "teamId": TEAM},
        "app": {
            "appId": APP,
            "botUserId": BOT,
            "botName": "countersign",
            "botToken": BOT_TOKEN,
            "appToken": APP_TOKEN,
            "signingSecret": SIGNING_SECRET,
            "mode": mode,
            "requestUrl": request_url,
        },
        "users": [
            {"id": "U1", "name": "Ana", "real_name": "Ana", "tz": "Europe/Berlin"},
            {"id": "U2", "name": "Ben", "real_name": "Ben", "tz": "Europe/Berlin"},
        ],
        "channels": [{"id": CHANNEL, "name": "general", "members": ["U1", "U2", BOT]}],
    }


class Workspace:
    """Everything that is visible in the workspace, kept current by what local-slack tells its own page."""

    def __init__(self, url: str, session: aiohttp.ClientSession, page: aiohttp.ClientWebSocketResponse) -> None:
        self.url = url
        self.api_url = f"{url}/api/"
        self.modals: list[dict[str, Any]] = []
        """Open modals, the one on top last."""
        self.modal_errors: dict[str, str] = {}
        """What the last submission got back for the open modal: block_id → text."""
        self.modal_changes = 0
        """How often a modal was opened, changed, closed or refused."""
        self.homes: dict[str, dict[str, Any]] = {}
        """Published App Home by user."""
        self.connected = False
        """Whether the app has a Socket Mode connection."""
        self._messages: dict[str, dict[str, dict[str, Any]]] = {}
        self._session = session
        self._page = page
        self._changed = asyncio.Event()

    # ------------------------------------------------------------------------------------------- looking

    def messages(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """Messages of a channel or DM, oldest first."""
        return sorted(self._messages.get(channel, {}).values(), key=lambda message: str(message["ts"]))

    async def until(self, found: Callable[[], T | None], what: str) -> T:
        """Wait until there is something to find. Raises `AssertionError` with what there is instead."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (result := found()):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            seen = json.dumps([self._messages, self.modals[-1:], self.modal_errors], ensure_ascii=False)
            raise AssertionError(f"waited for {what}; there is: {seen[-6000:]}") from None
        return result

    # ------------------------------------------------------------------------------------------- acting

    async def control(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        """local-slack's own API for tests; returns when the app has answered."""
        async with self._session.post(f"{self.url}/_control/{verb}", json=body) as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())

    async def page_says(self, kind: str, **more: Any) -> None:
        """What local-slack's page would send for a click on it."""
        await self._page.send_str(json.dumps({"t": kind, **more}))

    # ------------------------------------------------------------------------------------------- listening

    async def listen(self) -> None:
        """Take in what happens, until the connection ends."""
        async for frame in self._page:
            self._take(json.loads(frame.data))
            self._changed.set()

    def _take(self, told: dict[str, Any]) -> None:
        match told["t"]:
            case "init":
                self.connected = told["state"]["apps"][0]["connected"]
            case "message" | "message_update":
                message = told["message"]
                self._messages.setdefault(message["channel"], {})[message["ts"]] = message
            case "message_delete":
                self._messages.get(told["channel"], {}).pop(told["ts"], None)
            case "view":
                self.modals, self.modal_errors = told["stack"], {}
                self.modal_changes += 1
            case "view_errors":
                self.modal_errors = told["errors"]
                self.modal_changes += 1
            case "home":
                self.homes[told["user"]] = told["view"]
            case "socket_status":
                self.connected = told["connected"]


@asynccontextmanager
async def local_slack(folder: Path, mode: Mode, request_url: str) -> AsyncIterator[Workspace]:
    """A workspace of its own on a free port, killed in the end. `request_url`: where events go in Events mode."""
    assert LOCAL_SLACK is not None
    config, log = folder / "local-slack.json", folder / "local-slack.log"
    config.write_text(json.dumps(configuration(mode, request_url)))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [LOCAL_SLACK, "--config", config, "--port", "0", "--base-host", "127.0.0.1"], stdout=output, stderr=output
        )
    try:
        url = await _address(process, log)
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/ui") as page:
            workspace = Workspace(url, session, page)
            listening = asyncio.create_task(workspace.listen())
            try:
                yield workspace
            finally:
                listening.cancel()
                with suppress(asyncio.CancelledError):
                    await listening
    finally:
        process.kill()
        process.wait()


async def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    async with asyncio.timeout(STARTS_WITHIN):
        while not (found := re.search(r"Web UI:\s+(http://\S+)", log.read_text())):
            assert process.poll() is None, f"local-slack did not start:\n{log.read_text()}"
            await asyncio.sleep(0.02)
    return found[1]
