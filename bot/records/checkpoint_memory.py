"""Checkpoints as savers keep them in memory, until something rests on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    copy_checkpoint,
    get_checkpoint_id,
    writes_sort_key,
)

ERROR_CHANNEL = "__error__"
"""LangGraph's channel of exceptions."""
LONG_STATE = 64 * 1024
"""Bytes of a checkpoint and what was written after it from which on they are read in a thread: 1 ms."""


@dataclass(slots=True, eq=False)
class TaskWrite:
    """What a task wrote to one channel."""

    task_path: str
    channel: str
    value: Any
    on_disk: bool = False
    serialised: tuple[str, bytes] | None = None
    """From when it is prepared until it is on disk."""


@dataclass(slots=True, eq=False)
class NewestCheckpoint:
    """The newest checkpoint of a namespace. Neither it nor any value in it is changed afterwards."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    size: int = 0
    """Bytes of the checkpoint; until it is serialised, of the one before."""
    on_disk: bool = False
    serialised: tuple[str, bytes, bytes] | None = None
    """With its metadata; from when it is prepared until it is on disk."""
    writes: dict[tuple[str, int], TaskWrite] = field(default_factory=dict)
    """What was written after it, by task and index."""

    @property
    def checkpoint_id(self) -> str:
        """Its id."""
        return self.checkpoint["id"]

    def unwritten(self) -> bool:
        """Whether it, or anything that was written after it, is not on disk."""
        return not self.on_disk or any(not write.on_disk for write in self.writes.values())

    def as_tuple(self, thread_id: str, namespace: str) -> CheckpointTuple:
        """A copy for LangGraph, which goes on with the very objects that it reads."""
        ordered = sorted(self.writes.items(), key=lambda each: writes_sort_key(each[1].task_path, *each[0]))
        return CheckpointTuple(
            config_of(thread_id, namespace, self.checkpoint_id),
            copy_checkpoint(self.checkpoint),
            self.metadata.copy(),
            config_of(thread_id, namespace, self.parent) if self.parent else None,
            [(task_id, write.channel, write.value) for (task_id, _), write in ordered],
        )

    def add(
        self,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
        storable: Callable[[str, Any], Any],
    ) -> None:
        """Adds what a task wrote. `storable`: makes of a channel's value what is kept of it."""
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        for position, (channel, value) in enumerate(writes):
            key = (task_id, WRITES_IDX_MAP.get(channel, position))
            if replaces or key not in self.writes:
                self.writes[key] = TaskWrite(task_path, channel, storable(channel, value))


@dataclass(slots=True, eq=False, kw_only=True)
class ThreadInMemory:
    """What is known of a thread's checkpoints, on disk or not yet there."""

    newest: dict[str, NewestCheckpoint] = field(default_factory=dict)
    """By namespace; the root is empty."""
    has_rows: bool
    """Whether anything of it may be on disk."""
    pruned: bool = False
    """Whether all else that is on disk is to be dropped."""

    def unwritten(self) -> bool:
        """Whether what is on disk differs from it."""
        return (self.pruned and self.has_rows) or any(each.unwritten() for each in self.newest.values())

    def newest_with_writes(self) -> NewestWithWrites:
        """As it is now."""
        return [
            (namespace, each, [(key, write) for key, write in each.writes.items() if not write.on_disk])
            for namespace, each in self.newest.items()
        ]


NewestWithWrites = Sequence[tuple[str, NewestCheckpoint, Sequence[tuple[tuple[str, int], TaskWrite]]]]
"""Every namespace that is in memory, with what was written after its newest checkpoint and is not on disk yet."""


def place_in_graph(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Returns the thread, the namespace and the checkpoint that a configuration names."""
    where = config["configurable"]
    return str(where["thread_id"]), where.get("checkpoint_ns", ""), get_checkpoint_id(config)


def config_of(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    """Returns the configuration that names a checkpoint."""
    place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return RunnableConfig(configurable=place)
