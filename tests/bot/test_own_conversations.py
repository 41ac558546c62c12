"""What somebody does with conversations of their own: finding, renaming and deleting them."""

from __future__ import annotations

from gettext import NullTranslations

import pytest

import translations
from bot import conversations
from bot.domain import ConversationReference, Invalid, Message, Person, Settled, Unknown
from bot.outbox import NewPost
from bot.records import approvals, posts, threads
from bot.records.locks import UNLOCKED
from tests.bot.rows import asked
from tests.bot.services_stage import Stage
from translations import in_language

ANA, BEN = Person("web:ana", "Ana"), Person("web:ben", "Ben")
TRIP, LUNCH = "web:trip", "web:lunch"


async def write(stage: Stage, person: Person, thread_id: str, text: str, key: str = "1") -> bool:
    place = ConversationReference("web", thread_id, {"thread": thread_id}, direct=True, has_threads=True)
    owners = frozenset([person.person_id])
    message = Message(f"{thread_id}:{key}", place, person, text, stage.clock(), owners=owners)
    return await stage.services.inbox.accept(message)


async def say(stage: Stage, thread_id: str, text: str) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        content = {"text": text, "final": True}
        await stage.outbox.say(tx, NewPost(f"said:{thread_id}", thread_id, "said", content=content))


async def ask(stage: Stage, thread_id: str) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        request = asked(f"{thread_id}:1.0.0", requesters=(ANA.person_id,), approvers=("web:ben",))
        await approvals.add(tx, "a1", thread_id, request, now=stage.clock(), expires_at=None)
        await stage.outbox.say(tx, NewPost("approval:a1", thread_id, "approval", subject="a1"))


@pytest.fixture
async def stage(stage: Stage) -> Stage:
    await write(stage, ANA, TRIP, "Plan a trip to Zürich")
    await write(stage, ANA, LUNCH, "Lunch on 100% of days_off")
    await write(stage, BEN, "web:bens", "A trip of Ben's")
    return stage


async def found(stage: Stage, text: str, person: Person = ANA) -> set[str]:
    search = await stage.services.conversations.search(person, text)
    assert search.is_whole
    return {each.thread_id for each in search.found}


async def test_a_search_finds_titles_and_what_was_said_by_either_and_only_ones_own(stage: Stage) -> None:
    await say(stage, LUNCH, "Booked at the Ristorante ÖRTLI")
    await write(stage, ANA, TRIP, "Take an umbrella, too", "2")
    assert await found(stage, "trip") == {TRIP}
    assert await found(stage, "zÜRICH") == {TRIP}
    assert await found(stage, "UMBRELLA") == {TRIP}
    assert await found(stage, "örtli") == {LUNCH}
    assert await found(stage, "trip", BEN) == {"web:bens"}


async def test_what_was_said_long_ago_is_found_and_what_was_not_looked_at_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2, 2 * conversations.SEARCHED_AT_ONCE):
        await write(stage, ANA, TRIP, f"More of it, {number}", str(number))
    assert await found(stage, "zürich") == await found(stage, "of it, 2") == {TRIP}
    await stage.services.inbox.rename(TRIP, "Summer", {"web:ana"})
    assert await found(stage, "zürich") == {TRIP}, "in the very first message"
    monkeypatch.setattr(conversations, "MOST_SEARCHED", 50)
    search = await stage.services.conversations.search(ANA, "zürich")
    assert (search.found, search.is_whole) == ((), False)
    monkeypatch.undo()
    monkeypatch.setattr(conversations, "MOST_FOUND", 1)
    search = await stage.services.conversations.search(ANA, "o")
    assert (len(search.found), search.is_whole) == (1, False)


@pytest.mark.parametrize(("text", "threads_"), [("100%", {LUNCH}), ("s_o", {LUNCH}), ("%", {LUNCH}), ("p_a", set())])
async def test_nothing_of_what_is_searched_for_is_a_pattern(stage: Stage, text: str, threads_: set[str]) -> None:
    assert await found(stage, text) == threads_


async def test_only_its_owner_renames_a_conversation_and_its_name_stays(stage: Stage) -> None:
    inbox, conversations = stage.services.inbox, stage.services.conversations
    assert isinstance(await inbox.rename(TRIP, "Mine now", {"web:ben"}), Unknown)
    assert isinstance(await inbox.rename(TRIP, " \n ", {"web:ana"}), Invalid)
    assert isinstance(await inbox.rename(TRIP, "  Summer\n2027 ", {"web:ana"}), Settled)
    await write(stage, ANA, TRIP, "And a hotel", "2")
    assert {each.title for each in await conversations.owned(ANA)} == {"Summer 2027", "Lunch on 100% of days_off"}


async def test_a_deleted_conversation_is_gone_for_its_owner_and_nobody_writes_there_again(stage: Stage) -> None:
    inbox, conversations = stage.services.inbox, stage.services.conversations
    assert isinstance(await inbox.delete("k1", TRIP, BEN, {"web:ben"}), Unknown)
    assert isinstance(await inbox.delete("k2", TRIP, ANA, {"web:ana"}), Settled)
    assert isinstance(await inbox.delete("k2", TRIP, ANA, {"web:ana"}), (Settled, Unknown))
    assert [each.thread_id for each in await conversations.owned(ANA)] == [LUNCH]
    assert isinstance(await conversations.view(TRIP, ANA), Unknown)
    assert await conversations.owners_for(TRIP, ANA) is None
    assert await found(stage, "trip") == set()
    assert not await write(stage, ANA, TRIP, "hello?", "9")
    async with stage.database.reading() as tx:
        assert TRIP not in [each.thread_id for each in await threads.newest(tx, "web", 10)]


class Marked(NullTranslations):
    """A language that anybody can tell from English."""

    def gettext(self, message: str) -> str:
        return f"‹{message}›"


async def test_requests_in_a_deleted_conversation_are_superseded_and_approvers_do_not_see_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translations, "catalogue", lambda _name: Marked())
    inbox, conversations = stage.services.inbox, stage.services.conversations
    await ask(stage, TRIP)
    assert not isinstance(await conversations.card("a1", BEN), Unknown)
    with in_language("de"):  # Ana's own
        await inbox.delete("k1", TRIP, ANA, {"web:ana"})
    assert isinstance(await conversations.card("a1", BEN), Unknown)
    assert isinstance(await conversations.view(TRIP, BEN), Unknown)
    async with stage.database.reading() as tx:
        row = await approvals.get(tx, "a1")
        card = (await posts.of_subjects(tx, ["a1"]))["a1"][0]
    assert row is not None
    assert (row.status, row.reason) == ("superseded", "The conversation was deleted"), "in the language of all"
    assert card.revision > 1, "wherever else its card is, it says so"
    assert await stage.waiting(TRIP) == ["k1"], "what ran is ended as a stop ends it, and no message is handled"
