"""Random ids and tokens, and the sealing of what must not lie open in the database."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import uuid
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bot.data_folder import private_folder

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

KEY_FILE = "encryption.key"
"""File in the data folder."""

NewId = Callable[[], str]
"""Makes the opaque ids that cards carry: nothing can be guessed or read from them."""


_KEY_BYTES = 32
"""Of a Fernet key (https://github.com/fernet/spec)."""


def is_fernet_key(text: str | bytes) -> bool:
    """Whether this is a Fernet key: 32 bytes, URL-safe base64."""
    try:
        return len(base64.b64decode(text, altchars=b"-_", validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


class Sealer:
    """Encrypts short texts at rest (Fernet).

    Args:
        key: one key, or several separated by commas: the first seals, all of them open, so that a new key can be put in
            front while there is still something that an older one has sealed.

    Raises `ValueError` for what is no key.
    """

    def __init__(self, key: bytes) -> None:
        self._keys = [each.strip() for each in key.split(b",")]
        if not all(map(is_fernet_key, self._keys)):
            raise ValueError("not a Fernet key")

    @cached_property
    def _first(self) -> Fernet:
        from cryptography.fernet import Fernet  # noqa: PLC0415  # 7 MB, of no use until somebody signs in

        return Fernet(self._keys[0])

    @cached_property
    def _any(self) -> MultiFernet:
        from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415  # as above

        return MultiFernet([Fernet(key) for key in self._keys])

    def seal(self, text: str) -> str:
        """Returns the sealed text."""
        return self._first.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str | None:
        """Returns the text; `None` when it was sealed with another key or was changed."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415  # as above

        try:
            return self._any.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def renewed(self, sealed: str) -> str | None:
        """Returns the text sealed with the first key; `None` when it is so already, or cannot be opened at all."""
        from cryptography.fernet import InvalidToken  # noqa: PLC0415  # as above

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
        unfinished.write_bytes(base64.urlsafe_b64encode(secrets.token_bytes(_KEY_BYTES)))
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
