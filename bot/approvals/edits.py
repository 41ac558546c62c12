"""Edits that do not suffice as an approval, so that the edited call is asked anew.

The run may be busy with other calls for long before it asks. Until then too, nobody is told that anything was approved.
"""

from __future__ import annotations

from bot.audit.entries import key_of_unmade
from bot.records import attempts, audit
from bot.records.approvals import ApprovalRow
from bot.records.database import Transaction
from policies.approvers import edit_needs_no_new_asking
from policies.model import home_of
from translations import gettext as _


def suffices_for_edits(row: ApprovalRow) -> bool:
    """Returns whether an edit by whoever may decide this can approve the edited call, as far as it is known before that
    is judged."""
    return edit_needs_no_new_asking(row.asked.ask, row.asked.ask, home_of(row.asked.requesters[0]))


def why_asked_again(row: ApprovalRow, editor: str = "") -> str:
    """Returns why an edit does not suffice, as a sentence; `editor`: the name of who edited, empty for themselves."""
    if suffices_for_edits(row):
        return _("The tool changed, so approval is needed again.")
    if editor:
        return _("{name} edited it, so someone else must approve.").format(name=editor)
    return _("Someone else must approve your edits.")


def permits_nothing(row: ApprovalRow) -> bool:
    """Returns whether an edit has settled it that does not suffice."""
    return row.edited_by is not None and row.approved_digest is None


async def is_asked_anew(tx: Transaction, row: ApprovalRow) -> bool:
    """Returns whether people are asked about its edited call again, or will be once the run comes to that."""
    if not permits_nothing(row) or row.reason or row.status not in {"approved", "void"}:
        return False
    if row.status == "approved" and await audit.with_key(tx, key_of_unmade(row.asked.call_id)) is not None:
        return False  # nobody will be: the rules deny the edited call, or its tool is gone
    attempt = await attempts.latest(tx, row.asked.call_id)
    # One that is later than the edit: the rules let the edited call run without asking.
    return attempt is None or row.settled_at is None or attempt.started_at < row.settled_at
