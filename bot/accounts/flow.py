"""Signing in, from a link in chat to a connected account, in requests of a browser between which we may restart.

Who opens a link is not known by having it: an attacker may send theirs to a colleague, and would get the colleague's
account. So either the browser proves whose it is in chat before anything is connected, or what was granted stays
inactive until its owner has told the bot the code that only the browser in which it was granted shows. A session of the
chat page proves who somebody of that page is; a browser without one (that of somebody for whom a program acts) shows a
code. A cookie holds all steps in one browser. What goes wrong changes nothing.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import structlog

from bot.accounts.codes import CODE_MINUTES, new_code
from bot.accounts.connections import ConnectionWriter, account_label
from bot.accounts.only_once import OnlyOnce, ProcessEnds
from bot.accounts.ports import Account, BegunAuthorization, Denied, GrantRefused, OutsideServices, Proofs, Unreachable
from bot.accounts.sign_ins import HOUR, callback
from bot.accounts.tokens import GrantedAccount, Safe
from bot.crypto import hashed, random_token
from bot.domain import Clock
from bot.limits import Beginnings, Window
from bot.platform import Platform
from bot.records import authorizations, threads
from bot.records.authorizations import AuthorizationRow, AuthorizationStep
from bot.records.database import Database, Transaction, locking_as_found, written_at_last
from bot.records.locks import UNLOCKED, person_lock, return_name
from translations import gettext as _
from translations import marked as N_  # noqa: N812 - as gettext's readers look for it

log = structlog.get_logger(__name__)
DoneT = TypeVar("DoneT")
SIGN_IN_RETURN_SECONDS = 900.0
"""How long the browser may take to come back from a service."""
MOST_BEGUN_AN_HOUR = 10
"""Sign-ins that one link may begin within `HOUR`: each of them costs requests to a service."""
WEB = "web"
"""Platform of the people whose chat is a page of ours: its session proves who they are."""
PAGE = "page"
"""Where somebody of the page proves who they are: there itself."""


@dataclass(frozen=True, slots=True)
class _Next:
    """Where a browser is sent on to."""

    step: AuthorizationStep
    begun: BegunAuthorization = field(repr=False)
    state: str = field(repr=False)
    browser: str = field(repr=False)
    """The cookie that it has to come back with."""
    connection: str = ""
    """Connection to whose address the browser comes back; empty: to the address of the proofs of identity."""
    nonce: str = field(default="", repr=False)
    proven: bool = False


class SignInFlow:
    """Answers the browsers' requests: what a link is for, going on from it, coming back.

    `address`: where browsers reach us (scheme, host and port).
    """

    def __init__(
        self,
        database: Database,
        connecting: ConnectionWriter,
        safe: Safe,
        clock: Clock,
        *,
        services: OutsideServices,
        proofs: Proofs,
        address: Callable[[], str],
        platforms: Mapping[str, Platform],
        beginnings: Beginnings,
    ) -> None:
        self._database = database
        self._connecting = connecting
        self._safe = safe
        self._clock = clock
        self._services = services
        self._proofs = proofs
        self._address = address
        self._platforms = platforms
        self._beginnings = beginnings
        self._coming_back: set[str] = set()
        self._once = OnlyOnce()

    @property
    def is_asking(self) -> bool:
        """Whether a service was asked about somebody who came back from it, and they wait for the answer."""
        return self._once.is_asking

    async def close(self) -> None:
        """Wait for services that were asked: a code can be redeemed once only. Whoever comes back from now on may do so
        again elsewhere, or after the next start."""
        await self._once.end()

    # ------------------------------------------------------------------------------------------- the link

    async def offered(self, token: str, *, visitor: str | None = None) -> Offer | FlowProblem:
        """What a link is for; `visitor` as below. Changes nothing."""
        way = await self._way_of_link(token)
        if isinstance(way, FlowProblem):
            return way
        service = self._services.service(way.connection)
        if service is None:
            return NOT_CONFIGURED
        async with self._database.reading() as tx:
            name = (await threads.names(tx, [way.person_id]))[way.person_id]
        proof = self._proofs.provider(way.person_id) or ""
        if _platform(way) == WEB:
            proof = PAGE if visitor is not None else ""
        return Offer(service.label, name, _platform_name(way), service.scopes, proof)

    async def start(self, token: str, *, visitor: str | None, cookie: str | None) -> GoTo | FlowProblem:
        """Go on from the page of a link. `visitor`: the person id that the chat page's session proves; `cookie`: what
        an earlier answer of ours bound the browser with."""
        way = await self._way_of_link(token)
        if isinstance(way, FlowProblem):
            return way
        if way.browser_hash is not None and (cookie is None or hashed(cookie) != way.browser_hash):
            return OTHER_BROWSER
        if _platform(way) == WEB and visitor not in (None, way.person_id):
            return NOT_YOUR_PAGE
        begun = Window(f"sign-ins:{way.authorization_id}", MOST_BEGUN_AN_HOUR, HOUR)
        if await self._beginnings.count(random_token(), [begun]):
            return TOO_OFTEN
        browser = cookie if cookie is not None and _OURS.fullmatch(cookie) else random_token()
        if _platform(way) != WEB and self._proofs.provider(way.person_id) is not None:
            return await self._begin_proof(way, browser)
        return await self._begin_consent(way, browser, proven=_platform(way) == WEB and visitor is not None)

    async def _way_of_link(self, token: str) -> AuthorizationRow | FlowProblem:
        async with self._database.reading() as tx:
            way = await authorizations.with_link(tx, hashed(token))
        if way is None:
            return UNKNOWN_LINK
        if way.status != "open":
            return USED
        if way.link_until is None or self._clock() >= way.link_until:
            return OLD_LINK
        return way

    async def _begin_proof(self, way: AuthorizationRow, browser: str) -> GoTo | FlowProblem:
        state, nonce = random_token(), random_token()
        try:
            begun = await self._proofs.begin(
                way.person_id, state=state, nonce=nonce, redirect_uri=callback(self._address())
            )
        except Unreachable as cause:
            return _unavailable(way, "proof", cause)
        return await self._sent_on(way, _Next("proof", begun, state, browser, nonce=nonce))

    async def _begin_consent(self, way: AuthorizationRow, browser: str, *, proven: bool) -> GoTo | FlowProblem:
        state = random_token()
        try:
            begun = await self._services.begin(
                way.connection,
                state=state,
                redirect_uri=callback(self._address(), way.connection),
                challenge=way.challenge,
            )
        except (Unreachable, GrantRefused) as cause:
            return _unavailable(way, "consent", cause)
        return await self._sent_on(way, _Next("consent", begun, state, browser, way.connection, proven=proven))

    async def _sent_on(self, way: AuthorizationRow, to: _Next) -> GoTo | FlowProblem:
        kept = {"kept": dict(to.begun.kept), "nonce": to.nonce, "connection": to.connection}
        async with self._database.writing_urgently(UNLOCKED) as tx:  # if nobody has gone on from it since
            changed = await authorizations.change(
                tx,
                way,
                browser_hash=hashed(to.browser),
                step=to.step,
                state_hash=hashed(to.state),
                sealed_step=self._safe.put(way.person_id, way.connection, kept),
                step_until=self._clock() + SIGN_IN_RETURN_SECONDS,
                proven=to.proven,
            )
        return GoTo(to.begun.url, to.browser) if changed else OVERTAKEN

    # ------------------------------------------------------------------------------------------- coming back

    async def back(
        self, query: Mapping[str, str], *, cookie: str | None, connection: str = ""
    ) -> GoTo | Connected | ShowCode | FlowProblem:
        """A service sends the browser back. What it brings counts once, in the browser that was sent there, and at the
        address of the connection that it was sent away for. `connection`: the one whose address it came back to; empty:
        the address without one."""
        try:
            return await self._once.seen_through(self._back(query, cookie, connection), "sign-in")
        except ProcessEnds:
            return BEING_RESTARTED

    async def _back(
        self, query: Mapping[str, str], cookie: str | None, connection: str
    ) -> GoTo | Connected | ShowCode | FlowProblem:
        state_hash = hashed(query.get("state", ""))
        if state_hash in self._coming_back:
            return USED
        self._coming_back.add(state_hash)
        try:
            # What anybody can send keeps nobody waiting: only who was sent away can be alone with it.
            async with self._database.reading() as tx:
                way = await authorizations.with_state(tx, state_hash)
            wrong = self._wrong(way, cookie)
            if way is None or wrong is not None:
                return wrong or UNKNOWN_STATE
            async with self._database.alone(return_name(state_hash), way.connection):
                return await self._came_back(query, state_hash, cookie=cookie, connection=connection)
        finally:
            self._coming_back.discard(state_hash)

    async def _came_back(
        self, query: Mapping[str, str], state_hash: str, *, cookie: str | None, connection: str
    ) -> GoTo | Connected | ShowCode | FlowProblem:
        async with self._database.reading() as tx:
            way = await authorizations.with_state(tx, state_hash)
        wrong = self._wrong(way, cookie)
        if way is None or cookie is None or wrong is not None:
            return wrong or UNKNOWN_STATE
        kept = self._safe.take(way.person_id, way.connection, way.sealed_step)
        if kept is None:
            return OLD_STEP
        # Steps that an earlier release began, which had one address for all, come back to that one.
        if not hmac.compare_digest(str(kept.get("connection", "")).encode(), connection.encode()):
            log.warning("sign_in_at_another_address", connection=way.connection, address=connection, step=way.step)
            return OTHER_ADDRESS_OF_OURS
        if "error" in query:
            return self._refused(way, query["error"])
        if not query.get("code"):
            return SERVICE_REFUSED
        if way.step == "proof":
            return await self._proof_given(way, kept, query["code"], cookie)
        return await self._consent_given(way, kept, query["code"], query.get("iss"))

    def _wrong(self, way: AuthorizationRow | None, cookie: str | None) -> FlowProblem | None:
        """Why this answer does not count, before anything is asked of anybody."""
        if way is None:
            return UNKNOWN_STATE
        if cookie is None or hashed(cookie) != way.browser_hash:
            return OTHER_BROWSER
        if way.status != "open" or way.step not in ("proof", "consent"):
            return USED
        if way.step_until is None or self._clock() >= way.step_until:
            return OLD_STEP
        return None

    def _refused(self, way: AuthorizationRow, error: str) -> FlowProblem:
        log.info("sign_in_not_granted", connection=way.connection, step=way.step)
        return DENIED if error in _NO else SERVICE_REFUSED

    async def _proof_given(
        self, way: AuthorizationRow, kept: Mapping[str, Any], code: str, browser: str
    ) -> GoTo | FlowProblem:
        self._once.asks()
        try:
            person_id = await self._proofs.finish(kept["kept"], code, nonce=kept["nonce"])
        except (Unreachable, GrantRefused, Denied) as cause:
            return _unavailable(way, "proof", cause)
        if person_id != way.person_id:
            log.warning("sign_in_link_of_somebody_else", connection=way.connection)
            return SOMEBODY_ELSE
        return await self._begin_consent(way, browser, proven=True)

    async def _consent_given(
        self, way: AuthorizationRow, kept: Mapping[str, Any], code: str, issuer: str | None
    ) -> Connected | ShowCode | FlowProblem:
        self._once.asks()
        try:
            tokens = await self._services.finish(way.connection, kept["kept"], code, issuer=issuer)
            account = await self._services.account(way.connection, tokens)
        except (Unreachable, GrantRefused, Denied) as cause:
            return _unavailable(way, "consent", cause)
        grant = GrantedAccount(tokens, account)
        if way.proven:
            return await self._connected(way, grant)
        if await self._has_another_address(way, account):
            log.warning("sign_in_with_another_address", connection=way.connection)
            return OTHER_ADDRESS
        return await self._wants_code(way, grant)

    async def _connected(self, way: AuthorizationRow, grant: GrantedAccount) -> Connected | FlowProblem:

        async def connected(tx: Transaction) -> tuple[str, bool] | None:
            goes_on = False
            if await authorizations.finish(tx, way, key=way.state_hash, now=self._clock()):
                goes_on = await self._connecting.connect(tx, way, grant)
            elif not await authorizations.is_as(tx, way, settled_key=way.state_hash):
                return None
            return (await threads.names(tx, [way.person_id]))[way.person_id], goes_on

        done = await self._written(way, connected)
        if done is None:
            return OVERTAKEN
        log.info("account_connected", connection=way.connection)
        name, goes_on = done
        service = self._connecting.label(way.connection)
        return Connected(service, account_label(grant), name, _platform_name(way), goes_on=goes_on)

    async def _has_another_address(self, way: AuthorizationRow, account: Account) -> bool:
        """Whether the account is somebody else's, going by the address that its service vouches for. Nobody vouches for
        an address of many people of the page: then there is nothing to compare."""
        if account.verified_email is None:
            return False
        email = await self._email_of(way.person_id)
        return account.verified_email.lower() != email and (email is not None or _platform(way) != WEB)

    async def _email_of(self, person_id: str) -> str | None:
        """The address that a person's own platform vouches for, in lower case. Asked now: it may change hands."""
        platform = self._platforms.get(person_id.partition(":")[0])
        email = (await platform.account_of(person_id)).email if platform is not None else ""
        return email.strip().lower() or None

    async def _wants_code(self, way: AuthorizationRow, grant: GrantedAccount) -> ShowCode | FlowProblem:
        code = new_code()
        sealed = self._safe.put(way.person_id, way.connection, {"code": code})

        async def waits(tx: Transaction) -> bool:
            changed = await authorizations.change(
                tx,
                way,
                step="code",
                sealed_step=None,
                sealed_grant=self._safe.put_grant(way.person_id, way.connection, grant),
                sealed_code=sealed,
                code_until=self._clock() + CODE_MINUTES * 60,
                code_tries=0,
                code_key=None,
            )
            if changed:
                await self._connecting.show_waiting(tx, way)
            return changed or await authorizations.is_as(tx, way, sealed_code=sealed)

        if not await self._written(way, waits):
            return OVERTAKEN
        service, in_chat = self._connecting.label(way.connection), _platform(way) != WEB
        return ShowCode(service, account_label(grant), code, CODE_MINUTES, in_chat=in_chat)

    async def _written(self, way: AuthorizationRow, work: Callable[[Transaction], Awaitable[DoneT]]) -> DoneT:
        """What came of a code, which can be redeemed once only. `work` may be done twice, and finds that it was."""
        whose = person_lock(way.person_id)
        return await written_at_last(lambda: locking_as_found(self._database.writing_urgently, work, whose))


_OURS = re.compile(r"[A-Za-z0-9_-]{43}")
"""A cookie as we make them, which serves all sign-ins of a browser."""
_NO = frozenset({"access_denied", "consent_required", "interaction_required", "login_required"})
"""OAuth's and OpenID Connect's words for a no, or for a person who went away."""


def _platform(way: AuthorizationRow) -> str:
    return way.person_id.partition(":")[0]


def _platform_name(way: AuthorizationRow) -> str:
    names = {"slack": "Slack", "teams": "Microsoft Teams", WEB: _("the chat page")}
    return names.get(_platform(way), _platform(way))


def _unavailable(way: AuthorizationRow, step: AuthorizationStep, cause: Exception) -> FlowProblem:
    """The cause is for the log alone: its text is ours or an adapter's, and holds no secret."""
    log.warning("sign_in_failed", connection=way.connection, step=step, kind=type(cause).__name__, cause=str(cause))
    match cause:
        case Denied():
            return DENIED
        case GrantRefused():
            return SERVICE_REFUSED
        case _:
            return SERVICE_AWAY


# ---------------------------------------------------------------------------------------------- pages
# What the browser is told during a sign-in; the routes (`adapters/oauth`) render it.


@dataclass(frozen=True, slots=True)
class Offer:
    """A link that can be used: what it is for. Asking has no effect, since previews fetch links."""

    service: str
    person: str
    """Name of the person whom the account will be connected to."""
    platform: str
    scopes: tuple[str, ...]
    proof: str
    """Where the person has to prove who they are first ("Slack", "Microsoft", or `PAGE`); empty: by a code in the
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
    goes_on: bool = True
    """Whether something has waited for it."""


@dataclass(frozen=True, slots=True)
class ShowCode:
    """The account will be connected when its owner tells the bot this code."""

    service: str
    account: str
    code: str = field(repr=False)
    minutes: int = 10
    in_chat: bool = True
    """Whether the link came in a chat; else on the page, or from a program."""


@dataclass(frozen=True, slots=True)
class FlowProblem:
    """Nothing was connected, and nothing changed."""

    kind: Literal["unknown", "used", "expired", "foreign", "denied", "service"]
    """`unknown` links do not exist; `foreign`: another browser or another person than the link is for; `service`: the
    service could not be asked or refused."""
    sentence: str
    """Why, and what to do, in English; safe to show to anybody."""


# -------------------------------------------------------------------------- why nothing was connected
# The words tell nothing about anybody else. They are translated where they are shown.


UNKNOWN_LINK = FlowProblem("unknown", N_("This link doesn’t exist or was replaced. Ask the bot for a new link."))
UNKNOWN_STATE = FlowProblem("unknown", N_("This sign-in is no longer open. Ask the bot for a new link."))
USED = FlowProblem("used", N_("This was already used. If your account isn’t connected, ask the bot for a new link."))
OVERTAKEN = FlowProblem(
    "used", N_("This sign-in was restarted or finished somewhere else. If needed, ask the bot for a new link.")
)
OLD_LINK = FlowProblem("expired", N_("Ask the bot for a new link."))
OLD_STEP = FlowProblem("expired", N_("This took too long. Ask the bot for a new link."))
OTHER_BROWSER = FlowProblem(
    "foreign", N_("This sign-in was started in another browser. Continue there, or ask the bot for a new link.")
)
NOT_YOUR_PAGE = FlowProblem(
    "foreign",
    N_(
        "This link is for someone other than who is signed in here. If it’s yours, sign in to the page as yourself "
        "first. If someone sent it to you, stop: it would connect your account to theirs."
    ),
)
SOMEBODY_ELSE = FlowProblem(
    "foreign",
    N_("This link is for someone else. If it was sent to you, stop: it would connect your account to theirs."),
)
OTHER_ADDRESS = FlowProblem(
    "foreign",
    N_(
        "That account has a different email address than the person this link is for, so it wasn’t connected. If the "
        "link is yours, choose the account with your work chat’s email address."
    ),
)
OTHER_ADDRESS_OF_OURS = FlowProblem(
    "foreign",
    N_(
        "The answer came from a different service than the one you were sent to, so nothing was connected. One of them "
        "may be trying to take over your account: tell your admin. Then ask the bot for a new link."
    ),
)
DENIED = FlowProblem("denied", N_("You declined. If you change your mind, ask the bot for a new link."))
SERVICE_REFUSED = FlowProblem(
    "service", N_("The service didn’t accept this sign-in, so nothing was connected. Ask the bot for a new link.")
)
SERVICE_AWAY = FlowProblem("service", N_("Can’t reach the service. Try again in a few minutes."))
BEING_RESTARTED = FlowProblem("service", N_("Countersign is restarting. Reload this page in a moment."))
NOT_CONFIGURED = FlowProblem("service", N_("This service is no longer set up. Tell your admin."))
TOO_OFTEN = FlowProblem("service", N_("Too many tries. Wait a few minutes, then try again."))
