"""What comes from a workspace that has not installed us (any more): there is no token to do anything with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from adapters.slack.errands import Errands
from adapters.slack.ids import Spot
from adapters.slack.inbound.commands import ephemeral
from adapters.slack.inbound.gestures import web_address
from adapters.slack.inbound.modals import said
from adapters.slack.outbound.private import reply
from adapters.slack.reading import part, slack_id, slack_ts, words
from adapters.slack.render.posts import note

log = structlog.get_logger(__name__)

NOT_INSTALLED = "I am not installed in this workspace (any more), so I cannot do this."


class NotInstalled:
    """Answers people where that takes no token: whatever they clicked, nobody else would tell them."""

    def __init__(self, errands: Errands) -> None:
        self._errands = errands

    def handle(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the answer; empty when there is nothing to say."""
        if words(body, "command"):
            return ephemeral(note(NOT_INSTALLED))
        if words(body, "type") == "view_submission":
            return said("Not installed", NOT_INSTALLED)
        if response_url := web_address(body, "response_url"):
            self._errands.start(_tell(response_url, _spot(body)), "not installed")
        return {}


async def _tell(response_url: str, spot: Spot) -> None:
    if not await reply(response_url, spot, note(NOT_INSTALLED)):
        log.info("slack_person_not_told", reason="not installed", channel=spot.channel)


def _spot(body: Mapping[str, Any]) -> Spot:
    thread_ts = slack_ts(body, "message", "thread_ts") or slack_ts(part(body, "container"), "thread_ts")
    return Spot("", slack_id(body, "channel", "id"), thread_ts)
