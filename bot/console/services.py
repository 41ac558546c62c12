"""The parts of the console."""

from __future__ import annotations

from dataclasses import dataclass

from bot.console.audit import AuditSearch, AuditVerification
from bot.console.parked import ParkedDeliveries
from bot.console.parts import InstallationParts
from bot.console.turns import TurnsOfEverybody
from bot.console.waiting import WaitingForAnybody
from bot.halting import HaltSwitch


@dataclass(frozen=True, slots=True)
class Console:
    """What operators see and do; each part looks itself whether somebody is one."""

    waiting: WaitingForAnybody
    turns: TurnsOfEverybody
    audit: AuditSearch
    verification: AuditVerification
    halts: HaltSwitch
    parts: InstallationParts
    parked: ParkedDeliveries
