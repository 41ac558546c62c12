"""What `app.py doctor` finds: one line for each thing that was looked at. Those who look change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum

TRUST_IT = "Have this machine trust who signed it (SSL_CERT_FILE in the environment): docs/operations.md#doctor"
"""What mends a certificate that is not trusted here: an authority of one's own, or of a proxy that looks into TLS."""
LONGEST_CHECK_SECONDS = 14.0
"""Seconds that one check may take. They run side by side, and an operator waits for all of them: with the start of the
process it stays under 20 s."""
ENDING_SECONDS = 1.5
"""Seconds for those that took longer to let go of what they hold."""
MOST_CLOCK_SECONDS = 60.0
"""Seconds that the clock may be wrong. What Slack has signed is taken for five minutes
(https://docs.slack.dev/authentication/verifying-requests-from-slack); at a minute something is wrong already."""


class Health(StrEnum):
    """How something is."""

    FINE = "fine"
    DOUBTFUL = "warning"
    """It works, and an operator should look at it."""
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. No part of it holds a secret."""

    status: Health
    what: str
    """What was looked at, in a word or two, and always the same for the same check: `slack token`."""
    where: str
    """How it is, and where: a sentence that begins with the file, variable or address."""
    remedy: str = ""
    """The command, or the page, that mends it; empty while it is fine."""


def remedy_for(error: str, otherwise: str) -> str:
    """What mends that a service cannot be asked. `error`: the word for why, of a failed call."""
    return TRUST_IT if error == "certificate" else otherwise


def fine(what: str, where: str) -> Finding:
    """Returns a finding of what is as it should be."""
    return Finding(Health.FINE, what, where)


def doubtful(what: str, where: str, remedy: str) -> Finding:
    """Returns a finding of what works and should be looked at."""
    return Finding(Health.DOUBTFUL, what, where, remedy)


def wrong(what: str, where: str, remedy: str) -> Finding:
    """Returns a finding of what has to be mended."""
    return Finding(Health.WRONG, what, where, remedy)


Check = Callable[[], Awaitable[Sequence[Finding]]]
"""Looks at one thing. What it raises is a finding, too."""


async def collected(checks: Mapping[str, Check], *, seconds: float = LONGEST_CHECK_SECONDS) -> list[Finding]:
    """What all checks find, in their order, each within so many seconds.

    Args:
        checks: by what they look at.
    """
    tasks = {what: asyncio.create_task(_coroutine(check), name=f"check of {what}") for what, check in checks.items()}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=seconds)
    late = [task for task in tasks.values() if not task.done()]
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=ENDING_SECONDS)
    return [finding for what, task in tasks.items() for finding in _found(what, task, late=task in late)]


def _coroutine(check: Check) -> Coroutine[None, None, Sequence[Finding]]:
    async def run() -> Sequence[Finding]:
        return await check()

    return run()


def _found(what: str, task: asyncio.Task[Sequence[Finding]], *, late: bool) -> Sequence[Finding]:
    if late or task.cancelled():
        return [wrong(what, "did not answer in time", "Look whether what it needs can be reached from this machine.")]
    if (error := task.exception()) is not None:
        # Its text may hold anything, an address with a password too.
        return [wrong(what, f"could not be looked at ({type(error).__name__})", "See docs/operations.md#doctor.")]
    return task.result()


# ------------------------------------------------------------------------------------------------ the clock


class HeardTimes:
    """What the services that are asked anyway say the time is.

    Args:
        now: our own time, in seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._off: dict[str, float] = {}

    def hear(self, service: str, headers: Mapping[str, str]) -> None:
        """Note the `Date` of an answer that has just come."""
        try:
            self.heard(service, parsedate_to_datetime(headers.get("Date", "")).timestamp())
        except (TypeError, ValueError, OverflowError):
            return

    def heard(self, service: str, then: float) -> None:
        """Note what a service says the time is, in seconds since the epoch."""
        self._off[service] = self._now() - then

    def findings(self) -> list[Finding]:
        """Returns what that says about our clock; nothing where no service has said what time it is."""
        if not self._off:
            return []
        service, off = max(self._off.items(), key=lambda each: abs(each[1]))
        if abs(off) <= MOST_CLOCK_SECONDS:
            return [fine("clock", f"agrees with {', '.join(self._off)}")]
        side = "ahead of" if off > 0 else "behind"
        return [
            wrong(
                "clock",
                f"is {abs(off):.0f} s {side} that of {service}: signatures and tokens are refused",
                "Set this machine's clock, and keep it right: timedatectl set-ntp true",
            )
        ]
