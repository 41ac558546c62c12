"""What people do on the page: parsed here and given to the services, which decide. Whoever asks was checked before
(`adapters.web.access`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from adapters.shared import actions
from adapters.shared.clicks import Act, settle
from adapters.shared.live.entries import (
    agents_json,
    argument_page_json,
    click_json,
    connections_json,
    decided_json,
    form_json,
    grants_json,
    hidden_json,
    memories_json,
    passage,
    threads_json,
    total_json,
    usage_json,
)
from adapters.shared.requests import BodyNotReadError
from adapters.shared.uploads import take_upload
from adapters.web.access import PageVisitor, json_answer
from adapters.web.bodies import (
    AgentBody,
    AnswerBody,
    ClickBody,
    CodeBody,
    DecisionBody,
    DismissalBody,
    HandoverBody,
    MessageBody,
    OutcomeBody,
    RefusalError,
    SignInBody,
    TitleBody,
    checked_text,
    read_body,
)
from adapters.web.sender import WebSender
from bot.accounts.codes import codes_among
from bot.agent_choices import is_unknown
from bot.conversations import no_conversation
from bot.domain import (
    AlreadySettled,
    ClickResult,
    Clock,
    CodeEntry,
    ConversationReference,
    Decision,
    FileReference,
    Form,
    FormAnswer,
    Handover,
    Hidden,
    Invalid,
    Message,
    MessageView,
    OutcomeView,
    Refused,
    Settled,
    SignInView,
    Unknown,
)
from bot.files import BUSY_SECONDS, UploadRefused
from bot.queries import no_approval
from bot.services import Services
from policies.approvers import DURATIONS
from translations import gettext as _

LONGEST_SEARCH = 100
"""Characters that can be searched for."""
_LONGEST_PAGE = 9
"""Digits of a page's number."""
_THREAD = re.compile(r"web:[A-Za-z0-9_-]{1,80}")


def _page_of(request: web.Request) -> int:
    """Which page is wanted, from 0. Raises `RefusalError` (400)."""
    page = request.query.get("page", "0")
    if not (page.isascii() and page.isdecimal() and len(page) <= _LONGEST_PAGE):
        raise RefusalError(400, "page: a number from 0.")
    return int(page)


def nothing_here() -> str:
    """Returns what is said of what is not there, or not for whoever asks."""
    return _("There’s nothing here.")


def thread_id_of(text: str) -> str:
    """A thread of this page. Raises `RefusalError` (404): other platforms' threads are none of ours."""
    if not _THREAD.fullmatch(text):
        raise RefusalError(404, no_conversation().text)
    return text


class PageActions:
    """What the page asks for and does, one method each."""

    def __init__(self, sender: WebSender, services: Services, clock: Clock) -> None:
        self._sender = sender
        self._services = services
        self._clock = clock

    async def threads(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/threads`: the visitor's own; with `of=everybody`, those of everybody, for operators."""
        if request.query.get("of") != "everybody":
            return json_answer(threads_json(await self._services.conversations.owned(visitor.person)))
        threads = await self._services.conversations.of_everybody(visitor.person)
        if threads is None:
            raise RefusalError(404, nothing_here())
        return json_answer(threads_json(threads))

    async def search(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/threads/search?text=…`: the visitor's own in which that is said."""
        text = request.query.get("text", "").strip()
        if not text or len(text) > LONGEST_SEARCH or not text.isprintable():
            raise RefusalError(400, _("Type 1 to {most} characters.").format(most=LONGEST_SEARCH))
        search = await self._services.conversations.search(visitor.person, text)
        return json_answer({**threads_json(search.found), "is_whole": search.is_whole})

    async def rename(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/threads/{id}/title`: by its owner."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, TitleBody)
        accounts = await self._services.conversations.accounts_of(visitor.person)
        result = await self._services.inbox.rename(thread_id, body.title, accounts)
        return self._changed(thread_id, result)

    async def delete(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/threads/{id}/deletion`: by its owner. Pages that show it are told that there is no such one."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, ClickBody)
        accounts = await self._services.conversations.accounts_of(visitor.person)
        key = click_key(body.id, visitor)
        result = await self._services.inbox.delete(key, thread_id, visitor.person, accounts)
        return self._changed(thread_id, result)

    def _changed(self, thread_id: str, result: ClickResult) -> web.Response:
        """The answer to what changes a conversation as such, which the pages that show it are told of."""
        if isinstance(result, Settled):
            self._sender.thread_changed(thread_id)
        return click_answer(result)

    async def message(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/threads/{id}/messages`: kept durably when this answers 202; other open pages see it at once."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, MessageBody)
        key = f"{thread_id}:{body.id}"
        handed_over = await self._handed_over(visitor, body.files, key)
        message = Message(
            key=key,
            place=ConversationReference(
                "web", key=thread_id, address={"thread": thread_id}, direct=True, has_threads=True
            ),
            author=visitor.person,
            text="" if handed_over and not body.text.strip() else checked_text(body.text),
            at=self._clock(),
            owners=frozenset([visitor.person.person_id]),
            files=handed_over,
        )
        if codes_among(message.text):  # which is taken before anybody asks whose conversation it is
            message = await self._of_its_owner(message)
        accepted = await self._services.inbox.accept(message)
        if not accepted:
            # Only then: mostly people write in what they have begun, under the account that they write with.
            accepted = await self._services.inbox.accept(await self._of_its_owner(message))
        taken = bool(codes_among(message.text)) and not await self._is_shown(message)
        if accepted and not taken:
            view = MessageView(
                message.key,
                message.author.name,
                message.author.person_id,
                message.text,
                message.at,
                files=tuple(file.name for file in handed_over),
            )
            self._sender.show_message(thread_id, view)
        return json_answer({"accepted": accepted} | ({"taken": True} if taken else {}), status=202)

    async def _handed_over(
        self, visitor: PageVisitor, ids: Sequence[str], message_key: str
    ) -> tuple[FileReference, ...]:
        """What the visitor uploaded and sends now. Raises `RefusalError` (409)."""
        try:
            return await self._services.files.references(visitor.person.person_id, ids, message_key) if ids else ()
        except UploadRefused as refused:
            raise RefusalError(409, refused.sentence) from None

    async def upload(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/files?name=…`: the body is a file, which is read now and handed over with a message later."""
        try:
            row = await take_upload(request, self._services.files, visitor.person.person_id)
        except BodyNotReadError as error:
            raise RefusalError(error.status, str(error)) from None
        except UploadRefused as refused:
            if refused.is_busy:
                raise RefusalError(503, refused.sentence, retry_after=BUSY_SECONDS) from None
            raise RefusalError(409, refused.sentence) from None
        return json_answer({"id": row.file_id, "name": row.name, "size": row.size, "reason": row.reason}, status=201)

    async def pick_agent(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/agent`: which agent works on what the visitor writes on the page from now on."""
        body, person_id = await read_body(request, AgentBody), visitor.person.person_id
        if await self._services.agents.pick(person_id, "", body.name) is None:
            raise RefusalError(404, is_unknown(body.name, self._services.agents.names))
        return json_answer({"agents": agents_json(await self._services.agents.listed(person_id, ""))})

    async def _of_its_owner(self, message: Message) -> Message:
        """The message, with all accounts of its author. Raises `RefusalError` (404): the conversation is another's."""
        owners = await self._services.conversations.owners_for(message.place.key, message.author)
        if owners is None:
            raise RefusalError(404, no_conversation().text)
        return replace(message, owners=owners)

    async def _is_shown(self, message: Message) -> bool:
        """Whether it became a message in its thread: the inbox keeps a one-time code out of everybody's sight."""
        return await self._services.queries.message(message.place.key, message.key) is not None

    async def decide(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/approvals/decisions`: the result of each by its id; about one alone, its kind is the status too.

        About several it is 200 when at least one was settled: a click may settle one and be late for another. Else it
        is the status of the first.
        """
        body = await read_body(request, DecisionBody)
        decision = Decision.alike(
            click_key(body.id, visitor),
            visitor.person,
            body.approvals,
            body.verb,
            reason=body.reason,
            note=body.note,
            arguments=body.values,
            always_for=DURATIONS[body.always_for] if body.always_for else None,
        )
        results = await self._services.approvals.decide(decision)
        return clicks_answer(await self._if_seen(results, visitor))

    async def _if_seen(self, results: Mapping[str, ClickResult], visitor: PageVisitor) -> Mapping[str, ClickResult]:
        """The answers to clicks on approvals: of what was settled by others, those alone hear who see it, since it may
        be somebody else's conversation, or one that was deleted. Whoever may decide sees what they decide."""
        settled = [approval_id for approval_id, result in results.items() if isinstance(result, AlreadySettled)]
        if not settled:
            return results
        seen = await self._services.conversations.seen_among(settled, visitor.person)
        return {
            approval_id: result if approval_id in seen or approval_id not in settled else no_approval()
            for approval_id, result in results.items()
        }

    async def together(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/approvals/{id}/together`: the ids of those that wait in its thread and that the visitor may decide
        now. Whoever may not is not offered to; it is judged again at the click."""
        return json_answer({"decides": await self._services.queries.decidable_with(id_of(request), visitor.person)})

    async def decided(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/approvals/decided`: what the visitor has decided lately, the latest first."""
        own = await self._services.queries.decided_by(visitor.person)
        return json_answer(await asyncio.to_thread(decided_json, own))  # each may take milliseconds

    async def arguments(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/approvals/{id}/arguments?page=N`: a page of arguments that are too long for a card; `N` from 0."""
        page = _page_of(request)
        view = await self._services.conversations.card(id_of(request), visitor.person)
        if isinstance(view, Unknown):
            return click_answer(view)
        return json_answer(argument_page_json(view.arguments, page))

    async def outcome_arguments(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/outcomes/{id}/arguments?page=N`: likewise, of a card of this page that the visitor may see."""
        page = _page_of(request)
        for shown in await self._services.queries.shown(id_of(request)):
            post = shown.post
            is_shown = post.place.platform == "web" and post.only_for in {None, visitor.person.person_id}
            if not is_shown or not isinstance(post.content, OutcomeView):
                continue
            if await self._services.conversations.owners_for(post.thread_id, visitor.person) is not None:
                return json_answer(argument_page_json(post.content.arguments, page))
        return click_answer(Unknown(nothing_here()))

    async def grant_arguments(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/grants/{id}/arguments?page=N`: likewise, of the visitor's own."""
        page = _page_of(request)
        grant = await self._services.queries.standing_approval(id_of(request), visitor.person)
        return (
            click_answer(grant)
            if isinstance(grant, Unknown)
            else json_answer(argument_page_json(grant.arguments, page))
        )

    async def colleagues(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/approvals/{id}/colleagues`: whom the visitor can ask to decide it, each with `id` and `name`; none
        where they may not ask."""
        config = self._sender.config
        local = tuple(each.person_id for each in config.people) if config.login == "local" else ()
        found = await self._services.approvals.colleagues(id_of(request), visitor.person, local)
        return json_answer({"colleagues": [{"id": each.person_id, "name": each.name} for each in found]})

    async def hand_over(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/approvals/{id}/handover`: the service judges whether both may decide."""
        body = await read_body(request, HandoverBody)
        name = await self._sender.name_of(body.to) or ""
        handover = Handover(click_key(body.id, visitor), visitor.person, id_of(request), body.to, name)
        return click_answer(await self._services.approvals.hand_over(handover))

    async def retry(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/approvals/{id}/retry`: its requester has a call that failed proposed once more."""
        body = await read_body(request, ClickBody)
        return await self._settled(request, visitor, actions.RETRY, body.id)

    async def take_back(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/approvals/{id}/withdrawal`: by the requester; the service knows who that is."""
        body = await read_body(request, ClickBody)
        return await self._settled(request, visitor, actions.WITHDRAW, body.id)

    async def grants(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/grants`: the visitor's own."""
        own = await self._services.queries.standing_approvals(visitor.person)
        return json_answer(await asyncio.to_thread(grants_json, own))  # each may take milliseconds

    async def revoke(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/grants/{id}`."""
        return await self._settled(request, visitor, actions.REVOKE)

    async def form(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/approvals/{id}/form`."""
        form = await self._services.approvals.edit_form(id_of(request), visitor.person)
        if not isinstance(form, Form):
            return click_answer(form)
        # A hundred long values full of what cannot be seen take a fifth of a second.
        return json_answer(await asyncio.to_thread(form_json, form))

    async def look(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/approvals/{id}/look`: what is hidden in it, for this visitor alone; the service judges
        whether they may. No `GET`, since the audit log says that they did."""
        await read_body(request, ClickBody)
        hidden = await self._services.approvals.reveal(id_of(request), visitor.person)
        return json_answer(hidden_json(hidden)) if isinstance(hidden, Hidden) else click_answer(hidden)

    async def answer(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/clarifications/{id}/answer`."""
        body = await read_body(request, AnswerBody)
        answer = FormAnswer(click_key(body.id, visitor), visitor.person, id_of(request), body.values)
        return await self._told(await self._services.questions.answer(answer), request, visitor)

    async def dismiss(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/clarifications/{id}/dismissal`: no answer to a tool's question."""
        body = await read_body(request, DismissalBody)
        return await self._told(await self._settle(request, visitor, body.action, body.id), request, visitor)

    async def outcome(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/outcomes/{id}`."""
        body = await read_body(request, OutcomeBody)
        return await self._told(await self._settle(request, visitor, body.choice, body.id), request, visitor)

    async def stop(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/threads/{id}/stop`."""
        thread_id = thread_id_of(request.match_info["id"])
        body = await read_body(request, ClickBody)
        if await self._services.conversations.owners_for(thread_id, visitor.person) is None:
            raise RefusalError(404, no_conversation().text)
        accounts = await self._services.conversations.accounts_of(visitor.person)
        return click_answer(
            await self._services.inbox.stop(click_key(body.id, visitor), thread_id, visitor.person, accounts=accounts)
        )

    async def link(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/sign-ins/{id}/link`, with what the server says of it: for its owner alone; the
        service knows who that is."""
        link = await self._services.sign_in_links.link(id_of(request), visitor.person.person_id)
        if not isinstance(link, str):
            return await self._told(link, request, visitor)
        shown = await self._services.queries.shown(id_of(request))
        view = shown[0].post.content if shown else None
        said = view.message if isinstance(view, SignInView) and view.owner_id == visitor.person.person_id else ""
        return json_answer({"url": link, "message": passage(said)})

    async def reply(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/sign-ins/{id}`: "I have signed in", or "Not now"."""
        body = await read_body(request, SignInBody)
        action = actions.SIGNED_IN if body.done else actions.NOT_NOW
        return await self._told(await self._settle(request, visitor, action, body.id), request, visitor)

    async def code(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/sign-ins/{id}/code`: what the browser showed in the end."""
        body = await read_body(request, CodeBody)
        result = await self._settle(request, visitor, actions.ENTER_CODE, body.id, body.code)
        return await self._told(result, request, visitor)

    async def memories(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/memories`: what is remembered of the visitor."""
        memories = self._services.memories
        return json_answer(memories_json(await memories.of_person(visitor.person.person_id), is_on=memories.is_on))

    async def forget(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/memories/{id}`: doing it twice is doing it once."""
        return await self._settled(request, visitor, actions.FORGET)

    async def forget_all(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/memories`."""
        return click_answer(await self._services.memories.forget_all(visitor.person.person_id))

    async def stop_remembering(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/memories/off`: forgets everything, too."""
        await read_body(request, ClickBody)
        return click_answer(await self._services.memories.stop_remembering(visitor.person.person_id))

    async def start_remembering(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/memories/on`."""
        await read_body(request, ClickBody)
        return click_answer(await self._services.memories.start_remembering(visitor.person.person_id))

    async def usage(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/usage`: what the visitor has used of language models."""
        return json_answer(usage_json(await self._services.usage.own(visitor.person)))

    async def usage_of_answer(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/usage/{id}`: what the turn of an answer has used; for whose turn it is, and operators."""
        found = await self._services.usage.of_answer(request.match_info["id"], visitor.person)
        if found is None:
            return json_answer({"usage": None})
        return json_answer({"usage": total_json(found.total), "currency": found.currency})

    async def connections(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`GET /api/connections`: the visitor's own, and at which services they can connect one."""
        accounts = self._services.connections
        own, code_wanted = await accounts.of_person(visitor.person), await accounts.waits_for_code(visitor.person)
        return json_answer(connections_json(own, accounts.to_connect(own), code_wanted=code_wanted))

    async def connect_link(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/connections/{provider}/link`: for the visitor alone, before anything needs the account."""
        person = visitor.person
        links, provider = self._services.sign_in_links, id_of(request, "provider")
        link = await links.connect_link(person.person_id, provider, person.name)
        return json_answer({"url": link}) if isinstance(link, str) else click_answer(link)

    async def connection_code(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`POST /api/connections/code`: what the browser showed in the end, where nothing waits for the account."""
        body = await read_body(request, CodeBody)
        entry = CodeEntry(click_key(body.id, visitor), visitor.person, body.code)
        return click_answer(await self._services.connections.enter_code(entry))

    async def disconnect(self, request: web.Request, visitor: PageVisitor) -> web.Response:
        """`DELETE /api/connections/{id}`: doing it twice is doing it once."""
        return await self._settled(request, visitor, actions.DISCONNECT)

    async def _settled(
        self, request: web.Request, visitor: PageVisitor, action: str, click_id: str = ""
    ) -> web.Response:
        return click_answer(await self._settle(request, visitor, action, click_id))

    async def _settle(
        self, request: web.Request, visitor: PageVisitor, action: str, click_id: str, typed: str = ""
    ) -> ClickResult:
        key = click_key(click_id, visitor)
        act = Act(action, key, visitor.person, id_of(request), lambda _name: typed, lambda _form: {})
        return await settle(self._services, act)

    async def _told(self, result: ClickResult, request: web.Request, visitor: PageVisitor) -> web.Response:
        """The answer to a click in a conversation: in somebody else's there is nothing to click on."""
        is_theirs = isinstance(result, (Settled, Unknown)) or await self._services.conversations.holds_for(
            id_of(request), visitor.person
        )
        return click_answer(result if is_theirs else Unknown(nothing_here()))


# --------------------------------------------- clicks: their key, the id in their address, the answer

_STATUS: dict[type[ClickResult], int] = {Settled: 200, AlreadySettled: 409, Refused: 403, Unknown: 404, Invalid: 422}


def click_answer(result: ClickResult) -> web.Response:
    """The answer to one click: its kind as the status too, and `error` wherever nothing was changed."""
    body = click_json(result)
    if not isinstance(result, Settled):
        body["error"] = body["text"]
    return json_answer(body, status=_STATUS[type(result)])


def clicks_answer(results: Mapping[str, ClickResult]) -> web.Response:
    """The answer to a click on several, by id; what each came to is in `results`."""
    body: dict[str, Any] = {"results": {subject: click_json(result) for subject, result in results.items()}}
    if not results or any(isinstance(result, Settled) for result in results.values()):
        return json_answer(body)
    first = next(iter(results.values()))
    told = click_json(first)
    return json_answer(body | told | {"error": told["text"]}, status=_STATUS[type(first)])


def click_key(client_id: str, visitor: PageVisitor) -> str:
    """The click's identity: the same one sent twice by the same person is the same."""
    return f"web:{client_id}:{visitor.person.person_id}"


def id_of(request: web.Request, name: str = "id") -> str:
    """The id in the address. Raises `RefusalError` (404): what cannot be one names nothing."""
    text = request.match_info[name]
    if len(text) > 500 or "\0" in text or not text.isprintable():
        raise RefusalError(404, nothing_here())
    return text
