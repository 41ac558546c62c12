"""Files of messages in Slack: what an event says of them, which is pure, and how they are fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import structlog
from yarl import URL

from adapters.shared.calls import CallFailed
from adapters.shared.http import TOO_LARGE, Http, HttpAnswer, is_kept_at, retry_after
from adapters.shared.messages import size_in_bytes
from adapters.shared.untrusted_json import part, parts, words
from adapters.slack.ids import slack_id
from adapters.slack.web_api.client import WebApi
from bot.domain import ConversationReference, FileReference
from bot.files import LONGEST_NAME, MOST_REFERENCES, too_large
from bot.platform import FetchedFile, FileNotFetched, PostFailed
from translations import gettext as _

log = structlog.get_logger(__name__)
DOWNLOAD_SECONDS = 60.0
"""What a download may take, from connecting to the last byte."""
LONGEST_ADDRESS = 4_096
"""Characters."""
_HOSTS = ("slack.com", "slack-files.com")
"""Where Slack keeps files: https://docs.slack.dev/reference/objects/file-object."""
_CANVASES = frozenset({"canvas", "quip"})
"""Modes of what people write together in Slack itself; it is handed out as HTML, whatever its type is said to be."""
_HTML = "text/html"
_TO_BE_ASKED_FOR = "check_file_info"
"""What an event says of a file of another company, and nothing else but its id:
https://docs.slack.dev/reference/objects/file-object#slack_connect_files."""
_NOT_ALLOWED = frozenset({"missing_scope", "not_allowed_token_type", "no_permission", "access_denied"})


def files_in(event: Mapping[str, Any], team: str) -> tuple[FileReference, ...]:
    """The files of a message. Reads anything and raises nothing."""
    return tuple(_reference(file, team) for file in islice(parts(event, "files"), MOST_REFERENCES))


def _reference(file: Mapping[str, Any], team: str) -> FileReference:
    refused = _refused(file)
    return FileReference(
        name=(words(file, "name") or words(file, "title"))[:LONGEST_NAME],
        media_type=_HTML if words(file, "mode") in _CANVASES else words(file, "mimetype")[:LONGEST_NAME],
        size=None if refused else size_in_bytes(file.get("size")),
        source={} if refused else {"team": team, "file": slack_id(file, "id"), "url": _address(file)},
        refused=refused,
    )


def _refused(file: Mapping[str, Any]) -> str:
    """Why a file cannot be fetched, where Slack says so beside its name."""
    mode = words(file, "mode")
    if mode == "tombstone" or not slack_id(file, "id"):
        return _("it isn’t available any more")
    if mode == "hidden_by_limit":
        return _("Slack hides it, as the workspace has too many files for its plan")
    return _("it isn’t kept in Slack") if file.get("is_external") is True or mode == "external" else ""


def _address(file: Mapping[str, Any]) -> str:
    """Where a file is fetched; empty: Slack has to be asked for it."""
    if words(file, "file_access") == _TO_BE_ASKED_FOR:
        return ""
    address = words(file, "url_private_download") or words(file, "url_private")
    return address if len(address) <= LONGEST_ADDRESS else ""


class SlackFiles:
    """Fetches files as a workspace's bot. `close` in the end.

    Args:
        tokens: what to speak with, by workspace.
    """

    def __init__(self, api: WebApi, tokens: Callable[[str], Awaitable[str]], api_url: str) -> None:
        self._api = api
        self._tokens = tokens
        self._own = URL(api_url).origin()
        self._http = Http()

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        """A file. Raises `FileNotFetched` and `PostFailed`."""
        try:
            if not file.source.get("url"):
                file = await self._described(file, limit)
            return FetchedFile(await self._content(file, limit), file.name, file.media_type)
        except CallFailed as failure:
            raise _in_words(failure, file.name) from None

    async def _described(self, file: FileReference, limit: int) -> FileReference:
        team = str(file.source.get("team", ""))
        said = part(await self._api.call(team, "files.info", {"file": str(file.source.get("file", ""))}), "file")
        found = _reference(said, team)
        if found.refused:
            raise FileNotFetched(found.refused, found.name)
        if found.size is not None and found.size > limit:
            raise FileNotFetched(too_large(), found.name)
        return replace(found, name=file.name or found.name)

    async def _content(self, file: FileReference, limit: int) -> bytes:
        team, url = str(file.source["team"]), str(file.source.get("url", ""))
        if not self._is_slacks(url):
            raise FileNotFetched(_("it isn’t kept in Slack"), file.name)
        headers = {"Authorization": f"Bearer {await self._tokens(team)}"}
        answer = await self._http.download("download", url, seconds=DOWNLOAD_SECONDS, most=limit, headers=headers)
        if answer.status == 429 or answer.status >= 500:
            raise PostFailed(f"download: http_{answer.status}", retry_after=retry_after(answer.headers))
        if answer.status in {401, 403} or 300 <= answer.status < 400 or _is_a_page(answer, file):
            log.warning("slack_file_not_allowed", team=team, status=answer.status, needed="files:read")
            raise FileNotFetched(_not_allowed(), file.name)
        if answer.status != 200:
            raise FileNotFetched(_("it isn’t available any more"), file.name)
        if _is_html(answer) and file.size != len(answer.body):
            # The page where people sign in is HTML too, and this may be it: the API says whether we may read files.
            await self._api.call(team, "files.info", {"file": str(file.source["file"])})
        return answer.body

    def _is_slacks(self, address: str) -> bool:
        """Whether an address is Slack's, or of the server that stands in for it: nobody else gets the token."""
        try:
            if URL(address, encoded=True).origin() == self._own:
                return True
        except ValueError:
            return False
        return is_kept_at(address, (*_HOSTS, self._own.host or ""))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _is_html(answer: HttpAnswer) -> bool:
    return answer.headers.get("Content-Type", "").lower().startswith(_HTML)


def _is_a_page(answer: HttpAnswer, file: FileReference) -> bool:
    """Whether an answer is the page where people sign in: whoever may not see a file gets that in place of it."""
    return _is_html(answer) and not file.media_type.lower().startswith(_HTML)


def _not_allowed() -> str:
    return _("I may not read files here. An admin has to allow it (files:read)")


def _in_words(failure: CallFailed, name: str) -> FileNotFetched | PostFailed:
    if failure.error == TOO_LARGE:
        return FileNotFetched(too_large(), name)
    if failure.error in _NOT_ALLOWED:
        return FileNotFetched(_not_allowed(), name)
    if failure.permanent:
        log.warning("slack_file_not_fetched", error=failure.error)
        return FileNotFetched(_("it isn’t available any more"), name)
    return PostFailed(str(failure), retry_after=failure.retry_after)
