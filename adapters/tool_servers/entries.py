"""What may stand in `mcp.json`, key by key: shapes and limits, before anything is filled in or compared."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from policies.patterns import compiled

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


def _pattern(pattern: str) -> str:
    try:
        compiled(pattern)
    except ValueError as error:
        raise ValueError(f"is no regular expression in RE2's syntax: {error}") from None
    return pattern


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not hold a NUL character")
    return text


_PATTERNS = {
    "scopes": "must be one scope: printable ASCII without blanks, quotes or backslashes",
    "provider": "must be the name of a provider: at most 32 letters, digits, - and _",
    "category": "must be at most 40 letters, digits, blanks, - and _",
    "host": "must be a host as in a link, in lower case, such as accounts.example.com; with :port if the link has one",
}
"""What a value must be that does not match its pattern, by its key."""

Argument = Annotated[str, AfterValidator(_no_nul)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
VariableName = Annotated[str, AfterValidator(_variable_name)]
ToolName = Annotated[str, Field(min_length=1, max_length=128)]


class AccountEntry(BaseModel):
    """`auth` as an object: whose accounts the server acts with, and what they must allow."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    type: Literal["oauth"] | None = None
    provider: Annotated[str, Field(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$")] | None = None
    """Name of a provider of `connections.yaml`; without one the server says itself where people sign in."""
    scopes: list[Annotated[str, Field(pattern=r"^[\x21\x23-\x5B\x5D-\x7E]{1,200}$")]] = []  # RFC 6749, 3.3
    clientId: Annotated[str, Field(min_length=1)] | None = None  # noqa: N815 - the names in the file
    clientSecret: Annotated[str, Field(min_length=1)] | None = None  # noqa: N815


class SignInEntry(BaseModel):
    """`signIn`: how a server that has no other way says in a result that somebody must sign in."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    pattern: Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
    host: Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?$")]


def _kind_of_auth(value: Any) -> str:
    return "[object]" if isinstance(value, dict | AccountEntry) else "[word]"


# Told apart beforehand, so that a mistake in one kind is not reported as two.
AuthEntry = Annotated[
    Annotated[Literal["none", "headers", "oauth"], Tag("[word]")] | Annotated[AccountEntry, Tag("[object]")],
    Discriminator(_kind_of_auth),
]


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
    auth: AuthEntry | None = None
    trustAnnotations: bool = False  # noqa: N815
    timeoutSeconds: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)] = 60.0  # noqa: N815
    idempotentTools: list[ToolName] = []  # noqa: N815
    readOnlyTools: list[ToolName] = []  # noqa: N815
    signIn: SignInEntry | None = None  # noqa: N815


class File(BaseModel):
    """The whole file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    schema_: str | None = Field(default=None, alias="$schema")
    mcpServers: dict[str, Entry]  # noqa: N815


def _known_keys(where: tuple[int | str, ...]) -> dict[str, FieldInfo]:
    """What may stand beside a key that is not known."""
    if len(where) < 3:
        return File.model_fields
    if "signIn" in where[2:-1]:
        return SignInEntry.model_fields
    return AccountEntry.model_fields if "[object]" in where else Entry.model_fields


def complaint(error: ErrorDetails) -> str:
    """What pydantic found, as a sentence that says what to write instead; without the value, which may be secret."""
    match error["type"]:
        case "extra_forbidden":
            known = _known_keys(error["loc"])
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
            return next(said for key, said in _PATTERNS.items() if key in error["loc"])
        case _:
            return error["msg"][:1].lower() + error["msg"][1:]
