"""Markdown of models in a real browser: what it becomes, and what it cannot do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from bot.domain import Said
from tests.web.browsing import Window, window_of
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Draw = Callable[[str], Awaitable[str]]

DRAW = """async (text) => {
  const { markdown } = await import("/static/markdown.js");
  const place = document.createElement("div");
  place.append(...markdown(text));
  return [...place.childNodes].map((node) => node.outerHTML ?? node.textContent).join("");
}"""

CASES = {
    "one\ntwo\n\nthree": "<p>one<br>two</p><p>three</p>",
    "# Title": "<h3>Title</h3>",
    "**bold** *it* _it_ ~~gone~~ `a*b`": (
        "<p><strong>bold</strong> <em>it</em> <em>it</em> <del>gone</del> <code>a*b</code></p>"
    ),
    "2 * 3 * 4 and snake_case_name": "<p>2 * 3 * 4 and snake_case_name</p>",
    "**bold *both***": "<p><strong>bold <em>both</em></strong></p>",
    "- a\n- b\n  - c\n    - d\n- e": "<ul><li>a</li><li>b<ul><li>c<ul><li>d</li></ul></li></ul></li><li>e</li></ul>",
    "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "> said\n> this": "<blockquote><p>said<br>this</p></blockquote>",
    "```py\nif a < b:\n    **x**\n```": '<pre tabindex="0"><code>if a &lt; b:\n    **x**</code></pre>',
    "```\nnever closed": '<pre tabindex="0"><code>never closed</code></pre>',
    "| a | b |\n|---|:-:|\n| 1 | 2 |": (
        '<div class="table" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>"
    ),
    "---": "<hr>",
    r"\*plain\*": "<p>*plain*</p>",
    "<b onclick=alert(1)>x</b><script>alert(1)</script>": (
        "<p>&lt;b onclick=alert(1)&gt;x&lt;/b&gt;&lt;script&gt;alert(1)&lt;/script&gt;</p>"
    ),
    "[x](javascript:alert(1))": "<p>[x](javascript:alert(1))</p>",
    "[x](data:text/html,hi) [y](//evil.example) [z](/api/session)": (
        "<p>[x](data:text/html,hi) [y](//evil.example) [z](/api/session)</p>"
    ),
}

LINK = '<a href="{href}" target="_blank" rel="noopener noreferrer">{text}</a>'


@pytest_asyncio.fixture(loop_scope="session")
async def drawn(window: Window) -> Draw:
    async def draw(text: str) -> str:
        return str(await window.page.evaluate(DRAW, text))

    return draw


async def test_markdown_becomes_what_it_means_and_nothing_else(drawn: Draw) -> None:
    for text, expected in CASES.items():
        assert await drawn(text) == expected, text


async def test_a_link_always_shows_where_it_leads(drawn: Draw) -> None:
    html = await drawn("[your bank](https://bank.example@evil.example/login)")
    assert '<span class="host"> (evil.example)</span>' in html
    html = await drawn("[https://bank.example/login](https://evil.example/)")
    assert '<span class="host"> (evil.example)</span>' in html
    html = await drawn("[https://bank.example](https://bank.example.evil.example/)")
    assert '<span class="host"> (bank.example.evil.example)</span>' in html
    html = await drawn("see https://a.example/x?y=1.")
    link = LINK.format(href="https://a.example/x?y=1", text="https://a.example/x?y=1")
    assert html == f"<p>see {link}.</p>"


async def test_no_image_is_ever_loaded(product: Product, chrome: Chromium) -> None:
    async with window_of(product, chrome) as window:
        asked: list[str] = []
        window.page.on("request", lambda request: asked.append(request.url))
        await product.services.post(
            "web:one", Said("![x](https://evil.example/pixel.png) <img src=https://evil.example/2>")
        )
        await window.open("web:one")
        await expect(window.log).to_contain_text("(evil.example)")
        await expect(window.log.locator("img")).to_have_count(0)
        assert not [url for url in asked if "evil" in url]


async def test_hostile_text_takes_no_time(drawn: Draw, window: Window) -> None:
    for piece in ("*", "**a", "_a ", "[", "[](", "`", "> ", "- ", "|", "~~a ", "#", "<http://", "\\", "(", "![["):
        took = await window.page.evaluate(
            """async (text) => {
              const { markdown } = await import("/static/markdown.js");
              const began = performance.now();
              markdown(text);
              return performance.now() - began;
            }""",
            piece * (20_000 // len(piece)),
        )
        assert took < 2000, piece
