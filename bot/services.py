"""What the receiving half of a platform is given: who does what its people ask for."""

from __future__ import annotations

from dataclasses import dataclass

from bot.accounts.connections import Connections
from bot.accounts.sign_ins import SignInLinks
from bot.agent_choices import AgentChoices
from bot.approvals.decisions import Approvals
from bot.console.links import ConsoleLinks
from bot.console.services import Console
from bot.conversations import Conversations
from bot.files import Files
from bot.gateway.calls import GatewayCalls
from bot.inbox import Inbox
from bot.memory import Memories
from bot.queries import Queries
from bot.questions import Questions
from bot.rules.reports import RuleReports
from bot.usage import UsageReports


@dataclass(frozen=True, slots=True)
class Services:
    """Three lanes, none of which waits for a running turn: messages are kept for their turn (`inbox`), people's clicks
    and forms are judged and recorded at once, and everything that is shown is read (`queries`).
    """

    inbox: Inbox
    """Messages and their changes, stop, feedback; where the bot is brought to and removed from."""
    approvals: Approvals
    """Decisions about calls: approvals, standing approvals, attempts whose outcome is unknown."""
    questions: Questions
    """Answers to what the model or a tool asks its requester."""
    connections: Connections
    """Accounts at outside services: codes, replies to sign-ins, the list, the end of one."""
    sign_in_links: SignInLinks
    """The link of a sign-in, for its owner."""
    conversations: Conversations
    """Conversations of the page and of programs, for those who may see them."""
    queries: Queries
    """Everything that only reads."""
    agents: AgentChoices
    """Which agents there are, and which one somebody picks."""
    gateway: GatewayCalls
    """Calls that other agents make."""
    files: Files
    """What people hand over."""
    memories: Memories
    """What is remembered of people and channels."""
    usage: UsageReports
    """What turns have used of language models, and what that cost."""
    console: Console
    """What operators see of everybody, and what they do about it."""
    console_links: ConsoleLinks
    """Where they see it, on the cards of other platforms."""
    rules: RuleReports
    """The rules, for operators."""
