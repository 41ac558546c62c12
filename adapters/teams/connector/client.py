"""The Bot Connector as this bot: rate limits, retries in order, and the verbs of `adapters.teams.api.Connector`."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakValueDictionary

import structlog

from adapters.shared.untrusted_json import parts, words
from adapters.teams.api import PATIENCE, Activity, ConnectorFailed, Opened
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.addresses import is_local, service_url
from adapters.teams.connector.tokens import ConnectorTokens
from adapters.teams.connector.wire import RETRIED, CallOptions, ConnectorHttpClient, Operation
from adapters.teams.ids import TeamsLocation

Kind = Literal["sending", "reading", "opening"]
_WRITING = ((7, 1.0), (8, 2.0), (60, 30.0), (1_800, 3_600.0))
WINDOWS: dict[Kind, tuple[tuple[int, float], ...]] = {
    "sending": _WRITING,
    "opening": _WRITING,
    "reading": ((14, 1.0), (16, 2.0), (120, 30.0), (3_600, 3_600.0)),
}
"""Operations in seconds: sending to a conversation, creating one, getting its members."""
_LONGEST_WINDOW = 3_600.0
_MANY = 1_000
"""Lines remembered before those that lie idle are forgotten."""


@dataclass(frozen=True, slots=True)
class Line:
    """Calls that Teams counts together."""

    kind: Kind
    thread: str
    """Conversation id; each thread of a channel has its own."""


@dataclass(slots=True)
class _State:
    times: deque[float]
    """When the newest calls went out, or will; as many as the largest window holds."""
    paused_until: float = field(default=0.0)


class RateLimits:
    """Gives every call its time, first come, first served. Times are seconds on the caller's clock; nothing waits."""

    def __init__(self) -> None:
        self._states: dict[Line, _State] = {}

    def reserve(self, line: Line, now: float, until: float) -> float:
        """The time at which the call may go out; one that is later than `until` is not kept for it."""
        state = self._state(line, now)
        at = max(now, state.paused_until)
        for most, seconds in WINDOWS[line.kind]:
            if len(state.times) >= most:
                at = max(at, state.times[-most] + seconds)
        if at <= until:
            state.times.append(at)
        return at

    def pause(self, line: Line, until: float) -> None:
        """Teams asked to wait: nobody in this line may call before then."""
        state = self._state(line, until)
        state.paused_until = max(state.paused_until, until)

    def paused_until(self, line: Line) -> float:
        """The time before which nobody in this line may call, whatever was reserved before."""
        state = self._states.get(line)
        return state.paused_until if state else 0.0

    def _state(self, line: Line, now: float) -> _State:
        state = self._states.get(line)
        if state is None:
            if len(self._states) >= _MANY:
                self._forget_idle(now)
            most = max(most for most, _ in WINDOWS[line.kind])
            state = self._states[line] = _State(deque(maxlen=most))
        return state

    def _forget_idle(self, now: float) -> None:
        def counts(state: _State) -> bool:
            return state.paused_until > now or bool(state.times and state.times[-1] + _LONGEST_WINDOW > now)

        self._states = {line: state for line, state in self._states.items() if counts(state)}


# -------------------------------------------------------------------------- calls, with their retries

log = structlog.get_logger(__name__)
REQUEST_SECONDS = 10.0
"""What one try may take, from connecting to the last byte."""
REPEATABLE = frozenset({"update", "delete", "open_chat", "member", "members"})
"""What may be done twice: whatever reads, and whatever does the same the second time."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class ConnectorRequest:
    """What is to be done at the Bot Connector."""

    verb: str
    location: TeamsLocation
    line: Line
    operation: Operation
    query: Mapping[str, str] = field(default_factory=dict)


class Calling:
    """Makes the calls, and makes them again where that is right. `close` in the end.

    Calls that write to one conversation go out one after the other, in the order in which they were asked for; a try
    that is to be repeated holds the others back.
    """

    def __init__(
        self,
        config: TeamsConfig,
        tokens: ConnectorTokens,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._tokens = tokens
        self._wire = ConnectorHttpClient()
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._limits = RateLimits()
        self._queues: WeakValueDictionary[Line, asyncio.Lock] = WeakValueDictionary()

    async def run(self, request: ConnectorRequest, patience: float) -> Any:
        """What was answered. Raises `ConnectorFailed`, at once where it would have to wait for longer than that."""
        deadline = self._clock() + patience
        # Reading has no order to keep.
        queue = nullcontext() if request.line.kind == "reading" else self._in_order(request, deadline)
        async with queue:
            return await self._try(request, deadline)

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def _try(self, request: ConnectorRequest, deadline: float) -> Any:
        tries, renewed = 0, False
        while True:
            await self._turn(request, deadline)
            token = await self._token(request, deadline)
            call = CallOptions(request.verb, token, min(self._left(request, deadline), REQUEST_SECONDS), request.query)
            try:
                return await self._wire.exchange(self._service(request), call, request.operation)
            except ConnectorFailed as failure:
                if failure.status == 401 and token and not renewed:
                    self._tokens.refused(token)
                    renewed = True
                    continue
                pause = self._pause(failure, tries)
                if failure.status == 429:
                    self._limits.pause(request.line, self._clock() + pause)
                if not _may_repeat(failure):
                    raise
                if self._clock() + pause >= deadline:
                    failure.retry_after = pause if failure.status == 429 else failure.retry_after
                    raise
                tries += 1
                log.info("teams_call_retried", verb=request.verb, error=failure.error, tries=tries)
            await self._sleep(pause)

    @asynccontextmanager
    async def _in_order(self, request: ConnectorRequest, deadline: float) -> AsyncIterator[None]:
        """Wait until those that were asked for before are done with."""
        queue = self._queues.get(request.line)
        if queue is None:
            queue = self._queues[request.line] = asyncio.Lock()
        try:
            async with asyncio.timeout(self._left(request, deadline)):
                await queue.acquire()
        except TimeoutError:
            raise ConnectorFailed(request.verb, "ratelimited", retry_after=1.0) from None
        try:
            yield
        finally:
            queue.release()

    async def _turn(self, request: ConnectorRequest, deadline: float) -> None:
        """Wait until this call may go out."""
        while True:
            now = self._clock()
            at = self._limits.reserve(request.line, now, deadline)
            if at > deadline:
                raise ConnectorFailed(request.verb, "ratelimited", retry_after=at - now)
            if at > now:
                await self._sleep(at - now)
            if self._limits.paused_until(request.line) <= max(at, self._clock()):
                return

    async def _token(self, request: ConnectorRequest, deadline: float) -> str:
        """What to speak with. Local clients are answered as they came: without a token."""
        if self._config.local_unauthenticated and is_local(self._service(request)):
            return ""
        try:
            async with asyncio.timeout(self._left(request, deadline)):
                return await self._tokens.token()
        except TimeoutError:
            raise ConnectorFailed(request.verb, "no_token") from None
        except ConnectorFailed as failure:
            # A secret that is refused today may be set right tomorrow: what is to be posted is kept until then.
            raise ConnectorFailed(request.verb, "no_token", retry_after=failure.retry_after) from failure

    def _service(self, request: ConnectorRequest) -> str:
        """Where to. TeamsLocations come from activities that were admitted, or have no address."""
        url = service_url(request.location.service_url or self._config.cloud.service_url)
        if not url:
            raise ConnectorFailed(request.verb, "service_url", permanent=True)
        return url

    def _left(self, request: ConnectorRequest, deadline: float) -> float:
        left = deadline - self._clock()
        if left <= 0:
            raise ConnectorFailed(request.verb, "timeout")
        return left

    def _pause(self, failure: ConnectorFailed, tries: int) -> float:
        """Seconds: as many as Teams asks for, or doubling; more of them by chance, so that many do not come back at
        the same moment."""
        if failure.retry_after is not None:
            return failure.retry_after + self._jitter() * _FIRST_PAUSE
        longest: float = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        return longest * (0.5 + self._jitter() / 2)


def _may_repeat(failure: ConnectorFailed) -> bool:
    """Posting twice is worse than posting late."""
    if failure.permanent or failure.status == 401:
        return False
    return failure.status in RETRIED or not failure.may_have_acted or failure.verb in REPEATABLE


# ----------------------------------------------------------------------------------------- the client

MOST_IN_A_PAGE = 500
"""Members (Teams: `pageSize` is 50 to 500)."""


class BotConnector:
    """Knows how Teams wants to be asked; `calling` does the asking. `close` in the end."""

    def __init__(
        self,
        config: TeamsConfig,
        tokens: ConnectorTokens,
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
