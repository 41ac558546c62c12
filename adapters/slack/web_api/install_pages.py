"""`/slack/install` and `/slack/oauth_redirect`: from "Add to Slack" to an installation that is kept."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html import escape
from urllib.parse import urljoin

import aiohttp
import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.oauth import OAuthStateUtils
from slack_sdk.oauth.installation_store import Installation
from slack_sdk.oauth.installation_store.async_installation_store import AsyncInstallationStore

from adapters.shared.calls import CallFailed
from adapters.slack.config import SCOPES, SlackConfig
from adapters.slack.web_api.client import QUIET, SlackHttpClient
from adapters.slack.web_api.installing import STATE_SECONDS, InstallationRecords

log = structlog.get_logger(__name__)

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

_OTHER_BROWSER = "This install was begun in another browser, or too long ago."
_FAILURES = {
    "access_denied": (403, "It was cancelled in Slack."),
    "invalid_browser": (400, _OTHER_BROWSER),
    "invalid_state": (400, "This link was used before, or it is too old."),
    "missing_code": (400, "Slack sent no code along."),
    "invalid_code": (502, "Slack did not confirm it."),
    "unreachable": (502, "Slack could not be reached."),
    "storage_error": (500, "It could not be kept here."),
}
_OTHER_FAILURE = (400, "Slack did not allow it.")
_CLOSED = (
    "No workspace may install it yet. Whoever runs this Countersign has to name the workspaces that may, in "
    "<code>SLACK_INSTALL_TEAMS</code>, and restart it."
)
_NOT_ALLOWED = "This Countersign is for certain workspaces only, and this is none of them."
_REVOKE_SECONDS = 5.0
"""What taking a token back may take: somebody waits for the page."""


class _NotAllowed(Exception):  # noqa: N818  # no error: an answer
    """The workspace may not install it."""

    def __init__(self, installation: Installation) -> None:
        super().__init__()
        self.installation = installation


class _AllowedOnly(AsyncInstallationStore):
    """Keeps what may be kept, for Bolt's flow, which saves an installation as soon as it has it."""

    def __init__(self, config: SlackConfig, records: InstallationRecords) -> None:
        self._config = config
        self._records = records

    async def async_save(self, installation: Installation) -> None:
        """Keep it. Raises `_NotAllowed`, and keeps nothing."""
        whole = installation.is_enterprise_install
        team = "" if whole else installation.team_id or ""
        if not self._config.may_install(team, installation.enterprise_id or ""):
            raise _NotAllowed(installation)
        await self._records.async_save(installation)


class InstallPages:
    """The OAuth flow of Bolt with pages that say what happened, and nothing else. `close` in the end.

    `installed`: told when there is a new installation.
    """

    def __init__(self, config: SlackConfig, records: InstallationRecords, installed: Callable[[], None]) -> None:
        self._config = config
        self._records = records
        self._installed = installed
        self._wire = SlackHttpClient(config.api_url)

    def routes(self) -> list[web.RouteDef]:
        """For the one aiohttp application. No HEAD: it would use the state up."""
        return [web.get(INSTALL, self.install, allow_head=False), web.get(REDIRECT, self.redirect, allow_head=False)]

    async def install(self, request: web.Request) -> web.Response:
        """On to Slack, with a state that this browser alone can come back with."""
        if not self._config.install_teams:
            return await to_aiohttp_response(_page(403, "Countersign cannot be installed", _CLOSED))
        team = request.query.get("team", "")
        # Bolt puts the query's team into the address as it is, so only what can be one is let through.
        query = {"team": team} if _TEAM.fullmatch(team) else {}
        asked = AsyncBoltRequest(body="", query=query, headers={})
        return await to_aiohttp_response(await self._flow().handle_installation(asked))

    async def redirect(self, request: web.Request) -> web.Response:
        """Back from Slack, with a code that is worth a token."""
        try:
            answer = await self._flow().handle_callback(await to_bolt_request(request))
        except _NotAllowed as refused:
            answer = await self._turned_away(refused.installation)
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("slack_install_failed", reason="unreachable", error=type(error).__name__)
            answer = _failed("unreachable")
        except Exception as error:  # noqa: BLE001  # SDK, records: whoever installs gets a page whatever went wrong
            # Its name alone: the message and the traceback may hold the code or the token.
            log.error("slack_install_failed", reason="storage_error", error=type(error).__name__)  # noqa: TRY400
            answer = _failed("storage_error")
        return await to_aiohttp_response(answer)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

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
            installation_store=_AllowedOnly(config, self._records),
            state_store=self._records.states,
            state_expiration_seconds=STATE_SECONDS,
            logger=QUIET,
        )
        return AsyncOAuthFlow(client=self._wire.client, logger=QUIET, settings=settings)

    async def _turned_away(self, installation: Installation) -> BoltResponse:
        """Say so, and give back what Slack gave us: nobody is to have a token for a workspace that is not served."""
        where = {"team": installation.team_id, "enterprise": installation.enterprise_id}
        log.warning("slack_install_failed", reason="not_allowed", **where)
        for token in (installation.bot_token, installation.user_token):
            if not token:
                continue
            try:
                await self._wire.request("auth.revoke", {}, token=token, seconds=_REVOKE_SECONDS)
            except CallFailed as failure:
                log.warning("slack_token_not_revoked", **where, error=failure.error)
        return _page(403, "Nothing was installed", _NOT_ALLOWED)

    async def _succeeded(self, done: AsyncSuccessArgs) -> BoltResponse:
        self._installed()
        installation = done.installation
        log.info("slack_installed", team=installation.team_id, enterprise=installation.enterprise_id)
        where = escape(installation.team_name or installation.enterprise_name or "your workspace")
        return _page(
            200,
            f"Countersign is installed in {where}",
            "You can close this page. In Slack, write to Countersign directly, or invite it into a channel with "
            "<code>/invite</code> and mention it.",
        )


async def _refused(failure: AsyncFailureArgs) -> BoltResponse:
    known = failure.reason if failure.reason in _FAILURES else "refused"
    log.warning("slack_install_failed", reason=known)
    return _failed(failure.reason)


def _failed(reason: str) -> BoltResponse:
    status, sentence = _FAILURES.get(reason, _OTHER_FAILURE)
    return _page(status, "Nothing was installed", f'{sentence} <a href="{INSTALL}">Try again</a>.')


def _page(status: int, title: str, text: str) -> BoltResponse:
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1><p>{text}</p></html>"
    )
    state_used_up = OAuthStateUtils().build_set_cookie_for_deletion()
    return BoltResponse(status=status, body=body, headers={**_HEADERS, "Set-Cookie": [state_used_up]})
