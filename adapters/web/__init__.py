"""The web platform: a chat page at `/`, served by the same aiohttp application as everything else.

`app.py` makes a `WebPlatform` from a `WebConfig`, adds its `routes(desk)` to the application, gives it to the house
as the platform named `web`, and awaits `close()` when the application shuts down.
"""

from __future__ import annotations

from adapters.web.config import DEFAULT_PEOPLE, PageFacts, ToolServerFacts, WebConfig
from adapters.web.outbound import WebPlatform

__all__ = ["DEFAULT_PEOPLE", "PageFacts", "ToolServerFacts", "WebConfig", "WebPlatform"]
