"""Checkpoints are kept as they were put; in SQLite, they are in memory until something rests on them, and memory and
file never say different things."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, copy_checkpoint, empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from bot.records import checkpoints as module
from bot.records.checkpoints import Checkpoints, sqlite_checkpoints
from tests.support.opened_checkpoints import AnyCheckpoints, opened_checkpoints, put_to_disk, rows_of_checkpoints


class Conversation(TypedDict, total=False):
    said: Annotated[list[Any], operator.add]
    name: str


class Branch(TypedDict, total=False):
    name: str
    said: Annotated[list[Any], operator.add]


class Result(TypedDict):
    said: Annotated[list[Any], operator.add]


def graph(saver: AnyCheckpoints) -> Any:
    """Three branches side by side: two that ask, one that does not."""

    async def ask(state: Branch) -> dict[str, Any]:
        return {"said": [AIMessage(f"{state['name']}: {interrupt(state['name'])}", id=state["name"])]}

    async def prepare(_: Branch) -> dict[str, Any]:
        return {}

    branch: Any = StateGraph(Branch, output_schema=Result)
    branch.add_node("prepare", prepare)
    branch.add_node("ask", ask)
    branch.add_edge(START, "prepare")
    branch.add_conditional_edges("prepare", lambda state: END if state["name"] == "free" else "ask", ["ask", END])
    branch.add_edge("ask", END)

    async def model(_: Conversation) -> dict[str, Any]:
        return {"said": [AIMessage("calling", id="m")]}

    whole: Any = StateGraph(Conversation)
    whole.add_node("model", model)
    whole.add_node("branch", branch.compile())
    whole.add_edge(START, "model")
    sends = [Send("branch", {"name": name}) for name in ("a", "b", "free")]
    whole.add_conditional_edges("model", lambda _: sends, ["branch"])
    whole.add_edge("branch", END)
    return whole.compile(checkpointer=saver)


def config(thread: str = "t", namespace: str = "", checkpoint_id: str | None = None) -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": namespace}
    return RunnableConfig(configurable=place | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {}))


async def run(saver: AnyCheckpoints, given: Any, thread: str = "t") -> dict[str, Any]:
    ended: dict[str, Any] = await graph(saver).ainvoke(given, config(thread), durability="sync")
    return ended


async def run_and_rest_on(saver: AnyCheckpoints, given: Any) -> None:
    await run(saver, given)
    await put_to_disk(saver, "t")


class Fetching:
    """A connection that knows what was fetched by it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.longest = 0
        """Bytes of the longest value."""
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        cursor = self._connection.execute(statement, values)
        cursor.row_factory = self._seen
        return cursor

    def _seen(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self.longest = max([self.longest, *(len(each) for each in row if isinstance(each, bytes))])
        return row


def rows(path: Path, table: str) -> int:
    with sqlite3.connect(path) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count


def agrees(saver: Checkpoints) -> int:
    """How many namespaces of the thread are in memory, each as it is on disk."""
    newest = saver._thread("t").newest
    for namespace, each in newest.items():
        held, read = each.as_tuple("t", namespace), saver.get_tuple(config(namespace=namespace))
        assert read is not None
        assert (held.config, held.metadata, held.parent_config) == (read.config, read.metadata, read.parent_config)
        read_checkpoint = copy_checkpoint(read.checkpoint)  # which adds an empty field
        for memory, file in ((held.checkpoint, read_checkpoint), (held.pending_writes, read.pending_writes)):
            assert saver.serde.dumps_typed(memory) == saver.serde.dumps_typed(file)
    return len(newest)


HELLO = {"said": [HumanMessage("hello", id="h")], "name": "x"}


@pytest.mark.sqlite
async def test_nothing_is_written_before_something_rests_on_it_and_then_what_is_newest(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    async with sqlite_checkpoints(path) as saver:
        await run(saver, HELLO)
        assert (rows(path, "checkpoints"), rows(path, "writes")) == (0, 0)
        saver.sync("another")
        assert rows(path, "checkpoints") == 0
        saver.sync("t")
        assert rows(path, "checkpoints") == 4, "the root's newest, and one of each branch"
        assert agrees(saver) == 4


@pytest.mark.sqlite
async def test_what_memory_gives_is_what_the_file_gives_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects that were put do not change afterwards: else the one who reads memory and the one who reads the file
    would go on with different states."""
    path = tmp_path / "c.db"
    compared = 0
    async with sqlite_checkpoints(path) as saver:
        put = saver.aput_writes

        async def compare(*args: Any) -> None:
            nonlocal compared
            await put(*args)
            saver.sync("t")
            compared += agrees(saver)

        monkeypatch.setattr(saver, "aput_writes", compare)
        first = await run(saver, HELLO)
        ids = {each.value: each.id for each in first["__interrupt__"]}
        await run(saver, Command(resume={ids["b"]: "yes"}))
        ended = await run(saver, Command(resume={ids["a"]: "no"}))
        assert [message.text for message in ended["said"]] == ["hello", "calling", "a: no", "b: yes"]
    assert compared > 20


@pytest.mark.parametrize("written", ["at each step", "in the end"])
async def test_another_process_goes_on_where_the_file_says(tmp_path: Path, written: str) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        first = await run(saver, HELLO)
        if written == "at each step":
            await put_to_disk(saver, "t")
    ids = {each.value: each.id for each in first["__interrupt__"]}
    async with opened_checkpoints(tmp_path) as saver:
        await run(saver, Command(resume={ids["a"]: "yes"}))
        if written == "at each step":
            await put_to_disk(saver, "t")
    async with opened_checkpoints(tmp_path) as saver:
        ended = await run(saver, Command(resume={ids["b"]: "no"}))
        assert [message.text for message in ended["said"]] == ["hello", "calling", "a: yes", "b: no"]


async def test_pruning_leaves_the_newest_and_writes_nothing_else(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        first = await run(saver, HELLO)
        await put_to_disk(saver, "t")
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await saver.prune_thread("t", [])
        await put_to_disk(saver, "t")
        assert rows_of_checkpoints(tmp_path) == (1, 0)
        state = await graph(saver).aget_state(config())
        assert [message.text for message in state.values["said"]] == ["hello", "calling", "a: yes", "b: yes"]


@pytest.mark.sqlite
async def test_nothing_is_dropped_before_somebody_rests_on_what_is_left(tmp_path: Path) -> None:
    async with sqlite_checkpoints(tmp_path / "c.db") as saver:
        first = await run(saver, HELLO)
        saver.sync("t")
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await saver.prune_thread("t", [])
        assert rows(tmp_path / "c.db", "checkpoints") == 4
        saver.sync("t")
        assert rows(tmp_path / "c.db", "checkpoints") == 1


@pytest.mark.sqlite
async def test_what_is_pruned_while_it_is_written_is_dropped_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.db"
    async with sqlite_checkpoints(path) as saver:
        for _ in range(2):
            await saver.aput(config(), empty_checkpoint(), {}, {})
            saver.sync("t")
        await saver.aput(config(), empty_checkpoint(), {}, {})
        write = saver._write

        def while_pruned(*rows: Any, **named: Any) -> None:
            with pytest.raises(StopIteration):
                saver.prune_thread("t", ()).send(None)
            write(*rows, **named)

        monkeypatch.setattr(saver, "_write", while_pruned)
        saver.sync()
        monkeypatch.undo()
        saver.sync("t")
        assert rows(path, "checkpoints") == 1


async def test_pruning_keeps_what_waits_also_where_it_was_not_read(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        first = await run(saver, HELLO)
    async with opened_checkpoints(tmp_path) as saver:
        state = await graph(saver).aget_state(config())
        waiting = [task.state["configurable"]["checkpoint_ns"] for task in state.tasks if task.interrupts]
        await saver.prune_thread("t", waiting)
        await put_to_disk(saver, "t")
        assert rows_of_checkpoints(tmp_path)[0] == 3, "the branch that has finished is in the root's writes"
        ended = await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        assert [message.text for message in ended["said"]] == ["hello", "calling", "a: yes", "b: yes"]


@pytest.mark.sqlite
async def test_a_disk_that_fails_tells_who_rests_on_it_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.db"
    async with sqlite_checkpoints(path) as saver:
        await run(saver, HELLO)
        with sqlite3.connect(path, isolation_level=None) as other, monkeypatch.context() as patch:
            saver.conn.execute("PRAGMA busy_timeout=1")
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError):
                saver.sync("t")
            other.execute("ROLLBACK")
            patch.setattr(os, "fsync", _fail)
            with pytest.raises(OSError, match="full"):
                saver.sync("t")
            with pytest.raises(OSError, match="full"):
                saver.sync("another")
        saver.sync("t")
        assert agrees(saver) == 4


def _fail(_: int) -> None:
    raise OSError("full")


async def test_what_cannot_be_serialised_is_told_once_and_stands_in_nobodys_way(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        await run(saver, HELLO)
        await put_to_disk(saver, "t")
        for _ in range(2):
            with pytest.raises(TypeError):
                await run_and_rest_on(saver, {"name": object()})
            await run(saver, HELLO, "other")
            await put_to_disk(saver, "t")
        state = await graph(saver).aget_state(config())
        assert state.values["name"] == "x", "as if the process had died"
        assert (await graph(saver).aget_state(config("other"))).values["name"] == "x"


@pytest.mark.sqlite
async def test_what_cannot_be_serialised_is_forgotten_only_when_who_rests_on_it_is_told(tmp_path: Path) -> None:
    """Rule 4: once another's transaction had forgotten it, an attempt began although what it rests on was nowhere."""
    async with sqlite_checkpoints(tmp_path / "c.db") as saver:
        await run(saver, {"name": object()})
        saver.sync()
        with pytest.raises(TypeError):
            await saver.prepare("t")
        await run(saver, {"name": object()})
        saver.sync()
        with pytest.raises(TypeError):
            saver.sync("t")
        saver.sync("t")


async def test_an_exception_is_kept_as_it_is_read_back(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        newest = empty_checkpoint()
        await saver.aput(config(), newest, {}, {})
        await saver.aput_writes(config(checkpoint_id=newest["id"]), [("__error__", ValueError("x"))], "task")
        held = await saver.aget_tuple(config())
        assert held is not None
        assert held.pending_writes is not None
        assert not isinstance(held.pending_writes[0][2], BaseException), "it would hold all that is in its frames"


async def test_what_is_written_too_late_for_its_checkpoint_is_not_kept(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        old, new = empty_checkpoint(), empty_checkpoint()
        await saver.aput(config(), old, {}, {})
        await saver.aput(config(checkpoint_id=old["id"]), new, {}, {})
        await saver.aput_writes(config(checkpoint_id=old["id"]), [("said", ["late"])], "task")
        assert not await saver.has_pending_writes("t", old["id"])
        assert not await saver.has_pending_writes("t", new["id"])
        await saver.prune_thread("t", [])
        await put_to_disk(saver, "t")
        assert rows_of_checkpoints(tmp_path) == (1, 0)


async def test_it_is_known_whether_something_was_written_after_the_newest(tmp_path: Path) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        newest = empty_checkpoint()
        await saver.aput(config(), newest, {}, {})
        assert not await saver.has_pending_writes("t", newest["id"])
        await saver.aput_writes(config(checkpoint_id=newest["id"]), [("said", ["x"])], "task")
        assert await saver.has_pending_writes("t", newest["id"])
        assert not await saver.has_pending_writes("another", newest["id"])


@pytest.mark.parametrize(
    ("put", "read"),
    [
        ("N\0UL", "N\0UL"),
        ("half \ud83d of one", "half ? of one"),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (1e16, 1e16),
        (-0.0, -0.0),
        (math.inf, math.inf),
        (True, True),
        (None, None),
    ],
)
@pytest.mark.parametrize("within", [lambda value: value, lambda value: [value]], ids=["alone", "in a list"])
async def test_a_value_is_kept_as_it_is_serialised(tmp_path: Path, put: Any, read: Any, within: Any) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        await run(saver, {"name": within(put)})
    async with opened_checkpoints(tmp_path) as saver:
        kept = await saver.aget_tuple(config())
        assert kept is not None
        assert repr(kept.checkpoint["channel_values"]["name"]) == repr(within(read))


@pytest.mark.parametrize("within", [lambda value: value, lambda value: [value]], ids=["alone", "in a list"])
async def test_an_integer_of_more_than_64_bits_is_not_kept(tmp_path: Path, within: Any) -> None:
    async with opened_checkpoints(tmp_path) as saver:
        with pytest.raises(TypeError, match="64-bit"):
            await run_and_rest_on(saver, {"name": within(2**64)})


@pytest.mark.sqlite
async def test_threads_that_are_on_disk_do_not_fill_the_memory(tmp_path: Path) -> None:
    async with sqlite_checkpoints(tmp_path / "c.db") as saver:
        unwritten = [f"unwritten{n}" for n in range(module.MOST_READ // 2)]
        for thread in unwritten:
            await run(saver, HELLO, thread)
        for n in range(2 * module.MOST_READ):
            await run(saver, HELLO, f"t{n}")
            saver.sync(f"t{n}")
        assert len(saver._threads) <= module.MOST_READ
        assert set(unwritten) <= set(saver._threads)


@pytest.mark.sqlite
@pytest.mark.parametrize(("characters", "left"), [(10, ["t"]), (2 * module.LONG_STATE, [])])
async def test_a_short_conversation_at_rest_is_not_read_back(tmp_path: Path, characters: int, left: list[str]) -> None:
    said = {"said": [HumanMessage("x" * characters, id="1")]}
    async with sqlite_checkpoints(tmp_path / "c.db") as saver:
        first = await run(saver, said)
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await saver.prune_thread("t", [])
        saver.sync("t")
        assert list(saver._threads) == left
        kept = await saver.aget_tuple(config())
    async with sqlite_checkpoints(tmp_path / "c.db") as saver:
        assert await saver.aget_tuple(config()) == kept


@pytest.mark.sqlite
async def test_a_long_conversation_is_read_without_holding_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    said = [HumanMessage("x" * 1_000, id=str(n)) for n in range(2 * module.LONG_STATE // 1_000)]
    async with sqlite_checkpoints(path) as saver:
        await run(saver, {"said": said})
    async with sqlite_checkpoints(path) as saver:
        reads: Sequence[CheckpointTuple | None] = await asyncio.gather(*(saver.aget_tuple(config()) for _ in range(3)))
        assert all(read is not None and len(read.checkpoint["channel_values"]["said"]) > len(said) for read in reads)


@pytest.mark.sqlite
async def test_what_is_long_is_not_even_fetched_in_the_loop(tmp_path: Path) -> None:
    """Rule 13: a hundred megabytes of calls, which one turn may have made, took the event loop 0.13 s to fetch."""
    path = tmp_path / "c.db"
    async with sqlite_checkpoints(path) as saver:
        await run(saver, {"said": [HumanMessage("x" * 2 * module.LONG_STATE, id="1")]}, "checkpoint")
        await run(saver, {"said": []}, "writes")
        kept = await saver.aget_tuple(config("writes"))
        assert kept is not None
        await saver.aput_writes(kept.config, [("said", ["x" * 2 * module.LONG_STATE])], "task")
    for thread in ("checkpoint", "writes"):
        async with sqlite_checkpoints(path) as saver:
            fetching = Fetching(saver._reader)
            saver._reader = fetching  # type: ignore[assignment]
            assert await saver.aget_tuple(config(thread)) is not None
            assert fetching.longest < module.LONG_STATE


@pytest.mark.sqlite
async def test_who_prepares_does_not_wait_for_long_reads(tmp_path: Path) -> None:
    """Rule 2: whoever writes waits meanwhile, also those who acknowledge."""
    path, may_read = tmp_path / "c.db", threading.Event()
    async with sqlite_checkpoints(path) as saver:
        await run(saver, {"said": [HumanMessage("x" * 2 * module.LONG_STATE, id="1")]}, "read")
    async with sqlite_checkpoints(path) as saver:
        await run(saver, {"said": [HumanMessage("x" * 2 * module.LONG_STATE, id="1")]}, "written")
        await saver.prepare("written")  # from now on it is known to be long
        held = saver._long_reads.submit(may_read.wait)
        try:
            reading = asyncio.create_task(saver.aget_tuple(config("read")))
            async with asyncio.timeout(5):
                await saver.prepare("written")
            assert not reading.done()
        finally:
            may_read.set()
        assert held.result()
        assert await reading is not None
