"""The languages that people read: which one, and that every sentence they see is marked, and translated."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.jslexer import tokenize

import translations
from translations import extraction

ROOT = Path(__file__).parent.parent
OTHERS = [name for name in translations.NAMES if name != translations.SOURCE]
PACKAGES = ("adapters", "bot", "graph", "policies")
SCRIPTS = sorted((ROOT / extraction.PAGE).glob("*.js"))


# ------------------------------------------------------------------------------------------- which language


def test_a_language_is_chosen_of_those_that_somebody_wants() -> None:
    assert translations.choose("de-AT") == "de"
    assert translations.choose("fr-CH, fr;q=0.9, de;q=0.7, en;q=0.5") == "de"
    assert translations.choose("fr", "en_GB.UTF-8") == "en"
    assert translations.choose("de_DE:en") == "de"
    assert translations.choose("", None, "xx", "\x00" * 9) == "en"
    with translations.in_language("de"):
        assert translations.choose("fr") == "de"


async def test_a_task_writes_in_the_language_of_whoever_began_it() -> None:
    async def written() -> str:
        return translations.language()

    with translations.in_language("de"):
        begun = asyncio.create_task(written())
    assert (await begun, translations.language()) == ("de", "en")


def test_what_several_people_see_is_in_the_language_of_the_operator_whoever_clicked() -> None:
    def written() -> str:
        translations.write_in("de")
        with translations.in_language("en"), translations.in_shared_language():
            return translations.language()

    assert contextvars.copy_context().run(written) == "de"


# ------------------------------------------------------------------------------------------- sentences that are marked

PROGRAMS, MODEL, OPERATORS, RECORDS, HEADERS = (
    "programs read it",
    "the model reads it",
    "operators read it: at the start, in logs and commands",
    "it is compared or kept under that name",
    "HTTP or HTML, no words",
)
UNMARKED = {
    "adapters/accounts.py": OPERATORS,
    "adapters/api/": PROGRAMS,
    "adapters/checkups.py": OPERATORS,
    "adapters/files/confinement.py": PROGRAMS,
    "adapters/files/conversion.py": MODEL,
    "adapters/gateway/": PROGRAMS,
    "adapters/oauth/chat_identity.py": OPERATORS,
    "adapters/oauth/checkup.py": OPERATORS,
    "adapters/oauth/connections.py": OPERATORS,
    "adapters/oauth/discovery.py": OPERATORS,
    "adapters/oauth/grants.py": OPERATORS,
    "adapters/oauth/http.py": OPERATORS,
    "adapters/oauth/identity_provider.py": OPERATORS,
    "adapters/oauth/jwts.py": PROGRAMS,
    "adapters/oauth/pages.py:security_headers": HEADERS,
    "adapters/oauth/services.py": OPERATORS,
    "adapters/oauth/sign_in.py": OPERATORS,
    "adapters/oauth/signed_tokens.py": PROGRAMS,
    "adapters/shared/checkup.py": OPERATORS,
    "adapters/shared/live/entries.py": RECORDS,
    "adapters/shared/live/replicas.py": OPERATORS,
    "adapters/shared/long_answers.py": PROGRAMS,
    "adapters/shared/messages.py": MODEL,
    "adapters/shared/outages.py:_HEADERS": HEADERS,
    "adapters/shared/program_access.py": PROGRAMS,
    "adapters/shared/requests.py": PROGRAMS,
    "adapters/shared/server_sent.py": HEADERS,
    "adapters/shared/serving.py": PROGRAMS,
    "adapters/shared/token_watch.py": PROGRAMS,
    "adapters/shared/untrusted_json.py": PROGRAMS,
    "adapters/siem": OPERATORS,
    "adapters/slack/checkup.py": OPERATORS,
    "adapters/slack/inbound/commands.py:about": MODEL,
    "adapters/slack/inbound/requests.py": PROGRAMS,
    "adapters/slack/inbound/socket_mode.py": OPERATORS,
    "adapters/slack/receiver.py": OPERATORS,
    "adapters/slack/web_api/earlier_messages.py": OPERATORS,
    "adapters/slack/web_api/people.py:REINSTALL": OPERATORS,
    "adapters/slack/web_api/workspaces.py": OPERATORS,
    "adapters/teams/app_package/": OPERATORS,
    "adapters/teams/checkup.py": OPERATORS,
    "adapters/teams/connector/": OPERATORS,
    "adapters/teams/inbound/activities.py": PROGRAMS,
    "adapters/teams/inbound/invokes.py:Invokes.answer": PROGRAMS,
    "adapters/teams/inbound/verification.py": PROGRAMS,
    "adapters/teams/inbound/visitors.py": OPERATORS,
    "adapters/telemetry/": OPERATORS,
    "adapters/tool_servers/": MODEL,
    "adapters/web/access.py:SECURITY_HEADERS": HEADERS,
    "adapters/web/bodies.py:_parse": PROGRAMS,
    "adapters/web/bodies.py:read_body": PROGRAMS,
    "adapters/web/inbound.py:_page_of": PROGRAMS,
    "bot/accounts/account_services.py": OPERATORS,
    "bot/accounts/connections.py:OTHER_KEY": OPERATORS,
    "bot/all_or_nothing.py": PROGRAMS,
    "bot/audit/": OPERATORS,
    "bot/commands/": OPERATORS,
    "bot/console/": OPERATORS,
    "bot/conversations.py:Conversations.of_everybody": OPERATORS,
    "bot/conversations.py:FOR_ONE_PERSON": PROGRAMS,
    "bot/crypto.py": OPERATORS,
    "bot/data_folder.py": OPERATORS,
    "bot/file_checkup.py": OPERATORS,
    "bot/findings.py": OPERATORS,
    "bot/first_steps.py": OPERATORS,
    "bot/gateway/": PROGRAMS,
    "bot/halting.py:HaltSwitch": OPERATORS,
    "bot/identity/bearers.py": PROGRAMS,
    "bot/identity/service_tokens.py": OPERATORS,
    "bot/ledger.py": MODEL,
    "bot/logs.py": OPERATORS,
    "bot/model_checkup.py": OPERATORS,
    "bot/outbox.py:Outbox._show_once": OPERATORS,
    "bot/prices.py": OPERATORS,
    "bot/records/": OPERATORS,
    "bot/records/checkup.py": OPERATORS,
    "bot/rules/reports.py": OPERATORS,
    "bot/schemas/": MODEL,
    "bot/settings": OPERATORS,
    "bot/turns/decision.py": OPERATORS,
    "bot/turns/handler.py:TurnHandler._park_unknown": OPERATORS,
    "graph/files.py": MODEL,
    "graph/agents_file.py": OPERATORS,
    "graph/call_endings.py": MODEL,
    "graph/calls.py": MODEL,
    "graph/diagram.py": OPERATORS,
    "graph/json_values.py": MODEL,
    "graph/judging.py": MODEL,
    "graph/memory.py": MODEL,
    "graph/models/__init__.py": OPERATORS,
    "graph/models/anthropic.py:_BY_WORDS": PROGRAMS,
    "graph/models/chat_completions.py": OPERATORS,
    "graph/models/google.py:_BY_WORDS": PROGRAMS,
    "graph/models/http_client.py": OPERATORS,
    "graph/models/service.py": OPERATORS,
    "graph/models/tool_calls.py": MODEL,
    "graph/models/wire.py": MODEL,
    "graph/nodes/": MODEL,
    "graph/plans.py": MODEL,
    "graph/ports.py": MODEL,
    "graph/citations.py": MODEL,
    "graph/prompts.py": MODEL,
    "policies/approvers.py:under_grants": RECORDS,
    "policies/commands.py": RECORDS,
    "policies/conditions.py": OPERATORS,
    "policies/judging.py": MODEL,
    "policies/kingfisher_rules.py": OPERATORS,
    "policies/matching.py": OPERATORS,
    "policies/policy_file.py": OPERATORS,
    "policies/quoting.py": RECORDS,
    "policies/replaying.py": OPERATORS,
    "policies/secret": OPERATORS,
    "policies/suggestions.py": OPERATORS,
    "policies/values.py": OPERATORS,
    "policies/yaml_values.py": OPERATORS,
}
"""Where sentences stand that no person reads in the product, and why: the beginning of `{file}:{class.function or name
of a constant}`. What an operator, a program or the model reads is English."""
MARKS = {"_", "gettext", "ngettext", "N_"}
DEFECTS = {
    "AssertionError",
    "ValueError",
    "TypeError",
    "RuntimeError",
    "LookupError",
    "KeyError",
    "NotImplementedError",
}
"""Exceptions that say what is wrong with the code: logged, never shown."""
NO_WORDS = {"log", "re", "re2", "sa"}
"""Modules, and the logger, whose calls take no sentences for people."""
_TAG = re.compile(r"<[^<>]*>?|^[^<>]*>")
_CSS = re.compile(r"\{[a-z-]+:")
_SQL = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|SET|PRAGMA|CREATE|WITH|ALTER|DROP) ")
_WORD = re.compile(r"[“‘(\[]*[A-Za-z][A-Za-z’'-]*[.,:;…?!”’)\]]*")
_FEWEST_SMALL = 4
"""Words of what begins with a small letter, to be a sentence and no name of a task, a key or a class."""


def is_sentence(text: str) -> bool:
    """Whether a text reads like one that is for people; `{}` stands in it for values."""
    if _CSS.search(text) or _SQL.match(text):
        return False
    words = (_TAG.sub(" ", text) if "<" in text else text).split()
    plain = [word for word in words if _WORD.fullmatch(word)]
    if len(words) < 2 or not any(re.match("[a-z]{2}", word) for word in plain):
        return False
    first = words[0].lstrip("“‘([")
    begins = first.startswith("{}") or (first[:1].isupper() and (len(plain) > 1 or words[0] in plain))
    return begins or len(plain) >= _FEWEST_SMALL


def unmarked_in(source: str) -> Iterator[tuple[str, int, str]]:
    """Yields where it stands (class and function, or constant), line and text of every sentence that is not marked."""
    yield from _unmarked(ast.parse(source), "")


def _unmarked(node: ast.AST, where: str) -> Iterator[tuple[str, int, str]]:
    if _is_not_for_people(node):
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text_of(node)
        if is_sentence(text):
            yield where, node.lineno, text
        if isinstance(node, ast.Constant):
            return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        where = f"{where}.{node.name}" if where else node.name
    elif not where and isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        where = target.id if isinstance(target, ast.Name) else ""
    parts: Sequence[ast.AST] = (
        node.values
        if isinstance(node, ast.Dict)  # its keys are no words
        else [part for part in node.values if isinstance(part, ast.FormattedValue)]
        if isinstance(node, ast.JoinedStr)
        else [*ast.iter_child_nodes(node)]
    )
    for part in parts:
        yield from _unmarked(part, where)


def _is_not_for_people(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):  # docstrings
            return True
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.Compare() | ast.MatchValue() | ast.MatchMapping():
            return True
        case ast.Raise(exc=ast.Call(func=raised)) if _name_of(raised) in DEFECTS:
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=of))) if of in NO_WORDS:
            return True
        case ast.Call(func=called):
            return _name_of(called) in {*MARKS, "create_task", "Prepared"}
    return False


def _name_of(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""


def _text_of(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


@dataclass
class InPackages:
    """What is found in our sources: they are read once."""

    unmarked: list[tuple[str, str]] = field(default_factory=list)
    """`{file}:{where}`, and the sentence with its line."""
    marked_elsewhere: list[tuple[str, str]] = field(default_factory=list)
    """File, and the call of a mark whose argument is no sentence."""


@cache
def in_packages() -> InPackages:
    found = InPackages()
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        file, tree = path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        found.unmarked += [(f"{file}:{where}", f"{file}:{line}: {text!r}") for where, line, text in _unmarked(tree, "")]
        found.marked_elsewhere += [(file, ast.unparse(call)) for call in ast.walk(tree) if _is_marked_elsewhere(call)]
    return found


def _is_marked_elsewhere(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS):
        return False
    wanted = node.args[:2] if node.func.id == "ngettext" else node.args[:1]
    return not all(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in wanted)


def test_every_sentence_that_people_read_is_marked() -> None:
    for_people = [said for place, said in in_packages().unmarked if not place.startswith(tuple(UNMARKED))]
    assert not for_people, "put them into _(…), or say in UNMARKED who reads them:\n" + "\n".join(for_people)


def test_the_list_of_what_is_not_marked_has_nothing_superfluous() -> None:
    places = [place for place, _said in in_packages().unmarked]
    assert [each for each in UNMARKED if not any(place.startswith(each) for place in places)] == []


@pytest.mark.parametrize(
    "source",
    [
        'def f(): return Refused("You can’t do this now.")',
        'def f(name): return f"{name} asked for it"',
        'def f(name): return notice(_("Done") + f" by the person called {name}")',
        'TITLE = "Your open requests"',
        'class A:\n    def f(self): return {"text": "Nothing to do"}',
        'def f(): return "<h1>You are not signed in</h1>"',
        'def f(): return _("{a} of {b}").format(a="Nothing at all", b=1)',
        'def f(): return "somebody has taken this back already"',
    ],
)
def test_a_new_sentence_that_is_not_marked_is_found(source: str) -> None:
    assert [*unmarked_in(source)]


@pytest.mark.parametrize(
    "source",
    [
        'def f(): return _("You can’t do this now.")',
        'def f(n): return ngettext("{count} request is open", "{count} requests are open", n)',
        'WHY = N_("You can’t do this now.")',
        'def f():\n    """Say that it is done."""\n    log.info("something_happened", note="What has to be done")',
        'def f(): raise ValueError("This cannot be here")',
        'def f(x): return x == "not found out"',
        'STYLE = "body{margin:15vh auto;padding:0 1rem}"',
        'STATEMENT = "SELECT x FROM y WHERE z"',
        'def f(): return create_task(x(), name="Told what has changed")',
        'NAMES = {"a key with many words in it": 1}',
    ],
)
def test_what_no_person_reads_is_not_taken_for_one(source: str) -> None:
    assert [*unmarked_in(source)] == []


def test_what_is_marked_is_a_whole_sentence_in_the_code_where_it_can_be_found() -> None:
    assert [each for each in in_packages().marked_elsewhere if each not in MARKED_ELSEWHERE] == []


MARKED_ELSEWHERE = {
    ("adapters/oauth/pages.py", "_(AWAY)"),
    ("adapters/oauth/pages.py", "_(found.sentence)"),
    ("adapters/shared/outages.py", "_(AWAY)"),
    ("adapters/slack/web_api/installing.py", "_(AWAY)"),
    ("adapters/teams/inbound/invokes.py", "_(AWAY)"),
    ("adapters/web/events.py", "_(AWAY)"),
    ("policies/reasons.py", "_(sentence)"),
}
"""Constants whose sentences are marked with `N_` where they are defined."""

# ------------------------------------------------------------------------------------------- the page's scripts

SCRIPT_MARKS = {"t", "n", "parts"}
NAMES_OF_KEYS = {"Enter", "Escape", "Tab", "Esc", "Shift", "Notification", "Countersign", *translations.NAMES.values()}
"""Names of keys and of things, which no language translates."""
NOT_READ = {"markdown_inline.js": "Babel cannot read its regular expressions; it has no words of its own"}
_SHOWN_IN_SCRIPTS = re.compile(r"[^\w$<]*(?:\$\{[^}]*\} [a-z]{2,}|[A-Z][a-z’]+(?:[….:!?,]|\b(?![A-Z\w-])))")


def unmarked_in_script(source: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of every string that begins like a sentence, and is no argument of `t`, `n` or `parts`."""
    open_: list[str] = []
    before = None
    for token in tokenize(source):
        if token.type in {"linecomment", "multilinecomment"}:
            continue
        if token.type == "operator" and token.value in {"(", "[", "{"}:
            open_.append(before.value if token.value == "(" and before and before.type == "name" else token.value)
        elif token.type == "operator" and token.value in {")", "]", "}"} and open_:
            open_.pop()
        elif token.type in {"string", "template_string"} and not (open_ and open_[-1] in SCRIPT_MARKS):
            text = token.value[1:-1]
            if _SHOWN_IN_SCRIPTS.match(text) and text not in NAMES_OF_KEYS:
                yield token.lineno, text
        before = token


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_every_sentence_of_the_pages_scripts_is_marked(path: Path) -> None:
    if path.name not in NOT_READ:
        assert [*unmarked_in_script(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    [
        'button.textContent = "Approve all";',
        'h("p", { title: "Reject…" }, name)',
        "note(`${count} requests need approval`);",
        'h("p", {}, t("Asked by {name}", { name: "Nobody in particular" }))',
        'throw new Error("Something went wrong.");',
    ],
)
def test_a_new_sentence_of_a_script_is_found(source: str) -> None:
    assert [*unmarked_in_script(source)]


@pytest.mark.parametrize(
    "source",
    [
        'h("p", { className: "muted small" }, t("Approve all"))',
        'if (event.key === "Escape") close();',
        'n("{count} request", "{count} requests", count);',
        'svg.setAttribute("viewBox", "M4 4h12"); // What nobody reads',
        'fetch("/api/threads", { headers: { "X-CSRF-Token": token } });',
    ],
)
def test_what_a_script_says_to_no_person_is_not_taken_for_one(source: str) -> None:
    assert [*unmarked_in_script(source)] == []


def test_all_that_the_pages_html_says_is_translated_by_language_js() -> None:
    """It reads texts, and these attributes; nothing is shown by any other."""
    script = (ROOT / extraction.PAGE / "language.js").read_text(encoding="utf-8")
    for name in extraction._SHOWN_ATTRIBUTES:
        assert f'"{name}"' in script
    others = _SentencesElsewhere()
    others.feed((ROOT / extraction.PAGE / "index.html").read_text(encoding="utf-8"))
    assert others.found == []


class _SentencesElsewhere(HTMLParser):
    """Finds sentences in attributes that are not translated."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            (tag, value)
            for name, value in attrs
            if value and name not in {"class", *extraction._SHOWN_ATTRIBUTES} and is_sentence(value)
        ]


# ------------------------------------------------------------------------------------------- how it is written


@cache
def marked() -> Sequence[extraction.Found]:
    """Returns every sentence that is marked."""
    return [*extraction.sentences()]


def shown() -> Iterator[tuple[str, str]]:
    """Yields where it stands, and every sentence that is marked, each form of a plural."""
    for file, line, sentence in marked():
        for form in (sentence,) if isinstance(sentence, str) else sentence:
            yield f"{file}:{line}", form


def test_apostrophes_and_quotation_marks_are_typographic() -> None:
    assert [(where, text) for where, text in shown() if re.search(r"""['"]|\.\.\.| - """, text)] == []


def test_people_read_no_word_of_ours() -> None:
    """Words that UX.md and CONTRIBUTING.md have others for."""
    ours = re.compile(r"\(any more\)|\banew\b|\bsomebody\b|\bsupersede|\bthread\b", re.IGNORECASE)
    assert [(where, text) for where, text in shown() if ours.search(text)] == []


# ------------------------------------------------------------------------------------------- translations

_PLACE = re.compile(r"\{(\w+)\}")


def _forms(text: object) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text) if isinstance(text, list | tuple) else ()


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_a_translation_and_no_other_does(language: str) -> None:
    wanted = {sentence if isinstance(sentence, str) else sentence[0] for _, _, sentence in marked()}
    catalogue = extraction.read(language)
    there = {_forms(message.id)[0] for message in catalogue if message.id and all(_forms(message.string))}
    assert sorted(wanted - there) == [], "make translations, and translate them"
    assert sorted(there - wanted) == [], "make translations: they are used no more"


@pytest.mark.parametrize("language", OTHERS)
def test_translations_have_the_same_forms_and_values(language: str) -> None:
    catalogue = extraction.read(language)
    assert [message.id for message in catalogue if message.id and message.fuzzy] == []
    for message in catalogue:
        if not message.id or not all(_forms(message.string)):  # what is missing is told above
            continue
        english, translated = _forms(message.id), _forms(message.string)
        assert len(translated) == (1 if len(english) == 1 else catalogue.num_plurals), message.id
        wanted = set(_PLACE.findall(english[-1]))
        assert set(_PLACE.findall(english[0])) <= wanted, message.id
        for number, form in enumerate(translated):
            found = set(_PLACE.findall(form))
            assert found == wanted or (number == 0 and len(english) > 1 and found < wanted), message.id


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_read_while_the_product_runs_is_made_of_the_catalogue(language: str) -> None:
    catalogue = extraction.updated(extraction.read(language), marked())
    assert (translations.FOLDER / f"{language}.mo").read_bytes() == extraction.compiled(catalogue)
    page = ROOT / extraction.PAGE / f"sentences.{language}.json"
    assert page.read_bytes() == extraction.page_sentences(catalogue)
