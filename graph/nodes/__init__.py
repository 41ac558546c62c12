"""The nodes of the workflow. Every interrupt has a node of its own, those in the middle of a call in `use_tools`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.types import Command

Node = Callable[..., Awaitable[dict[str, Any]]]
"""A step of the conversation: state (and run context) in, what changes out."""
BranchNode = Callable[..., Awaitable[Command[str]]]
"""A step of a tool call's branch, which also says what comes next."""
