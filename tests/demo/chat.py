"""A conversation with the demo model: what people and tools say goes in, what the model says and calls comes out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from demo_model.model import DemoChatModel

NOW = "2026-11-21T09:00:00+01:00 (Europe/Berlin)"
"""A Saturday."""
CALENDAR = tuple(
    f"calendar__{name}" for name in ("list_calendars", "list_events", "create_event", "update_event", "delete_event")
)
TASKS = tuple(f"tasks__{name}" for name in ("add_task", "list_tasks", "complete_task", "update_task", "delete_task"))
DOCUMENTS = tuple(f"documents__{name}" for name in ("add_document", "list_documents", "search_documents"))
CLARIFY = "request_clarification"
ALL_TOOLS = (*CALENDAR, *TASKS, *DOCUMENTS, CLARIFY)


@dataclass
class Chat:
    """Plays one conversation; every answer is asked of a fresh model, as after a restart."""

    tools: tuple[str, ...] = ALL_TOOLS
    now: str = NOW
    messages: list[BaseMessage] = field(default_factory=list)

    def says(self, text: str) -> AIMessage:
        """A person writes; the model answers."""
        return self._answer(HumanMessage(text))

    def results(self, *contents: str | dict[str, Any]) -> AIMessage:
        """The calls of the last answer get these results, in order; the model goes on."""
        calls = self.calls
        assert len(calls) == len(contents), f"{len(contents)} results for {len(calls)} calls"
        return self._answer(
            *(
                ToolMessage(content if isinstance(content, str) else json.dumps(content), tool_call_id=str(call["id"]))
                for call, content in zip(calls, contents, strict=True)
            )
        )

    @property
    def calls(self) -> list[Any]:
        last = self.messages[-1]
        assert isinstance(last, AIMessage)
        return list(last.tool_calls)

    @property
    def names(self) -> list[str]:
        return [call["name"] for call in self.calls]

    @property
    def text(self) -> str:
        return str(self.messages[-1].text)

    def _answer(self, *messages: BaseMessage) -> AIMessage:
        self.messages.extend(messages)
        model = DemoChatModel().bind_tools(list(self.tools))
        answer = model.invoke([SystemMessage(f"You are Countersign.\nNow: {self.now}\nBe brief."), *self.messages])
        assert isinstance(answer, AIMessage)
        self.messages.append(answer)
        return answer


def event(
    title: str, start: str, end: str, *, event_id: str = "7f0c1d52-0000-4000-8000-000000000001", **more: Any
) -> dict[str, Any]:
    """An event as the calendar server gives it; times without a date are today."""
    day = "2026-11-21T"
    full = [f"{day}{at}:00+01:00" if len(at) == 5 else at for at in (start, end)]
    return {
        "id": event_id,
        "title": title,
        "start": full[0],
        "end": full[1],
        "calendar_id": "primary",
        "location": "",
        "attendees": [],
        **more,
    }


def task(title: str, *, task_id: str = "7f0c1d52-0000-4000-8000-00000000000a", **more: Any) -> dict[str, Any]:
    """A task as the tasks server gives it."""
    return {"id": task_id, "title": title, "status": "open", "due": "", "notes": "", **more}


def events(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"events": list(listed), "left_out": 0}


def tasks(*listed: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": list(listed), "left_out": 0}
