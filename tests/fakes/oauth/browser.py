"""Somebody's browser: cookies, redirects, the one button of a page. It says who made a request, as browsers do."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

import aiohttp
from yarl import URL

_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')
_ACTION = re.compile(r'<form method="post" action="([^"]*)">')
_CODE = re.compile(r'<p class="code">([^<]*)</p>')


@dataclass(frozen=True)
class Shown:
    """What a browser shows in the end."""

    url: str
    status: int
    text: str
    headers: Mapping[str, str]
    visited: tuple[str, ...] = field(default=())
    """Every address on the way, this one included."""

    @property
    def words(self) -> str:
        """The text as people read it."""
        body = re.sub(r"<style>.*?</style>", "", self.text, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())

    @property
    def code(self) -> str:
        """The one-time code on the page."""
        found = _CODE.search(self.text)
        assert found is not None, self.words
        return found.group(1)

    @property
    def query(self) -> dict[str, str]:
        """Of the address it ended at."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}


class Browser:
    """One browser. `accounts`: who is signed in to services (`user` cookie of the fakes)."""

    def __init__(self, user: str = "", *, stop_at: str = "") -> None:
        self._user = user
        self.stop_at = stop_at
        """Do not follow redirects to addresses that begin like this: the address is what is shown then."""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        if self._user:
            # Browsers know hosts, not ports: the fakes on 127.0.0.1 all see it.
            self._session.cookie_jar.update_cookies({"user": self._user}, URL("http://127.0.0.1/"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        """For requests that no page makes."""
        assert self._session is not None
        return self._session

    async def open(self, url: str) -> Shown:
        """Type an address in, or click on it in a chat."""
        return await self._go("GET", url, None, "none")

    async def press(self, page: Shown, *, site: str = "same-origin") -> Shown:
        """The button of a page. `site`: whose page presses it (`Sec-Fetch-Site`)."""
        action = _ACTION.search(page.text)
        assert action is not None, page.words
        fields = {html.unescape(name): html.unescape(value) for name, value in _HIDDEN.findall(page.text)}
        return await self._go("POST", str(URL(page.url).join(URL(html.unescape(action.group(1))))), fields, site)

    async def _go(self, method: str, url: str, fields: Mapping[str, str] | None, site: str) -> Shown:
        visited = []
        for _ in range(12):
            visited.append(url)
            if self.stop_at and url.startswith(self.stop_at):
                return Shown(url, 0, "", {}, tuple(visited))
            async with self.session.request(
                method,
                URL(url, encoded=True),
                data=fields,
                headers={"Sec-Fetch-Site": site},
                allow_redirects=False,
            ) as response:
                text = await response.text()
                onward = response.headers.get("Location")
                if onward is None or response.status not in (301, 302, 303, 307):
                    return Shown(url, response.status, text, response.headers, tuple(visited))
                url = str(URL(url, encoded=True).join(URL(onward, encoded=True)))
                method, fields, site = "GET", None, "cross-site"
        raise AssertionError(f"too many redirects: {visited}")
