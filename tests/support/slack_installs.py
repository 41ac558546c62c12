"""Installing the app into a workspace with a browser, and taking it out again."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.fakes.slack import payloads
from tests.fakes.slack.server import FakeSlack
from tests.support.slack_transports import Answer, HttpTransport, Json, Transport


async def installs(
    slack: FakeSlack,
    transport: HttpTransport,
    *,
    team: str,
    user: str,
    rotating: bool = False,
    changed: Mapping[str, str | None] | None = None,
) -> tuple[Answer, Answer]:
    """Go through `/slack/install` and come back. Returns that page and the one at the end.

    `changed` spoils what the browser brings back (`{"state": "another"}`, `{"code": None, "error": "access_denied"}`).
    `rotating`: the workspace gets a token that expires.
    """
    begun = await transport.get("/slack/install")
    address = begun.headers.get("Location") or _link(begun.text)
    asked = dict(parse_qsl(urlsplit(address).query))
    assert address.startswith(f"{slack.world.base_url}/oauth/v2/authorize"), f"not Slack's page: {address}"
    assert asked["client_id"] == slack.world.client_id, "asks in the name of another app"
    code = slack.issue_code(team, user=user, rotating=rotating, redirect_uri=asked.get("redirect_uri"))
    brought: dict[str, str | None] = {"code": code, "state": asked["state"], **(changed or {})}
    back = urlsplit(asked.get("redirect_uri") or f"{transport.base_url}/slack/oauth_redirect")
    query = urlencode({name: value for name, value in brought.items() if value is not None})
    return begun, await transport.get(f"{back.path}?{query}", {"Cookie": _cookies(begun)})


async def uninstalls(slack: FakeSlack, transport: Transport, *, team: str, user: str) -> tuple[Answer, ...]:
    """Take the app out of the workspace: its tokens end, and it is told so in two events."""
    for token in slack.world.tokens.values():
        if token.team == team:
            token.revoked = True
    who = payloads.Someone(slack.world, team, user)
    bot = slack.world.workspaces[team].bot_user
    events: list[Json] = [
        {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [bot]}, "event_ts": slack.world.next_ts()},
        {"type": "app_uninstalled", "event_ts": slack.world.next_ts()},
    ]
    return tuple([await transport.event(payloads.envelope(who, event)) for event in events])


def _link(page: str) -> str:
    found = re.search(r'href="([^"]*/oauth/v2/authorize[^"]*)"', page)
    assert found, "the page has no link to Slack"
    return html.unescape(found[1])


def _cookies(answer: Answer) -> str:
    return answer.headers.get("Set-Cookie", "").partition(";")[0]
