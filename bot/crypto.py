"""Random ids and tokens, and the sealing of what must not lie open in the database."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Callable
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from bot.data_folder import private_folder

KEY_FILE = "encryption.key"
"""File in the data folder."""

NewId = Callable[[], str]
"""Makes the opaque ids that cards carry: nothing can be guessed or read from them."""


class Sealer:
    """Encrypts short texts at rest (Fernet).

    Args:
        key: one key, or several separated by commas: the first seals, all of them open, so that a new key can be put in
            front while there is still something that an older one has sealed.
    """

    def __init__(self, key: bytes) -> None:
        keys = [Fernet(each.strip()) for each in key.split(b",")]
        self._first = keys[0]
        self._any = MultiFernet(keys)

    def seal(self, text: str) -> str:
        """Returns the sealed text."""
        return self._first.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str | None:
        """Returns the text; `None` when it was sealed with another key or was changed."""
        try:
            return self._any.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def renewed(self, sealed: str) -> str | None:
        """Returns the text sealed with the first key; `None` when it is so already, or cannot be opened at all."""
        try:
            self._first.decrypt(sealed.encode())
        except InvalidToken:
            text = self.unseal(sealed)
            return self.seal(text) if text is not None else None
        return None


def random_id() -> str:
    """Returns 122 random bits, hexadecimal."""
    return uuid.uuid4().hex


def random_token() -> str:
    """Returns 256 random bits for a link, a state or a cookie: 43 characters of URL-safe base64."""
    return secrets.token_urlsafe(32)


def hashed(token: str) -> str:
    """Returns by what a random token is found in the database, where it may not lie itself (SHA-256, hexadecimal)."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class KeyFileError(Exception):
    """The kept key cannot be used; the text says where it is and what to do."""


def kept_key(folder: Path) -> bytes:
    """Returns the key kept in the data folder, made at the first start; readable by its owner only. Raises
    `KeyFileError`."""
    path = folder / KEY_FILE
    if not path.exists():
        private_folder(folder)
        # Whole or not at all: a process that is killed here must not leave an empty key behind.
        unfinished = path.with_suffix(".new")
        unfinished.touch(mode=0o600)
        unfinished.write_bytes(Fernet.generate_key())
        unfinished.replace(path)
    try:
        key = path.read_bytes().strip()
        Sealer(key)
    except (OSError, ValueError) as fault:
        raise KeyFileError(
            f"{path}: this is not an encryption key that can be read. Put the right one back, or set ENCRYPTION_KEY. "
            "Without it, move the file away: a new one is made, and people have to sign in to their accounts again."
        ) from fault
    return key
