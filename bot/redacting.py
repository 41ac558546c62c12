"""What is masked where: made from the settings once, applied to what people are shown.

What tools return is masked before it enters the house (`adapters/tool_servers`); the arguments of a call are kept as
they are, since they are what is approved and what runs, and masked wherever they are shown or logged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from bot.settings import Settings
from bot.vocabulary import ApprovalView, Content, OutcomeView, Post
from policies.redaction import EMAILS, GUIDS, TOKENS, Redactor, SecretPattern

PLAIN = Redactor()
"""Masks what every house masks."""

_Shown = TypeVar("_Shown", bound=Content)


def redactor_of(settings: Settings, values: Collection[str] = ()) -> Redactor:
    """Everything that the settings want masked in what tools say; `values`: further secrets of this process."""
    wanted = (*([GUIDS] if settings.redact_guids else []), *([EMAILS] if settings.redact_emails else []))
    return Redactor((*TOKENS, *_own(settings), *wanted), settings.secret_values | set(values))


def log_redactor_of(settings: Settings) -> Redactor:
    """What is masked in logs: the same but ids and addresses, by which people and threads are found in them."""
    return Redactor((*TOKENS, *_own(settings)), settings.secret_values)


def redacted_post(post: Post, redactor: Redactor) -> Post:
    """A post as it may be shown."""
    return replace(post, content=redacted(post.content, redactor))


def redacted(content: _Shown, redactor: Redactor) -> _Shown:
    """A card as it may be shown: no secrets in the arguments, nor in the words that asked for the call."""
    match content:
        case ApprovalView():
            return replace(
                content,
                arguments=redactor.redact_json(content.arguments),
                asked_arguments=redactor.redact_json(content.asked_arguments),
                quote=redactor.redact(content.quote),
            )
        case OutcomeView():
            return replace(content, arguments=redactor.redact_json(content.arguments))
        case _:
            return content


def _own(settings: Settings) -> tuple[SecretPattern, ...]:
    return tuple(SecretPattern(kind, regex) for kind, regex in settings.redact_patterns.items())
