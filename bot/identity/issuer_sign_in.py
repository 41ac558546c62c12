"""Signing in on the page at an OpenID issuer (`WEB_LOGIN=oidc`), in two requests between which we may restart.

A browser begins, and has to come back with the state that it was given and the cookie that binds it: whoever is sent
somebody else's way back is refused. Each way back works once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from bot.accounts.ports import GrantRefused, Unreachable
from bot.crypto import Sealer, hashed, random_token
from bot.domain import Clock, Person
from bot.identity.identities import IdentityRecords
from bot.identity.page_people import PagePeople
from bot.identity.ports import OpenIdSignIn
from bot.limits import Beginnings, Window
from bot.records import identity
from bot.records.database import Database
from bot.records.identity import LoginAttemptRow
from bot.records.locks import UNLOCKED
from translations import gettext as _

log = structlog.get_logger(__name__)
RETURN_SECONDS = 600.0
"""How long a browser may take to come back."""
BEGINNINGS = 20
"""Sign-ins that one address may begin within a minute, or one browser where its address is not known."""
MOST_AT_WORK = 20
"""Sign-ins that are being begun at a time: each asks the issuer where it is, and is kept."""
LONGEST_PARAMETER = 4_096
"""Characters of what a browser brings back."""


def too_busy() -> str:
    """Returns what is said to who wants to sign in while many others do."""
    return _("Too many people are signing in. Try again in a moment.")


@dataclass(frozen=True, slots=True)
class BegunSignIn:
    """Where a browser is sent, and the cookie with which it has to come back."""

    url: str = field(repr=False)
    browser: str = field(repr=False)


class SignInRefusedError(Exception):
    """Nobody is signed in; the text is a sentence for whoever tried. `kind`: whose doing it is."""

    def __init__(self, kind: str, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.kind = kind
        """`busy`: too many at a time; `foreign`: not begun by this browser, or used up; `denied`: the issuer, or the
        person there, said no; `service`: the issuer is out of reach."""
        self.retry_after = retry_after


class IssuerSignIn:
    """Sends browsers to the issuer, and says who they are that come back.

    Args:
        address: where browsers reach this server, whatever a request says of that.
    """

    def __init__(
        self,
        open_id: OpenIdSignIn,
        database: Database,
        *,
        address: Callable[[], str],
        people: PagePeople,
        identities: IdentityRecords,
        sealer: Sealer,
        clock: Clock,
        beginnings: Beginnings,
    ) -> None:
        self.name = open_id.name
        self.address = address
        self._at_work = 0
        self._open_id = open_id
        self._database = database
        self._people = people
        self._identities = identities
        self._sealer = sealer
        self._clock = clock
        self._beginnings = beginnings

    async def begin(self, *, back: str, address: str, browser: str = "") -> BegunSignIn:
        """Begin one. Raises `SignInRefusedError`.

        Args:
            back: the path to which the issuer sends the browser back.
            address: where the browser is, to count what it begins; empty: nobody knows.
            browser: its cookie, where it has begun one already, perhaps in another tab.
        """
        if by := address or (browser and f"browser {hashed(browser)}"):
            full = await self._beginnings.count(random_token(), [Window(f"sign-in-at-issuer:{by}", BEGINNINGS)])
            if full is not None:
                raise SignInRefusedError(
                    "busy", _("Too many sign-ins. Wait a minute, then try again."), retry_after=full.wait
                )
        if self._at_work >= MOST_AT_WORK:
            raise SignInRefusedError("busy", too_busy(), retry_after=2.0)
        self._at_work += 1
        try:
            return await self._begin(back, browser)
        finally:
            self._at_work -= 1

    async def _begin(self, back: str, browser: str) -> BegunSignIn:
        state, nonce, now = random_token(), random_token(), self._clock()
        try:
            begun = await self._open_id.begin(state=state, nonce=nonce, redirect_uri=f"{self.address()}{back}")
        except Unreachable as error:
            raise self._out_of_reach(error) from error
        browser = browser or random_token()
        sealed = self._sealer.seal(json.dumps({"nonce": nonce, "kept": dict(begun.kept)}))
        row = LoginAttemptRow(hashed(state), hashed(browser), sealed, now + RETURN_SECONDS)
        async with self._database.writing_urgently(UNLOCKED) as tx:  # nothing that is read has to stay
            await identity.forget_login_attempts(tx, now)
            await identity.add_login_attempt(tx, row)
        return BegunSignIn(begun.url, browser)

    async def back(self, parameters: Mapping[str, str], browser: str) -> Person:
        """Returns who has come back, and remembers what the issuer says of them. Raises `SignInRefusedError`.

        Args:
            parameters: of the address, each once.
            browser: the cookie that it was given; empty: it has none.
        """
        nonce, kept = await self._taken_out(parameters.get("state", ""), browser)
        if (told := parameters.get("error")) is not None:
            log.info("sign_in_refused", by=self.name, error=told[:100])
            raise SignInRefusedError("denied", _("{issuer} didn’t sign you in.").format(issuer=self.name))
        if not (code := parameters.get("code")):
            raise SignInRefusedError("denied", _("{issuer} didn’t sign you in.").format(issuer=self.name))
        try:
            claims = await self._open_id.finish(kept, code, nonce=nonce, issuer=parameters.get("iss"))
        except Unreachable as error:
            raise self._out_of_reach(error) from error
        except GrantRefused as error:
            log.warning("sign_in_not_accepted", by=self.name, cause=str(error))
            raise SignInRefusedError("denied", self._not_accepted()) from error
        if not self._people.may_sign_in(claims):
            log.warning("sign_in_of_another_domain", by=self.name)
            raise SignInRefusedError(
                "denied", _("Your {issuer} account’s domain isn’t allowed here.").format(issuer=self.name)
            )
        return await self._identities.remember(claims, says_all=True)

    async def _taken_out(self, state: str, browser: str) -> tuple[str, Mapping[str, object]]:
        """What was kept for this state and this browser, which is not there any more then."""
        async with self._database.writing_urgently(UNLOCKED) as tx:  # one statement
            row = await identity.take_login_attempt(tx, hashed(state), hashed(browser), self._clock())
        opened = self._sealer.unseal(row.sealed) if row is not None else None
        if opened is None:
            raise SignInRefusedError(
                "foreign", _("This sign-in took too long, was already used or was started in another browser.")
            )
        kept = json.loads(opened)
        return kept["nonce"], kept["kept"]

    def _not_accepted(self) -> str:
        return _("{issuer}’s answer couldn’t be verified. Tell your admin.").format(issuer=self.name)

    def _out_of_reach(self, error: Unreachable) -> SignInRefusedError:
        log.warning("sign_in_out_of_reach", by=self.name, cause=str(error))
        return SignInRefusedError("service", _("Can’t reach {issuer}. Try again.").format(issuer=self.name))
