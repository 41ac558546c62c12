"""What a person's requests used of the language model, in Teams: the command `usage`."""

from __future__ import annotations

from tests.teams.product.talk import Talk


async def test_the_command_says_what_ones_own_requests_used(chat: Talk) -> None:
    await chat.mentions("hello")
    await chat.says("You said")
    await chat.mentions("usage")
    await chat.says(
        "What your requests used of the language model", "**Today**: 1 model call", "**30 days**: 1 model call"
    )
