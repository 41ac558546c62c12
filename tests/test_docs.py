"""What the documentation names exists: files, folders, modules, links, and the names of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from bot.platform import Platform
from bot.services import Services

ROOT = Path(__file__).parents[1]
DOCS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
ABOUT_CODE = [ROOT / "docs/architecture.md", ROOT / "docs/adding-a-platform.md", ROOT / "docs/graph.md"]
ABOUT_CODE += [ROOT / "CONTRIBUTING.md"]
PRODUCT = ("adapters", "bot", "demo_model", "graph", "policies", "servers", "translations")
FOLDERS = "|".join([*PRODUCT, "bench", "docs", "evals", "tests"])
MADE = {"policies/secret_rules.json"}
"""Made when the project is set up."""
EXAMPLES = {"test_the_second_click_says_who_was_first"}


def prose(document: Path) -> str:
    """A document without the code of the platform that docs/adding-a-platform.md builds."""
    return re.sub(r"^```python\n# \S+\n.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)


def quoted(document: Path) -> set[str]:
    """What stands in backticks within a line."""
    without_blocks = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", without_blocks))


@cache
def sources() -> dict[Path, str]:
    files = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")] + [ROOT / "app.py"]
    return {path: path.read_text() for path in files}


@cache
def words() -> frozenset[str]:
    """Every word of the product's code."""
    return frozenset(word for text in sources().values() for word in re.findall(r"\w+", text))


def defines(text: str, name: str) -> bool:
    return (
        re.search(rf"^ *(?:(?:async )?def|class) {name}\b|^ *(?:self\.)?{name}\b *[:=]", text, re.MULTILINE) is not None
    )


def exists(path: str) -> bool:
    """Whether a path stands for something: a file, a folder, a pattern, `bot/ledger` or `bot/inbox.Inbox`."""
    if "*" in path:
        return any(ROOT.glob(path))
    module, _, name = path.rpartition(".")
    if (ROOT / path).exists() or (ROOT / f"{path}.py").exists():
        return True
    file = ROOT / f"{module}.py"
    return file.exists() and defines(file.read_text(), name)


def is_defined(name: str) -> bool:
    """Whether a class of the product has a member."""
    owner, _, member = name.partition(".")
    bodies = (
        body
        for text in sources().values()
        for body in re.findall(rf"^class {owner}\b.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    )
    return any(defines(body, member) for body in bodies)


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_path_and_module_that_a_document_names_exists(document: Path) -> None:
    paths = re.findall(rf"(?<![\w./{{}}-])((?:{FOLDERS})/[\w./*-]*)", prose(document))
    missing = {path for path in (path.rstrip("./,") for path in paths) if not exists(path)} - MADE
    for text in quoted(document):
        modules = re.findall(rf"(?<![\w./@-])((?:{FOLDERS})(?:\.\w+)+)", text)
        missing |= {module for module in modules if not exists(module.replace(".", "/"))}
        if re.fullmatch(r"\w+\.py", text) and not any(path.name == text for path in known_files()):
            missing.add(text)
    assert missing == set()


@cache
def known_files() -> frozenset[Path]:
    return frozenset([*sources(), *(ROOT / "tests").glob("**/*.py")])


@pytest.mark.parametrize("document", DOCS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", prose(document)):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


PICTURES = ROOT / "docs/images"


def test_every_picture_is_shown_somewhere() -> None:
    shown = {
        (document.parent / link).resolve()
        for document in DOCS
        for link in re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", prose(document))
    }
    assert set(PICTURES.iterdir()) - shown == set()


@pytest.mark.parametrize("document", DOCS, ids=lambda document: str(document.relative_to(ROOT)))
def test_every_target_of_make_that_a_document_names_is_in_the_makefile(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = document.read_text()
    commands = "\n".join([*re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL), *quoted(document)])
    named = re.findall(r"^\s*(?:[A-Z_]+=\S+ )*make ([a-z-]+)", commands, re.MULTILINE)
    assert set(named) <= targets


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name}" not in index] == ["README.md"]


STIFF = re.compile(r"\b(?:any more|anew|somebody|whoever|lest|thereby|shall)\b", re.IGNORECASE)
FOR_PEOPLE = [document for document in DOCS if "decisions" not in document.parts]
FOR_PEOPLE += [
    ROOT / name
    for name in (
        ".env.example",
        "connections.example.yaml",
        "agents.example.yaml",
        "manifest.yml",
        "deploy/env.example",
    )
]
FOR_PEOPLE += [ROOT / "policies/default.yaml"]


@pytest.mark.parametrize("document", FOR_PEOPLE, ids=lambda document: str(document.relative_to(ROOT)))
def test_what_people_read_outside_of_the_product_is_plain_english(document: Path) -> None:
    without_links = re.sub(r"\]\([^)]*\)", "]", document.read_text())
    assert STIFF.findall(without_links) == []


@pytest.mark.parametrize("document", ABOUT_CODE, ids=lambda document: document.name)
def test_every_name_of_the_code_that_a_document_uses_is_there(document: Path) -> None:
    names = {text.partition("(")[0].partition("=")[0] for text in quoted(document)} - EXAMPLES
    members = {name for name in names if re.fullmatch(r"[A-Z]\w*[a-z]\w*\.\w+", name)}
    simple = {name for name in names if re.fullmatch(r"[A-Z]\w*[a-z]\w*|[a-z]+(?:_[a-z0-9]+)+", name)}
    assert {name for name in members if not is_defined(name)} == set()
    assert simple - words() - {"lines_configured"} == set()


def table_under(heading: str) -> list[list[str]]:
    """The rows of the first table under a heading of docs/adding-a-platform.md, cell by cell."""
    section = (ROOT / "docs/adding-a-platform.md").read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_page_on_platforms_has_every_method_of_the_port() -> None:
    named = {name for row in table_under("The sender: `Platform`") for name in re.findall(r"`(\w+)", row[0])}
    port = {name for name in vars(Platform) if not name.startswith("_")} | set(Platform.__annotations__)
    assert named == port


def test_the_page_on_platforms_names_methods_that_the_services_have() -> None:
    kinds = {field.name: str(field.type) for field in fields(Services)}
    rows = table_under("The receiver: `Services`")
    named = {(row[0].strip("`"), name) for row in rows for name in re.findall(r"`(\w+)", row[1])}
    assert {service for service, _ in named} == set(kinds)
    assert {(service, name) for service, name in named if not is_defined(f"{kinds[service]}.{name}")} == set()
