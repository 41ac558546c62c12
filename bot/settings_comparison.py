"""Says in the log where processes on one PostgreSQL have different settings: what one of them seals the other one may
not be able to open, and what people see changes with whichever they reach."""

from __future__ import annotations

import hmac
import json
import os
import socket
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import SecretStr

from bot.settings import Settings, variable

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

log = structlog.get_logger(__name__)
CHANNEL = "countersign_settings"
KEY = "ENCRYPTION_KEY"
OF_EACH = frozenset(
    {
        "HOST",
        "PORT",
        "DATABASE_URL",
        "TURN_CONCURRENCY",
        "LOG_LEVEL",
        "LOG_FORMAT",
        "MCP_CONFIG",
        "CONNECTIONS_FILE",
        "POLICY_FILE",
        "AGENTS_FILE",
        "PRICES_FILE",
    }
)
"""May differ. Of files it counts what they say: of the policy, `ReplicaTable` compares it."""
DIGITS = 12
"""Hexadecimal ones of a fingerprint."""
MOST_KNOWN = 1_000
"""Processes, also dead ones, that are remembered."""


def settings_facts(settings: Settings, key: bytes, files: Mapping[str, Sequence[Any]]) -> Mapping[str, str]:
    """Returns, by variable, fingerprints that can be compared. Who does not know the key learns nothing from them.

    Args:
        key: by which what is kept is sealed; of several, the first.
        files: what stands in the files that variables name; JSON.
    """
    sealing = key.split(b",")[0].strip()
    values = {variable(name): _plain(getattr(settings, name)) for name in type(settings).model_fields}
    values["LLM_MODEL"] = settings.model_name  # which one it is where that is left out
    compared = {name: value for name, value in values.items() if name not in OF_EACH} | {KEY: key.decode(), **files}
    said = {
        name: f"countersign: settings: {name}={json.dumps(value, sort_keys=True)}" for name, value in compared.items()
    }
    return {name: hmac.digest(sealing, text.encode(), "sha256").hex()[:DIGITS] for name, text in said.items()}


def _plain(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return sorted(set(value))  # all of them mean the same in any order
    return value if isinstance(value, dict | int | float | None) else str(value)


def differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The variables whose values differ, among those that both know; nothing but the key where that is another one:
    then nothing else can be compared."""
    found = sorted(name for name in mine.keys() & theirs.keys() if mine[name] != theirs[name])
    return [KEY] if KEY in found else found


class SettingsComparison:
    """Tells the other processes how this one is configured, and says once of each where it differs. Made before the
    notifications are started.

    Args:
        mine: the `settings_facts` of this process.
    """

    def __init__(self, mine: Mapping[str, str], notifications: Notifications) -> None:
        self._mine = mine
        self._notifications = notifications
        self._known: OrderedDict[str, None] = OrderedDict()
        """Names of processes that have told theirs."""
        notifications.subscribe(CHANNEL, self._was_told, self._tell)

    def _tell(self) -> None:
        of = f"{socket.gethostname()}:{os.getpid()}"
        self._notifications.tell(CHANNEL, json.dumps([self._notifications.name, of, dict(self._mine)]))

    def _was_told(self, key: str) -> None:
        match json.loads(key):
            case [self._notifications.name, *_]:
                pass
            case [str(name), str(of), dict(theirs)]:
                if name not in self._known:
                    self._hear(name, of, theirs)
            case _:
                log.debug("settings_key_unknown")  # of a newer version

    def _hear(self, name: str, of: str, theirs: Mapping[str, str]) -> None:
        self._known[name] = None
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        self._tell()  # it may have begun a moment ago, and not have heard it
        if different := differing(self._mine, theirs):
            log.warning("settings_differ", elsewhere=of, settings=different)
