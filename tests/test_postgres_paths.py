"""`make test-postgres` runs what keeps records, and nothing else: the rest would run a second time for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLUSTER = "tests.support.postgres_cluster"
ELSEWHERE = {
    "tests/deploy/test_image.py": "runs what is in the image, in make test-long alone",
    "tests/doctor/test_doctor.py": "about faults, most of which are in no database; one asks a PostgreSQL that is down",
    "tests/replicas": "has a cluster of its own, which it kills, and runs in make test",
    "tests/slack/local": "about what Slack is sent, with what stands in for Slack",
    "tests/teams/local": "about what Teams is sent, and without PUBLIC_URL, which PostgreSQL needs",
    "tests/web/browser": "keeps no records: stand-ins for the services behind the page",
}
"""Paths whose tests import what could use PostgreSQL, and are left out."""
IMPORT = re.compile(r"^ *from (\w[\w.]*) import (?:\(([^)]*)\)|([^#(\n]*))", re.MULTILINE)
"""Reading all tests as syntax trees takes ten seconds."""


def paths_in_the_makefile() -> list[str]:
    """What `make test-postgres` runs."""
    listed = re.search(r"^ON_POSTGRES := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed is not None
    return listed[1].replace("\\\n", " ").split()


def is_in(file: str, paths: Iterable[str]) -> bool:
    return any(f"{file}/".startswith(f"{path}/") for path in paths)


def test_every_test_that_may_keep_records_is_run_on_postgresql() -> None:
    run = paths_in_the_makefile()
    assert [path for path in run if not (ROOT / path).exists()] == []
    missing = [file for file in files_with_records() if not is_in(file, [*run, *ELSEWHERE])]
    assert missing == [], "add them to ON_POSTGRES in the Makefile, or their folder to ELSEWHERE with its reason"


def test_nothing_else_is_run_a_second_time() -> None:
    found = files_with_records()
    useless = [path for path in paths_in_the_makefile() if not any(is_in(file, [path]) for file in found)]
    assert useless == []


@cache
def files_with_records() -> list[str]:
    """The files of tests that import, themselves or by way of others or of a conftest.py, what knows of the cluster."""
    imports = {module_of(file): set(imported_by(file)) for file in (ROOT / "tests").rglob("*.py") if is_ours(file)}
    for name in [name for name in imports if is_test(name)]:
        folders = name.split(".")[1:-1]
        above = [".".join(["tests", *folders[:length], "conftest"]) for length in range(1, len(folders) + 1)]
        imports[name] |= set(above)
    reaching: set[str] = {CLUSTER}
    while more := {name for name, used in imports.items() if name not in reaching and used & reaching}:
        reaching |= more
    return [f"{name.replace('.', '/')}.py" for name in sorted(reaching) if is_test(name)]


def is_test(module: str) -> bool:
    return module.rpartition(".")[2].startswith("test_")


def is_ours(file: Path) -> bool:
    return "node_modules" not in file.parts


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_by(file: Path) -> Iterator[str]:
    """The modules of tests that a file imports; constants are nothing that keeps records."""
    for module, several, one in IMPORT.findall(file.read_text()):
        for name in re.findall(r"(\w+)(?: as \w+)?", several or one):
            if not name.isupper():
                yield module
                yield f"{module}.{name}"
