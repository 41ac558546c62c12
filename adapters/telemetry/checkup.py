"""Whether what measures and traces can be switched on as the settings want it."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from adapters.telemetry.opening import Deployment, Telemetry, TelemetryError, telemetry
from bot.findings import Finding, fine, wrong
from bot.prices import NO_PRICES
from bot.settings import Settings
from policies.masking import Masker

_TELEMETRY = "telemetry"
_NOTHING = Deployment("", b"", Masker(), frozenset(), NO_PRICES)
"""Nothing is observed."""


async def telemetry_findings(
    settings: Settings, variables: Mapping[str, str], environment: MutableMapping[str, str]
) -> list[Finding]:
    """Switched on as at the start, and off again; nothing is sent.

    Args:
        variables: as `telemetry` has them.
        environment: likewise.
    """
    try:
        async with telemetry(settings, _NOTHING, variables, environment) as found:
            is_on = found != Telemetry()
    except TelemetryError as error:
        return [wrong(_TELEMETRY, str(error), "See docs/observability.md.")]
    return [fine(_TELEMETRY, "can be switched on")] if is_on else []
