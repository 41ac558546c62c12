"""The branch of one tool call: its steps and the ways between them, whoever takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END
from langgraph.types import Command

from graph.nodes import AskingStep, BranchStep
from graph.nodes.contained import Ending, asked_if_begun, contained, told_as_known
from graph.nodes.human_confirmation import human_confirmation
from graph.nodes.oauth_needed import oauth_needed
from graph.nodes.policy_gate import policy_gate
from graph.nodes.use_tools import elicitation_needed, outcome_unknown, use_tools
from graph.ports import Ports
from graph.state import RunContext, ToolCallState

FIRST_STEP = "policy_gate"
PutQuestion = Callable[[dict[str, Any]], Any]
"""Gets what is asked, an `Asked` as JSON, and returns the answer, an `InterruptAnswer` as JSON. Raises `GraphInterrupt`
while there is none."""


@dataclass(frozen=True, slots=True)
class BranchNode:
    """A step and where it may lead."""

    step: BranchStep
    destinations: tuple[str, ...]


def branch_nodes(ports: Ports, put: PutQuestion) -> Mapping[str, BranchNode]:
    """The steps by their names. None of them raises, interrupts, cancellation and failures of the records aside.

    Args:
        put: asks people; `langgraph.types.interrupt` within a graph.
    """

    def node(step: BranchStep | AskingStep, *destinations: str, ending: Ending = told_as_known) -> BranchNode:
        taken = _asking(step, put) if isinstance(step, AskingStep) else step
        return BranchNode(contained(ports, taken, ending), destinations)

    after_a_call = ("policy_gate", "oauth_needed", "elicitation_needed", "outcome_unknown", END)
    return {
        FIRST_STEP: node(policy_gate(ports), "human_confirmation", "use_tools", END),
        "human_confirmation": node(human_confirmation(ports), "policy_gate", "use_tools", END),
        "use_tools": node(use_tools(ports), *after_a_call, ending=asked_if_begun),
        "oauth_needed": node(oauth_needed(ports), "use_tools", END),
        "elicitation_needed": node(elicitation_needed(ports), "use_tools", END),
        "outcome_unknown": node(outcome_unknown(ports), "use_tools", END),
    }


def _asking(question: AskingStep, put: PutQuestion) -> BranchStep:
    async def asking(state: ToolCallState, context: RunContext) -> Command[str]:
        asked = await question.asks(state, context)
        return asked if isinstance(asked, Command) else await question.follows(state, context, put(asked))

    return asking
