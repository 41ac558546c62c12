"""A message from a program, and what comes of it: accepted durably, then waited for, whichever replica handles it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from adapters.api.endings import stopped
from adapters.api.operations import ApiCall
from adapters.api.thread_names import ThreadNames
from adapters.shared.live.board import LiveBoard
from adapters.shared.live.hub import EndedError, Hub, Reader
from adapters.shared.problems import Problem
from adapters.shared.requests import is_there
from adapters.shared.token_watch import ENDED, TokenWatch
from bot.accounts.codes import codes_among
from bot.agent_choices import AgentChoices
from bot.conversations import Conversations, TurnState, no_conversation
from bot.crypto import random_token
from bot.domain import Clock, ConversationReference, Message, MessageView
from bot.files import Files, UploadRefused
from bot.identity.principal import Principal
from bot.inbox import Inbox
from bot.limits import Beginnings, Window
from bot.services import Services
from bot.task_threads import turn_of_call

LONGEST_TEXT = 20_000
"""Characters of a message, as on the page."""
LONGEST_WAIT = 300.0
"""Seconds that one request may wait for an answer."""
LOOK_SECONDS = 0.5
"""Seconds until the first look at a turn of which nothing is heard: another replica may handle it."""
LONGEST_LOOK_SECONDS = 2.0
"""Between two of them, in the end."""
WHILE_WRITTEN = (b"event: text", b"event: status")
"""What is heard while an answer is being written begins so: nothing of it is in the records."""


ShowMessage = Callable[[str, MessageView], None]
"""Shows open pages of a thread what somebody has written."""


class ApiTurns:
    """Begins turns for programs, and waits for them.

    Args:
        names: tells which thread a caller means.
        watch: ends waiting with the token of whoever waits.
        show_message: shows open pages what was written.
        messages_a_minute: that one person may begin turns with; 0: no limit.
    """

    def __init__(
        self,
        services: Services,
        hub: Hub,
        board: LiveBoard,
        clock: Clock,
        beginnings: Beginnings,
        *,
        names: ThreadNames,
        watch: TokenWatch,
        show_message: ShowMessage,
        messages_a_minute: int,
    ) -> None:
        self._inbox: Inbox = services.inbox
        self._conversations: Conversations = services.conversations
        self._agents: AgentChoices = services.agents
        self._files: Files = services.files
        self.is_stopped: Callable[[], bool] = services.console.halts.is_on.is_set
        """Whether an operator has stopped everything."""
        self.hub = hub
        self.board = board
        self._clock = clock
        self._beginnings = beginnings
        self._watch = watch
        self.thread_of = names.thread_of
        self._show_message = show_message
        self._messages_a_minute = messages_a_minute

    async def send(
        self,
        principal: Principal,
        thread_id: str,
        text: str,
        *,
        key: str = "",
        options: Mapping[str, Any] | None = None,
        agent: str | None = None,
        files: Sequence[str] = (),
    ) -> str:
        """Keep a message; returns its key, and when it is on disk.

        Args:
            key: the caller's own for it: the same one again is the same message, whose text must be the same.
            agent: name of the one that is to work on it; `None`: none in particular.
            files: ids of what was uploaded for it.

        Raises `Problem`: 400, 404, 409, 413, 422, 429.
        """
        if not text.strip() and not files:
            raise Problem(400, "The message is empty.")
        if len(text) > LONGEST_TEXT:
            raise Problem(413, f"The message has {len(text):,} characters; at most {LONGEST_TEXT:,} are accepted.")
        if agent is not None and agent not in self._agents.names:
            raise Problem(400, f"agent: there is none of that name. There are: {', '.join(self._agents.names)}.")
        owners = await self._conversations.owners_to_write(thread_id, principal.person)
        if owners is None:
            raise Problem(404, no_conversation().text)
        message_key = self.key_of(thread_id, key) if key else f"{thread_id}:{random_token()[:32]}"
        if key and await self._is_known(message_key, thread_id, text):
            return message_key
        try:
            handed_over = await self._files.references(principal.person.person_id, files, message_key) if files else ()
        except UploadRefused as refused:
            raise Problem(409, refused.sentence) from None
        pace = Window(f"api-messages:{principal.person.person_id}", self._messages_a_minute)
        if full := await self._beginnings.count(message_key, [pace]):
            most = f"{self._messages_a_minute} messages"
            raise Problem(429, f"At most {most} are accepted per minute.", retry_after=full.wait)
        message = Message(
            key=message_key,
            place=ConversationReference(
                "web", key=thread_id, address={"thread": thread_id}, direct=True, has_threads=True
            ),
            author=principal.person,
            text=text,
            at=self._clock(),
            via="api",
            options=options or {},
            agent=agent or "",
            owners=owners | principal.person_ids,
            files=handed_over,
        )
        if await self._inbox.accept(message):
            # The inbox keeps a one-time code out of everybody's sight.
            if not codes_among(text) or await self._conversations.message(thread_id, message_key) is not None:
                author, names = message.author, tuple(file.name for file in handed_over)
                view = MessageView(message.key, author.name, author.person_id, message.text, message.at, files=names)
                self._show_message(thread_id, view)
        elif await self._conversations.owners_to_write(thread_id, principal.person) is None:
            raise Problem(404, no_conversation().text)
        else:  # another request with this key may have come between
            await self._is_known(message_key, thread_id, text)
        return message_key

    @staticmethod
    def key_of(thread_id: str, key: str) -> str:
        """The key of a message that is sent with the caller's own key."""
        return f"{thread_id}:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"

    async def _is_known(self, message_key: str, thread_id: str, text: str) -> bool:
        """Whether a message was kept before. Raises `Problem` (422) when it was another one."""
        before = await self._conversations.message(thread_id, message_key)
        if before is not None and before.text != text:
            raise Problem(422, "This Idempotency-Key was used for another message.")
        return before is not None

    async def state(self, principal: Principal, thread_id: str, key: str) -> TurnState:
        """Where the turn of a message stands. Raises `Problem` (404)."""
        if await self._conversations.owners_for(thread_id, principal.person) is None:
            raise Problem(404, no_conversation().text)
        found = await self._conversations.turn(thread_id, key, principal.person_ids)
        if found is None:
            raise Problem(404, "There’s no such message here.")
        return found

    async def newest_state(self, principal: Principal, thread_id: str) -> TurnState | None:
        """Where the turn stands that a message would go on with, if it goes on with one; `None`: there was none. Raises
        `Problem` (404)."""
        newest = await self._conversations.newest_message(thread_id)
        if newest is None:
            return None
        state = await self.state(principal, thread_id, newest)
        turns = {turn_of_call(view.call_id) for view in state.clarifications} - {state.delivery}
        return await self.state(principal, thread_id, turns.pop()) if turns else state

    async def leave(self, principal: Principal, thread_id: str, key: str) -> None:
        """Whoever began a turn with a message does not want to know what comes of it any more: no further call begins
        in it from now on, and it is stopped once none is being made. What others have begun in the thread goes on."""
        turn = (await self.state(principal, thread_id, key)).delivery
        await self._inbox.begin_no_calls(thread_id, turn)
        while True:
            state = await self.state(principal, thread_id, key)
            is_making = any(call.status == "running" for call in state.calls)
            if state.status == "ended" or (state.status == "waiting" and is_making):
                return  # a call that asks something in the middle goes on with the answer
            if not is_making:
                break
            await asyncio.sleep(LOOK_SECONDS)
        if not await self._inbox.withdraw(key):  # it was being handled by then, or is
            await self._inbox.stop(f"left:{key}", thread_id, principal.person, newest=key, accounts=principal.accounts)

    async def answered(self, call: ApiCall, thread_id: str, key: str, wait: float) -> TurnState:
        """As `settled`, for a caller that wants the answer. Raises `Problem` (503) as soon as an operator has stopped
        everything, too: nobody knows when it will go on."""
        state = await self.settled(call, thread_id, key, wait, unless=self.is_stopped)
        if state.status == "running" and self.is_stopped():
            raise stopped(thread_id, key)
        return state

    async def settled(
        self, call: ApiCall, thread_id: str, key: str, wait: float, *, unless: Callable[[], bool] = lambda: False
    ) -> TurnState:
        """Where it stands when it has ended or waits for people, or after `wait` seconds, or when whoever asked has
        gone away. Raises `Problem`, also (401) when the token does not count any more.

        Waiting costs next to nothing: one statement when something was heard, and else less and less often.

        Args:
            unless: nothing is waited for any more once this is true.
        """
        principal, until = call.principal, time.monotonic() + min(wait, LONGEST_WAIT)
        async with self.watching(principal, thread_id) as reader:
            state = await self.state(principal, thread_id, key)
            with self._watch.watched(principal) as token:

                def is_waited_for() -> bool:
                    is_wanted = not token.is_over and is_there(call.request) and not unless()
                    return is_wanted and time.monotonic() < until

                while state.status == "running" and is_waited_for():
                    every = LOOK_SECONDS
                    while is_waited_for():
                        is_heard = await _heard(reader, min(every, until - time.monotonic()))
                        if await self._conversations.is_at_rest(thread_id, key):
                            break
                        every = LOOK_SECONDS if is_heard else min(every * 1.5, LONGEST_LOOK_SECONDS)
                    if token.is_over or await self._watch.is_over(principal):
                        raise Problem(401, ENDED)
                    state = await self.state(principal, thread_id, key)
        return state

    async def marks(self, thread_id: str, key: str, turn: str) -> object:
        """What is another value when `state` would say something else than before. It costs next to nothing, and does
        not look whose the turn is."""
        return await self._conversations.marks(thread_id, key, turn)

    @asynccontextmanager
    async def watching(self, principal: Principal, thread_id: str) -> AsyncIterator[Reader]:
        """Hears of a thread from now on. Whose it is was checked before."""
        session = random_token()
        with self.hub.reading(thread_id, principal.person.person_id, session, sees_all=True) as reader:
            yield reader


async def changed(reader: Reader, within: float) -> bytes | None:
    """Waits until something was heard of a thread, or for so many seconds. Returns what was heard first. Raises
    `Problem` (503) when nothing is heard here any more."""
    try:
        return await reader.next(within)
    except EndedError:
        raise Problem(503, "This process is shutting down. Try again.", retry_after=1) from None


async def _heard(reader: Reader, within: float) -> bool:
    """Waits for so many seconds, or until something is heard that stands in the records. Returns whether it was."""
    until = time.monotonic() + within
    while (left := until - time.monotonic()) > 0:
        frame = await changed(reader, left)
        if frame is not None and not frame.startswith(WHILE_WRITTEN):
            return True
    return False
