"""Rule 13: however a body comes, reading it gives way."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from graph.http_bounds import PIECE, in_pieces
from tests.support.raw_http import turns_of_others


async def sent(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("size", [1, 50, PIECE - 1, PIECE, PIECE + 1, 100_000])
async def test_a_body_is_handed_on_whole_in_pieces_between_which_others_have_their_turn(size: int) -> None:
    body = bytes(range(256)) * 400
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    turns_at: Counter[int] = Counter()
    weights: Counter[int] = Counter()
    read = b""
    async with turns_of_others() as turns:
        async for piece in in_pieces(sent(*chunks)):
            read += piece
            turns_at[turns[0]] += 1
            weights[turns[0]] += len(piece)
    assert read == body
    assert max(turns_at.values()) <= 60
    assert max(weights.values()) < 2 * PIECE
