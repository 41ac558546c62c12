"""Calls in whose course a server asks the requester something (MCP elicitation), and that wait for the answer.

A form that seems to ask for a secret is refused: what is typed into a chat is read by more than its addressee. The
protocol forbids such forms, too, and has links for it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from adapters.tool_servers.listing import LARGEST_SCHEMA, masked_schema
from adapters.tool_servers.outcomes import LONGEST_MESSAGE, RequestId, SessionLost, is_web_link, outcome_unknown
from adapters.tool_servers.returned import told_before
from adapters.tool_servers.text import MaskText, clean, one_line, shorten, without_links
from bot.forms.editing import edit_fields
from bot.forms.inputs import as_json
from bot.schemas.measuring import problem_of
from graph.interrupts import FieldType, FormField, as_far_as_offered
from graph.json_values import not_kept
from graph.ports import (
    Caller,
    Failed,
    Given,
    NotSent,
    OutcomeUnknown,
    Progress,
    QuestionPut,
    Ready,
    SignInNeeded,
    Succeeded,
    ToolOutcome,
)
from policies.model import Tool, canonical_json
from translations import gettext as _

if TYPE_CHECKING:
    from mcp.types import ElicitRequestParams

    from adapters.tool_servers.connection import Connection

log = structlog.get_logger(__name__)
INVALID_PARAMS = -32602
"""Code of JSON-RPC's error."""


@dataclass(frozen=True, slots=True)
class Elicitation:
    """Something a server wants a person to say before it goes on."""

    id: RequestId
    request: RequestId | None
    """The request in whose course it is asked; `None`: the transport does not tell."""
    params: ElicitRequestParams | None
    """`None`: it is not what the protocol prescribes."""
    send: Callable[[dict[str, Any]], Awaitable[None]] = field(repr=False, compare=False)
    """Sends a JSON-RPC message to the server; nothing happens when it is gone."""

    async def answer(self, action: str, values: Mapping[str, Any] | None = None) -> None:
        """Answer it. `action`: accept, decline or cancel; `values`: what was entered into a form that is accepted."""
        result = {"action": action} if values is None else {"action": action, "content": dict(values)}
        await self.send({"jsonrpc": "2.0", "id": self.id, "result": result})

    async def refuse(self) -> None:
        """Say that it is not what the protocol prescribes."""
        error = {"code": INVALID_PARAMS, "message": "Invalid request parameters"}
        await self.send({"jsonrpc": "2.0", "id": self.id, "error": error})


@dataclass(frozen=True, slots=True)
class _Open:
    """What the call waits for."""

    question: Elicitation
    put: QuestionPut | SignInNeeded


class InteractiveCall:
    """One call and its questions, sent at once. `go_on` until it gives an outcome that is no question; then it is
    over."""

    def __init__(
        self, connection: Connection, tool: Tool, arguments: dict[str, Any], caller: Caller, mask: MaskText
    ) -> None:
        self.connection = connection
        self.tool = tool
        self.arguments = arguments
        self.caller = caller
        self._mask = mask
        self._asked = 0
        self.has_asked = False
        """Whether its server has put any question."""
        self._notices: list[str] = []
        self._open: _Open | None = None
        self._call = connection.begin(tool.name, arguments, caller, nobody)

    @property
    def put(self) -> QuestionPut | SignInNeeded | None:
        """What it waits for; `None`: it does not wait."""
        return self._open.put if self._open else None

    @property
    def is_over(self) -> bool:
        """Whether no answer can reach it any more: the server gave up, or is gone."""
        return self._call.answer.done() or self.connection.lost.done()

    def is_of(self, tool: Tool, arguments: dict[str, Any], person: str) -> bool:
        """Whether it is this call, for this person. To JSON, other than to Python, 1 and `true` are two values."""
        mine = (self.tool.full_name, self.tool.schema_hash, self.tool.fingerprint, self.caller.person)
        same = mine == (tool.full_name, tool.schema_hash, tool.fingerprint, person)
        return same and canonical_json(self.arguments) == canonical_json(arguments)

    async def go_on(self, progress: Progress) -> ToolOutcome | NotSent | SessionLost:
        """Wait for the outcome, or for a question that only the requester can answer.

        Raises nothing but `CancelledError`, and then the server was told to stop.
        """
        self._call.progress = progress
        while True:
            happened = await self.connection.advance(self._call)
            if not isinstance(happened, Elicitation):
                return self._noticed(happened)
            self.has_asked = True
            put = await self._read_aside(happened)
            if isinstance(put, QuestionRefused):
                log.warning("tool_server_question_refused", server=self.tool.server, tool=self.tool.name)
                if put.notice not in self._notices:  # one that asks again and again is told of once
                    self._notices.append(put.notice)
                progress(put.notice, None)
                await self._answer(happened, "decline")
            elif given := self._known_answer(put):
                await self._answer(happened, given.action, given)
            else:
                put = self._numbered(put)
                self._open = _Open(happened, put)
                return put

    async def answer(self, given: Given) -> None:
        """Answer what it waits for."""
        if self._open:
            opened, self._open = self._open, None
            link = isinstance(opened.put, SignInNeeded)  # has no values
            await self._answer(opened.question, given.action, None if link else given)

    async def end(self) -> None:
        """The requester will not answer: the server is told so, and nobody waits for the call any more."""
        try:
            if self._open and not self.is_over:
                await self._open.question.answer("cancel")
        finally:
            self.connection.abandon(self._call)

    async def _answer(self, question: Elicitation, action: str, given: Given | None = None) -> None:
        # What comes of it shows in the call: a server that is gone gives it no answer.
        try:
            await question.answer(action, given.values if given and action == "accept" else None)
        except asyncio.CancelledError:
            self.connection.abandon(self._call)
            raise

    async def _read_aside(self, question: Elicitation) -> QuestionPut | SignInNeeded | QuestionRefused:
        # In a thread: a form has thousands of texts to look through for secrets, which takes up to 0.4 s.
        try:
            return await asyncio.to_thread(self._read, question)
        except asyncio.CancelledError:
            self.connection.abandon(self._call)
            raise

    def _read(self, question: Elicitation) -> QuestionPut | SignInNeeded | QuestionRefused:
        # All are counted, whatever they are: after the first one the tool may have acted.
        self._asked += 1
        wanted, server = question.params, self.tool.server
        if wanted is None:
            return QuestionRefused(f"{server} asked something that cannot be read, so nobody was asked.")
        if wanted.mode == "url":
            needed = link_question(server, wanted.message, wanted.url, wanted.elicitationId, self._mask)
            return replace(needed, number=self._asked) if isinstance(needed, SignInNeeded) else needed
        return form_question(server, wanted.message, wanted.requestedSchema, self._asked, self._mask)

    def _known_answer(self, put: QuestionPut | SignInNeeded) -> Given | None:
        """The answer that was given to the very same question before the call had to be made anew."""
        if not isinstance(put, QuestionPut):
            return None
        same = (given for given in self.caller.answers if (given.number, given.digest) == (put.number, put.digest))
        return next(same, None)

    def _numbered(self, put: QuestionPut | SignInNeeded) -> QuestionPut | SignInNeeded:
        """A question that was not asked before gets no number that another one of the same call had."""
        if not isinstance(put, QuestionPut):
            return put
        self._asked = max(self._asked, *(given.number + 1 for given in self.caller.answers), 0)
        return replace(put, number=self._asked)

    def _noticed(self, outcome: ToolOutcome | NotSent | SessionLost) -> ToolOutcome | NotSent | SessionLost:
        """The outcome with what was refused on the way, for the model to pass on."""
        told = " ".join(self._notices)
        if told and isinstance(outcome, Succeeded):
            whole = outcome.whole and f"{told}\n\n{outcome.whole}"
            returned = told_before(told, outcome.returned)
            return replace(outcome, text=f"{told}\n\n{outcome.text}", whole=whole, returned=returned)
        if told and isinstance(outcome, Failed):
            return replace(outcome, text=f"{told} {outcome.text}", returned=told_before(told, outcome.returned))
        if told and isinstance(outcome, OutcomeUnknown):
            return replace(outcome, text=f"{told} {outcome.text}")
        return outcome


MOST_PARKED = 16
"""Calls of one server that wait at the same time; the one that waits longest gives way."""
MOST_LINKS = 1_000
"""Links that are remembered in case the server says that they were used."""
LAST_WORDS = 2.0
"""Seconds to tell a server that its question will not be answered."""
Completed = Callable[[str], Awaitable[None]]
"""Told the id of a call whose link was used, as the server says. It may wait no more."""


class CallingRun(Protocol):
    """The run of a thread in which a call is made, where several processes could run it."""

    async def check(self) -> None:
        """Raises what says so when another process runs the thread by now."""
        ...

    def stay(self, give_up: Callable[[], None]) -> Callable[[], None]:
        """Leave the thread to this process although nothing is left to do in it, until what is returned is called.
        `give_up`: called where that cannot be."""
        ...


class OnlyProcess:
    """The same where there is no other one."""

    async def check(self) -> None:
        """Nobody else runs anything."""

    def stay(self, give_up: Callable[[], None]) -> Callable[[], None]:
        """Nobody else could."""
        return _nothing


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Parked:
    call: InteractiveCall
    alarm: asyncio.TimerHandle
    leave: Callable[[], None]


class WaitingCalls:
    """Keeps calls in the middle, by their ids.

    `patience`: seconds that one may wait. `completed`: told of links that were used. `calling`: who has to stay with
    a call that waits.
    """

    def __init__(self, patience: float, completed: Completed | None = None, calling: CallingRun | None = None) -> None:
        self._patience = patience
        self._calling = calling or OnlyProcess()
        self._parked: OrderedDict[str, _Parked] = OrderedDict()
        self._links: OrderedDict[tuple[str, str | None, str], str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._completed = completed

    def park(self, call: InteractiveCall) -> None:
        """Keep a call that waits for an answer."""
        call_id, server = call.caller.call_id, call.tool.server
        self.give_up(call_id)
        of_server = [each for each, parked in self._parked.items() if parked.call.tool.server == server]
        if len(of_server) >= MOST_PARKED:
            self.give_up(of_server[0])
        alarm = asyncio.get_running_loop().call_later(self._patience, self.give_up, call_id)
        # The server answers over this session, and whoever answers it has to be where that is.
        leave = self._calling.stay(partial(self.give_up, call_id))
        self._parked[call_id] = _Parked(call, alarm, leave)

    def prepared(
        self, tool: Tool, arguments: dict[str, Any], caller: Caller
    ) -> Ready | QuestionPut | SignInNeeded | None:
        """The call that waits under this id, ready to go on; what it asked, as long as nobody has answered; `None`:
        none waits."""
        parked = self._parked.get(caller.call_id)
        if parked is None:
            return None
        call = parked.call
        if not call.is_of(tool, arguments, caller.person):
            self.give_up(caller.call_id)  # it is another call now
            return None
        if call.is_over:  # it did not wait for the answer
            if not tool.repeatable:
                return Ready(partial(self._go_on, parked, None), goes_on=True)
            self._take(caller.call_id)
            return None
        put = call.put
        given = next((given for given in caller.answers[-1:] if put and given.number == put.number), None)
        if given is None:
            return put  # asked again before it was answered: it is the same question
        return Ready(partial(self._go_on, parked, given), goes_on=True)

    async def _go_on(self, parked: _Parked, given: Given | None, progress: Progress) -> ToolOutcome:
        call = parked.call
        call_id = call.caller.call_id
        await self._calling.check()
        if self._parked.get(call_id) is not parked:
            return waits_no_more(call.tool)
        self._take(call_id)
        if given is not None:
            await call.answer(given)
        outcome = await self.outcome_of(call, progress)
        match outcome:
            case NotSent(reason=reason):  # of the call, it was
                return outcome_unknown(call.tool.server, reason)
            case SessionLost(otherwise=otherwise):
                return otherwise
            case _:
                return outcome

    async def outcome_of(self, call: InteractiveCall, progress: Progress) -> ToolOutcome | NotSent | SessionLost:
        """Go on with a call; it is parked when it asks something."""
        outcome = await call.go_on(progress)
        if isinstance(outcome, SignInNeeded):
            self._expect(outcome, call)
        if call.put is not None:
            self.park(call)
        return outcome

    def _expect(self, outcome: SignInNeeded, call: InteractiveCall) -> None:
        """Remember a link that the server may speak of again."""
        if outcome.elicitation_id:
            bearer = call.connection.bearer
            owner = bearer.person if bearer else None
            self._links[call.tool.server, owner, outcome.elicitation_id] = call.caller.call_id
            if len(self._links) > MOST_LINKS:
                self._links.popitem(last=False)

    def link_was_used(self, server: str, owner: str | None, elicitation_id: str) -> None:
        """The server, in a session of `owner` (`None`: in everybody's), says that the link was used."""
        call_id = self._links.pop((server, owner, elicitation_id), None)
        if call_id is not None and self._completed is not None:
            self._in_background(self._tell(self._completed, call_id))

    def give_up(self, call_id: str) -> None:
        """Nobody will answer: the call is ended."""
        if parked := self._take(call_id):
            self._in_background(_end(parked.call))

    def give_up_all(self) -> None:
        """The same of all of them."""
        for call_id in list(self._parked):
            self.give_up(call_id)

    async def close(self) -> None:
        """End all of them, and wait for that."""
        self.give_up_all()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORDS)

    def _take(self, call_id: str) -> _Parked | None:
        parked = self._parked.pop(call_id, None)
        if parked is not None:
            parked.alarm.cancel()
            parked.leave()
        return parked

    def _in_background(self, telling: Any) -> None:
        task = asyncio.create_task(telling, name="waiting-call")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, completed: Completed, call_id: str) -> None:
        try:
            await completed(call_id)
        except Exception:
            # of the records; the person can still say it themselves
            log.exception("completed_link_not_told", call_id=call_id)


def when_made_anew(tool: Tool, caller: Caller) -> Failed | OutcomeUnknown | None:
    """The outcome of a call that ended before its answer came; `None`: it may be sent again.

    Nothing says whether the tool acted before it asked, or did when it was told that nobody answers. So only a
    repeatable tool is called again, unless somebody chose to try again (`Caller.over`).
    """
    if len(caller.answers) <= caller.over:
        return None
    if not tool.repeatable:
        return waits_no_more(tool)
    if caller.answers[-1].action != "accept":
        return Failed(f"{tool.server}’s question wasn’t answered, so {tool.full_name} wasn’t called again.")
    return None


def waits_no_more(tool: Tool) -> OutcomeUnknown:
    """The outcome of a call that asked something, and had ended when the answer came."""
    return OutcomeUnknown(
        f"{tool.server} asked a question during the call and was gone when the answer came. It’s unknown whether it "
        "did anything."
    )


async def _end(call: InteractiveCall) -> None:
    try:
        async with asyncio.timeout(LAST_WORDS):
            await call.end()
    except TimeoutError:
        log.info("tool_server_not_told_of_cancellation", server=call.tool.server)


def nobody(message: str, fraction: float | None) -> None:
    """Progress that nobody waits for."""


MOST_FIELDS = 40
"""Inputs of a form. A Slack modal holds 100 blocks, and nobody answers more."""
LONGEST_TOOL_QUESTION = 2_000
"""Characters."""
LONGEST_READ = 10_000
"""Characters of a question that are looked at; it is masked before it is cut to its length."""
LONGEST_TITLE = 100
"""Characters."""
MOST_OPTIONS = 100
"""Options of a list to choose several from: what Slack's selects hold. With more it is typed."""
_SECRET_WORDS = frozenset(
    {"password", "passwd", "passphrase", "passcode", "pwd", "secret", "secrets", "token", "credential", "credentials"}
    | {"apikey", "privatekey", "pin", "cvv", "cvc", "otp", "totp", "ssn", "iban"}
)
_SECRET_PHRASE = re.compile(
    r"\b(?:pass[ -]?(?:word|phrase|code)s?|api[ _-]?keys?|(?:access|auth|bearer|refresh)[ _-]?tokens?"
    r"|(?:private|secret|access|signing|encryption)[ _-]?keys?|client[ _-]?secret|credit[ _-]?card|card[ _-]?number"
    r"|security[ _-]?code|one[ -]?time[ -]?(?:code|password)|(?:verification|recovery|backup|2fa|mfa)[ _-]?codes?"
    r"|seed[ _-]?phrase|social[ _-]?security|passw[oö]rt|kennwort|mot de passe|contrase[nñ]a"
    r"|(?:your|the|my) (?:pin|token|secret|otp|cvv|cvc|ssn|iban|credentials?|pwd))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class QuestionRefused:
    """A question that is put to nobody."""

    notice: str
    """A sentence for the person and the model that says so."""


def form_question(
    server: str, message: str, schema: Mapping[str, Any], number: int, mask: MaskText
) -> QuestionPut | QuestionRefused:
    """A form as a question to the requester."""
    message = message[:LONGEST_READ]
    problem = _problem(schema)
    if problem:
        return QuestionRefused(f"{server} asked a question that can’t be shown ({problem}), so no one was asked.")
    secret = _asks_for_a_secret(message, schema)
    if secret:
        named = one_line(mask(clean(secret)), 60)
        return QuestionRefused(
            f"{server} asked for what looks like a secret ({named}). Secrets don’t belong in a chat, so "
            "the question was refused and no one was asked."
        )
    # Everybody sees a question, and a link in it may be for one person: for those there is URL elicitation.
    said = shorten(without_links(mask(clean(message))), LONGEST_TOOL_QUESTION)
    shown = _without_links(masked_schema(schema, lambda text: mask(clean(text))))
    return QuestionPut(number, said, _fields(shown), shown)


def link_question(
    server: str, message: str, url: str, elicitation_id: str, mask: MaskText
) -> SignInNeeded | QuestionRefused:
    """A link that a person is asked to open."""
    if not is_web_link(url):
        return QuestionRefused(f"{server} wanted someone to open a link but gave no usable one, so no one was asked.")
    said = mask(clean(message[:LONGEST_READ]))
    return SignInNeeded(url, one_line(said, LONGEST_MESSAGE), elicitation_id)


def _problem(schema: Mapping[str, Any]) -> str | None:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        return "it doesn’t describe a form"
    if len(properties) > MOST_FIELDS:
        return f"it has more than {MOST_FIELDS} fields"
    try:
        if len(json.dumps(schema, allow_nan=False).encode()) > LARGEST_SCHEMA:
            return f"it is larger than {LARGEST_SCHEMA:,} bytes"
    except (TypeError, ValueError, RecursionError):
        return "it isn’t JSON"
    if held := not_kept(schema):
        return f"it holds {held}"
    problem = problem_of(schema)
    return problem and f"its schema {problem}"


def _fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    properties: Mapping[str, Any] = schema["properties"]
    fields, _ = edit_fields(schema, {}, None)
    return as_far_as_offered(_titled(field, properties.get(field.name)) for field in fields)


def _titled(field: FormField, written: Any) -> FormField:
    """The field under the server's own title, and with its titles of the options, which stand for other values."""
    of = written if isinstance(written, Mapping) else {}
    title = one_line(_text(of.get("title")), LONGEST_TITLE)
    meanings = "; ".join(
        f"{value}: {title}" for value, title in islice(_titled_options(of), MOST_OPTIONS) if value != title
    )
    several = _several(of) if field.type is FieldType.JSON else ()
    # A list of options can be drawn as one: it is not typed.
    own = f"{field.help.removesuffix(as_json()).strip()} {_('Choose any number.')}" if several else field.help
    told = one_line(" ".join(part for part in (own, f"({meanings})" if own and meanings else meanings) if part), 300)
    changes: dict[str, Any] = {"label": title or field.label, "help": told} | ({"options": several} if several else {})
    return field.model_copy(update=changes)


def _several(of: Mapping[str, Any]) -> tuple[str, ...]:
    """What may be chosen any number of; empty: the value is no list of options."""
    items = of.get("items")
    if of.get("type") != "array" or not isinstance(items, Mapping):
        return ()
    options = items.get("enum")
    if isinstance(options, list) and len(options) > MOST_OPTIONS:
        return ()
    if isinstance(options, list) and all(isinstance(option, str) for option in options):
        return tuple(options)
    titled = tuple(islice((value for value, _ in _titled_options(of)), MOST_OPTIONS + 1))
    return titled if len(titled) <= MOST_OPTIONS else ()


def _titled_options(of: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    items = of.get("items")
    holder = items if isinstance(items, Mapping) else of
    for key in ("oneOf", "anyOf"):
        alternatives = holder.get(key)
        for each in alternatives if isinstance(alternatives, list) else ():
            if isinstance(each, Mapping) and isinstance(each.get("const"), str):
                yield each["const"], _text(each.get("title")) or each["const"]
    options, names = of.get("enum"), of.get("enumNames")
    if isinstance(options, list) and isinstance(names, list):
        for option, name in zip(options, names, strict=False):
            if isinstance(option, str) and isinstance(name, str):
                yield option, name


def _asks_for_a_secret(message: str, schema: Mapping[str, Any]) -> str | None:
    """What of the form seems to ask for a secret, by its words; `None`: nothing does."""
    open_fields = [(name, of) for name, of in _properties(schema) if _takes_anything(of)]
    said = " ".join([message, _text(schema.get("title")), _text(schema.get("description"))])
    if open_fields and (found := _SECRET_PHRASE.search(said)):
        return found.group()
    for name, of in open_fields:
        title, description = _text(of.get("title")), _text(of.get("description"))
        hidden = of.get("format") == "password" or of.get("writeOnly") is True
        if hidden or any(_says_secret(words) for words in (name, title)) or _SECRET_PHRASE.search(description):
            return title or name
    return None


def _properties(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What may be entered, however deep."""
    if isinstance(schema, list):
        for each in schema:
            yield from _properties(each)
    if not isinstance(schema, Mapping):
        return
    for key, part in schema.items():
        if key == "properties" and isinstance(part, Mapping):
            yield from ((str(name), of) for name, of in part.items() if isinstance(of, Mapping))
        yield from _properties(part)


def _takes_anything(of: Mapping[str, Any]) -> bool:
    """Whether more can be entered than a yes, a date, or one of a few options: no secret is chosen from a list."""
    return not (
        of.get("type") == "boolean" or of.get("format") in {"date", "date-time"} or "enum" in of or "const" in of
    )


def _without_links(schema: Any, key: str = "") -> Any:
    """The schema without links in what only explains it; the values that may be given are left as they are."""
    match schema:
        case str() if key in {"title", "description"}:
            return without_links(schema)
        case Mapping():
            return {name: _without_links(part, name) for name, part in schema.items()}
        case list():
            return [_without_links(part) for part in schema]
        case _:
            return schema


def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    # `userPassword`, `api_key`, and `apikey` as one word
    return not _SECRET_WORDS.isdisjoint(words) or _SECRET_PHRASE.search(" ".join(words)) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
