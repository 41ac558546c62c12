"""A file as a form sends it, over a real socket."""

from __future__ import annotations

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from adapters.shared.requests import BodyNotReadError
from adapters.shared.uploads import read_upload

FIELD = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\nvalue\r\n'
FILE = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nhello\r\n--b--\r\n'
NESTED = b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"


async def _upload(request: web.Request) -> web.Response:
    try:
        sent = await read_upload(request)
    except BodyNotReadError as error:
        return web.Response(status=error.status)
    return web.Response(text=f"{sent.name}: {sent.content.decode()}")


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (FILE, (200, "a.txt: hello")),
        (FIELD * 20 + FILE, (200, "a.txt: hello")),
        (FIELD * 10_000 + FILE, (400, "")),
        (NESTED * 1_000 + FILE, (400, "")),
        (b"x\n" * 100_000 + FILE, (400, "")),
        (FILE.replace(b"hello", b"\r\n" * 10_000 + b"hello"), (200, "a.txt: " + "\r\n" * 10_000 + "hello")),
    ],
    ids=["a file", "after fields", "after too many", "parts in parts", "after other lines", "lines in the file"],
)
async def test_a_form_is_read_as_far_as_its_file_and_of_what_stands_before_only_a_little(
    body: bytes, outcome: tuple[int, str]
) -> None:
    app = web.Application()
    app.router.add_post("/upload", _upload)
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.post(server.make_url("/upload"), data=body, headers=headers) as answer,
    ):
        assert (answer.status, await answer.text()) == outcome
