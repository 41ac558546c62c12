"""The Teams platform, with Microsoft's Bot Framework SDK as transport only, within the one aiohttp application.

`app.py` makes a `TeamsPlatform` from a `TeamsConfig` (`config_from` the settings) and gives it to the house as the
platform named `teams`. When the house is built: `connect(desk)`, then its `routes()` into the application, `await
start()`, and `await close()` in the end. This folder is imported only when Teams is configured.
"""

from __future__ import annotations

from adapters.teams.config import Cloud, TeamsConfig, config_from
from adapters.teams.connecting import TeamsNotConnected
from adapters.teams.platform import TeamsPlatform

__all__ = ["Cloud", "TeamsConfig", "TeamsNotConnected", "TeamsPlatform", "config_from"]
