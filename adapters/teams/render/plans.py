"""The card of a plan: a line for each of its tasks."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.shared.plans import LONGEST_INSTRUCTION, SIGNS, plan_title, task_name, task_result, task_state
from adapters.shared.wording import LONGEST_NAME, Space
from adapters.teams.render.elements import Element, bold, card, fitted, heading, rich, words
from bot.domain import PlanTaskView, PlanView

_COLOURS: Mapping[str, str] = {"running": "Accent", "waiting": "Warning", "done": "Good", "failed": "Attention"}


def plan_card(view: PlanView) -> Element:
    """Returns the card, which is sent anew with each change. There is nothing to press on it."""

    def build(space: Space) -> Element:
        title = plan_title(view)
        return card([heading(title), *(_line(view, task, space) for task in view.tasks)], summary=title)

    return fitted(build)


def _line(view: PlanView, task: PlanTaskView, space: Space) -> Element:
    """A task, and below it in small print how far it is and what came of it."""
    colour: Element = {"color": _COLOURS[task.status]} if task.status in _COLOURS else {}
    agent, instruction = space.line(task.agent, LONGEST_NAME), space.line(task.instruction, LONGEST_INSTRUCTION)
    result = task_result(task, space)
    return rich(
        words(f"{SIGNS[task.status]} ", weight="Bolder", **colour),
        bold(task_name(task)),
        words(f" · {instruction}"),
        words(f"\n{agent} · ", size="Small", isSubtle=True),
        words(task_state(view, task, space), size="Small", **(colour or {"isSubtle": True})),
        words(f"\n{result}" if result else "", size="Small", isSubtle=True),
        spacing="Small",
    )
