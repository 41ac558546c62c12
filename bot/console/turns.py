"""A turn from its message to its last post, as operators see it: each call with its verdict, its votes, its attempts
and its result, also where nobody was asked, and what it has used of language models."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from bot.audit.entries import LOOKED, LOOKED_UP, read_entry
from bot.card_masks import masked_arguments
from bot.console.access import OperatorAccess
from bot.conversations import FOR_ONE_PERSON
from bot.domain import Person
from bot.files import references_in
from bot.prices import Prices
from bot.records import audit, halts, model_usage, plans, posts, threads, turns, waiting
from bot.records.approvals import ApprovalRow
from bot.records.database import Database, Transaction
from bot.records.halts import HaltRow
from bot.records.model_usage import UsageSum
from bot.records.plans import TaskRow
from bot.records.turns import AskedOf, ResumeRow, ShortAttempt, StopRow, TurnRow, VoteOn
from bot.task_threads import conversation_of, own_turn_of_call, turn_of_call
from bot.turns.failures import reference_to
from bot.usage import UsageTotal, total_of
from bot.views import place_in_turn, shown_client
from policies.masking import Masker
from policies.reasons import why

MOST_LISTED = 100
"""Turns of one answer."""
LONGEST_SHOWN = 2_000
"""Characters of arguments, of a result, or of what was said, that are shown of each; how many more there are is
counted."""
LONGEST_TEXT = 300
"""Characters of a message in a list."""
NEWEST = 2**62
"""Greater than the number of any delivery."""
_OF_EVERYBODY = "the turns of everybody"
TurnWord = Literal["waiting", "running", "ended", "failed", "parked"]


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A turn in a list."""

    turn: str
    """Key of the message, or of another agent's call, that began it."""
    thread_id: str
    platform: str
    channel: str
    """Empty: a direct chat."""
    kind: str
    """`message`, or `call`: another agent's."""
    person_id: str
    person: str
    """Name of who began it."""
    text: str
    """What they wrote: its beginning."""
    files: Sequence[str]
    """Names of the files that they sent with it."""
    at: float
    status: TurnWord
    """`failed`: people were told that something went wrong, or a plan that its task failed; `parked`: it was given
    up."""
    cause: str
    """Of the last failure, of what was tried again or parked; empty: there was none."""
    reference: str
    """What people were told with a failure."""


@dataclass(frozen=True, slots=True)
class TurnPage:
    """Turns, the newest first."""

    turns: Sequence[TurnSummary]
    following: str
    """Before what the next page begins; empty: this is the last one."""


@dataclass(frozen=True, slots=True)
class TurnCall:
    """A call of a turn."""

    call_id: str
    server: str
    tool: str
    title: str
    agent: str
    """Which agent of ours made it; empty: the default one, or a program."""
    client: str
    """The program that made it; empty: our own agent did."""
    arguments: Mapping[str, Any] | None
    """Secrets are masked; `None`: they are too long to be shown."""
    mode: str
    verdict: str
    """`allow`, `ask` or `deny`; empty: it was not judged."""
    rule: str
    source: str
    """Where the verdict comes from: a rule, the mode, a server's own floor, …"""
    why: str
    """The same in a sentence; empty: nobody said."""
    status: str
    """`waiting`, `running`, `done`, `failed`, `unknown`, `nothing` (it did nothing, as without an account) or `not
    made`."""
    ended: str
    """Of a call that was not made: `denied`, `rejected`, `expired`, …; else empty."""
    result: str
    characters: int
    """Of the result, when it is longer than what is shown; else 0."""
    attempts: int
    waited: float | None
    """Seconds for which people were asked; `None`: nobody was."""
    seconds: float | None
    """Which the last attempt took; `None`: it was not made, or has not ended."""


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """Something that happened in a turn."""

    at: float
    kind: str
    """`message`, `asked`, `vote`, `settled`, `began`, `ended`, `not made`, `task` (of a plan), `said`, `notice`,
    `read`, `stopped` or `went on`."""
    call_id: str = ""
    person_id: str = ""
    person: str = ""
    """Name."""
    subject: str = ""
    """Id of the approval, question, sign-in, attempt or task that it is about."""
    what: str = ""
    """In a word: of what is asked which kind, of a vote its verb (`edited`: it approved other arguments), of an end how
    it ended, of a notice its tone, of a stop what it ended: this `turn`, or `everything`, by an operator."""
    text: str = ""
    """What was written, said or returned: its beginning."""


@dataclass(frozen=True, slots=True)
class ModelUseOf:
    """What one agent of a turn has used of one model."""

    agent: str
    model: str
    total: UsageTotal


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn."""

    summary: TurnSummary
    text: str
    """All that was written, up to `LONGEST_SHOWN` characters."""
    calls: Sequence[TurnCall]
    """As the model made them; `turns.MOST_CALLS` at most."""
    events: Sequence[TurnEvent]
    """In the order in which they happened."""
    models: Sequence[ModelUseOf]
    total: UsageTotal
    currency: str
    """Empty: there are no prices."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the records say of a turn."""

    row: TurnRow
    attempts: Sequence[ShortAttempt]
    approvals: Sequence[ApprovalRow]
    asked_for: Mapping[str, Mapping[str, Any]]
    """Approval → with which arguments, of the calls of which no attempt has them."""
    votes: Sequence[VoteOn]
    asked: Sequence[AskedOf]
    tasks: Sequence[TaskRow]
    """Of the plans."""
    entries: Sequence[Mapping[str, Any]]
    """Of the audit log."""
    said: Sequence[tuple[float, str, bool]]
    """When, what, and whether it is the answer."""
    notices: Sequence[tuple[float, str, str]]
    """When, the tone, and the sentence."""
    use: Sequence[UsageSum]
    """By agent."""
    stop: StopRow | None
    """The first stop in its thread since it began."""
    halts: Sequence[HaltRow]
    """When everything was stopped since it began."""
    summary: TurnSummary
    names: Mapping[str, str]
    client: str


class TurnsOfEverybody:
    """Reads turns, for operators."""

    def __init__(self, database: Database, access: OperatorAccess, masker: Masker, prices: Prices) -> None:
        self._database = database
        self._access = access
        self._masker = masker
        self._prices = prices

    async def newest(
        self, operator: Person, thread_id: str | None = None, before: str = "", limit: int = MOST_LISTED
    ) -> TurnPage | None:
        """The turns that began last; `None`: this is no operator.

        Args:
            thread_id: only those of this thread.
            before: as `TurnPage.following` of the page before; empty: the newest. Raises `ValueError` for another text.
        """
        number = int(before) if before else NEWEST
        if not await self._access.looks(operator, _OF_EVERYBODY):
            return None
        async with self._database.reading() as tx:
            if thread_id is None:
                found = await turns.newest(tx, number, limit + 1)
            else:
                found = await turns.newest_in(tx, thread_id, number, limit + 1)
            listed = await _listed(tx, found[:limit])
        return TurnPage(listed, str(found[limit - 1].seq) if len(found) > limit else "")

    async def of_person(
        self, operator: Person, person_id: str, before: str = "", limit: int = MOST_LISTED
    ) -> TurnPage | None:
        """The turns of one account, also those of other agents for it; otherwise as `newest`."""
        at = float(before) if before else float(NEWEST)
        if not await self._access.looks(operator, _OF_EVERYBODY):
            return None
        async with self._database.reading() as tx:
            found = await turns.of_person(tx, person_id, at, limit + 1)
            known = await turns.with_keys(tx, {key for key, _ in found[:limit]})
            rows = [known[key] for key in dict.fromkeys(key for key, _ in found[:limit]) if key in known]
            listed = await _listed(tx, rows)
        return TurnPage(listed, repr(found[limit - 1][1]) if len(found) > limit else "")

    async def of_card(self, operator: Person, subject: str) -> TurnPage | None:
        """The turn in which people were shown a card, by the id of what that shows: an approval, a question, a sign-in,
        an attempt or a plan; `None`: this is no operator."""
        if not await self._access.looks(operator, _OF_EVERYBODY):
            return None
        async with self._database.reading() as tx:
            calls = await turns.calls_of_card(tx, subject)
        return await self._named({turn_of_call(call) for call in calls})

    async def with_reference(self, operator: Person, reference: str) -> TurnPage | None:
        """The turns, or what came of them later, whose failure people were told with this reference; `None`: this is no
        operator."""
        if not await self._access.looks(operator, _OF_EVERYBODY):
            return None
        async with self._database.reading() as tx:
            failed = await turns.failures(tx)
        keys = await asyncio.to_thread(_with_reference, failed, reference)
        async with self._database.reading() as tx:
            gone_on = [own_turn_of_call(each.call_id) for each in await turns.resumes(tx, keys)]
        return await self._named({*keys, *gone_on})

    async def _named(self, keys: set[str]) -> TurnPage:
        async with self._database.reading() as tx:
            known = await turns.with_keys(tx, keys)
            newest = sorted(known.values(), key=lambda row: row.seq, reverse=True)
            return TurnPage(await _listed(tx, newest[:MOST_LISTED]), "")

    async def whole(self, operator: Person, turn: str) -> WholeTurn | Literal["unknown"] | None:
        """All that happened in a turn, by the key of what began it; `None`: this is no operator."""
        if not await self._access.includes(operator):
            return None
        async with self._database.reading() as tx:
            row = (await turns.with_keys(tx, [turn])).get(turn)
        if row is None:
            return "unknown"
        if not await self._access.looks(operator, "a turn", row.thread_id):
            return None
        async with self._database.reading() as tx:
            read = await self._read(tx, row)
        calls = await self._calls(read, operator)
        models = [ModelUseOf(each.key, each.model, total_of("", [each], self._prices)) for each in read.use]
        text = str(row.body.get("text", ""))
        return WholeTurn(
            summary=read.summary,
            text=text[:LONGEST_SHOWN],
            calls=calls,
            events=self._events(read, operator),
            models=models,
            total=total_of("", read.use, self._prices),
            currency=self._prices.currency,
        )

    async def _read(self, tx: Transaction, row: TurnRow) -> _Read:
        made = await turns.attempts_of(tx, row.key, LONGEST_SHOWN)
        rounds = await turns.approvals_of(tx, row.key)
        votes = await turns.votes_on_all(tx, [each.approval_id for each in rounds])
        made_of = {each.call_id for each in made}
        open_rounds = [r.approval_id for r in rounds if r.status == "pending" or r.asked.call_id not in made_of]
        asked_for = await turns.arguments_asked_for(tx, open_rounds, LONGEST_SHOWN)
        asked = await turns.questions_of(tx, row.key)
        written = await audit.newest_of_turn(tx, row.key, turns.MOST_CALLS * 2)
        thread_id = conversation_of(row.thread_id)
        said = [(each.at, each.content or {}) for each in await posts.said_in_turn(tx, thread_id, row.key)]
        failed = (await _failed_resumes(tx, [row])).get(row.key, ())
        about = await posts.all_notices_about(tx, [row.key, *(each.key for each in failed)])
        told = [(each.at, each.content or {}) for each in about]
        (summary,) = await _as_they_stand(tx, [row], {row.key: failed})
        halted = await halts.in_force_since(tx, row.accepted_at)
        people = {each.requester for each in made} | {each.person_id for each in asked}
        people |= {each.ended_by for each in halted if each.ended_by is not None}
        return _Read(
            row=row,
            attempts=made,
            approvals=rounds,
            asked_for=asked_for,
            votes=votes,
            asked=asked,
            tasks=await plans.tasks_of_turn(tx, row.key),
            entries=[entry for each in written if (entry := read_entry(each)) is not None],
            said=[(at, str(kept.get("text", "")), bool(kept.get("final", True))) for at, kept in said],
            notices=[(at, str(kept.get("tone", "")), str(kept.get("text", ""))) for at, kept in told],
            use=await model_usage.of_agents(tx, row.key),
            stop=await turns.stop_of(tx, row, thread_id),
            halts=halted,
            summary=summary,
            names=await threads.names(tx, {*people, summary.person_id}),
            client=shown_client(await threads.client_of(tx, row.thread_id), row.thread_id),
        )

    async def _calls(self, read: _Read, reader: Person) -> list[TurnCall]:
        """The calls in the order in which the model made them. What an entry of the audit log says of one is masked
        and bounded already."""
        of_call: dict[str, list[Mapping[str, Any]]] = {}
        for entry in read.entries:
            if entry["status"] not in (LOOKED, LOOKED_UP):
                of_call.setdefault(entry["call"], []).append(entry)
        found: dict[str, TurnCall] = {call_id: _in_log(entries[-1]) for call_id, entries in of_call.items()}
        for each in read.attempts:
            known = found.get(each.call_id)
            call = await self._attempted(each, known, reader)
            found[each.call_id] = replace(call, attempts=(known.attempts if known is not None else 0) + 1)
        for row in {each.asked.call_id: each for each in read.approvals}.values():  # of each call the last round
            known = found.get(row.asked.call_id)
            if known is None or row.status == "pending":
                asked = await self._asked_for(row, read.asked_for.get(row.approval_id))
                found[row.asked.call_id] = replace(asked, attempts=0 if known is None else known.attempts)
        waited = _waited(read.approvals)
        return [
            replace(found[call_id], waited=waited.get(call_id), client=found[call_id].client or read.client)
            for call_id in sorted(found, key=_order)
        ]

    async def _attempted(self, made: ShortAttempt, known: TurnCall | None, reader: Person) -> TurnCall:
        verdict = (made.judged or {}).get("verdict", {})
        arguments = known.arguments if known is not None else None
        if known is None and made.arguments is not None:
            await asyncio.sleep(0)
            arguments = (await masked_arguments(made.arguments, self._masker)).value
        return TurnCall(
            call_id=made.call_id,
            server=made.server,
            tool=made.tool,
            title=made.title,
            agent=(made.judged or {}).get("agent", ""),
            client=(made.judged or {}).get("client", ""),
            arguments=arguments,
            mode=(made.judged or {}).get("mode", ""),
            verdict=verdict.get("verdict", ""),
            rule=verdict.get("rule", ""),
            source=verdict.get("source", ""),
            why=(made.judged or {}).get("why", ""),
            status=_STATUS.get(made.status, made.status),
            ended="",
            result=_shown_to(reader, made),
            characters=made.length if made.length > len(made.text) else 0,
            attempts=known.attempts if known is not None else 0,
            waited=None,
            seconds=None if made.ended_at is None else max(0.0, made.ended_at - made.started_at),
        )

    async def _asked_for(self, row: ApprovalRow, arguments: Mapping[str, Any] | None) -> TurnCall:
        """A call that nobody has decided about, or that was never made under what they decided."""
        reasons = row.asked.presentation.reasons
        masked = None
        if arguments is not None:
            await asyncio.sleep(0)
            masked = (await masked_arguments(arguments, self._masker)).value
        return TurnCall(
            call_id=row.asked.call_id,
            server=row.asked.server,
            tool=row.asked.tool,
            title=row.asked.title,
            agent=row.asked.agent,
            client=row.asked.client,
            arguments=masked,
            mode="",
            verdict="ask",
            rule=row.asked.ask.rule,
            source=row.asked.ask.source,
            why=why(reasons) if reasons is not None else "",
            status="waiting" if row.status == "pending" else "running" if row.status == "approved" else "not made",
            ended="" if row.status in {"pending", "approved"} else row.status,
            result=row.reason,
            characters=0,
            attempts=0,
            waited=None,
            seconds=None,
        )

    def _events(self, read: _Read, reader: Person) -> list[TurnEvent]:
        summary = read.summary
        events = [
            TurnEvent(summary.at, "message", person_id=summary.person_id, person=summary.person, text=summary.text)
        ]
        asked_in = {row.approval_id: row for row in read.approvals}
        events += [_vote(vote, asked_in[vote.approval_id]) for vote in read.votes]  # before what they settle at once
        for row in read.approvals:
            about = {"call_id": row.asked.call_id, "subject": row.approval_id}
            events.append(TurnEvent(row.asked_at, "asked", what="approval", **about))
            if row.settled_at is not None:
                events.append(TurnEvent(row.settled_at, "settled", what=row.status, text=row.reason, **about))
        for each in read.asked:
            asked = TurnEvent(
                each.asked_at,
                "asked",
                each.call_id,
                each.person_id,
                read.names[each.person_id],
                each.subject,
                each.kind,
                each.text[:LONGEST_SHOWN],
            )
            events.append(asked)
            if each.settled_at is not None:
                # The person who is asked has no part in it where time was up, or something else was written instead.
                nobody = {"person_id": "", "person": ""} if each.status in {"expired", "superseded"} else {}
                settled = replace(asked, at=each.settled_at, kind="settled", what=each.status, text="", **nobody)
                events.append(settled)
        for made in read.attempts:
            about = {"call_id": made.call_id, "subject": made.attempt_id}
            events.append(TurnEvent(made.started_at, "began", text=f"{made.server} › {made.tool}", **about))
            if made.ended_at is not None:
                events.append(
                    TurnEvent(made.ended_at, "ended", what=made.status, text=_shown_to(reader, made), **about)
                )
        for task in read.tasks:
            name = f"{task.task_id} · {task.agent}"
            if task.begun_at is not None:
                events.append(TurnEvent(task.begun_at, "task", subject=task.thread_id, what="running", text=name))
            if task.ended_at is not None:
                events.append(TurnEvent(task.ended_at, "task", subject=task.thread_id, what=task.status, text=name))
        events += [event for entry in read.entries if (event := _logged(entry)) is not None]
        for at, text, is_final in read.said:
            events.append(TurnEvent(at, "said", what="answer" if is_final else "word", text=text[:LONGEST_SHOWN]))
        for at, tone, text in read.notices:
            events.append(TurnEvent(at, "notice", what=tone, text=text))
        return sorted([*events, *_stops(read, events)], key=lambda event: event.at)


_ENDS_BY_A_STOP = frozenset({"settled", "ended", "not made", "task", "said"})
"""Kinds of events that a stop leads to."""


def _stops(read: _Read, events: Sequence[TurnEvent]) -> Iterator[TurnEvent]:
    """Who has ended the turn, and when everything was stopped while it went on."""
    stop, goes_on = read.stop, read.summary.status in {"running", "waiting"}
    if stop is not None and any(event.at >= stop.at and event.kind in _ENDS_BY_A_STOP for event in events):
        yield TurnEvent(stop.at, "stopped", person_id=stop.person_id, person=stop.name, what="turn")
    last = math.inf if goes_on else max(event.at for event in events)
    for halt in read.halts:
        if halt.at <= last:
            yield TurnEvent(
                halt.at, "stopped", person_id=halt.person_id, person=halt.name, what="everything", text=halt.why
            )
        if halt.ended_at is not None and halt.ended_at <= last:
            by = halt.ended_by or ""
            name, why = read.names.get(by, ""), halt.ended_why or ""
            yield TurnEvent(halt.ended_at, "went on", person_id=by, person=name, what="everything", text=why)


def _shown_to(reader: Person, made: ShortAttempt) -> str:
    """What came of an attempt, unless it is for another person alone."""
    return made.text if made.owner in {None, reader.person_id} else FOR_ONE_PERSON


async def _listed(tx: Transaction, rows: Sequence[TurnRow]) -> list[TurnSummary]:
    return await _as_they_stand(tx, rows, await _failed_resumes(tx, rows))


async def _as_they_stand(
    tx: Transaction, rows: Sequence[TurnRow], gone_on: Mapping[str, Sequence[ResumeRow]]
) -> list[TurnSummary]:
    """The summaries; `gone_on` as `_failed_resumes` returns it. A turn whose message was handled goes on as long as
    something of it, or of its plans, runs or waits for people."""
    found = await _summaries(tx, rows, gone_on)
    handled = {each.thread_id for each in found if each.status == "ended"}
    if not handled:
        return found
    left = await waiting.calls_under_way(tx, handled)
    now: dict[str, TurnWord] = {own_turn_of_call(plan_id): "running" for plan_id in left.planned}
    of_asked = {turn(call_id) for call_id in left.asked for turn in (turn_of_call, own_turn_of_call)}
    now |= dict.fromkeys(of_asked, "waiting")
    now |= {own_turn_of_call(call_id): "running" for call_id in left.going_on}
    return [replace(each, status=now.get(each.turn, each.status)) if each.status == "ended" else each for each in found]


async def _summaries(
    tx: Transaction, rows: Sequence[TurnRow], gone_on: Mapping[str, Sequence[ResumeRow]]
) -> list[TurnSummary]:
    failed = await turns.failed_among(tx, [row.key for row in rows])
    of_tasks = await plans.failed_among(tx, {row.thread_id for row in rows})
    people = {row.key: str(row.body.get("person") or row.requester or "") for row in rows}
    names = await threads.names(tx, people.values())
    found = []
    for row in rows:
        failed_later = gone_on.get(row.key, ())
        last = failed_later[-1] if failed_later and row.key not in failed else None
        found.append(
            TurnSummary(
                turn=row.key,
                thread_id=row.thread_id,
                platform=str(row.place.get("platform", "")),
                channel=str(row.place.get("channel", "")),
                kind=row.kind,
                person_id=people[row.key],
                person=str(row.body.get("name") or names.get(people[row.key], "")),
                text=str(row.body.get("text", ""))[:LONGEST_TEXT],
                files=[each.name for each in references_in(row.body)],
                at=row.accepted_at,
                status=_word(row, has_failed=row.key in failed or row.thread_id in of_tasks or last is not None),
                cause=(last.cause if last is not None else row.cause) or "",
                reference=reference_to(last.key if last is not None else row.key),
            )
        )
    return found


async def _failed_resumes(tx: Transaction, rows: Sequence[TurnRow]) -> Mapping[str, Sequence[ResumeRow]]:
    """Turn → what failed of it after people had decided or answered something, oldest first."""
    found: dict[str, list[ResumeRow]] = {}
    for each in await turns.failed_resumes(tx, rows):
        found.setdefault(own_turn_of_call(each.call_id), []).append(each)
    return found


def _word(row: TurnRow, *, has_failed: bool) -> TurnWord:
    match row.status:
        case "parked":
            return "parked"
        case "waiting":
            return "running"
        case _:
            return "failed" if has_failed else "ended"


def _with_reference(keys: Sequence[str], reference: str) -> set[str]:
    """The turns of those deliveries. What somebody has decided or answered is a delivery of its own."""
    return {key for key in keys if reference_to(key) == reference}


_STATUS = {"started": "running", "asking": "waiting"}
_MADE = frozenset({"done", "failed", "unknown"})


def _in_log(entry: Mapping[str, Any]) -> TurnCall:
    """A call as the audit log has it: what is not made, or was made long ago."""
    was_made = entry["attempt"] is not None
    kept = entry["arguments"]
    return TurnCall(
        call_id=entry["call"],
        server=entry["server"],
        tool=entry["tool"],
        title="",
        agent=entry.get("agent", ""),
        client=entry.get("client", ""),
        arguments=kept if isinstance(kept, Mapping) else None,
        mode=entry["mode"],
        verdict=entry["decision"],
        rule=entry["rule"],
        source=entry["source"],
        why=entry.get("why", ""),
        status=entry["status"] if was_made else "not made",
        ended="" if was_made else entry["status"],
        result="" if was_made else entry["note"],
        characters=0,
        attempts=0,
        waited=None,
        seconds=entry["duration"],
    )


def _waited(rounds: Sequence[ApprovalRow]) -> Mapping[str, float]:
    """Call → seconds for which people were asked in all its rounds that are settled."""
    waited: dict[str, float] = {}
    for row in rounds:
        if row.settled_at is not None:
            call_id = row.asked.call_id
            waited[call_id] = waited.get(call_id, 0.0) + max(0.0, row.settled_at - row.asked_at)
    return waited


def _vote(vote: VoteOn, row: ApprovalRow) -> TurnEvent:
    is_edited = vote.verb == "approve" and row.edited_by == vote.person_id
    what, call_id = "edited" if is_edited else vote.verb, row.asked.call_id
    return TurnEvent(vote.at, "vote", call_id, vote.person_id, vote.name, vote.approval_id, what, vote.reason)


def _logged(entry: Mapping[str, Any]) -> TurnEvent | None:
    """What only the audit log has of a turn: calls that were not made, what was read for a card, who looked at what is
    hidden, and what a person said of an unknown outcome."""
    at, call_id = _seconds(entry["at"]), entry["call"]
    tool = f"{entry['server']} › {entry['tool']}"
    if entry["status"] in (LOOKED, LOOKED_UP):
        by = entry["settled"].get("by", "")
        return TurnEvent(at, "read", call_id, person=by, what=entry["status"], text=tool)
    if entry["settled"]:
        return TurnEvent(
            at, "settled", call_id, person=entry["settled"]["by"], what=entry["settled"]["choice"], text=tool
        )
    if entry["attempt"] is None:
        return TurnEvent(at, "not made", call_id, what=entry["status"], text=entry["note"] or tool)
    return None


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def _order(call_id: str) -> tuple[str, int, int]:
    """Calls of the turn itself, then those of the tasks of its plans."""
    turn = own_turn_of_call(call_id)
    return (turn, *place_in_turn(call_id))
