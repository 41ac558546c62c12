"""Reads one file, in a process that can do nothing else. Run as a program; imports nothing of the product but the
modules beside it.

It gets a line of JSON (`name`, `media_type`, `limits`) and the file on standard input, and writes a line of JSON and
the text, in UTF-8, on standard output: `{"missing": 0}` with the text, or `{"reason": "…"}` with a word of `REASONS`;
with either, `held` names what the kernel holds it by (`adapters.files.confinement`).

What is in the file may be made to break what reads it. So it is looked at only when nothing else is possible any more.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Read the one file."""
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from adapters.files import confinement, conversion  # noqa: PLC0415  # found only now: no folder of ours is there

    sys.path.pop(0)
    given = json.loads(source.readline(65_536))
    limits = given["limits"]
    held = confinement.by_the_kernel(limits)
    content = source.read()
    read = conversion.reader_for(given["name"], given["media_type"], content)
    confinement.by_python()
    text, missing, reason = "", 0, ""
    try:
        text = read()
    except conversion.NotRead as unreadable:
        reason = unreadable.reason
    except (MemoryError, RecursionError):
        reason = "too_much"
    except Exception as error:  # noqa: BLE001  # the libraries raise whatever they like at what they cannot read
        reason = conversion.reason_of(error)
    longest = limits["characters"]
    if len(text) > longest:
        text, missing = text[:longest], len(text) - longest
    head = {"held": held} | ({"reason": reason} if reason else {"missing": missing})
    out.write(json.dumps(head).encode() + b"\n" + text.encode("utf-8", "replace"))
    out.flush()
    os._exit(0)  # what libraries do at the end is nobody's business


if __name__ == "__main__":
    main()
