"""Microsoft's renderer of Adaptive Cards, in a real browser: what it has against a card, and how it draws it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, Page

from tests.teams.local.packages import PACKAGES, WITHOUT_PACKAGES

Card = Mapping[str, Any]
Theme = Literal["light", "dark"]

PAGE = Path(__file__).parent / "page"
SHARP: dict[str, Any] = {
    "device_scale_factor": 2,
    "timezone_id": "Europe/Berlin",
    "locale": "en-GB",
    "color_scheme": "light",
}

FONTS_ARE_THERE = """async () => {
  for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
  await document.fonts.ready;
}"""
"""Fonts are loaded when something that is laid out needs them, hence not before the second frame."""


@dataclass(frozen=True)
class Drawn:
    """What became of one card."""

    complaints: list[str]
    """Of parsing and of `validateProperties`; none: the card is right."""
    text: str = ""
    """As somebody reads it."""
    links: list[str] = field(default_factory=list)
    pictures: int = 0
    scripts: int = 0
    lists: int = 0
    marked: list[str] = field(default_factory=list)
    """HTML of what Markdown has marked: bold, italic, headings…"""
    outside: list[str] = field(default_factory=list)
    """Words that stand beyond the edge of the card, where nobody sees them."""
    inputs: list[dict[str, Any]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    """How many buttons stand beside each other, row by row, also in cards that a button opens."""


class Drawing:
    """The page, open in a browser."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    async def check(self, cards: Sequence[Card], theme: Theme = "light") -> list[Drawn]:
        """Parse, validate and draw cards, all in one go."""
        found = await self.page.evaluate("([cards, theme]) => window.check(cards, theme)", [list(cards), theme])
        return [Drawn(**one) for one in found]

    async def conversation(self, path: Path, title: str, messages: Iterable[Mapping[str, Any]], **how: Any) -> None:
        """Take a picture of messages below each other."""
        await self._draw(path, "conversation", {"title": title, "messages": list(messages)}, **how)

    async def dialog(self, path: Path, title: str, card: Card, **how: Any) -> None:
        """Take a picture of a dialog."""
        await self._draw(path, "dialog", {"title": title, "card": card}, **how)

    async def _draw(
        self,
        path: Path,
        scene: str,
        props: Mapping[str, Any],
        *,
        theme: Theme = "light",
        press: str | re.Pattern[str] = "",
        fill: str = "",
    ) -> None:
        await self.page.evaluate("([scene, props, theme]) => window.show(scene, props, theme)", [scene, props, theme])
        if press:
            await self.page.get_by_role("button", name=press, exact=True).last.click()
        if fill:
            await self.page.get_by_role("textbox").last.fill(fill)
        await self.page.evaluate(FONTS_ARE_THERE)
        await self.page.locator("#root > *").screenshot(path=path)


@asynccontextmanager
async def drawing(folder: Path, browser: Browser) -> AsyncIterator[Drawing]:
    """The page, built into `folder`, in a tab of that browser."""
    _build(folder)
    page = await browser.new_page(viewport={"width": 900, "height": 1400}, **SHARP)
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
        str(PAGE / "page.js"),
        "--bundle",
        "--loader:.woff=file",
        "--loader:.woff2=file",
        "--ignore-annotations",  # adaptivecards registers elements as it is loaded, and says that it does not
        "--log-level=error",
        f"--outfile={folder / 'page.js'}",
    ]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, "NODE_PATH": str(PACKAGES)})
    (folder / "index.html").write_text((PAGE / "index.html").read_text())
