"""Asking the fake Slack through Slack's own client."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack

Json = dict[str, Any]

QUIET: Json = {"unfurl_links": False, "unfurl_media": False}
METADATA: Json = {"event_type": "countersign_post", "event_payload": {"post": "p1", "part": 0}}


def client_with(slack: FakeSlack, token: str) -> AsyncWebClient:
    return AsyncWebClient(token=token, base_url=slack.api_url, timeout=5, retry_handlers=[])


async def refusal(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def posted(client: AsyncWebClient, text: str = "hi", **more: Any) -> str:
    return str((await client.chat_postMessage(channel="C1", text=text, **QUIET, **more))["ts"])
