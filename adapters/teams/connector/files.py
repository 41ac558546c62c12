"""Files of messages in Teams: what an activity says of them, which is pure, and how they are fetched.

In a personal chat Teams gives the bot a link that needs no token and is valid for some minutes. Elsewhere it says only
where the file lies, and Microsoft Graph has to be asked for it, with a permission that the operator has granted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import structlog

from adapters.shared.calls import CallFailed
from adapters.shared.http import TOO_LARGE, Http, HttpAnswer
from adapters.shared.untrusted_json import part, parts, words
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.people import Entra
from bot.domain import ConversationReference, FileReference
from bot.files import MOST_REFERENCES, too_large
from bot.platform import FileNotFetched, PostFailed
from bot.settings import is_loopback
from translations import gettext as _

log = structlog.get_logger(__name__)
DOWNLOAD_SECONDS = 60.0
"""What a download may take, from connecting to the last byte."""
LONGEST_ADDRESS = 4_096
"""Characters."""
_UPLOADED = "application/vnd.microsoft.teams.file.download.info"
_SHARED = "reference"
_HOSTS = ("sharepoint.com", "sharepoint.us", "sharepoint.cn", "svc.ms", "onedrive.com", "1drv.com")
"""Where Microsoft keeps files of Teams, by cloud."""


def files_in(activity: Mapping[str, Any]) -> tuple[FileReference, ...]:
    """The files of a message. Reads anything and raises nothing."""
    return tuple(islice(_references(activity), MOST_REFERENCES))


def _references(activity: Mapping[str, Any]) -> Iterator[FileReference]:
    for attached in parts(activity, "attachments"):
        kind, name = words(attached, "contentType"), words(attached, "name")
        content = part(attached, "content")
        size = content.get("fileSize")
        size = size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None
        if kind == _UPLOADED:
            yield FileReference(name, "", size, {"link": words(content, "downloadUrl")[:LONGEST_ADDRESS]})
        elif kind == _SHARED:
            yield FileReference(name, "", size, {"shared": words(attached, "contentUrl")[:LONGEST_ADDRESS]})


class TeamsFiles:
    """Fetches files. `close` in the end.

    Args:
        entra: asks Microsoft Graph.
    """

    def __init__(self, config: TeamsConfig, entra: Entra) -> None:
        self._config = config
        self._entra = entra
        self._http = Http()

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> bytes:
        """The content of a file. Raises `FileNotFetched` and `PostFailed`."""
        try:
            if link := str(file.source.get("link", "")):
                answer = await self._linked(link, limit)
            elif not self._config.graph_files:
                raise FileNotFetched(_("I can read files only in a chat with me alone. Send it to me there"))
            else:
                tenant, address = str(place.address.get("tenant", "")), str(file.source.get("shared", ""))
                answer = await self._shared(tenant, address, limit)
        except CallFailed as failure:
            raise _in_words(failure) from None
        if answer.status in {429, 500, 502, 503, 504}:
            raise PostFailed(f"file: http_{answer.status}")
        if answer.status in {401, 403}:
            log.warning("teams_file_not_allowed", status=answer.status)
            raise FileNotFetched(_("I may not read it"))
        if answer.status != 200:
            raise FileNotFetched(_("it isn’t available any more. Send it again"))
        return answer.body

    async def _linked(self, link: str, limit: int) -> HttpAnswer:
        if not self._is_microsofts(link):
            raise FileNotFetched(_("it isn’t kept where Teams keeps files"))
        return await self._http.download("file", link, seconds=DOWNLOAD_SECONDS, most=limit)

    async def _shared(self, tenant: str, address: str, limit: int) -> HttpAnswer:
        """https://learn.microsoft.com/graph/api/shares-get: Graph answers with a link of the other kind."""
        if not self._is_microsofts(address):
            raise FileNotFetched(_("it isn’t kept where Teams keeps files"))
        encoded = base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")
        link = await self._entra.redirected(tenant, f"/v1.0/shares/u!{encoded}/driveItem/content")
        return await self._linked(link, limit)

    def _is_microsofts(self, address: str) -> bool:
        """Whether an address is where Microsoft keeps files; of this machine only where tokens are not looked at."""
        try:
            where = urlsplit(address)
            host = (where.hostname or "").lower()
        except ValueError:
            return False
        stands_in = is_loopback(urlsplit(self._config.cloud.graph_url).hostname or "")
        if (stands_in or self._config.local_unauthenticated) and is_loopback(host):
            return True
        return where.scheme == "https" and any(host == each or host.endswith(f".{each}") for each in _HOSTS)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _in_words(failure: CallFailed) -> FileNotFetched | PostFailed:
    if failure.error == TOO_LARGE:
        return FileNotFetched(too_large())
    if failure.permanent or failure.error in {"bad_address", "not_our_tenant"}:
        log.warning("teams_file_not_fetched", error=failure.error)
        return FileNotFetched(_("I may not read it"))
    return PostFailed(str(failure), retry_after=failure.retry_after)
