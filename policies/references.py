"""References to people, groups and places, as policies and records write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SLACK = re.compile(r"[A-Z0-9]+:[A-Z0-9]+")
_ENTRA = re.compile(r"[0-9A-Za-z._-]+:[0-9A-Za-z._-]+")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

PEOPLE: Mapping[str, re.Pattern[str]] = {"slack": _SLACK, "teams": _ENTRA, "web": re.compile(r"[^\s:]+")}
"""Platform → what follows it in a person id: workspace and user, tenant and object id, name."""
GROUPS: Mapping[str, re.Pattern[str]] = {"slack-group": _SLACK, "entra-group": _ENTRA}
"""Directory → what follows it in a group reference: workspace or tenant, and the group's id."""
PLACES: Mapping[str, re.Pattern[str]] = {"slack": _SLACK, "teams": re.compile(r"[0-9A-Za-z._-]+:\S+")}
"""Platform → what follows it in the reference of a channel, a chat or somebody's direct messages."""


def normal(reference: str, forms: Mapping[str, re.Pattern[str]]) -> str | None:
    """A reference as platforms write it; `None`: it has none of these forms.

    GUIDs are in lower case there, while some of Microsoft's tools write them in upper case.
    """
    kind, _, rest = reference.partition(":")
    if kind not in forms or not forms[kind].fullmatch(rest):
        return None
    return f"{kind}:{_GUID.sub(lambda guid: guid[0].lower(), rest)}"


def is_group(reference: str) -> bool:
    """Whether a reference names a group (`slack-group:T1:S1`, `entra-group:…`) rather than a person."""
    kind, colon, _ = reference.partition(":")
    return bool(colon) and kind.endswith("-group")


def home_of(person: str) -> str:
    """Where a person has one account at most: the workspace of `slack:T1:U2`, the tenant of a Teams person, `web`."""
    return person.rpartition(":")[0]
