"""A fresh sign-in link, for its owner alone. The link is in nothing but the message that they get."""

from __future__ import annotations

from adapters.shared.background_tasks import BackgroundTasks
from adapters.teams.inbound.answers import Answers
from adapters.teams.inbound.deciding import SETTLED_ALREADY, content_of
from adapters.teams.inbound.gestures import Click
from adapters.teams.render.posts import open_a_chat_first, sign_in_link
from bot.accounts.sign_ins import SignInLinks
from bot.domain import Person, SignInView
from bot.queries import Queries

SENT = "I am sending you the link in a message that only you can see."


class Links:
    """Gives people their links."""

    def __init__(
        self, sign_in_links: SignInLinks, queries: Queries, answers: Answers, background: BackgroundTasks
    ) -> None:
        self._sign_in_links = sign_in_links
        self._queries = queries
        self._answers = answers
        self._background = background

    async def give(self, click: Click, person: Person) -> str:
        """Send it, if it is theirs; a sentence that says what came of it, `SENT` when it is on its way."""
        link = await self._sign_in_links.link(click.subject, person.person_id)
        if not isinstance(link, str):
            return link.text
        view = await content_of(self._queries, click)
        if not isinstance(view, SignInView):  # settled between the two readings
            return SETTLED_ALREADY
        message, note = sign_in_link(view, link), open_a_chat_first(view.owner)
        self._background.start(self._answers.tell(click.visitor, message, note), "sign-in link")
        return SENT
