"""What operators can ask for, wherever they ask: the API has it for programs, and the page for its console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from bot.identity.principal import Principal


@dataclass(frozen=True, slots=True)
class OperatorOperation:
    """A method at a path. It looks itself whether whoever asks is an operator, and answers 403 where they are none."""

    method: str
    path: str
    """Below that of all of them, such as `/turns/{id}`."""
    is_stream: bool
    """Whether its answer has no length that could be told before."""
    answer: Callable[[web.Request, Principal], Awaitable[web.StreamResponse]]
    """Takes a request whose sender is known. What is wrong with it is told as the API tells it."""
