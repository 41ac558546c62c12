"""Always allow: an approver's standing permission to themselves, for one very call, for a while."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from policies.deciding import Decider, Permitted, may_decide
from policies.model import Allow, Ask, Call, Risk, Verdict, canonical_json
from policies.trust import risks_of

DURATIONS: Mapping[str, float] = {"1 h": 3600.0, "8 h": 8 * 3600.0, "7 days": 7 * 86400.0}
"""How long a grant can be given for, as shown → seconds."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Somebody's permission to themselves."""

    person: str
    """Person id of who gave it: it covers calls that they request."""
    server: str
    tool: str
    """Its server's own name for it."""
    digest: str
    """`digest_of` the call: the server's configuration, the tool, its schema and the arguments."""
    until: float
    """Seconds since the epoch."""


def digest_of(call: Call) -> str:
    """SHA-256, hexadecimal, over what an approval or a grant is about: server and its configuration, tool, schema and
    canonical arguments. Raises `TypeError`, `ValueError` or `RecursionError` on arguments that are no JSON."""
    tool = call.tool
    parts = [tool.server, tool.fingerprint, tool.name, tool.schema_hash, dict(call.arguments)]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def grant_offered(ask: Ask, risks: Collection[Risk]) -> bool:
    """Whether an approver may tick “always allow” on this card; `risks` are the card's (`trust.risks_of`).

    Never where one person must not decide alone; for what destroys only where the policy says so (`alwaysAllow`).
    """
    if ask.self_approval == "fourEyes" or ask.quorum > 1:
        return False
    return Risk.DESTROYS not in risks if ask.always_allow is None else ask.always_allow


def covered(grants: Iterable[Grant], call: Call, requester: str, now: float) -> Grant | None:
    """The grant, the longest there is, that this person gave themselves for exactly this call. Raises nothing."""
    about = [
        grant
        for grant in grants
        if (grant.person, grant.server, grant.tool) == (requester, call.tool.server, call.tool.name)
        and now < grant.until
    ]
    if not about:
        return None
    try:
        digest = digest_of(call)
    except (TypeError, ValueError, RecursionError):
        return None  # what has no digest was granted by nobody
    return max((grant for grant in about if grant.digest == digest), key=lambda grant: grant.until, default=None)


def under_grants(verdict: Verdict, call: Call, grants: Iterable[Grant], requester: Decider, now: float) -> Verdict:
    """An ask that the requester has answered for themselves becomes an allow; everything else stays as it is.

    `verdict` is what `judge` said of the call. The grant counts as long as the requester could still give it: the
    policy may have changed, and so may the groups they are in. `requester` has themselves as its only requester, and
    what was looked up about them. Raises nothing.
    """
    if not isinstance(verdict, Ask) or not grant_offered(verdict, risks_of(call, verdict)):
        return verdict
    if not isinstance(may_decide(verdict, requester), Permitted):
        return verdict
    grant = covered(grants, call, requester.person, now)
    if grant is None:
        return verdict
    until = datetime.fromtimestamp(grant.until, UTC)
    return Allow(
        rule=f"always allow by {grant.person} until {until:%Y-%m-%d %H:%M} UTC",
        source=verdict.source,
        version=verdict.version,
        reads=verdict.reads,
    )
