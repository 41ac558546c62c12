"""Every environment variable, typed, with its help text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.settings_checks import (
    OPENAI,
    SettingsError,
    contradictions,
    database_address,
    fernet_keys,
    host_name,
    is_loopback,
    long_enough,
    lower_case,
    problems_of,
    public_address,
    read_patterns,
    service_address,
    slack_teams,
    split_list,
)
from policies.model import Mode

if TYPE_CHECKING:
    from graph.models import ModelSpec

__all__ = ["Settings", "SettingsError", "load_settings", "plain"]

MODEL_WITH_A_KEY = "gpt-5.4-mini"
"""OpenAI's small model of 2026 that takes tools at `/v1/chat/completions`, where every compatible service is."""

_SQLITE = "sqlite:///"

Address = Annotated[str, AfterValidator(service_address)]
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
    health_token: Annotated[SecretStr, AfterValidator(long_enough)] | None = Field(
        None,
        description="Shows the details of /health-check beyond this machine, sent as `Authorization: Bearer …`; at "
        "least 8 characters.",
    )
    encryption_key: Annotated[SecretStr, AfterValidator(fernet_keys)] | None = Field(
        None,
        description="Fernet key for people's tokens; made and kept under data/ when not set. Several replicas need "
        "the same one. For a change of keys, several separated by commas: the first seals, all of them open.",
    )

    llm_model: str | None = Field(
        None,
        description=f"demo (built in, rule-based), a model at OPENAI_BASE_URL, or google:{{model}}. When not set: demo "
        f"without OPENAI_API_KEY, {MODEL_WITH_A_KEY} with it.",
    )
    router_model: str | None = Field(None, description="Model that picks the tool types; when not set: LLM_MODEL.")
    openai_api_key: SecretStr | None = Field(None, description="Key for OPENAI_BASE_URL.")
    openai_base_url: Address = Field(OPENAI, description="Any OpenAI-compatible service, up to and including /v1.")
    google_api_key: SecretStr | None = Field(None, description="Key for google:{model} (needs the extra `google`).")
    model_timeout_seconds: float = Field(
        60.0, gt=0, le=3600, description="Longest wait for an answer to begin, and for each further piece of it."
    )
    model_retries: int = Field(3, ge=0, le=10, description="Further tries when the model's service fails.")
    turn_concurrency: int = Field(
        64, ge=1, le=1000, description="Threads that are worked on at the same time, at most; fewer when it is busy."
    )

    session_quiet_hours: float = Field(
        8.0,
        gt=0,
        le=8760,
        description="In chats without threads (Teams chats, Slack DMs without the agent view): hours without a word, "
        "and with nothing pending, after which a new conversation begins.",
    )

    mcp_config: Path = Field(Path("mcp.json"), description="The tool servers.")
    connections_file: Path = Field(
        Path("connections.yaml"),
        description="The providers (Google, Microsoft, GitHub, Slack, any other) at which people connect accounts.",
    )
    policy_file: Path = Field(Path("policies/default.yaml"), description="Who may approve what.")
    agent_mode: Mode = Field(Mode.DEFAULT, description="readOnly, default or safeWrite: the ceiling on the rules.")
    agent_strict_readonly: bool = Field(False, description="true: readOnly, whatever AGENT_MODE and the rules say.")
    redact_patterns: Patterns = Field(
        {},
        description="Masked besides tokens, keys and passwords in what tools return, on cards, in logs and in the "
        'audit log, by kind (RE2): {"badge number": "B-[0-9]{6}"}.',
    )
    redact_guids: bool = Field(False, description="Mask GUIDs in what tools return, on cards and in the audit log.")
    redact_emails: bool = Field(False, description="Mask e-mail addresses there.")

    limit_turns_per_minute: int = Field(
        30, ge=0, description="Messages a minute that one person may begin turns with; 0: no limit."
    )
    limit_thread_turns_per_minute: int = Field(
        60, ge=0, description="Messages a minute that may begin turns in one conversation; 0: no limit."
    )
    limit_calls_per_turn: int = Field(50, ge=1, le=1000, description="Tool calls that the model may make in one turn.")
    limit_tokens_per_day: int = Field(
        0, ge=0, description="Tokens of the language model that one person may use in a day (UTC); 0: no limit."
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
    slack_api_url: Address = Field("https://slack.com/api/", description="Slack's Web API.")
    slack_agent_view: bool = Field(
        True,
        description="Whether the Slack app has the agent view, as manifest.yml says: each direct message begins a "
        "thread. false: direct messages are one conversation, begun anew after 8 quiet hours.",
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
        description="Whether what one person alone may see is shown to them in the conversation, where Teams can do "
        "that. false: always in their 1:1 chat, as in clouds whose Bot Connector does not know targeted messages.",
    )
    teams_local_unauthenticated: bool = Field(
        False, description="Let local Teams clients talk to the bot without a token; loopback only."
    )
    teams_login_url: Address = Field(
        "https://login.microsoftonline.com", description="Where the bot gets its tokens; other clouds: docs/teams.md."
    )
    teams_openid_metadata_url: Address = Field(
        "https://login.botframework.com/v1/.well-known/openidconfiguration",
        description="Where the keys are that the Bot Connector signs with.",
    )
    teams_token_issuer: Address = Field(
        "https://api.botframework.com", description="Issuer of the Bot Connector's tokens."
    )
    teams_token_scope: Address = Field("https://api.botframework.com", description="What the bot's own tokens are for.")
    teams_service_url: Address = Field(
        "https://smba.trafficmanager.net/teams/",
        description="The Bot Connector for conversations that the bot has heard nothing from yet.",
    )
    teams_graph_url: Address = Field(
        "https://graph.microsoft.com", description="Microsoft Graph, asked for Entra groups and addresses."
    )
    entra_login_client_id: str | None = Field(
        None, description="Entra app that proves chat identity at sign-in; when not set: MICROSOFT_APP_ID."
    )
    entra_login_client_secret: SecretStr | None = Field(None, description="Belongs to ENTRA_LOGIN_CLIENT_ID.")

    langfuse_public_key: str | None = Field(None, description="Tracing with Langfuse.")
    langfuse_secret_key: SecretStr | None = Field(None, description="Belongs to LANGFUSE_PUBLIC_KEY.")
    langfuse_host: Address | None = Field(None, description="Your own Langfuse; when not set: Langfuse's cloud.")
    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], LowerCase] = Field(
        "info", description="debug, info, warning, error or critical."
    )
    log_format: Annotated[Literal["console", "json"], LowerCase] = Field("console", description="console or json.")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if lines := contradictions(self):
            raise SettingsError(lines)
        return self

    # ------------------------------------------------------------------------------------------------ what follows

    @property
    def model_name(self) -> str:
        """The model to use: as set, else one that works with what is set."""
        return self.llm_model or (MODEL_WITH_A_KEY if self.openai_api_key else "demo")

    @property
    def model_spec(self) -> ModelSpec:
        """The agent's model."""
        return self._spec(self.model_name)

    @property
    def router_spec(self) -> ModelSpec:
        """The model that picks tool types."""
        return self._spec(self.router_model or self.model_name)

    def _spec(self, name: str) -> ModelSpec:
        from graph.models import GOOGLE, ModelSpec  # noqa: PLC0415 (reading settings imports no model)

        google = name.startswith(GOOGLE)
        key = self.google_api_key if google else self.openai_api_key
        address = None if google or self.openai_base_url == OPENAI else self.openai_base_url
        return ModelSpec(name=name, base_url=address, api_key=key, timeout=self.model_timeout_seconds)

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
    def sqlite_file(self) -> Path | None:
        """The file of the records; `None`: they are kept in PostgreSQL."""
        address = self.database_url.get_secret_value()
        return Path(address.removeprefix(_SQLITE)) if address.startswith(_SQLITE) else None

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
        addresses = [self.database_url.get_secret_value(), *(v for v in values if isinstance(v, str) and "://" in v)]
        passwords = {password for address in addresses if (password := urlsplit(address).password)}
        return frozenset(texts | passwords | {unquote(password) for password in passwords})


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


def variable(field: str) -> str:
    """The environment variable of a field."""
    info = Settings.model_fields.get(field)
    alias = info.validation_alias if info else None
    return alias if isinstance(alias, str) else field.upper()


def plain(secret: SecretStr | None) -> str | None:
    """The text of a secret, for the one place that needs it."""
    return secret.get_secret_value() if secret else None
