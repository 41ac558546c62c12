"""Markdown of models in a real browser: what it becomes, and what it cannot do."""

from __future__ import annotations

import random
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
  for (const block of place.querySelectorAll(".code-block")) block.replaceWith(block.querySelector("pre"));
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
    "1. a\n\n2. b": "<ol><li>a</li><li>b</li></ol>",
    "- a\n\t- b": "<ul><li>a<ul><li>b</li></ul></li></ul>",
    "#### Deep\n# Top\n### Next": "<h3>Deep</h3><h3>Top</h3><h4>Next</h4>",
    "| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |": (
        '<div class="table" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col" class="center">b</th>'
        '<th scope="col" class="right">c</th></tr></thead>'
        '<tbody><tr><td>1</td><td class="center">2</td><td class="right">3</td></tr></tbody></table></div>'
    ),
    "a | b\n-|-\nx \\| y | `p \\| q`\n1 | 2 | 3": (
        '<div class="table" tabindex="0"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead>'
        "<tbody><tr><td>x | y</td><td><code>p | q</code></td></tr><tr><td>1</td><td>2 | 3</td></tr></tbody></table>"
        "</div>"
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


TABLE = """async (rows) => {
  const { markdown } = await import("/static/markdown.js");
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\\\|")).join(" | ")} |`;
  const place = document.createElement("div");
  place.append(...markdown([line(rows[0]), line(rows[0].map(() => "---")), ...rows.slice(1).map(line)].join("\\n")));
  return [...place.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent));
}"""


async def test_every_cell_of_a_table_is_where_it_was_written_whatever_is_in_it(window: Window) -> None:
    """Rule 12: a table that shifts its cells says something else."""
    chance = random.Random(7)
    pieces = ("|", "a", "1,200", "-", ":", " ", "x y", "||", "é")
    for _ in range(60):
        width, height = chance.randint(1, 5), chance.randint(2, 5)
        rows = [
            [
                "c" + "".join(chance.choice(pieces) for _ in range(chance.randint(0, 6))).rstrip() + "e"
                for _ in range(width)
            ]
            for _ in range(height)
        ]
        assert await window.page.evaluate(TABLE, rows) == rows


async def test_no_word_of_a_text_is_lost_whatever_marks_stand_around_it(drawn: Draw, window: Window) -> None:
    """Rule 8: nothing of what was said is hidden."""
    chance = random.Random(11)
    marks = (
        "# ",
        "- ",
        "3. ",
        "> ",
        "  ",
        "| ",
        " |",
        "**",
        "_",
        "`",
        "~~",
        "\n",
        "\n\n",
        "\t",
        "```\n",
        "|-|\n",
        "\\\\",
    )
    for _ in range(150):
        words = [f"w{number}w" for number in range(chance.randint(1, 9))]
        text = "".join(chance.choice(marks) + word + chance.choice(marks) for word in words)
        html = await drawn(text)
        missing = [word for word in words if word not in html]
        # What follows ``` on its line names the language, which the head of the block shows.
        assert not missing, (text, missing, html)


CLOCKS = """async () => {
  const { fromNow, short, shortToTheSecond, duration } = await import("/static/time.js");
  document.documentElement.dataset.zone = "Asia/Tokyo";
  const now = Date.now() / 1000;
  const said = [fromNow(now + 23.9 * 3600), fromNow(now - 90), fromNow(now + 3 * 86400), duration(2.06), duration(42)];
  said.push(duration(70_000), duration(3.1 * 86400));
  const noon = Date.UTC(2020, 2, 3, 12) / 1000;
  said.push(short(noon), shortToTheSecond(noon + 5));
  delete document.documentElement.dataset.zone;
  return said;
}"""


async def test_times_are_written_in_one_way_and_in_the_zone_that_is_chosen(window: Window) -> None:
    said = await window.page.evaluate(CLOCKS)
    distances, durations, moments = said[:3], said[3:7], said[7:]
    assert distances == ["in 24 hours", "2 minutes ago", "in 3 days"]
    assert durations == ["2.1 s", "42 s", "19.4 h", "3.1 days"]
    assert moments == ["Mar 3, 2020, 21:00", "Mar 3, 2020, 21:00:05"]
