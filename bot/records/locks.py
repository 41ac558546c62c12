"""The names of what transactions lock.

A thread is locked by its id. Its lock covers all rows that have its `thread_id` (deliveries, posts, approvals with
their votes, questions, sign-ins, attempts) and its own. Whatever else is locked has a name that is made here, with a
prefix that no place has.

Nobody waits in a circle, since everybody locks in one order: what a transaction names when it begins is locked sorted,
before it reads anything, and `AUDIT` follows when all else is locked. Who finds out within a transaction that a thread
or a person is missing does not lock it there: it begins anew (`bot.records.database.locking_as_found`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class NoLocks(Enum):
    """What a transaction says that locks nothing."""

    UNLOCKED = "unlocked"


UNLOCKED: Final = NoLocks.UNLOCKED
"""For transactions in which one statement says all that it relies on (an `INSERT … ON CONFLICT`, an `UPDATE` whose
`WHERE` names what was read), and nothing that was read before has to stay true; and for those that only read so far and
find out what to lock (`locking_as_found`)."""
AUDIT: Final = "audit"
"""The end of the audit log's chain. Locked last, by `bot.audit.log` alone."""
AUDIT_TERMS: Final = "audit-terms"
"""What entries of the audit log are found by: of which of them that is known."""
RULE_COUNTS: Final = "rule-counts"
"""Adding up what the audit log says of the rules: each entry counts once."""
CLIENT_REGISTRATIONS: Final = "client-registrations"
"""As whom we are registered at services: a new registration and an old one with a new seal must not be mixed up."""
HALT: Final = "halt"
"""Whether everything is stopped (`bot.halting`)."""
RESEALING: Final = "resealing"
"""Sealing accounts with another key, many in one transaction."""


def person_lock(person_id: str) -> str:
    """What is a person's own and belongs to no thread: their accounts at services, the ways on which they connect one,
    their one-time codes and how often they were wrong, their standing approvals, and which of their sign-ins are open
    (those belong to a thread, too)."""
    return f"person:{person_id}"


def refresh_name(person_id: str, connection: str) -> str:
    """For `Database.alone`: the refresh of a person's tokens. Services that rotate refresh tokens take a second use of
    one for theft, and end the account."""
    return f"refresh:{connection}:{person_id}"


def return_name(state_hash: str) -> str:
    """For `Database.alone`: a browser's return from a service. Its code can be redeemed once."""
    return f"return:{state_hash}"


def revocation_name(connection_id: str) -> str:
    """For `Database.alone`: telling a service that an account was disconnected."""
    return f"revoke:{connection_id}"
