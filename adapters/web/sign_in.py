"""Signing in and out: `/login`, `/register`, `/logout`, and the way to an issuer and back.

Browsers get a session, and never a token; programs, which send no cookie, get a token that ends with its session.
"""

from __future__ import annotations

from html import escape
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import structlog
from aiohttp import web

from adapters.shared.requests import BodyNotReadError, address_of_sender, read_whole_body
from adapters.web.access import PageVisitor, RequestChecks, Session, Sessions, WrongTries, json_answer
from adapters.web.bodies import NameAndPasswordBody, RefusalError, read_body
from adapters.web.config import WebConfig
from bot.crypto import hashed, random_token
from bot.domain import Person
from bot.identity.bearers import bearer_token
from bot.identity.issuer_sign_in import RETURN_SECONDS, IssuerSignIn, SignInRefusedError, too_busy
from bot.identity.page_identity import PageIdentity
from bot.identity.sessions import PROGRAM_SECONDS
from bot.identity.users import LONGEST_PASSWORD, BadUserError, NameTakenError, TooManyChecksError, User
from bot.limits import Beginnings, Window
from bot.safe_text import visible_line
from translations import gettext as _
from translations import language

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    AnswerTo = Callable[[Session, Person | None], web.Response]
    EndStreams = Callable[[str], Awaitable[None]]

log = structlog.get_logger(__name__)
LOGIN, REGISTER, LOGOUT = "/login", "/register", "/logout"
TO_ISSUER, BACK = "/login/oidc", "/login/oidc/callback"
BROWSER_COOKIE = "countersign-sign-in"
REGISTRATIONS = 10
"""Accounts that one address may make, or try to, within a minute."""
ALL_REGISTRATIONS = 100
"""The same of everybody, behind a proxy."""
LONGEST_FORM = 8_192
"""Bytes."""
LONGEST_PARAMETER = 4_096
"""Characters; codes of big issuers have some 1,500."""
MOST_PARAMETERS = 20


class NamesAndPasswords:
    """Serves `/login`, `/register` and `/logout`.

    Args:
        answer: what a page is told of its new session.
        end_streams: disconnects the open pages of a session, by its id.
    """

    def __init__(
        self,
        config: WebConfig,
        sessions: Sessions,
        identity: PageIdentity | None,
        guesses: Beginnings,
        *,
        checks: RequestChecks,
        answer: AnswerTo,
        end_streams: EndStreams,
    ) -> None:
        self._config = config
        self._sessions = sessions
        self._identity = identity
        self._counted = guesses
        self._tries = WrongTries(guesses)
        self._checks = checks
        self._answer = answer
        self._end_streams = end_streams

    async def login(self, request: web.Request) -> web.Response:
        """`POST /login`, with a name and a password."""
        identity = self._with_passwords()
        visitor = await self._page_that_asks(request)
        given = await _name_and_password(request)
        address = address_of_sender(request, self._config.public_url)
        tried = await self._tries.begin(address, given.username.strip().lower() or "-")
        try:
            user = await identity.users.check(given.username, given.password)
        except TooManyChecksError:
            raise _busy() from None
        if user is None:
            raise _wrong()
        await self._tries.was_right(tried)
        return await self._signed_in(user, visitor, status=200)

    async def register(self, request: web.Request) -> web.Response:
        """`POST /register`, likewise."""
        identity = self._with_passwords()
        if not self._config.register:
            raise RefusalError(404, _("You can’t create an account here."))
        visitor = await self._page_that_asks(request)
        given = await _name_and_password(request)
        address = address_of_sender(request, self._config.public_url)
        window = Window(f"register:{address}", REGISTRATIONS if address else ALL_REGISTRATIONS)
        full = await self._counted.count(random_token(), [window])
        if full is not None:
            raise RefusalError(429, _("Too many new accounts. Try again later."), retry_after=full.wait)
        try:
            user = await identity.users.register(given.username, given.password)
        except BadUserError as error:
            raise RefusalError(422, str(error)) from None
        except NameTakenError:
            raise RefusalError(409, _("That name is taken.")) from None
        except TooManyChecksError:
            raise _busy() from None
        return await self._signed_in(user, visitor, status=201)

    async def logout(self, request: web.Request) -> web.Response:
        """`POST /logout`: end the session of a page, or of a program's token."""
        header = request.headers.get("Authorization", "")
        if header.strip().partition(" ")[0].lower() != "bearer":
            visitor = await self._sessions.visitor(request.cookies)
            self._checks.check_token(request, visitor)
            return await self.leave(request, visitor)
        token = bearer_token(header)
        read = self._identity.tokens.read(token) if self._identity is not None and token is not None else None
        if read is None or self._identity is None:
            raise RefusalError(401, _("Your session has ended."))
        await self._identity.sessions.end_with_hash(read.session_hash)
        return web.Response(status=204)

    async def leave(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/session`: sign out of this browser."""
        await self._sessions.end(visitor.session)
        await self._end_streams(visitor.session.session_id)
        return self._answer(self._sessions.begin(), None)

    def _with_passwords(self) -> PageIdentity:
        if self._identity is None or self._config.login != "password":
            raise RefusalError(404, _("You can’t sign in here with a name and a password."))
        return self._identity

    async def _page_that_asks(self, request: web.Request) -> PageVisitor | None:
        """The page that sent a request, whose token is right; `None`: it is a program's."""
        if self._sessions.cookie_name not in request.cookies:
            return None
        visitor = await self._sessions.visitor(request.cookies)
        self._checks.check_token(request, visitor)
        return visitor

    async def _signed_in(self, user: User, visitor: PageVisitor | None, *, status: int) -> web.Response:
        if visitor is None:
            return await self._token_for(user, status)
        session = await self._sessions.sign_in(user.person, user.password_hash)
        if session is None:
            raise _wrong()
        await self._sessions.end(visitor.session)
        await self._end_streams(visitor.session.session_id)
        response = self._answer(session, user.person)
        response.set_status(status)
        return response

    async def _token_for(self, user: User, status: int) -> web.Response:
        identity = self._with_passwords()
        session_id = await identity.sessions.begin(
            user.person, "password", password_hash=user.password_hash, seconds=PROGRAM_SECONDS
        )
        if session_id is None:
            raise _wrong()
        body = {
            "access_token": identity.tokens.make(user.name, hashed(session_id), PROGRAM_SECONDS),
            "token_type": "bearer",
            "expires_in": int(PROGRAM_SECONDS),
            "username": user.name,
        }
        return json_answer(body, status=status)


def _wrong() -> RefusalError:
    return RefusalError(401, _("Wrong name or password."))


def _busy() -> RefusalError:
    return RefusalError(429, too_busy(), retry_after=2.0)


async def _name_and_password(request: web.Request) -> NameAndPasswordBody:
    """Of a JSON object, or of a form as programs of OAuth send it. Raises `RefusalError`."""
    if request.content_type != "application/x-www-form-urlencoded":
        return await read_body(request, NameAndPasswordBody)
    try:
        form = await read_whole_body(request, LONGEST_FORM, _("That’s too much for this form."))
        fields = parse_qsl(form.decode(), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except BodyNotReadError as error:
        raise RefusalError(error.status, str(error)) from None
    except ValueError:
        raise RefusalError(400, _("The form can’t be read.")) from None
    names = [name for name, _value in fields if name in {"username", "password"}]
    if sorted(names) != ["password", "username"]:
        raise RefusalError(400, _("Enter a name and a password."))
    found = dict(fields)
    if "\0" in found["username"] or len(found["username"]) > 200 or len(found["password"]) > LONGEST_PASSWORD:
        raise RefusalError(400, _("The name or password is too long."))
    return NameAndPasswordBody(username=found["username"], password=found["password"])


# ------------------------------------------------------------------------------------------------ at an issuer


class IssuerPages:
    """Serves the way to the issuer and back. What goes wrong is told on a small page."""

    def __init__(
        self,
        config: WebConfig,
        sessions: Sessions,
        issuer: IssuerSignIn,
        end_streams: EndStreams,
    ) -> None:
        self._config = config
        self._sessions = sessions
        self._issuer = issuer
        self._end_streams = end_streams
        # Its path is the shortest that may have the prefix, with which no neighbour's subdomain can set it.
        self._cookie = sessions.named(BROWSER_COOKIE)
        self._path = "/" if config.is_https else TO_ISSUER

    async def begin(self, request: web.Request) -> web.Response:
        """`GET /login/oidc`: send the browser to the issuer."""
        if request.headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}:
            return _problem(403, _("Open the page to sign in."))
        ours = self._issuer.address()
        if self._config.public_url is None and _host(request.host) != _host(urlsplit(ours).netloc):
            # The issuer sends browsers to our own address, where a cookie of another one would be missing.
            return _problem(403, _("To sign in, open this page at {address}.").format(address=ours))
        try:
            begun = await self._issuer.begin(
                back=BACK,
                address=address_of_sender(request, self._config.public_url),
                browser=self._browser(request),
            )
        except SignInRefusedError as refused:
            return _refused_sign_in(refused)
        response = _going_to(begun.url)
        response.set_cookie(
            self._cookie,
            begun.browser,
            max_age=int(RETURN_SECONDS),
            path=self._path,
            httponly=True,
            samesite="Lax",  # Strict would not come back with somebody whom the issuer sends
            secure=self._config.is_https,
        )
        return response

    async def back(self, request: web.Request) -> web.Response:
        """`GET /login/oidc/callback`: whoever comes back is signed in."""
        try:
            person = await self._issuer.back(_parameters(request), self._browser(request))
        except SignInRefusedError as refused:
            return _refused_sign_in(refused)
        before = await self._sessions.visitor(request.cookies)
        session = await self._sessions.sign_in(person)
        if session is None:
            return _problem(403, _("You can’t sign in here."))
        await self._sessions.end(before.session)
        await self._end_streams(before.session.session_id)
        response = _going_to("/")
        self._sessions.write(response, session)
        response.del_cookie(self._cookie, path=self._path, secure=self._config.is_https, httponly=True, samesite="Lax")
        return response

    def _browser(self, request: web.Request) -> str:
        value = request.cookies.get(self._cookie, "")
        return value if len(value) == len(random_token()) else ""


def _host(netloc: str) -> str:
    """A host and its port, as browsers write them in `Host`."""
    return netloc.lower().removesuffix(":80")


def _parameters(request: web.Request) -> Mapping[str, str]:
    """The query, each parameter once: of two, the issuer and we might believe different ones."""
    query = request.query
    is_ours = len(query) <= MOST_PARAMETERS and len(set(query)) == len(query)
    if not is_ours or any(len(value) > LONGEST_PARAMETER or "\0" in value for value in query.values()):
        raise SignInRefusedError("foreign", _("This address isn’t one of ours."))
    return dict(query)


_STATUS = {"busy": 429, "foreign": 403, "denied": 403, "service": 502}


def _refused_sign_in(refused: SignInRefusedError) -> web.Response:
    response = _problem(_STATUS[refused.kind], str(refused))
    if refused.retry_after is not None:
        response.headers["Retry-After"] = str(ceil(refused.retry_after))
    return response


def _going_to(url: str) -> web.Response:
    return web.Response(status=303, headers={"Location": url, "Cache-Control": "no-store"})


def _problem(status: int, sentence: str) -> web.Response:
    title = escape(_("You’re not signed in"))
    html = (
        f'<!doctype html><html lang="{language()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title} – Countersign</title>"
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/static/tokens.css"><link rel="stylesheet" href="/static/layout.css"></head>'
        '<body><main class="door"><div class="door-card"><img src="/static/icon.svg" alt="" width="40" height="40">'
        f"<h1>{title}</h1><p>{escape(visible_line(sentence, 500))}</p>"
        f'<a class="button primary" href="/">{escape(_("Back to sign-in"))}</a></div></main></body></html>'
    )
    return web.Response(
        status=status, text=html, content_type="text/html", charset="utf-8", headers={"Cache-Control": "no-store"}
    )
