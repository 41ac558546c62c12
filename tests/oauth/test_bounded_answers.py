"""Rule 13: what an OAuth service sends, which any tool server may name, is bounded before it is read."""

from __future__ import annotations

import json
import zlib

import pytest

from adapters.oauth.connections import OAuthServer
from adapters.oauth.discovery import discover
from adapters.oauth.http import OAuthHttpClient
from bot.accounts.ports import Unreachable
from tests.support.raw_http import OK, in_chunks, raw_http, turns_of_others

DOCUMENT = OK + b"Content-Type: application/json\r\n"


def packed(size: int) -> bytes:
    """So many spaces, compressed twice."""
    packer = zlib.compressobj(9, wbits=31)
    once = packer.compress(b" " * size) + packer.flush()
    return zlib.compress(once, 9, wbits=31)


@pytest.mark.parametrize("line", [b"a:\r\n", b"Set-Cookie: a=b\r\n"])
async def test_a_head_of_thousands_of_lines_is_no_answer(line: bytes) -> None:
    async with raw_http([DOCUMENT + line * (40_000 // len(line)) + b"\r\n{}"]) as raw:
        with pytest.raises(Unreachable):
            await OAuthHttpClient().json(raw.url)


@pytest.mark.parametrize("encoding", [b"gzip", b"gzip, gzip", b"deflate"])
async def test_a_compressed_answer_is_not_unpacked(encoding: bytes) -> None:
    """100 kB that are compressed twice become gigabytes."""
    async with raw_http([DOCUMENT + b"Content-Encoding: " + encoding + b"\r\n\r\n" + packed(100_000)]) as raw:
        with pytest.raises(Unreachable, match="compressed"):
            await OAuthHttpClient().json(raw.url)
    assert b"accept-encoding: identity" in raw.requests[0].lower()


async def test_more_values_than_can_be_read_in_no_time_are_no_answer() -> None:
    """Half a megabyte of empty lists holds the event loop for 90 ms."""
    body = b'{"issuer": [' + b"[]," * 150_000 + b"[]]}"
    async with raw_http([DOCUMENT + b"Content-Length: %d\r\n\r\n" % len(body) + body]) as raw:
        with pytest.raises(Unreachable, match="without a usable document"):
            await OAuthHttpClient().json(raw.url)


@pytest.mark.parametrize("of", ["scopes_supported", "authorization_servers", "grant_types_supported"])
async def test_nor_are_they_as_metadata_that_is_checked(of: str) -> None:
    """Half a megabyte of what are no addresses took 0.3 s to be refused, one by one."""
    answer: list[bytes] = []
    async with raw_http(answer) as raw:
        document = {
            "resource": raw.url,
            "authorization_servers": [raw.url],
            "issuer": raw.url,
            "authorization_endpoint": f"{raw.url}/authorize",
            "token_endpoint": f"{raw.url}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        answer.append(DOCUMENT + b"\r\n" + json.dumps(document).encode())
        assert (await discover(OAuthHttpClient(), OAuthServer("notes", raw.url), "Bearer")).issuer.startswith(raw.url)
        answer[:] = [DOCUMENT + b"\r\n" + json.dumps({**document, of: [raw.url] * 10_000}).encode()]
        with pytest.raises(Unreachable, match="has no metadata"):
            await discover(OAuthHttpClient(), OAuthServer("notes", raw.url), "Bearer")


async def test_bytes_that_come_as_chunks_of_their_own_let_others_have_their_turn() -> None:
    body = in_chunks(b" " * 20_000 + b'{"a": 1}', 1)
    async with raw_http([DOCUMENT + b"Transfer-Encoding: chunked\r\n\r\n" + body]) as raw, turns_of_others() as turns:
        assert await OAuthHttpClient().json(raw.url) == {"a": 1}
    assert turns[0] > 300
