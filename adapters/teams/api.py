"""The Bot Connector as the rest of this folder sees it: a few verbs, one failure. JSON in and out, as Teams documents
it; nothing of the SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adapters.teams.ids import TeamsLocation

Activity = Mapping[str, Any]
"""An activity's JSON (https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference),
without where it goes to and who sends it: those are added on the way out."""

PATIENCE = 20.0
"""Seconds that a call may take with its waits and tries, where nobody waits for it."""
AT_ONCE = 3.0
"""Seconds where somebody does: Teams waits 5 s for the answer to an invoke."""


class ConnectorFailed(Exception):  # noqa: N818  # like PostFailed
    """The Bot Connector did not do what it was asked.

    `error`: its own word for it (`ConversationNotFound`, `BotNotInConversationRoster`), or ours (`timeout`,
    `connection`, `http_503`, `no_token`).
    `permanent`: asking again cannot help.
    `retry_after`: seconds that it asks to wait.
    `may_have_acted`: no answer came, so that it may have been done all the same.
    """

    def __init__(
        self,
        verb: str,
        error: str,
        *,
        status: int = 0,
        permanent: bool = False,
        retry_after: float | None = None,
        may_have_acted: bool = False,
    ) -> None:
        super().__init__(f"{verb}: {error}")
        self.verb = verb
        self.error = error
        self.status = status
        self.permanent = permanent
        self.retry_after = retry_after
        self.may_have_acted = may_have_acted


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that was begun, or a direct chat that was found."""

    conversation: str
    activity_id: str = ""
    """Of the message it was begun with, if any."""


class Connector(Protocol):
    """Speaks to the Bot Connector as this bot, within its rate limits. Every method raises `ConnectorFailed`.

    412, 429, 502 and 504 are tried again with jitter within `patience` seconds, as Microsoft asks for.
    """

    async def send(
        self, location: TeamsLocation, activity: Activity, *, only_for: str = "", patience: float = PATIENCE
    ) -> str:
        """Post an activity; its id, empty where Teams gives none (all but the first of a stream). `only_for`: address
        (`29:…`) of the one person who sees it (a targeted message)."""
        ...

    async def update(
        self,
        location: TeamsLocation,
        activity_id: str,
        activity: Activity,
        *,
        targeted: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """Replace what a message shows. `targeted`: it is one that a single person sees."""
        ...

    async def delete(
        self, location: TeamsLocation, activity_id: str, *, targeted: bool = False, patience: float = PATIENCE
    ) -> None:
        """Take a message away. `targeted`: it is one that a single person sees."""
        ...

    async def open_chat(self, location: TeamsLocation, *, patience: float = PATIENCE) -> Opened:
        """The direct chat with `location.user`. Refused (403) when they have not installed the app."""
        ...

    async def open_thread(self, location: TeamsLocation, activity: Activity, *, patience: float = PATIENCE) -> Opened:
        """Begin a thread in the channel `location.conversation` with a message."""
        ...

    async def member(self, location: TeamsLocation, user: str, *, patience: float = PATIENCE) -> Mapping[str, Any]:
        """A member of a conversation by object id or address: `id`, `name`, `aadObjectId`, `email`, `tenantId`,
        `userRole`, `userPrincipalName`."""
        ...

    async def members(
        self, location: TeamsLocation, most: int, *, patience: float = PATIENCE
    ) -> Sequence[Mapping[str, Any]]:
        """The first `most` members of a conversation."""
        ...
