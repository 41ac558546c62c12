"""The page's files: served from memory, checked again each time, and free of what the rules forbid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.web.receiver import STATIC
from tests.web.serving import Browser, Product

FILES = sorted(path.name for path in STATIC.iterdir())
SCRIPTS = [path for path in STATIC.iterdir() if path.suffix == ".js"]


async def test_the_page_and_every_file_it_names_is_served(product: Product, ana: Browser) -> None:
    async with ana.http.get(product.url) as response:
        assert response.content_type == "text/html"
        named = set(re.findall(r'"(/static/[^"]+)"', await response.text()))
    assert len(named) > 5
    for path in named | {f"/static/{name}" for name in FILES}:
        async with ana.http.get(f"{product.url}{path}") as response:
            assert response.status == 200, path


async def test_what_the_page_names_is_asked_for_once_and_again_only_in_another_version(ana: Browser) -> None:
    async with ana.http.get(ana.product.url) as response:
        assert response.headers["Cache-Control"] == "no-cache"
        found = re.search(r'"(/static/(\w+)/app.js)"', await response.text())
    assert found is not None
    path, version = found.groups()
    async with ana.http.get(f"{ana.product.url}{path}") as response:
        assert "immutable" in response.headers["Cache-Control"]
        script = await response.read()
    other = path.replace(version, "of-another-release")
    async with ana.http.get(f"{ana.product.url}{other}") as response:
        assert response.headers["Cache-Control"] == "no-cache"
        assert await response.read() == script


def test_what_scripts_ask_for_by_themselves_is_of_their_version() -> None:
    for script in SCRIPTS:
        for path in re.findall(r"""["'`](/static/[^"'`]+)""", script.read_text()):
            assert path == "/static/icon.svg", f"{script.name} asks for {path}"


async def test_a_file_that_did_not_change_is_not_sent_again(product: Product, ana: Browser) -> None:
    async with ana.http.get(f"{product.url}/static/app.js") as response:
        tag = response.headers["ETag"]
        assert response.headers["Cache-Control"] == "no-cache"
    async with ana.http.get(f"{product.url}/static/app.js", headers={"If-None-Match": tag}) as response:
        assert response.status == 304
        assert await response.read() == b""


@pytest.mark.parametrize("name", ["../config.py", "..%2Fconfig.py", "%2e%2e%2fconfig.py", "nothing.js", ".", "%00"])
async def test_no_path_leads_out_of_the_folder(ana: Browser, name: str) -> None:
    async with ana.http.get(f"{ana.product.url}/static/{name}") as response:
        assert response.status in (400, 404)
        assert b"WebConfig" not in await response.read()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_parses_html_or_runs_text(script: Path) -> None:
    source = re.sub(r"^\s*(//|\*|/\*).*$", "", script.read_text(), flags=re.MULTILINE)
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "srcdoc"):
        assert forbidden not in source


def test_the_page_has_no_inline_script_or_style_and_needs_nothing_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "<style" not in page
    assert not re.search(r'\b(style|on\w+)="', page)
    for path in STATIC.iterdir():
        addresses = re.findall(r"https?://[\w.]+", path.read_text())
        assert set(addresses) <= {"http://www.w3.org"}, path.name
