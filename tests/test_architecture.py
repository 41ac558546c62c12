"""The project keeps its own rules. That every arrow between the packages points downwards is for `make lint`; here is
proved that one which does not is found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("adapters", "bot", "demo_model", "graph", "policies", "servers", "translations")
EVALS = "evals"
"""Beside the product: its classes are none of the product's."""
_LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"


def sources(*folders: str) -> list[Path]:
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [path for path in paths if not {"node_modules", ".venv"} & {*path.parts}]
    return sorted([*found, ROOT / "app.py"])


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LINT], cwd=folder, check=False, capture_output=True, text=True, timeout=100
    )


WRONG_ARROWS = {
    ("policies/model.py", "graph.ports"): "A lower package never imports a higher one",
    ("graph/ports.py", "bot.domain"): "A lower package never imports a higher one",
    ("bot/domain.py", "adapters.web"): "A lower package never imports a higher one",
    ("adapters/shared/__init__.py", "adapters.web"): "What adapters share knows none of them",
    ("graph/interrupts.py", "demo_model.model"): "Nobody but app.py imports the demo model",
    ("demo_model/turn.py", "bot.domain"): "The demo model knows the graph and the policies only",
    ("adapters/tool_servers/__init__.py", "adapters.web"): "Adapters do not know each other",
    ("bot/domain.py", "aiohttp"): "Nothing of a chat platform or of HTTP below the adapters",
    ("graph/interrupts.py", "slack_sdk"): "Nothing of a chat platform or of HTTP below the adapters",
    ("adapters/web/__init__.py", "langgraph"): "No LangGraph in the adapters, nor in the policies",
    ("bot/domain.py", "sqlalchemy"): "SQL in bot.records only",
    ("servers/__init__.py", "policies.model"): "The bundled tool servers stand on their own",
    ("adapters/web/__init__.py", "servers"): "Nobody imports a tool server: they are reached over MCP",
    ("bot/domain.py", "evals"): "A lower package never imports a higher one",
    ("evals/scoring.py", "bot.domain"): "The evals use the product from outside",
    ("evals/playing.py", "tests"): "The evals use the product from outside",
}


def test_an_arrow_in_the_wrong_direction_is_found(tmp_path: Path) -> None:
    for package in (*PACKAGES, EVALS):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for file, imported in WRONG_ARROWS:
        with (tmp_path / file).open("a") as opened:
            opened.write(f"\nimport {imported}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    for (file, imported), contract in WRONG_ARROWS.items():
        assert f"{contract} BROKEN" in done.stdout, done.stdout
        importer = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert f"{importer} -> {imported}" in done.stdout, done.stdout


def test_nobody_imports_app() -> None:
    importing = [
        str(p) for p in sources(*PACKAGES, EVALS) if re.search(r"^\s*(from|import) app\b", p.read_text(), re.MULTILINE)
    ]
    assert importing == []


def test_nothing_is_left_to_do_later() -> None:
    later = re.compile("TO[D]O|FIX[M]E")
    assert [str(path) for path in sources(*PACKAGES, EVALS, "tests", "bench") if later.search(path.read_text())] == []


def test_no_two_classes_of_the_product_share_a_name() -> None:
    defined: dict[str, list[str]] = {}
    for path in sources(*PACKAGES):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
            defined.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


def test_every_python_gets_the_same_version_of_what_the_product_imports() -> None:
    """These tests run on one of them: a version that only another one gets was never tried."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for package in lock:
        versions[package["name"]].add(package.get("version", ""))
    (product,) = (package for package in lock if package["name"] == "countersign")
    several = {each["name"] for each in product["dependencies"] if len(versions[each["name"]]) > 1}
    assert several == set()
