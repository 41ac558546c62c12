"""Connections of aiohttp to services outside: they end when a service says more than it was asked (rules 11 and 13 in
docs/architecture.md)."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


def only_asked(connector: aiohttp.TCPConnector) -> aiohttp.TCPConnector:
    """The same connector, new and made in the running loop, with connections that end so."""
    make: type[ResponseHandler] = _Connection
    connector._factory = partial(make, loop=asyncio.get_running_loop())  # it has no setting for it
    return connector


class _Connection(ResponseHandler):
    """A connection that ends when the service says more than it was asked.

    aiohttp reads what comes while no request is under way, as fast as it comes, and keeps all of it: in the five
    seconds for which a connection waits for the next request that was hundreds of megabytes, read in steps of up to a
    second. And the next request would get the answer that lies there: somebody else's.
    """

    _answered = False
    """Whether the head of the answer is there, and not only of one to come."""

    def set_response_params(self, **params: Any) -> None:
        """Called before each request."""
        self._answered = False
        super().set_response_params(**params)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Called with each head, and its body."""
        code = data[0].code
        self._answered = self._answered or code >= HTTPStatus.OK or code == HTTPStatus.SWITCHING_PROTOCOLS
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if data and self._answered and (self._payload is None or self._payload.is_eof()):
            self.abort()
        else:
            super().data_received(data)
