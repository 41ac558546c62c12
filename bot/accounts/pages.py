"""What the browser is told on the way of a sign-in. The routes (`adapters/oauth`) turn it into pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Offer:
    """A link that can be used: what it is for. Asking has no effect, since previews fetch links."""

    service: str
    person: str
    """Name of the person whom the account will be connected to."""
    platform: str
    scopes: tuple[str, ...]
    proof: str
    """Where the person has to prove who they are first ("Slack", "Microsoft", "this page"); empty: by a code in the
    end."""


@dataclass(frozen=True, slots=True)
class GoTo:
    """Send the browser on."""

    url: str = field(repr=False)
    cookie: str | None = field(default=None, repr=False)
    """Binds what comes back to this browser; to be set for `/oauth`, `HttpOnly`, `SameSite=Lax`."""


@dataclass(frozen=True, slots=True)
class Connected:
    """The account is connected; the person can go back to the chat."""

    service: str
    account: str
    person: str
    platform: str


@dataclass(frozen=True, slots=True)
class ShowCode:
    """The account will be connected when its owner tells the bot this code."""

    service: str
    account: str
    code: str = field(repr=False)
    minutes: int = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """Nothing was connected, and nothing changed."""

    kind: Literal["unknown", "used", "expired", "foreign", "denied", "service"]
    """`unknown` links do not exist; `foreign`: another browser or another person than the link is for; `service`: the
    service could not be asked or refused."""
    sentence: str
    """Why, and what to do, safe to show to anybody."""
