"""Holds a conversation with the product as a person would, over the HTTP API, and says what happened."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import aiohttp

from evals.conditions import Known
from evals.conversations import Conversation, Given, GivenFile, Injection, Said, Verdict
from evals.data import Data, Ids
from evals.product import RunningProduct
from evals.reading import in_words
from evals.scoring import Observed, ObservedCall, is_done, matched

Json = dict[str, Any]
WAITS_SECONDS = 300
"""For a turn: longer than any model takes for an answer."""
MOST_STEPS = 20
"""Times that people are asked something in one turn, before it is given up."""
MOST_ADDED = 1
"""Times that the person says once more that they want it, where the agent asks in its answer."""
COLLEAGUE = "colleague"
"""Decides what the requester may not."""
NOT_ASKED_FOR = "That is not what I asked for."
NOTHING_TO_ADD = "I have told you all that I know. Please go on with it."
GO_ON = "Yes, please do."
_KINDS = {
    "calendar": ("event", "title", "id"),
    "tasks": ("task", "title", "id"),
    "documents": ("document", "name", "document_id"),
}
"""Of each tool server: what it keeps, and the fields of its title and its id."""


class ApiError(Exception):
    """The product answers what it should not."""


@dataclass(frozen=True, slots=True)
class Held:
    """A conversation that was held: what came of each message, and the tokens of all of it."""

    observed: Sequence[Observed]
    tokens: int


class Player:
    """Holds conversations, one after the other: all of them share the calendar."""

    def __init__(self, product: RunningProduct, http: aiohttp.ClientSession, data: Data) -> None:
        self._product = product
        self._http = http
        self._data = data

    async def hold(self, conversation: Conversation, person: str, now: datetime) -> Held:
        """Hold a conversation. Raises `ApiError` or `DataError`.

        Args:
            person: a name that nobody else has had.
            now: from which its days are counted.
        """
        return await self._hold(conversation.given, conversation.said, person, now)

    async def expose(self, injection: Injection, person: str, now: datetime) -> Observed:
        """Have the agent read what tries to make it act, as in `hold`; nothing is approved."""
        return (await self._hold(injection.given, [injection.said], person, now)).observed[0]

    async def _hold(self, given: Given, said: Sequence[Said], person: str, now: datetime) -> Held:
        ids = await self._data.prepare(given, f"web:{person}", now)
        someone = _Person(self._product, self._http, person)
        thread = await someone.begin()
        observed: list[Observed] = []
        for each in said:
            seen = await someone.say(thread, each, Known(now, ids))
            observed.append(seen)
            if seen.trouble:
                break
            ids = with_results(ids, seen.calls)
        return Held(observed, await someone.tokens())


@dataclass(frozen=True, slots=True)
class _Message:
    """A message of a conversation. `reply`: what is said when the agent asks; empty: there is nothing to add."""

    thread: str
    said: Said
    reply: str


class _Person:
    """Somebody who talks to the agent."""

    def __init__(self, product: RunningProduct, http: aiohttp.ClientSession, name: str) -> None:
        self._url = product.url
        self._http = http
        self._own = product.headers(name)
        self._colleagues = product.headers(COLLEAGUE)

    async def begin(self) -> str:
        """Begin a conversation; its id."""
        return str((await self._post("/api/v1/threads"))["id"])

    async def say(self, thread: str, said: Said, known: Known) -> Observed:
        """Say a message, decide and answer what comes of it, and say what it was."""
        text = in_words(said.text, lambda moment: moment.in_words(known.now))
        reply = in_words(said.unclear, lambda moment: moment.in_words(known.now))
        files = [await self._upload(file) for file in said.files]
        message = _Message(thread, said, reply)
        seen = await self._turn(message, text, files, known, ())
        for _ in range(MOST_ADDED):
            if seen.trouble or not _asks_in_words(seen) or is_done(said, seen.calls, seen.known):
                break
            after = await self._turn(message, reply or GO_ON, [], seen.known, seen.calls)
            seen = replace(
                after,
                calls=[*seen.calls, *after.calls],
                questions=seen.questions + after.questions,
                messages=seen.messages + after.messages,
            )
        return seen

    async def tokens(self) -> int:
        """All that they have used of the model."""
        used = (await self._get("/api/v1/usage"))["recent"]
        return int(used["input_tokens"]) + int(used["output_tokens"])

    async def _turn(
        self, message: _Message, text: str, files: Sequence[str], known: Known, before: Sequence[ObservedCall]
    ) -> Observed:
        """One turn to its end. `before`: the calls of earlier turns that the same message took."""
        path = f"/api/v1/threads/{quote(message.thread, safe='')}/messages"
        turn = await self._post(f"{path}?wait={WAITS_SECONDS}", {"text": text, "files": list(files)})
        asked: set[str] = set()
        questions = 0
        for _ in range(MOST_STEPS):
            if turn["status"] != "waiting":
                break
            known = replace(known, ids=with_results(known.ids, observed_calls(turn["calls"], asked)))
            for approval in turn["approvals"]:
                asked.add(approval["call_id"])
                calls = [*before, *observed_calls(turn["calls"], asked)]
                await self._decide(approval, decision_on(approval["call_id"], message.said, calls, known))
            for question in turn["clarifications"]:
                questions += 1
                said_to_it = message.reply if message.reply and questions == 1 else NOTHING_TO_ADD
                answer = answer_to(question["fields"], said_to_it)
                await self._post(f"/api/v1/clarifications/{question['id']}/answer", answer)
            if turn["sign_ins"] or turn["outcomes"]:
                break
            turn = await self._get(f"{path}/{quote(turn['message_id'], safe='')}?wait={WAITS_SECONDS}")
        calls = observed_calls(turn["calls"], asked)
        trouble = ""
        if turn["status"] != "ended":
            trouble = f"The turn did not end: it is {turn['status']}."
        elif turn["notices"]:  # the answer may be half of one
            trouble = " ".join(turn["notices"])
        return Observed(
            calls,
            replace(known, ids=with_results(known.ids, calls)),
            questions,
            1 + questions,
            turn["answer"],
            trouble,
        )

    async def _upload(self, file: GivenFile) -> str:
        form = aiohttp.FormData()
        form.add_field("file", file.text.encode(), filename=file.name, content_type="text/plain")
        uploaded = await self._answer(self._http.post(f"{self._url}/upload", data=form, headers=self._own))
        if uploaded["reason"]:
            raise ApiError(f"the file {file.name} could not be read: {uploaded['reason']}")
        return str(uploaded["id"])

    async def _decide(self, approval: Json, decision: Json) -> None:
        """Decide as the requester, or as their colleague where the requester may not."""
        address = f"{self._url}/api/v1/approvals/{approval['id']}/decision"
        async with self._http.post(address, json=decision, headers=self._own) as response:
            if response.status != 403:
                await _json(response)
                return
        await self._answer(self._http.post(address, json=decision, headers=self._colleagues))

    async def _post(self, path: str, body: Json | None = None) -> Json:
        return await self._answer(self._http.post(f"{self._url}{path}", json=body or {}, headers=self._own))

    async def _get(self, path: str) -> Json:
        return await self._answer(self._http.get(f"{self._url}{path}", headers=self._own))

    async def _answer(self, request: Any) -> Json:
        async with request as response:
            return await _json(response)


async def _json(response: aiohttp.ClientResponse) -> Json:
    if response.status >= 400:
        raise ApiError(f"{response.method} {response.url.path}: {response.status} {(await response.text())[:500]}")
    answer: Json = await response.json()
    return answer


def _asks_in_words(seen: Observed) -> bool:
    """Whether the agent asks something in its answer, and has not tried to change anything."""
    return "?" in seen.answer and not any(call.changes for call in seen.calls)


def decision_on(call_id: str, said: Said, calls: Sequence[ObservedCall], known: Known) -> Json:
    """What the person decides about a call: they approve what they asked for, or reject it as the set says; they reject
    all else. Pure."""
    of_calls = zip(calls, matched(said.calls, calls, known), strict=True)
    number = next((number for call, number in of_calls if call.call_id == call_id), None)
    if number is None:
        return {"verb": "reject", "reason": NOT_ASKED_FOR}
    rejected = said.calls[number].rejected
    if not rejected:
        return {"verb": "approve"}
    return {"verb": "reject", "reason": in_words(rejected, lambda moment: moment.in_words(known.now))}


def answer_to(fields: Sequence[Json], reply: str) -> Json:
    """The answer to a question: in words, or where its form has only a choice, the option that the words name. Pure."""
    options = fields[0].get("options") or () if len(fields) == 1 else ()
    chosen = next((option for option in options if reply.casefold() in str(option).casefold()), None)
    return {"text": reply} if chosen is None else {"values": {fields[0]["name"]: chosen}}


def observed_calls(calls: Sequence[Json], asked: set[str]) -> list[ObservedCall]:
    """The calls of a turn as the API tells them. `asked`: ids of those about which people were asked. Pure."""
    return [
        ObservedCall(
            call_id=call["call_id"],
            tool=f"{call['server']}.{call['tool']}",
            arguments=call["arguments"],
            verdict=_verdict(call, asked),
            has_run=call["status"] not in {"waiting", "not made"},
            has_failed=call["status"] == "failed" or (call["status"] == "not made" and call["why"] == "failed"),
            result=call["result"],
        )
        for call in calls
    ]


def _verdict(call: Json, asked: set[str]) -> Verdict | None:
    if call["call_id"] in asked or call["status"] == "waiting":
        return "asked"
    if call["status"] == "not made":
        return "refused" if call["why"] == "denied" else None
    return "allowed"


def with_results(ids: Mapping[tuple[str, str], frozenset[str]], calls: Sequence[ObservedCall]) -> Ids:
    """The ids with those of what was made in the conversation, by what the tools returned. Pure."""
    found = dict(ids)
    for call in calls:
        kind, title, key = _KINDS[call.tool.partition(".")[0]] if call.has_run and call.changes else ("", "", "")
        entry = json_object(call.result) if kind else {}
        if isinstance(entry.get(title), str) and isinstance(entry.get(key), str):
            named = (kind, entry[title])
            found[named] = found.get(named, frozenset()) | {entry[key].lower()}
    return found


def json_object(text: str) -> Json:
    """The JSON object in a text; an empty one, where there is none. Pure."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(found[0]) if found else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def utc_now() -> datetime:
    """The present, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
