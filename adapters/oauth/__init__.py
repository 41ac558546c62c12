"""OAuth: people's accounts at outside services, and proof of who opened a sign-in link. Over HTTP, both ways."""

from adapters.oauth.connections import (
    Connection,
    ConnectionsError,
    OAuthServer,
    Provider,
    ProviderUse,
    Registrations,
    connections_of,
)
from adapters.oauth.http import Http
from adapters.oauth.proofs import ChatProofs, EntraLogin, SlackLogin, logins_from
from adapters.oauth.reading import Providers, load_providers, parse_providers
from adapters.oauth.routes import Flow, PageVisitor, routes
from adapters.oauth.services import OAuthServices

__all__ = [
    "ChatProofs",
    "Connection",
    "ConnectionsError",
    "EntraLogin",
    "Flow",
    "Http",
    "OAuthServer",
    "OAuthServices",
    "PageVisitor",
    "Provider",
    "ProviderUse",
    "Providers",
    "Registrations",
    "SlackLogin",
    "connections_of",
    "load_providers",
    "logins_from",
    "parse_providers",
    "routes",
]
