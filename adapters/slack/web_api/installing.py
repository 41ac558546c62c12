"""Installations into many workspaces, beside the records: their tokens, sealed and renewed, and the pages."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from html import escape
from math import inf
from time import monotonic
from typing import Any
from urllib.parse import urljoin

import aiohttp
import sqlalchemy as sa
import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.errors import SlackTokenRotationError
from slack_sdk.oauth import OAuthStateUtils
from slack_sdk.oauth.installation_store import Bot, Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore
from slack_sdk.oauth.installation_store.sqlalchemy import AsyncSQLAlchemyInstallationStore, SQLAlchemyInstallationStore
from slack_sdk.oauth.state_store.async_state_store import AsyncOAuthStateStore
from slack_sdk.oauth.state_store.sqlalchemy import AsyncSQLAlchemyOAuthStateStore, SQLAlchemyOAuthStateStore
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from adapters.shared.caches import Remembered, Shared
from adapters.shared.calls import CallFailed
from adapters.shared.http import failing
from adapters.shared.outages import AWAY, RefusedInOwnForm
from adapters.slack.config import SCOPES, SlackConfig
from adapters.slack.web_api.client import QUIET, REQUEST_SECONDS, USED_UP, SlackHttpClient, refusal_of
from bot.accounts.only_once import OnlyOnce, ProcessEnds
from bot.crypto import Sealer
from bot.domain import Clock, system_clock
from bot.records.addresses import sqlite_file
from bot.records.database import KEPT_OR_LOST_SECONDS, insert_for, is_outage, written_at_last
from translations import choose, in_language, language
from translations import gettext as _

log = structlog.get_logger(__name__)
STATE_SECONDS = 600
"""How long an install may take, from our page to Slack's and back."""
_BUSY_MS = 10_000
"""Milliseconds to wait while something else is written into the file."""
SECRETS = ("bot_token", "bot_refresh_token", "user_token", "user_refresh_token", "incoming_webhook_url")
"""What an installation holds that must not lie open in the database."""
_METADATA = sa.MetaData()
_MEMBERS = sa.Table(
    "slack_organisation_teams",
    _METADATA,
    sa.Column("team_id", sa.String(32), primary_key=True),
    sa.Column("enterprise_id", sa.String(32), nullable=False),
)
"""Workspaces that we serve through an installation of their whole organisation: what we post there names the
workspace only."""
AHEAD = 2 * 3600.0
"""Seconds before its expiry from which on a token is renewed, in the background."""
_TOO_LATE = 60.0
"""Seconds before its expiry from which on nobody speaks with a token any more: they wait for the new one."""
_AGAIN_AFTER = 60.0
"""Seconds between two tries to renew a token that is still good."""
_ANY_TIME = 10**6
"""Minutes before the expiry, for the SDK: it is to renew when we say so."""
_RENEWED = ("bot_token", "bot_refresh_token", "bot_token_expires_at")
_METHOD = "oauth.v2.access"
_CONNECTIONS = 4
"""To PostgreSQL at once, for all that is kept here."""
_KNOWN_SECONDS = 60.0
"""How long a process may go on with what it has read, where another one may have installed or uninstalled since. A
token that Slack refuses is read anew at once."""
_RENEWALS_AT_ONCE = 2
"""In this process: each keeps a connection for its lock, and needs another."""
_FROZEN_SECONDS = 15
"""After which PostgreSQL lets go of the lock of a process that does not go on: longer than Slack may take."""
_LOCK_SECONDS = 20
"""How long a renewal waits for one in another process: until that one is done, or is known not to go on."""
_KEPT_SECONDS = 3.0
"""How long the new token of another process is waited for, which has used the refresh token up, before whoever needs it
has to come again."""
_LOST_AFTER = KEPT_OR_LOST_SECONDS + REQUEST_SECONDS
"""Seconds since Slack first refused a refresh token as used up, after which it is known to be lost: by then another
process that had exchanged it has kept what it got, or has given that up."""
_MAKING_TABLES = 6_723_941_210
"""Number of PostgreSQL's advisory lock around the making of tables."""
_Key = tuple[str, str]
"""Workspace and organisation."""


class NotAllowedError(Exception):
    """A workspace may not install the app."""

    def __init__(self, installation: Installation) -> None:
        super().__init__()
        self.installation = installation


class Installations(AsyncInstallationStore):
    """The workspaces that have installed us, with tokens that are renewed ahead of their expiry. Bolt's OAuth flow
    keeps them here; the methods for tokens are those of `OneToken`. `open` before use, `close` in the end.

    What is kept of workspaces that may not install the app (any more) stays kept and is not used, so that allowing them
    is enough to have them back.
    """

    many = True

    def __init__(
        self,
        address: str,
        config: SlackConfig,
        sealer: Sealer,
        *,
        state_seconds: int = STATE_SECONDS,
        clock: Clock = system_clock,
    ) -> None:
        """`address`: of the records, beside which this is kept. `config` has a client id and a secret."""
        self._config = config
        self._client_id = config.client_id or ""
        self._sealer = sealer
        self._clock = clock
        self.http = SlackHttpClient(config.api_url)
        keep = inf if sqlite_file(address) is not None else _KNOWN_SECONDS
        self._known: Remembered[_Key, Installation | None] = Remembered(keep=keep, clock=clock)
        self._renewals: Shared[_Key, Installation] = Shared()
        self.once = OnlyOnce()
        """Renewals, and installs that come back from Slack."""
        self._not_before: dict[_Key, float] = {}
        self._used_up_since: dict[_Key, tuple[str | None, float]] = {}
        """Whose refresh token Slack refused as used up: the token beside it, and since when."""
        self._engine = _engine(address)
        self._at_once = asyncio.Semaphore(_RENEWALS_AT_ONCE)
        self._store = AsyncSQLAlchemyInstallationStore(self._client_id, self._engine, logger=QUIET)
        self._states = AsyncSQLAlchemyOAuthStateStore(state_seconds, self._engine, logger=QUIET)
        self.states: AsyncOAuthStateStore = _TidyStates(self._states, clock)
        _widen(self._store.installations, self._store.bots)

    async def open(self) -> None:
        """Make the tables that are missing; what an older key has sealed is sealed with the first."""
        async with self._engine.begin() as connection:
            if not self._is_sqlite:  # of two that make them at the same time, one would fail
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING_TABLES)))
            for metadata in (self._store.metadata, self._states.metadata, _METADATA):
                await connection.run_sync(metadata.create_all)
        for table in (self._store.installations, self._store.bots):
            await self._reseal(table, [name for name in SECRETS if name in table.c])

    @property
    def is_asking(self) -> bool:
        """Whether Slack was asked for a token that is not kept yet: for a new one, or by an install."""
        return self.once.is_asking

    async def close(self) -> None:
        """Finish what Slack was asked for: a token that it has renewed and we have not kept is lost, and the code of an
        install is used up."""
        await self._known.close()
        await self.once.end()
        await self._renewals.finish()
        await self.http.close()
        await self._engine.dispose()

    async def async_save(self, installation: Installation) -> None:
        """Keep a new installation; one of the same moment is replaced. Raises `NotAllowedError`, and keeps nothing."""
        team = "" if installation.is_enterprise_install else installation.team_id or ""
        if not self._config.may_install(team, installation.enterprise_id or ""):
            raise NotAllowedError(installation)
        await self._save(installation)

    async def token(self, team: str, enterprise: str) -> str | None:
        """The token for a workspace; `None`: it is not installed there.

        Raises `CallFailed` when the token has expired and Slack gives no new one.
        """
        key = (team, enterprise)
        installation = await self._known.get(key, self._read)
        if installation is None:
            self._known.forget(key)
            return None
        # One workspace may be asked for with and without its organisation: it is still one token to renew.
        owner = (installation.team_id or "", installation.enterprise_id or "")
        left = (installation.bot_token_expires_at or inf) - self._clock()
        if left < _TOO_LATE:
            return (await self._renewals.ask(owner, lambda: self._renew(owner, installation))).bot_token
        if left < AHEAD and self._clock() >= self._not_before.get(owner, 0.0):
            self._not_before[owner] = self._clock() + _AGAIN_AFTER
            self._renewals.start(owner, lambda: self._renew(owner, installation))
        return installation.bot_token

    async def installed(self) -> Sequence[tuple[str, str]]:
        """Workspace and organisation of every installation that is served; no workspace where it is the whole
        organisation's. The others are named in the log."""
        columns = (self._table.c.team_id, self._table.c.enterprise_id)
        query = sa.select(*columns).where(self._table.c.client_id == self._client_id).group_by(*columns)
        async with self._engine.connect() as connection:
            kept = [(team or "", enterprise or "") for team, enterprise in await connection.execute(query)]
        served = [owner for owner in kept if self._config.may_install(*owner)]
        if left_out := sorted(team or enterprise for team, enterprise in set(kept) - set(served)):
            log.warning("slack_installations_not_served", teams=left_out, note="not in SLACK_INSTALL_TEAMS")
        return served

    def refused(self, team: str, token: str) -> None:
        """Perhaps the records know a newer one."""
        self._forget_known()

    async def forget(self, team: str, enterprise: str, before: float) -> None:
        """Delete what was installed before that time (epoch seconds) for a workspace, or else for its organisation.

        What was installed later stays: Slack may tell us of an uninstall again minutes later.
        """
        own = bool(team) and await self._delete(lambda table: table.c.team_id == team, before)
        if not own and enterprise:
            await self._delete(lambda table: (table.c.enterprise_id == enterprise) & table.c.team_id.is_(None), before)
        self._forget_known()

    async def _read(self, key: _Key) -> Installation | None:
        found = await self._latest(*key)
        if found is None:
            return None
        _, installation = found
        may = self._config.may_install(installation.team_id or "", installation.enterprise_id or "")
        return installation if may else None

    async def _renew(self, owner: _Key, old: Installation) -> Installation:
        """A new token for the old one, kept before anybody speaks with it; or the newer one that is kept already."""
        try:
            return await self.once.seen_through(self._renew_alone(owner, old), "slack token")
        except ProcessEnds:
            raise CallFailed(_METHOD, "process_ends") from None

    async def _renew_alone(self, owner: _Key, old: Installation) -> Installation:
        async with self._renewing(owner):
            return await self._renewed(owner, old)

    @asynccontextmanager
    async def _renewing(self, owner: _Key) -> AsyncIterator[None]:
        """Nobody else renews this token within it, in whatever process: Slack takes a refresh token once only.

        What is renewed is kept in a transaction of its own: a token must not be lost because the lock was.
        """
        if self._is_sqlite:  # there is no other process, and `_renewals` knows what is under way in this one
            yield
            return
        name = f"slack {self._client_id} {' '.join(owner)}"
        async with self._at_once, self._engine.connect() as connection:
            await connection.execute(sa.text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
            limit = f"SET LOCAL idle_in_transaction_session_timeout = '{_FROZEN_SECONDS}s'"
            await connection.execute(sa.text(limit))
            try:
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))
            except sa.exc.OperationalError:
                raise CallFailed(_METHOD, "renewed_elsewhere") from None
            try:
                yield
            finally:
                with suppress(sa.exc.DBAPIError):  # PostgreSQL let go of it before: what was done within it is done
                    await connection.rollback()

    async def _renewed(self, owner: _Key, old: Installation) -> Installation:
        found = await self._latest(*owner)
        if found is None:
            raise CallFailed(_METHOD, "not_installed", permanent=True)
        row_id, installation = found
        if installation.bot_token == old.bot_token:
            self.once.asks()
            try:
                bot = await self._exchange(installation.to_bot())
            except CallFailed as failure:
                used_up = failure.error == USED_UP
                if used_up and (kept := await self._kept_since(owner, old)) is not None:
                    return kept
                log.warning("slack_token_not_renewed", team=owner[0], enterprise=owner[1], error=failure.error)
                if used_up and not self._is_lost(owner, installation):
                    raise CallFailed(_METHOD, USED_UP) from None
                raise
            renewed = {name: getattr(bot, name) for name in _RENEWED}
            installation = Installation(**(installation.to_dict_for_copying() | renewed))
            if not await written_at_last(partial(self._keep_renewed, row_id, installation)):
                raise CallFailed(_METHOD, "not_installed", permanent=True)  # uninstalled meanwhile: stays forgotten
            log.info("slack_token_renewed", team=owner[0], enterprise=owner[1])
        self._forget_known()
        return installation

    async def _kept_since(self, owner: _Key, old: Installation) -> Installation | None:
        """The newer token of another process that lost its lock when it had exchanged this one, and may be about to
        keep what it got."""
        until = monotonic() + _KEPT_SECONDS
        while monotonic() < until:
            found = await self._latest(*owner)
            if found is not None and found[1].bot_token != old.bot_token:
                self._forget_known()
                return found[1]
            await asyncio.sleep(_KEPT_SECONDS / 20)
        return None

    def _is_lost(self, owner: _Key, installation: Installation) -> bool:
        """Whether nobody is going to keep what a refresh token that is used up was exchanged for."""
        if self._is_sqlite:
            return True  # there is no other process
        now, known = self._clock(), self._used_up_since.get(owner)
        if known is None or known[0] != installation.bot_token:
            known = self._used_up_since[owner] = installation.bot_token, now
        return now - known[1] >= _LOST_AFTER

    async def _exchange(self, bot: Bot) -> Bot:
        """Slack takes a refresh token once only. Raises `CallFailed`."""
        rotator = AsyncTokenRotator(
            client=self.http.client, client_id=self._client_id, client_secret=self._config.client_secret or ""
        )
        # Causes are not kept: they hold the request, and with it the tokens.
        try:
            with failing(_METHOD):
                renewed = await rotator.perform_bot_token_rotation(bot=bot, minutes_before_expiration=_ANY_TIME)
        except SlackTokenRotationError as error:
            raise refusal_of(_METHOD, error.api_error.response) from None
        if renewed is None:
            raise CallFailed(_METHOD, "bad_answer", may_have_acted=True)
        return renewed

    # ------------------------------------------------------------------------------------------- the records

    async def _save(self, installation: Installation) -> None:
        await self._store.async_save(_with_secrets(installation, self._sealer.seal))
        self._forget_known()

    def _forget_known(self) -> None:
        """What the records say counts from now on."""
        self._known.forget_where(lambda _key: True)

    async def _keep_renewed(self, row_id: int, installation: Installation) -> bool:
        """Keep the new token of an installation; false when that has been deleted."""
        sealed = _with_secrets(installation, self._sealer.seal)
        expiry = sealed.bot_token_expires_at
        values = {name: getattr(sealed, name) for name in _RENEWED}
        values["bot_token_expires_at"] = None if expiry is None else _moment(expiry)
        rows, bots = self._table, self._store.bots
        async with self._engine.begin() as connection:
            change = sa.update(rows).where(rows.c.id == row_id).values(values)
            kept = (await connection.execute(change.returning(rows.c.installed_at))).first()
            if kept is not None:
                same = (
                    bots.c.client_id == self._client_id,
                    bots.c.team_id.is_not_distinct_from(installation.team_id),
                    bots.c.enterprise_id.is_not_distinct_from(installation.enterprise_id),
                    bots.c.installed_at == kept.installed_at,
                )
                await connection.execute(sa.update(bots).where(*same).values(values))
        return kept is not None

    async def _latest(self, team: str, enterprise: str) -> tuple[int, Installation] | None:
        """The newest installation that speaks for a workspace, with its number: its own, else its organisation's."""
        own = await self._newest(self._table.c.team_id == team) if team else None
        if own is not None:
            return own
        enterprise = enterprise or await self._enterprise_of(team)
        if not enterprise:
            return None
        whole = await self._newest((self._table.c.enterprise_id == enterprise) & self._table.c.team_id.is_(None))
        if whole is not None and team:
            await self._note_member(team, enterprise)
        return whole

    @property
    def _table(self) -> sa.Table:
        return self._store.installations

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    async def _newest(self, condition: sa.ColumnElement[bool]) -> tuple[int, Installation] | None:
        table = self._table
        query = (
            sa.select(table)
            .where(condition, table.c.client_id == self._client_id, table.c.bot_token.is_not(None))
            .order_by(table.c.installed_at.desc(), table.c.id.desc())
            .limit(1)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).mappings().first()
        if row is None:
            return None
        installation = _with_secrets(SQLAlchemyInstallationStore.build_installation_entity(row), self._sealer.unseal)
        if installation.bot_token is None:
            log.error("slack_token_unreadable", team=installation.team_id, note="sealed with another ENCRYPTION_KEY")
            return None
        return row["id"], installation

    async def _delete(self, condition: Callable[[sa.Table], sa.ColumnElement[bool]], before: float) -> bool:
        found = False
        async with self._engine.begin() as connection:
            for table in (self._store.bots, self._store.installations):
                earlier = (table.c.client_id == self._client_id) & (table.c.installed_at <= _moment(before))
                gone = sa.delete(table).where(condition(table), earlier).returning(table.c.id)
                found = bool((await connection.execute(gone)).all()) or found
        return found

    async def _reseal(self, table: sa.Table, names: Sequence[str]) -> None:
        async with self._engine.connect() as connection:
            rows = (await connection.execute(sa.select(table.c.id, *(table.c[name] for name in names)))).mappings()
            found = [(row["id"], name, row[name]) for row in rows for name in names if row[name]]
        for row_id, name, sealed in found:
            if (fresh := self._sealer.renewed(sealed)) is not None:
                column = table.c[name]  # unless it was changed since
                same = sa.update(table).where(table.c.id == row_id, column == sealed)
                async with self._engine.begin() as connection:
                    await connection.execute(same.values({column: fresh}))

    async def _enterprise_of(self, team: str) -> str:
        query = sa.select(_MEMBERS.c.enterprise_id).where(_MEMBERS.c.team_id == team)
        async with self._engine.connect() as connection:
            return (await connection.execute(query)).scalar() or ""

    async def _note_member(self, team: str, enterprise: str) -> None:
        member = {"team_id": team, "enterprise_id": enterprise}
        insert = insert_for(self._engine.dialect.name, _MEMBERS).values(member)
        async with self._engine.begin() as connection:
            await connection.execute(insert.on_conflict_do_update(index_elements=[_MEMBERS.c.team_id], set_=member))


class _TidyStates(AsyncOAuthStateStore):
    """States of installs under way; those that have run out are deleted when another is issued."""

    def __init__(self, store: AsyncSQLAlchemyOAuthStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def async_issue(self, *args: Any, **kwargs: Any) -> str:
        states = self._store.oauth_states
        now = _moment(self._clock())
        async with self._store.engine.begin() as connection:
            await connection.execute(sa.delete(states).where(states.c.expire_at <= now))
        return await self._store.async_issue(*args, **kwargs)

    async def async_consume(self, state: str) -> bool:
        """Whether it was issued, lately, and this is the first time that it comes back. The SDK looks first and deletes
        then: two who come with one state at the same time would both be let in."""
        states = self._store.oauth_states
        now = _moment(self._clock())
        async with self._store.engine.begin() as connection:
            gone = sa.delete(states).where(states.c.state == state).returning(states.c.expire_at)
            return any(row.expire_at > now for row in await connection.execute(gone))


def _moment(seconds: float) -> datetime:
    """Returns a time as the SDK keeps it: in UTC, without a zone."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _with_secrets(installation: Installation, change: Callable[[str], str | None]) -> Installation:
    """A copy with every secret sealed, or unsealed."""
    values = installation.to_dict_for_copying()
    changed = {name: change(values[name]) for name in SECRETS if values[name]}
    return Installation(**(values | changed))


def installation_tables() -> Sequence[sa.Table]:
    """The tables of installations, for who copies them. What is sealed in them stays so."""
    metadata, store, states = sa.MetaData(), SQLAlchemyInstallationStore, SQLAlchemyOAuthStateStore
    tables = [
        store.build_installations_table(metadata, store.default_installations_table_name),
        store.build_bots_table(metadata, store.default_bots_table_name),
        states.build_oauth_states_table(metadata, states.default_table_name),
        _MEMBERS,
    ]
    _widen(*tables)
    return tables


def sealed_tokens(client_id: str) -> tuple[sa.ColumnElement[str], sa.ColumnElement[bool]]:
    """The column of the sealed tokens with which we speak, and of which rows it is needed: a workspace, or a whole
    organisation, is spoken for by its newest installation. `client_id`: of our app."""
    metadata, store = sa.MetaData(), SQLAlchemyInstallationStore
    rows = store.build_installations_table(metadata, store.default_installations_table_name)
    newer = rows.alias()
    is_ours = rows.c.client_id == client_id, rows.c.bot_token.is_not(None)
    is_replaced = sa.exists().where(
        newer.c.client_id == client_id,
        newer.c.bot_token.is_not(None),
        newer.c.team_id.is_not_distinct_from(rows.c.team_id),
        newer.c.enterprise_id.is_not_distinct_from(rows.c.enterprise_id),
        sa.tuple_(newer.c.installed_at, newer.c.id) > sa.tuple_(rows.c.installed_at, rows.c.id),
    )
    return rows.c.bot_token, sa.and_(*is_ours, sa.not_(is_replaced))


def _widen(*tables: sa.Table) -> None:
    """Secrets are longer, sealed, than the 200 characters that the SDK gives them; and PostgreSQL cuts no name off to
    what the SDK thinks is its length, but refuses it."""
    for table in tables:
        for column in table.columns:
            if isinstance(column.type, sa.String):
                column.type = sa.Text()


def _engine(address: str) -> AsyncEngine:
    path = sqlite_file(address)
    if path is None:
        from bot.records.postgresql import postgres_engine  # noqa: PLC0415  # 3 MB that SQLite has no use for

        # A connection that leads nowhere any more is noticed before a token is renewed that could not be kept.
        return postgres_engine(address, most_connections=_CONNECTIONS, pool_pre_ping=True)
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}",
        poolclass=NullPool,
        hide_parameters=True,  # tokens and states are not for error messages, which end up in logs
    )

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_MS}"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


# ------------- `/slack/install` and `/slack/oauth_redirect`: from "Add to Slack" to an installation

INSTALL = "/slack/install"
REDIRECT = "/slack/oauth_redirect"
_TEAM = re.compile(r"[TE][A-Z0-9]{1,30}")
_STYLE = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem}"
_STYLE_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FAILED_WITH = {
    "access_denied": 403,
    "invalid_code": 502,
    "unreachable": 502,
    "storage_error": 500,
    "away": 503,
    "process_ends": 503,
}
"""Statuses of the page, by what went wrong; of everything else 400."""
REVOKE_SECONDS = 5.0
"""What taking a token back may take: somebody waits for the page."""


class _SeenThrough(AsyncOAuthFlow):
    """The OAuth flow of Bolt, which says when it asks Slack for what a code is worth."""

    def __init__(self, *, once: OnlyOnce, **given: Any) -> None:
        super().__init__(**given)
        self._once = once

    async def run_installation(self, code: str) -> Installation | None:
        self._once.asks()
        return await super().run_installation(code)


class InstallPages:
    """The OAuth flow of Bolt with pages that say what happened, and nothing else."""

    def __init__(self, config: SlackConfig, installations: Installations) -> None:
        self._config = config
        self._installations = installations

    def routes(self) -> list[web.RouteDef]:
        """Returns the routes for the one aiohttp application. No HEAD: it would use the state up."""
        return [web.get(INSTALL, self.install, allow_head=False), web.get(REDIRECT, self.redirect, allow_head=False)]

    async def install(self, request: web.Request) -> web.Response:
        """Redirects to Slack, with a state that only this browser can come back with."""
        if not self._config.install_teams:
            with _in_language_of(request):
                return await to_aiohttp_response(_page(403, _("Countersign can’t be installed yet"), _closed()))
        team = request.query.get("team", "")
        # Bolt puts the query's team into the address as it is, so only what can be one is let through.
        query = {"team": team} if _TEAM.fullmatch(team) else {}
        asked = AsyncBoltRequest(body="", query=query, headers={})
        return await to_aiohttp_response(await self._flow().handle_installation(asked))

    async def redirect(self, request: web.Request) -> web.Response:
        """Back from Slack, with a code that is worth a token. Slack takes it once only: who has asked keeps what comes
        of it, also where the server waits for this request no longer."""
        returned = await to_bolt_request(request)
        with _in_language_of(request):
            try:
                answer = await self._installations.once.seen_through(self._came_back(returned), "slack install")
            except ProcessEnds:
                log.warning("slack_install_failed", reason="process_ends")
                answer = _failed("process_ends")
        return await to_aiohttp_response(answer)

    async def _came_back(self, returned: AsyncBoltRequest) -> BoltResponse:
        try:
            return await self._flow().handle_callback(returned)
        except ProcessEnds:
            raise
        except NotAllowedError as refused:
            return await self._turned_away(refused.installation)
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("slack_install_failed", reason="unreachable", error=type(error).__name__)
            return _failed("unreachable")
        except Exception as error:  # SDK: whoever installs gets a page whatever went wrong
            if is_outage(error):
                raise RefusedInOwnForm(await to_aiohttp_response(_failed("away"))) from error
            # Its name alone: the message and the traceback may hold the code or the token.
            log.error("slack_install_failed", reason="storage_error", error=type(error).__name__)  # noqa: TRY400
            return _failed("storage_error")

    def _flow(self) -> AsyncOAuthFlow:
        config = self._config
        settings = AsyncOAuthSettings(
            client_id=config.client_id,
            client_secret=config.client_secret,
            scopes=SCOPES,
            user_scopes=(),
            redirect_uri=config.public_url.rstrip("/") + REDIRECT if config.public_url else None,
            install_path=INSTALL,
            install_page_rendering_enabled=False,
            redirect_uri_path=REDIRECT,
            callback_options=AsyncCallbackOptions(success=self._succeeded, failure=_refused),
            authorization_url=urljoin(config.api_url, "/oauth/v2/authorize"),
            installation_store=self._installations,
            state_store=self._installations.states,
            state_expiration_seconds=STATE_SECONDS,
            logger=QUIET,
        )
        installations = self._installations
        return _SeenThrough(once=installations.once, client=installations.http.client, logger=QUIET, settings=settings)

    async def _turned_away(self, installation: Installation) -> BoltResponse:
        """Say so, and give back what Slack gave us: nobody is to have a token for a workspace that is not served."""
        where = {"team": installation.team_id, "enterprise": installation.enterprise_id}
        log.warning("slack_install_failed", reason="not_allowed", **where)
        for token in (installation.bot_token, installation.user_token):
            if not token:
                continue
            try:
                await self._installations.http.request("auth.revoke", {}, token=token, seconds=REVOKE_SECONDS)
            except CallFailed as failure:
                log.warning("slack_token_not_revoked", **where, error=failure.error)
        return _page(403, _("Nothing was installed"), not_allowed())

    async def _succeeded(self, done: AsyncSuccessArgs) -> BoltResponse:
        installation = done.installation
        log.info("slack_installed", team=installation.team_id, enterprise=installation.enterprise_id)
        where = escape(installation.team_name or installation.enterprise_name or _("your workspace"))
        return _page(
            200,
            _("Countersign is installed in {workspace}").format(workspace=where),
            _("You can close this page. In Slack, message Countersign, or add it to a channel with {command}.").format(
                command="<code>/invite</code>"
            ),
        )


async def _refused(failure: AsyncFailureArgs) -> BoltResponse:
    known = failure.reason if failure.reason in _sentences() else "refused"
    log.warning("slack_install_failed", reason=known)
    return _failed(failure.reason)


def _failed(reason: str) -> BoltResponse:
    sentence = _sentences().get(reason, _("Slack didn’t allow it."))
    again = f'<a href="{INSTALL}">{_("Try again")}</a>'
    return _page(_FAILED_WITH.get(reason, 400), _("Nothing was installed"), f"{sentence} {again}")


def _sentences() -> dict[str, str]:
    """What went wrong, by Bolt's word or ours for it."""
    return {
        "access_denied": _("You canceled in Slack."),
        "invalid_browser": _("You started in another browser, or too long ago."),
        "invalid_state": _("This link was already used or has expired."),
        "missing_code": _("Slack sent no code."),
        "invalid_code": _("Slack didn’t confirm the code."),
        "unreachable": _("Can’t reach Slack."),
        "storage_error": _("The installation couldn’t be saved."),
        "away": _(AWAY),
        "process_ends": _("Countersign is restarting."),
    }


def _closed() -> str:
    return _("No workspace may install it yet. List the workspaces that may in {setting}, then restart it.").format(
        setting="<code>SLACK_INSTALL_TEAMS</code>"
    )


def not_allowed() -> str:
    """Returns what somebody reads whose workspace is not served."""
    return _("This Countersign isn’t open to your workspace.")


def _in_language_of(request: web.Request) -> AbstractContextManager[None]:
    return in_language(choose(request.headers.get("Accept-Language")))


def _page(status: int, title: str, text: str) -> BoltResponse:
    body = (
        f'<!doctype html><html lang="{language()}"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1><p>{text}</p></html>"
    )
    state_used_up = OAuthStateUtils().build_set_cookie_for_deletion()
    return BoltResponse(status=status, body=body, headers={**_HEADERS, "Set-Cookie": [state_used_up]})
