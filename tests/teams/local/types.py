"""Microsoft's current schema of the cards that Teams shows, as npm has it: the types of `@microsoft/teams.cards`.

No package has the schema as JSON. The types were made from it and are exact: a property that they do not know is an
error, and so is a value in the wrong case.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.teams.local.packages import NODE, PACKAGES

_OPTIONS = ("--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext")


def type_errors(cards: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, list[str]]:
    """What TypeScript has against cards, by their name; one run for all of them. `folder`: to work in."""
    assert PACKAGES is not None
    assert NODE is not None
    (folder / "node_modules").symlink_to(PACKAGES)
    source = folder / "cards.ts"
    lines = ['import type { IAdaptiveCard } from "@microsoft/teams.cards";']
    lines += [f"export const c{at}: IAdaptiveCard = {json.dumps(card)};" for at, card in enumerate(cards.values())]
    source.write_text("\n".join(lines))
    compiler = str(PACKAGES / "typescript" / "bin" / "tsc")
    command = [NODE, compiler, *_OPTIONS, source.name]
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False).stdout
    names = list(cards)
    found: dict[str, list[str]] = {}
    for line, error in re.findall(r"^cards\.ts\((\d+),\d+\): (.*)$", output, re.MULTILINE):
        found.setdefault(names[int(line) - 2], []).append(error)
    assert found or not output.strip(), output
    return found
