"""Every environment variable, typed and checked, with its help text."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

import translations
from bot.crypto import is_fernet_key
from bot.identity.open_issuers import EVERYBODY, is_open
from bot.records.addresses import passwords_in, sqlite_file
from policies.model import GROUP_ID_FORMS, PERSON_ID_FORMS, PLACE_ID_FORMS, Mode, normal
from policies.secret_shapes import SecretPattern
from policies.yaml_values import seconds

if TYPE_CHECKING:
    from graph.models import ModelSpec


__all__ = ["Settings", "SettingsError", "load_settings", "plain"]
MODEL_WITH_A_KEY = "gpt-5.4-mini"
"""OpenAI's small model of 2026 that takes tools at `/v1/chat/completions`, where every compatible service is."""
OPENAI = "https://api.openai.com/v1"
DEMO = "demo"
"""Name of the built-in, rule-based model."""
MOST_COST = 1_000_000_000
"""Of a day, in any currency: what a database counts in billionths. Our own choice."""


class SettingsError(Exception):
    """The settings cannot be used. `problems`: one readable line each, never with the value of a secret."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


# ------------------------------------------------------------------------------------------------ one value
def is_loopback(host: str) -> bool:
    """Whether a host name or address can be reached from this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").split("%", 1)[0]).is_loopback
    except ValueError:
        return False


def host_name(value: str) -> str:
    """An address or a host name to listen on: no scheme, no port."""
    if not re.fullmatch(r"[A-Za-z0-9._-]+|\[?[0-9A-Fa-f:.]+\]?", value):
        raise ValueError("is not a host name or address. Write it like 127.0.0.1.")
    return value.strip("[]")


def service_address(value: str) -> str:
    """An http or https address."""
    parts = _split(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("is not an http or https address. Write it like https://example.com/v1.")
    return value


def model_address(value: str) -> str:
    """An http or https address. Any trailing slash goes: with and without it is the same one."""
    return service_address(value).rstrip("/")


def public_address(value: str) -> str:
    """An https address, or http on loopback; without path, so that ours can be added. Any trailing slash goes."""
    parts = _split(value)
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise ValueError("is not an address. Write it like https://bot.example.com.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("is not safe over http. Use https; http is for loopback only.")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("has more than a host and a port. Write it like https://bot.example.com.")
    return value.rstrip("/")


def database_address(value: SecretStr) -> SecretStr:
    """`sqlite:///{file}` or `postgresql://…`; the value is never repeated, for it may hold a password."""
    address = value.get_secret_value()
    if address.startswith("postgresql:"):
        _check_postgresql(address)
        return value
    parts = _split(address)
    if parts.scheme != "sqlite":
        raise ValueError("has an unknown scheme. Write sqlite:///{file} or postgresql://{user}@{host}/{database}.")
    if parts.netloc or len(parts.path) < 2:
        raise ValueError("names no file. Write sqlite:///data/countersign.db (three slashes; four: absolute).")
    return value


_NOT_POSTGRESQL = (
    "is not an address. Check its host and port, and in a password write % as %25, @ as %40, / as %2F, ? as %3F, "
    "# as %23."
)


def _check_postgresql(address: str) -> None:
    """As libpq reads it: several hosts, each with a port of its own, are no address to `urlsplit`."""
    from psycopg import Error  # noqa: PLC0415  # SQLite has no use for it
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415  # the same

    try:
        named: Mapping[str, Any] = conninfo_to_dict(address)
        parts = urlsplit(address)
    except (Error, ValueError):
        # Not chained: the original repeats parts of the value.
        raise ValueError(_NOT_POSTGRESQL) from None
    # What shows the address, and masks its password, would take a part of the password for something else.
    if parts.netloc.count("@") > 1 or "@" in parts.path + parts.query + parts.fragment:
        raise ValueError(_NOT_POSTGRESQL)
    ports = [port for port in str(named.get("port") or "").split(",") if port]
    if not all(re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 2**16 for port in ports):
        raise ValueError("is not an address. Check its host and port.")
    if not named.get("dbname"):
        raise ValueError("names no database. Write postgresql://{user}:{password}@{host}/{database}.")


def fernet_keys(value: SecretStr) -> SecretStr:
    """Fernet keys separated by commas: each 32 bytes, URL-safe base64 (https://github.com/fernet/spec)."""
    keys = [key.strip() for key in value.get_secret_value().split(",")]
    for number, key in enumerate(keys, start=1):
        if not is_fernet_key(key):
            which = "is" if len(keys) == 1 else f"has {len(keys)} keys, and number {number} is"
            raise ValueError(
                f"{which} not a Fernet key. Make one: python -c "
                "'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'"
            )
    return SecretStr(",".join(keys))


def long_enough(value: SecretStr) -> SecretStr:
    """Long enough not to be guessed by hand, and to be recognised in a log."""
    if len(value.get_secret_value()) < 8:
        raise ValueError("is too short. Use at least 8 characters.")
    return value


def jwt_secret(value: SecretStr) -> SecretStr:
    """Long enough for HS256: as many bytes as its hash has (RFC 7518, 3.2)."""
    if len(value.get_secret_value().encode()) < 32:
        raise ValueError("is too short. Use at least 32 bytes.")
    return value


def issuer_address(value: str) -> str:
    """The address of an OpenID issuer: https, or http on loopback. As written: tokens repeat it letter by letter."""
    parts = _split(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is not the address of an issuer. Write it like https://accounts.google.com.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("is not safe over http. Use https; http is for loopback only.")
    return value


def push_address(value: SecretStr) -> SecretStr:
    """The address of a service that takes what is secret: https, or http on loopback. Never repeated: it may hold a
    secret."""
    parts = _split(value.get_secret_value())
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise ValueError("is not an https address. Write it like https://siem.example.com/ingest.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("is not safe over http. Use https; http is for loopback only.")
    return value


def header_value(value: SecretStr) -> SecretStr:
    """What a header of a request can hold, and long enough to be recognised in a log."""
    if not re.fullmatch(r"[!-~]+( [!-~]+)?", value.get_secret_value()):
        raise ValueError("has characters that no header has. Write it as you got it, on one line.")
    return long_enough(value)


_DOMAIN = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")


def mail_domains(value: tuple[str, ...]) -> tuple[str, ...]:
    """Domains as they stand behind the @ of addresses, or `*`."""
    written = tuple(each.lower() for each in value)
    if not all(each == EVERYBODY or _DOMAIN.fullmatch(each) for each in written):
        raise ValueError("has an entry that is no domain. Write them like example.com,example.org, or * for everybody.")
    return written


def origins(value: tuple[str, ...]) -> tuple[str, ...]:
    """Origins as browsers write them: scheme, host and port, nothing more."""
    for origin in value:
        parts = _split(origin)
        if parts.scheme not in {"http", "https"} or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != origin:
            raise ValueError("has an entry that is not an origin. Write it like https://app.example.com.")
    return tuple(origin.lower() for origin in value)


def people_and_groups(value: tuple[str, ...]) -> tuple[str, ...]:
    """Person ids and group references, as platforms write them: another one would match nobody."""
    written = [normal(each, {**PERSON_ID_FORMS, **GROUP_ID_FORMS}) for each in value]
    for number, each in enumerate(written, start=1):
        if each is None:
            which = "is" if len(value) == 1 else f"has {len(value)} entries, and number {number} is"
            raise ValueError(f"{which} neither a person nor a group. Write it like web:ana,slack-group:T1:S3.")
    return tuple(each for each in written if each is not None)


def language_there_is(value: str) -> str:
    """The language that comes first of those that are wanted and there are; English where none is. Desktops set the
    variable, too, to lists such as `en_US:en` and to languages that there are not."""
    return translations.choose(value)


def place_or_person(value: str) -> str:
    """A place or a person, as policies write them in `routeTo`."""
    written = normal(value, PLACE_ID_FORMS) or normal(value, PERSON_ID_FORMS)
    if written is None:
        raise ValueError(
            "is neither a place nor a person. Write it like slack:T1:C2, teams:{tenant}:{conversation} or web:ana."
        )
    return written


def duration(value: Any) -> Any:
    """Seconds, or a duration as policies write it: `30s`, `5m`, `1h`; a day at most."""
    if isinstance(value, str) and not value.strip().isdigit():
        value = seconds(value.strip())
    length = float(value)
    if not 0 < length <= 86400:  # a day
        raise ValueError("has to be longer than nothing, and a day at most. Write it like 30s, 5m or 1h.")
    return length


def lower_case(value: Any) -> Any:
    """Text in lower case, so that `INFO` is fine too."""
    return value.strip().lower() if isinstance(value, str) else value


def split_list(value: Any) -> Any:
    """Text separated by commas, as a tuple."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def slack_teams(value: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of Slack's workspaces and organisations, or `*` for all of them: a name would match nobody."""
    for number, team in enumerate(value, start=1):
        if not re.fullmatch(r"[TE][A-Z0-9]+|\*", team):
            which = "is" if len(value) == 1 else f"has {len(value)} entries, and number {number} is"
            raise ValueError(f"{which} not the id of a workspace or organisation. Write it like T024BE7LD,E0123ABCD.")
    return value


def read_patterns(value: Any) -> Any:
    """A JSON object of kinds and patterns; each is tried here, so that a bad one stops the start."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError('is not JSON. Write it like {"badge number": "B-[0-9]{6}"}.') from None
    if not isinstance(value, dict) or not all(isinstance(regex, str) for regex in value.values()):
        raise ValueError('is not an object of texts. Write it like {"badge number": "B-[0-9]{6}"}.')
    for kind, regex in value.items():
        try:
            SecretPattern(kind, regex)
        except ValueError as error:
            raise ValueError(f"cannot be used: {error}.") from None
    return value


def _split(value: str) -> SplitResult:
    try:
        parts = urlsplit(value)
        _ = parts.port  # says whether the port is one
    except ValueError:
        # Not chained: the original repeats the value.
        raise ValueError("is not an address. Check its host and port.") from None
    return parts


ServiceAddress = Annotated[str, AfterValidator(service_address)]
LowerCase = BeforeValidator(lower_case)
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split_list)]
SlackTeams = Annotated[Names, AfterValidator(slack_teams)]
Patterns = Annotated[dict[str, str], NoDecode, BeforeValidator(read_patterns)]


class Settings(BaseSettings):
    """What the environment says. The names of the variables are the fields' names in capitals."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True)

    host: Annotated[str, AfterValidator(host_name)] = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(3978, ge=0, le=65535, description="One port for everything; 0 picks a free one.")
    public_url: Annotated[str, AfterValidator(public_address)] | None = Field(
        None, description="Where people and platforms reach this server: https, or http on loopback."
    )
    database_url: Annotated[SecretStr, AfterValidator(database_address)] = Field(
        SecretStr("sqlite:///data/countersign.db"),
        description="sqlite:///{file}, or postgresql://{user}:{password}@{host}/{database} for several replicas.",
    )
    web_enabled_as_set: bool | None = Field(
        None,
        validation_alias="WEB_ENABLED",
        description="Whether the web page is served; when not set: while no other platform is on.",
    )
    web_password: Annotated[SecretStr, AfterValidator(long_enough)] | None = Field(
        None, description="Lets the web page be served beyond loopback; at least 8 characters."
    )
    web_login: Annotated[Literal["local", "password", "oidc"], LowerCase] = Field(
        "local",
        description="How people on the web page are identified: local (three made-up people, on this machine only), "
        "password (accounts made with `python app.py user add`) or oidc (sign-in at OIDC_ISSUER).",
    )
    web_register: bool = Field(False, description="With WEB_LOGIN=password: anyone may create an account.")
    oidc_issuer: Annotated[str, AfterValidator(issuer_address)] | None = Field(
        None, description="With WEB_LOGIN=oidc: the issuer where people sign in (Entra, Google, Okta, Keycloak, …)."
    )
    oidc_client_id: str | None = Field(None, description="Id of the client that you registered there.")
    oidc_client_secret: SecretStr | None = Field(None, description="Its secret; when not set: a public client.")
    oidc_scopes: str = Field("openid profile email", description="Scopes to ask for there, separated by spaces.")
    oidc_allowed_domains: Annotated[Names, AfterValidator(mail_domains)] = Field(
        (),
        description="Only people with a verified address in these domains may sign in, at OIDC_ISSUER or with tokens "
        "of API_JWT_ISSUER; separated by commas. * or not set: everyone whom the issuer signs in. Required where "
        "anyone in the world can sign in (Google, Slack, …).",
    )
    operators: Annotated[Names, AfterValidator(people_and_groups)] = Field(
        (),
        description="People and groups who may see other people's conversations, the audit log and the details of "
        "/health-check, separated by commas: web:ana,slack:T1:U2,slack-group:T1:S3,entra-group:….",
    )
    api_jwt_issuer: Annotated[str, AfterValidator(issuer_address)] | None = Field(
        None, description="Issuer whose JWTs programs may send as `Authorization: Bearer …`."
    )
    api_jwt_audience: str | None = Field(None, description="The `aud` that such tokens must have.")
    api_jwt_secret: Annotated[SecretStr, AfterValidator(jwt_secret)] | None = Field(
        None, description="Secret shared with those who sign JWTs for programs (HS256); at least 32 bytes."
    )
    api_cors_origins: Annotated[Names, AfterValidator(origins)] = Field(
        (), description="Origins of pages elsewhere that may use the HTTP API, separated by commas; none by default."
    )
    gateway_enable: bool = Field(True, description="false: other agents cannot use the tools by MCP at /mcp.")
    gateway_wait: Annotated[float, BeforeValidator(duration)] = Field(
        300.0,
        description="How long a call at /mcp waits for people before the client is told how to continue: 30s, 5m, 1h.",
    )
    gateway_place: Annotated[str, AfterValidator(place_or_person)] | None = Field(
        None,
        description="Where people are asked about calls at /mcp whose rule has no routeTo: slack:T1:C2, "
        "teams:{tenant}:{conversation}, or a person; when not set: the caller's chat, or the page.",
    )
    health_token: Annotated[SecretStr, AfterValidator(long_enough)] | None = Field(
        None,
        description="Shows the details of /health-check beyond this machine, sent as `Authorization: Bearer …`; at "
        "least 8 characters.",
    )
    language: Annotated[str, BeforeValidator(language_there_is)] = Field(
        translations.SOURCE,
        description="Language of what several people see, such as cards: en or de. What only one person sees is in "
        "their own language.",
    )
    encryption_key: Annotated[SecretStr, AfterValidator(fernet_keys)] | None = Field(
        None,
        description="Fernet key that seals people's tokens; made and kept under data/ when not set. Replicas need the "
        "same one. To change keys, give several, separated by commas: the first seals, all of them open.",
    )

    llm_model: str | None = Field(
        None,
        description="demo (built in, rule-based), a model at OPENAI_BASE_URL, anthropic:{model} or google:{model}. "
        f"When not set: demo without OPENAI_API_KEY, {MODEL_WITH_A_KEY} with it.",
    )
    router_model: str | None = Field(None, description="Model that picks the tool types; when not set: LLM_MODEL.")
    openai_api_key: SecretStr | None = Field(None, description="Key for OPENAI_BASE_URL.")
    openai_base_url: Annotated[str, AfterValidator(model_address)] = Field(
        OPENAI, description="Any OpenAI-compatible service, up to and including /v1."
    )
    anthropic_api_key: SecretStr | None = Field(
        None, description="Key for anthropic:{model} (needs the extra `anthropic`)."
    )
    anthropic_base_url: Annotated[str, AfterValidator(model_address)] | None = Field(
        None, description="A gateway that speaks Anthropic's API, without /v1; when not set: Anthropic's own."
    )
    google_api_key: SecretStr | None = Field(None, description="Key for google:{model} (needs the extra `google`).")
    google_base_url: Annotated[str, AfterValidator(model_address)] | None = Field(
        None, description="A gateway that speaks the Gemini API, without /v1beta; when not set: Google's own."
    )
    model_timeout_seconds: float = Field(
        60.0, gt=0, le=3600, description="Longest wait for an answer to start, and for each further piece of it."
    )
    model_retries: int = Field(3, ge=0, le=10, description="Further tries when the model's service fails.")
    turn_concurrency: int = Field(
        64,
        ge=1,
        le=1000,
        description="Conversations that are worked on at the same time, at most; fewer when it is busy.",
    )

    session_quiet_hours: float = Field(
        8.0,
        gt=0,
        le=8760,
        description="In chats without threads (Teams chats, Slack DMs without the agent view): a new conversation "
        "starts after this many hours without a message, if nothing is open.",
    )

    mcp_config: Path = Field(Path("mcp.json"), description="The tool servers.")
    connections_file: Path = Field(
        Path("connections.yaml"),
        description="The providers (Google, Microsoft, GitHub, Slack, any other) at which people connect accounts.",
    )
    policy_file: Path = Field(Path("policies/default.yaml"), description="Who may approve what.")
    agents_file: Path = Field(
        Path("agents.yaml"), description="The agents: what each is told, and its tools. Without the file there is one."
    )
    prices_file: Path = Field(
        Path("prices.yaml"), description="What models cost. Without the file, only tokens are told."
    )
    agent_mode: Mode = Field(Mode.DEFAULT, description="readOnly, default or safeWrite: the ceiling on the rules.")
    agent_strict_readonly: bool = Field(False, description="true: readOnly, whatever AGENT_MODE and the rules say.")
    agent_enable: bool = Field(True, description="false: no turn starts anywhere; people who write are told so.")
    memory: bool = Field(
        True,
        description="false: nothing that people say of themselves or of a channel is remembered for later "
        "conversations.",
    )
    hitl_timeout_seconds: float = Field(
        120.0, gt=0, le=86400, description="Seconds after which approvals asked for by POST /query/stream expire."
    )
    redact_patterns: Patterns = Field(
        {},
        description="Masked besides tokens, keys and passwords in what tools return, on cards, in logs and in the "
        'audit log, by kind (RE2): {"badge number": "B-[0-9]{6}"}.',
    )
    redact_guids: bool = Field(False, description="Mask GUIDs in what tools return, on cards and in the audit log.")
    redact_emails: bool = Field(False, description="Mask e-mail addresses there.")

    limit_turns_per_minute: int = Field(
        30, ge=0, description="Messages a minute with which one person may start turns; 0: no limit."
    )
    limit_thread_turns_per_minute: int = Field(
        60, ge=0, description="Messages a minute that may start turns in one conversation; 0: no limit."
    )
    limit_calls_per_turn: int = Field(50, ge=1, le=1000, description="Tool calls that the model may make in one turn.")
    limit_tokens_per_day: int = Field(
        0, ge=0, description="Tokens of the language model that one person may use in a day (UTC); 0: no limit."
    )
    limit_channel_tokens_per_day: int = Field(
        0, ge=0, description="Tokens that all people together may use in one channel in a day (UTC); 0: no limit."
    )
    limit_cost_per_day: Decimal = Field(
        Decimal(0),
        ge=0,
        le=MOST_COST,
        decimal_places=6,
        description="What one person's use of the language model may cost in a day (UTC), in the currency of "
        "PRICES_FILE; 0: no limit.",
    )
    limit_channel_cost_per_day: Decimal = Field(
        Decimal(0),
        ge=0,
        le=MOST_COST,
        decimal_places=6,
        description="What all people's use in one channel may cost in a day (UTC); 0: no limit.",
    )
    limit_gateway_calls_per_minute: int = Field(
        120, ge=0, description="Calls a minute that one person's programs may make at /mcp; 0: no limit."
    )
    limit_gateway_calls_waiting: int = Field(
        100,
        ge=1,
        le=1000,
        description="Calls of one person's programs at /mcp that may wait for people at one time.",
    )
    limit_links_per_hour: int = Field(
        30, ge=0, description="Sign-in links that one person may ask for within an hour; 0: no limit."
    )

    slack_bot_token: SecretStr | None = Field(None, description="xoxb-…, for one workspace.")
    slack_signing_secret: SecretStr | None = Field(None, description="For the Events API at POST /slack/events.")
    slack_app_token: SecretStr | None = Field(None, description="xapp-…, for Socket Mode instead of the Events API.")
    slack_client_id: str | None = Field(
        None, description="For Sign in with Slack, and for installs into many workspaces at /slack/install."
    )
    slack_client_secret: SecretStr | None = Field(None, description="Belongs to SLACK_CLIENT_ID.")
    slack_install_teams: SlackTeams = Field(
        (),
        description="Ids of the Slack workspaces and organisations (T…, E…) that may install the app at "
        "/slack/install and be served, separated by commas; *: all. When not set: none.",
    )
    slack_api_url: ServiceAddress = Field("https://slack.com/api/", description="Slack's Web API.")
    slack_agent_view: bool = Field(
        True,
        description="Whether the Slack app has the agent view, as in manifest.yml: each direct message starts a "
        "thread. false: direct messages are one conversation at a time (see SESSION_QUIET_HOURS).",
    )
    slack_allow_guests: bool = Field(False, description="Let guests of a workspace talk to the bot.")
    slack_allowed_teams: Names = Field(
        (),
        description="Ids of other Slack workspaces or organisations (T…, E…) whose people may talk to the bot in "
        "shared channels, separated by commas.",
    )

    microsoft_app_id: str | None = Field(None, description="The bot's app id, for Teams at POST /api/messages.")
    microsoft_app_password: SecretStr | None = Field(None, description="Its client secret.")
    microsoft_app_tenant_id: str | None = Field(None, description="The app's tenant.")
    microsoft_app_type: Literal["SingleTenant", "MultiTenant", "UserAssignedMSI"] = Field(
        "SingleTenant", description="SingleTenant, MultiTenant or UserAssignedMSI."
    )
    teams_allowed_tenants: Names = Field(
        (), description="Tenants that may talk to the bot, separated by commas; when not set: the app's own."
    )
    teams_allow_guests: bool = Field(
        False, description="Let guests and federated people of other tenants talk to the bot in Teams."
    )
    teams_targeted_messages: bool = Field(
        True,
        description="Whether private messages appear in the conversation, visible to one person only, where Teams can "
        "do that. false: always in the person's chat with the bot, for clouds without targeted messages.",
    )
    teams_graph_files: bool = Field(
        False,
        description="Read files that people share in channels and group chats, through Microsoft Graph; needs its "
        "application permission Files.Read.All or Sites.Selected, and the app installed with RSC=1. Only what a "
        "message's author has uploaded or changed last is read. false: files of direct chats only.",
    )
    teams_local_unauthenticated: bool = Field(
        False, description="Let local Teams clients talk to the bot without a token; loopback only."
    )
    teams_login_url: ServiceAddress = Field(
        "https://login.microsoftonline.com", description="Where the bot gets its tokens; other clouds: docs/teams.md."
    )
    teams_openid_metadata_url: ServiceAddress = Field(
        "https://login.botframework.com/v1/.well-known/openidconfiguration",
        description="Where to find the keys that the Bot Connector signs with.",
    )
    teams_token_issuer: ServiceAddress = Field(
        "https://api.botframework.com", description="Issuer of the Bot Connector's tokens."
    )
    teams_token_scope: ServiceAddress = Field(
        "https://api.botframework.com", description="Scope of the bot's own tokens."
    )
    teams_service_url: ServiceAddress = Field(
        "https://smba.trafficmanager.net/teams/",
        description="The Bot Connector for conversations from which the bot has received nothing yet.",
    )
    teams_graph_url: ServiceAddress = Field(
        "https://graph.microsoft.com", description="Microsoft Graph, asked for Entra groups and addresses."
    )
    entra_login_client_id: str | None = Field(
        None, description="Entra app that proves chat identity at sign-in; when not set: MICROSOFT_APP_ID."
    )
    entra_login_client_secret: SecretStr | None = Field(None, description="Belongs to ENTRA_LOGIN_CLIENT_ID.")

    metrics: bool = Field(
        False, description="Serves GET /metrics for Prometheus to those who may see the details of /health-check."
    )
    otel_exporter_otlp_endpoint: ServiceAddress | None = Field(
        None,
        description="OpenTelemetry collector that traces are sent to (OTLP over HTTP), such as http://localhost:4318; "
        "the other OTEL_ variables hold, too.",
    )
    otel_exporter_otlp_traces_endpoint: ServiceAddress | None = Field(
        None, description="Its whole address for traces, where that does not end with /v1/traces."
    )
    otel_exporter_otlp_headers: SecretStr | None = Field(
        None, description="Headers that it wants: name=value, separated by commas."
    )
    otel_exporter_otlp_traces_headers: SecretStr | None = Field(None, description="The same, for traces alone.")
    trace_content: bool = Field(
        False, description="Traces hold what people write, what the model is told, and what tools return; masked."
    )
    langfuse_public_key: str | None = Field(
        None, description="Traces are sent to Langfuse; feedback becomes scores there."
    )
    langfuse_secret_key: SecretStr | None = Field(None, description="Belongs to LANGFUSE_PUBLIC_KEY.")
    langfuse_host: ServiceAddress | None = Field(None, description="Your own Langfuse; when not set: Langfuse's cloud.")
    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], LowerCase] = Field(
        "info", description="debug, info, warning, error or critical."
    )
    log_format: Annotated[Literal["console", "json"], LowerCase] = Field("console", description="console or json.")
    audit_push_url: Annotated[SecretStr, AfterValidator(push_address)] | None = Field(
        None,
        description="Where the audit log is pushed to, as events of OCSF (JSON Lines): https, or http on loopback. It "
        "is in no log, since some SIEMs have a secret in it.",
    )
    audit_push_token: Annotated[SecretStr, AfterValidator(header_value)] | None = Field(
        None,
        description="Sent there as `Authorization: Bearer …`; with a word before it (`Splunk …`), as it is.",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_a_last_line_break(cls, values: Any) -> Any:
        """What keeps secrets in files (Kubernetes, Docker, Vault) hands over the line break at their end, too, which is
        part of no key or token: services would refuse them, and nobody would see why."""
        if not isinstance(values, dict):
            return values
        bare = {name: value.rstrip("\r\n") if isinstance(value, str) else value for name, value in values.items()}
        return {name: value for name, value in bare.items() if value != "" or values[name] == ""}

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if lines := contradictions(self):
            raise SettingsError(lines)
        return self

    # ------------------------------------------------------------------------------------------------ what follows

    @property
    def model_name(self) -> str:
        """The model to use: as set, else one that works with what is set."""
        return self.llm_model or (MODEL_WITH_A_KEY if self.openai_api_key else DEMO)

    @property
    def limits_cost(self) -> bool:
        """Whether anything is limited by what it costs."""
        return bool(self.limit_cost_per_day or self.limit_channel_cost_per_day)

    @property
    def model_spec(self) -> ModelSpec:
        """The agent's model."""
        return self.spec_of(self.model_name)

    @property
    def router_spec(self) -> ModelSpec:
        """The model that picks tool types."""
        return self.spec_of(self.router_model or self.model_name)

    def spec_of(self, name: str, temperature: float | None = None) -> ModelSpec:
        """A model by its name, reached as these settings say. `temperature`: as `ModelSpec.temperature`."""
        from graph.models import ModelSpec  # noqa: PLC0415 (reading settings imports no model)

        key, address = self.service_of(name)
        return ModelSpec(
            name=name, base_url=address, api_key=key, timeout=self.model_timeout_seconds, temperature=temperature
        )

    def objection_to(self, model: str | None, temperature: float | None) -> str | None:
        """Why the model that a file names (`None`: the one of these settings), or its temperature, cannot be used under
        these settings; `None`: they can."""
        from graph.models import ModelProblem, check_configured  # noqa: PLC0415 (as above)

        name = model or self.model_name
        if name == DEMO:
            return None
        try:
            check_configured(self.spec_of(name, temperature), "model" if model else "LLM_MODEL")
        except ModelProblem as problem:
            return problem.sentence
        return None

    def service_of(self, name: str) -> tuple[SecretStr | None, str | None]:
        """The key and the address of the service that has a model; no address: the provider's own."""
        if name.startswith("anthropic:"):
            return self.anthropic_api_key, self.anthropic_base_url
        if name.startswith("google:"):
            return self.google_api_key, self.google_base_url
        return self.openai_api_key, None if self.openai_base_url == OPENAI else self.openai_base_url

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return Mode.READ_ONLY if self.agent_strict_readonly else self.agent_mode

    @property
    def slack_configured(self) -> bool:
        """Whether Slack's variables are set."""
        return bool(self.slack_bot_token or self.slack_client_id)

    @property
    def teams_configured(self) -> bool:
        """Whether the variables of Teams are set."""
        return bool(self.microsoft_app_id) or self.teams_local_unauthenticated

    @property
    def web_enabled(self) -> bool:
        """Whether the web page is served."""
        if self.web_enabled_as_set is not None:
            return self.web_enabled_as_set
        return not (self.slack_configured or self.teams_configured)

    @property
    def records_address(self) -> str:
        """Where the records are; may hold a password."""
        return self.database_url.get_secret_value()

    @property
    def sqlite_file(self) -> Path | None:
        """The file of the records; `None`: they are kept in PostgreSQL."""
        return sqlite_file(self.records_address)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server: a loopback `HOST` and no `PUBLIC_URL`."""
        return is_loopback(self.host) and self.public_url is None

    @property
    def secret_values(self) -> frozenset[str]:
        """Every secret in these settings, for the logs to mask; of addresses, the password in them."""
        values = [getattr(self, name) for name in type(self).model_fields if name != "database_url"]
        texts = {value.get_secret_value() for value in values if isinstance(value, SecretStr)}
        texts |= set((plain(self.encryption_key) or "").split(",")) - {""}
        texts |= _secrets_in_headers(plain(self.otel_exporter_otlp_headers))
        texts |= _secrets_in_headers(plain(self.otel_exporter_otlp_traces_headers))
        texts |= {(plain(self.audit_push_token) or "").rpartition(" ")[2]} - {""}
        texts |= passwords_in(self.records_address)
        addresses = [self.records_address, *(v for v in values if isinstance(v, str) and "://" in v)]
        passwords = {password for address in addresses if (password := urlsplit(address).password)}
        return frozenset(texts | passwords | {unquote(password) for password in passwords})


_NAMES_A_PLACE = re.compile(
    r"(?:\A|[-_])(?:org|organi[sz]ation|tenant|dataset|project|stream|namespace|env|environment|region|cluster|service"
    r"|samplerate)(?:[-_]?(?:id|name))?\Z",
    re.IGNORECASE,
)
"""Names of headers that say where traces belong, such as `X-Scope-OrgID` or `x-honeycomb-dataset`. What they say is a
word such as `production`, which may stand in any call: masked, people would approve what they do not see."""


def _secrets_in_headers(written: str | None) -> set[str]:
    """The values of headers that are written as OpenTelemetry has them, and what follows a scheme in them; without
    those that name a place."""
    pairs = [each.partition("=") for each in (written or "").split(",")]
    values = {unquote(value).strip() for name, _, value in pairs if not _NAMES_A_PLACE.search(unquote(name).strip())}
    return {part for value in values for part in (value, value.rpartition(" ")[2]) if part}


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """The settings of the environment and of `env_file` (the environment wins; no file is fine).

    Raises `SettingsError` with one line per problem.
    """
    try:
        return Settings(_env_file=env_file, _env_file_encoding="utf-8")
    except ValidationError as error:
        # Not chained: pydantic's error knows the values.
        raise SettingsError(problems_of(error, variable)) from None
    except UnicodeDecodeError:
        raise SettingsError([f"{env_file}: is not a text file in UTF-8. Save it as UTF-8."]) from None
    except OSError as error:
        raise SettingsError([f"{env_file}: cannot be read: {error.strerror}."]) from None


def variable(field: str) -> str:
    """The environment variable of a field."""
    info = Settings.model_fields.get(field)
    alias = info.validation_alias if info else None
    return alias if isinstance(alias, str) else field.upper()


def plain(secret: SecretStr | None) -> str | None:
    """The text of a secret, for the one place that needs it."""
    return secret.get_secret_value() if secret else None


# ------------------------------------------------------------------------------------------------ several together
def contradictions(settings: Settings) -> list[str]:
    """What is wrong between settings that are right one by one."""
    return [*_model(settings), *_sign_in(settings), *_slack(settings), *_teams(settings), *_pairs(settings)]


def _model(s: Settings) -> list[str]:
    models = {"LLM_MODEL": s.model_name} | ({"ROUTER_MODEL": s.router_model} if s.router_model else {})
    lines = []
    for name, value in models.items():
        prefix, _, model = value.partition(":")
        provider = prefix if prefix in {"anthropic", "google"} and ":" in value else "openai"
        if provider != "openai" and not model:
            lines.append(f"{name}: names no model. Write {provider}:{{model}}.")
        elif value != DEMO and s.service_of(value) == (None, None):
            service = provider.upper()
            lines.append(
                f"{service}_API_KEY: is not set, and {name} is {value}. Set it, point {service}_BASE_URL at a service "
                f"that needs no key, or set {name}={DEMO}."
            )
    return lines


def _sign_in(s: Settings) -> list[str]:
    lines = []
    if s.web_login == "oidc":
        missing = [n for n, v in (("OIDC_ISSUER", s.oidc_issuer), ("OIDC_CLIENT_ID", s.oidc_client_id)) if not v]
        lines += [f"{name}: is not set, and WEB_LOGIN is oidc. Set it." for name in missing]
        if s.public_url is None and not s.on_loopback:
            lines.append(
                "PUBLIC_URL: is not set, and WEB_LOGIN is oidc beyond this machine. Set it to the address that people "
                "type: the issuer sends them back there."
            )
    elif s.oidc_issuer or s.oidc_client_id or s.oidc_client_secret:
        lines.append("WEB_LOGIN: is not oidc, but OIDC_ variables are set. Set WEB_LOGIN=oidc, or remove them.")
    if s.web_login != "local" and s.web_password:
        lines.append(f"WEB_PASSWORD: is for WEB_LOGIN=local only. Remove it: {s.web_login} says who people are.")
    if s.web_register and s.web_login != "password":
        lines.append("WEB_REGISTER: is only for WEB_LOGIN=password. Set that, or remove it.")
    issuers = {"OIDC_ISSUER": s.oidc_issuer, "API_JWT_ISSUER": s.api_jwt_issuer}
    if s.oidc_allowed_domains and not any(issuers.values()):
        lines.append("OIDC_ALLOWED_DOMAINS: is set, but neither OIDC_ISSUER nor API_JWT_ISSUER. Set one, or remove it.")
    opened = [name for name, issuer in issuers.items() if issuer and is_open(issuer)]
    if opened and not s.oidc_allowed_domains:
        lines.append(
            f"OIDC_ALLOWED_DOMAINS: is not set, and anybody in the world can sign in at {' and '.join(opened)}. "
            "Set it to the domains of your people's addresses (example.com), or to * for everybody; at Microsoft, "
            "name your tenant in the issuer instead."
        )
    if bool(s.api_jwt_issuer) and not s.api_jwt_audience:
        lines.append("API_JWT_AUDIENCE: is not set, and API_JWT_ISSUER is. Tokens for other services would be taken.")
    if s.api_jwt_audience and not (s.api_jwt_issuer or s.api_jwt_secret):
        lines.append("API_JWT_ISSUER: is not set, but API_JWT_AUDIENCE is. Set it or API_JWT_SECRET, or remove both.")
    return lines


def _slack(s: Settings) -> list[str]:
    lines = []
    if (s.slack_signing_secret or s.slack_app_token) and not s.slack_configured:
        lines.append("SLACK_BOT_TOKEN: is not set, but other SLACK_ variables are. Set it, or remove them.")
    if s.slack_configured and not (s.slack_signing_secret or s.slack_app_token):
        lines.append("SLACK_SIGNING_SECRET: is not set. Set it, or SLACK_APP_TOKEN for Socket Mode.")
    elif s.slack_client_id and not s.slack_bot_token and not s.slack_signing_secret:
        lines.append("SLACK_SIGNING_SECRET: is not set. Installs into many workspaces need the Events API: set it.")
    return lines


def _teams(s: Settings) -> list[str]:
    lines = []
    if s.microsoft_app_id:
        if not s.microsoft_app_password and s.microsoft_app_type != "UserAssignedMSI":
            lines.append("MICROSOFT_APP_PASSWORD: is not set, but MICROSOFT_APP_ID is. Set the app's client secret.")
        if not s.microsoft_app_tenant_id and s.microsoft_app_type != "MultiTenant":
            lines.append(f"MICROSOFT_APP_TENANT_ID: is not set. A {s.microsoft_app_type} app needs its tenant: set it.")
        if s.microsoft_app_type == "MultiTenant" and not (s.teams_allowed_tenants or s.microsoft_app_tenant_id):
            lines.append("TEAMS_ALLOWED_TENANTS: is not set. A MultiTenant app needs to be told whom it may talk to.")
    elif s.microsoft_app_password:
        lines.append("MICROSOFT_APP_ID: is not set, but MICROSOFT_APP_PASSWORD is. Set it, or remove the password.")
    if s.teams_local_unauthenticated and not s.on_loopback:
        lines.append(
            "TEAMS_LOCAL_UNAUTHENTICATED: is only for this machine. Set HOST to 127.0.0.1 and remove PUBLIC_URL, or "
            "turn it off."
        )
    return lines


def _pairs(s: Settings) -> list[str]:
    pairs = (
        ("SLACK_CLIENT_ID", s.slack_client_id, "SLACK_CLIENT_SECRET", s.slack_client_secret),
        ("ENTRA_LOGIN_CLIENT_ID", s.entra_login_client_id, "ENTRA_LOGIN_CLIENT_SECRET", s.entra_login_client_secret),
        ("LANGFUSE_PUBLIC_KEY", s.langfuse_public_key, "LANGFUSE_SECRET_KEY", s.langfuse_secret_key),
    )
    lines = []
    if s.audit_push_token and not s.audit_push_url:
        lines.append("AUDIT_PUSH_URL: is not set, but AUDIT_PUSH_TOKEN is. Set it, or remove the token.")
    for left, left_value, right, right_value in pairs:
        if bool(left_value) != bool(right_value):
            missing, there = (right, left) if left_value else (left, right)
            lines.append(f"{missing}: is not set, but {there} is. Set both, or neither.")
    return lines


# ------------------------------------------------------------------------------------------------ how it is said
def problems_of(error: ValidationError, variable: Callable[[str], str]) -> list[str]:
    """One line per problem. Values are not repeated: a secret may have been pasted into the wrong variable."""
    return [
        f"{variable(str(e['loc'][0])) if e['loc'] else 'settings'}: {_said(e['type'], e['msg'], e.get('ctx', {}))}"
        for e in error.errors(include_url=False, include_input=False)
    ]


def _said(kind: str, message: str, context: dict[str, Any]) -> str:
    match kind:
        case "value_error":
            return message.removeprefix("Value error, ")
        case "int_parsing" | "int_from_float":
            return "is not a whole number. Write digits only."
        case "float_parsing":
            return "is not a number. Write it like 60 or 0.5."
        case "bool_parsing":
            return "is neither true nor false. Write one of them."
        case "enum" | "literal_error":
            return f"is none of its values. Write {context['expected']}."
        case "greater_than_equal" | "greater_than" | "less_than_equal" | "less_than":
            bounds = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
            key = next(k for k in bounds if k in context)
            return f"is out of range. It has to be {bounds[key]} {context[key]:g}."
        case _:
            return f"cannot be read. {message}."
