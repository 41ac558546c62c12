"""Sessions of programs: what a program says of itself when it initializes, sealed into the id that it sends from then
on. So every process knows every session, and none has to keep any.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from adapters.gateway.requests import GatewaySession
from adapters.shared.untrusted_json import part
from bot.crypto import Sealer, random_token
from bot.domain import Clock
from bot.identity.principal import Principal
from bot.safe_text import visible_line
from policies.model import LONGEST_CLIENT

SESSION_SECONDS = 7 * 86_400.0
"""Seconds that a session counts."""
LONGEST_ID = 4 * 1024
"""Characters of what a client sends as its session; nothing of a longer one is looked at."""
NO_NAME = "a program without a name"
_LABEL = b"countersign: sessions of /mcp"


class GatewaySessions:
    """Begins sessions, and knows them again.

    Args:
        key: what seals the records: Fernet keys, separated by commas. What is made of the first seals sessions, what is
            made of any of them opens those, and nothing else that was sealed can be taken for a session.
    """

    def __init__(self, key: bytes, clock: Clock) -> None:
        made = [hmac.digest(each.strip(), _LABEL, hashlib.sha256) for each in key.split(b",")]
        self._sealer = Sealer(b",".join(map(base64.urlsafe_b64encode, made)))
        self._clock = clock

    def begun(self, principal: Principal, params: object) -> tuple[str, GatewaySession] | None:
        """What a client gets that initializes: the id to send, and the session. `None`: the parameters do not say which
        program it is, which the SDK's server refuses."""
        info, able = part(params, "clientInfo"), part(params, "capabilities")
        if not isinstance(info.get("name"), str):
            return None
        session = GatewaySession(
            session_id=random_token(),
            person_id=principal.person.person_id,
            begun_at=self._clock(),
            client_name=visible_line(info["name"], LONGEST_CLIENT).strip() or NO_NAME,
            url_elicitation=isinstance(part(able, "elicitation").get("url"), dict),
        )
        return self._sealer.seal(json.dumps(asdict(session))), session

    def known(self, principal: Principal, sealed: str) -> GatewaySession | None:
        """The session of an id; `None`: it is none of ours, or over, or somebody else's."""
        if len(sealed) > LONGEST_ID or not sealed.isascii():
            return None
        text = self._sealer.unseal(sealed)
        if text is None:
            return None
        session = _session_in(json.loads(text))
        if session is None or session.person_id != principal.person.person_id:
            return None
        return session if self._clock() < session.begun_at + SESSION_SECONDS else None


def _session_in(kept: Mapping[str, Any]) -> GatewaySession | None:
    """`None`: another version of the program has sealed it."""
    try:
        return GatewaySession(**kept)
    except TypeError:
        return None
