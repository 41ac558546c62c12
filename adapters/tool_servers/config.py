"""Reads `mcp.json`: which tool servers there are, how they are run, and what the operator says of their tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from adapters.tool_servers.entries import AccountEntry, Entry, File, check_server_name, check_url, complaint
from adapters.tool_servers.fingerprints import fingerprint_of
from adapters.tool_servers.positions import Located, NotJsonError, locate
from adapters.tool_servers.redaction import secret_parts
from adapters.tool_servers.text import one_line
from adapters.tool_servers.variables import BadReferenceError, fill
from policies.patterns import compiled

Auth = Literal["none", "headers", "oauth"]


class ConfigError(Exception):
    """`mcp.json` cannot be used. Says where (`path`, `line` from 1) and why; holds no configured value."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        self.path = path
        self.line = line
        self.reason = one_line(reason, 500)
        super().__init__(f"{path}, line {line}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Stdio:
    """A server that is a child process and speaks over its standard streams."""

    command: str
    args: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: Path


@dataclass(frozen=True, slots=True)
class Http:
    """A server behind a streamable HTTP endpoint."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AccountConfig:
    """Whose accounts a server acts with: those of the people who ask for something."""

    connection: str
    """Name of the connection: the provider's, else the server's own."""
    provider: str | None = None
    """Of `connections.yaml`; `None`: the server itself says where people sign in (MCP authorisation)."""
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
    transport: Stdio | Http
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
    sign_in: SignInRule | None = None
    """`None`: only its protocol says that somebody must sign in."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What was given to the server and must never be shown."""


@dataclass(frozen=True, slots=True)
class ToolServersConfig:
    """All configured servers, in the order of the file."""

    servers: tuple[ServerConfig, ...] = ()


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
        file = File.model_validate(located.value)
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
    return ToolServersConfig(servers)


def _first_complaint(error: ValidationError, located: Located, path: Path) -> ConfigError:
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

    def __init__(self, name: str, entry: Entry, path: Path, located: Located, environ: Mapping[str, str]) -> None:
        self._name = name
        self._entry = entry
        self._path = path
        self._located = located
        self._environ = environ
        self._secrets: set[str] = set()

    def server(self) -> ServerConfig:
        entry = self._entry
        try:
            check_server_name(self._name)
        except ValueError as error:
            raise self._error((), str(error), key=True) from None
        self._check_transport()
        self._check_auth()
        self._check_tool_lists()
        args = [self._fill(("args", index), template) for index, template in enumerate(entry.args)]
        env = {name: self._fill(("env", name), template) for name, template in entry.env.items()}
        url = None if entry.url is None else self._url(entry.url)
        headers = {name: self._header(name, template) for name, template in entry.headers.items()}
        account = self._account()
        filled = {"args": args, "env": env, "url": url, "headers": headers}
        for name, value in (*env.items(), *headers.items()):
            self._secrets |= secret_parts(name, value)
        transport: Stdio | Http
        if url is not None:
            transport = Http(url, headers)
        else:
            folder = (self._path.parent / (entry.cwd or ".")).resolve()
            transport = Stdio(entry.command or "", tuple(args), env, folder)
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
            sign_in=SignInRule(compiled(entry.signIn.pattern), entry.signIn.host) if entry.signIn else None,
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

    def _check_tool_lists(self) -> None:
        entry = self._entry
        if entry.tools is None:
            return
        for key in ("requireApproval", "idempotentTools", "readOnlyTools"):
            names: list[str] = getattr(entry, key)
            for index, name in enumerate(names):
                if name not in entry.tools:
                    raise self._error((key, index), f'"{name}" is not among `tools`')

    def _url(self, template: str) -> str:
        try:
            return check_url(self._fill(("url",), template))
        except ValueError as error:
            raise self._error(("url",), str(error)) from None

    def _header(self, name: str, template: str) -> str:
        value = self._fill(("headers", name), template)
        if any(not c.isascii() or not c.isprintable() for c in value):
            raise self._error(("headers", name), "a header's value may hold printable ASCII characters only")
        return value

    def _fill(self, where: tuple[str | int, ...], template: str) -> str:
        try:
            filled = fill(template, self._environ)
        except BadReferenceError as error:
            raise self._error(where, str(error)) from None
        if "\x00" in filled.text:
            raise self._error(where, "must not hold a NUL character")
        self._secrets |= filled.secrets
        return filled.text

    def _later(self, *keys: str) -> str:
        return max(keys, key=lambda key: self._located.keys[("mcpServers", self._name, key)])

    def _error(self, where: tuple[str | int, ...], reason: str, *, key: bool = False) -> ConfigError:
        path = ("mcpServers", self._name, *where)
        return ConfigError(self._path, self._located.line_of(path, key=key), f"{_dotted(path)}{reason}")
