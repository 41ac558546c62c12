"""axe-core on the page as it stands: the rules of WCAG 2.2 A and AA, and axe's best practices."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page

AXE = Path(__file__).parents[1] / "npm/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="needs: npm install --no-package-lock --prefix tests/npm")
OF_COLOURS = ["color-contrast", "link-in-text-block"]
_RUN = """async (options) => {
  await Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => {})).slice(0, 50)
    .map((finished) => Promise.race([finished, new Promise((resolve) => setTimeout(resolve, 500))])));
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.target.join(" ")}: ${node.html.slice(0, 200)}`));
}"""


async def violations(page: Page) -> list[str]:
    """What axe finds on everything that is shown now; each with its rule, the place, and the beginning of its HTML."""
    if not await page.evaluate("Boolean(globalThis.axe)"):
        # Evaluated by the browser's own tools: the page's policy would refuse a script from elsewhere.
        await page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = await page.evaluate(_RUN, {})
    return found


async def violations_in_light_and_dark(page: Page) -> list[str]:
    """The same, in light; and of the rules about colours, the only ones that it matters to, in dark too."""
    await page.emulate_media(color_scheme="light")
    found = await violations(page)
    await page.emulate_media(color_scheme="dark")
    found += await page.evaluate(_RUN, {"runOnly": OF_COLOURS})
    await page.emulate_media(color_scheme="light")
    return found
