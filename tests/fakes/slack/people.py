"""Users as users.info shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.fakes.slack.world import Json


def made_user(user: str, team: str, name: str, tz: str, facts: Mapping[str, Any]) -> Json:
    """A user as `team` sees them; `facts` are further attributes (`is_restricted`, `team_id`, `locale`…)."""
    offset = datetime.now(ZoneInfo(tz)).utcoffset()
    return {
        "id": user,
        "team_id": team,
        "name": name.lower(),
        "real_name": name,
        "deleted": False,
        "tz": tz,
        "tz_label": tz,
        "tz_offset": int(offset.total_seconds()) if offset else 0,
        "profile": {"real_name": name, "display_name": name, "team": facts.get("team_id", team)},
        "is_admin": False,
        "is_owner": False,
        "is_bot": False,
        "is_app_user": False,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "locale": "en-US",
        **facts,
    }
