"""Who may do what on the page: sessions, where a request comes from, the password, and the check of every request."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from adapters.shared.people import time_zone_of
from adapters.shared.requests import FORWARDING_HEADERS, host_name
from adapters.web.bodies import RefusalError
from adapters.web.config import WebConfig
from bot.crypto import hashed, random_token
from bot.domain import Clock, Person, system_clock
from bot.identity.sessions import BROWSER_SECONDS, PageSessions
from bot.limits import Beginnings, Window
from bot.records.database import is_outage
from bot.settings import is_loopback
from translations import SOURCE, choose, in_language
from translations import gettext as _

SESSION_SECONDS = int(BROWSER_SECONDS)
"""How long a browser stays signed in: a week."""
CLOCKS_DIFFER = 3_600.0
"""Seconds by which a session may have been issued later than now: another replica's clock, or that of a PostgreSQL
before a failover, may have been fast."""


@dataclass(frozen=True, slots=True)
class Session:
    """One browser's session."""

    session_id: str
    person_id: str
    """Who this browser says it is."""
    signed_in: bool
    """Whether they did; always true where nobody has to. Where somebody has to, it counts only while the records have
    the session."""
    issued_at: int
    """Seconds since the epoch."""


class Sessions:
    """Makes, reads and writes session cookies, which are signed and have a token bound to them.

    Every replica can read every cookie. Whether somebody is signed in with one is in the records, where that is needed
    at all. The signing key is made from the password too: changing the password ends all sessions.

    Args:
        kept: needed where somebody has to sign in.
    """

    def __init__(self, config: WebConfig, clock: Clock = system_clock, kept: PageSessions | None = None) -> None:
        self._config = config
        self._clock = clock
        self._kept = kept
        self._key = hmac.digest(config.secret, (config.password or "").encode(), hashlib.sha256)
        # Cookies know hosts but not ports: two servers on one machine must not overwrite each other's. A cookie with
        # the prefix `__Host-` cannot be set by a neighbour's subdomain, but only exists over TLS.
        # Over TLS it is the port of the public address, which all replicas have in common.
        self.cookie_name = self.named("countersign")

    def named(self, name: str) -> str:
        """The name of a cookie of this server."""
        is_https = self._config.is_https
        return f"__Host-{name}-{self._config.public_port}" if is_https else f"{name}-{self._config.port}"

    def begin(self) -> Session:
        """A new session: the first local person, or nobody yet where somebody has to sign in."""
        is_local = self._config.login == "local"
        return Session(
            session_id=secrets.token_urlsafe(18),
            person_id=self._config.people[0].person_id if is_local else "",
            signed_in=not self._config.needs_sign_in,
            issued_at=int(self._clock()),
        )

    async def sign_in(self, person: Person, password_hash: str = "") -> Session | None:
        """The session of somebody who has signed in: under a new id, so that nobody knows it from before. `None`: they
        are no user any more. `password_hash`: as for `PageSessions.begin`."""
        session_id = await self._records.begin(person, self._config.login, password_hash=password_hash)
        if session_id is None:
            return None
        return Session(session_id, person.person_id, signed_in=True, issued_at=int(self._clock()))

    async def end(self, session: Session) -> None:
        """Whoever has this session's cookie, or a copy of it, is not signed in any more."""
        if session.signed_in and self._config.needs_sign_in:
            await self._records.end(session.session_id)

    async def visitor(self, cookies: Mapping[str, str]) -> PageVisitor:
        """Whoever sent a request with these cookies. Where somebody has to sign in, the records say who they are."""
        session = self.read(cookies)
        if session is None:
            session = self.begin()
            return PageVisitor(session, self._config.people[0] if session.signed_in else NOBODY, is_new=True)
        if self._config.needs_sign_in:
            row = await self._records.find(session.session_id) if session.signed_in else None
            if row is None or row.login != self._config.login:
                return PageVisitor(replace(session, signed_in=False), NOBODY)
            if self._config.login != "local":
                return PageVisitor(replace(session, person_id=row.person_id), Person(row.person_id, row.name))
        return PageVisitor(session, self._config.person(session.person_id) or self._config.people[0])

    @property
    def _records(self) -> PageSessions:
        if self._kept is None:
            raise ValueError("where somebody has to sign in, the records have to say who is")
        return self._kept

    def read(self, cookies: Mapping[str, str]) -> Session | None:
        """The session of a request; `None`: there is none, or it is forged, outdated or not ours."""
        payload, _, signature = cookies.get(self.cookie_name, "").partition(".")
        if not hmac.compare_digest(self._sign("session", payload).encode(), signature.encode(errors="replace")):
            return None
        try:
            session = Session(**json.loads(base64.urlsafe_b64decode(payload)))
        except (ValueError, TypeError, binascii.Error):
            # Signed by us but of another release's shape: begin anew.
            return None
        if not -CLOCKS_DIFFER <= self._clock() - session.issued_at <= SESSION_SECONDS:
            return None
        if not (session.signed_in or self._config.needs_sign_in):
            return None  # of when somebody had to sign in
        if self._config.login == "local" and self._config.person(session.person_id) is None:
            return replace(session, person_id=self._config.people[0].person_id)
        return session

    def write(self, response: web.StreamResponse, session: Session) -> None:
        """Set the cookie of a session."""
        fields = {name: getattr(session, name) for name in Session.__slots__}
        payload = base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()
        response.set_cookie(
            self.cookie_name,
            f"{payload}.{self._sign('session', payload)}",
            max_age=SESSION_SECONDS,
            path="/",
            httponly=True,
            samesite="Strict",
            secure=self._config.is_https,
        )

    def csrf_token(self, session: Session) -> str:
        """What a page of this session has to send in `X-CSRF-Token` with everything that changes something."""
        return self._sign("csrf", session.session_id)

    def is_csrf_token(self, session: Session, token: str) -> bool:
        """Whether a token belongs to the session, in constant time."""
        return hmac.compare_digest(self.csrf_token(session).encode(), token.encode(errors="replace"))

    def _sign(self, purpose: str, text: str) -> str:
        message = f"{purpose}:{text}".encode(errors="replace")
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class PageVisitor:
    """Whoever sent a request, as far as the page knows."""

    session: Session
    person: Person
    is_new: bool = False
    """Whether the session was made just now, for a request that came with none."""


NOBODY = Person("", "")
"""Whoever is not signed in where somebody has to."""


# ------------------------------------------------------------------------------------------------ where from
# Pure checks of a request's headers. Each raises `RefusalError` or returns nothing.
#
# Without a password the page is for this machine alone (docs/operations.md). A loopback socket alone does not prove
# that: a proxy on the same machine may carry strangers in (hence no `PUBLIC_URL`, no forwarding headers), and a page
# elsewhere may point its own name at 127.0.0.1 (hence a loopback `Host`).


def _only_here(why: str = "") -> RefusalError:
    sentence = _("Without a password, this page works only on the machine it runs on. Set WEB_LOGIN or WEB_PASSWORD.")
    return RefusalError(403, f"{why} {sentence}".lstrip())


def refuse_beyond_loopback(config: WebConfig, headers: Mapping[str, str], remote: str | None) -> None:
    """Refuse (403) whatever does not provably come from this machine, unless somebody has to sign in first.

    `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
    """
    if config.needs_sign_in:
        return
    if not is_loopback(config.host):
        raise _only_here(_("The server listens on {host}.").format(host=config.host))
    if config.public_url is not None:
        raise _only_here(_("PUBLIC_URL is set."))
    if remote is not None and not is_loopback(remote):
        raise _only_here()
    if not is_loopback(host_name(headers.get("Host", ""))):
        raise _only_here(_("The request’s Host isn’t this machine’s own name."))
    forwarded = next((name for name in FORWARDING_HEADERS if name in headers), None)
    if forwarded is not None:
        raise RefusalError(
            403, f"{_('The request came through a proxy ({header}).').format(header=forwarded)} {_only_here()}"
        )


def refuse_other_sites(config: WebConfig, headers: Mapping[str, str]) -> None:
    """Refuse (403) a request that another site's page made.

    `SameSite=Strict` is not enough by itself: another port of the same host is another site to us, but not to it.
    """
    if headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
        raise RefusalError(403, _("This request came from another site’s page."))
    origin = headers.get("Origin")
    if origin is None:
        return
    ours = {headers.get("Host", "").lower()}
    if config.public_url is not None:
        ours.add(urlsplit(config.public_url).netloc.lower())
    if _netloc(origin) not in ours:
        raise RefusalError(403, _("This request came from another site’s page."))


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


# ------------------------------------------------------------------------------------------------ the password

TRIES = 10
"""Wrong passwords that one address may try in a window."""
WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000
"""Addresses remembered at most; the one that tried longest ago is forgotten first."""


class WrongTries:
    """Stops an address that keeps guessing, and guesses at one name, without slowing the others.

    `counted`: counts them; those of `MOST_ADDRESSES`, where a process does it in its memory.
    """

    def __init__(self, counted: Beginnings) -> None:
        self._counted = counted

    async def begin(self, address: str, name: str = "") -> PasswordTry:
        """Count one try as wrong until it is found to be right. Raises `RefusalError` (429) after too many.

        Args:
            address: of whoever tries; empty: nobody knows. Tries at a name are counted by that alone then, so that
                nobody can keep everybody out, and those at the password that all share in one.
            name: whose password it is; empty: one that all share.
        """
        of_address = [Window(f"password:{address}", TRIES, WINDOW_SECONDS)] if address or not name else []
        of_name = [Window(f"password-of:{hashed(name)}", TRIES, WINDOW_SECONDS)] if name else []
        tried = PasswordTry(random_token(), of_address, of_name, is_alone=bool(address) and not name)
        full = await self._counted.count(tried.key, [*tried.of_address, *tried.of_name])
        if full is not None:
            message = _("Too many wrong passwords. Wait a minute, then try again.")
            raise RefusalError(429, message, retry_after=full.wait)
        return tried

    async def was_right(self, tried: PasswordTry) -> None:
        """It was the right one, so others were slips. Of an address, only where all share one password: who has an
        account of their own may be guessing at other people's."""
        for window in tried.of_address:
            await self._counted.forget(window, "" if tried.is_alone else tried.key)
        for window in tried.of_name:
            await self._counted.forget(window)


@dataclass(frozen=True, slots=True)
class PasswordTry:
    """A password that somebody has sent."""

    key: str
    of_address: Sequence[Window]
    of_name: Sequence[Window]
    is_alone: bool
    """Whether whoever knows the password has tried all that was tried from there."""


class PasswordGate:
    """Says whether the password that all share is right."""

    def __init__(self, password: str, guesses: Beginnings) -> None:
        self._digest = _digest(password)
        self._tries = WrongTries(guesses)

    async def check(self, password: str, address: str) -> None:
        """Return if the password is right. Raises `RefusalError`: 401 when it is wrong, 429 after too many."""
        tried = await self._tries.begin(address)
        if not hmac.compare_digest(self._digest, _digest(password)):
            raise RefusalError(401, _("Wrong password."))
        await self._tries.was_right(tried)


def _digest(password: str) -> bytes:
    # Digests are of one length, so that comparing them tells nothing about the password's.
    return hashlib.sha256(password.encode(errors="replace")).digest()


# ------------------------------------------------------------------------------------------------ every request

log = structlog.get_logger(__name__)
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
LANGUAGE_COOKIE = "countersign-language"
"""The page sets it: an event stream has no headers of its own."""
_ZONE = re.compile(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}")


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Greeting = Callable[[web.Request, PageVisitor], Awaitable[web.StreamResponse]]
RequestCheck = Callable[[web.Request], None]
VisitorCheck = Callable[[web.Request, PageVisitor], None]


class RequestChecks:
    """Wraps handlers in the checks that their kind needs. A refusal becomes its status and one JSON sentence."""

    def __init__(self, config: WebConfig, sessions: Sessions) -> None:
        self._config = config
        self._sessions = sessions

    def page(self, handler: Handler) -> Handler:
        """The page and its files, and coming back from an issuer: for whoever may reach us at all."""
        return self._guarded(handler, self._check_reach)

    def open(self, handler: Handler) -> Handler:
        """What programs may send as well as our page, but no other site's."""
        return self._guarded(handler, self._check_reach, self._check_site)

    def hello(self, handler: Greeting) -> Handler:
        """Reading that needs no session yet: who am I?"""
        return self.open(self._greeted(handler))

    def sign_in(self, handler: Greeting) -> Handler:
        """Changing who one is: needs a session and its token, without being signed in."""
        return self.open(self._greeted(handler, self.check_token))

    def reading(self, handler: Greeting, *first: RequestCheck) -> Handler:
        """Reading. `first`: what is checked before the records are asked whose the session is."""
        return self._guarded(self._greeted(handler, self._check_signed_in), self._check_reach, self._check_site, *first)

    def acting(self, handler: Greeting) -> Handler:
        """Changing something."""
        return self.open(self._greeted(handler, self._check_signed_in, self.check_token))

    # ------------------------------------------------------------------------------------------------ checks

    def _check_reach(self, request: web.Request) -> None:
        refuse_beyond_loopback(self._config, request.headers, request.remote)

    def _check_site(self, request: web.Request) -> None:
        refuse_other_sites(self._config, request.headers)

    def _check_signed_in(self, request: web.Request, visitor: PageVisitor) -> None:
        if visitor.is_new or not visitor.session.signed_in:
            raise RefusalError(401, _("Your session has ended. Reload the page."))

    def check_token(self, request: web.Request, visitor: PageVisitor) -> None:
        """Refuse (403) what does not come from a page of this session."""
        if not self._sessions.is_csrf_token(visitor.session, request.headers.get("X-CSRF-Token", "")):
            raise RefusalError(403, _("This page belongs to another session. Reload it."))

    # ------------------------------------------------------------------------------------------------ wrapping

    def _greeted(self, handler: Greeting, *checks: VisitorCheck) -> Handler:
        async def meet(request: web.Request) -> web.StreamResponse:
            visitor = await self._sessions.visitor(request.cookies)
            for check in checks:
                check(request, visitor)
            zone = request.headers.get("X-Time-Zone", "")
            if is_time_zone(zone):
                visitor = replace(visitor, person=replace(visitor.person, time_zone=zone))
            return await handler(request, visitor)

        return meet

    def _guarded(self, handler: Handler, *checks: RequestCheck) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            with in_language(_language_of(request)):  # what is answered here, its sender alone sees
                return await answered(request)

        async def answered(request: web.Request) -> web.StreamResponse:
            try:
                for check in checks:
                    check(request)
                response = await handler(request)
            except RefusalError as refusal:
                response = _refused(refusal)
            except web.HTTPException:
                raise
            except Exception as error:
                if is_outage(error):
                    raise  # refused by `adapters.shared.outages`
                # The last resort of a request: its sender gets a reference, the log gets the cause, once.
                reference = secrets.token_hex(4)
                log.exception("web_request_failed", reference=reference, method=request.method, path=_route(request))
                response = json_answer({"error": went_wrong(reference)}, status=500)
            if not response.prepared:
                response.headers.update(SECURITY_HEADERS)
            return response

        return answer


def went_wrong(reference: str) -> str:
    """Returns what is said of a defect; `reference`: what the log has of it."""
    return _("Something went wrong (reference {reference}).").format(reference=reference)


def json_answer(body: Any, *, status: int = 200) -> web.Response:
    """A JSON answer that nobody caches."""
    return web.json_response(body, status=status, headers={"Cache-Control": "no-store"})


def _language_of(request: web.Request) -> str:
    """The language that a page wants to be answered in: what was chosen there, else its browser's, else English, which
    the page itself speaks then. What says nothing of a language is no browser."""
    wanted = (request.cookies.get(LANGUAGE_COOKIE), request.headers.get("Accept-Language"))
    return choose(*wanted, SOURCE if any(wanted) else None)


def is_time_zone(name: str) -> bool:
    """Whether `name` is an IANA time zone that this machine knows."""
    return _ZONE.fullmatch(name) is not None and time_zone_of(name) == name


def _refused(refusal: RefusalError) -> web.Response:
    response = json_answer({"error": refusal.sentence}, status=refusal.status)
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(ceil(refusal.retry_after))
    return response


def _route(request: web.Request) -> str:
    # The route's pattern: paths hold ids of people's things, queries might hold anything.
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else ""


# ------------------------------------------------------------------------------------------------ the sign-in pages


def visitor_of(config: WebConfig, sessions: Sessions) -> Callable[[web.Request], Awaitable[str | None]]:
    """The person id that a request's session stands for; `None` for whoever may not use the page either."""

    async def visitor(request: web.Request) -> str | None:
        try:
            refuse_beyond_loopback(config, request.headers, request.remote)
            refuse_other_sites(config, request.headers)
        except RefusalError:
            return None
        found = await sessions.visitor(request.cookies)
        return found.person.person_id if found.session.signed_in and not found.is_new else None

    return visitor
