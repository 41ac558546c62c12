"""What is masked where: made from the settings once, applied to what people are shown.

What tools return is masked before it enters the house (`adapters/tool_servers`); the arguments of a call are kept as
they are, since they are what is approved and what runs, and masked wherever they are shown or logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bot.exactness import is_exact
from bot.settings import Settings
from bot.vocabulary import ApprovalView, Content, GrantView, Hidden, OutcomeView, Post
from policies.redaction import EMAILS, GUIDS, TOKENS, Masked, Redactor, SecretPattern, exceeds

PLAIN = Redactor()
"""Masks what every house masks."""

_Shown = TypeVar("_Shown", bound=Content | GrantView)


def redactor_of(settings: Settings, values: Collection[str] = (), *, key: bytes | None = None) -> Redactor:
    """Everything that the settings want masked in what tools say; `values`: further secrets of this process; `key`: of
    the fingerprints (`policies.redaction.fingerprint_key`)."""
    wanted = (*([GUIDS] if settings.redact_guids else []), *([EMAILS] if settings.redact_emails else []))
    return Redactor((*TOKENS, *_own(settings), *wanted), settings.secret_values | set(values), key=key)


def log_redactor_of(settings: Settings) -> Redactor:
    """What is masked in logs: the same but ids and addresses, by which people and threads are found in them."""
    return Redactor((*TOKENS, *_own(settings)), settings.secret_values)


def redacted(content: _Shown, redactor: Redactor) -> _Shown:
    """A card as it may be shown: the secrets in the arguments, and in the words that asked for the call, are masked,
    with how many they are, and whether all else can be told from how it looks."""
    match content:
        case ApprovalView():
            shown = redactor.for_card(_parts_of(content))
            arguments, asked, quote = shown.value
            return replace(
                content,
                arguments=arguments,
                asked_arguments=asked,
                quote=quote,
                masks=len(shown.hidden),
                fingerprint=redactor.fingerprint_of_call(content.server, content.tool, content.arguments),
                exact=is_exact(content.server, content.tool, arguments),
            )
        case OutcomeView() | GrantView():
            shown = redactor.for_card(content.arguments)
            return replace(
                content,
                arguments=shown.value,
                masks=len(shown.hidden),
                fingerprint=redactor.fingerprint_of_call(content.server, content.tool, content.arguments),
                exact=is_exact(content.server, content.tool, shown.value),
            )
        case _:
            return content


async def redacted_aside(content: _Shown, redactor: Redactor) -> _Shown:
    """`redacted`, in a thread where there is much to look through: a megabyte takes 0.1 s of CPU and more."""
    return await asyncio.to_thread(redacted, content, redactor) if _is_large(content) else redacted(content, redactor)


async def redacted_post(post: Post, redactor: Redactor) -> Post:
    """A post as it may be shown; likewise."""
    return replace(post, content=await redacted_aside(post.content, redactor))


async def masked_aside(arguments: Mapping[str, Any], redactor: Redactor) -> Masked:
    """Arguments as a form shows them; likewise."""
    return await asyncio.to_thread(redactor.for_card, arguments) if exceeds(arguments) else redactor.for_card(arguments)


async def hidden_aside(view: ApprovalView, redactor: Redactor) -> Hidden:
    """`hidden_in`; likewise."""
    return await asyncio.to_thread(hidden_in, view, redactor) if _is_large(view) else hidden_in(view, redactor)


def hidden_in(view: ApprovalView, redactor: Redactor) -> Hidden:
    """What the masks on an approval's card hide; `view` as it was before it was `redacted`."""
    hidden = redactor.for_card(_parts_of(view)).hidden
    fingerprint = redactor.fingerprint_of_call(view.server, view.tool, view.arguments)
    return Hidden(view.approval_id, view.server, view.tool, hidden, fingerprint)


def _is_large(content: Content | GrantView) -> bool:
    match content:
        case ApprovalView():
            return exceeds(_parts_of(content))
        case OutcomeView() | GrantView():
            return exceeds(content.arguments)
        case _:
            return False


def _parts_of(view: ApprovalView) -> list[Any]:
    """What of an approval is masked, together, so that equal masks stand for equal secrets all over its card."""
    return [view.arguments, view.asked_arguments, view.quote]


def _own(settings: Settings) -> tuple[SecretPattern, ...]:
    return tuple(SecretPattern(kind, regex) for kind, regex in settings.redact_patterns.items())
