"""The files that say what everything shown in Teams looked like when somebody last checked.

`python -m tests.teams.snapshot_files` writes the files anew: read the difference before you keep it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.teams.examples import activities, cards, dialogs

FOLDER = Path(__file__).parent / "snapshots"
_LEFT_OUT = ("huge", "in_parts", "many_pages")
"""In the names of examples whose files would be long and tell nobody anything."""


def examples() -> Mapping[str, Any]:
    """Every example as JSON, by the name of its file."""
    made: dict[str, Any] = {name: list(parts) for name, parts in activities().items()}
    made |= {f"card_{name}": card for name, card in cards().items()}
    made |= {f"dialog_{name}": dataclasses.asdict(dialog) for name, dialog in dialogs().items()}
    return {name: example for name, example in made.items() if not any(word in name for word in _LEFT_OUT)}


def written(example: Any) -> str:
    """An example as its file has it."""
    return json.dumps(example, indent=1, ensure_ascii=False) + "\n"


def write_all() -> None:
    """Write every file, and remove those of examples that are no more."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, example in examples().items():
        (FOLDER / f"{name}.json").write_text(written(example), encoding="utf-8")


if __name__ == "__main__":
    write_all()
