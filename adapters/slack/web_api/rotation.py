"""Tokens of installations, renewed ahead of their expiry (Slack: a rotating token lives twelve hours)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import aiohttp
import structlog
from slack_sdk.errors import SlackTokenRotationError
from slack_sdk.oauth.installation_store import Bot, Installation
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator

from adapters.slack.api import ApiFailed
from adapters.slack.web_api.installing import InstallationRecords
from adapters.slack.web_api.remembered import Remembered, Shared
from adapters.slack.web_api.wire import Wire, refusal_of
from bot.clock import Clock, system_clock

log = structlog.get_logger(__name__)

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

_Key = tuple[str, str]
"""Workspace and organisation."""


class InstalledTokens:
    """`workspaces.Tokens` of the workspaces that have installed us. `close` in the end."""

    many = True

    def __init__(
        self,
        records: InstallationRecords,
        *,
        client_id: str,
        client_secret: str,
        api_url: str,
        allowed: Callable[[str, str], bool],
        clock: Clock = system_clock,
    ) -> None:
        """`allowed`: whether a workspace (empty: a whole organisation) of an organisation is served. What is kept of
        others stays kept and is not used, so that allowing them is enough to have them back."""
        self._records = records
        self._client_id = client_id
        self._client_secret = client_secret
        self._allowed = allowed
        self._wire = Wire(api_url)
        self._clock = clock
        self._known: Remembered[_Key, Installation | None] = Remembered(self._read, keep=inf)
        self._renewals: Shared[_Key, Installation] = Shared()
        self._not_before: dict[_Key, float] = {}

    async def token(self, team: str, enterprise: str) -> str | None:
        """The token for a workspace; `None`: it is not installed there.

        Raises `ApiFailed` when the token has expired and Slack gives no new one.
        """
        key = (team, enterprise)
        installation = await self._known.get(key)
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
        """Workspace and organisation of every installation that is served; the others are named in the log."""
        kept = await self._records.installed()
        served = [owner for owner in kept if self._allowed(*owner)]
        if left_out := sorted(team or enterprise for team, enterprise in set(kept) - set(served)):
            log.warning("slack_installations_not_served", teams=left_out, note="not in SLACK_INSTALL_TEAMS")
        return served

    def refused(self, team: str, token: str) -> None:
        """Perhaps the records know a newer one."""
        self.changed()

    def changed(self) -> None:
        """Somebody has installed us: what the records say counts from now on."""
        self._known.forget_all()

    async def forget(self, team: str, enterprise: str, before: float) -> None:
        """Delete what was installed before then."""
        await self._records.forget(team, enterprise, before)
        self.changed()

    async def close(self) -> None:
        """Finish what is under way: a token that Slack has renewed and we have not kept is lost."""
        await self._known.close()
        await self._renewals.finish()
        await self._wire.close()

    async def _read(self, key: _Key) -> Installation | None:
        installation = await self._records.latest(*key)
        if installation and self._allowed(installation.team_id or "", installation.enterprise_id or ""):
            return installation
        return None

    async def _renew(self, owner: _Key, old: Installation) -> Installation:
        """A new token for the old one, kept before anybody speaks with it."""
        installation = await self._records.latest(*owner)
        if installation is None:
            raise ApiFailed(_METHOD, "not_installed", permanent=True)
        if installation.bot_token == old.bot_token:
            try:
                bot = await self._exchange(installation.to_bot())
            except ApiFailed as failure:
                log.warning("slack_token_not_renewed", team=owner[0], enterprise=owner[1], error=failure.error)
                raise
            if await self._records.latest(*owner) is None:
                raise ApiFailed(_METHOD, "not_installed", permanent=True)  # uninstalled meanwhile: stays forgotten
            renewed = {name: getattr(bot, name) for name in _RENEWED}
            installation = Installation(**(installation.to_dict_for_copying() | renewed))
            await self._records.async_save(installation)
            log.info("slack_token_renewed", team=owner[0], enterprise=owner[1])
        self.changed()
        return installation

    async def _exchange(self, bot: Bot) -> Bot:
        """Slack takes a refresh token once only. Raises `ApiFailed`."""
        rotator = AsyncTokenRotator(
            client=self._wire.client, client_id=self._client_id, client_secret=self._client_secret
        )
        # Causes are not kept: they hold the request, and with it the tokens.
        try:
            renewed = await rotator.perform_bot_token_rotation(bot=bot, minutes_before_expiration=_ANY_TIME)
        except SlackTokenRotationError as error:
            raise refusal_of(_METHOD, error.api_error.response) from None
        except TimeoutError:
            raise ApiFailed(_METHOD, "timeout", may_have_acted=True) from None
        except aiohttp.ClientError:
            raise ApiFailed(_METHOD, "connection", may_have_acted=True) from None
        if renewed is None:
            raise ApiFailed(_METHOD, "bad_answer", may_have_acted=True)
        return renewed
