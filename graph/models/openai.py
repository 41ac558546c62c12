"""Any OpenAI-compatible service as a chat model."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import openai
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

OPENAI = "https://api.openai.com/v1"
_CONNECT_SECONDS = 10.0

_RESPONSES_ONLY = re.compile(r"gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)")
"""OpenAI's models that take function tools only at `/v1/responses` unless they are told not to reason (GPT-5.6 and
later, https://github.com/BerriAI/litellm/pull/34569)."""


def create_openai_model(name: str, *, base_url: str | None, api_key: SecretStr | None, timeout: float) -> BaseChatModel:
    """A streaming chat model at `base_url` (OpenAI's own when `None`).

    `timeout`: the longest wait, in seconds, for the answer to begin and then for each further piece of it.

    It never retries: the client's own retries also repeat requests that cannot succeed (an empty account is a 429),
    wait up to two minutes without a word, and do not cover a stream that breaks off. `stream_message` does all that.
    """
    address = base_url or OPENAI
    extra: dict[str, Any] = {}
    if urlsplit(address).hostname != urlsplit(OPENAI).hostname:
        extra["use_responses_api"] = False  # others speak chat completions, whatever their models are called
    elif _RESPONSES_ONLY.match(name):
        extra |= {"use_responses_api": True, "store": False}
    model = ChatOpenAI(
        model=name,
        base_url=address,
        # Local services want no key, the client insists on one.
        api_key=api_key or SecretStr("none"),
        timeout=openai.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
        stream_chunk_timeout=timeout,
        max_retries=0,
        streaming=True,
        stream_usage=True,
        **extra,
    )
    if not model.use_responses_api:
        model.async_client = _PlainCompletions(model.root_async_client)
    return model


class _PlainCompletions:
    """`client.chat.completions` as far as a streaming `ChatOpenAI` uses it, JSON in and JSON out.

    The client's own looks through every message for fields to rename, of which there are none, and makes a pydantic
    model of every piece of the answer, which LangChain turns back into a dict: with 20 turns of history that was more
    than all the rest of a turn (`make bench`). Sending, errors, and time limits stay the client's.
    """

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    async def create(self, **body: Any) -> openai.AsyncStream[object]:
        """Ask, and stream the answer. Raises what the client raises."""
        stream = openai.AsyncStream[object]
        return await self._client.post("/chat/completions", cast_to=object, body=body, stream=True, stream_cls=stream)
