"""All that the workflow is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage

from graph.models.streaming import Retry
from graph.ports.asking import ApprovalPort, SignInPort
from graph.ports.audit import Audit
from graph.ports.ledger import Ledger
from graph.ports.people import Budget, Directory, Grants
from graph.ports.tools import Tools
from policies.model import Mode
from policies.rules import Policy


@dataclass(frozen=True, slots=True)
class Picked:
    """What the router chose."""

    categories: Sequence[str]
    tokens: int = 0
    """What choosing cost."""


Router = Callable[[Sequence[AnyMessage], Sequence[str]], Awaitable[Picked]]
"""Picks the tool types (categories) that a request may use; gets the conversation and the categories there are."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the workflow is given."""

    model: BaseChatModel
    router: Router
    tools: Tools
    ledger: Ledger
    approvals: ApprovalPort
    sign_ins: SignInPort
    policy: Callable[[], Policy]
    """The policy in force; another one after a reload."""
    directory: Directory
    grants: Grants
    budget: Budget
    audit: Audit
    mode: Mode
    retry: Retry
    calls_a_turn: int
    """Tool calls that the model may make in one turn."""
