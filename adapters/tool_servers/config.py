"""Reads `mcp.json`: which tool servers there are, how they are run, and what the operator says of their tools."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from adapters.tool_servers.positions import LocatedJson, NotJsonError, locate
from adapters.tool_servers.requester import NAME_VARIABLE, SECRET_VARIABLE, SHORTEST_SECRET, new_secret
from adapters.tool_servers.text import names_a_secret, one_line, secret_parts
from policies.model import SERVER_NAME, Lookup, canonical_json, tool_name_for_model
from policies.patterns import compiled

Auth = Literal["none", "headers", "oauth"]

LONGEST_TIMEOUT = 3600.0
"""Seconds. A call that needs longer should be a job with a tool to ask how it stands."""
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_REFERENCED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ConfigError(Exception):
    """`mcp.json` cannot be used. Says where (`path`, `line` from 1) and why; holds no configured value."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = one_line(reason, 500)
        super().__init__(f"{path}, line {line}: {self.reason}")


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A server that is a child process and speaks over its standard streams."""

    command: str
    args: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: Path


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A server behind an HTTP endpoint."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    is_sse: bool = False
    """Whether it speaks MCP's older transport, with one event stream for all answers, instead of streamable HTTP."""


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """How a server uses the accounts of the people who ask for something."""

    connection: str
    """Name of the connection: the provider's, else the server's own."""
    provider: str | None = None
    """A provider of `connections.yaml`; `None`: the server itself says where people sign in (MCP authorisation)."""
    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    """`None`: a client is registered when it is needed."""
    client_secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SignInRule:
    """How a server says in a result that somebody must sign in: `signIn` in `mcp.json`."""

    pattern: Any
    """RE2's compiled pattern, in linear time whatever is searched; takes UTF-8."""
    host: str
    """The only host, with a port where the link has one, that such a link may lead to; in lower case."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server of `mcp.json`, checked and filled in."""

    name: str
    transport: StdioTransport | HttpTransport
    fingerprint: str
    """SHA-256, hexadecimal, of what determines what runs; see `fingerprint_of`."""
    category: str = "general"
    tools: frozenset[str] | None = None
    """Only these tools; `None`: all that the server has."""
    require_approval: frozenset[str] = frozenset()
    auth: Auth = "none"
    account: AccountConfig | None = None
    """Set when `auth` is `oauth`."""
    trust_annotations: bool = False
    timeout: float = 60.0
    """Seconds that one call may take."""
    idempotent_tools: frozenset[str] = frozenset()
    read_only_tools: frozenset[str] = frozenset()
    """Tools that change nothing, as the operator says, whether or not the server says anything."""
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    """Argument → what says what an id in it stands for, whichever tool of the server is called."""
    preview_tools: Mapping[str, str] = field(default_factory=dict)
    """Tool → the tool that says what a call of it would change."""
    source_tools: frozenset[str] = frozenset()
    """Tools whose results hold passages that answers cite."""
    sign_in: SignInRule | None = None
    """`None`: only its protocol says that somebody must sign in."""
    requester_secret: str | None = field(default=None, repr=False)
    """What is signed with for whom a call is made; `None`: it is not told."""
    tells_channel: bool = False
    """Whether it is told in which channel they ask, too."""
    file_arguments: Mapping[str, str] = field(default_factory=dict)
    """Tool → the argument that holds the id of a file of the conversation, which the server is handed with the call."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What was given to the server and must never be shown."""

    @property
    def tells_for_which_call(self) -> bool:
        """Whether its transport tells in the course of which call a question is asked; else all share one stream."""
        return isinstance(self.transport, HttpTransport) and not self.transport.is_sse


@dataclass(frozen=True, slots=True)
class ToolServersConfig:
    """All configured servers, in the order of the file."""

    servers: tuple[ServerConfig, ...] = ()
    said: Any = field(default=None, repr=False)
    """What stands in the file, as JSON; may hold secrets."""


BUNDLED = frozenset({"servers.calendar", "servers.documents", "servers.tasks"})
"""Modules of the bundled servers, which keep what they know in a file beside them."""
SHARED_BY = "DOCUMENTS_DB"
"""The variable of the one of them that can keep it in a database instead."""


def keeping_files_here(servers: Iterable[ServerConfig]) -> list[str]:
    """The names of the bundled servers that each process starts for itself, unless they keep what they know in
    PostgreSQL: what was done by way of one replica is not to be seen in another. Of foreign programs nobody knows what
    they keep."""
    return [
        each.name
        for each in servers
        if isinstance(each.transport, StdioTransport)
        and not BUNDLED.isdisjoint(each.transport.args)
        and not each.transport.env.get(SHARED_BY, "").startswith(("postgresql://", "postgres://"))
    ]


def source_tools(servers: Iterable[ServerConfig]) -> frozenset[str]:
    """The names by which the model calls the tools whose results hold passages that answers cite."""
    return frozenset(tool_name_for_model(server.name, tool) for server in servers for tool in server.source_tools)


def load_config(path: Path, environ: Mapping[str, str]) -> ToolServersConfig:
    """Read and check the file; one that is not there means that there are no servers. Raises `ConfigError`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ToolServersConfig()
    except OSError as error:
        raise ConfigError(path, 1, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(path, error.object.count(b"\n", 0, error.start) + 1, "is not UTF-8 text") from None
    return parse_config(text, path, environ)


def parse_config(text: str, path: Path, environ: Mapping[str, str]) -> ToolServersConfig:
    """Check the text of a file that stands at `path`. Raises `ConfigError`."""
    try:
        located = locate(text)
    except NotJsonError as error:
        raise ConfigError(path, error.line, error.reason) from None
    try:
        file = McpFile.model_validate(located.value)
    except ValidationError as error:
        raise _first_complaint(error, located, path) from None
    providers = {entry.auth.provider for entry in file.mcpServers.values() if isinstance(entry.auth, AccountEntry)}
    readers = (_EntryReader(name, entry, path, located, environ) for name, entry in file.mcpServers.items())
    servers = tuple(reader.server() for reader in readers)
    for server in servers:
        if server.account and not server.account.provider and server.name in providers:
            # One name would stand for two kinds of accounts, and a token would go where it does not belong.
            line = located.line_of(("mcpServers", server.name), key=True)
            raise ConfigError(path, line, f"mcpServers.{server.name}: a provider in this file has the same name")
    return ToolServersConfig(servers, located.value)


def _first_complaint(error: ValidationError, located: LocatedJson, path: Path) -> ConfigError:
    complaints = []
    for details in error.errors(include_url=False):
        is_key = details["type"] == "extra_forbidden" or details["loc"][-1:] == ("[key]",)
        where = tuple(part for part in details["loc"] if not str(part).startswith("["))
        line = located.line_of(where, key=is_key or details["type"] == "missing")
        complaints.append((line, f"{_dotted(where)}{complaint(details)}"))
    line, reason = min(complaints)
    return ConfigError(path, line, reason)


def _dotted(path: tuple[str | int, ...]) -> str:
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return f"{dotted}: " if dotted else ""


class _EntryReader:
    """Turns one entry into a `ServerConfig`, or says on which line it cannot be."""

    def __init__(
        self, name: str, entry: ServerEntry, path: Path, located: LocatedJson, environ: Mapping[str, str]
    ) -> None:
        self._name = name
        self._entry = entry
        self._path = path
        self._located = located
        self._environ = environ
        self._secrets: set[str] = set()

    def server(self) -> ServerConfig:
        entry = self._entry
        if not SERVER_NAME.fullmatch(self._name) or "__" in self._name:  # it makes `{server}__{tool}` unmistakable
            raise self._error(
                (),
                f"{self._name!r} is no server name: use at most 32 letters, digits, - and _, "
                "with a letter or digit at both ends and no two _ in a row",
                key=True,
            )
        self._check_transport()
        self._check_auth()
        self._check_tool_lists()
        args = [self._fill(("args", index), template) for index, template in enumerate(entry.args)]
        env = {name: self._fill(("env", name), template) for name, template in entry.env.items()}
        url = None if entry.url is None else self._url(entry.url)
        headers = {name: self._header(name, template) for name, template in entry.headers.items()}
        account = self._account()
        requester_secret = self._requester_secret()
        filled = {"args": args, "env": env, "url": url, "headers": headers}
        for name, value in (*env.items(), *headers.items()):
            self._secrets |= secret_parts(name, value)
        transport: StdioTransport | HttpTransport
        if url is not None:
            transport = HttpTransport(url, headers, is_sse=entry.type == "sse")
        else:
            folder = (self._path.parent / (entry.cwd or ".")).resolve()
            # Beyond `filled`: it is another one with each start, and voids nothing.
            given = {SECRET_VARIABLE: requester_secret, NAME_VARIABLE: self._name} if requester_secret else {}
            transport = StdioTransport(entry.command or "", tuple(args), {**env, **given}, folder)
        return ServerConfig(
            name=self._name,
            transport=transport,
            fingerprint=fingerprint_of(entry, filled),
            category=entry.category,
            tools=None if entry.tools is None else frozenset(entry.tools),
            require_approval=frozenset(entry.requireApproval),
            auth=self._auth(),
            account=account,
            trust_annotations=entry.trustAnnotations,
            timeout=entry.timeoutSeconds,
            idempotent_tools=frozenset(entry.idempotentTools),
            read_only_tools=frozenset(entry.readOnlyTools),
            lookups={argument: _lookup(argument, written) for argument, written in entry.lookupTools.items()},
            preview_tools=dict(entry.previewTools),
            source_tools=frozenset(entry.sourceTools),
            sign_in=SignInRule(compiled(entry.signIn.pattern), entry.signIn.host) if entry.signIn else None,
            requester_secret=requester_secret,
            tells_channel=self._tells_channel(),
            file_arguments=self._file_arguments(),
            secrets=frozenset(self._secrets),
        )

    def _check_transport(self) -> None:
        entry = self._entry
        if entry.command is None and entry.url is None:
            raise self._error((), "needs either `command` (a program to start) or `url` (an HTTP endpoint)", key=True)
        if entry.command is not None and entry.url is not None:
            raise self._error((self._later("command", "url"),), "has both `command` and `url`: keep one", key=True)
        wants_stdio = entry.type == "stdio" if entry.type else entry.url is None
        if wants_stdio != (entry.url is None):
            raise self._error(("type",), f'"{entry.type}" does not go with `{"url" if entry.url else "command"}`')
        foreign = ("headers",) if entry.url is None else ("args", "env", "cwd")
        for key in foreign:
            if key in entry.model_fields_set:
                other = "url" if entry.url is None else "command"
                raise self._error((key,), f"`{key}` goes only with `{other}`", key=True)

    def _check_auth(self) -> None:
        entry = self._entry
        written = "oauth" if isinstance(entry.auth, AccountEntry) else entry.auth
        if written in {"headers", "oauth"} and entry.url is None:
            raise self._error(("auth",), f'"{written}" goes only with `url`')
        if written == "headers" and not entry.headers:
            raise self._error(("auth",), 'is "headers", but there are no `headers`')
        both = next((name for name in entry.headers if name.lower() == "authorization"), None)
        if written == "oauth" and both:
            raise self._error(("headers", both), "is what each person's own account fills in: leave it out", key=True)

    def _auth(self) -> Auth:
        auth = self._entry.auth
        return "oauth" if isinstance(auth, AccountEntry) else auth or ("headers" if self._entry.headers else "none")

    def _account(self) -> AccountConfig | None:
        auth = self._entry.auth
        if not isinstance(auth, AccountEntry):
            return AccountConfig(self._name) if auth == "oauth" else None
        for key in ("type", "clientId", "clientSecret"):
            if auth.provider and key in auth.model_fields_set:
                raise self._error(("auth", key), f"`{key}` does not go with `provider`", key=True)
        if auth.clientSecret and not auth.clientId:
            raise self._error(("auth", "clientSecret"), "`clientSecret` goes only with `clientId`", key=True)
        secret = self._fill(("auth", "clientSecret"), auth.clientSecret) if auth.clientSecret else None
        if secret:
            self._secrets |= secret_parts("clientSecret", secret)
        return AccountConfig(
            connection=auth.provider or self._name,
            provider=auth.provider,
            scopes=tuple(auth.scopes),
            client_id=self._fill(("auth", "clientId"), auth.clientId) if auth.clientId else None,
            client_secret=secret,
        )

    def _tells_channel(self) -> bool:
        entry = self._entry
        if entry.tellChannel and not entry.tellRequester:
            raise self._error(("tellChannel",), "goes only with `tellRequester`", key=True)
        return entry.tellChannel

    def _file_arguments(self) -> dict[str, str]:
        entry = self._entry
        if entry.fileArguments and not entry.tellRequester:
            raise self._error(
                ("fileArguments",), "goes only with `tellRequester`, which signs what is handed over", key=True
            )
        for tool in entry.fileArguments:
            if entry.tools is not None and tool not in entry.tools:
                raise self._error(("fileArguments", tool), f'"{tool}" is not among `tools`', key=True)
        return dict(entry.fileArguments)

    def _requester_secret(self) -> str | None:
        entry = self._entry
        where = ("requesterSecret",)
        if entry.requesterSecret is not None and not (entry.tellRequester and entry.url):
            raise self._error(where, "`requesterSecret` goes only with `url` and `tellRequester`", key=True)
        if not entry.tellRequester:
            return None
        if entry.url is None:
            secret = new_secret()
        elif entry.requesterSecret is None:
            reason = "needs `requesterSecret` with a `url`: the server checks with it who asks"
            raise self._error(("tellRequester",), reason, key=True)
        else:
            secret = self._fill(where, entry.requesterSecret)
        if len(secret.encode()) < SHORTEST_SECRET:
            raise self._error(where, f"is too short: use at least {SHORTEST_SECRET} characters")
        self._secrets |= secret_parts("requesterSecret", secret)
        return secret

    def _check_tool_lists(self) -> None:
        self._check_reading_tools()
        entry = self._entry
        if entry.tools is None:
            return
        for key in ("requireApproval", "idempotentTools", "readOnlyTools", "sourceTools"):
            names: list[str] = getattr(entry, key)
            for index, name in enumerate(names):
                if name not in entry.tools:
                    raise self._error((key, index), f'"{name}" is not among `tools`')

    def _check_reading_tools(self) -> None:
        """What is called for a card, without asking anybody, must be known to read only."""
        entry = self._entry
        named = [(("lookupTools", argument), _lookup(argument, it).tool) for argument, it in entry.lookupTools.items()]
        named += [(("previewTools", tool), preview) for tool, preview in entry.previewTools.items()]
        for where, name in named:
            if entry.tools is not None and name not in entry.tools:
                raise self._error(where, f'"{name}" is not among `tools`')
            if not entry.trustAnnotations and name not in entry.readOnlyTools:
                reason = "is not known to read only: name it in `readOnlyTools`, or set `trustAnnotations`"
                raise self._error(where, f'"{name}" {reason}')
        for tool, preview in entry.previewTools.items():
            if entry.tools is not None and tool not in entry.tools:
                raise self._error(("previewTools", tool), f'"{tool}" is not among `tools`', key=True)
            if preview in entry.previewTools:
                raise self._error(("previewTools", tool), f'"{preview}" has a preview itself')

    def _url(self, template: str) -> str:
        """An http(s) URL without credentials. No error holds the URL itself: there may be a secret in it."""
        url, where = self._fill(("url",), template), ("url",)
        if any(c.isspace() or not c.isprintable() for c in url):
            raise self._error(where, "the URL holds blanks or control characters")
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:  # whose text repeats the URL
            raise self._error(where, "is not a URL: its host or port cannot be read") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise self._error(where, "must be an http:// or https:// URL")
        if parts.username is not None or parts.password is not None:
            raise self._error(where, "no user or password in the URL: put them into `headers`")
        return url

    def _header(self, name: str, template: str) -> str:
        value = self._fill(("headers", name), template)
        if any(not c.isascii() or not c.isprintable() for c in value):
            raise self._error(("headers", name), "a header's value may hold printable ASCII characters only")
        return value

    def _fill(self, where: tuple[str | int, ...], template: str) -> str:
        """The value with every `${VAR}` replaced. What a variable contains is not looked at again.

        A line break at its end, as files with secrets have one, is no part of it: no header could hold it.
        """

        def value_of(match: re.Match[str]) -> str:
            name = match.group(1)
            if not _REFERENCED.fullmatch(name):
                raise self._error(where, f"${{{name}}} is not a reference to a variable: write ${{NAME}}")
            if name not in self._environ:
                raise self._error(where, f"the environment variable {name} is not set")
            value = self._environ[name].rstrip("\r\n")
            self._secrets |= secret_parts(name, value)
            return value

        filled = _REFERENCE.sub(value_of, template)
        if "\x00" in filled:
            raise self._error(where, "must not hold a NUL character")
        return filled

    def _later(self, *keys: str) -> str:
        return max(keys, key=lambda key: self._located.keys[("mcpServers", self._name, key)])

    def _error(self, where: tuple[str | int, ...], reason: str, *, key: bool = False) -> ConfigError:
        path = ("mcpServers", self._name, *where)
        return ConfigError(self._path, self._located.line_of(path, key=key), f"{_dotted(path)}{reason}")


def _text(pattern: str, otherwise: str) -> AfterValidator:
    """Refuses a text that is not all of that pattern, and says what it must be."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(check)


def _regular_expression(pattern: str) -> str:
    try:
        compiled(pattern)
    except ValueError as error:
        raise ValueError(f"is no regular expression in RE2's syntax: {error}") from None
    return pattern


CommandArgument = Annotated[str, _text(r"[^\x00]*", "must not hold a NUL character")]
HeaderName = Annotated[str, _text(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "is no name of an HTTP header")]  # RFC 9110, token
VariableName = Annotated[str, _text(r"[^=\x00]+", "is no name of an environment variable")]
ToolName = Annotated[str, Field(min_length=1, max_length=128)]
ArgumentName = Annotated[str, Field(min_length=1, max_length=200)]
ProviderName = Annotated[
    str,
    _text(
        r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?",
        "must be the name of a provider: at most 32 letters, digits, - and _",
    ),
]
Scope = Annotated[  # RFC 6749, 3.3
    str,
    _text(
        r"[\x21\x23-\x5B\x5D-\x7E]{1,200}",
        "must be one scope: printable ASCII without blanks, quotes or backslashes",
    ),
]
Category = Annotated[
    str, _text(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,39}", "must be at most 40 letters, digits, blanks, - and _")
]
Host = Annotated[
    str,
    _text(
        r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?",
        "must be a host as in a link, in lower case, such as accounts.example.com; with :port if the link has one",
    ),
]


class AccountEntry(BaseModel):
    """`auth` as an object: whose accounts the server acts with, and what they must allow."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    type: Literal["oauth"] | None = None
    provider: ProviderName | None = None
    """Name of a provider of `connections.yaml`; without one the server says itself where people sign in."""
    scopes: list[Scope] = []
    clientId: Annotated[str, Field(min_length=1)] | None = None  # noqa: N815 - the names in the file
    clientSecret: Annotated[str, Field(min_length=1)] | None = None  # noqa: N815


class SignInEntry(BaseModel):
    """`signIn`: how a server that has no other way says in a result that somebody must sign in."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    pattern: Annotated[str, Field(min_length=1), AfterValidator(_regular_expression)]
    host: Host


# Told apart beforehand, so that a mistake in one kind is not reported as two.
AuthEntry = Annotated[
    Annotated[Literal["none", "headers", "oauth"], Tag("[word]")] | Annotated[AccountEntry, Tag("[object]")],
    Discriminator(lambda value: "[object]" if isinstance(value, dict | AccountEntry) else "[word]"),
]


class LookupEntry(BaseModel):
    """A tool of `lookupTools` whose argument for the id has another name than that of the calls."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    tool: ToolName
    argument: ArgumentName


# Told apart as `AuthEntry` is.
LookupToolEntry = Annotated[
    Annotated[ToolName, Tag("[word]")] | Annotated[LookupEntry, Tag("[look-up]")],
    Discriminator(lambda value: "[look-up]" if isinstance(value, dict | LookupEntry) else "[word]"),
]


def _lookup(argument: str, written: str | LookupEntry) -> Lookup:
    return Lookup(written, argument) if isinstance(written, str) else Lookup(written.tool, written.argument)


class ServerEntry(BaseModel):
    """One server as it is written in the file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "streamable_http", "sse"] | None = None
    command: Annotated[CommandArgument, Field(min_length=1)] | None = None
    args: list[CommandArgument] = []
    env: dict[VariableName, CommandArgument] = {}
    cwd: Annotated[CommandArgument, Field(min_length=1)] | None = None
    url: str | None = None
    headers: dict[HeaderName, str] = {}
    category: Category = "general"
    tools: list[ToolName] | None = None
    requireApproval: list[ToolName] = []  # noqa: N815 - the names in the file
    auth: AuthEntry | None = None
    trustAnnotations: bool = False  # noqa: N815
    timeoutSeconds: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)] = 60.0  # noqa: N815
    idempotentTools: list[ToolName] = []  # noqa: N815
    readOnlyTools: list[ToolName] = []  # noqa: N815
    lookupTools: dict[ArgumentName, LookupToolEntry] = {}  # noqa: N815
    previewTools: dict[ToolName, ToolName] = {}  # noqa: N815
    sourceTools: list[ToolName] = []  # noqa: N815
    signIn: SignInEntry | None = None  # noqa: N815
    tellRequester: bool = False  # noqa: N815
    tellChannel: bool = False  # noqa: N815
    fileArguments: dict[ToolName, ArgumentName] = {}  # noqa: N815
    requesterSecret: str | None = None  # noqa: N815


class McpFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    schema_: str | None = Field(default=None, alias="$schema")
    mcpServers: dict[str, ServerEntry]  # noqa: N815


def _known_keys(where: tuple[int | str, ...]) -> dict[str, FieldInfo]:
    """What may stand beside a key that is not known."""
    if len(where) < 3:
        return McpFile.model_fields
    if "signIn" in where[2:-1]:
        return SignInEntry.model_fields
    if "[look-up]" in where:
        return LookupEntry.model_fields
    return AccountEntry.model_fields if "[object]" in where else ServerEntry.model_fields


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
        case "literal_error":
            return f"must be {error['ctx']['expected']}"
        case "value_error":
            return str(error["ctx"]["error"])
        case "string_type" | "bool_type" | "float_type":
            kind = {"string_type": "a text", "bool_type": "true or false", "float_type": "a number"}[error["type"]]
            return f"must be {kind}"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case _:
            return error["msg"][:1].lower() + error["msg"][1:]


def fingerprint_of(entry: ServerEntry, filled: Mapping[str, Any]) -> str:
    """The fingerprint of what determines what runs: an approval given under one is void under another.

    Command, arguments, folder and URL count with their values; so do variables and headers, except those whose names
    say that they are credentials: of these only the name counts, so that renewing a token voids nothing.
    """

    def telling(named: Mapping[str, str]) -> dict[str, str | None]:
        return {name: None if names_a_secret(name) else value for name, value in named.items()}

    parts = {
        "command": entry.command,
        "args": list(filled["args"]),
        "env": telling(filled["env"]),
        "cwd": entry.cwd,  # as written: the same setup in another folder is the same server
        "url": filled["url"],
        "headers": telling({name.lower(): value for name, value in filled["headers"].items()}),
        "auth": entry.auth
        if not isinstance(entry.auth, AccountEntry)
        else entry.auth.model_dump(exclude={"clientSecret"}),
    }
    if entry.type == "sse":
        parts["type"] = entry.type
    if entry.tellRequester:
        parts["tellRequester"] = True
    if entry.tellChannel:
        parts["tellChannel"] = True
    return hashlib.sha256(canonical_json(parts).encode("utf-8", "surrogatepass")).hexdigest()
