"""The books of the house, which the desk leads."""

from __future__ import annotations

from dataclasses import dataclass

from bot.accounts.codes import Codes
from bot.accounts.connections import ConnectionBook
from bot.accounts.sign_ins import SignInBook
from bot.approvals.directory import Facts
from bot.approvals.requests import ApprovalBook
from bot.clarifications import ClarificationBook
from bot.grants import GrantBook
from bot.handing import Handing
from bot.inbox.accept import Acceptance
from bot.presence import Presence
from bot.voting import Voting


@dataclass(frozen=True, slots=True)
class Books:
    """Where messages come in and questions to people are kept."""

    acceptance: Acceptance
    approvals: ApprovalBook
    voting: Voting
    handing: Handing
    grants: GrantBook
    facts: Facts
    clarifications: ClarificationBook
    sign_ins: SignInBook
    codes: Codes
    connections: ConnectionBook
    presence: Presence
