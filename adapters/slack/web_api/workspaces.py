"""The bot's user and token in each workspace, and how the connection to it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import structlog
from slack_bolt.authorization import AuthorizeResult

from adapters.shared.caches import Remembered
from adapters.shared.calls import CallFailed
from adapters.slack.web_api.client import AT_ONCE, USED_UP, SlackHttpClient
from bot.domain import Clock, system_clock
from bot.platform import NotConnected

if TYPE_CHECKING:
    from adapters.slack.web_api.installing import Installations

log = structlog.get_logger(__name__)
_WHO = "auth.test"
_AT_A_TIME = 5
"""Workspaces asked for at the same time at the start."""
_MOST_AT_START = 200
"""Workspaces asked for at the start; those beyond are asked for when they first write to us."""


@dataclass(frozen=True, slots=True)
class Bot:
    """An installation in one workspace."""

    team: str
    token: str = field(repr=False)
    bot_user: str
    """The bot's user id, as in mentions."""
    bot_id: str
    name: str
    """Name of the workspace."""
    url: str
    """Address of the workspace, with a slash at the end: permanent links begin with it."""


class OneToken:
    """The token of `SLACK_BOT_TOKEN`."""

    many = False
    """Whether people install it themselves, so that being refused by one workspace is no reason not to start."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self, team: str, enterprise: str) -> str | None:
        """The token, whichever workspace is meant: `Workspaces` asks Slack whose it is."""
        return self._token

    async def installed(self) -> Sequence[tuple[str, str]]:
        """The one, wherever it is."""
        return [("", "")]

    def refused(self, team: str, token: str) -> None:
        """There is no other."""

    async def forget(self, team: str, enterprise: str, before: float) -> None:
        """What is configured stays configured."""


@dataclass(frozen=True, slots=True)
class _Who:
    """What `auth.test` says of a token."""

    team: str
    bot_user: str
    bot_id: str
    name: str
    url: str
    organisation_wide: bool


Authorize = Callable[[str | None, str | None, str | None], Awaitable[AuthorizeResult | None]]


class Workspaces:
    """Bots by workspace. Slack is asked once for each token (`auth.test`); after that no network is needed."""

    def __init__(self, tokens: OneToken | Installations, api_url: str, clock: Clock = system_clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._wire = SlackHttpClient(api_url)
        self._who: Remembered[str, _Who] = Remembered(keep=inf)

    async def bot(self, team: str, enterprise: str = "") -> Bot:
        """The bot of a workspace. Raises `CallFailed`: `not_installed` (permanent), or what Slack said of its token."""
        token = await self._tokens.token(team, enterprise)
        if token is None:
            raise CallFailed(_WHO, "not_installed", permanent=True)
        who = await self._who.get(token, self._ask_who)
        if team not in ("", who.team) and not who.organisation_wide:
            raise CallFailed(_WHO, "not_installed", permanent=True)
        return Bot(team or who.team, token, who.bot_user, who.bot_id, who.name, who.url)

    async def token(self, team: str) -> str:
        """Returns the token of a workspace for `WebApi`. Raises `CallFailed`."""
        return (await self.bot(team)).token

    def refused(self, team: str, token: str) -> None:
        """Called by `WebApi` when Slack does not accept a token."""
        self._who.forget(token)
        self._tokens.refused(team, token)

    @property
    def authorize(self) -> Authorize:
        """Returns what Bolt calls to authorize a request. A plain function, since Bolt takes the `self` of a method for
        an argument that it has to fill.

        The function returns `None` for a workspace that has not installed us (any more), so that its events are
        dropped, and raises `CallFailed` when that cannot be found out now, so that Slack sends the event again.
        """

        async def authorize(
            enterprise_id: str | None, team_id: str | None, user_id: str | None
        ) -> AuthorizeResult | None:
            try:
                async with asyncio.timeout(AT_ONCE):
                    bot = await self.bot(team_id or "", enterprise_id or "")
            except TimeoutError:
                raise CallFailed(_WHO, "timeout") from None
            except CallFailed as failure:
                if not failure.permanent:
                    raise
                log.warning("slack_workspace_unknown", team=team_id, enterprise=enterprise_id, error=failure.error)
                return None
            return AuthorizeResult(
                enterprise_id=enterprise_id,
                team_id=bot.team,
                team=bot.name,
                url=bot.url,
                bot_user_id=bot.bot_user,
                bot_id=bot.bot_id,
                bot_token=bot.token,
            )

        return authorize

    async def connect(self) -> tuple[Bot, ...]:
        """The workspaces we are in, asked of Slack.

        Raises `NotConnected` when the configured token does not work, `CallFailed` when Slack cannot be reached.
        An installation that does not work any more is logged and left out.
        """
        installed = (await self._tokens.installed())[:_MOST_AT_START]
        gate = asyncio.Semaphore(_AT_A_TIME)

        async def connected(team: str, enterprise: str) -> Bot | None:
            try:
                async with gate:
                    return await self.bot(team, enterprise)
            except CallFailed as failure:
                # Slack was reached, also where another process may be about to keep a newer token.
                if not failure.permanent and failure.error != USED_UP:
                    raise
                if not self._tokens.many:
                    raise NotConnected(_what_to_do(failure.error)) from failure
                log.warning("slack_workspace_refused", team=team, enterprise=enterprise, error=failure.error)
                return None

        asked = [connected(team, enterprise) for team, enterprise in installed]
        bots = await asyncio.gather(*asked, return_exceptions=True)  # so that none is left running
        for failure in bots:
            if isinstance(failure, BaseException):
                raise failure
        return tuple(bot for bot in bots if isinstance(bot, Bot))

    async def forget(self, team: str, enterprise: str = "", *, at: float | None = None) -> None:
        """The bot was uninstalled, or its token revoked, `at` that second (the event's; `None`: now)."""
        before = self._clock() if at is None else at + 1.0  # Slack gives whole seconds
        await self._tokens.forget(team, enterprise, before)
        log.info("slack_uninstalled", team=team, enterprise=enterprise)

    async def close(self) -> None:
        """End what is under way."""
        await self._who.close()
        await self._wire.close()

    async def _ask_who(self, token: str) -> _Who:
        said = await self._wire.request(_WHO, {}, token=token)
        if not said.get("bot_id"):
            raise CallFailed(_WHO, "not_a_bot_token", permanent=True)
        if not said.get("team_id") or not said.get("user_id"):
            raise CallFailed(_WHO, "bad_answer")
        return _Who(
            team=said["team_id"],
            bot_user=said["user_id"],
            bot_id=said["bot_id"],
            name=said.get("team", ""),
            url=said.get("url", ""),
            organisation_wide=bool(said.get("is_enterprise_install")),
        )


_FROM_THE_PAGE = (
    'Copy the "Bot User OAuth Token" (xoxb-…) from OAuth & Permissions on your app\'s page at api.slack.com'
)
_INSTALL_AGAIN = "Install the app into the workspace again (Install App on its page at api.slack.com)"
_WHAT_TO_DO = {
    "invalid_auth": f"Slack does not know the token (invalid_auth). {_FROM_THE_PAGE}.",
    "not_authed": f"the token is empty (not_authed). {_FROM_THE_PAGE}.",
    "not_a_bot_token": f"this is no bot's token. {_FROM_THE_PAGE}; xoxp- and xapp- are other kinds.",
    "not_allowed_token_type": f"this is no bot's token (not_allowed_token_type). {_FROM_THE_PAGE}.",
    "account_inactive": f"the app was uninstalled (account_inactive). {_INSTALL_AGAIN} and set the new token.",
    "token_revoked": f"the token was revoked (token_revoked). {_INSTALL_AGAIN} and set the new token.",
    "token_expired": (
        "the token has expired (token_expired). With token rotation the app has to be installed through "
        "/slack/install: set SLACK_CLIENT_ID and SLACK_CLIENT_SECRET instead."
    ),
}


def _what_to_do(error: str) -> str:
    return f"SLACK_BOT_TOKEN: {_WHAT_TO_DO.get(error, f'Slack refuses the token ({error}). {_FROM_THE_PAGE}.')}"
