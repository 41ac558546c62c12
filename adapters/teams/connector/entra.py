"""Microsoft Graph, as far as policies need it: who is in an Entra group, and which address an account has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adapters.teams.api import AT_ONCE, ConnectorFailed
from adapters.teams.config import TeamsConfig
from adapters.teams.connector.http import Http, HttpAnswer, HttpFailed
from adapters.teams.connector.remembered import Remembered
from adapters.teams.connector.tokens import BotTokens, tokens_for
from adapters.teams.connector.wire import refusal_of
from adapters.teams.ids import is_object_id
from bot.clock import Clock, system_clock

KEEP = 120.0
"""Seconds that we believe who is in a group; what is decided with it cannot be undone, so not for longer."""
KEEP_ACCOUNT = 600.0
VERB = "graph"

_Member = tuple[str, str, str]
"""Tenant, user, group."""


class Entra:
    """Asks as the app, with application permissions that the operator has granted (docs/teams.md). `close` in the
    end.

    Every method raises `ConnectorFailed` when the answer cannot be found out: no permission, no such group, no answer
    in time, a tenant that is not allowed.
    """

    def __init__(self, config: TeamsConfig, *, clock: Clock = system_clock) -> None:
        self._config = config
        self._clock = clock
        self._http = Http()
        self._allowed = {tenant.lower() for tenant in config.allowed_tenants}
        self._tokens: dict[str, BotTokens] = {}
        self._groups: Remembered[_Member, bool] = Remembered(keep=lambda _answer: KEEP, clock=clock)
        self._accounts: Remembered[tuple[str, str], Mapping[str, Any]] = Remembered(
            keep=lambda _account: KEEP_ACCOUNT, clock=clock
        )

    async def is_in(self, tenant: str, user: str, group: str) -> bool:
        """Whether an account is in a group, or in one that this group contains."""
        return await self._groups.get((tenant, user, group), lambda: self._ask_group(tenant, user, group))

    async def account(self, tenant: str, user: str) -> Mapping[str, Any]:
        """`displayName`, `mail`, `userPrincipalName` and `userType` of an account."""
        return await self._accounts.get((tenant, user), lambda: self._ask_account(tenant, user))

    async def close(self) -> None:
        """End what is under way, and close the connections."""
        await self._groups.close()
        await self._accounts.close()
        for tokens in self._tokens.values():
            await tokens.close()
        await self._http.close()

    async def _ask_group(self, tenant: str, user: str, group: str) -> bool:
        """https://learn.microsoft.com/graph/api/directoryobject-checkmembergroups"""
        _check(user, group)
        answer = await self._call(tenant, "POST", f"/v1.0/users/{user}/checkMemberGroups", {"groupIds": [group]})
        found = answer.object().get("value")
        if not isinstance(found, list):
            raise ConnectorFailed(VERB, "bad_answer")
        return group.lower() in {str(each).lower() for each in found}

    async def _ask_account(self, tenant: str, user: str) -> Mapping[str, Any]:
        """https://learn.microsoft.com/graph/api/user-get"""
        _check(user)
        fields = "displayName,mail,userPrincipalName,userType"
        return (await self._call(tenant, "GET", f"/v1.0/users/{user}?$select={fields}")).object()

    async def _call(self, tenant: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> HttpAnswer:
        tokens = self._tokens_of(tenant)
        token = await tokens.token()
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        url = f"{self._config.cloud.graph_url.rstrip('/')}{path}"
        data = json.dumps(body).encode() if body is not None else None
        try:
            answer = await self._http.request(method, url, seconds=AT_ONCE, headers=headers, data=data)
        except HttpFailed as failure:
            raise ConnectorFailed(VERB, failure.error) from None
        if answer.status == 401:
            tokens.refused(token)
        if answer.status != 200:
            raise refusal_of(VERB, answer)
        return answer

    def _tokens_of(self, tenant: str) -> BotTokens:
        if not self._config.app_id or tenant.lower() not in self._allowed:
            raise ConnectorFailed(VERB, "not_our_tenant")
        if tenant not in self._tokens:
            resource = self._config.cloud.graph_url
            self._tokens[tenant] = tokens_for(self._config, tenant=tenant, resource=resource, clock=self._clock)
        return self._tokens[tenant]


def _check(*ids: str) -> None:
    """They become part of an address."""
    if not all(map(is_object_id, ids)):
        raise ConnectorFailed(VERB, "no_object_id")
