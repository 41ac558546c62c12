"""Files of messages in Teams: what an activity says of them, which is pure, and how they are fetched.

In a personal chat Teams gives the bot a link that needs no token and is valid for some minutes. Elsewhere it mostly
says nothing of files: Microsoft Graph has to be asked for the message, which says where they lie, and then for each of
them, with permissions that the operator has granted. So it is where a link does not open, as in group chats
(https://microsoft.github.io/teams-sdk/python/in-depth-guides/file-handling/receiving-files).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote, urlsplit

import structlog
from yarl import URL

from adapters.shared.calls import CallFailed
from adapters.shared.http import TOO_LARGE, Http, HttpAnswer, is_kept_at, retry_after
from adapters.shared.messages import size_in_bytes
from adapters.shared.people import user_of
from adapters.shared.untrusted_json import part, parts, words
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.people import Entra
from adapters.teams.ids import is_object_id
from bot.domain import ConversationReference, FileReference, Message
from bot.files import LONGEST_NAME, MOST_REFERENCES, too_large
from bot.platform import FetchedFile, FileNotFetched, PostFailed
from bot.settings import is_loopback
from translations import gettext as _

log = structlog.get_logger(__name__)
DOWNLOAD_SECONDS = 60.0
"""What a download may take, from connecting to the last byte."""
LONGEST_ADDRESS = 4_096
"""Characters."""
MESSAGES = "ChannelMessage.Read.Group, ChatMessage.Read.Chat"
"""Permissions to read messages in a team, and in a group chat, that its owner grants with the app."""
_UPLOADED = "application/vnd.microsoft.teams.file.download.info"
_SHARED = "reference"
_HOSTS = (
    *("sharepoint.com", "sharepoint.us", "sharepoint-mil.us", "sharepoint.cn"),
    *("svc.ms", "onedrive.com", "1drv.com"),
)
"""Where Microsoft keeps files of Teams, by cloud."""
_ATTACHED = re.compile(r"<attachment\s")
"""In the HTML of a message, in place of a file, a card or a forwarded message."""
_THREAD = ";messageid="
_FACTS = "name,size,folder,createdBy,lastModifiedBy"


def files_in(activity: Mapping[str, Any], user: str) -> tuple[FileReference, ...]:
    """The files of a message that this user wrote. Reads anything and raises nothing."""
    return tuple(islice(_references(activity, user), MOST_REFERENCES))


def hidden_in(activity: Mapping[str, Any]) -> tuple[FileReference, ...]:
    """One file without a name where something is attached to a message that Teams does not describe. Reads anything
    and raises nothing."""
    attached = [(words(each, "contentType"), words(each, "content")) for each in parts(activity, "attachments")]
    html = [content for kind, content in attached if kind == "text/html"]
    described = [kind for kind, _content in attached if kind != "text/html" and not kind.startswith("image/")]
    is_hidden = not described and any(map(_ATTACHED.search, html))
    return (FileReference("", source={"hidden": True}),) if is_hidden else ()


def _references(activity: Mapping[str, Any], user: str) -> Iterator[FileReference]:
    for attached in parts(activity, "attachments"):
        kind, name = words(attached, "contentType"), words(attached, "name")[:LONGEST_NAME]
        content = part(attached, "content")
        size = size_in_bytes(content.get("fileSize"))
        lies_at = {"shared": _bounded(words(attached, "contentUrl")), "author": user}
        if kind == _UPLOADED:
            yield FileReference(name, "", size, {"link": _bounded(words(content, "downloadUrl")), **lies_at})
        elif kind == _SHARED:
            yield FileReference(name, "", size, lies_at)


def _bounded(address: str) -> str:
    return address if len(address) <= LONGEST_ADDRESS else ""


class TeamsFiles:
    """Fetches files. `close` in the end.

    Args:
        entra: asks Microsoft Graph.
    """

    def __init__(self, config: TeamsConfig, entra: Entra) -> None:
        self._config = config
        self._entra = entra
        self._http = Http()

    async def of_message(self, message: Message) -> tuple[FileReference, ...] | None:
        """The files of a message in a channel or a group chat, where Teams does not say them and the operator lets us
        ask; `None`: those that it came with. Raises nothing: without an answer the turn goes on as it is."""
        is_said = any("hidden" not in file.source for file in message.files)
        if not self._config.graph_files or message.place.direct or is_said:
            return None
        path, tenant = _path_of(message), str(message.place.address.get("tenant", ""))
        if not path:
            return None
        try:
            return files_in(await self._entra.read(tenant, path), user_of(message.author.person_id))
        except CallFailed as failure:
            log.warning("teams_files_not_found_out", error=failure.error, needed=MESSAGES)
            return None

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        """A file. Raises `FileNotFetched` and `PostFailed`."""
        try:
            if "link" in file.source:
                try:
                    gone = _("its link isn’t valid any more. Send it again")
                    return FetchedFile(await self._linked(str(file.source["link"]), limit, gone))
                except FileNotFetched:
                    if place.direct and not (self._config.graph_files and file.source.get("shared")):
                        raise
            if not self._config.graph_files:
                raise FileNotFetched(_elsewhere(direct=place.direct))
            if "hidden" in file.source:
                needed = _("I may not read messages here. An admin has to allow it ({permission})")
                raise FileNotFetched(needed.format(permission=MESSAGES))
            return FetchedFile(await self._shared(file, str(place.address.get("tenant", "")), limit))
        except CallFailed as failure:
            raise _in_words(failure) from None

    async def _linked(self, link: str, limit: int, gone: str) -> bytes:
        """What a link opens. `gone`: why it may open nothing."""
        if not self._is_microsofts(link):
            raise FileNotFetched(_("it isn’t kept where Teams keeps files"))
        answer = await self._http.download("file", link, seconds=DOWNLOAD_SECONDS, most=limit)
        if answer.status == 429 or answer.status >= 500:
            raise PostFailed(f"file: http_{answer.status}", retry_after=retry_after(answer.headers))
        if _is_a_page(answer):
            log.warning("teams_file_not_fetched", status=answer.status, page=True)
            raise FileNotFetched(_("its link asks for a sign-in. Send it from a computer"))
        if answer.status != 200:
            log.warning("teams_file_not_fetched", status=answer.status)
            raise FileNotFetched(gone)
        return answer.body

    async def _shared(self, file: FileReference, tenant: str, limit: int) -> bytes:
        """https://learn.microsoft.com/graph/api/shares-get: Graph answers with a link of the other kind."""
        address = str(file.source.get("shared", ""))
        if not self._is_microsofts(address):
            raise FileNotFetched(_("it isn’t kept where Teams keeps files"))
        encoded = base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")
        item = f"/v1.0/shares/u!{encoded}/driveItem"
        facts = await self._entra.read(tenant, f"{item}?$select={_FACTS}")
        if "folder" in facts:
            raise FileNotFetched(_("it is a folder"))
        # The app may read what the author may not, and where a file lies can be written by hand.
        author = str(file.source.get("author", "")).lower()
        if author not in {words(facts, who, "user", "id").lower() for who in ("createdBy", "lastModifiedBy")} - {""}:
            raise FileNotFetched(_("someone else put it there. Upload it yourself"))
        size = size_in_bytes(facts.get("size"))
        if size is not None and size > limit:
            raise FileNotFetched(too_large())
        link = await self._entra.file_link(tenant, f"{item}/content")
        return await self._linked(link, limit, _("it isn’t available any more"))

    def _is_microsofts(self, address: str) -> bool:
        """Whether an address is where Microsoft keeps files; of this machine only where tokens are not looked at."""
        return is_kept_at(address, _HOSTS) or (self._is_local() and _is_on_this_machine(address))

    def _is_local(self) -> bool:
        stands_in = is_loopback(urlsplit(self._config.cloud.graph_url).hostname or "")
        return stands_in or self._config.local_unauthenticated

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


def _path_of(message: Message) -> str:
    """How Graph names a message; empty: that cannot be told.

    https://learn.microsoft.com/graph/api/chatmessage-get
    """
    address, number = message.place.address, message.key.rpartition(":")[2]
    conversation, _thread, root = str(address.get("conversation", "")).partition(_THREAD)
    if not (number.isascii() and number.isdigit()):
        return ""
    if address.get("kind") != "channel":
        return f"/v1.0/chats/{quote(conversation, safe='')}/messages/{number}"
    team = words(message.origin, "team")
    if not is_object_id(team) or not (root.isascii() and root.isdigit()):
        return ""
    thread = f"/v1.0/teams/{team}/channels/{quote(conversation, safe='')}/messages/{root}"
    return thread if number == root else f"{thread}/replies/{number}"


def _is_a_page(answer: HttpAnswer) -> bool:
    """Whether a link opens a page to sign in, as those of files from Teams on a phone may
    (https://github.com/OfficeDev/Microsoft-Teams-Samples/issues/1314). A file that is a page is sent as a file."""
    media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    is_sent_as_file = "Content-Disposition" in answer.headers
    return answer.status in {301, 302, 303, 307, 308} or (
        answer.status == 200 and media_type == "text/html" and not is_sent_as_file
    )


def _is_on_this_machine(address: str) -> bool:
    try:
        return is_loopback(URL(address, encoded=True).host or "")
    except ValueError:
        return False


def _elsewhere(*, direct: bool) -> str:
    if direct:
        return _("it is a link to a file. Upload the file itself")
    return _(
        "I can read files only in a chat with me alone. Send it to me there, or ask an admin to allow it here "
        "(TEAMS_GRAPH_FILES)"
    )


def _in_words(failure: CallFailed) -> FileNotFetched | PostFailed:
    if failure.error == TOO_LARGE:
        return FileNotFetched(too_large())
    if failure.status == 404:
        return FileNotFetched(_("it isn’t available any more"))
    if failure.permanent or failure.error == "not_our_tenant":
        log.warning("teams_file_not_fetched", error=failure.error)
        return FileNotFetched(_("I may not read files here. An admin has to allow it (Files.Read.All)"))
    return PostFailed(str(failure), retry_after=failure.retry_after)
