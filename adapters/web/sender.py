"""The sending half of the web page: posts go to the pages that are open; the rest is read from the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adapters.shared.live.board import LiveBoard, WebLive
from adapters.shared.live.entries import message_json, post_json
from adapters.shared.live.hub import Hub
from adapters.shared.live.replicas import OtherReplicas
from adapters.web.config import WebConfig
from bot.domain import (
    AccountFacts,
    Arrival,
    ConversationReference,
    FileReference,
    Introduction,
    MessageView,
    Person,
    Post,
    Said,
)
from bot.identity.identities import IdentityRecords
from bot.identity.people import may_be_person
from bot.outbox import message_of
from bot.platform import FetchedFile, FileNotFetched, Reference
from bot.queries import Queries
from translations import gettext as _

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.live_answers import LiveAnswers
    from bot.records.notifications import Notifications


@dataclass(frozen=True, slots=True)
class SharedPage:
    """What lets several processes serve the page."""

    notifications: Notifications
    answers: LiveAnswers


class WebSender:
    """Fills `bot.platform.Platform`. Sending can fail only where the other processes that serve the page cannot be told
    of it: an absent page reads the records when it comes.

    Args:
        shared: where several processes serve the page.
        identities: what is known of people who sign in, and of those whom programs' tokens name.
    """

    name = "web"

    def __init__(
        self, config: WebConfig, shared: SharedPage | None = None, identities: IdentityRecords | None = None
    ) -> None:
        self.config = config
        self._identities = identities
        self.hub = Hub()
        self.board = LiveBoard(self.hub)
        self.others = OtherReplicas(self.hub, self.board, shared.notifications, shared.answers) if shared else None

    async def send(self, post: Post) -> Reference:
        """Show a post on the open pages of its thread."""
        said = message_of(post.post_id) if isinstance(post.content, Said) else None
        if said is not None:
            self.board.end_draft(post.thread_id, said)
        await self._publish(post, said)
        return {}

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Show what a post has become."""
        await self._publish(post, None)
        return {}

    async def find(self, post: Post) -> Reference | None:
        """Every post can be found: the page shows the records themselves."""
        return {}

    async def introduce(self, arrival: Arrival) -> Introduction:
        """The page's people are known from their session, and nobody says anything there but to the bot."""
        return Introduction(arrival.message.author, arrival.message.text)

    async def fetch_file(self, file: FileReference, place: ConversationReference, limit: int) -> FetchedFile:
        """What people hand over on the page was uploaded before: there is nothing to fetch."""
        raise FileNotFetched(_("it isn’t available any more"))

    def live(self, thread_id: str, place: ConversationReference, reader: str) -> WebLive:
        """Where to show what happens in a thread while it happens."""
        return WebLive(self.board, thread_id)

    async def in_group(self, person_id: str, group: str) -> None:
        """The page knows no groups."""
        return

    async def in_channel(self, person_id: str, channel: str) -> None:
        """The page has no channels."""
        return

    async def account_of(self, person_id: str) -> AccountFacts:
        """Who chooses a local name has not proved who they are: its people are as many as the configuration names. Of
        others, what their issuer has vouched for lately; somebody of whom nothing is known is nobody."""
        if self._identities is None or self._local(person_id) is not None:
            return AccountFacts(is_member=True)
        return await self._identities.account_of(person_id)

    async def name_of(self, person_id: str) -> str | None:
        """What somebody of the page calls themselves, or is called by their issuer; `None`: there is nobody."""
        local = self._local(person_id)
        if local is not None or self._identities is None:
            return local.name if local is not None else None
        return await self._identities.name_of(person_id)

    def named_place(self, reference: str) -> ConversationReference | None:
        """Where somebody of the page is told of what others ask of them: beside whichever thread they have open."""
        is_person = self._local(reference) is not None if self.config.login == "local" else may_be_person(reference)
        if not is_person:
            return None
        return ConversationReference(self.name, key=reference, address={"person": reference}, direct=True)

    def _local(self, person_id: str) -> Person | None:
        return self.config.person(person_id) if self.config.login == "local" else None

    def show_message(self, thread_id: str, view: MessageView) -> None:
        """Show what somebody has written."""
        self.hub.publish(thread_id, "message", message_json(view))
        self.hub.threads_changed()
        if self.others is not None:
            self.others.message(thread_id, view)

    def thread_changed(self, thread_id: str) -> None:
        """Have every page that shows a conversation get it again: it is called something else, or was deleted."""
        self.hub.show_anew(thread_id)
        self.hub.threads_changed()
        if self.others is not None:
            self.others.changed(thread_id)

    async def end_session(self, session_id: str) -> None:
        """Disconnect a browser's pages, so that they come back as whoever the browser is now."""
        self.hub.end_session(session_id)
        if self.others is not None:
            await self.others.session_ended(session_id)

    async def start(self, queries: Queries, is_ready: Callable[[], bool]) -> None:
        """Begin to hear the other processes that show conversations, if there can be any. `is_ready`: whether this one
        takes work."""
        if self.others is not None:
            await self.others.start(queries, is_ready)

    async def end_streams(self, _application: object) -> None:
        """End the open event streams as soon as the server takes nothing new, which waits for them otherwise: whoever
        reads them comes back at once, to another process where there is one."""
        self.hub.close()

    async def close(self) -> None:
        """Share nothing more."""
        if self.others is not None:
            await self.others.stop()

    async def _publish(self, post: Post, ended_draft: str | None) -> None:
        is_in_thread = post.place.key == post.thread_id  # else it is in somebody's list of what they are asked
        if is_in_thread and self.hub.has_readers(post.thread_id):
            event = post_json(post) | {"ends_draft": ended_draft}
            self.hub.publish(post.thread_id, "post", event, only_for=post.only_for)
        self.hub.threads_changed()
        if self.others is not None:
            await self.others.post(post, ended_draft)
