"""The Bot Connector as this bot speaks to it: a few verbs, with JSON in and out as Teams documents it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast
from weakref import WeakValueDictionary

from adapters.shared.calls import CallFailed, Calls, PauseExchange, Windows
from adapters.shared.untrusted_json import parts, words
from adapters.teams.config import TeamsConfig, is_local, service_url
from adapters.teams.connector.tokens import ConnectorTokens
from adapters.teams.connector.wire import CallOptions, ConnectorHttpClient
from adapters.teams.ids import Activity, TeamsLocation

CALL_SECONDS = 20.0
"""Seconds that a call may take with its waits and tries, where nobody waits for it."""
AT_ONCE = 3.0
"""Seconds where somebody does: Teams waits 5 s for the answer to an invoke."""
REQUEST_SECONDS = 10.0
"""What one try may take, from connecting to the last byte."""
_OPERATIONS = {
    "send": "send_to_conversation",
    "update": "update_activity",
    "delete": "delete_activity",
    "open_chat": "create_conversation",
    "open_thread": "create_conversation",
    "member": "get_conversation_member",
    "members": "get_conversation_paged_members",
}
"""What the SDK calls our verbs."""
REPEATABLE = frozenset({"update", "delete", "open_chat", "member", "members"})
RateKind = Literal["sending", "reading", "opening"]
_WRITING = ((7, 1.0), (8, 2.0), (60, 30.0), (1_800, 3_600.0))
WINDOWS: dict[RateKind, tuple[tuple[int, float], ...]] = {
    "sending": _WRITING,
    "opening": _WRITING,
    "reading": ((14, 1.0), (16, 2.0), (120, 30.0), (3_600, 3_600.0)),
}
"""Operations in seconds: sending to a conversation, creating one, getting its members."""
MOST_IN_A_PAGE = 500
"""Members (Teams: `pageSize` is 50 to 500)."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that was begun, or a direct chat that was found."""

    conversation: str
    activity_id: str = ""
    """Id of the message that began it, if there was one."""


class Line(NamedTuple):
    """What Teams counts together."""

    kind: RateKind
    thread: str
    """Conversation id; each thread of a channel has its own."""


def pace_of(line: Hashable) -> Windows:
    """Returns how fast the calls of a line may follow each other."""
    kind, _ = cast(Line, line)  # of another process, it is a plain tuple
    return Windows(*WINDOWS[kind])


class BotConnector:
    """Speaks to the Bot Connector as this bot, within its rate limits. Every verb raises `CallFailed`. `close` in the
    end.

    412, 429, 502 and 504 are tried again with jitter within `patience` seconds, as Microsoft asks for. Calls that write
    to one conversation go out one after the other, in the order in which they were asked for; a try that is to be
    repeated holds the others back.
    """

    def __init__(
        self,
        config: TeamsConfig,
        tokens: ConnectorTokens,
        *,
        exchange: PauseExchange | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._http = ConnectorHttpClient()
        self._calls = Calls(
            "teams",
            pace_of,
            repeatable=REPEATABLE,
            pauses=(0.5, 8.0),
            spread=0.5,
            exchange=exchange,
            clock=clock,
            sleep=sleep,
            jitter=jitter,
        )
        self._queues: WeakValueDictionary[Line, asyncio.Lock] = WeakValueDictionary()

    # ------------------------------------------------------------------------------------------- verbs

    async def send(
        self, location: TeamsLocation, activity: Activity, *, only_for: str = "", patience: float = CALL_SECONDS
    ) -> str:
        """Post an activity. Returns its id, empty where Teams gives none (all but the first of a stream).

        Args:
            only_for: Address (`29:…`) of the one person who sees it (a targeted message).
        """
        outgoing = self._outgoing(location, activity)
        if only_for:
            outgoing["recipient"] = {"id": only_for}
        return words(await self._write("send", location, [outgoing], patience, targeted=bool(only_for)), "id")

    async def update(self, location: TeamsLocation, activity_id: str, activity: Activity) -> None:
        """Replace what a message shows; not one that a single person sees."""
        outgoing = self._outgoing(location, activity) | {"id": activity_id}
        await self._write("update", location, [activity_id, outgoing])

    async def delete(self, location: TeamsLocation, activity_id: str, *, targeted: bool = False) -> None:
        """Take a message away. `targeted`: it is one that a single person sees."""
        await self._write("delete", location, [activity_id], targeted=targeted)

    async def open_chat(self, location: TeamsLocation, *, patience: float = CALL_SECONDS) -> Opened:
        """Returns the direct chat with `location.user`, which is not made anew where there is one. Refused (403) when
        they have not installed the app."""
        asked = {
            "isGroup": False,
            "bot": self._ourselves,
            "members": [{"id": location.user}],
            "tenantId": location.tenant,
            "channelData": {"tenant": {"id": location.tenant}},
        }
        return await self._open("open_chat", location, location.user, asked, patience)

    async def open_thread(self, location: TeamsLocation, activity: Activity) -> Opened:
        """Begin a thread in the channel `location.conversation` with a message."""
        asked = {
            "isGroup": True,
            "bot": self._ourselves,
            "tenantId": location.tenant,
            "channelData": {"channel": {"id": location.conversation}, "tenant": {"id": location.tenant}},
            "activity": {"from": self._ourselves, **activity},
        }
        return await self._open("open_thread", location, location.conversation, asked, CALL_SECONDS)

    async def member(self, location: TeamsLocation, user: str, *, patience: float = CALL_SECONDS) -> Mapping[str, Any]:
        """Returns a member of a conversation, asked for by object id or address: `id`, `name`, `aadObjectId`, `email`,
        `tenantId`, `userRole`, `userPrincipalName`."""
        return await self._read("member", location, [user], patience)

    async def members(
        self, location: TeamsLocation, most: int, *, patience: float = CALL_SECONDS
    ) -> Sequence[Mapping[str, Any]]:
        """Returns the first `most` members of a conversation."""
        until = self._calls.clock() + patience
        found: list[Mapping[str, Any]] = []
        following: str | None = None
        while len(found) < most:
            size = min(most - len(found), MOST_IN_A_PAGE)
            page = await self._read("members", location, [size, following], until - self._calls.clock())
            found += parts(page, "members")
            following = words(page, "continuationToken") or None
            if following is None:
                break
        return found[:most]

    # ------------------------------------------------------------------------------------------- around them

    def facts(self) -> Mapping[str, Any]:
        """Returns facts for `/health-check`."""
        return {"connected": self._tokens.connected, "token_failure": self._tokens.failure}

    async def close(self) -> None:
        """Close the connections. The tokens are closed by who made them."""
        await self._http.close()

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

    async def _open(
        self,
        verb: str,
        location: TeamsLocation,
        with_whom: str,
        asked: Mapping[str, Any],
        patience: float = CALL_SECONDS,
    ) -> Opened:
        line = Line("opening", with_whom)
        answer = await self._run(verb, location, line, [asked], patience)
        conversation = words(answer, "id")
        if not conversation:
            raise CallFailed(verb, "bad_answer", may_have_acted=True)
        return Opened(conversation, words(answer, "activityId"))

    async def _write(
        self,
        verb: str,
        location: TeamsLocation,
        arguments: Sequence[Any],
        patience: float = CALL_SECONDS,
        *,
        targeted: bool = False,
    ) -> Any:
        line, arguments = Line("sending", location.conversation), [location.conversation, *arguments]
        return await self._run(verb, location, line, arguments, patience, targeted=targeted)

    async def _read(
        self, verb: str, location: TeamsLocation, arguments: Sequence[Any], patience: float
    ) -> dict[str, Any]:
        line, arguments = Line("reading", location.conversation), [location.conversation, *arguments]
        answer = await self._run(verb, location, line, arguments, patience)
        if not isinstance(answer, dict):
            raise CallFailed(verb, "bad_answer")
        return answer

    async def _run(
        self,
        verb: str,
        location: TeamsLocation,
        line: Line,
        arguments: Sequence[Any],
        patience: float,
        *,
        targeted: bool = False,
    ) -> Any:
        deadline = self._calls.clock() + patience
        # Locations come from activities that were admitted, or have no address.
        url = service_url(location.service_url or self._config.cloud.service_url)
        if not url:
            raise CallFailed(verb, "service_url", permanent=True)
        query = {"isTargetedActivity": "true"} if targeted else {}

        async def send(token: str, seconds: float) -> Any:
            call = CallOptions(verb, token, min(seconds, REQUEST_SECONDS), query)
            return await self._http.exchange(url, call, _OPERATIONS[verb], arguments)

        async def renewed(failure: CallFailed, token: str) -> bool:
            if failure.status != 401 or not token:
                return False
            self._tokens.refused(token)
            return True

        # Reading has no order to keep.
        async with nullcontext() if line.kind == "reading" else self._in_order(verb, line, deadline):
            return await self._calls.run(
                verb, line, deadline, send, token=lambda: self._token(verb, url), renewed=renewed
            )

    @asynccontextmanager
    async def _in_order(self, verb: str, line: Line, deadline: float) -> AsyncIterator[None]:
        """Wait until those that were asked for before are done with."""
        queue = self._queues.get(line)
        if queue is None:
            queue = self._queues[line] = asyncio.Lock()
        try:
            async with asyncio.timeout(self._calls.left(verb, deadline)):
                await queue.acquire()
        except TimeoutError:
            raise CallFailed(verb, "ratelimited", retry_after=1.0) from None
        try:
            yield
        finally:
            queue.release()

    async def _token(self, verb: str, url: str) -> str:
        """What to speak with. Local clients are answered as they came: without a token."""
        if self._config.local_unauthenticated and is_local(url):
            return ""
        try:
            return await self._tokens.token()
        except CallFailed as failure:
            # A secret that is refused today may be set right tomorrow: what is to be posted is kept until then.
            raise CallFailed(verb, "no_token", retry_after=failure.retry_after) from failure
