"""Where a bot gets its token, and where it learns with which keys the Bot Connector signs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tests.fakes.teams.tokens import ISSUER, LIFETIME, Issuer

Answered = tuple[int, dict[str, Any]]


def token(issuer: Issuer, tenants: Collection[str], secret: str, tenant: str, form: Mapping[str, str]) -> Answered:
    """Client credentials (https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow)."""
    if tenant not in tenants:
        return _error("invalid_request", 90002, f"Tenant '{tenant}' not found.")
    if form.get("grant_type") != "client_credentials":
        return _error("unsupported_grant_type", 70003, "The app requested an unsupported grant type.")
    if form.get("client_id") != issuer.app_id:
        return _error(
            "unauthorized_client", 700016, f"Application '{form.get('client_id')}' was not found in the directory."
        )
    if form.get("client_secret") != secret:
        return _error("invalid_client", 7000215, "Invalid client secret provided.", status=401)
    if form.get("scope") == f"{issuer.service_url.removesuffix('/teams/')}/graph/.default":
        return 200, {"token_type": "Bearer", "expires_in": LIFETIME, "access_token": issuer.give()}
    if form.get("scope") != f"{ISSUER}/.default":
        return _error("invalid_scope", 70011, f"The provided value for scope {form.get('scope')} is not valid.")
    return 200, {
        "token_type": "Bearer",
        "expires_in": LIFETIME,
        "ext_expires_in": LIFETIME,
        "access_token": issuer.give(),
    }


def managed_identity(issuer: Issuer, secret: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Answered:
    """As App Service gives it: `IDENTITY_ENDPOINT` with `IDENTITY_HEADER`
    (https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference)."""
    if headers.get("X-IDENTITY-HEADER") != secret:
        return 401, {"statusCode": 401, "message": "The X-IDENTITY-HEADER does not match."}
    if query.get("api-version") != "2019-08-01" or query.get("resource") != ISSUER:
        return 400, {"statusCode": 400, "message": "Wrong api-version or resource."}
    if query.get("client_id") != issuer.app_id:
        return 400, {"statusCode": 400, "message": "No User Assigned or Delegated Managed Identity found."}
    return 200, {
        "access_token": issuer.give(),
        "expires_on": str(int(issuer.clock.now()) + LIFETIME),
        "resource": ISSUER,
        "token_type": "Bearer",
        "client_id": issuer.app_id,
    }


def metadata(base_url: str) -> dict[str, Any]:
    """The Bot Connector's OpenID metadata."""
    return {
        "issuer": ISSUER,
        "authorization_endpoint": "https://invalid.botframework.com",
        "jwks_uri": f"{base_url}/v1/.well-known/keys",
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
    }


def _error(error: str, number: int, text: str, *, status: int = 400) -> Answered:
    return status, {
        "error": error,
        "error_description": f"AADSTS{number}: {text} Trace ID: 0 Correlation ID: 0",
        "error_codes": [number],
        "error_uri": f"https://login.microsoftonline.com/error?code={number}",
    }
