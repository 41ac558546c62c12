"""Requests from a workspace that has not installed the app (any more): there is no token to answer with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from adapters.shared.background_tasks import BackgroundTasks
from adapters.shared.untrusted_json import part, words
from adapters.slack.ids import SlackLocation, slack_id, slack_ts
from adapters.slack.inbound.clicks import said
from adapters.slack.inbound.commands import ephemeral
from adapters.slack.inbound.payloads import web_address
from adapters.slack.outbound.posting import reply
from adapters.slack.render.posts import note

log = structlog.get_logger(__name__)
NOT_INSTALLED = "I am not installed in this workspace (any more), so I cannot do this."


class NotInstalled:
    """Answers people where that takes no token: whatever they clicked, nobody else would tell them."""

    def __init__(self, background: BackgroundTasks) -> None:
        self._background = background

    def handle(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the answer; empty when there is nothing to say."""
        if words(body, "command"):
            return ephemeral(note(NOT_INSTALLED))
        if words(body, "type") == "view_submission":
            return said("Not installed", NOT_INSTALLED)
        if response_url := web_address(body, "response_url"):
            self._background.start(_tell(response_url, _location(body)), "not installed")
        return {}


async def _tell(response_url: str, location: SlackLocation) -> None:
    if not await reply(response_url, location, note(NOT_INSTALLED)):
        log.info("slack_person_not_told", reason="not installed", channel=location.channel)


def _location(body: Mapping[str, Any]) -> SlackLocation:
    thread_ts = slack_ts(body, "message", "thread_ts") or slack_ts(part(body, "container"), "thread_ts")
    return SlackLocation("", slack_id(body, "channel", "id"), thread_ts)
