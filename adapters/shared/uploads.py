"""Files that are uploaded: one a request, as the body, or as a form sends it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import BodyPartReader, MultipartReader, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError

from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.serving import body_may_take
from bot.files import LARGEST_FILE, Files, UploadRefused, too_large, too_many_files
from bot.records.files import FileRow
from translations import gettext as _

UPLOAD_SECONDS = 120.0
"""How long a client may take to send a file: 20 MB at 1.4 Mbit/s."""
MOST_LINES = 500
"""Lines of a form around what is in it: with a boundary and some heads, a part takes five. Our own choice: a form with
a file has few parts, and each line before the file takes the event loop up to a tenth of a millisecond."""
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A file as it was sent."""

    name: str
    media_type: str
    content: bytes


async def take_upload(request: web.Request, files: Files, owner: str) -> FileRow:
    """Returns the file of a request, read and kept for whoever sends it. Raises `UploadRefused`, and what `read_upload`
    does."""
    if files.is_busy():
        raise UploadRefused(too_many_files(), is_busy=True)
    with files.arriving(owner, request.content_length):
        body_may_take(request, UPLOAD_SECONDS)
        sent = await read_upload(request)
    return await files.upload(owner, sent.name, sent.media_type, sent.content)


async def read_upload(request: web.Request) -> Uploaded:
    """Returns the file of a request: the first file of a form (`multipart/form-data`), or the body, named by `name` in
    the address. Raises `BodyNotReadError`: 400, 408, 413."""
    if request.content_type == "multipart/form-data":
        return await _of_form(request)
    name = request.query.get("name", "").strip()
    if not name:
        raise BodyNotReadError(400, _("The file has no name."))
    content = await read_whole_body(request, LARGEST_FILE, _too_large(), seconds=UPLOAD_SECONDS)
    return Uploaded(name, request.content_type, content)


def _too_large() -> str:
    reason = too_large()
    return f"{reason[:1].upper()}{reason[1:]}."


async def _of_form(request: web.Request) -> Uploaded:
    if (request.content_length or 0) > LARGEST_FILE + _CHUNK:  # the form around it takes a little, too
        raise BodyNotReadError(413, _too_large())
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            parts = MultipartReader(request.headers, cast(StreamReader, _FewLines(request.content)))
            while (part := await parts.next()) is not None:
                if isinstance(part, BodyPartReader) and part.filename:
                    return Uploaded(part.filename, part.headers.get("Content-Type", ""), await _whole(part))
    except TimeoutError:
        raise BodyNotReadError(408, _("The file didn’t arrive in time.")) from None
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError, ValueError, AssertionError, RuntimeError):
        raise BodyNotReadError(400, _("The form can’t be read.")) from None
    raise BodyNotReadError(400, _("The form has no file."))


class _FewLines:
    """A body of which only so many lines are read: `MultipartReader` counts neither the parts of a form nor what stands
    before the first, and does not let others go on while it has something to read."""

    def __init__(self, body: StreamReader) -> None:
        self._body = body
        self._lines = 0

    async def readline(self, **limits: int) -> bytes:
        """The next line. Raises `ValueError` when there were too many."""
        self._lines += 1
        if self._lines > MOST_LINES:
            raise ValueError("too many lines")
        return await self._body.readline(**limits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)


async def _whole(part: BodyPartReader) -> bytes:
    content = bytearray()
    while chunk := await part.read_chunk(_CHUNK):
        content += chunk
        if len(content) > LARGEST_FILE:
            raise BodyNotReadError(413, _too_large())
    return bytes(content)
