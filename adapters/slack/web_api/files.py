"""Files of messages in Slack: what an event says of them, which is pure, and how they are fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import structlog

from adapters.shared.calls import CallFailed
from adapters.shared.http import TOO_LARGE, Http
from adapters.shared.untrusted_json import part, parts, words
from adapters.slack.ids import slack_id
from adapters.slack.web_api.client import WebApi
from bot.domain import ConversationReference, FileReference
from bot.files import MOST_REFERENCES, too_large
from bot.platform import FileNotFetched, PostFailed
from translations import gettext as _

log = structlog.get_logger(__name__)
DOWNLOAD_SECONDS = 60.0
"""What a download may take, from connecting to the last byte."""
_HOSTS = ("slack.com", "slack-files.com")
"""Where Slack keeps files: https://docs.slack.dev/reference/objects/file-object."""
_TEXT_MODES = frozenset({"snippet", "post"})


def files_in(event: Mapping[str, Any], team: str) -> tuple[FileReference, ...]:
    """The files of a message. Reads anything and raises nothing."""
    found = (_reference(file, team) for file in islice(parts(event, "files"), MOST_REFERENCES))
    return tuple(each for each in found if each is not None)


def _reference(file: Mapping[str, Any], team: str) -> FileReference | None:
    mode, file_id = words(file, "mode"), slack_id(file, "id")
    if mode in {"tombstone", "hidden_by_limit"} or not file_id:
        return None
    size = file.get("size")
    is_outside = file.get("is_external") is True or mode == "external"
    return FileReference(
        name=words(file, "name") or words(file, "title"),
        media_type=words(file, "mimetype"),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 and not is_outside else None,
        source={"team": team, "file": file_id, "url": words(file, "url_private_download")},
        refused=_("it isn’t kept in Slack") if is_outside else "",
    )


class SlackFiles:
    """Fetches files as a workspace's bot.

    Args:
        tokens: what to speak with, by workspace.
    """

    def __init__(self, api: WebApi, tokens: Callable[[str], Awaitable[str]], api_url: str) -> None:
        self._api = api
        self._tokens = tokens
        self._own = urlsplit(api_url)
        self._http = Http()

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> bytes:
        """The content of a file. Raises `FileNotFetched` and `PostFailed`."""
        team, file_id = str(file.source.get("team", "")), str(file.source.get("file", ""))
        url = str(file.source.get("url", ""))
        try:
            if not url:  # of another workspace: Slack shows it when it is asked for (`check_file_info`)
                url = await self._address(team, file_id)
            if not self._is_slacks(url):
                raise FileNotFetched(_("it isn’t kept in Slack"))
            headers = {"Authorization": f"Bearer {await self._tokens(team)}"}
            answer = await self._http.download("download", url, seconds=DOWNLOAD_SECONDS, most=limit, headers=headers)
        except CallFailed as failure:
            raise _in_words(failure) from None
        if answer.status in {429, 500, 502, 503, 504}:
            raise PostFailed(f"download: http_{answer.status}")
        # Whoever may not see it is sent to a page where people sign in.
        is_sign_in = answer.headers.get("Content-Type", "").startswith("text/html") and not file.media_type.startswith(
            "text/html"
        )
        if answer.status in {301, 302, 303, 307, 308, 401, 403} or is_sign_in:
            log.warning("slack_file_not_allowed", team=team, status=answer.status, needed="files:read")
            raise FileNotFetched(_("I may not read files here. An admin has to allow it (files:read)"))
        if answer.status != 200:
            raise FileNotFetched(_("it isn’t available any more"))
        return answer.body

    async def _address(self, team: str, file_id: str) -> str:
        said = await self._api.call(team, "files.info", {"file": file_id})
        return words(part(said, "file"), "url_private_download")

    def _is_slacks(self, url: str) -> bool:
        """Whether an address is Slack's, or of the server that stands in for it: nobody else gets the token."""
        try:
            parts_ = urlsplit(url)
            host = parts_.hostname or ""
        except ValueError:
            return False
        if (parts_.scheme, parts_.netloc) == (self._own.scheme, self._own.netloc):
            return True
        return parts_.scheme == "https" and any(host == each or host.endswith(f".{each}") for each in _HOSTS)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _in_words(failure: CallFailed) -> FileNotFetched | PostFailed:
    if failure.error == TOO_LARGE:
        return FileNotFetched(too_large())
    if failure.error == "missing_scope":
        return FileNotFetched(_("I may not read files here. An admin has to allow it (files:read)"))
    if failure.permanent:
        return FileNotFetched(_("it isn’t available any more"))
    return PostFailed(str(failure), retry_after=failure.retry_after)
