"""How a plan reads: what it is, and a line for each of its tasks.

A plan has twelve tasks at most (`graph.plans.MOST_TASKS`), so that the limits of each keep a post within
those of any platform.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.shared.wording import LONGEST_NAME, WHOLE, Space
from bot.domain import PlanTaskView, PlanView
from translations import gettext as _
from translations import ngettext

LONGEST_INSTRUCTION = 120
"""Characters of a task's instruction in its line."""
LONGEST_TASK_RESULT = 200
"""Characters of what came of a task, where it cannot be folded."""
LONGEST_REASON = 120
"""Characters of why a task was not done."""
LONGEST_NAMES = 80
"""Characters of the names of the tasks that one depends on."""
_LONGEST_ID = 40

SIGNS: Mapping[str, str] = {
    "blocked": "○",
    "running": "▶",
    "waiting": "⏳",
    "done": "✓",
    "failed": "✕",
    "not_run": "⊘",
    "stopped": "■",
}
"""What stands before a task, by its status. Its state says the same in words."""


def plan_title(view: PlanView) -> str:
    """Returns what the plan is and how far."""
    done, count = sum(task.status == "done" for task in view.tasks), len(view.tasks)
    match view.status:
        case "open":
            told = _("Plan: {done} of {count} tasks done")
        case "ended" if done == count:
            return ngettext("Plan: {count} task done", "Plan: all {count} tasks done", count).format(count=count)
        case "ended":
            told = _("Plan ended: {done} of {count} tasks done")
        case "superseded":
            told = _("Plan stopped: {done} of {count} tasks done")
    return told.format(done=done, count=count)


def task_state(view: PlanView, task: PlanTaskView, space: Space = WHOLE) -> str:
    """Returns how far a task is, in a few words; where it was not done, with the reason."""
    match task.status:
        case "blocked":
            missing = _not_done(view, task)
            told = _("waits for {tasks}") if missing else _("not begun")
            return told.format(tasks=space.list(missing, LONGEST_NAMES))
        case "running":
            return _("working")
        case "waiting":
            return _("waiting for someone")
        case "done":
            return _("done")
        case "failed":
            why = space.line(task.result, LONGEST_REASON) if task.result.strip() else ""
            return _("failed: {reason}").format(reason=why) if why else _("failed")
        case "not_run":
            missing = _not_done(view, task)
            told = ngettext("not begun: {tasks} was not done", "not begun: {tasks} were not done", len(missing))
            return told.format(tasks=space.list(missing, LONGEST_NAMES)) if missing else _("not begun")
        case "stopped":
            return _("stopped")


def task_title(task: PlanTaskView, space: Space = WHOLE) -> str:
    """Returns what a task is, and whose: by its first word others say that they wait for it."""
    return _("{task} ({agent}): {instruction}").format(
        task=task_name(task),
        agent=space.line(task.agent, LONGEST_NAME),
        instruction=space.line(task.instruction, LONGEST_INSTRUCTION),
    )


def task_name(task: PlanTaskView) -> str:
    """Returns what a task is called within its plan."""
    return WHOLE.line(task.task_id, _LONGEST_ID)


def task_result(task: PlanTaskView, space: Space = WHOLE, longest: int = LONGEST_TASK_RESULT) -> str:
    """Returns what came of a task that was done, in one line of at most `longest` characters; empty where there is
    nothing to say, or it is for the requester alone. Why one was not done is in its state."""
    return space.line(task.result, longest) if task.status == "done" and task.result.strip() else ""


def plan_text(view: PlanView) -> str:
    """Returns all of a plan as plain text."""
    return "\n".join([plan_title(view), *(_as_text(view, task) for task in view.tasks)])


def _as_text(view: PlanView, task: PlanTaskView) -> str:
    shown = f"{SIGNS[task.status]} {task_title(task)} – {task_state(view, task)}"
    result = task_result(task)
    return f"{shown}\n   {result}" if result else shown


def _not_done(view: PlanView, task: PlanTaskView) -> list[str]:
    """The tasks that one depends on and that have not been done, by their names."""
    done = {each.task_id for each in view.tasks if each.status == "done"}
    return [each for each in task.depends_on if each not in done]
