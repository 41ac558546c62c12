"""The Bot Connector as this bot: `adapters.teams.api.Connector`."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from adapters.shared.untrusted_json import parts, words
from adapters.teams.api import PATIENCE, Activity, ConnectorFailed, Opened
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.calling import Calling, ConnectorRequest
from adapters.teams.connector.rate_limits import Line
from adapters.teams.connector.tokens import Tokens
from adapters.teams.ids import TeamsLocation

MOST_IN_A_PAGE = 500
"""Members (Teams: `pageSize` is 50 to 500)."""


class BotConnector:
    """Knows how Teams wants to be asked; `calling` does the asking. `close` in the end."""

    def __init__(
        self,
        config: TeamsConfig,
        tokens: Tokens,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._clock = clock
        self._calling = Calling(config, tokens, clock=clock, sleep=sleep, jitter=jitter)

    # ------------------------------------------------------------------------------------------- verbs

    async def send(
        self, location: TeamsLocation, activity: Activity, *, only_for: str = "", patience: float = PATIENCE
    ) -> str:
        """Post an activity; its id, empty where Teams gives none. `only_for`: the one person who sees it (`29:…`)."""
        outgoing = self._outgoing(location, activity)
        if only_for:
            outgoing["recipient"] = {"id": only_for}
        request = ConnectorRequest(
            "send",
            location,
            Line("sending", location.conversation),
            lambda bot, how: bot.send_to_conversation(location.conversation, outgoing, **how),
            _query(targeted=bool(only_for)),
        )
        return words(await self._calling.run(request, patience), "id")

    async def update(
        self,
        location: TeamsLocation,
        activity_id: str,
        activity: Activity,
        *,
        targeted: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        """Replace what a message shows."""
        outgoing = self._outgoing(location, activity) | {"id": activity_id}
        request = ConnectorRequest(
            "update",
            location,
            Line("sending", location.conversation),
            lambda bot, how: bot.update_activity(location.conversation, activity_id, outgoing, **how),
            _query(targeted=targeted),
        )
        await self._calling.run(request, patience)

    async def delete(
        self, location: TeamsLocation, activity_id: str, *, targeted: bool = False, patience: float = PATIENCE
    ) -> None:
        """Take a message away."""
        request = ConnectorRequest(
            "delete",
            location,
            Line("sending", location.conversation),
            lambda bot, how: bot.delete_activity(location.conversation, activity_id, **how),
            _query(targeted=targeted),
        )
        await self._calling.run(request, patience)

    async def open_chat(self, location: TeamsLocation, *, patience: float = PATIENCE) -> Opened:
        """The direct chat with `location.user`, which is not made anew where there is one."""
        asked = {
            "isGroup": False,
            "bot": self._ourselves,
            "members": [{"id": location.user}],
            "tenantId": location.tenant,
            "channelData": {"tenant": {"id": location.tenant}},
        }
        return await self._open("open_chat", location, location.user, asked, patience)

    async def open_thread(self, location: TeamsLocation, activity: Activity, *, patience: float = PATIENCE) -> Opened:
        """Begin a thread in the channel `location.conversation` with a message."""
        asked = {
            "isGroup": True,
            "bot": self._ourselves,
            "tenantId": location.tenant,
            "channelData": {"channel": {"id": location.conversation}, "tenant": {"id": location.tenant}},
            "activity": {"from": self._ourselves, **activity},
        }
        return await self._open("open_thread", location, location.conversation, asked, patience)

    async def member(self, location: TeamsLocation, user: str, *, patience: float = PATIENCE) -> Mapping[str, Any]:
        """A member of a conversation by object id or address."""
        request = ConnectorRequest(
            "member",
            location,
            Line("reading", location.conversation),
            lambda bot, how: bot.get_conversation_member(location.conversation, user, **how),
        )
        return _object("member", await self._calling.run(request, patience))

    async def members(
        self, location: TeamsLocation, most: int, *, patience: float = PATIENCE
    ) -> Sequence[Mapping[str, Any]]:
        """The first `most` members of a conversation."""
        until = self._clock() + patience
        found: list[Mapping[str, Any]] = []
        following: str | None = None
        while len(found) < most:
            size = min(most - len(found), MOST_IN_A_PAGE)
            page = await self._page(location, size, following, until - self._clock())
            found += parts(page, "members")
            following = words(page, "continuationToken") or None
            if following is None:
                break
        return found[:most]

    # ------------------------------------------------------------------------------------------- around them

    def facts(self) -> Mapping[str, Any]:
        """For `/health-check`."""
        return {"connected": self._tokens.connected, "token_failure": self._tokens.failure}

    async def close(self) -> None:
        """Close the connections. The tokens are closed by who made them."""
        await self._calling.close()

    # ------------------------------------------------------------------------------------------- how

    @property
    def _ourselves(self) -> Mapping[str, str]:
        return {"id": f"28:{self._config.app_id}" if self._config.app_id else "bot"}

    def _outgoing(self, location: TeamsLocation, activity: Activity) -> dict[str, Any]:
        return {
            "channelId": "msteams",
            "from": self._ourselves,
            "conversation": {
                "id": location.conversation,
                "conversationType": location.kind,
                "tenantId": location.tenant,
            },
            **activity,
        }

    async def _page(
        self, location: TeamsLocation, size: int, following: str | None, patience: float
    ) -> Mapping[str, Any]:
        request = ConnectorRequest(
            "members",
            location,
            Line("reading", location.conversation),
            lambda bot, how: bot.get_conversation_paged_members(location.conversation, size, following, **how),
        )
        return _object("members", await self._calling.run(request, patience))

    async def _open(
        self, verb: str, location: TeamsLocation, with_whom: str, asked: Mapping[str, Any], patience: float
    ) -> Opened:
        request = ConnectorRequest(
            verb, location, Line("opening", with_whom), lambda bot, how: bot.create_conversation(asked, **how)
        )
        answer = await self._calling.run(request, patience)
        conversation = words(answer, "id")
        if not conversation:
            raise ConnectorFailed(verb, "bad_answer", may_have_acted=True)
        return Opened(conversation, words(answer, "activityId"))


def _query(*, targeted: bool) -> Mapping[str, str]:
    return {"isTargetedActivity": "true"} if targeted else {}


def _object(verb: str, answer: object) -> Mapping[str, Any]:
    if not isinstance(answer, dict):
        raise ConnectorFailed(verb, "bad_answer")
    return answer
