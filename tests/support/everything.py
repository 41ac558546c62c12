"""`@modelcontextprotocol/server-everything`, which asks people in the middle of a call: by a form and by a link.

everything(home)                       # the product with it (and the obedient model, see `brain`)
await thread.send(ASK_BY_FORM)         # -> a question with `FIELDS`; answer it with `ANSWERS`
await thread.says(*ACCEPTED)
await thread.send(ASK_BY_LINK)         # -> a sign-in without a service, whose link is `LINK`
await thread.says(*OPENED)
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.product import ProductFolder

_PROGRAM = Path(__file__).parents[1] / "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
_NODE = shutil.which("node")

needs_everything = pytest.mark.skipif(
    not (_NODE and _PROGRAM.exists()), reason="needs node, and: npm install --no-package-lock --prefix tests/npm"
)

ASK_BY_FORM = "use everything__trigger-elicitation-request"
QUESTION = "Please provide inputs for the following fields:"
FIELDS = (
    ("name", "text"),
    ("check", "choice"),
    ("firstLine", "text"),
    ("email", "text"),
    ("homepage", "text"),
    ("birthdate", "date"),
    ("integer", "integer"),
    ("number", "number"),
    ("untitledSingleSelectEnum", "choice"),
    ("untitledMultipleSelectEnum", "json"),
    ("titledSingleSelectEnum", "choice"),
    ("titledMultipleSelectEnum", "json"),
    ("legacyTitledEnum", "choice"),
)
"""Its form, one field of each kind that MCP knows."""
ANSWERS: dict[str, Any] = {
    "name": "Ana Archer",
    "check": "yes",
    "email": "ana@example.com",
    "birthdate": "1990-05-17",
    "integer": 7,
    "number": 2.5,
    "untitledSingleSelectEnum": "Ross",
    "untitledMultipleSelectEnum": ["Piano", "Drums"],
    "titledSingleSelectEnum": "hero-2",
    "titledMultipleSelectEnum": ["fish-2"],
    "legacyTitledEnum": "pet-3",
}
"""As forms give them, by field; every other field is left empty."""
ACCEPTED = (
    "provided the requested information",
    "Name: Ana Archer",
    "Agreed to terms: true",
    "Email: ana@example.com",
    "Birthdate: 1990-05-17",
    "Favorite Integer: 7",
    "Favorite Number: 2.5",
    '"Ross"',
    '"Piano"',
    '"Drums"',
    '"hero-2"',
    '"fish-2"',
    '"pet-3"',
)
"""What it says of them in the end."""
DECLINED = ("declined to provide the requested information",)
CANCELLED = ("cancelled the elicitation dialog",)

LINK = "https://accounts.example.com/connect?ticket=top-secret-ticket"
SECRET = "top-secret-ticket"
"""Of the link: to be seen by nobody but whom it is for. (The messages below hold it, as the model's arguments do.)"""
ASK_BY_LINK = f"use everything__trigger-url-elicitation url={LINK} message=Connect"
ASK_BY_REFUSAL = f"{ASK_BY_LINK} errorPath=true"
"""At first its answer is the error -32042 with another link, and when the call comes again it asks for `LINK`."""
FIRST_LINK = "https://modelcontextprotocol.io"
OPENED = ("completed the URL elicitation flow",)
NOT_OPENED = ("declined to open the URL",)


def everything(home: ProductFolder, **more: Any) -> None:
    """Give the product this server and nothing else; its calls run without anybody's approval."""
    home.tool_servers({"everything": {"command": _NODE, "args": [str(_PROGRAM)], "trustAnnotations": True, **more}})
    home.policy("version: 1\nrules:\n  - name: all is free\n    match: {server: everything}\n    decide: allow\n")
