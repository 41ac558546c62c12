"""The manifest and the zip, as pure functions."""

from __future__ import annotations

import io
import json
import string
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adapters.teams.app_package.facts import AppFacts
from adapters.teams.app_package.icons import colour_icon, outline_icon

Json = dict[str, Any]

TEMPLATE = Path(__file__).with_name("manifest.json")

READ_WITHOUT_MENTION = ("ChannelMessage.Read.Group", "ChatMessage.Read.Chat")
"""Permissions that the owner of a team or a chat grants when the app is installed there: the bot then gets every
message, so that a reply to it needs no mention
(https://learn.microsoft.com/microsoftteams/platform/bots/how-to/conversations/channel-messages-with-rsc)."""

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The modification time of all files in every package, so that the same input makes the same bytes."""


def manifest_of(facts: AppFacts) -> Json:
    """The manifest of an app that hears what is said to it: mentions, and everything in a direct chat."""
    values = {
        "MICROSOFT_APP_ID": facts.app_id,
        "PUBLIC_HOST": str(urlsplit(facts.public_url).hostname),
        "TEAMS_APP_NAME": facts.name,
        "TEAMS_APP_DEVELOPER": facts.developer,
        "TEAMS_APP_WEBSITE": facts.website,
        "VERSION": facts.version,
    }
    filled: Json = _filled(json.loads(TEMPLATE.read_text(encoding="utf-8")), values)
    return filled


def hearing_everything(manifest: Json) -> Json:
    """Returns the manifest of the same app, asking for the permissions that make mentions unnecessary where somebody
    grants them."""
    permissions = [{"name": name, "type": "Application"} for name in READ_WITHOUT_MENTION]
    return {
        **manifest,
        # Has to be there and has no effect here (https://learn.microsoft.com/microsoftteams/platform/graph-api/rsc).
        "webApplicationInfo": {"id": manifest["id"], "resource": "https://RscBasedStoreApp"},
        "authorization": {"permissions": {"resourceSpecific": permissions}},
    }


def package_of(manifest: Json) -> bytes:
    """The zip that is uploaded to Teams: the manifest and both icons, nothing else."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    files = {
        "manifest.json": text.encode(),
        manifest["icons"]["color"]: colour_icon(),
        manifest["icons"]["outline"]: outline_icon(),
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in files.items():
            package.writestr(_entry(name), data)
    return written.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # whatever the machine is
    entry.external_attr = 0o644 << 16
    return entry


def _filled(value: Any, values: dict[str, str]) -> Any:
    match value:
        case str():
            return string.Template(value).substitute(values)
        case list():
            return [_filled(one, values) for one in value]
        case dict():
            return {key: value if key == "$schema" else _filled(value, values) for key, value in value.items()}
        case _:
            return value
