"""Where the browsers of people who sign in come to us."""

from __future__ import annotations

from urllib.parse import quote

from bot.settings import Settings

START, CALLBACK = "/oauth/start", "/oauth/callback"


class Address:
    """Where browsers reach this server: `PUBLIC_URL`, else the address that it listens on."""

    def __init__(self, settings: Settings) -> None:
        self._public_url = settings.public_url
        self._host = settings.host
        self._port = settings.port

    def listens_on(self, port: int) -> None:
        """The port that it got, which `PORT=0` leaves to the system."""
        self._port = port

    def __call__(self) -> str:
        """Scheme, host and port."""
        if self._public_url is not None:
            return self._public_url
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"


def start_link(base: str, token: str) -> str:
    """The link that one person gets."""
    return f"{base}{START}?s={token}"


def callback(base: str, connection: str = "") -> str:
    """Where the service of a connection sends browsers back to (`redirect_uri`): each to an address of its own, so that
    no service can have another's answer taken for its own (RFC 9700, 4.4.2). Without a connection: where those send
    them back to who say whose browser it is."""
    return f"{base}{CALLBACK}/{quote(connection, safe='')}" if connection else f"{base}{CALLBACK}"
