"""kill -9 at random moments while people talk, click and are being answered: in the end Teams shows everything, in
order and true; and twice only what was on its way when the product died, since Teams lets nobody search for it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.records.tables import posts
from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.fakes.teams.server import ANA, BEN, CHLOE, FakeTeams
from tests.kills.facts import Facts, broke_off, key_of, read_facts, rows_of
from tests.kills.mortal import TAKEOVER, MortalProduct, effects_server, mortal_product
from tests.support.product import ProductFolder
from tests.support.product_records import connected_to_records
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.teams.product.conftest import connected
from tests.teams.product.insistent import Conversation, InsistentTransport, subjects
from tests.teams.product.talk import Json, Talk, buttons, words

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

FEW_KILLS, MANY_KILLS = 6, 10
TURNS = 3
"""Habits that everybody has at least."""
MOST_CALLS = 14
"""Calls to Teams that the product gets to make before it is killed, at most."""
LONGEST_MOMENT = 0.4
"""Seconds that it lives on after that, at most."""
LONGEST_LIFE = 3.0 + TAKEOVER
DUPLICATES_GO = 25.0
"""Seconds within which a duplicate that somebody clicked is gone."""
SLOWLY = 0.02
"""Seconds between two words of a slow answer."""


@dataclass
class OnTheWay:
    """What the product was busy with when it died: that may be there twice."""

    posts: Counter[str] = field(default_factory=Counter)
    """By key: how often a post was kept and not recorded as shown."""
    streams: set[str] = field(default_factory=set)
    """Ids of messages that were being written."""


async def test_in_the_end_teams_shows_everything_in_order_and_true(
    home: ProductFolder,
    product: MortalProduct,
    teams: FakeTeams,
    seed: int,
    tries: Callable[[int, int], int],
    record_property: Callable[[str, object], None],
) -> None:
    kills = tries(FEW_KILLS, MANY_KILLS)
    await product.start()
    transport = InsistentTransport(HttpTransport(f"{product.url}/api/messages", teams))
    places = ((ANA, teams.personal(ANA)), (CHLOE, teams.personal(CHLOE)), (ANA, teams.channel), (ANA, teams.group))
    people = [
        _conversation(home, teams, transport, user, place, random.Random(seed + 1 + n))
        for n, (user, place) in enumerate(places)
    ]
    over, dying = asyncio.Event(), OnTheWay()
    async with asyncio.TaskGroup() as group:
        for number, each in enumerate(people):
            group.create_task(_live(each, over, number))
        await _die_again_and_again(product, home, teams, dying, kills, random.Random(seed))
        over.set()
    await _everything_is_shown(home, product)

    facts, rows = read_facts(home), _posts(home)
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert [key for key, times in facts.effects.items() if times > 1] == []
    messages = {m["id"]: m for each in people for m in teams.posts(each.talk.conversation)}
    for row in rows:
        assert [part for part in row["parts"] if part not in messages] == [], row
    recorded = {part for row in rows for part in row["parts"]}
    twice = [m for name, m in messages.items() if name not in recorded]
    check_duplicates(twice, rows, messages, dying)
    for each in people:
        check_order(each, [messages[part] for row in rows for part in row["parts"]])
        assert {s["id"] for s in teams.streams(each.talk.conversation) if s["streaming"]} <= dying.streams
    check_cards(rows, messages, facts)
    await _duplicates_go_when_they_are_clicked(people, twice)
    assert await product.terminate() == 0
    assert teams.app_password not in product.log()
    assert teams.product_mistakes == []
    summary = {
        "messages": sum(len(each.said) for each in people),
        "effects": facts.effects.total(),
        "unknown": sum(each.unknown for each in people),
        "streams": sum(len(teams.streams(each.talk.conversation)) for each in people),
        "twice": len(twice),
    }
    record_property("kills", summary)
    print(summary)
    assert summary["effects"] >= len(people), "so few effects prove nothing"
    assert summary["streams"] > 0, "without streams it proves nothing"


# ------------------------------------------------------------------------------------------------ what must be true


def check_duplicates(twice: Sequence[Json], rows: Sequence[Json], messages: dict[str, Json], dying: OnTheWay) -> None:
    """What no record knows is what the product was saying when it died, and no more often than it died over it."""
    seen: Counter[str] = Counter()
    for message in twice:
        if message["id"] in dying.streams:
            beginning = message["text"]
            assert any(messages[part]["text"].startswith(beginning) for row in rows for part in row["parts"]), message
            continue
        same = [row for row in rows if dying.posts[row["key"]] and _is_copy(message, row, messages)]
        assert same, f"twice without need: {words(message)[:200]}"
        seen[f"{same[0]['key']} {words(message)[:40]}"] += 1
        assert seen[f"{same[0]['key']} {words(message)[:40]}"] <= dying.posts[same[0]["key"]]


def _is_copy(message: Json, row: Json, messages: dict[str, Json]) -> bool:
    kept = [messages[part] for part in row["parts"]]
    if message["attachments"]:
        return row["subject"] in subjects(message) or any(words(message) == words(m) for m in kept)
    return any(m["text"] == message["text"] for m in kept)


def check_order(each: Conversation, kept: Sequence[Json]) -> None:
    """The answers follow each other as the messages did, each once in the records, and below its own cards."""
    shown = sorted((m for m in kept if m["conversation"] == each.talk.conversation), key=lambda m: int(m["id"]))
    ended = [key for m in shown for key in each.said if f"end of {key}" in words(m)]
    assert ended == list(each.said)
    for key in each.said:
        begun = [n for n, m in enumerate(shown) if f"working on {key}." in words(m)]
        about = [(n, m) for n, m in enumerate(shown) if m["attachments"] and f"{key}/" in words(m)]
        done = [n for n, m in about if re.match(r"[0-9]+ steps?", words(m).strip())]  # what was done, below the answer
        cards = [n for n, _ in about if n not in done]
        end = next(n for n, m in enumerate(shown) if f"end of {key}" in words(m))
        assert [*begun, *cards, end, *done] == sorted([*begun, *cards, end, *done])


def check_cards(rows: Sequence[Json], messages: dict[str, Json], facts: Facts) -> None:
    """Every approval has its card, which says what became of it."""
    cards = {row["subject"]: messages[row["parts"][0]] for row in rows if row["kind"] == "approval"}
    assert sorted(cards) == sorted(a["approval_id"] for a in facts.approvals)
    for approval in facts.approvals:
        card = cards[approval["approval_id"]]
        assert set(buttons(card)) <= {"show_all"}, words(card)
        assert approval["status"].capitalize() in words(card)
        attempt = facts.attempt_at(approval["call_id"])
        if approval["status"] == "rejected":
            assert attempt is None
            assert facts.effects[key_of(approval)] == 0
        else:
            assert approval["status"] == "approved"
            assert attempt is not None
            assert attempt["status"] in {"done", "unknown"}
            ends = ("Done: acted on",) if attempt["status"] == "done" else ("Skipped by", "confirmed by")
            assert any(text in words(card) for text in ends), words(card)


async def _duplicates_go_when_they_are_clicked(people: Sequence[Conversation], twice: Sequence[Json]) -> None:
    """A second card with buttons is removed as soon as somebody clicks it."""
    clickable = [m for m in twice if {"approve", "skip"} & set(buttons(m))]
    for each in people:
        for message in (m for m in clickable if m["conversation"] == each.talk.conversation):
            name = "approve" if "approve" in buttons(message) else "skip"
            await each.clicks(each.talk.person, message["id"], name, min(subjects(message)))
    gone = {m["id"] for m in clickable}
    shown: Callable[[], set[str]] = lambda: {m["id"] for each in people for m in each.talk.of_the_bot()}  # noqa: E731
    if gone:
        await people[0].teams.until(lambda: not gone & shown(), within=DUPLICATES_GO)


# ------------------------------------------------------------------------------------------------ dying


async def _die_again_and_again(
    product: MortalProduct, home: ProductFolder, teams: FakeTeams, dying: OnTheWay, kills: int, rng: random.Random
) -> None:
    """Kill the product after so many calls to Teams and a moment more; now and then while it starts."""
    for number in range(kills):
        if number % 5 != 4:
            assert await product.listening(), product.log()[-3000:]
            goal = len(teams.calls) + rng.randrange(MOST_CALLS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_LIFE):
                    while len(teams.calls) < goal:
                        await asyncio.sleep(0.005)
        await asyncio.sleep(rng.uniform(0, LONGEST_MOMENT))
        await product.kill()
        dying.posts.update(row["key"] for row in _posts(home) if row["is_unsent"])
        streams = [s for user in (ANA, CHLOE) for s in teams.streams(teams.personal(user))]
        dying.streams |= {s["id"] for s in streams}
        if number % 2:  # else Teams refuses another for two minutes
            for stream in streams:
                if stream["streaming"]:
                    teams.cancel_stream(stream["id"])
        await product.fork()
    assert await product.listening(), product.log()[-3000:]


async def _everything_is_shown(home: ProductFolder, product: MortalProduct) -> None:
    """Wait until no delivery waits and no post is unsent."""
    for _ in range(600):
        waiting = [d for d in read_facts(home).deliveries if d["status"] == "waiting" and d["kind"] != "timer"]
        if not waiting and not any(row["is_unsent"] for row in _posts(home)):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"it does not come to rest:\n{product.log()[-3000:]}")


def _posts(home: ProductFolder) -> list[Json]:
    """The outbox, oldest first."""
    with connected_to_records(home) as connection:
        rows = connection.execute(sa.select(posts).order_by(posts.c.seq)).all()
    return [
        {
            "key": row.key,
            "kind": row.kind,
            "subject": row.subject,
            "parts": (row.reference or {}).get("parts", []),
            "is_unsent": row.sent_revision < row.revision,
        }
        for row in rows
    ]


# ------------------------------------------------------------------------------------------------ a person's life


def _conversation(
    home: ProductFolder, teams: FakeTeams, transport: InsistentTransport, user: str, place: str, rng: random.Random
) -> Conversation:
    talk = Talk(teams, TeamsPerson(teams, user, transport), place)
    ben = TeamsPerson(teams, BEN, transport)
    return Conversation(teams, talk, ben, rng, lambda: rows_of(home, "approvals"), lambda: broke_off(home))


async def _live(each: Conversation, over: asyncio.Event, number: int) -> None:
    turn = 0
    while turn < TURNS or not over.is_set():
        await HABITS[(number + turn) % len(HABITS)](each, f"k{number}-{turn}")
        turn += 1
    await each.say(f"hey k{number}-last")
    await each.hears(f"end of k{number}-last")


async def _decides(each: Conversation, key: str) -> None:
    """One card is approved by a hasty double click, the other rejected; Ben clicks in between."""
    await each.say(f"do {key}")
    first, second = await each.cards(key, 2)
    if each.talk.conversation != each.talk.person.chat:
        await each.clicks_in_vain(first)
    await each.decides(first, "approve", times=2)
    await each.decides(second, "reject" if each.rng.random() < 0.3 else "approve")
    await each.hears(f"end of {key}")


async def _listens(each: Conversation, key: str) -> None:
    await each.say(f"tell {key}")
    await each.hears(f"end of {key}")


async def _looks(each: Conversation, key: str) -> None:
    await each.say(f"look {key}")
    await each.hears(f"end of {key}")


async def _hurries(each: Conversation, key: str) -> None:
    """The second message comes while the first is being answered."""
    await each.say(f"tell {key}a")
    await each.say(f"hey {key}b")
    await each.hears(f"end of {key}b")


async def _reads(each: Conversation, key: str) -> None:
    await each.say(f"write {key}")
    await each.hears(f"end of {key}")


HABITS: tuple[Callable[[Conversation, str], Awaitable[None]], ...] = (
    _decides,
    _looks,
    _decides,
    _listens,
    _decides,
    _hurries,
    _reads,
)
"""Everybody begins at another one, and comes to decide within three turns."""


# ------------------------------------------------------------------------------------------------ the model


def brain(request: Request) -> Reply:
    """Always the same answer to the same conversation; it always ends with `end of KEY`."""
    messages = request["messages"]
    last_person = max(n for n, m in enumerate(messages) if m["role"] == "user")
    *_, order, key = str(messages[last_person]["content"]).split()
    results = [m for m in messages[last_person:] if m["role"] == "tool"]
    match order:
        case "do" if not results:
            acts = [ToolUse("effects__act", {"key": f"{key}/{n}"}) for n in range(2)]
            return Reply(text=f"I am working on {key}.", calls=acts)
        case "look" if not results:
            text = f"I am working on {key}.\n\n{_story(key, 10)}"
            return Reply(text=text, calls=[ToolUse("effects__look", {"key": key})], pause=SLOWLY)
        case "tell" | "look":
            return Reply(text=f"{_story(key, 20)}\n\nThis is the end of {key}", pause=SLOWLY)
        case "write":
            paragraphs = "\n\n".join(f"{key} {n}: " + "word" * 200 for n in range(30))
            return Reply(text=f"{paragraphs}\n\nThis is the end of {key}", pause=0.003)
        case _:
            return Reply(text=f"That is the end of {key}")


def _story(key: str, lines: int) -> str:
    return "\n\n".join(f"Line {n} of {key}" for n in range(lines))


# ------------------------------------------------------------------------------------------------ the product


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model service."""
    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
async def home(tmp_path: Path, teams: FakeTeams, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What the product has on disk, with a tool server that outlives it."""
    home = ProductFolder(tmp_path, connected(teams))
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    async with effects_server(home, seed="7"):
        yield home


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product; not started yet."""
    async with mortal_product(home) as product:
        yield product
