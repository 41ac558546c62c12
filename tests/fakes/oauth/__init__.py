"""Real OAuth servers on loopback, and a browser for them.

`protected_server`: an MCP server that demands tokens, with its authorisation server (the MCP SDK's, which checks PKCE,
clients and resources itself). `identity_provider`: a provider with userinfo and OpenID Connect; also what Slack and
Entra are for Sign in with them. `Browser`: somebody's browser, with the accounts that they are signed in to.
"""

from tests.fakes.oauth.browser import Browser, Shown
from tests.fakes.oauth.identity import IdentityFake, User, entra_user, identity_provider, slack_user
from tests.fakes.oauth.mcp_server import ProtectedServer, protected_server

__all__ = [
    "Browser",
    "IdentityFake",
    "ProtectedServer",
    "Shown",
    "User",
    "entra_user",
    "identity_provider",
    "protected_server",
    "slack_user",
]
