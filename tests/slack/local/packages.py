"""The npm packages of `tests/npm`, where they are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

NODE = shutil.which("node")
_FOLDER = Path(__file__).parents[2] / "npm" / "node_modules"
_INSTALL = "npm install --no-package-lock --prefix tests/npm"

PACKAGES = _FOLDER if NODE and (_FOLDER / "@slack" / "web-api").exists() else None
WITHOUT_PACKAGES = f"needs node, and: {_INSTALL}"

_BINARY = _FOLDER / "local-slack-linux-x64" / "bin" / "local-slack"
LOCAL_SLACK = _BINARY if _BINARY.exists() else None
WITHOUT_LOCAL_SLACK = f"local-slack is not installed (Linux on x64 only): {_INSTALL}"
