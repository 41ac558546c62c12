"""What somebody has here → JSON for the page: what they always allow, and their accounts. Pure, and as in `render`."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.web.render import TITLE_LIMIT, Json, arguments_json, line, seen_json, what_json
from bot.domain import ConnectionView, GrantView


def grants_json(grants: Sequence[GrantView]) -> Json:
    """What somebody always allows themselves."""
    return {
        "grants": [
            {
                "id": grant.grant_id,
                **what_json(grant.server, grant.tool, ""),
                "arguments": arguments_json(grant.arguments),
                **seen_json(grant),
                "until": grant.until,
            }
            for grant in grants
        ]
    }


def connections_json(connections: Sequence[ConnectionView]) -> Json:
    """Somebody's accounts at services."""
    return {
        "connections": [
            {
                "id": connection.connection_id,
                "service": line(connection.service, TITLE_LIMIT),
                "account": line(connection.account, TITLE_LIMIT),
                "scopes": [line(scope, TITLE_LIMIT) for scope in connection.scopes],
                "since": connection.since,
                "used_at": connection.used_at,
                "working": connection.working,
            }
            for connection in connections
        ]
    }
