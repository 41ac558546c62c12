"""`/api/v1/threads` and what is below it."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from adapters.api.events import ThreadEvents
from adapters.api.models import (
    ListQuery,
    NewMessageBody,
    ThreadDetailShape,
    ThreadListShape,
    ThreadShape,
    TurnShape,
    WaitQuery,
)
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.results import SAME_KEY, ResultShape, click_key, idempotency_key, settled
from adapters.api.thread_names import THREAD_PREFIX, new_thread_id
from adapters.api.turns import ApiTurns
from adapters.shared.live.entries import entry_json
from adapters.shared.problems import Problem
from adapters.shared.server_sent import EVENT_STREAM
from bot.conversations import no_conversation
from bot.domain import ConversationReference, Refused, Unknown
from bot.services import Services
from bot.task_threads import is_task_thread

LONGEST_ID = 200


class ThreadResources:
    """Conversations of whoever asks, and their messages."""

    def __init__(self, services: Services, turns: ApiTurns, events: ThreadEvents) -> None:
        self._services = services
        self._turns = turns
        self._events = events

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        thread = "/api/v1/threads/{id}"
        idempotency = {"Idempotency-Key": "The same key again, with the same text, is the same message."}
        last = {"Last-Event-ID": "Id of the last event that you have: only what came after it is sent."}
        return [
            Operation(
                "GET",
                "/api/v1/threads",
                "listThreads",
                "Lists your conversations, the one in which something happened last first.",
                self.list,
                {200: Answer("Your conversations.", ThreadListShape)},
                query=ListQuery,
                tag="threads",
            ),
            Operation(
                "POST",
                "/api/v1/threads",
                "createThread",
                "Begins a conversation.",
                self.create,
                {201: Answer("The conversation.", ThreadShape, headers={"Location": "Where it is."})},
                scope="run",
                tag="threads",
            ),
            Operation(
                "GET",
                thread,
                "getThread",
                "Shows a conversation with what was said in it.",
                self.get,
                {200: Answer("The conversation.", ThreadDetailShape)},
                tag="threads",
            ),
            Operation(
                "POST",
                f"{thread}/messages",
                "sendMessage",
                "Sends a message, and waits for what comes of it.",
                self.send,
                {
                    200: Answer("The turn has ended.", TurnShape),
                    202: Answer("The turn runs, or waits for people.", TurnShape),
                },
                scope="run",
                body=NewMessageBody,
                query=WaitQuery,
                headers=idempotency,
                waits=True,
                tag="threads",
            ),
            Operation(
                "GET",
                f"{thread}/messages/{{message_id}}",
                "getTurn",
                "Shows what has come of a message.",
                self.turn,
                {200: Answer("The turn.", TurnShape)},
                query=WaitQuery,
                waits=True,
                tag="threads",
            ),
            Operation(
                "POST",
                f"{thread}/stop",
                "stopThread",
                "Stops what runs, or waits for people, in a conversation.",
                self.stop,
                {200: Answer("It is stopped.", ResultShape)},
                scope="run",
                headers=SAME_KEY,
                problems=(409,),
                tag="threads",
            ),
            Operation(
                "GET",
                f"{thread}/events",
                "streamThread",
                "Streams what is in a conversation, and what happens in it.",
                self.stream,
                {200: Answer("Events until you go away.", media=EVENT_STREAM)},
                headers=last,
                tag="threads",
                description="Events `message` and `post` are entries as in the conversation itself, and have ids; a "
                "post comes again, with a greater `revision`, when it has changed. `text` is a piece of an answer that "
                "is being written (`n` counts the pieces; with `whole` it is all of it so far), which the post with "
                "the id `said:{message_id}` replaces. `status` says in one line what the bot is doing.",
            ),
        ]

    async def list(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/threads`."""
        query, person = call.query(ListQuery), call.principal.person
        conversations = self._services.conversations
        if query.everybody:
            found = await conversations.of_everybody(person, query.limit)
            if found is None:
                raise Problem(403, "Only operators can see other people’s conversations.")
        else:
            found = await conversations.owned(person, query.limit)
        return json_answer(ThreadListShape(threads=[ThreadShape.of(each) for each in found]))

    async def create(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/threads`."""
        thread_id = new_thread_id()
        await self._services.inbox.open(place_of(thread_id), call.principal.person)
        answer = json_answer(ThreadShape(id=thread_id, title="", updated_at=0.0, waiting=0), status=201)
        answer.headers["Location"] = f"/api/v1/threads/{thread_id}"
        return answer

    async def get(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/threads/{id}`."""
        view = await self._services.conversations.view(thread_id_in(call), call.principal.person)
        if view is None or isinstance(view, Unknown):
            raise Problem(404, no_conversation().text)
        entries = [entry_json(entry) for entry in view.entries]
        return json_answer(
            ThreadDetailShape(id=view.thread_id, title=view.title, seen_as=view.seen_as, entries=entries)
        )

    async def send(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/threads/{id}/messages`."""
        body, thread_id = call.body(NewMessageBody), thread_id_in(call)
        if not await self._services.conversations.is_begun(thread_id):
            raise Problem(404, no_conversation().text)
        key = idempotency_key(call)
        message = await self._turns.send(
            call.principal,
            thread_id,
            body.text,
            key=key,
            options=body.options.as_options(),
            agent=body.agent,
            files=body.files,
        )
        state = await self._turns.settled(call, thread_id, message, call.query(WaitQuery).wait)
        shape = TurnShape.of(state, message)
        return json_answer(shape, status=200 if state.status == "ended" else 202)

    async def turn(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/threads/{id}/messages/{message_id}`."""
        thread_id, message = thread_id_in(call), call.path("message_id")
        state = await self._turns.settled(call, thread_id, message, call.query(WaitQuery).wait)
        return json_answer(TurnShape.of(state, message))

    async def stop(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/threads/{id}/stop`."""
        thread_id, person = thread_id_in(call), call.principal.person
        if await self._services.conversations.owners_to_write(thread_id, person) is None:
            raise Problem(404, no_conversation().text)
        result = await self._services.inbox.stop(click_key(call), thread_id, person, accounts=call.principal.person_ids)
        if isinstance(result, Refused):
            raise Problem(409, result.text)
        return json_answer(settled(result))

    async def stream(self, call: ApiCall) -> web.StreamResponse:
        """`GET /api/v1/threads/{id}/events`."""
        return await self._events.serve(call, thread_id_in(call))


def place_of(thread_id: str) -> ConversationReference:
    """Where a conversation of a program is held."""
    return ConversationReference("web", key=thread_id, address={"thread": thread_id}, direct=True, has_threads=True)


def thread_id_in(call: ApiCall) -> str:
    """The thread of the path. Raises `Problem` (404) for what names none of ours."""
    thread_id = call.path("id")
    if not thread_id.startswith(THREAD_PREFIX) or len(thread_id) > LONGEST_ID or not thread_id.isprintable():
        raise Problem(404, no_conversation().text)
    if is_task_thread(thread_id):
        raise Problem(404, no_conversation().text)
    return thread_id
