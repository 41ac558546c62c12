"""What the Teams platform has to be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from adapters.shared.requests import host_name
from bot.settings import Settings, is_loopback, plain

AppType = Literal["SingleTenant", "MultiTenant", "UserAssignedMSI"]


@dataclass(frozen=True, slots=True)
class Cloud:
    """Addresses of Microsoft's services. The defaults are the public cloud's; docs/teams.md has those of others."""

    login_url: str = "https://login.microsoftonline.com"
    """Where the bot gets its own tokens (`TEAMS_LOGIN_URL`)."""
    openid_metadata_url: str = "https://login.botframework.com/v1/.well-known/openidconfiguration"
    """Where the keys are that the Bot Connector signs with (`TEAMS_OPENID_METADATA_URL`)."""
    token_issuer: str = "https://api.botframework.com"  # noqa: S105  # an address
    """`iss` of the Bot Connector's tokens (`TEAMS_TOKEN_ISSUER`)."""
    token_scope: str = "https://api.botframework.com"  # noqa: S105  # an address
    """What the bot's own tokens are for; `/.default` is added (`TEAMS_TOKEN_SCOPE`)."""
    service_url: str = "https://smba.trafficmanager.net/teams/"
    """The Bot Connector for conversations in which nothing was heard yet (`TEAMS_SERVICE_URL`)."""
    graph_url: str = "https://graph.microsoft.com"
    """Microsoft Graph, asked for groups and addresses (`TEAMS_GRAPH_URL`)."""


@dataclass(frozen=True, slots=True)
class TeamsConfig:
    """How this process is connected to Teams."""

    app_id: str = ""
    """`MICROSOFT_APP_ID`; empty with `local_unauthenticated` only."""
    app_password: str | None = field(default=None, repr=False)
    """`MICROSOFT_APP_PASSWORD`; none for managed identities."""
    app_type: AppType = "SingleTenant"
    tenant: str = ""
    """`MICROSOFT_APP_TENANT_ID`; empty for multi-tenant apps."""
    allowed_tenants: frozenset[str] = frozenset()
    """`TEAMS_ALLOWED_TENANTS`, or the app's own. Empty (multi-tenant, nothing set): every tenant is refused."""
    allow_guests: bool = False
    """Whether guests and federated people of other tenants may use the bot."""
    targeted_messages: bool = True
    """Whether what one person alone may see is shown to them in the conversation; else in their 1:1 chat."""
    graph_files: bool = False
    """`TEAMS_GRAPH_FILES`: whether files of channels and group chats are fetched through Microsoft Graph."""
    local_unauthenticated: bool = False
    """`TEAMS_LOCAL_UNAUTHENTICATED`: activities without a token are taken from loopback, and answered without one."""
    cloud: Cloud = field(default_factory=Cloud)


def config_from(settings: Settings) -> TeamsConfig:
    """What the environment says of Teams. Of no tenants named, the app's own is the one it serves."""
    tenant = settings.microsoft_app_tenant_id or ""
    return TeamsConfig(
        app_id=settings.microsoft_app_id or "",
        app_password=plain(settings.microsoft_app_password),
        app_type=settings.microsoft_app_type,
        tenant=tenant,
        allowed_tenants=frozenset(settings.teams_allowed_tenants or filter(None, [tenant])),
        allow_guests=settings.teams_allow_guests,
        targeted_messages=settings.teams_targeted_messages,
        graph_files=settings.teams_graph_files,
        local_unauthenticated=settings.teams_local_unauthenticated,
        cloud=Cloud(
            login_url=settings.teams_login_url,
            openid_metadata_url=settings.teams_openid_metadata_url,
            token_issuer=settings.teams_token_issuer,
            token_scope=settings.teams_token_scope,
            service_url=settings.teams_service_url,
            graph_url=settings.teams_graph_url,
        ),
    )


# ------------------------- addresses of services: which may be spoken with, and whether two are one

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 2_000
"""Characters."""


def service_url(url: object) -> str:
    """A service's address in one spelling, with a slash at its end; empty when it is none to speak with.

    `https`, or `http` on this machine; with nothing in it but a host, a port and a path.
    """
    if not isinstance(url, str) or len(url) > _LONGEST or not url.isascii() or not url.isprintable():
        return ""
    if any(character in url for character in " {}\\@?#"):
        return ""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or (parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host))):
        return ""
    host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown_port}{parts.path.rstrip('/')}/"


def is_local(url: str) -> bool:
    """Whether an address is this machine's."""
    return is_loopback(host_name(url.partition("://")[2].partition("/")[0]))
