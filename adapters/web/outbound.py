"""The web page as a platform: posts go to the pages that are open; the rest is read from the records."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from adapters.web.config import PageFacts, WebConfig
from adapters.web.hub import Hub
from adapters.web.live import LiveBoard, WebLive
from adapters.web.proving import visitor_of
from adapters.web.render import post_json
from adapters.web.routes import make_routes
from bot.clock import Clock, system_clock
from bot.domain import AccountFacts, Arrival, Introduction, Place, Post, Said
from bot.platform import Desk, Reference


class WebPlatform:
    """`bot.platform.Platform` for the page. Sending cannot fail: an absent page reads the records when it comes."""

    name = "web"

    def __init__(self, config: WebConfig, facts: Callable[[], PageFacts], *, clock: Clock = system_clock) -> None:
        self._config = config
        self._facts = facts
        self._clock = clock
        self._visitor = visitor_of(config, clock)
        self._hub = Hub()
        self._board = LiveBoard(self._hub)

    def routes(self, desk: Desk) -> list[web.RouteDef]:
        """The page's routes, for the one aiohttp application."""
        return make_routes(
            config=self._config, facts=self._facts, desk=desk, hub=self._hub, board=self._board, clock=self._clock
        )

    def visitor(self, request: web.Request) -> str | None:
        """The person id that the session of a request proves, also one that is not for the page itself."""
        return self._visitor(request)

    async def send(self, post: Post) -> Reference:
        """Show a post on the open pages of its thread."""
        ended = self._board.end_draft(post.thread_id, post.content.text) if isinstance(post.content, Said) else None
        self._publish(post, ended)
        return {}

    async def update(self, post: Post, reference: Reference) -> Reference:
        """Show what a post has become."""
        self._publish(post, None)
        return {}

    async def find(self, post: Post) -> Reference | None:
        """Every post can be found: the page shows the records themselves."""
        return {}

    async def introduce(self, arrival: Arrival) -> Introduction:
        """The page's people are known at the door, and nobody says anything there but to the bot."""
        return Introduction(arrival.message.author, arrival.message.text)

    def live(self, thread_id: str, place: Place, reader: str) -> WebLive:
        """Where to show what happens in a thread while it happens."""
        return WebLive(self._board, thread_id)

    async def in_group(self, person_id: str, group: str) -> None:
        """The page knows no groups."""
        return

    async def in_channel(self, person_id: str, channel: str) -> None:
        """The page has no channels."""
        return

    async def account_of(self, person_id: str) -> AccountFacts:
        """Nobody on the page has proved who they are: its people are as many as its configuration names."""
        return AccountFacts(is_member=True)

    async def name_of(self, person_id: str) -> str | None:
        """What somebody of the page calls themselves."""
        person = self._config.person(person_id)
        return person.name if person else None

    def named_place(self, reference: str) -> Place | None:
        """Where somebody of the page is told of what others ask of them: beside whichever thread they have open."""
        if self._config.person(reference) is None:
            return None
        return Place(self.name, key=reference, address={"person": reference}, direct=True)

    async def close(self) -> None:
        """End the open event streams, which would otherwise hold up the server's shutdown."""
        self._hub.close()

    def _publish(self, post: Post, ended_draft: str | None) -> None:
        is_in_thread = post.place.key == post.thread_id  # else it is in somebody's list of what they are asked
        if is_in_thread and self._hub.has_readers(post.thread_id):
            event = post_json(post) | {"ends_draft": ended_draft}
            self._hub.publish(post.thread_id, "post", event, only_for=post.only_for)
        self._hub.threads_changed()
