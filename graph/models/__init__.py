"""Language models of a service. A provider is imported only when it is chosen."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from pydantic import SecretStr

from graph.models.problems import ModelProblem, Trouble, explain_model_error

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = [
    "PROVIDERS",
    "ModelProblem",
    "ModelSpec",
    "Trouble",
    "check_configured",
    "close_model",
    "create_model",
    "explain_model_error",
    "provider_of",
]

PROVIDERS = {"anthropic": "langchain_anthropic", "google": "langchain_google_genai"}
"""Services with an API of their own: the prefix of their models' names, which is also that of their settings and the
name of the extra → the module that comes with the extra."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which model to use, and how to reach it."""

    name: str
    """`anthropic:{model}`, `google:{model}`, or the name of a model at an OpenAI-compatible service."""
    base_url: str | None = None
    """Address of the service, for an OpenAI-compatible one up to and including `/v1`; `None`: the provider's own."""
    api_key: SecretStr | None = None
    timeout: float = 60.0
    """Seconds to wait for the answer to begin, and for each further piece of it."""
    temperature: float | None = None
    """From 0 to 2; `None`: the service's own. Anthropic's has none."""


def provider_of(name: str) -> str | None:
    """The key in `PROVIDERS` that the name of a model begins with; `None`: it is at an OpenAI-compatible service."""
    prefix, colon, _ = name.partition(":")
    return prefix if colon and prefix in PROVIDERS else None


def create_model(spec: ModelSpec) -> BaseChatModel:
    """The model of a service that `spec` names. Importing its library takes a second or two.

    Raises `ModelProblem` (`Trouble.NOT_CONFIGURED`) when something is missing that an operator has to add.
    """
    check_configured(spec)
    name = spec.name
    reached = _Reached(base_url=spec.base_url, api_key=spec.api_key, timeout=spec.timeout)
    match provider_of(name):
        case "anthropic":
            from graph.models.anthropic import create_anthropic_model  # noqa: PLC0415 (imported only when chosen)

            return create_anthropic_model(name.removeprefix("anthropic:"), **reached)
        case "google":
            from graph.models.google import create_google_model  # noqa: PLC0415 (imported only when chosen)

            return create_google_model(name.removeprefix("google:"), **reached, temperature=spec.temperature)
    from graph.models.openai import create_openai_model  # noqa: PLC0415 (1.5 s, imported only when chosen)

    return create_openai_model(name, **reached, temperature=spec.temperature)


class _Reached(TypedDict):
    """What each kind of model is made with."""

    base_url: str | None
    api_key: SecretStr | None
    timeout: float


def check_configured(spec: ModelSpec, named_by: str = "LLM_MODEL") -> None:
    """Imports nothing. Raises `ModelProblem` (`Trouble.NOT_CONFIGURED`) when something is missing that an operator has
    to add.

    Args:
        named_by: the setting, or the key of a file, that says which model it is.
    """
    provider = provider_of(spec.name)
    if provider is not None and not spec.name.partition(":")[2]:
        raise _not_configured(f"{named_by} names no model. Write {provider}:{{model}}.")
    if provider is not None and importlib.util.find_spec(PROVIDERS[provider]) is None:
        raise _not_configured(
            f"{named_by} is {spec.name}, but what it needs is not installed. Install it with "
            f"`uv sync --extra {provider}`, or choose another {named_by}."
        )
    if spec.api_key is None and spec.base_url is None:
        service = (provider or "openai").upper()
        raise _not_configured(
            f"{named_by} is {spec.name}, but there is no {service}_API_KEY. Set it, point {service}_BASE_URL at a "
            f"service that needs none, or choose demo as {named_by}."
        )
    if provider == "anthropic" and spec.temperature is not None:
        raise _not_configured(
            f"{spec.name} takes no temperature: Anthropic's API has none since 2026-10-21. Remove it."
        )


def _not_configured(sentence: str) -> ModelProblem:
    return ModelProblem(Trouble.NOT_CONFIGURED, sentence=sentence)


async def close_model(model: BaseChatModel) -> None:
    """Close the connections a model holds; left open, they are closed after the event loop is gone."""
    client = getattr(model, "root_async_client", None)
    close = client.close if client is not None else getattr(model, "aclose", None)
    if close is not None:
        await close()
