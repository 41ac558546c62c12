"""Browser sessions: a signed cookie that says who somebody is on the page, and a token bound to it.

Nothing is kept on the server, so every replica knows every session. The signing key is made from the password too:
changing the password ends all sessions.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

from aiohttp import web

from adapters.web.config import WebConfig
from bot.domain import Clock

SESSION_SECONDS = 7 * 24 * 3600
"""How long a browser stays signed in: a week."""


@dataclass(frozen=True, slots=True)
class Session:
    """One browser's session."""

    session_id: str
    person_id: str
    """Who this browser says it is."""
    signed_in: bool
    """Whether the password was given; always true where there is none."""
    issued_at: int
    """Seconds since the epoch."""


class Sessions:
    """Makes, reads and writes session cookies."""

    def __init__(self, config: WebConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._key = hmac.digest(config.secret, (config.password or "").encode(), hashlib.sha256)
        # Cookies know hosts but not ports: two houses on one machine must not overwrite each other's. A cookie with
        # the prefix `__Host-` cannot be set by a neighbour's subdomain, but only exists over TLS.
        self.cookie_name = f"{'__Host-' if config.is_https else ''}countersign-{config.port}"

    def begin(self) -> Session:
        """A new session: the first local person, signed in where no password is needed."""
        return Session(
            session_id=secrets.token_urlsafe(18),
            person_id=self._config.people[0].person_id,
            signed_in=not self._config.needs_password,
            issued_at=int(self._clock()),
        )

    def signed_in(self, session: Session) -> Session:
        """The session after the right password: under a new id, so that nobody knows it from before."""
        fresh = self.begin()
        return replace(fresh, person_id=session.person_id, signed_in=True)

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
        if not 0 <= self._clock() - session.issued_at <= SESSION_SECONDS:
            return None
        if self._config.person(session.person_id) is None:
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
