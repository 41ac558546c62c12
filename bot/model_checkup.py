"""Whether the language model answers: it is asked for one word, with a tool beside it as in each turn, and heard until
it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bot.certificates import untrusted_certificate
from bot.findings import TRUST_IT, Finding, fine, wrong
from graph.models import ModelSpec, Trouble, close_model, explain_model_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_QUESTION = "Answer with the word ok."
_TOOL = {
    "type": "function",
    "function": {
        "name": "do_nothing",
        "description": "Does nothing. Do not call it.",
        "parameters": {"type": "object", "properties": {}},
    },
}
_REFUSALS = frozenset({Trouble.REFUSED, Trouble.UNKNOWN_MODEL})
"""What services say of a question with tools that they cannot take: statuses 400 and 404."""
SECONDS = 12.0
"""Seconds until it has to begin its answer."""


def name_of(spec: ModelSpec) -> str:
    """What is said of it is told by this name."""
    return f"model {spec.name}" + (f", temperature {spec.temperature:g}" if spec.temperature is not None else "")


async def model_findings(spec: ModelSpec, make: Callable[[ModelSpec], BaseChatModel]) -> list[Finding]:
    """Whether a model begins to answer. `make`: makes it, which imports its library."""
    what = name_of(spec)
    remedy = "Compare LLM_MODEL (or agents.yaml), its key and its address (…_BASE_URL) with the service: docs/models.md"
    try:
        async with asyncio.timeout(SECONDS):
            model = await asyncio.to_thread(make, spec)
            try:
                takes_tools = await _takes_tools(model)
            finally:
                await close_model(model)
    except TimeoutError:
        return [wrong(what, f"has not begun to answer within {SECONDS:.0f} s", remedy)]
    except Exception as error:  # noqa: BLE001  # the providers' own; their texts hold keys and requests
        if why := untrusted_certificate(error):
            return [wrong(what, f"its service’s certificate is not trusted here: {why}", TRUST_IT)]
        return [wrong(what, explain_model_error(error).sentence, remedy)]
    if not takes_tools:
        remedy = (
            "Take a model that can call tools, or have its server let it (vLLM: --enable-auto-tool-choice and "
            "--tool-call-parser): docs/models.md"
        )
        return [wrong(what, "answers, but refuses a question with tools, which each question of a turn has", remedy)]
    return [fine(what, "answers")]


async def _takes_tools(model: BaseChatModel) -> bool:
    """Whether it begins to answer with a tool beside the question; `False`: only without. Raises what it raises where
    it does neither."""
    try:
        await _began(model.bind_tools([_TOOL]))
    except Exception as error:  # the providers' own; raised again but for a refusal
        if explain_model_error(error).trouble in _REFUSALS and await _answers_without(model):
            return False
        raise
    return True


async def _answers_without(model: BaseChatModel) -> bool:
    try:
        await _began(model)
    except Exception:  # noqa: BLE001  # the first refusal is what is told
        return False
    return True


async def _began(model: Any) -> None:
    pieces = model.astream(_QUESTION)
    try:
        async for _ in pieces:
            return
    finally:
        await pieces.aclose()
