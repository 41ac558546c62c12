"""An issuer that fills the port as tests want it: who comes back is whoever the code names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from bot.accounts.ports import BegunAuthorization, GrantRefused, Unreachable
from bot.identity.ports import Claims

ISSUER = "https://issuer.example"


@dataclass
class GivenIssuer:
    """Fills `bot.identity.ports.OpenIdSignIn`."""

    name: str = "Example"
    issuer: str = ISSUER
    people: dict[str, Claims] = field(
        default_factory=lambda: {"ana": Claims(ISSUER, "1", "Ana Lee", "ana@example.com")}
    )
    """By the code that stands for them."""
    is_away: bool = False
    is_quick: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, nobody is told where to go."""

    async def begin(self, *, state: str, nonce: str, redirect_uri: str) -> BegunAuthorization:
        await self.is_quick.wait()
        if self.is_away:
            raise Unreachable("it does not answer")
        query = urlencode({"state": state, "nonce": nonce, "redirect_uri": redirect_uri})
        return BegunAuthorization(f"{ISSUER}/authorize?{query}", {"nonce": nonce, "redirect_uri": redirect_uri})

    async def finish(self, kept: Mapping[str, Any], code: str, *, nonce: str, issuer: str | None) -> Claims:
        assert kept["nonce"] == nonce
        assert kept["redirect_uri"].endswith("/login/oidc/callback")
        if code not in self.people or issuer not in {None, ISSUER}:
            raise GrantRefused("no such code")
        return self.people[code]

    def __post_init__(self) -> None:
        self.is_quick.set()


def way_back(location: str, **parameters: str) -> str:
    """The address to which the issuer sends a browser back that it was sent by this one."""
    query = parse_qs(urlsplit(location).query)
    back = query["redirect_uri"][0]
    return f"{back}?{urlencode({'state': query['state'][0], **parameters})}"
