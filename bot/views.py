"""Makes what is shown from rows: every card is a view of the records as they are now."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from bot.approvals import retries
from bot.approvals.edits import is_asked_anew, why_asked_again
from bot.approvals.permissions import is_shown_within
from bot.approvals.standing_approvals import is_offered
from bot.audit.entries import key_of_unmade
from bot.domain import (
    ApprovalView,
    CallActivity,
    ChangeView,
    ClarificationView,
    Content,
    ConversationReference,
    Notice,
    OutcomeView,
    PlanTaskView,
    PlanView,
    Post,
    Said,
    SignInView,
    Vote,
)
from bot.gateway.thread_ids import is_gateway_thread
from bot.readings import answer_in_words, result_in_words
from bot.records import approvals, attempts, audit, authorizations, clarifications, plans, sign_ins, threads
from bot.records.approvals import ApprovalRow
from bot.records.attempts import ActivityRow, AttemptRow
from bot.records.clarifications import ClarificationRow
from bot.records.database import Transaction
from bot.records.posts import PostRow
from bot.records.sign_ins import SignInRow
from bot.safe_text import apart_from_marks, one_line, shorten
from bot.task_threads import is_task_thread
from graph.citations import Source, kept_sources
from graph.presentation import NOTHING_KNOWN, CallPresentation
from policies.approvers import as_of, several_may_decide
from policies.judging import describe_approvers
from policies.model import Ask
from translations import gettext as _

LONGEST_RESULT = 200
"""Characters of a result on a card."""
LONGEST_TASK_RESULT = 1_000
"""Characters of what came of a task of a plan."""
LONGEST_OBJECT = 20_000
"""Characters of a result that is read as an object; of a longer one the beginning is shown as it is."""
MOST_ACTIVITIES = 20
"""Calls of a turn that are listed with its answer."""
_ACTIVITY_STATES: Mapping[str, Literal["running", "waiting", "done", "failed", "unknown"]] = {
    "started": "running",
    "asking": "waiting",
    "done": "done",
    "failed": "failed",
    "unknown": "unknown",
}
ANY_LENGTH = sys.maxsize
"""Arguments are read however long they are."""
LOOKED_AT = 5_000
"""Characters of a result that are read to write its line."""


async def post_of(
    tx: Transaction, row: PostRow, place: ConversationReference, now: float, longest: int = ANY_LENGTH
) -> Post | None:
    """Returns the post as it is to be shown now; `None` when what it showed is gone.

    Args:
        now: seconds since the epoch.
        longest: characters of arguments, as JSON, that are read; of a call with more they stay unread.
    """
    content = await content_of(tx, row, now, longest, seen_by_one=_is_chat_with_one(row, place))
    if content is None:
        return None
    return Post(row.key, row.thread_id, place, row.revision, row.at, content, row.only_for, row.seq)


async def content_of(
    tx: Transaction, row: PostRow, now: float, longest: int = ANY_LENGTH, *, seen_by_one: bool = False
) -> Content | None:
    """Returns what a post shows at `now`, when others may have come to decide, too; `None` when its subject is gone.

    Args:
        longest: as for `post_of`.
        seen_by_one: whether only the requester of what it is about sees it.
    """
    kept, subject = row.content or {}, row.subject or ""
    match row.kind:
        case "said":
            text, final = apart_from_marks(kept["text"]), kept.get("final", True)
            calls, earlier = await _activity(tx, kept["turn"]) if "turn" in kept else ((), 0)
            return Said(text, final, calls, earlier, kept.get("agent", ""), sources=_sources(kept))
        case "notice":
            return Notice(apart_from_marks(kept["text"]), kept["tone"])
        case "approval":
            within = _workspace_of(row.place) if row.place else ""
            return await approval_view(tx, subject, within, now=now, longest=longest, seen_by_one=seen_by_one)
        case "clarification":
            return await clarification_view(tx, subject, longest)
        case "sign_in":
            return await sign_in_view(tx, subject, now)
        case "outcome":
            return await outcome_view(tx, subject, longest)
        case "change":
            return await change_view(tx, subject, now, longest)
        case "plan":
            return await plan_view(tx, subject)
        case _:
            raise ValueError(f"unknown kind of post: {row.kind}")


def _sources(kept: Mapping[str, Any]) -> tuple[Source, ...]:
    """What an answer cites; the names are those that strangers gave their files."""
    return tuple(
        replace(source, name=apart_from_marks(source.name), section=apart_from_marks(source.section or "") or None)
        for source in kept_sources(kept.get("sources"))
    )


def _is_chat_with_one(row: PostRow, place: ConversationReference) -> bool:
    """Whether a post stands where it was asked, in a chat of one person with the bot. Conversations of the page are not
    that: others may read them."""
    return row.place is None and place.direct and place.platform in {"slack", "teams"}


async def _activity(tx: Transaction, turn: str) -> tuple[tuple[CallActivity, ...], int]:
    """The newest calls that were made in a turn, in the order in which they were asked for, and how many there were
    before them. Of what was said to somebody's own account there is only whether it was done."""
    rows, count = await attempts.activity_of_turn(tx, turn, MOST_ACTIVITIES, LONGEST_OBJECT + 1)
    calls = (
        CallActivity(
            call_id=row.call_id,
            server=row.server,
            tool=row.tool,
            title=row.title,
            state=_ACTIVITY_STATES[row.status],
            began_at=row.started_at,
            ended_at=row.ended_at,
            result=_came_of(row),
            presentation=row.presentation.without_owned(),
        )
        for row in sorted(rows, key=lambda row: place_in_turn(row.call_id))
    )
    return tuple(calls), count - len(rows)


async def plan_view(tx: Transaction, plan_id: str) -> PlanView | None:
    """Returns how far a plan is; `None` when there is no such plan."""
    plan = await plans.get(tx, plan_id)
    if plan is None:
        return None
    asked = {task.id: task for task in plan.asked.tasks}
    names = await threads.names(tx, [plan.requester])
    return PlanView(
        plan_id=plan_id,
        status=plan.status,
        tasks=tuple(
            PlanTaskView(
                task_id=row.task_id,
                agent=row.agent,
                instruction=apart_from_marks(asked[row.task_id].instruction),
                status=row.status,
                depends_on=asked[row.task_id].depends_on,
                result="" if row.owner else one_line(row.text[:LOOKED_AT], LONGEST_TASK_RESULT),
                began_at=row.begun_at,
                ended_at=row.ended_at,
            )
            for row in await plans.tasks_of(tx, plan_id)
        ),
        requester=names[plan.requester],
        requester_id=plan.requester,
    )


def place_in_turn(call_id: str) -> tuple[int, int]:
    """Returns what sorts the calls of a turn as they were asked for: ids of calls are `{delivery}.{step}.{index}`."""
    step, index = call_id.rsplit(".", 2)[-2:]
    return (int(step), int(index)) if step.isdigit() and index.isdigit() else (0, 0)


def _came_of(row: ActivityRow) -> str:
    match row.status:
        case "done" if not row.owner:
            return result_line(row.text, row.presentation)
        case "failed" if not row.owner:
            return one_line(row.text[:LOOKED_AT], LONGEST_RESULT)
        case "unknown":
            return _unknown(row)
        case _:
            return ""


def _workspace_of(place: ConversationReference) -> str:
    """What the ids of a workspace's threads and places begin with: `slack:{team}:`, `teams:{tenant}:`."""
    return ":".join(place.key.split(":")[:2]) + ":"


async def approval_view(
    tx: Transaction,
    approval_id: str,
    within: str = "",
    *,
    now: float,
    longest: int = ANY_LENGTH,
    seen_by_one: bool = False,
) -> ApprovalView | None:
    """Returns an approval's card; `None` when there is no such approval.

    Args:
        within: what the ids of the workspace begin with in which it is shown; empty: where it was asked. Elsewhere
            nothing is said of what was not routed there.
        longest: as for `post_of`.
        seen_by_one: whether only its requester sees it; else nothing is in it that was read over a person's account.
    """
    found = await approvals.get_short(tx, approval_id, longest)
    if found is None:
        return None
    row, unread = found
    cast = await approvals.votes_on(tx, approval_id)
    ask = as_asked(row, now)
    named = [*row.asked.requesters, *row.handed_to, *([row.edited_by] if row.edited_by is not None else [])]
    known = await threads.known_names(tx, {*named, *ask.approvers})
    names = threads.shown_names(known, named)
    status = "void" if await is_asked_anew(tx, row) else row.status
    attempt = await attempts.latest(tx, row.asked.call_id) if status == "approved" else None
    if status == "void":
        result, tone = await _why_void(tx, row), "info"
    elif status == "approved" and attempt is None:
        result, tone = await _why_not_made(tx, row.asked.call_id)
    else:
        result, tone = await _result(tx, attempt)
    return ApprovalView(
        approval_id=approval_id,
        status=status,  # type: ignore[arg-type]  # the column holds only these words
        server=row.asked.server,
        tool=row.asked.tool,
        title=row.asked.title,
        arguments=row.approved_arguments if row.approved_arguments is not None else row.asked.arguments,
        asked_arguments=row.asked.arguments if row.approved_arguments is not None else None,
        risk=tuple(r.value for r in row.asked.risk),
        requester=", ".join(names[r] for r in row.asked.requesters),
        may_decide=_in_words(row, ask, known),
        approvers=ask.approvers,
        requester_ids=row.asked.requesters,
        four_eyes=ask.self_approval == "fourEyes",
        rule=ask.rule,
        quorum=ask.quorum,
        votes=tuple(Vote(v.name, v.verb, v.at) for v in cast),
        asked_at=row.asked_at,
        expires_at=row.expires_at,
        reason_required=ask.reason_required,
        editable=bool(row.asked.arguments or unread) and ask.editable != (),
        decided_by=tuple(v.name for v in cast if _counts(v.verb, status)),
        decided_at=row.settled_at,
        reason=row.reason,
        result=result,
        result_tone=tone,  # type: ignore[arg-type]  # likewise
        together=await _together(tx, row, within) if row.status == "pending" else 1,
        quote=row.asked.quote,
        always_offered=row.status == "pending" and is_offered(row),
        rejections=ask.rejections,
        escalates_at=escalates_at(row, now),
        handing_offered=several_may_decide(ask, row.asked.requesters),
        handed_to=tuple(names[p] for p in row.handed_to),
        unread=unread,
        call_id=row.asked.call_id,
        client=shown_client(row.asked.client, row.thread_id),
        agent=row.asked.agent,
        presentation=_presentation(row, seen_by_one=seen_by_one),
        notes=approvals.notes_in(cast),
        edited_by="" if row.edited_by is None else names[row.edited_by],
        retry_offered=await retries.is_offered(tx, row, attempt),
        again=await _why_again(tx, row) if row.status == "pending" and row.asked.round > 1 else "",
    )


async def _why_again(tx: Transaction, row: ApprovalRow) -> str:
    """Why a round of a call that is not its first is asked."""
    before = await approvals.of_call(tx, row.asked.call_id, row.asked.round - 1)
    return await _why_void(tx, before) if before is not None and not before.reason else ""


def _presentation(row: ApprovalRow, *, seen_by_one: bool) -> CallPresentation:
    """What is kept to show a call, as far as the readers may see it."""
    kept = row.asked.presentation
    owners = {known.owner for known in kept.known_ids} | ({kept.preview.owner} if kept.preview else set())
    is_theirs = seen_by_one and owners <= {None, row.asked.requesters[0]}
    return kept if is_theirs else kept.without_owned()


def unnamed() -> str:
    """Returns what stands where the name of a program would that has told none, or whose call was over long ago."""
    return _("an unnamed program")


def shown_client(client: str, thread_id: str) -> str:
    """Name of the program that made the call which a thread belongs to, as it calls itself; empty: our own agent."""
    return client.strip() or (unnamed() if is_gateway_thread(thread_id) else "")


async def _client_in(tx: Transaction, thread_id: str) -> str:
    """The same, of what has no name of a program in its own row."""
    if not is_gateway_thread(thread_id):
        return ""
    return shown_client(await threads.client_of(tx, thread_id), thread_id)


async def _agent_in(tx: Transaction, thread_id: str) -> str:
    """Name of the agent whose task a thread is; empty: it is no task's."""
    task = await plans.task_of_thread(tx, thread_id) if is_task_thread(thread_id) else None
    return "" if task is None else task.agent


async def deciders_in_words(tx: Transaction, row: ApprovalRow, now: float) -> str:
    """Returns in words who may decide, or might have when it was settled."""
    ask = as_asked(row, now)
    return _in_words(row, ask, await threads.known_names(tx, {*row.asked.requesters, *ask.approvers}))


def named_deciders(row: ApprovalRow, now: float, known: Mapping[str, str]) -> str:
    """Returns the same of an approval that is shown with others, given the names of people by their ids."""
    return _in_words(row, as_asked(row, now), known)


def _in_words(row: ApprovalRow, ask: Ask, known: Mapping[str, str]) -> str:
    names = threads.shown_names(known, row.asked.requesters)
    # Whoever has no name is shown by their reference: their own platform knows how to show that.
    return describe_approvers(ask, [names[r] for r in row.asked.requesters], lambda p: known.get(p, p))


def as_asked(row: ApprovalRow, now: float) -> Ask:
    """Returns what the policy asks for, with those to whom it was escalated by `now`, or before it was settled."""
    return as_of(row.asked.ask, row.asked_at, now if row.settled_at is None else row.settled_at)


def escalates_at(row: ApprovalRow, now: float) -> float | None:
    """Returns when others may decide an approval, too; `None`: never, or they may already."""
    ask = row.asked.ask
    if row.status != "pending" or ask.escalate_after is None or not ask.escalate_to:
        return None
    at = row.asked_at + ask.escalate_after
    return at if now < at and (row.expires_at is None or at < row.expires_at) else None


async def _together(tx: Transaction, row: ApprovalRow, within: str) -> int:
    """How many wait in its thread, of those that may be shown there."""
    if row.thread_id.startswith(within):
        return await approvals.count_pending(tx, row.thread_id)
    return sum(is_shown_within(each, within) for each in await approvals.pending_in(tx, row.thread_id))


def _counts(verb: str, status: str) -> bool:
    return (verb, status) in {("approve", "approved"), ("approve", "void"), ("reject", "rejected")}


async def _result(tx: Transaction, attempt: AttemptRow | None) -> tuple[str, str]:
    """What came of the call, in one line. What was said to somebody's own account is that one's alone,
    result or failure: a card shows only that there is one."""
    if attempt is None:
        return "", "info"
    line, tone = await _result_of(tx, attempt)
    ended = attempt.status == "failed" or line == nothing_done()
    if ended and attempt.number > 1 and await attempts.was_tried_again(tx, attempt.call_id, attempt.number):
        return _("{result} An earlier try may have taken effect.").format(result=line), "warning"
    return line, tone


async def _result_of(tx: Transaction, attempt: AttemptRow) -> tuple[str, str]:
    match attempt.status:
        case "done":
            said = "" if attempt.owner else result_line(attempt.text, attempt.presentation)
            return (_("Done: {result}").format(result=said) if said else _("Done.")), "success"
        case "failed":
            said = "" if attempt.owner else one_line(attempt.text[:LOOKED_AT], LONGEST_RESULT)
            return (_("Failed: {why}").format(why=said) if said else _("Failed.")), "error"
        case "started":
            return _("Running…"), "info"
        case "unknown":
            return _unknown(attempt), "warning"
        case _:
            return await _waiting(tx, attempt), "info"


async def _why_not_made(tx: Transaction, call_id: str) -> tuple[str, str]:
    """Why a call that people have approved ended without having been made: the policy may deny it by then, or its tool
    be gone. Empty: it is about to be made."""
    entry = await audit.with_key(tx, key_of_unmade(call_id))
    if entry is None:
        return "", "info"
    kept = json.loads(entry)
    tone = "error" if kept["status"] in {"denied", "failed", "limited"} else "warning"
    return f"{nothing_done()} {one_line(kept['note'][:LOOKED_AT], LONGEST_RESULT)}".rstrip(), tone


def nothing_done() -> str:
    """What the card says of a call that was not made, or did nothing."""
    return _("Nothing was done.")


async def _waiting(tx: Transaction, attempt: AttemptRow) -> str:
    if await clarifications.open_of_tool(tx, attempt.call_id):
        return _("Waiting for an answer.")
    if await sign_ins.open_of_call(tx, attempt.call_id):
        return _("Waiting for a sign-in.")
    # Between the two: what it asks is about to be shown, or was just answered.
    return _("Running…") if attempt.status == "asking" else nothing_done()


async def _why_void(tx: Transaction, row: ApprovalRow) -> str:
    if row.reason:
        return _("No longer valid: {why}").format(why=row.reason)
    next_round = await approvals.of_call(tx, row.asked.call_id, row.asked.round + 1)
    again = next_round.asked.presentation.again if next_round else ""
    if again:
        source = one_line(row.asked.server, LONGEST_RESULT)
        said = {
            "changed": _("Asked again: {source} has changed since"),
            "not found out": _("Asked again: {source} could not be checked"),
        }
        return said[again].format(source=source)
    if row.edited_by is None:
        return _("Asked again: request or policy changed")
    editor = (await threads.names(tx, [row.edited_by]))[row.edited_by]
    if row.status == "approved":  # the run has not come to asking yet
        return why_asked_again(row, editor)
    return _("Asked again: {name} edited the request. Earlier votes don’t count.").format(name=editor)


def result_line(text: str, presentation: CallPresentation = NOTHING_KNOWN) -> str:
    """Returns a result in one line for people: what they know it by, of a JSON value; of a text its first line, with a
    count of what follows. Empty where there is nothing that tells them something."""
    beginning = text.lstrip()[:LOOKED_AT]
    if beginning[:1] in ("{", "[") and (said := _json_in_words(text, presentation)) is not None:
        return shorten(" ".join(said.split()), LONGEST_RESULT)
    first, _end, rest = beginning.partition("\n")
    unseen = len(rest.strip()) + max(0, len(text.lstrip()) - len(beginning))
    return shorten(" ".join(first.split()), LONGEST_RESULT, unseen)


def _json_in_words(text: str, presentation: CallPresentation) -> str | None:
    """A result that is a JSON value, in words; `None` where it is a text. Of one that is too long to be read nothing is
    said."""
    if len(text) > LONGEST_OBJECT:
        return ""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return result_in_words(result, presentation) if isinstance(result, dict) else ""


def _unknown(attempt: AttemptRow | ActivityRow) -> str:
    match attempt.choice:
        case "it_was_done":
            return _("Done, confirmed by {name}.").format(name=attempt.choice_by)
        case "skip":
            return _("Outcome unknown. Skipped by {name}.").format(name=attempt.choice_by)
        case _:
            return _("Outcome unknown.")


async def clarification_view(
    tx: Transaction, clarification_id: str, longest: int = ANY_LENGTH
) -> ClarificationView | None:
    """Returns a question's card; `None` when there is no such question. `longest` as for `post_of`."""
    row = await clarifications.get(tx, clarification_id)
    if row is None:
        return None
    found = await attempts.latest_short(tx, row.call_id, longest) if row.server else None
    attempt, unread = found or (None, 0)
    names = await threads.names(tx, [row.requester])
    return ClarificationView(
        clarification_id=clarification_id,
        status=row.status,  # type: ignore[arg-type]  # the column holds only these words
        question=apart_from_marks(row.question),
        context=apart_from_marks(row.context),
        fields=row.fields,
        requester=names[row.requester],
        requester_id=row.requester,
        answer=apart_from_marks(answer_text(row)),
        filled_in=_filled_in(row),
        server=row.server or "",
        tool=attempt.tool if attempt else "",
        arguments=attempt.arguments if attempt else {},
        unread=unread,
        call_id=row.call_id,
        schema=row.schema or {},
        client=await _client_in(tx, row.thread_id),
        agent=await _agent_in(tx, row.thread_id),
    )


def answer_text(row: ClarificationRow) -> str:
    """Returns an answer in one piece of text: as written, or `label: value` lines."""
    if not row.answer:
        return ""
    values = row.answer.get("values")
    if not values:
        return str(row.answer.get("text", ""))
    labels = {f.name: f.label or f.name for f in row.fields}
    shown = {True: _("yes"), False: _("no")}
    return "\n".join(
        f"{labels.get(k, k)}: {shown[v] if isinstance(v, bool) else v}" for k, v in values.items() if v is not None
    )


def _filled_in(row: ClarificationRow) -> tuple[tuple[str, str], ...]:
    values = (row.answer or {}).get("values") or {}
    fields = {field.name: field for field in row.fields}
    year = datetime.fromtimestamp(row.asked_at, UTC).year
    return tuple(
        (
            apart_from_marks(fields[name].label or name if name in fields else name),
            apart_from_marks(answer_in_words(value, fields[name].type if name in fields else "text", year)),
        )
        for name, value in values.items()
        if value is not None
    )


async def sign_in_view(tx: Transaction, sign_in_id: str, now: float) -> SignInView | None:
    """Returns a sign-in's card, without the link; `None` when there is no such sign-in."""
    row = await sign_ins.get(tx, sign_in_id)
    if row is None:
        return None
    names = await threads.names(tx, [row.person_id])
    return SignInView(
        sign_in_id=sign_in_id,
        status=row.status,  # type: ignore[arg-type]  # the column holds only these words
        server=row.server,
        host=row.host,
        message=row.message,
        owner=names[row.person_id],
        owner_id=row.person_id,
        service=row.service,
        code_wanted=row.status == "open" and await _waits_for_code(tx, row, now),
        call_id=row.call_id,
        client=await _client_in(tx, row.thread_id),
        agent=await _agent_in(tx, row.thread_id),
    )


async def _waits_for_code(tx: Transaction, row: SignInRow, now: float) -> bool:
    way = await authorizations.open_for(tx, row.person_id, row.connection) if row.connection else None
    return way is not None and way.code_until is not None and now < way.code_until


async def outcome_view(tx: Transaction, attempt_id: str, longest: int = ANY_LENGTH) -> OutcomeView | None:
    """Returns the card of an attempt whose outcome is unknown; `None` when there is no such attempt. `longest` as for
    `post_of`."""
    found = await attempts.get_short(tx, attempt_id, longest)
    if found is None:
        return None
    row, unread = found
    names = await threads.names(tx, [row.requester])
    return OutcomeView(
        outcome_id=attempt_id,
        status=row.choice or "open",  # type: ignore[arg-type]  # the column holds only these words
        server=row.server,
        tool=row.tool,
        title=row.title,
        arguments=row.arguments,
        requester=names[row.requester],
        requester_id=row.requester,
        settled_by=row.choice_by or "",
        known="" if row.owner else row.text,
        unread=unread,
        call_id=row.call_id,
        client=await _client_in(tx, row.thread_id),
        agent=await _agent_in(tx, row.thread_id),
        presentation=row.presentation.without_owned(),
    )


async def change_view(tx: Transaction, attempt_id: str, now: float, longest: int = ANY_LENGTH) -> ChangeView | None:
    """Returns the line of a change that was made without asking; `None` when there is no such attempt. What was said to
    somebody's own account is that one's alone: the line says only whether it was done. `longest` as for `post_of`."""
    found = await attempts.get_short(tx, attempt_id, longest)
    if found is None:
        return None
    row, unread = found
    names = await threads.names(tx, [row.requester])
    result, tone = await _result_of(tx, row)
    revocable = row.grant_id is not None and await approvals.is_in_force(tx, row.grant_id, now)
    return ChangeView(
        attempt_id=attempt_id,
        server=row.server,
        tool=row.tool,
        title=row.title,
        arguments=row.arguments,
        requester=names[row.requester],
        requester_id=row.requester,
        result=result,
        result_tone=tone,  # type: ignore[arg-type]  # it is one of these words
        rule="" if row.grant_id is not None else _rule_of(row),
        grant_id=row.grant_id if revocable else None,
        unread=unread,
        call_id=row.call_id,
        client=await _client_in(tx, row.thread_id),
        agent=await _agent_in(tx, row.thread_id),
        presentation=row.presentation.without_owned(),
    )


def _rule_of(attempt: AttemptRow) -> str:
    """Name of the rule that allowed a call when it began."""
    return str(((attempt.judged or {}).get("verdict") or {}).get("rule", ""))
