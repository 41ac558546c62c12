"""The fake's streams obey Teams' rules, and so must those who write them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.teams.server import ANA, BEN, FakeTeams, fake_teams
from tests.teams.asking import Asking, asking, message, update


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@pytest.fixture
async def bot(teams: FakeTeams) -> AsyncIterator[Asking]:
    async with asking(teams) as one:
        yield one


@pytest.fixture
def chat(teams: FakeTeams) -> str:
    return teams.personal(ANA)


async def begun(bot: Asking, chat: str, kind: str = "informative", text: str = "Thinking") -> str:
    status, body = await bot.send(chat, update(kind, text, 1))
    assert status == 201, body
    return str(body["id"])


async def test_a_stream_is_one_message_from_the_first_status_to_the_end(
    teams: FakeTeams, bot: Asking, chat: str
) -> None:
    stream = await begun(bot, chat)
    [shown] = teams.posts(chat)
    assert (shown["text"], shown["status"], shown["streaming"]) == ("", "Thinking", True)
    assert await bot.send(chat, update("streaming", "A brown", 2, stream)) == (202, {})
    assert await bot.send(chat, update("streaming", "A brown fox", 3, stream)) == (202, {})
    assert teams.posts(chat)[0]["text"] == "A brown fox"
    assert await bot.send(chat, update("final", "A brown fox.", None, stream)) == (202, {})
    [shown] = teams.posts(chat)
    assert (shown["id"], shown["text"], shown["streaming"]) == (stream, "A brown fox.", False)
    [told] = teams.streams(chat)
    assert [kind for kind, _ in told["updates"]] == ["informative", "streaming", "streaming", "final"]
    assert teams.product_mistakes == []


async def test_a_finished_stream_takes_no_more_but_its_message_can_be_changed(
    teams: FakeTeams, bot: Asking, chat: str
) -> None:
    stream = await begun(bot, chat, "streaming", "Done")
    await bot.send(chat, update("final", "Done.", None, stream))
    assert await bot.refusal(chat, update("streaming", "Done. More", 2, stream)) == "403 ContentStreamNotAllowed"
    assert (await bot.ask("PUT", f"/{chat}/activities/{stream}", message("Changed")))[0] == 200
    assert teams.posts(chat)[0]["text"] == "Changed"


async def test_streams_are_for_personal_chats_one_at_a_time(teams: FakeTeams, bot: Asking, chat: str) -> None:
    assert await bot.refusal(teams.group, update("informative", "x", 1)) == "400 BadArgument"
    await begun(bot, chat)
    assert await bot.refusal(chat, update("informative", "x", 1)) == "403 ContentStreamNotAllowed"
    await begun(bot, teams.personal(BEN))
    teams.clock.move(120)
    await begun(bot, chat)


async def test_a_stream_ends_after_two_minutes_or_when_the_person_stops_it(
    teams: FakeTeams, bot: Asking, chat: str
) -> None:
    stream = await begun(bot, chat, "streaming", "A")
    teams.clock.move(119)
    assert (await bot.send(chat, update("streaming", "AB", 2, stream)))[0] == 202
    teams.clock.move(1)
    assert await bot.refusal(chat, update("final", "ABC", None, stream)) == "403 ContentStreamNotAllowed"
    assert not teams.posts(chat)[0]["streaming"]
    another = await begun(bot, chat)
    teams.cancel_stream(another)
    assert await bot.refusal(chat, update("streaming", "A", 2, another)) == "403 ContentStreamNotAllowed"


@pytest.mark.parametrize(
    "wrong",
    [
        update("informative", "x" * 1001, 1),
        update("informative", "x", 2),
        update("informative", "x", None),
        update("informative", "", 1),
        update("final", "x", None),
        update("streaming", "x", 1, attachments=[{"contentType": "x"}]),
        update("streaming", "x", 2, "1"),
    ],
    ids=["status too long", "not the first", "no number", "no text", "no stream", "attachment", "unknown stream"],
)
async def test_an_update_of_the_wrong_shape_is_refused(bot: Asking, chat: str, wrong: dict[str, object]) -> None:
    assert (await bot.refusal(chat, wrong)).startswith("400")


async def test_a_text_goes_on_from_the_text_before_it(teams: FakeTeams, bot: Asking, chat: str) -> None:
    stream = await begun(bot, chat, "streaming", "One two")
    assert await bot.refusal(chat, update("streaming", "Two", 2, stream)) == "403 ContentStreamNotAllowed"
    assert await bot.refusal(chat, update("final", "Two", None, stream)) == "403 ContentStreamNotAllowed"
    assert len(teams.product_mistakes) == 2


async def test_updates_out_of_order_are_dropped(teams: FakeTeams, bot: Asking, chat: str) -> None:
    stream = await begun(bot, chat, "streaming", "A")
    await bot.send(chat, update("streaming", "AB", 3, stream))
    status, body = await bot.send(chat, update("streaming", "ABC", 2, stream))
    assert (status, body["error"]["code"]) == (202, "ContentStreamSequenceOrderPreConditionFailed")
    assert teams.posts(chat)[0]["text"] == "AB"
    assert teams.product_mistakes
