"""Whether the language model answers: it is asked for one word, and heard until it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bot.certificates import untrusted_certificate
from bot.findings import TRUST_IT, Finding, fine, wrong
from graph.models import ModelSpec, close_model, explain_model_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_MODEL = "model"
_QUESTION = "Answer with the word ok."
SECONDS = 12.0
"""Seconds until it has to begin its answer."""


async def model_findings(spec: ModelSpec, make: Callable[[ModelSpec], BaseChatModel]) -> list[Finding]:
    """Whether a model begins to answer. `make`: makes it, which imports its library."""
    what = f"{_MODEL} {spec.name}"
    remedy = "Compare LLM_MODEL, its key and its address (…_BASE_URL) with the service: docs/models.md"
    try:
        async with asyncio.timeout(SECONDS):
            model = await asyncio.to_thread(make, spec)
            try:
                await _began(model)
            finally:
                await close_model(model)
    except TimeoutError:
        return [wrong(what, f"has not begun to answer within {SECONDS:.0f} s", remedy)]
    except Exception as error:  # noqa: BLE001  # the providers' own; their texts hold keys and requests
        if why := untrusted_certificate(error):
            return [wrong(what, f"its service’s certificate is not trusted here: {why}", TRUST_IT)]
        return [wrong(what, explain_model_error(error).sentence, remedy)]
    return [fine(what, "answers")]


async def _began(model: Any) -> None:
    pieces = model.astream(_QUESTION)
    try:
        async for _ in pieces:
            return
    finally:
        await pieces.aclose()
