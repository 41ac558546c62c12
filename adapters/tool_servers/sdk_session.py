"""What the MCP SDK's session reads of what a server asks and tells: no more than is used here.

The SDK holds every request against all kinds that there are, and writes each fault that it finds, and whole messages,
into lines of its log, also into those that nobody keeps. 50 kB that ask for an answer of our language model, which is
not offered, took 0.6 s of the event loop and 0.2 GB of memory; 4 MB of invisible characters took 0.1 s, and as many
numbers that stood in place of the protocol's version 0.9 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import ClientSession, types
from mcp.types import RequestId
from pydantic import ValidationError

_NOBODYS = -1
"""Id of a request that was never sent."""
_LONGEST_ID = 20
"""Characters of an id that may stand for a number: ours are numbers, counted from 0."""
_REQUESTS: Mapping[str, Any] = {
    "ping": types.PingRequest(),
    "roots/list": types.ListRootsRequest(),
    "sampling/createMessage": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[], maxTokens=0)
    ),
    "elicitation/create": types.ElicitRequest(params=types.ElicitRequestFormParams(message="", requestedSchema={})),
}
"""Requests that are answered, each in the same way whatever it asks for. Questions to people are taken out before; of
those that arrive here nobody is asked."""
_NOT_OFFERED = types.GetTaskRequest(params=types.GetTaskRequestParams(taskId=""))
"""Stands for any other: the SDK answers that there is no such method."""
_NOTIFICATIONS: Mapping[str, Any] = {
    "notifications/progress": types.ProgressNotification,
    "notifications/message": types.LoggingMessageNotification,
    "notifications/tools/list_changed": types.ToolListChangedNotification,
    "notifications/elicitation/complete": types.ElicitCompleteNotification,
}
_NOT_HEARD = types.ServerNotification(types.ResourceListChangedNotification())
"""Stands for any other, of which nothing is made."""


def read_what_is_used(session: ClientSession) -> None:
    """Have a session read a server's requests and notifications as is said above. To be called when it has just been
    entered: it has no setting for this but attributes."""
    session._receive_request_type = _Requests
    session._receive_notification_type = _Notifications
    session._normalize_request_id = _own_id  # type: ignore[method-assign, assignment]


def write_no_messages(message: type[Any] = types.JSONRPCMessage) -> None:
    """Keep the SDK from writing messages out, for a log that is switched off, and in its complaints of what is none:
    for the whole process."""
    message.__repr__ = message.__str__ = _a_message  # type: ignore[assignment]
    message.model_config["hide_input_in_errors"] = True
    message.model_rebuild(force=True)


def _a_message(_: object) -> str:
    return "a message"


class _Requests(types.ServerRequest):
    @classmethod
    def model_validate(cls, message: Mapping[str, Any], **_: Any) -> _Requests:  # type: ignore[override]
        return cls.model_construct(_REQUESTS.get(message["method"], _NOT_OFFERED))


class _Notifications(types.ServerNotification):
    @classmethod
    def model_validate(cls, message: Mapping[str, Any], **_: Any) -> types.ServerNotification:  # type: ignore[override]
        kind = _NOTIFICATIONS.get(message["method"])
        if kind is None:
            return _NOT_HEARD
        try:
            return types.ServerNotification.model_construct(kind.model_validate(message))
        except ValidationError:
            return _NOT_HEARD


def _own_id(given: RequestId) -> RequestId:
    """The id of a request of ours that an answer names; some servers make a text of the number."""
    if isinstance(given, int):
        return given
    return int(given) if len(given) <= _LONGEST_ID and given.isascii() and given.isdigit() else _NOBODYS
