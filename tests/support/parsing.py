"""What is parsed as JSON: that much is refused before it is parsed is seen without a clock."""

from __future__ import annotations

import json
import threading
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


@contextmanager
def threads_that_parse_json() -> Iterator[set[int]]:
    """The threads that parse JSON in the block, by whatever uses the standard library."""
    threads: set[int] = set()
    raw_decode = json.JSONDecoder.raw_decode

    def noted(decoder: json.JSONDecoder, text: str, idx: int = 0) -> tuple[Any, int]:
        threads.add(threading.get_ident())
        return raw_decode(decoder, text, idx)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json.JSONDecoder, "raw_decode", noted)
        yield threads
