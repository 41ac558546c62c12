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
    return ChatOpenAI(
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
