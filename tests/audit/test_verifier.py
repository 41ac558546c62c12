"""The verifier that auditors run without Countersign: one file, on what `audit export` wrote and on what was pushed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bot.audit.entries import BEGINNING, Link, hash_of
from bot.audit.ocsf import LogSource, event_of
from tests.audit.calls import NOON, READING, TOKEN, chain, ended, judged, tool
from tests.support.commands import run_command
from tests.support.empty_database import empty_database

VERIFIER = Path(__file__).parents[2] / "deploy/verify_audit.py"
LINKS = chain(
    ended(1),
    ended(2, arguments={"what": "Lämpchen 💡", "size": 0.1, "none": None, "token": TOKEN}),
    ended(3, status="failed"),
    ended(4, status="denied", attempt=None, output=None, duration=None),
    ended(5, status="unknown", output=None),
    ended(6, status="read", call_id="", tool="", server="", settled={"choice": "looked", "by": "Olga"}, attempt=None),
)
WRITTEN = {1: NOON + 1, 2: NOON + 2, 3: NOON + 3, 4: NOON + 5, 5: NOON + 4, 6: NOON + 6}
"""When, by number: two processes have written 4 and 5 at one moment."""
Lines = list[str]


def verified(lines: Sequence[str], *options: str) -> tuple[int, str]:
    """The exit code, and what was written; in a Python that sees nothing of ours, nor of the environment."""
    done = subprocess.run(
        [sys.executable, "-I", str(VERIFIER), "-", *options],
        input="".join(f"{line}\n" for line in lines),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lines]:
    """Lines of a real export."""
    records = tmp_path_factory.mktemp("records") / "records.db"
    empty_database(records)
    with closing(sqlite3.connect(records)) as connection, connection:
        connection.executemany(
            "INSERT INTO audit (seq, key, at, entry, previous, hash) VALUES (?, ?, ?, ?, ?, ?)",
            [(each.seq, each.key, WRITTEN[each.seq], each.entry, each.previous, each.hash) for each in LINKS],
        )

    def export(*options: str) -> Lines:
        code, out, _ = run_command("audit", "export", *options, database=f"sqlite:///{records}", now=NOON + 100)
        assert code == 0
        return out.splitlines()

    return export


@pytest.fixture(scope="module")
def whole(exported: Callable[..., Lines]) -> Lines:
    return exported()


@pytest.fixture(scope="module")
def pushed() -> Lines:
    """Lines as a SIEM got them."""
    return [json.dumps(event_of(each, LogSource("1", None), NOON)) for each in LINKS]


def changed(line: str, **values: object) -> str:
    return json.dumps({**json.loads(line), **values}, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------ as it was written


def test_a_whole_export_verifies_and_says_what_to_keep(whole: Lines) -> None:
    code, out = verified(whole, "--whole")
    assert code == 0
    assert out.startswith("6 entries, from 1 to 6, all as they were written.")
    assert f"--anchor 6:{LINKS[5].hash}" in out


def test_a_time_range_verifies_and_says_what_has_to_come_before(exported: Callable[..., Lines]) -> None:
    """It has no gap, although entry 4 says that it was written after the end of the range."""
    code, out = verified(exported("--since", "97s", "--until", "95s"))
    assert code == 0
    assert "3 entries, from 3 to 5" in out
    assert f"ends with 2:{LINKS[1].hash}" in out


def test_pushed_events_verify_although_some_came_twice(pushed: Lines) -> None:
    code, out = verified([*pushed[:4], *pushed[2:]], "--whole")
    assert code == 0
    assert "2 came more than once, the same each time." in out


def test_events_that_a_siem_gives_newest_first_verify_when_they_may_come_in_any_order(pushed: Lines) -> None:
    assert verified(pushed[::-1], "--any-order", "--whole")[0] == 0
    assert verified(pushed[::-1])[0] == 1


def test_what_a_search_found_verifies_as_a_selection(whole: Lines) -> None:
    assert verified([whole[0], whole[3], whole[4]], "--selection")[0] == 0
    assert "entries 2 to 3 are missing" in verified([whole[0], whole[3], whole[4]])[1]


def test_an_empty_file_has_nothing_wrong() -> None:
    assert verified([]) == (0, "There is no entry.\n")


def test_several_files_are_one_log(whole: Lines, tmp_path: Path) -> None:
    files = [tmp_path / "october.jsonl", tmp_path / "november.jsonl"]
    files[0].write_text("\n".join(whole[:3]))
    files[1].write_text("\n".join(whole[4:]))
    command = [sys.executable, "-I", str(VERIFIER), *map(str, files)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{files[1]}:1: entry 4 is missing\n")


@pytest.mark.parametrize("options", [(), ("--any-order",)])
def test_ranges_of_two_exports_may_overlap_and_what_is_repeated_within_one_is_told(
    whole: Lines, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """As two exports of every month do where two processes wrote at the turn of the month."""
    files = [tmp_path / "october.jsonl", tmp_path / "november.jsonl"]
    command = [sys.executable, "-I", str(VERIFIER), *map(str, files), "--whole", *options]

    def of(october: Lines, november: Lines) -> tuple[int, str]:
        for file, lines in zip(files, (october, november), strict=True):
            file.write_text("\n".join(lines))
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    code, out = of(whole[:4], whole[2:])
    assert (code, "2 came more than once, the same each time." in out) == (0, True)
    assert of(whole[:4], [changed(whole[3], note="another"), *whole[4:]])[0] == 1
    code, out = of(whole[:4], [*whole[4:], whole[5]])
    assert (code, "entry 6 stands a second time" in out) == (1, True)


# --------------------------------------------------------------------------------------------------- tampered with


TAMPERING: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "changed": (lambda lines: [*lines[:2], changed(lines[2], status="done"), *lines[3:]], "-:3: entry 3 was changed"),
    "removed": (lambda lines: [*lines[:2], *lines[3:]], "-:3: entry 3 is missing"),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "-:3: entry 2 is out of order"),
    "twice": (lambda lines: [*lines[:2], *lines[1:]], "-:3: entry 2 stands a second time"),
    "renumbered": (lambda lines: [*lines[:5], changed(lines[5], seq=7)], "-:6: entry 7 was changed"),
    "added": (lambda lines: [changed(lines[0], surprise=True), *lines[1:]], "-:1: entry 1 was changed"),
    "beginning cut": (lambda lines: lines[2:], "-:1: entries 1 to 2 are missing"),
    "said twice": (lambda lines: ['{"status":"denied",' + lines[0][1:], *lines[1:]], "-:1: says something twice"),
    "no JSON": (lambda lines: [*lines[:3], "[" * 100_000, *lines[4:]], "-:4: is not JSON"),
    "no entry": (lambda lines: ["[1]", "{}", *lines], "-:2: has no number"),
    "no number of JSON": (lambda lines: ['{"seq": NaN}', *lines], "-:1: has NaN"),
    "unreadable": (lambda lines: [*lines[:3], changed("{}", seq=4, note="", previous="", hash=""), *lines[4:]], "-:4"),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_an_export_that_was_touched_is_told_by_line_and_entry(whole: Lines, how: str) -> None:
    tamper, said = TAMPERING[how]
    code, out = verified(tamper(whole), "--whole")
    assert code == 1
    assert said in out


def test_a_later_entry_that_was_hashed_anew_does_not_follow(whole: Lines) -> None:
    """Whoever changes an entry with its hash has to change all after it, too."""
    entry = {name: value for name, value in json.loads(whole[2]).items() if name not in ("seq", "previous", "hash")}
    text = json.dumps({**entry, "status": "done"}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    anew = changed(whole[2], status="done", hash=hash_of(LINKS[1].hash, 3, text))
    code, out = verified([*whole[:2], anew, *whole[3:]])
    assert (code, out.splitlines()[0]) == (
        1,
        "-:4: entry 4 does not follow entry 3 as it stands here: one of them was changed",
    )


def test_a_log_that_was_written_anew_from_its_beginning_shows_against_an_anchor() -> None:
    forged = chain(ended(1, requester="web:ben"), *(ended(number) for number in range(2, 7)))
    lines = [json.dumps(event_of(each, LogSource("1", None), NOON)) for each in forged]
    assert verified(lines, "--whole")[0] == 0
    code, out = verified(lines, "--whole", "--anchor", f"4:{LINKS[3].hash}")
    assert (code, "at the end: entry 4 is not the one whose hash was kept" in out) == (1, True)


def test_newest_entries_that_were_cut_off_show_against_an_anchor(whole: Lines) -> None:
    anchor = ("--anchor", f"6:{LINKS[5].hash}")
    assert verified(whole, *anchor)[0] == 0
    code, out = verified(whole[:5], *anchor)
    assert (code, "entry 6, whose hash was kept, is missing" in out) == (1, True)


def test_the_entry_before_a_range_is_held_against_an_anchor(whole: Lines) -> None:
    assert verified(whole[2:], "--anchor", f"2:{LINKS[1].hash}")[0] == 0
    assert verified(whole[2:], "--anchor", f"2:{BEGINNING}")[0] == 1
    assert "nothing can be said of it" in verified(whole[2:], "--anchor", f"1:{LINKS[0].hash}")[1]


def test_an_event_whose_fields_were_changed_and_its_entry_was_not_is_told(pushed: Lines) -> None:
    code, out = verified([pushed[0], changed(pushed[1], status_code="denied"), *pushed[2:]])
    assert (code, "-:2: entry 2: status_code is not what the entry itself says" in out) == (1, True)
    code, out = verified([changed(pushed[0], time=0)])
    assert (code, "-:1: entry 1: time is not what the entry itself says" in out) == (1, True)


def test_an_event_whose_entry_was_changed_is_told(pushed: Lines) -> None:
    raw = json.loads(pushed[1])["raw_data"].replace("web:ana", "web:ben")
    code, out = verified([pushed[0], changed(pushed[1], raw_data=raw), *pushed[2:]])
    assert (code, "-:2: entry 2 was changed" in out) == (1, True)


def test_a_second_event_of_an_entry_that_says_something_else_is_told(pushed: Lines) -> None:
    other = json.dumps(
        event_of(Link(2, "", "{}", LINKS[0].hash, hash_of(LINKS[0].hash, 2, "{}")), LogSource("", None), 0)
    )
    code, out = verified([*pushed[:2], other, *pushed[2:]])
    assert (code, "-:3: entry 2 stands a second time, and is another one" in out) == (1, True)


# ------------------------------------------------------------------------------------------------ called wrongly


@pytest.mark.parametrize("asked", [[], ["missing.jsonl"], ["-", "--anchor", "3"], ["-", "--anchor", "3:abc"]])
def test_what_cannot_be_done_has_an_exit_code_of_its_own(asked: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(VERIFIER), *asked],
        input="",
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_verifier_imports_nothing_but_the_standard_library() -> None:
    """It needs no other file: it runs in a folder of its own."""
    program = (
        "import ast, sys; tree = ast.parse(open(sys.argv[1]).read());"
        "names = {(n.module if isinstance(n, ast.ImportFrom) else a.name).split('.')[0]"
        " for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names};"
        "print(sorted(names - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(VERIFIER)], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


# --------------------------------------------------------------------------------- forged around what can be verified


def test_an_emptied_export_is_not_whole() -> None:
    code, out = verified([], "--whole")
    assert code == 1
    assert "there is no entry, not even the first one" in out


def test_an_event_around_which_an_exported_entry_was_forged_is_refused(pushed: Lines) -> None:
    """Whoever reads the line as an export would read a tool that nobody called."""
    forged = changed(pushed[0], seq=1, previous="0" * 64, hash=str(LINKS[0].hash), tool="something_else")
    code, out = verified([forged, *pushed[1:]], "--whole")
    assert code == 1
    assert "an exported entry and an event at once" in out


@pytest.mark.parametrize("name", ["decision", "rule", "status", "why", "votes"])
def test_a_copied_field_of_an_event_that_says_something_else_is_told(pushed: Lines, name: str) -> None:
    event = json.loads(pushed[0])
    event["unmapped"]["entry"][name] = "forged"
    code, out = verified([json.dumps(event), *pushed[1:]], "--whole")
    assert code == 1
    assert f"unmapped.entry.{name} is not what the entry itself says" in out


FORGED = {
    "message": "workshop make: denied",
    "status": "Failure",
    "status_id": 2,
    "status_detail": "nobody let it run",
    "severity_id": 1.5,
    "action": "Denied",
    "disposition_id": 2,
    "activity_id": 2,
    "type_uid": 600302,
    "class_uid": 1,
    "is_alert": True,
    "actor.app_name": "another program",
    "api.service.name": "calendar",
    "src_endpoint.name": "slack",
    "metadata.original_event_uid": "2",
    "authorizations.0.policy.name": "anybody may",
    "unmapped.entry.attempt": True,
}


@pytest.mark.parametrize("field", FORGED)
def test_a_searched_field_of_an_event_that_says_something_else_is_told(pushed: Lines, field: str) -> None:
    """A search for calls that ran would miss one that an event calls blocked."""
    event = json.loads(pushed[0])
    *way, last = field.split(".")
    at = event
    for name in way:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[last] = FORGED[field]
    code, out = verified([json.dumps(event), *pushed[1:]], "--whole")
    assert (code, out.splitlines()[0]) == (
        1,
        f"-:1: entry 1: {field.replace('.0', '')} is not what the entry itself says",
    )


def test_events_of_every_outcome_verify_as_they_are_pushed() -> None:
    ends = [
        *(ended(1, status=status) for status in ("done", "failed", "unknown")),
        *(
            ended(1, status=status, attempt=None, output=None, duration=None, note="why", judged=None)
            for status in ("failed", "denied", "rejected", "expired", "superseded", "withdrawn", "limited", "skipped")
        ),
        *(
            ended(1, call_id="", tool="", server="", status=status, attempt=None, settled={"choice": "x", "by": "Olga"})
            for status in ("looked", "looked up", "read", "acted")
        ),
        *(
            ended(1, status="looked", attempt=None, settled={"choice": "looked at what is hidden", "by": looker})
            for looker in ("Ben <web:ben>", "Eva <b> <slack:T1:U2> (requester)", "> (requester)")
        ),
        ended(1, READING),
        ended(1, judged=judged(tool(), {}, client="a program")),
        ended(1, judged=judged(tool(), {}, agent="research")),
    ]
    lines = [json.dumps(event_of(each, LogSource("1", "https://bot.example.com"), NOON)) for each in chain(*ends)]
    code, out = verified(lines, "--whole")
    assert code == 0, out


def test_an_event_of_an_entry_that_says_nothing_is_no_proof() -> None:
    """Hashes can be computed by anybody, so anything could stand beside it."""
    nothing = Link(1, "", "{}", BEGINNING, hash_of(BEGINNING, 1, "{}"))
    code, out = verified([json.dumps(event_of(nothing, LogSource("1", None), NOON))])
    assert code == 1
    assert "entry 1 cannot be read" in out


# ------------------------------------------------------------------------------------------- written by other programs


def test_an_export_as_csv_is_called_one(exported: Callable[..., Lines]) -> None:
    code, out = verified(exported("--format", "csv"))
    assert code == 1
    assert out.startswith("-:1: is the beginning of a CSV export")


def test_a_file_whose_name_the_terminal_cannot_write_is_verified_all_the_same(whole: Lines, tmp_path: Path) -> None:
    file = tmp_path / "März.jsonl"
    file.write_text("\n".join([*whole[:2], *whole[3:]]))
    command = [sys.executable, str(VERIFIER), str(file)]
    environment = {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert done.stderr == ""
    assert r"M\xe4rz.jsonl:3: entry 3 is missing" in done.stdout


def test_a_mark_of_utf_8_at_the_beginning_of_a_file_is_no_fault(whole: Lines) -> None:
    """Windows' programs write one."""
    assert verified([f"\ufeff{whole[0]}", *whole[1:]], "--whole")[0] == 0
    assert verified([whole[0], f"\ufeff{whole[1]}", *whole[2:]], "--whole")[0] == 1


def test_what_an_event_calls_a_field_is_told_without_a_terminal_obeying_it(pushed: Lines) -> None:
    event = json.loads(pushed[0])
    event["unmapped"]["entry"]["\ud800\x1b[2J"] = "forged"
    code, out = verified([json.dumps(event), *pushed[1:]], "--whole")
    assert code == 1
    assert r"unmapped.entry.\ud800\x1b[2J is not what the entry itself says" in out


def test_a_hash_that_is_none_is_told(whole: Lines) -> None:
    code, out = verified([changed(whole[0], previous="\x1b[2J")])
    assert code == 1
    assert "has no hash" in out
    assert "\x1b" not in out
