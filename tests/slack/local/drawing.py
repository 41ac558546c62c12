"""Draws what the bot shows in Slack: `page/` in a real browser, with a Block Kit renderer that nobody here wrote."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from playwright.async_api import Browser, Page

from tests.slack.local.packages import PACKAGES, WITHOUT_PACKAGES

PAGE = Path(__file__).parent / "page"
NAMES = {
    "users": [
        {"id": "U1", "name": "Ana"},
        {"id": "U2", "name": "Ben"},
        {"id": "UBOT", "name": "countersign"},
    ],
    "channels": [{"id": "C1", "name": "general"}],
}
COLOURS = {"U1": "#7c3085", "U2": "#2f6f9f", "UBOT": "#1d4d4f"}
SHARP = {"device_scale_factor": 1.5, "timezone_id": "Europe/Berlin", "locale": "en-GB", "color_scheme": "light"}

ZONE = ZoneInfo(str(SHARP["timezone_id"]))
_TIME = re.compile(r"<!date\^(\d+)\^([^|>^]*)\|[^>]*>")
FONTS_ARE_THERE = """async () => {
  for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
  await document.fonts.ready;
}"""
"""Fonts are loaded when something that is laid out needs them, hence not before the second frame."""


class Drawing:
    """The page, open in a browser."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def thread(self, path: Path, messages: Iterable[dict[str, Any]]) -> None:
        """Draw messages as a thread."""
        said = [_said(message) for message in messages]
        await self._draw(path, "thread", {"title": "Thread", "subtitle": "# general", "messages": said})

    async def modal(self, path: Path, view: dict[str, Any], typed: Mapping[str, str] | None = None) -> None:
        """Draw a modal, with what somebody has typed by the label of the input."""
        await self._draw(path, "modal", {"view": {**view, "blocks": [_filled(b, typed or {}) for b in view["blocks"]]}})

    async def confirmation(self, path: Path, asks: dict[str, Any]) -> None:
        """Draw what Slack asks before it sends a click."""
        told = {"type": "section", "text": asks["text"]}
        view = {"title": asks["title"], "close": asks["deny"], "submit": asks["confirm"], "blocks": [told]}
        await self._draw(path, "modal", {"view": view})

    async def home(self, path: Path, view: dict[str, Any]) -> None:
        """Draw an App Home."""
        await self._draw(path, "home", {"view": view})

    async def _draw(self, path: Path, scene: str, props: dict[str, Any]) -> None:
        drawable = {**_drawable(props), "names": NAMES}
        await self._page.evaluate("([scene, props]) => window.show(scene, props)", [scene, drawable])
        await self._page.wait_for_selector("#root > *")
        await self._page.evaluate(FONTS_ARE_THERE)
        await self._page.locator("#root > *").screenshot(path=path)


@asynccontextmanager
async def drawing(folder: Path, browser: Browser) -> AsyncIterator[Drawing]:
    """The page, built into `folder`, in a tab of that browser."""
    _build(folder)
    page = await browser.new_page(viewport={"width": 900, "height": 1400}, **SHARP)  # type: ignore[arg-type]
    drawn = Drawing(page)
    await page.goto((folder / "index.html").as_uri())
    try:
        yield drawn
    finally:
        await page.close()
    assert drawn.complaints == [], "the page has no errors of its own"


def _build(folder: Path) -> None:
    if PACKAGES is None:
        raise SystemExit(WITHOUT_PACKAGES)
    command = [
        str(PACKAGES / ".bin" / "esbuild"),
        str(PAGE / "page.jsx"),
        "--bundle",
        "--jsx=automatic",
        "--loader:.woff=file",
        "--loader:.woff2=file",
        "--log-level=error",
        '--define:process.env.NODE_ENV="production"',
        f"--outfile={folder / 'page.js'}",
    ]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "NODE_PATH": str(PACKAGES)})
    (folder / "index.html").write_text((PAGE / "index.html").read_text())


def _filled(block: dict[str, Any], typed: Mapping[str, str]) -> dict[str, Any]:
    label = block["label"]["text"] if block["type"] == "input" else ""
    return {**block, "element": {**block["element"], "initial_value": typed[label]}} if label in typed else block


def _drawable(props: Any) -> Any:
    """Without `verbatim`, for which the renderer shows mentions as they are written, and with times as Slack writes
    them for somebody with a 24-hour clock: the renderer knows none."""
    if isinstance(props, dict):
        return {key: _drawable(value) for key, value in props.items() if key != "verbatim"}
    if isinstance(props, str):
        return _TIME.sub(lambda found: _as_slack_writes(int(found[1]), found[2]), props)
    return [_drawable(value) for value in props] if isinstance(props, list) else props


def _as_slack_writes(seconds: int, form: str) -> str:
    moment, today = datetime.fromtimestamp(seconds, ZONE), datetime.now(ZONE).date()
    days = {0: "today", 1: "tomorrow", -1: "yesterday"}
    day = days.get((moment.date() - today).days) or f"{moment:%b} {moment.day}, {moment.year}"
    return form.replace("{date_short_pretty}", day).replace("{time}", f"{moment:%H:%M}")


def _said(message: dict[str, Any]) -> dict[str, Any]:
    names = {user["id"]: user["name"] for user in NAMES["users"]}
    plain = [{"type": "section", "text": {"type": "mrkdwn", "text": message["text"] or " "}}]
    return {
        "name": names[message["user"]],
        "colour": COLOURS[message["user"]],
        "bot": bool(message.get("bot_id")),
        "forOne": bool(message.get("ephemeral_to")),
        "at": float(message["ts"]),
        "blocks": message.get("blocks") or plain,
    }
