"""What programs say of a sign-in that a turn waits for: that it is done, that it is not now, or the code they saw."""

from __future__ import annotations

from bot.domain import ClickResult, CodeEntry, Settled, SignInReply
from bot.identity.principal import Principal
from bot.services import Services

DONE, SKIP = "done", "skip"
"""Answers to a sign-in; any other is the one-time code that the browser showed."""


async def reply_to_sign_in(
    services: Services, principal: Principal, sign_in_id: str, text: str, key: str
) -> ClickResult:
    """Returns what came of it. Of `done` nothing is refused: what it waits for is told once more, while it does."""
    person = principal.person
    if text == SKIP:
        return await services.connections.sign_in_reply(SignInReply(key, person, sign_in_id, done=False, via="api"))
    if text == DONE:
        await services.connections.sign_in_reply(SignInReply(key, person, sign_in_id, done=True, via="api"))
        return Settled("")
    return await services.connections.enter_code(CodeEntry(key, person, text, sign_in_id, via="api"))
