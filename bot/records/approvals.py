"""Rows of `approvals`, `votes` and `grants`. Every change of state is one `UPDATE … WHERE status = 'pending'`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

import sqlalchemy as sa

from bot.records.database import Statement, Transaction, insert_new, reader, unless_longer, upsert
from bot.records.prefixes import of_turn
from bot.records.statements import Prepared, Values
from bot.records.tables import APPROVED, PENDING, approvals, attempts, grants, votes
from graph.interrupts import ApprovalAsked
from graph.json_values import storable
from graph.presentation import NOTHING_KNOWN, CallPresentation
from policies.model import Ask, Risk

MOST_UNUSED = 1_000
"""Approvals of a thread under which nothing may have been started: those of its present turn, which has as many calls
at most. Whatever earlier turns left unused was superseded when they ended."""


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One tool call waiting for people, or what they said."""

    approval_id: str
    thread_id: str
    asked: ApprovalAsked
    status: str
    approved_arguments: Mapping[str, Any] | None
    approved_digest: str | None
    edited_by: str | None
    reason: str
    settled_key: str | None
    asked_at: float
    expires_at: float | None
    settled_at: float | None
    handed_to: tuple[str, ...] = ()
    """Person ids of those who were asked to decide by somebody else who may."""


@dataclass(frozen=True, slots=True)
class VoteRow:
    """One person's vote."""

    person_id: str
    name: str
    verb: Literal["approve", "reject"]
    reason: str
    """Of a rejection; of an approval what the person added for the model."""
    at: float
    key: str
    """Of the delivery that brought it."""
    human: str | None = None
    """Who it is, the same for all accounts of one human; `None`: could not be found out."""
    authority: str = ""
    """Which of the approvers that the policy lists lets them vote, in words."""
    claimed: Sequence[str] = ()
    """Addresses of the account for which nobody vouches."""


_vote = reader(VoteRow, claimed=lambda claimed: tuple(claimed or ()))

PENDING_COLUMNS = tuple(c for c in approvals.c if c.name not in {"arguments", "approved_arguments"})
"""What is read of many that wait. The arguments of each may be a megabyte, 10 to 50 ms of the event loop."""
_GET = Prepared(sa.select(approvals).where(approvals.c.approval_id == sa.bindparam("approval")))
_PENDING = Prepared(sa.select(*PENDING_COLUMNS).where(approvals.c.approval_id == sa.bindparam("approval")))
_OF_CALL = Prepared(
    sa.select(approvals).where(approvals.c.call_id == sa.bindparam("call"), approvals.c.round == sa.bindparam("nth"))
)
_FIRST_OF_CALL = Prepared(
    sa.select(approvals).where(approvals.c.call_id == sa.bindparam("call")).order_by(approvals.c.round).limit(1)
)
_IDS_OF_CALL = Prepared(sa.select(approvals.c.approval_id).where(approvals.c.call_id == sa.bindparam("call")))
_SHORT = Prepared(
    unless_longer(approvals, approvals.c.arguments, approvals.c.approved_arguments).where(
        approvals.c.approval_id == sa.bindparam("approval")
    )
)
_PENDING_IN = Prepared(
    sa.select(*PENDING_COLUMNS)
    .where(approvals.c.thread_id == sa.bindparam("thread"), approvals.c.status == PENDING)
    .order_by(approvals.c.asked_at)
)
_SETTLE = Prepared(
    sa.update(approvals)
    .where(approvals.c.approval_id == sa.bindparam("approval"), approvals.c.status == "pending")
    .returning(approvals.c.approval_id)
)
_VOID_UNUSED = Prepared(
    sa.update(approvals)
    .where(approvals.c.call_id == sa.bindparam("call"), approvals.c.round < sa.bindparam("before"))
    .where(sa.or_(approvals.c.status == "approved", approvals.c.status == "pending"))
    .values(status="void")
    .returning(approvals.c.approval_id)
)
_NEWEST_APPROVED = (
    sa.select(approvals.c.approval_id)
    .where(approvals.c.thread_id == sa.bindparam("thread"), approvals.c.status == APPROVED)
    .order_by(approvals.c.settled_at.desc())
    .limit(MOST_UNUSED)
)
"""Ids of those of a thread under which nothing may have been started yet."""
_STARTED = sa.exists().where(attempts.c.call_id == approvals.c.call_id)
_SUPERSEDE_UNUSED = Prepared(
    sa.update(approvals)
    .where(approvals.c.approval_id.in_(_NEWEST_APPROVED), ~_STARTED)
    .values(status="superseded")
    .returning(approvals.c.approval_id)
)
_VOTES = Prepared(
    sa.select(votes).where(votes.c.approval_id == sa.bindparam("approval")).order_by(votes.c.at, votes.c.person_id)
)
_FORGET_EARLIER = Prepared(
    sa.delete(votes)
    .where(votes.c.approval_id == sa.bindparam("approval"), votes.c.human == sa.bindparam("same"))
    .where(votes.c.person_id != sa.bindparam("person"))
)
_FORGET_VOTES = Prepared(sa.delete(votes).where(votes.c.approval_id == sa.bindparam("approval")))
_COUNT_PENDING = Prepared(
    sa.select(sa.func.count().label("n"))
    .select_from(approvals)
    .where(approvals.c.thread_id == sa.bindparam("thread"))
    .where(approvals.c.status == PENDING)
)


async def add(
    tx: Transaction, approval_id: str, thread_id: str, asked: ApprovalAsked, *, now: float, expires_at: float | None
) -> bool:
    """Record that a call waits; false when this round of it was recorded before."""
    row = {
        **asked.model_dump(mode="json", exclude={"kind", "arguments"}),
        "arguments": asked.arguments,
        "agent": asked.agent or None,
        "approval_id": approval_id,
        "thread_id": thread_id,
        "requester": asked.requesters[0],
        "handed_to": [],
        "status": "pending",
        "asked_at": now,
        "expires_at": expires_at,
    }
    return await insert_new(tx, approvals, row)


async def get(tx: Transaction, approval_id: str) -> ApprovalRow | None:
    """The approval, or none."""
    return await tx.first(_whole, _GET, {"approval": storable(approval_id)})


async def get_short(tx: Transaction, approval_id: str, longest: int) -> tuple[ApprovalRow, int] | None:
    """The approval, or none, and 0. Arguments with more than `longest` characters as JSON, before and after an edit
    together, are not read but counted: they are empty then."""
    row = await tx.one(_SHORT, {"approval": storable(approval_id), "longest": longest})
    if row is None:
        return None
    if row.characters <= longest:
        return _whole(row), 0
    return _row(row, ApprovalAsked(**_asked(row), arguments={})), row.characters


async def hold(tx: Transaction, approval_id: str) -> ApprovalRow | None:
    """The approval, or none; until the transaction ends nobody else changes it, nor casts a vote on it.

    Whoever compares what they read before they write reads it with this. Raises `NotLocked` when its thread is not
    locked.
    """
    row = await get(tx, approval_id)
    if row is not None:
        tx.needs(row.thread_id)
    return row


async def of_call(tx: Transaction, call_id: str, round_: int) -> ApprovalRow | None:
    """The approval of one round of a call, or none."""
    return await tx.first(_whole, _OF_CALL, {"call": call_id, "nth": round_})


async def first_of_call(tx: Transaction, call_id: str) -> ApprovalRow | None:
    """The approval of a call that was asked for first, or none."""
    return await tx.first(_whole, _FIRST_OF_CALL, {"call": call_id})


async def ids_of_call(tx: Transaction, call_id: str) -> Sequence[str]:
    """All rounds of a call."""
    return [r[0] for r in await tx.all(_IDS_OF_CALL, {"call": call_id})]


async def ids_in_turn(tx: Transaction, turn: str) -> Sequence[str]:
    """All rounds of all calls of a turn, by the key of its delivery."""
    query = sa.select(approvals.c.approval_id).where(of_turn(approvals.c.call_id, turn))
    return [r.approval_id for r in await tx.all(query)]


async def statuses_in_turn(tx: Transaction, turn: str) -> Mapping[str, str]:
    """All rounds of all calls of a turn, oldest first → how they stand. `changed`: an edit settled it, and nothing may
    run under it."""
    names = ("approval_id", "status", "edited_by", "approved_digest", "asked_at")
    rows = await tx.all(sa.select(*(approvals.c[name] for name in names)).where(of_turn(approvals.c.call_id, turn)))
    return {
        r.approval_id: "changed" if r.edited_by is not None and r.approved_digest is None else str(r.status)
        for r in sorted(rows, key=attrgetter("asked_at", "approval_id"))
    }


async def pending_in(tx: Transaction, thread_id: str) -> Sequence[ApprovalRow]:
    """What waits in a thread, oldest first, without arguments."""
    return await select_pending(tx, _PENDING_IN, {"thread": thread_id})


async def count_pending(tx: Transaction, thread_id: str) -> int:
    """How many wait in a thread."""
    row = await tx.one(_COUNT_PENDING, {"thread": thread_id})
    return row.n if row else 0


async def without_arguments(tx: Transaction, approval_ids: Iterable[str]) -> Sequence[ApprovalRow]:
    """Those of these approvals that there are, in this order, without arguments: looking at `asked.arguments` raises
    `AttributeError`."""
    ids = [{"approval": storable(approval_id)} for approval_id in approval_ids]
    return [_pending(r) for r in await tx.each(_PENDING, ids)]


async def select_pending(tx: Transaction, query: Statement, values: Values | None = None) -> Sequence[ApprovalRow]:
    """The approvals that a query of `PENDING_COLUMNS` finds, without arguments: looking at `asked.arguments` raises
    `AttributeError`."""
    return [_pending(r) for r in await tx.all(query, values)]


def _pending(r: Any) -> ApprovalRow:
    return _row(r, ApprovalAsked.model_construct(**_asked(r)))


async def settle(
    tx: Transaction,
    approval_id: str,
    status: str,
    *,
    key: str,
    now: float,
    reason: str = "",
    approved_arguments: Mapping[str, Any] | None = None,
    approved_digest: str | None = None,
    edited_by: str | None = None,
) -> bool:
    """Settle a pending approval; false when somebody was earlier."""
    settled = {
        "status": status,
        "settled_key": key,
        "settled_at": now,
        "reason": reason,
        "approved_arguments": dict(approved_arguments) if approved_arguments is not None else None,
        "approved_digest": approved_digest,
        "edited_by": edited_by,
    }
    return await tx.one(_SETTLE, {"approval": approval_id, **settled}) is not None


async def void_unused(tx: Transaction, call_id: str, before_round: int) -> Sequence[str]:
    """Earlier rounds that were approved and must not be used any more, since the call is asked anew."""
    return [r[0] for r in await tx.all(_VOID_UNUSED, {"call": call_id, "before": before_round})]


async def supersede_unused(tx: Transaction, thread_id: str, *, key: str, now: float, reason: str) -> Sequence[str]:
    """Approvals of a thread under which nothing was started; their ids."""
    how = {"settled_key": key, "settled_at": now, "reason": reason}
    return [r[0] for r in await tx.all(_SUPERSEDE_UNUSED, {"thread": thread_id, **how})]


async def void_in(tx: Transaction, thread_id: str, *, key: str, now: float, reason: str) -> Sequence[str]:
    """What is pending or approved in a thread, and not started, can never run any more; their ids."""
    pending = sa.select(approvals.c.approval_id).where(
        approvals.c.thread_id == thread_id, approvals.c.status == PENDING
    )
    either = approvals.c.approval_id.in_(_NEWEST_APPROVED.params(thread=thread_id)) | approvals.c.approval_id.in_(
        pending
    )
    statement = (
        sa.update(approvals)
        .where(either, ~_STARTED)
        .values(status="void", settled_key=key, settled_at=now, reason=reason)
    )
    return [r[0] for r in await tx.all(statement.returning(approvals.c.approval_id))]


async def cast(tx: Transaction, approval_id: str, vote: VoteRow) -> None:
    """Count a vote in the place of what the same human voted before, on whatever account."""
    if vote.human is not None:
        same = {"approval": approval_id, "same": vote.human, "person": vote.person_id}
        await tx.run(_FORGET_EARLIER, same)
    await upsert(tx, votes, {"approval_id": approval_id, **asdict(vote), "claimed": list(vote.claimed)})


def is_replaced(earlier: VoteRow, by: VoteRow) -> bool:
    """Whether casting a vote has put it in the place of an earlier one on the same approval."""
    return earlier.person_id == by.person_id or (by.human is not None and earlier.human == by.human)


def notes_in(cast: Sequence[VoteRow]) -> tuple[tuple[str, str], ...]:
    """Returns what those who approved added for the model: name and words of each, in the order of their votes."""
    return tuple((vote.name, vote.reason) for vote in cast if vote.verb == "approve" and vote.reason)


async def void_votes(tx: Transaction, approval_id: str) -> None:
    """What was said so far does not count: it was about another call."""
    await tx.run(_FORGET_VOTES, {"approval": approval_id})


async def votes_on(tx: Transaction, approval_id: str) -> Sequence[VoteRow]:
    """The votes on an approval, oldest first."""
    return [_vote(r) for r in await tx.all(_VOTES, {"approval": approval_id})]


async def hand_to(tx: Transaction, approval_id: str, people: Sequence[str]) -> bool:
    """Who has been asked to decide a pending approval; false when it was settled before."""
    statement = (
        sa.update(approvals)
        .where(approvals.c.approval_id == approval_id, approvals.c.status == "pending")
        .values(handed_to=list(people))
    )
    return await tx.changes(statement)


@lru_cache(maxsize=256)
def _ask(written: str) -> Ask:
    """Read once for all approvals that a rule asks for: that takes longer than the rest of a row."""
    return Ask.model_validate_json(written)


def presentation_in(kept: Mapping[str, Any] | None) -> CallPresentation:
    """What a column keeps, as everybody may see it; nothing is known of a call that an older version asked about."""
    return _presentation(kept).without_owned()


def _presentation(kept: Mapping[str, Any] | None) -> CallPresentation:
    return NOTHING_KNOWN if kept is None else CallPresentation.model_validate(kept)


def _asked(r: Any) -> dict[str, Any]:
    """What was asked, apart from the arguments."""
    return {
        "call_id": r.call_id,
        "round": r.round,
        "server": r.server,
        "tool": r.tool,
        "title": r.title,
        "digest": r.digest,
        "risk": tuple(Risk(x) for x in r.risk),
        "ask": _ask(json.dumps(r.ask)),
        "client": r.client or "",
        "agent": r.agent or "",
        "requesters": tuple(r.requesters),
        "quote": r.quote,
        "presentation": _presentation(r.presentation),
    }


def _whole(r: Any) -> ApprovalRow:
    return _row(r, ApprovalAsked(**_asked(r), arguments=r.arguments), r.approved_arguments)


def _row(r: Any, asked: ApprovalAsked, approved_arguments: Mapping[str, Any] | None = None) -> ApprovalRow:
    return ApprovalRow(
        approval_id=r.approval_id,
        thread_id=r.thread_id,
        asked=asked,
        status=r.status,
        approved_arguments=approved_arguments,
        approved_digest=r.approved_digest,
        edited_by=r.edited_by,
        reason=r.reason or "",
        settled_key=r.settled_key,
        asked_at=r.asked_at,
        expires_at=r.expires_at,
        settled_at=r.settled_at,
        handed_to=tuple(r.handed_to),
    )


# ----------------------------- standing approvals: what people always allow themselves, for a while


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One call that somebody always allows themselves."""

    grant_id: str
    person_id: str
    approval_id: str
    """The approval that it was given with."""
    server: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    given_at: float
    until: float
    revoked_at: float | None = None
    client: str | None = None
    """Through which program the call was asked for, and is allowed; `None`: our own agent."""
    title: str | None = None
    """The server's own title of the tool; `None`: of an older version."""
    presentation: Mapping[str, Any] | None = None
    """A `CallPresentation` as JSON; `None` likewise."""


def _in_force(now: Any) -> sa.ColumnElement[bool]:
    return sa.and_(grants.c.revoked_at.is_(None), grants.c.until > now)


def _of_person(query: sa.Select[Any]) -> Prepared:
    mine = query.where(grants.c.person_id == sa.bindparam("person"), _in_force(sa.bindparam("now")))
    return Prepared(mine.order_by(grants.c.until.desc(), grants.c.grant_id))


_client = sa.func.coalesce(grants.c.client, sa.literal_column("''"))
_GRANTS_OF = _of_person(sa.select(grants.c.grant_id))
_IN_FORCE = Prepared(
    sa.select(*(c for c in grants.c if c.name != "arguments"), approvals.c.risk)
    .join(approvals, approvals.c.approval_id == grants.c.approval_id)
    .where(grants.c.grant_id == sa.bindparam("grant"))
)
_GRANTED = Prepared(
    sa.select(grants.c.grant_id)
    .where(grants.c.person_id == sa.bindparam("person"), grants.c.digest == sa.bindparam("call"))
    .where(_client == sa.bindparam("program"))
    .where(_in_force(sa.bindparam("now")))
    .limit(1)
)
_IS_IN_FORCE = Prepared(
    sa.select(grants.c.grant_id).where(grants.c.grant_id == sa.bindparam("grant"), _in_force(sa.bindparam("now")))
)
_LISTED = Prepared(unless_longer(grants, grants.c.arguments).where(grants.c.grant_id == sa.bindparam("grant")))


async def add_grant(tx: Transaction, grant: GrantRow) -> None:
    """Keep a grant; an earlier one of the same person for the same call through the same program ends."""
    earlier = sa.update(grants).where(
        grants.c.person_id == grant.person_id,
        grants.c.digest == grant.digest,
        _client == (grant.client or ""),
        _in_force(grant.given_at),
    )
    await tx.run(earlier.values(revoked_at=grant.given_at))
    await tx.run(sa.insert(grants).values(**{**asdict(grant), "arguments": dict(grant.arguments)}))


async def grant(tx: Transaction, grant_id: str) -> GrantRow | None:
    """The grant, or none."""
    row = await tx.one(sa.select(grants).where(grants.c.grant_id == grant_id))
    return GrantRow(**row._asdict()) if row else None


async def grants_of(tx: Transaction, person_id: str, now: float) -> Sequence[tuple[GrantRow, tuple[Risk, ...]]]:
    """What somebody allows themselves now, the one that ends last first, each with what the card warned of with which
    it was given. Without arguments: they are empty."""
    found = []
    # Read whenever a call is judged: with the arguments, which may be a megabyte each, ten took 160 ms.
    for row in await tx.each(_IN_FORCE, await _ids_of_grants(tx, person_id, now)):
        values = row._asdict()
        risk = values.pop("risk")
        found.append((GrantRow(**values, arguments={}), tuple(map(Risk, risk))))
    return found


async def granted_by(tx: Transaction, person_id: str, client: str, digest: str, now: float) -> str | None:
    """The standing approval by which somebody allows themselves the call with this digest through this program (empty:
    our own agent) now; none: they do not."""
    row = await tx.one(_GRANTED, {"person": person_id, "program": client, "call": digest, "now": now})
    return row.grant_id if row is not None else None


async def is_in_force(tx: Transaction, grant_id: str, now: float) -> bool:
    """Whether a standing approval still counts, so that it can be revoked."""
    return await tx.one(_IS_IN_FORCE, {"grant": grant_id, "now": now}) is not None


async def listed_grants(tx: Transaction, person_id: str, now: float, longest: int) -> Sequence[tuple[GrantRow, int]]:
    """Returns the standing approvals of a person for a list, each with 0, or with how many characters its arguments
    have as JSON when these are more than `longest`: they are not read then, and empty."""
    found = []
    ids = await _ids_of_grants(tx, person_id, now)
    for row in await tx.each(_LISTED, [{**one, "longest": longest} for one in ids]):
        values = row._asdict()
        characters = values.pop("characters")
        unread = characters if characters > longest else 0
        found.append((GrantRow(**{**values, "arguments": values["arguments"] or {}}), unread))
    return found


async def _ids_of_grants(tx: Transaction, person_id: str, now: float) -> Sequence[Values]:
    rows = await tx.all(_GRANTS_OF, {"person": person_id, "now": now})
    return [{"grant": row.grant_id} for row in rows]


async def revoke_grant(tx: Transaction, grant_id: str, person_id: str, now: float) -> bool:
    """End a grant of this person's; false when there is none, or it is over."""
    statement = sa.update(grants).where(grants.c.grant_id == grant_id, grants.c.person_id == person_id, _in_force(now))
    return await tx.changes(statement.values(revoked_at=now))
