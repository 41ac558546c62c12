"""What may stand in `mcp.json`, key by key: shapes and limits, before anything is filled in or compared."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

LONGEST_TIMEOUT = 3600.0
"""Seconds. A call that needs longer should be a job with a tool to ask how it stands."""

_SERVER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, token
_VARIABLE_NAME = re.compile(r"[^=\x00]+")


def check_server_name(name: str) -> str:
    """A name that makes `{server}__{tool}` unmistakable. Raises `ValueError`."""
    if not _SERVER_NAME.fullmatch(name) or "__" in name:
        raise ValueError(
            f"{name!r} is no server name: use at most 32 letters, digits, - and _, "
            "with a letter or digit at both ends and no two _ in a row"
        )
    return name


def check_url(url: str) -> str:
    """An http(s) URL without credentials. Raises `ValueError`, never with the URL itself (it may hold a secret)."""
    if any(c.isspace() or not c.isprintable() for c in url):
        raise ValueError("the URL holds blanks or control characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # whose text repeats the URL
        raise ValueError("is not a URL: its host or port cannot be read") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http:// or https:// URL")
    if parts.username is not None or parts.password is not None:
        raise ValueError("no user or password in the URL: put them into `headers`")
    return url


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError("is no name of an HTTP header")
    return name


def _variable_name(name: str) -> str:
    if not _VARIABLE_NAME.fullmatch(name):
        raise ValueError("is no name of an environment variable")
    return name


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not hold a NUL character")
    return text


Argument = Annotated[str, AfterValidator(_no_nul)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
ToolName = Annotated[str, Field(min_length=1, max_length=128)]


class Entry(BaseModel):
    """One server as it is written in the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "streamable_http"] | None = None
    command: Annotated[Argument, Field(min_length=1)] | None = None
    args: list[Argument] = []
    env: dict[VariableName, Argument] = {}
    cwd: Annotated[Argument, Field(min_length=1)] | None = None
    url: str | None = None
    headers: dict[HeaderName, str] = {}
    category: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,39}$")] = "general"
    tools: list[ToolName] | None = None
    requireApproval: list[ToolName] = []  # noqa: N815 - the names in the file
    auth: Literal["none", "headers", "oauth"] | None = None
    trustAnnotations: bool = False  # noqa: N815
    timeoutSeconds: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)] = 60.0  # noqa: N815
    idempotentTools: list[ToolName] = []  # noqa: N815


class File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    schema_: str | None = Field(default=None, alias="$schema")
    mcpServers: dict[str, Entry]  # noqa: N815


def complaint(error: ErrorDetails) -> str:
    """What pydantic found, as a sentence that says what to write instead; without the value, which may be secret."""
    match error["type"]:
        case "extra_forbidden":
            known = File.model_fields if len(error["loc"]) < 3 else Entry.model_fields
            return "unknown key; known are " + ", ".join(sorted(field.alias or name for name, field in known.items()))
        case "missing":
            return "is missing"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "must be an object, { … }"
        case "list_type":
            return "must be a list, [ … ]"
        case "literal_error" if error["loc"][-1] == "type" and error["input"] == "sse":
            return 'the old SSE transport is not supported: use the server\'s streamable HTTP endpoint, "type": "http"'
        case "literal_error":
            return f"must be {error['ctx']['expected']}"
        case "value_error":
            return str(error["ctx"]["error"])
        case "string_type" | "bool_type" | "float_type":
            kind = {"string_type": "a text", "bool_type": "true or false", "float_type": "a number"}[error["type"]]
            return f"must be {kind}"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return "must be at most 40 letters, digits, blanks, - and _"
        case _:
            return error["msg"][:1].lower() + error["msg"][1:]
