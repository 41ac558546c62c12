"""The npm packages of `tests/npm`, where they are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

NODE = shutil.which("node")
_FOLDER = Path(__file__).parents[2] / "npm" / "node_modules"
_INSTALL = "npm install --no-package-lock --prefix tests/npm"

PACKAGES = _FOLDER if NODE and (_FOLDER / "adaptivecards").exists() else None
WITHOUT_PACKAGES = f"needs node, and: {_INSTALL}"

_SCHEMAS = _FOLDER / "@microsoft" / "app-manifest" / "build" / "json-schemas" / "teams"
MANIFEST_SCHEMAS = _SCHEMAS if _SCHEMAS.exists() else None

_PLAYGROUND = _FOLDER / "@microsoft" / "m365agentsplayground" / "cli.js"
PLAYGROUND = _PLAYGROUND if NODE and _PLAYGROUND.exists() else None
WITHOUT_PLAYGROUND = f"needs node and Microsoft's Agents Playground: {_INSTALL}"
