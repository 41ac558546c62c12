"""Tokens as they lie in the database: sealed, together with whose they are, so that no row can pass for another's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bot.accounts.ports import Account, Tokens
from bot.secrets import Sealer


@dataclass(frozen=True, slots=True)
class Grant:
    """What came of a sign-in: tokens, and whose account they are for."""

    tokens: Tokens
    account: Account


class Safe:
    """Seals and opens what belongs to one person's connection."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def put(self, person_id: str, connection: str, what: Mapping[str, Any]) -> str:
        """The sealed text of something that can be written as JSON."""
        return self._sealer.seal(json.dumps({"of": [person_id, connection], "what": dict(what)}))

    def take(self, person_id: str, connection: str, sealed: str | None) -> Mapping[str, Any] | None:
        """What was put; `None` when it is gone, was sealed with a key that we do not have, or is somebody else's."""
        text = self._sealer.unseal(sealed) if sealed else None
        if text is None:
            return None
        kept = json.loads(text)
        return kept["what"] if kept["of"] == [person_id, connection] else None

    def put_tokens(self, person_id: str, connection: str, tokens: Tokens) -> str:
        """Sealed tokens."""
        return self.put(person_id, connection, _plain(tokens))

    def take_tokens(self, person_id: str, connection: str, sealed: str | None) -> Tokens | None:
        """Tokens that were sealed; `None` as above."""
        kept = self.take(person_id, connection, sealed)
        return _tokens(kept) if kept is not None else None

    def put_grant(self, person_id: str, connection: str, grant: Grant) -> str:
        """A sealed grant."""
        return self.put(person_id, connection, {"tokens": _plain(grant.tokens), "account": asdict(grant.account)})

    def take_grant(self, person_id: str, connection: str, sealed: str | None) -> Grant | None:
        """A grant that was sealed; `None` as above."""
        kept = self.take(person_id, connection, sealed)
        return Grant(_tokens(kept["tokens"]), Account(**kept["account"])) if kept is not None else None


def _plain(tokens: Tokens) -> dict[str, Any]:
    return {**asdict(tokens), "scopes": list(tokens.scopes), "kept": dict(tokens.kept)}


def _tokens(kept: Mapping[str, Any]) -> Tokens:
    return Tokens(**{**kept, "scopes": tuple(kept["scopes"])})
