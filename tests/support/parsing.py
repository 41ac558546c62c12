"""What is parsed as JSON: that much is refused before it is parsed is seen without a clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def parsed_as_json() -> Iterator[list[int]]:
    """The lengths of the texts that are parsed in the block, by whatever uses the standard library."""
    lengths: list[int] = []
    raw_decode = json.JSONDecoder.raw_decode

    def counted(decoder: json.JSONDecoder, text: str, idx: int = 0) -> tuple[Any, int]:
        lengths.append(len(text))
        return raw_decode(decoder, text, idx)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json.JSONDecoder, "raw_decode", counted)
        yield lengths
