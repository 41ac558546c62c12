"""The Slack platform, on slack-bolt, within the one aiohttp application.

`app.py` makes a `SlackPlatform` from a `SlackConfig` (`config_from` the settings) and gives it to the house as the
platform named `slack`. When the house is built: `connect(desk)`, then its `routes()` into the application, `await
start()`, and `await close()` in the end. This folder is imported only when Slack is configured.
"""

from __future__ import annotations

from adapters.slack.config import SlackConfig, config_from
from adapters.slack.platform import Installations, SlackPlatform
from adapters.slack.web_api.workspaces import SlackNotConnected

__all__ = ["Installations", "SlackConfig", "SlackNotConnected", "SlackPlatform", "config_from"]
