"""The agent card: what another agent reads first, without a token. It names no tool, no schema and no server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from adapters.api.agent_to_agent.contract import RPC_PATH, AgentFacts
from bot.safe_text import visible_line

ABOUT = (
    "Works with a company's tools. It reads freely, and changes nothing until the right person has approved: a task "
    "that waits for an approval says so (input required), and goes on with the decision."
)
TEXT, DATA = "text/plain", "application/json"
LONGEST_CATEGORY = 60
VERSIONS = ("1.0", "0.3")


def card_json(facts: AgentFacts, url: str, *, without_token: bool) -> Mapping[str, Any]:
    """Returns the card, readable for clients of both versions of the protocol.

    Args:
        url: of this server, without a path.
        without_token: requests of this machine need none.
    """
    address = f"{url.rstrip('/')}{RPC_PATH}"
    card = AgentCard(
        name="Countersign",
        description=ABOUT,
        version=facts.version,
        supported_interfaces=[
            AgentInterface(url=address, protocol_binding="JSONRPC", protocol_version=version) for version in VERSIONS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        default_input_modes=[TEXT, DATA],
        default_output_modes=[TEXT, DATA],
        skills=[_skill(category) for category in dict.fromkeys(facts.categories())] or [_skill("general")],
    )
    card.security_schemes["bearer"].CopyFrom(
        SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))
    )
    schemes = ["bearer"]
    if facts.issuer:
        known = f"{facts.issuer.rstrip('/')}/.well-known/openid-configuration"
        card.security_schemes["openIdConnect"].CopyFrom(
            SecurityScheme(open_id_connect_security_scheme=OpenIdConnectSecurityScheme(open_id_connect_url=known))
        )
        schemes.append("openIdConnect")
    if not without_token:
        card.security_requirements.extend(SecurityRequirement(schemes={each: StringList()}) for each in schemes)
    return agent_card_to_dict(card)


def _skill(category: str) -> AgentSkill:
    named = visible_line(category, LONGEST_CATEGORY)
    what = "Answers and acts with the tools it has." if named == "general" else f"Answers and acts on: {named}."
    return AgentSkill(id=named, name=named.capitalize(), description=what, tags=[named])
