"""Whom a program's request acts for, and what stands before it: signing in, scopes, other sites' pages, pace."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web

from adapters.shared.outages import AGAIN_SECONDS
from adapters.shared.problems import Problem
from adapters.shared.requests import address_of_sender, why_not_from_here
from bot.accounts.ports import Unreachable
from bot.crypto import random_token
from bot.domain import Person
from bot.identity.principal import NotAuthenticated, Principal, Scope
from bot.limits import Beginnings, Window

REQUESTS_A_MINUTE = 600
"""Of one person, with all their tokens."""
REFUSED_A_MINUTE = 120
"""Requests without a token that is good, of one address, where that is known."""
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
EXPOSED = "Retry-After, Location, WWW-Authenticate, Mcp-Session-Id"
"""Headers of answers that pages elsewhere may read."""
ALLOWED = (
    "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, A2A-Version"
)
"""Headers that they may send."""
SIGN_IN = "Send a token: `Authorization: Bearer …` (see /api/docs)."


class Authenticates(Protocol):
    """Says who a header acts for."""

    async def principal(
        self, authorization: str, resources: Collection[str] | None = None
    ) -> Principal | NotAuthenticated:
        """`resources`: as what a signed token may name the gateway, beside `API_JWT_AUDIENCE`; `None`: the API. Raises
        `bot.accounts.ports.Unreachable` when the issuer of a token cannot be asked now."""
        ...

    async def keys_left(self, keys: Collection[str], now: float) -> frozenset[str]:
        """Those keys of principals that count still."""
        ...


@dataclass(frozen=True, slots=True)
class ProgramAccessConfig:
    """Who may ask without a token, and from whose pages."""

    local_person: Person | None
    """As whom requests from this machine act that have no token; `None`: as nobody."""
    public_url: str | None = None
    cors_origins: tuple[str, ...] = ()


class ScopeMissing(Problem):
    """A token does not allow what is asked for. `scopes`: of which it needs one."""

    def __init__(self, scopes: Sequence[Scope]) -> None:
        missing = " or ".join(f"`{scope}`" for scope in scopes)
        super().__init__(403, f"This token doesn’t allow that: it lacks the scope {missing}.")
        self.scopes = scopes


class ProgramAccess:
    """Checks every request of a program: to the API, and of other agents."""

    def __init__(self, config: ProgramAccessConfig, bearers: Authenticates, beginnings: Beginnings) -> None:
        self._config = config
        self._bearers = bearers
        self._beginnings = beginnings

    async def principal(
        self, request: web.Request, scopes: Sequence[Scope], resources: Collection[str] | None = None
    ) -> Principal:
        """Who it acts for. Raises `Problem`: 401, 403, 429, 503.

        Args:
            scopes: of which the token has to have one.
            resources: as what a signed token may name the gateway, beside `API_JWT_AUDIENCE`; `None`: the API is asked.
        """
        header = request.headers.get("Authorization")
        if header is None:
            principal = await self._local(request)
        else:
            principal = await self._of_token(request, header, resources)
        if not any(principal.may(scope) for scope in scopes):
            raise ScopeMissing(scopes)
        pace = Window(f"api:{principal.person.person_id}", REQUESTS_A_MINUTE)
        if full := await self._beginnings.count(random_token(), [pace]):
            raise Problem(429, "Too many requests in one minute.", retry_after=full.wait)
        return principal

    async def _of_token(self, request: web.Request, header: str, resources: Collection[str] | None) -> Principal:
        try:
            found = await self._bearers.principal(header, resources)
        except Unreachable:
            raise Problem(503, "Can’t reach the issuer of the token right now.", retry_after=AGAIN_SECONDS) from None
        if isinstance(found, NotAuthenticated):
            address = address_of_sender(request, self._config.public_url)
            pace = Window(f"api-refused:{address}", REFUSED_A_MINUTE)
            if address and (full := await self._beginnings.count(random_token(), [pace])):
                raise Problem(429, "Too many requests without a valid token.", retry_after=full.wait)
            raise Problem(401, found.reason)
        return found

    async def _local(self, request: web.Request) -> Principal:
        """Whoever sits at this machine: a request that a page of another site made is not theirs."""
        person = self._config.local_person
        if person is None or self._config.public_url is not None or why_not_from_here(request.headers, request.remote):
            raise Problem(401, SIGN_IN)
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") or not is_own_origin(
            request.headers
        ):
            raise Problem(401, SIGN_IN)
        return Principal(person, via="local", subject=person.person_id.rpartition(":")[2])

    def check_origin(self, request: web.Request) -> None:
        """Raises `Problem` (403) for a request that a page has made which is neither ours nor listed."""
        origin = request.headers.get("Origin", "").lower()
        if not (
            is_own_origin(request.headers) or origin in self._config.cors_origins or origin == self._config.public_url
        ):
            raise Problem(403, "Pages of this site aren’t allowed here. See API_CORS_ORIGINS.")

    def answer_headers(self, request: web.Request) -> Mapping[str, str]:
        """What every answer has."""
        return {**SECURITY_HEADERS, **self.cors(request)}

    def cors(self, request: web.Request) -> Mapping[str, str]:
        """Headers that let a listed page elsewhere read the answer."""
        origin = request.headers.get("Origin", "")
        if not self._config.cors_origins:
            return {}
        if origin.lower() not in self._config.cors_origins:
            return {"Vary": "Origin"}
        return {
            "Vary": "Origin",
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED,
        }

    def preflight(self, request: web.Request, methods: str) -> Mapping[str, str]:
        """The same for the question that browsers ask before."""
        headers = self.cors(request)
        if "Access-Control-Allow-Origin" not in headers:
            return headers
        return {
            **headers,
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": ALLOWED,
            "Access-Control-Max-Age": "600",
        }


def is_own_origin(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from no page, or from one of ours."""
    origin = headers.get("Origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
    except ValueError:
        return False
