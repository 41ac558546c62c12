"""What libraries tell others of by themselves, for whoever has it switched on in their environment."""

from __future__ import annotations

from collections.abc import MutableMapping

import structlog

log = structlog.get_logger(__name__)

_SWITCHES = (
    "LANGSMITH_TRACING_V2",
    "LANGSMITH_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_HANDLER",
)
"""What LangChain and LangGraph look for, by `langsmith.utils.tracing_is_enabled` and `langchain_core`'s callbacks; with
one of the last two alone they begin no run."""
_PROMPTS = "OPENAI_LOG"
"""https://github.com/openai/openai-python#logging"""


def switch_off_tracing(environment: MutableMapping[str, str]) -> None:
    """Take the switches of LangSmith out of the environment of this process, with a line in the log where there were
    any; before the first run, since the library remembers what it finds.

    A trace holds all that the graph does as it is: what people write, every call's arguments, what tools return to
    one person's account. Nothing of it is masked, and it goes to a service that many can read.
    """
    found = [name for name in _SWITCHES if environment.pop(name, "").strip()]
    if found:
        log.warning("tracing_switched_off", variables=found, note="a trace would hold secrets as they are")


def switch_off_logs_of_prompts(environment: MutableMapping[str, str]) -> None:
    """Take the switch of OpenAI's client out of the environment of this process, with a line in the log where there was
    one; before the client is imported, which then sets the level of its own logger anew.

    It would log every request whole: conversations, and what tools returned for one person alone.
    """
    if environment.pop(_PROMPTS, "").strip():
        log.warning("logs_of_prompts_switched_off", variables=[_PROMPTS], note="they would hold whole conversations")
