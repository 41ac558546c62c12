"""Whose address counts: who has the same one in Teams and in Slack is taken for one human, so nobody may choose it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adapters.shared.untrusted_json import words
from adapters.teams.config import TeamsConfig
from bot.domain import AccountFacts

_EMAIL = re.compile(r"[^\s@\x00-\x20]{1,64}@[^\s@\x00-\x20]{1,255}")
_OUTSIDERS = frozenset({"guest", "anonymous"})


class Vouching:
    """The addresses of the members of the allowed tenants.

    A tenant's administrators may write any address into an account. In one
    tenant they are the company's own; where several tenants are allowed, an address counts only in the domain of the
    account's name (`userPrincipalName`), which Entra has verified for that tenant.
    """

    def __init__(self, config: TeamsConfig) -> None:
        self._allowed = {tenant.lower() for tenant in config.allowed_tenants}

    def email(self, tenant: str, account: Mapping[str, Any]) -> str:
        """In lower case; empty: none, or none that counts. `account`: of a roster (`email`) or of Graph (`mail`)."""
        address = _mail(account)
        name = words(account, "userPrincipalName").lower()
        own = (words(account, "tenantId") or tenant).lower()
        if not _EMAIL.fullmatch(address) or is_outsider(account):
            return ""
        if own != tenant.lower() or own not in self._allowed:
            return ""
        same_domain = name.rpartition("@")[2] == address.rpartition("@")[2]
        return address if len(self._allowed) == 1 or same_domain else ""

    def account(self, tenant: str, account: Mapping[str, Any]) -> AccountFacts:
        """Whose an account is, of a roster or of Graph, with all addresses that stand with it."""
        own = (words(account, "tenantId") or tenant).lower()
        vouched = self.email(tenant, account)
        said = dict.fromkeys((_mail(account), _named(words(account, "userPrincipalName").lower())))
        claimed = tuple(address for address in said if _EMAIL.fullmatch(address) and address != vouched)
        return AccountFacts(vouched, claimed, not is_outsider(account) and own == tenant.lower())


def _mail(account: Mapping[str, Any]) -> str:
    return (words(account, "email") or words(account, "mail")).strip().lower()


def _named(name: str) -> str:
    """The address in an account's name: a guest's is that of their own account (`ana_corp.com#ext#@here`)."""
    guest, sign, _ = name.partition("#ext#")
    return "@".join(guest.rsplit("_", 1)) if sign else name


def is_outsider(account: Mapping[str, Any]) -> bool:
    """Whether an account, of a roster or of Graph, is a guest's."""
    role = (words(account, "userRole") or words(account, "userType")).lower()
    return role in _OUTSIDERS or "#ext#" in words(account, "userPrincipalName").lower()
