"""Whether Microsoft lets us speak as this bot: found out at the start, and tried again while it cannot be reached."""

from __future__ import annotations

import asyncio

import structlog

from adapters.shared.calls import CallFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.tokens import ConnectorTokens
from bot.platform import NotConnected

log = structlog.get_logger(__name__)

START_SECONDS = 10.0
"""How long the start waits for Microsoft; after that it goes on without."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two tries to get a token."""

_WHAT_TO_DO = {
    "AADSTS7000215": "MICROSOFT_APP_PASSWORD is not a secret of this app. Copy the secret's value, not its id.",
    "AADSTS7000222": "MICROSOFT_APP_PASSWORD has expired. Make a new secret for the app in Entra.",
    "AADSTS700016": "MICROSOFT_APP_ID is not known in the tenant. Compare it, and MICROSOFT_APP_TENANT_ID, with Entra.",
    "AADSTS90002": "MICROSOFT_APP_TENANT_ID is not a tenant that Entra knows.",
    "AADSTS900023": "MICROSOFT_APP_TENANT_ID is not a tenant that Entra knows.",
    "identity_not_found": "This machine has no managed identity with the client id MICROSOFT_APP_ID.",
}
"""What Microsoft's codes mean for the operator."""
_OTHERWISE = (
    "Compare MICROSOFT_APP_ID, MICROSOFT_APP_PASSWORD, MICROSOFT_APP_TENANT_ID and MICROSOFT_APP_TYPE with Entra."
)


class TeamsConnectionCheck:
    """Says in the log that we are connected, or why not. `first_pause` is in seconds."""

    def __init__(self, config: TeamsConfig, tokens: ConnectorTokens, *, first_pause: float = FIRST_PAUSE) -> None:
        self._config = config
        self._tokens = tokens
        self._pause = first_pause
        self._trying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises `NotConnected` when Microsoft refuses us."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._connect()
        except (CallFailed, TimeoutError) as failure:
            log.warning("teams_unreachable", error=str(failure) or "timeout", note="trying again in the background")
            self._trying = asyncio.create_task(self._keep_trying(), name="teams connecting")

    async def close(self) -> None:
        """Give up."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)

    async def _connect(self) -> None:
        try:
            await self._tokens.token()
        except CallFailed as failure:
            if failure.permanent:
                raise NotConnected(_sentence(failure)) from failure
            raise
        config = self._config
        log.info("teams_connected", app_id=config.app_id or "(local)", tenants=sorted(config.allowed_tenants))

    async def _keep_trying(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            try:
                await self._connect()
            except NotConnected as refusal:
                log.error("teams_not_connected", reason=refusal.sentence)  # noqa: TRY400  # the sentence says it all
                return
            except CallFailed as failure:
                log.info("teams_still_unreachable", error=failure.error)
            else:
                return


def _sentence(failure: CallFailed) -> str:
    return f"Microsoft refuses the bot ({failure.error}): {_WHAT_TO_DO.get(failure.error, _OTHERWISE)}"
