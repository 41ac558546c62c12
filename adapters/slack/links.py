"""Permanent links to what is shown in Slack. Pure: Slack's own form of them, without asking for each."""

from __future__ import annotations

from urllib.parse import urlencode

from adapters.slack.ids import spot_of
from bot.domain import Shown


def permalink(workspace_url: str, shown: Shown) -> str:
    """Where a post is shown: its own message, or where that is not known its thread or channel.

    `workspace_url` is what `auth.test` calls `url`: `https://acme.slack.com/`.
    """
    spot = spot_of(shown.post.place)
    ts = _first_part(shown) or spot.thread_ts
    link = f"{workspace_url.rstrip('/')}/archives/{spot.channel}"
    if not ts:
        return link
    within = f"?{urlencode({'thread_ts': spot.thread_ts, 'cid': spot.channel})}" if spot.thread_ts else ""
    return f"{link}/p{ts.replace('.', '')}{within}"


def _first_part(shown: Shown) -> str:
    parts = (shown.reference or {}).get("parts") or ()
    return str(parts[0]) if parts else ""
