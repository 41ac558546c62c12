"""The steps of the workflow. Every interrupt has a node of its own, those in the middle of a call in `use_tools`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from langgraph.types import Command

from graph.state import RunContext, ToolCallState

Node = Callable[..., Awaitable[dict[str, Any]]]
"""A step of the conversation: state (and run context) in, what changes out."""
BranchStep = Callable[[ToolCallState, RunContext], Awaitable[Command[str]]]
"""A step of a tool call's branch, which also says what comes next."""


@dataclass(frozen=True, slots=True)
class AskingStep:
    """A step of a tool call's branch that stops until somebody answers: what is asked, and what follows."""

    asks: Callable[[ToolCallState, RunContext], Awaitable[dict[str, Any] | Command[str]]]
    """What is asked, an `Asked` as JSON; or what comes next where nobody needs to be asked. May be called again."""
    follows: Callable[[ToolCallState, RunContext, Any], Awaitable[Command[str]]]
    """What comes next after the answer, an `InterruptAnswer` as JSON. Raises `ValidationError` for other answers."""
