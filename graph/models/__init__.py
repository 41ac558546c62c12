"""Language models of a service. A provider is imported only when it is chosen."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from graph.models.problems import ModelProblem, Trouble, explain_model_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "GOOGLE",
    "ModelProblem",
    "ModelSpec",
    "Trouble",
    "check_configured",
    "close_model",
    "create_model",
    "explain_model_error",
]

GOOGLE = "google:"
"""Prefix of the names of Google's models."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model to use, and how to reach it."""

    name: str
    """`google:{model}`, or the name of a model at `base_url`."""
    base_url: str | None = None
    """Address of an OpenAI-compatible service, up to and including `/v1`; `None`: OpenAI's own."""
    api_key: SecretStr | None = None
    timeout: float = 60.0
    """Seconds to wait for the answer to begin, and for each further piece of it."""
    temperature: float | None = None
    """From 0 to 2; `None`: the service's own."""


def create_model(spec: ModelSpec) -> BaseChatModel:
    """The model of a service that `spec` names.

    Raises `ModelProblem` (`Trouble.NOT_CONFIGURED`) when something is missing that an operator has to add.
    """
    check_configured(spec)
    if spec.name.startswith(GOOGLE):
        return _google(spec)
    from graph.models.openai import create_openai_model  # noqa: PLC0415 (1.5 s, imported only when chosen)

    return create_openai_model(
        spec.name, base_url=spec.base_url, api_key=spec.api_key, timeout=spec.timeout, temperature=spec.temperature
    )


def check_configured(spec: ModelSpec, named_by: str = "LLM_MODEL") -> None:
    """Imports nothing. Raises `ModelProblem` (`Trouble.NOT_CONFIGURED`) when something is missing that an operator has
    to add.

    Args:
        named_by: the setting, or the key of a file, that says which model it is.
    """
    if spec.name.startswith(GOOGLE):
        if importlib.util.find_spec("langchain_google_genai") is None:
            raise ModelProblem(
                Trouble.NOT_CONFIGURED,
                sentence=f"{named_by} is {spec.name}, but the support for Google's models is not installed. "
                f"Install it with `uv sync --extra google`, or choose another {named_by}.",
            )
    elif spec.api_key is None and spec.base_url is None:
        raise ModelProblem(
            Trouble.NOT_CONFIGURED,
            sentence=f"{named_by} is {spec.name}, but there is no OPENAI_API_KEY. Set it, point OPENAI_BASE_URL at a "
            f"service that needs none, or choose demo as {named_by}.",
        )


def _google(spec: ModelSpec) -> BaseChatModel:
    google = importlib.import_module("langchain_google_genai")
    model: BaseChatModel = google.ChatGoogleGenerativeAI(
        model=spec.name.removeprefix(GOOGLE),
        google_api_key=spec.api_key,
        timeout=spec.timeout,
        max_retries=1,
        **({} if spec.temperature is None else {"temperature": spec.temperature}),
    )
    return model


async def close_model(model: BaseChatModel) -> None:
    """Close the connections a model holds; left open, they are closed after the event loop is gone."""
    client = getattr(model, "root_async_client", None)
    if client is not None:
        await client.close()
