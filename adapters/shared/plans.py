"""How a plan reads: what it is, and a line for each of its tasks."""

from __future__ import annotations

from bot.domain import PlanTaskView, PlanView
from bot.safe_text import one_line
from translations import gettext as _
from translations import ngettext

LONGEST_INSTRUCTION = 120
"""Characters of a task's instruction in its line."""
LONGEST_TASK_RESULT = 160
"""Characters of what came of a task in its line."""


def plan_title(view: PlanView) -> str:
    """Returns what the plan is and how far."""
    done, count = sum(task.status == "done" for task in view.tasks), len(view.tasks)
    match view.status:
        case "open":
            told = _("Plan: {done} of {count} tasks done")
        case "ended" if done == count:
            return ngettext("Plan: {count} task done", "Plan: all {count} tasks done", count).format(count=count)
        case "ended":
            told = _("Plan: {done} of {count} tasks done")
        case "superseded":
            told = _("Plan stopped: {done} of {count} tasks done")
    return told.format(done=done, count=count)


def task_state(task: PlanTaskView) -> str:
    """Returns how far a task is, in a word or two."""
    match task.status:
        case "blocked":
            return _("waits for {tasks}").format(tasks=", ".join(task.depends_on))
        case "running":
            return _("working")
        case "waiting":
            return _("waiting for someone")
        case "done":
            return _("done")
        case "failed":
            return _("failed")
        case "not_run":
            return _("not begun")
        case "stopped":
            return _("stopped")


def task_title(task: PlanTaskView) -> str:
    """Returns what a task is, and whose."""
    return f"{task.agent}: {one_line(task.instruction, LONGEST_INSTRUCTION)}"


def task_result(task: PlanTaskView) -> str:
    """Returns what came of a task, in one line; empty where there is nothing to say."""
    return one_line(task.result, LONGEST_TASK_RESULT)


def plan_text(view: PlanView) -> str:
    """Returns all of a plan as plain text."""
    lines = [f"• {task_title(task)} – {task_state(task)}" for task in view.tasks]
    return "\n".join([plan_title(view), *lines])
