"""Why a server is not there, in words for people: what an exception means, without what it may give away."""

from __future__ import annotations

import httpx
from mcp.shared.exceptions import McpError

from adapters.tool_servers.replies import FaultError
from adapters.tool_servers.text import one_line


def reason_of(error: BaseException) -> str:
    """Why a server could not be started, or ended, as the end of a sentence that begins with its name."""
    match first_cause(error):
        case FileNotFoundError(filename=missing) | NotADirectoryError(filename=missing):
            return f"cannot be started: {one_line(str(missing), 200)} was not found"
        case PermissionError(filename=forbidden):
            return f"cannot be started: {one_line(str(forbidden), 200)} may not be run"
        case TimeoutError():
            return "did not answer in time"
        case FaultError(fault=fault):
            return one_line(fault.reason, 200)
        case McpError(error=said) if said.message == "Connection closed":
            return "ended while it was being started; its log lines say more"
        case McpError(error=said):
            return f"could not be started: it answered with error {said.code}"
        case httpx.HTTPStatusError(response=response):
            return f"answered with HTTP {response.status_code}"
        case httpx.TransportError():
            return "cannot be reached"
        case other:
            return f"failed ({type(other).__name__})"


def first_cause(error: BaseException) -> BaseException:
    """The first exception in a group, however deep; the exception itself when it is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
