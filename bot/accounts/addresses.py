"""Where the browsers of people who sign in come to us."""

from __future__ import annotations

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


def callback(base: str) -> str:
    """Where services send browsers back to (`redirect_uri`)."""
    return f"{base}{CALLBACK}"
