"""The calls that wait for their requesters: parked, each with its session and its request open in this process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from adapters.tool_servers.replies import SessionLost, broke_off
from graph.ports import (
    BrokeOff,
    Caller,
    Failed,
    Given,
    NotSent,
    Progress,
    QuestionPut,
    Ready,
    SignInNeeded,
    ToolOutcome,
)
from policies.model import Tool

if TYPE_CHECKING:
    from adapters.tool_servers.talks import Talk

log = structlog.get_logger(__name__)

MOST_PARKED = 16
"""Calls of one server that wait at the same time; the one that waits longest gives way."""

MOST_LINKS = 1_000
"""Links that are remembered in case the server says that they were used."""

LAST_WORDS = 2.0
"""Seconds to tell a server that its question will not be answered."""

Completed = Callable[[str], Awaitable[None]]
"""Told the id of a call whose link was used, as the server says. It may wait no more."""


@dataclass(frozen=True, slots=True)
class _Parked:
    talk: Talk
    alarm: asyncio.TimerHandle


class WaitingCalls:
    """Keeps calls in the middle, by their ids. `patience`: seconds that one may wait."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._parked: OrderedDict[str, _Parked] = OrderedDict()
        self._links: OrderedDict[tuple[str, str | None, str], str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._completed: Completed | None = None

    def connect(self, completed: Completed) -> None:
        """Whom to tell that a link was used."""
        self._completed = completed

    def park(self, talk: Talk) -> None:
        """Keep a call that has put a question."""
        call_id, server = talk.caller.call_id, talk.tool.server
        self.give_up(call_id)
        of_server = [each for each, parked in self._parked.items() if parked.talk.tool.server == server]
        if len(of_server) >= MOST_PARKED:
            self.give_up(of_server[0])
        alarm = asyncio.get_running_loop().call_later(self._patience, self.give_up, call_id)
        self._parked[call_id] = _Parked(talk, alarm)

    def prepared(
        self, tool: Tool, arguments: dict[str, Any], caller: Caller
    ) -> Ready | QuestionPut | SignInNeeded | None:
        """The call that waits under this id, ready to go on; what it asked, as long as nobody has answered; `None`:
        none waits."""
        parked = self._parked.get(caller.call_id)
        if parked is None:
            return None
        talk = parked.talk
        if not talk.is_of(tool, arguments, caller.person):
            self.give_up(caller.call_id)  # it is another call now
            return None
        if talk.is_over:  # it did not wait for the answer
            if not tool.repeatable:
                return Ready(partial(self._go_on, parked, None), goes_on=True)
            self._take(caller.call_id)
            return None
        put = talk.put
        given = next((given for given in caller.answers[-1:] if put and given.number == put.number), None)
        if given is None:
            return put  # asked again before it was answered: it is the same question
        return Ready(partial(self._go_on, parked, given), goes_on=True)

    async def _go_on(self, parked: _Parked, given: Given | None, progress: Progress) -> ToolOutcome:
        talk = parked.talk
        call_id = talk.caller.call_id
        if self._parked.get(call_id) is not parked:
            return waits_no_more(talk.tool)
        self._take(call_id)
        if given is not None:
            await talk.answer(given)
        outcome = await self.outcome_of(talk, progress)
        match outcome:
            case NotSent(reason=reason):  # of the call, it was
                return broke_off(talk.tool.server, reason)
            case SessionLost(otherwise=otherwise):
                return otherwise
            case _:
                return outcome

    async def outcome_of(self, talk: Talk, progress: Progress) -> ToolOutcome | NotSent | SessionLost:
        """Go on with a call; it is parked when it puts a question."""
        outcome = await talk.go_on(progress)
        if isinstance(outcome, SignInNeeded):
            self._expect(outcome, talk)
        if talk.put is not None:
            self.park(talk)
        return outcome

    def _expect(self, outcome: SignInNeeded, talk: Talk) -> None:
        """Remember a link that the server may speak of again."""
        if outcome.elicitation_id:
            bearer = talk.connection.bearer
            owner = bearer.person if bearer else None
            self._links[talk.tool.server, owner, outcome.elicitation_id] = talk.caller.call_id
            if len(self._links) > MOST_LINKS:
                self._links.popitem(last=False)

    def link_was_used(self, server: str, owner: str | None, elicitation_id: str) -> None:
        """The server, in a session of `owner` (`None`: in everybody's), says that the link was used."""
        call_id = self._links.pop((server, owner, elicitation_id), None)
        if call_id is not None and self._completed is not None:
            self._do(self._tell(self._completed, call_id))

    def give_up(self, call_id: str) -> None:
        """Nobody will answer: the call is ended."""
        if parked := self._take(call_id):
            self._do(_end(parked.talk))

    async def close(self) -> None:
        """End all of them."""
        for call_id in list(self._parked):
            self.give_up(call_id)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORDS)

    def _take(self, call_id: str) -> _Parked | None:
        parked = self._parked.pop(call_id, None)
        if parked is not None:
            parked.alarm.cancel()
        return parked

    def _do(self, errand: Any) -> None:
        task = asyncio.create_task(errand, name="waiting-call")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, completed: Completed, call_id: str) -> None:
        try:
            await completed(call_id)
        except Exception:
            # of the house's records; the person can still say it themselves
            log.exception("completed_link_not_told", call_id=call_id)


def when_made_anew(tool: Tool, caller: Caller) -> Failed | BrokeOff | None:
    """What comes of a call whose question was answered, but which waits no more; `None`: it may be made anew.

    Nothing says whether the tool acted before it asked, or did when it was told that nobody answers. So only one that
    may be repeated is called again, until somebody says that it shall be tried again (`Caller.over`).
    """
    if len(caller.answers) <= caller.over:
        return None
    if not tool.repeatable:
        return waits_no_more(tool)
    if caller.answers[-1].action != "accept":
        return Failed(f"The question of {tool.server} was not answered, so {tool.full_name} was not called again.")
    return None


def waits_no_more(tool: Tool) -> BrokeOff:
    """The outcome of a call that put a question, and was gone when the answer came."""
    return BrokeOff(
        f"{tool.server} asked something in the middle of the call, and was not there any more for the answer: whether "
        "it did something is not known."
    )


async def _end(talk: Talk) -> None:
    try:
        async with asyncio.timeout(LAST_WORDS):
            await talk.end()
    except TimeoutError:
        log.info("tool_server_not_told_of_cancellation", server=talk.tool.server)


def nobody(message: str, fraction: float | None) -> None:
    """Progress that nobody waits for."""
