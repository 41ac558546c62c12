"""The page and its files, read once at the start and served from memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from adapters.web.bodies import RefusalError

STATIC = Path(__file__).parent / "static"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    content_type: str
    etag: str


class Pages:
    """Serves `GET /` and `GET /static/{name}`: only what lay in the folder at the start, so no path leads out of it."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = {path.name: _read(path) for path in sorted(folder.iterdir()) if path.suffix in _TYPES}

    async def index(self, request: web.Request) -> web.Response:
        """The page."""
        return self._serve(request, "index.html")

    async def static(self, request: web.Request) -> web.Response:
        """One of its files."""
        return self._serve(request, request.match_info["name"])

    def _serve(self, request: web.Request, name: str) -> web.Response:
        file = self._files.get(name)
        if file is None:
            raise RefusalError(404, "There is no such file.")
        # Asked again each time and mostly answered "not modified": a new release is seen at once.
        headers = {"ETag": f'"{file.etag}"', "Cache-Control": "no-cache"}
        if any(tag.value in (file.etag, "*") for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=file.body, headers=headers | {"Content-Type": file.content_type})


def _read(path: Path) -> _File:
    body = path.read_bytes()
    return _File(body, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:20])
