"""`migrate up` and `migrate copy`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from bot.commands.arguments import CommandError
from bot.crypto import KEY_FILE
from bot.data_folder import FolderInUseError
from bot.records.addresses import shown_address
from bot.records.copying import Copied, CopyError, Tables, copy_records
from bot.records.startup import NEWEST_REVISION, NewerSchemaError, UpgradeError, upgraded_records


def upgrade_records(address: str, out: TextIO) -> int:
    """Upgrade the records at an address as a start would, and say what they then are. Raises `CommandError`."""
    try:
        revision = upgraded_records(address)
    except (FolderInUseError, NewerSchemaError, UpgradeError) as error:
        raise CommandError(str(error)) from error
    newer = "" if revision == NEWEST_REVISION else f", newer than this version's {NEWEST_REVISION}, which can use it"
    out.write(f"{shown_address(address)}: ready (schema {revision}{newer}).\n")
    return 0


def copy(
    file: Path, address: str, *, further: Callable[[], Tables], key_is_set: Callable[[], bool], out: TextIO
) -> int:
    """Copy an installation from a SQLite file to PostgreSQL, and say what was copied. Raises `CommandError`.

    `further`: the tables that others keep beside the records. `key_is_set`: whether ENCRYPTION_KEY is.
    """
    try:
        copied = copy_records(file, address, further)
    except (CopyError, FolderInUseError, NewerSchemaError) as error:
        raise CommandError(str(error)) from error
    for line in _report(file, address, copied, key_is_set=key_is_set()):
        out.write(f"{line}\n")
    return 0


def _report(file: Path, address: str, copied: Copied, *, key_is_set: bool) -> list[str]:
    lines = [f"Copied {file} to {shown_address(address)}:"]
    lines += [f"  {count:>9,}  {table}" for table, count in copied.rows.items() if count]
    lines += ["", "Every table has as many rows as before."]
    if copied.faults:
        lines.append(
            f"The audit log is as it was, with {copied.faults} {'fault' if copied.faults == 1 else 'faults'}: "
            "see `audit verify`."
        )
    elif copied.newest:
        lines.append(f"The audit log is as it was written. To see that later: audit verify --anchor {copied.newest}")
    if copied.left:
        lines.append(f"Not copied, since they are none of Countersign's: {', '.join(copied.left)}")
    lines += ["", _about_the_key(file.parent / KEY_FILE, key_is_set=key_is_set)]
    lines.append(f"{file} was not changed. Do not start Countersign on it again: both would do what is still to do.")
    return lines


def _about_the_key(key_file: Path, *, key_is_set: bool) -> str:
    if key_is_set:
        return "What is sealed needs the same ENCRYPTION_KEY: set it as it is set now."
    if key_file.is_file():
        return (
            f"What is sealed needs the key in {key_file}: set ENCRYPTION_KEY to what that file holds before the first "
            "start on PostgreSQL, where no key file is looked for."
        )
    return "No key was found here: set the ENCRYPTION_KEY with which this installation ran, if people have signed in."
