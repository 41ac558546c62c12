"""Sealing what must not lie open in the database."""

from __future__ import annotations

from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

KEY_FILE = "encryption.key"


class Sealer:
    """Encrypts short texts at rest (Fernet)."""

    def __init__(self, key: bytes) -> None:
        self._fernet = Fernet(key)

    def seal(self, text: str) -> str:
        """The sealed text."""
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str | None:
        """The text; `None` when it was sealed with another key or was changed."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None


def kept_key(folder: Path) -> bytes:
    """The key kept in the data folder, made at the first start; readable by its owner only."""
    path = folder / KEY_FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: a process that is killed here must not leave an empty key behind.
        unfinished = path.with_suffix(".new")
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(Fernet.generate_key())
        unfinished.replace(path)
    return path.read_bytes().strip()
