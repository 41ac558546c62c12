"""How long the end of a process is put off for what a service gives only once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import app


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the process would be ended."""
    over = asyncio.Event()
    monkeypatch.setattr(app, "_end_now", over.set)
    monkeypatch.setattr(app, "KEPT_SECONDS", 0.01)
    return over


def one_after_the_other(*answers: bool) -> tuple[Callable[[], bool], list[bool]]:
    """What says whether a service is asked, each time that it is looked at; and the answers that are left."""
    left = list(answers)
    return lambda: left.pop(0), left


async def test_without_anything_asked_it_is_not_put_off(ended: asyncio.Event) -> None:
    app._end_in_time(lambda: False, asyncio.get_running_loop().time() + 60)
    assert ended.is_set()


async def test_what_is_asked_for_while_the_rest_ends_is_waited_for_too(ended: asyncio.Event) -> None:
    asking, left = one_after_the_other(True, False, True, False, False)
    app._end_in_time(asking, asyncio.get_running_loop().time() + 60)
    await asyncio.wait_for(ended.wait(), 5)
    assert left == []


async def test_it_is_put_off_no_longer_than_until_then(ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.02
    app._end_in_time(lambda: True, until)
    await asyncio.wait_for(ended.wait(), 5)
    assert loop.time() >= until
