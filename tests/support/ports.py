"""Ports for what has to know its own before it is started."""

from __future__ import annotations

import errno
import random
import socket


def free_port() -> int:
    """A port that nothing listens on, outside of the range from which the system takes ports for connections."""
    numbers = random.SystemRandom()
    while True:
        port = numbers.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
