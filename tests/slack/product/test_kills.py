"""kill -9 at random moments while people talk, click and are being answered: in the end Slack shows everything once, in
order, finished and true."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, Reply, Request, ToolUse, fake_openai
from tests.fakes.slack.server import FakeSlack
from tests.kills.facts import Facts, key_of, read_facts
from tests.kills.mortal import TAKEOVER, MortalProduct, effects_server, mortal_product
from tests.slack.product.conftest import SECRET, connected
from tests.slack.product.insistent import Conversation, InsistentTransport
from tests.slack.product.talk import Json, Talk, buttons, words
from tests.support.product import ProductFolder
from tests.support.product_records import rows_in_records
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport

pytestmark = [pytest.mark.kills, pytest.mark.timeout(240)]

FEW_KILLS, MANY_KILLS = 7, 14
CHANNELS = ("C1", "C3", "C4", "D1")
"""One thread in each, since Slack takes about one message a second in a channel. In C4 there are no streams."""
MOST_CALLS = 25
"""Calls to Slack that the product gets to make before it is killed, at most."""
LONGEST_MOMENT = 0.5
"""Seconds that it lives on after that, at most."""
LONGEST_LIFE = 4.0 + TAKEOVER
SETTLING = 4.0
"""Seconds, at most, in which what nobody finishes is cleared away when everything else is over."""
SLOWLY = 0.02
"""Seconds between two words of a slow answer."""


async def test_in_the_end_slack_shows_everything_once_in_order_and_finished(
    home: ProductFolder,
    product: MortalProduct,
    slack: FakeSlack,
    seed: int,
    tries: Callable[[int, int], int],
    record_property: Callable[[str, object], None],
) -> None:
    slack.fail("chat.startStream", error="no_streams_here", when=lambda a: a["channel"] == "C4", times=math.inf)
    await product.start()
    transport = InsistentTransport(HttpTransport(f"{product.url}/slack/events", SECRET))
    people = [
        _conversation(slack, transport, channel, random.Random(seed + 1 + number))
        for number, channel in enumerate(CHANNELS)
    ]
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for number, each in enumerate(people):
            group.create_task(_live(each, over, number))
        await _die_again_and_again(product, slack, tries(FEW_KILLS, MANY_KILLS), random.Random(seed))
        over.set()
    await _everything_is_shown(home, product)
    await _nothing_is_left_behind(slack, people)
    assert await product.terminate() == 0

    facts = read_facts(home)
    assert [d for d in facts.deliveries if d["status"] == "parked"] == []
    assert [key for key, times in facts.effects.items() if times > 1] == []
    for each in people:
        shown = each.talk.of_the_bot()
        check_finished(shown)
        check_posts(shown)
        check_order(shown, each.said)
        assert slack.sessions(each.talk.channel, each.talk.thread_ts)[-1] == "active"
    cards = [m for each in people for m in each.talk.of_the_bot() if _subject(m).startswith("approval:")]
    check_cards(cards, facts)
    assert "xoxb-1" not in product.log()
    assert slack.product_mistakes == []
    summary = {
        "messages": sum(len(each.said) for each in people),
        "effects": facts.effects.total(),
        "unknown": sum(each.unknown for each in people),
        "streams": len(slack.calls_of("chat.startStream")),
    }
    record_property("kills", summary)
    print(summary)
    assert summary["effects"] >= len(people), "so few effects prove nothing"
    assert summary["streams"] >= len(people), "so few streams prove nothing"


# ------------------------------------------------------------------------------------------------ what must be true


def check_finished(shown: Sequence[Json]) -> None:
    """No message is still being written, and each is (a part of) a post, none a draft that was left behind."""
    assert [m["ts"] for m in shown if m["streaming"]] == []
    assert [words(m)[:200] for m in shown if _mark(m) is None] == []


def check_posts(shown: Sequence[Json]) -> None:
    """Each part of each post is there once, its parts one below the other."""
    parts = [_mark(m) for m in shown]
    assert [part for part, times in Counter(parts).items() if times > 1] == []
    for post, group in itertools.groupby(parts, key=lambda part: part and part[0]):
        assert [part[1] for part in group if part] == sorted(part[1] for part in parts if part and part[0] == post)


def check_order(shown: Sequence[Json], said: Sequence[str]) -> None:
    """The answers follow each other as the messages did, and each message has one."""
    ended = [key for m in shown for key in said if f"end of {key}" in words(m)]
    assert ended == list(said)
    for key in said:
        begun = [n for n, m in enumerate(shown) if f"working on {key}." in words(m)]
        cards = [n for n, m in enumerate(shown) if _subject(m).startswith("approval:") and f"{key}/" in words(m)]
        end = next(n for n, m in enumerate(shown) if f"end of {key}" in words(m))
        assert [*begun, *cards, end] == sorted([*begun, *cards, end])


def check_cards(cards: Sequence[Json], facts: Facts) -> None:
    """Every approval has its card, which says what became of it."""
    by_id = {a["approval_id"]: a for a in facts.approvals}
    assert sorted(_subject(card).removeprefix("approval:") for card in cards) == sorted(by_id)
    for card in cards:
        approval = by_id[_subject(card).removeprefix("approval:")]
        assert buttons(card) == ["show_all"], words(card)
        assert approval["status"] in {"approved", "rejected"}
        assert approval["status"].capitalize() in words(card)
        attempt = facts.attempt_at(approval["call_id"])
        if approval["status"] == "rejected":
            assert attempt is None
            assert facts.effects[key_of(approval)] == 0
        else:
            assert attempt is not None
            assert attempt["status"] in {"done", "unknown"}
            said = "Done: acted on" if attempt["status"] == "done" else ("Skipped by Ana", "Done, confirmed by Ana.")
            told = (
                f"{words(card)}\n{card['text']}"  # what was done is in the notification; the card has it in its details
            )
            assert any(text in told for text in ([said] if isinstance(said, str) else said)), told


def _mark(message: Json) -> tuple[str, int] | None:
    metadata = message.get("metadata") or {}
    if metadata.get("event_type") != "countersign_post":
        return None
    return metadata["event_payload"]["post"], metadata["event_payload"]["part"]


def _subject(message: Json) -> str:
    mark = _mark(message)
    return mark[0] if mark else ""


# ------------------------------------------------------------------------------------------------ dying


async def _die_again_and_again(product: MortalProduct, slack: FakeSlack, kills: int, rng: random.Random) -> None:
    """Kill the product after so many calls to Slack and a moment more; now and then while it starts."""
    for number in range(kills):
        if number % 6 != 5:
            assert await product.listening(), product.log()[-3000:]
            goal = len(slack.calls) + rng.randrange(MOST_CALLS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_LIFE):
                    while len(slack.calls) < goal:
                        await asyncio.sleep(0.005)
        await asyncio.sleep(rng.uniform(0, LONGEST_MOMENT))
        await product.kill()
        await product.fork()
    assert await product.listening(), product.log()[-3000:]


async def _everything_is_shown(home: ProductFolder, product: MortalProduct) -> None:
    """Wait until no delivery waits and no post is unsent."""
    for _ in range(600):
        waiting = [d for d in read_facts(home).deliveries if d["status"] == "waiting" and d["kind"] != "timer"]
        if not waiting and not _unsent(home):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"it does not come to rest:\n{product.log()[-3000:]}")


async def _nothing_is_left_behind(slack: FakeSlack, people: Sequence[Conversation]) -> None:
    """Wait a while for what nobody finishes to be cleared away."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLING):
            while not all(_rests(slack, each.talk) for each in people):
                await asyncio.sleep(0.05)


def _rests(slack: FakeSlack, talk: Talk) -> bool:
    left = [m for m in talk.of_the_bot() if m["streaming"] or _mark(m) is None]
    return not left and slack.sessions(talk.channel, talk.thread_ts)[-1:] == ["active"]


def _unsent(home: ProductFolder) -> int:
    return len(rows_in_records(home, "SELECT key FROM posts WHERE sent_revision < revision"))


# ------------------------------------------------------------------------------------------------ a person's life


def _conversation(slack: FakeSlack, transport: InsistentTransport, channel: str, rng: random.Random) -> Conversation:
    ana, ben = (SlackPerson(slack, "T1", user, transport) for user in ("U1", "U2"))
    return Conversation(slack, Talk(slack, ana, channel), ben, rng)


async def _live(each: Conversation, over: asyncio.Event, first: int) -> None:
    turn = 0
    name = each.talk.channel.lower()
    while turn < 3 or not over.is_set():
        await HABITS[(first + turn) % len(HABITS)](each, f"{name}-{turn}")
        turn += 1
    await each.say(f"hey {name}-last")
    await each.hears(f"end of {name}-last")


async def _decides(each: Conversation, key: str) -> None:
    """One card is approved by a hasty double click, the other rejected; Ben clicks in between."""
    await each.say(f"do {key}")
    first, second = await each.cards(key, 2)
    if each.talk.channel.startswith("C"):
        await each.clicks_in_vain(first)
    await each.approves(first, times=2)
    await (each.rejects(second) if each.rng.random() < 0.3 else each.approves(second))
    await each.hears(f"end of {key}")


async def _listens(each: Conversation, key: str) -> None:
    await each.say(f"tell {key}")
    await each.hears(f"end of {key}")


async def _reads(each: Conversation, key: str) -> None:
    await each.say(f"write {key}")
    await each.hears(f"end of {key}")


async def _looks(each: Conversation, key: str) -> None:
    await each.say(f"look {key}")
    await each.hears(f"end of {key}")


async def _hurries(each: Conversation, key: str) -> None:
    """The second message comes while the first is being answered."""
    await each.say(f"tell {key}a")
    await each.say(f"hey {key}b")
    await each.hears(f"end of {key}b")


HABITS: tuple[Callable[[Conversation, str], Awaitable[None]], ...] = (
    _decides,
    _listens,
    _looks,
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
            text = f"I am working on {key}.\n\n{_story(key, 30)}"
            return Reply(text=text, calls=[ToolUse("effects__look", {"key": key})], pause=SLOWLY)
        case "tell" | "look":
            return Reply(text=f"{_story(key, 120)}\n\nThis is the end of {key}", pause=SLOWLY)
        case "write":
            paragraphs = "\n\n".join(f"{key} {n}: " + "word" * 200 for n in range(30))
            return Reply(text=f"{paragraphs}\n\nThis is the end of {key}", pause=0.003)
        case _:
            return Reply(text=f"That is the end of {key}")


def _story(key: str, length: int) -> str:
    return "\n".join(f"{n}. line of {key}" for n in range(length // 4))


# ------------------------------------------------------------------------------------------------ the product


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model service."""
    async with fake_openai(brain) as server:
        yield server


@pytest.fixture
async def home(tmp_path: Path, slack: FakeSlack, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What the product has on disk, with a tool server that outlives it."""
    for channel in CHANNELS:
        if channel.startswith("C"):
            slack.add_channel(channel, members=["U1", "U2", "UBOT"])
    home = ProductFolder(tmp_path, connected(slack))
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    async with effects_server(home, seed="7"):
        yield home


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product; not started yet."""
    async with mortal_product(home) as product:
        yield product
