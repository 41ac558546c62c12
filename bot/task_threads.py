"""The threads of the tasks of plans: each task has one of its own, which belongs to the conversation that made it."""

from __future__ import annotations

import hashlib
import re

TASK_MARK = "#task."
"""Stands in the ids of these threads, and in no others. What follows "#" is within the place of the conversation: one
process looks after both, and a transaction that locks one has locked the other (`bot.records.locks`)."""


def task_thread_id(thread_id: str, plan_id: str, task_id: str) -> str:
    """Returns the id of a task's thread.

    Args:
        thread_id: of the conversation.
        plan_id: of the plan, which may be as long as a message's key.
    """
    return f"{thread_id}{TASK_MARK}{hashlib.sha256(plan_id.encode()).hexdigest()[:12]}.{task_id}"


def is_task_thread(thread_id: str) -> bool:
    """Returns whether it is a task's."""
    return TASK_MARK in thread_id


def conversation_of(thread_id: str) -> str:
    """Returns the conversation that a task's thread belongs to; any other thread is its own. What is asked in the one
    is shown in the other."""
    return thread_id.partition(TASK_MARK)[0]


_CALL_OF_TASK = re.compile(r"(?P<turn>.*)\.\d+\.\d+/[A-Za-z0-9][A-Za-z0-9_-]*", re.DOTALL)
"""Key of the message that begins a task: the id of the call that made its plan, and what the plan calls it."""


def own_turn_of_call(call_id: str) -> str:
    """Returns the key of the message that began the turn in which a call was made: ids of calls are
    `{delivery}.{step}.{index}`. That of a task, where it is one of a task."""
    return call_id.rsplit(".", 2)[0]


def turn_of_call(call_id: str) -> str:
    """Returns the same, but for a call of a task the key of the message that began the turn that made the plan."""
    began = own_turn_of_call(call_id)
    of_task = _CALL_OF_TASK.fullmatch(began)
    return of_task["turn"] if of_task else began
