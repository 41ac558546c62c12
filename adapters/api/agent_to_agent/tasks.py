"""A turn as a task: its state, what it waits for, and what was said in it. Pure: everything is in the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from a2a.helpers.proto_helpers import new_data_part
from a2a.types import Artifact, Message, Part, Role, Task, TaskState, TaskStatus

from adapters.api.agent_to_agent.task_names import TaskName
from adapters.api.endings import STOPPED, answer_in, what_failed
from adapters.api.following import says
from adapters.api.models import SourceShape
from bot.conversations import TurnState
from bot.domain import ApprovalView, ClarificationView, MessageView
from bot.safe_text import visible

ANSWER = "answer"
"""Id of the artifact that the answer is."""
CONFIRMATION = "adk_request_confirmation"
"""By what agents of the field ask for a confirmation of a call."""
CANCELED = "It was stopped, or replaced by another message."
OVER = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)


def task_of(
    name: TaskName,
    state: TurnState,
    *,
    begun_by: MessageView | None,
    links: Sequence[str] = (),
    history: int | None = None,
    running: TaskStatus | None = None,
) -> Task:
    """Returns a turn as its owner sees it.

    Args:
        begun_by: the message that began it.
        links: sentences about the sign-ins that it waits for, which may hold what is for the owner alone.
        history: so many of its last messages, at most; `None`: all.
        running: how it stands while it runs, where there is more to be said.
    """
    status = running if running is not None and state.status == "running" else status_of(name, state, links)
    task = Task(id=name.task_id, context_id=name.context_id, status=status)
    if status.state == TaskState.TASK_STATE_COMPLETED and (text := answer_in(state)):
        task.artifacts.append(artifact(text))
        if sources := [each.model_dump() for each in SourceShape.all_of(state)]:
            task.artifacts[-1].metadata.update({"sources": sources})
    said = [each for each in state.said if state.status != "ended" or f"said:{each.message_id}" != state.answer_id]
    messages = [
        *([_message(name, begun_by.key, begun_by.text, Role.ROLE_USER)] if begun_by is not None else []),
        *(_message(name, each.message_id, each.text, Role.ROLE_AGENT) for each in said),
    ]
    task.history.extend(messages if history is None else messages[max(0, len(messages) - history) :])
    return task


def artifact(text: str) -> Artifact:
    """Returns what the bot says, or a piece of it."""
    return Artifact(artifact_id=ANSWER, name=ANSWER, parts=[Part(text=text)])


def status_of(name: TaskName, state: TurnState, links: Sequence[str] = ()) -> TaskStatus:
    """Returns where a turn stands, with a message that says so."""
    match state.status:
        case "running":
            return TaskStatus(state=TaskState.TASK_STATE_WORKING)
        case "waiting":
            asks = bool(state.approvals or state.clarifications or state.outcomes)
            reached = TaskState.TASK_STATE_INPUT_REQUIRED if asks else TaskState.TASK_STATE_AUTH_REQUIRED
            return _status(name, reached, _asked(state, links))
        case _:
            return _ending(name, state)


def halted_status(name: TaskName) -> TaskStatus:
    """Returns how a running turn stands while an operator has stopped everything."""
    return _status(name, TaskState.TASK_STATE_WORKING, [Part(text=STOPPED)])


def _ending(name: TaskName, state: TurnState) -> TaskStatus:
    answer = answer_in(state)
    if answer is None:
        return _status(name, TaskState.TASK_STATE_FAILED, [Part(text=what_failed(state))])
    if not state.answer_id and not state.notices:
        return _status(name, TaskState.TASK_STATE_CANCELED, [Part(text=CANCELED)])
    return _status(name, TaskState.TASK_STATE_COMPLETED, [Part(text=answer)])


def _status(name: TaskName, reached: TaskState, parts: Sequence[Part]) -> TaskStatus:
    return TaskStatus(
        state=reached,
        message=Message(
            message_id=f"{name.task_id}.{TaskState.Name(reached)}",
            context_id=name.context_id,
            task_id=name.task_id,
            role=Role.ROLE_AGENT,
            parts=parts,
        ),
    )


def _message(name: TaskName, key: str, text: str, role: Role) -> Message:
    return Message(
        message_id=key,
        context_id=name.context_id,
        task_id=name.task_id,
        role=role,
        parts=[Part(text=visible(text))],
    )


def _asked(state: TurnState, links: Sequence[str]) -> list[Part]:
    """What a turn waits for: a text for each thing, and for approvals the part that decisions answer."""
    parts = [Part(text=visible(state.answer))] if state.answer else []
    parts += [_question(view) for view in state.clarifications]
    parts += [Part(text=visible(sentence)) for sentence in links]
    for lost in state.outcomes:
        said = (
            f"What came of {lost.tool} ({lost.server}) is not known. {lost.known}".strip()
            + " Say: it_was_done, try_again or skip."
        )
        parts.append(_with(Part(text=visible(said)), {"id": lost.outcome_id}))
    for view in state.approvals:
        parts += [Part(text=visible(f"{view.server}: {view.tool} waits for approval.")), _confirmation(view)]
    return parts


def _question(view: ClarificationView) -> Part:
    schema = {"schema": dict(view.schema)} if view.server else {}
    return _with(Part(text=says(view)), {"id": view.clarification_id, **schema})


def _confirmation(view: ApprovalView) -> Part:
    """The part that asks for a decision about a call. Secrets in its arguments are masked; numbers are whole, as no
    call holds one that this protocol could not carry (`graph.json_values`)."""
    call = {"name": f"{view.server}__{view.tool}", "args": dict(view.arguments), "id": view.call_id}
    asked = {"name": CONFIRMATION, "args": {"originalFunctionCall": call}, "id": view.approval_id}
    return _with(new_data_part(asked), {"type": "function_call", "is_long_running": True})


def _with(part: Part, metadata: Mapping[str, Any]) -> Part:
    part.metadata.update(metadata)
    return part
