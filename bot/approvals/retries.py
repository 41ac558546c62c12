"""Retries: a call that was approved and failed is proposed once more, as it was made, when its requester says so.

The retry is a message of its requester's that carries the call: an ordinary turn begins with it, in which the call is
judged as any other, and of which every crash is survived as of any message. Once for each approval: the key of the
message is made of the approval's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.agent_choices import AGENT
from bot.domain import Person
from bot.gateway.thread_ids import is_gateway_thread
from bot.records import approvals, attempts, deliveries
from bot.records.approvals import ApprovalRow
from bot.records.attempts import AttemptRow
from bot.records.database import Transaction
from bot.records.deliveries import Delivery
from bot.safe_text import one_line
from bot.task_threads import conversation_of, own_turn_of_call, turn_of_call
from graph.agents import DEFAULT
from graph.calls import GIVEN_CALL, GivenCall
from policies.masking import Masker
from policies.model import canonical_json, tool_name_for_model
from translations import gettext as _

CLICK = "click"
"""In the body of a retry: the key of the click that asked for it."""
LONGEST_VALUE = 80
"""Characters of the main argument in the message."""
_OF_ITS_OWN = frozenset({"text", "origin", "at", "begins", "person", "name", "time_zone", "addressed"})
"""In the body of the message that began the turn of the call: what a retry does not take over."""


def retry_key(approval_id: str) -> str:
    """Returns the key of the delivery that has the call of an approval proposed once more."""
    return f"retry:{approval_id}"


async def is_offered(tx: Transaction, row: ApprovalRow, attempt: AttemptRow | None) -> bool:
    """Returns whether the call of an approval may be proposed once more: it failed for certain, at its last try and at
    every one before, and nobody had it proposed again.

    Args:
        attempt: the newest at this call.
    """
    if row.status != "approved" or is_gateway_thread(row.thread_id):
        return False
    if attempt is None or attempt.status != "failed" or await deliveries.exists(tx, retry_key(row.approval_id)):
        return False
    return attempt.number == 1 or not await attempts.was_tried_again(tx, attempt.call_id, attempt.number)


async def known_to_model(tx: Transaction, row: ApprovalRow) -> Mapping[str, Any]:
    """Returns the arguments of the call of an approval as the model knows them: as it wrote them, or, of a call that
    was proposed by a retry, as it was told them then. Nothing, where that is not known any more."""
    turn = own_turn_of_call(row.asked.call_id)
    if row.asked.call_id == f"{turn}.0.0":
        began = await deliveries.body_of(tx, turn)
        if began is None:
            return {}
        given: GivenCall | None = began.get(GIVEN_CALL)
        if given is not None:
            return given.get("told", given["args"])
    first = await approvals.first_of_call(tx, row.asked.call_id)  # what is asked again may hold an approver's edits
    return first.asked.arguments if first is not None else {}


def told_of(row: ApprovalRow, known: Mapping[str, Any], masker: Masker) -> dict[str, Any]:
    """Returns the arguments with which the call was made as models may read them: of those that an approver wrote,
    nothing that may be a secret. It takes long where they are.

    Args:
        known: `known_to_model`.
    """
    made = arguments_of(row)
    changed = {
        name: value
        for name, value in made.items()
        if name not in known or canonical_json(known[name]) != canonical_json(value)
    }
    return {**made, **masker.for_audit(changed).value}


async def retry_of(
    tx: Transaction,
    row: ApprovalRow,
    requester: Person,
    *,
    click: str,
    text: str,
    told: Mapping[str, Any],
    now: float,
) -> Delivery:
    """Returns the message that has the call proposed once more, under the terms of the turn in which it was made; that
    of a task in its conversation, where people hear what comes of it.

    Args:
        requester: of that turn, as they are called now.
        click: key of the click that asks for it.
        text: what stands in the conversation.
        told: `told_of` it.
        now: seconds since the epoch.
    """
    began = await deliveries.body_of(tx, turn_of_call(row.asked.call_id)) or {}
    call = GivenCall(
        name=tool_name_for_model(row.asked.server, row.asked.tool),
        args=dict(arguments_of(row)),
        quote=row.asked.quote,
        told=dict(told),
        known=[each.model_dump(mode="json") for each in row.asked.presentation.known_ids],
    )
    body = {
        **{name: said for name, said in began.items() if name not in _OF_ITS_OWN | {GIVEN_CALL, CLICK}},
        "person": requester.person_id,
        "name": requester.name,
        "time_zone": requester.time_zone,
        "text": text,
        "addressed": True,
        "origin": {},
        "at": now,
        "begins": None,
        AGENT: row.asked.agent or DEFAULT,
        GIVEN_CALL: call,
        CLICK: click,
    }
    thread_id = conversation_of(row.thread_id)
    return Delivery(retry_key(row.approval_id), thread_id, "message", body, False, now, now)


def given_call_of(delivery: Delivery) -> GivenCall | None:
    """Returns the call that a message has made; none: it is what somebody wrote."""
    call: GivenCall | None = delivery.body.get(GIVEN_CALL)
    return call


def arguments_of(row: ApprovalRow) -> Mapping[str, Any]:
    """Returns the arguments with which the call was made, edits included."""
    return row.approved_arguments if row.approved_arguments is not None else row.asked.arguments


def retry_text(row: ApprovalRow, masker: Masker) -> str:
    """Returns what stands in the conversation, such as "Retry: Create event: Standup". Models read it too, so nothing
    that may be a secret is in it. It takes long where the main argument is."""
    asked, made = row.asked, arguments_of(row)
    trusted = asked.presentation.trusted and asked.title
    title = one_line(asked.title if trusted else f"{asked.server}: {asked.tool}", LONGEST_VALUE)
    main = asked.presentation.main
    value = made.get(main) if main else None
    if not isinstance(value, str) or not value.strip():
        return _("Retry: {call}").format(call=title)
    (shown,) = masker.for_audit({main: value}).value.values()
    return _("Retry: {call}: {value}").format(call=title, value=one_line(shown, LONGEST_VALUE))
