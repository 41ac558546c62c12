"""What people do on the page: verified by the door, parsed here, given to the desk. No decisions are made here."""

from __future__ import annotations

import re

from aiohttp import web

from adapters.web.bodies import (
    AnswerBody,
    ClickBody,
    DecisionBody,
    HandoverBody,
    MessageBody,
    OutcomeBody,
    SignInBody,
    checked_text,
    read_body,
)
from adapters.web.config import WebConfig
from adapters.web.door import Visitor, json_answer
from adapters.web.hub import Hub
from adapters.web.refusal import RefusalError
from adapters.web.render import click_json, form_json, grants_json, message_json, threads_json
from bot.clock import Clock
from bot.platform import Desk
from bot.vocabulary import (
    AlreadySettled,
    ClickResult,
    Decision,
    Form,
    FormAnswer,
    Handover,
    Invalid,
    Message,
    MessageView,
    OutcomeChoice,
    Place,
    Refused,
    Settled,
    SignInReply,
    Unknown,
)
from policies.grants import DURATIONS

_THREAD = re.compile(r"web:[A-Za-z0-9_-]{1,80}")
_STATUS: dict[type[ClickResult], int] = {Settled: 200, AlreadySettled: 409, Refused: 403, Unknown: 404, Invalid: 422}


def thread_id_of(text: str) -> str:
    """A thread of this page. Raises `RefusalError` (404): other platforms' threads are none of ours."""
    if not _THREAD.fullmatch(text):
        raise RefusalError(404, "There is no such conversation here.")
    return text


class Inbound:
    """The page's actions, one method each."""

    def __init__(self, config: WebConfig, desk: Desk, hub: Hub, clock: Clock) -> None:
        self._config = config
        self._desk = desk
        self._hub = hub
        self._clock = clock

    async def threads(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/threads`."""
        return json_answer(threads_json(await self._desk.threads("web")))

    async def message(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/threads/{id}/messages`: kept durably when this answers 202; other open pages see it at once."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, MessageBody)
        message = Message(
            key=f"{thread_id}:{body.id}",
            place=Place("web", key=thread_id, address={"thread": thread_id}, direct=True, has_threads=True),
            author=visitor.person,
            text=checked_text(body.text),
            at=self._clock(),
        )
        accepted = await self._desk.accept(message)
        if accepted:
            view = MessageView(message.key, message.author.name, message.author.person_id, message.text, message.at)
            self._hub.publish(thread_id, "message", message_json(view))
            self._hub.threads_changed()
        return json_answer({"accepted": accepted}, status=202)

    async def decide(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/approvals/decisions`: always 200: a click may settle one and be late for another."""
        body = await read_body(request, DecisionBody)
        decision = Decision(
            key=_click_key(body.id, visitor),
            person=visitor.person,
            approval_ids=tuple(dict.fromkeys(body.approvals)),
            verb=body.verb,
            reason=body.reason,
            arguments=body.values,
            always_for=DURATIONS[body.always_for] if body.always_for else None,
        )
        results = await self._desk.decide(decision)
        return json_answer({"results": {approval_id: click_json(result) for approval_id, result in results.items()}})

    async def hand_over(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/approvals/{id}/handover`: the desk says whether both may decide."""
        body = await read_body(request, HandoverBody)
        known = self._config.person(body.to)
        name = known.name if known else ""
        handover = Handover(_click_key(body.id, visitor), visitor.person, _id_of(request), body.to, name)
        return click_answer(await self._desk.hand_over(handover))

    async def take_back(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/approvals/{id}/withdrawal`: by the requester; the desk says who that is."""
        body = await read_body(request, ClickBody)
        key = _click_key(body.id, visitor)
        return click_answer(await self._desk.take_back(key, _id_of(request), visitor.person))

    async def grants(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/grants`: the visitor's own."""
        return json_answer(grants_json(await self._desk.grants(visitor.person)))

    async def revoke(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`DELETE /api/grants/{id}`."""
        return click_answer(await self._desk.revoke(_id_of(request), visitor.person))

    async def form(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/approvals/{id}/form`."""
        form = await self._desk.edit_form(_id_of(request), visitor.person)
        return json_answer(form_json(form)) if isinstance(form, Form) else click_answer(form)

    async def answer(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/clarifications/{id}/answer`."""
        body = await read_body(request, AnswerBody)
        answer = FormAnswer(_click_key(body.id, visitor), visitor.person, _id_of(request), body.values)
        return click_answer(await self._desk.answer(answer))

    async def outcome(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/outcomes/{id}`."""
        body = await read_body(request, OutcomeBody)
        choice = OutcomeChoice(_click_key(body.id, visitor), visitor.person, _id_of(request), body.choice)
        return click_answer(await self._desk.settle_outcome(choice))

    async def sign_in_link(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`GET /api/sign-ins/{id}/link`: for its owner alone; the desk says who that is."""
        link = await self._desk.sign_in_link(_id_of(request), visitor.person)
        return json_answer({"url": link}) if isinstance(link, str) else click_answer(link)

    async def sign_in_reply(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/sign-ins/{id}`."""
        body = await read_body(request, SignInBody)
        reply = SignInReply(_click_key(body.id, visitor), visitor.person, _id_of(request), body.done)
        return click_answer(await self._desk.sign_in_reply(reply))

    async def stop(self, request: web.Request, visitor: Visitor) -> web.Response:
        """`POST /api/threads/{id}/stop`."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, ClickBody)
        return click_answer(await self._desk.stop(_click_key(body.id, visitor), thread_id, visitor.person))


def click_answer(result: ClickResult) -> web.Response:
    """The answer to one click: its kind as the status too, and `error` wherever nothing was changed."""
    body = click_json(result)
    if not isinstance(result, Settled):
        body["error"] = body["text"]
    return json_answer(body, status=_STATUS[type(result)])


def _click_key(client_id: str, visitor: Visitor) -> str:
    return f"web:{client_id}:{visitor.person.person_id}"


def _id_of(request: web.Request) -> str:
    text = request.match_info["id"]
    if len(text) > 500 or "\0" in text or not text.isprintable():
        raise RefusalError(404, "There is no such thing here.")
    return text
