"""Operators search the audit log, hand it on, and see whether it is as it was written."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import subprocess
import sys
import threading
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.audit.entries import LOOKED, CallEnd, VoteCast, entry_of, key_of, link, looker_of
from bot.audit.terms import terms_of
from bot.card_masks import PLAIN
from bot.console.audit import AT_A_TIME, AuditQuestion, next_to_index
from bot.domain import Person
from bot.records import attempts, audit, audit_terms, threads
from bot.records.audit_terms import Indexed
from bot.records.locks import UNLOCKED
from bot.records.tables import audit as audit_table
from graph.ports import CallRecord
from tests.api.serving import OLGA, ApiUser, ServedApi
from tests.audit.calls import NOON, ended, tool
from tests.support.examples import examples
from tests.support.forks import ROOT
from tests.support.parsing import threads_that_parse_json

BEN_APPROVED = VoteCast(1, "web:ben", "Ben", "approve", "a rule", "", NOON)


async def write(served: ServedApi, *ends: CallEnd) -> None:
    """These ends of calls are in the log."""
    async with served.database.writing(UNLOCKED) as tx:
        for end in ends:
            before, _ = await audit.newest(tx, "")
            key = key_of(end.call_id, end.attempt, end.status, end.settled, str(end.at))
            await audit.add(tx, link(before, key, entry_of(end, PLAIN)), at=end.at)


def calls(entries: list[Any]) -> list[str]:
    """Of which calls entries are, without what the operator has looked at."""
    return [each["entry"]["call"] for each in entries if each["entry"]["call"]]


@pytest.fixture
async def log(served: ServedApi) -> None:
    """Three calls of two people: looked up, made under Ben's approval, and denied."""
    look = tool("look")
    await write(
        served,
        ended(1, look),
        ended(2, requester="slack:T1:U1", votes=(BEN_APPROVED,)),
        ended(3, requester="slack:T1:U1", status="denied", attempt=None, output=None),
    )


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["m3.0.0", "m2.0.0", "m1.0.0"]),
        ("tool=look", ["m1.0.0"]),
        ("tool=make", ["m3.0.0", "m2.0.0"]),
        ("server=workshop&outcome=done", ["m2.0.0", "m1.0.0"]),
        ("outcome=denied", ["m3.0.0"]),
        ("person=web%3Aben", ["m2.0.0"]),
        ("person=ben", ["m2.0.0"]),
        ("person=uma%40example.com", ["m3.0.0", "m2.0.0"]),
        ("person=nobody%40example.com", []),
        ("person=web%3Aben&tool=look", []),
        ("decision=ask&tool=make&outcome=done", ["m2.0.0"]),
        (f"since={NOON + 2}", ["m3.0.0", "m2.0.0"]),
        (f"until={NOON + 2}", ["m1.0.0"]),
        (f"tool=make&since={NOON + 2}&until={NOON + 3}", ["m2.0.0"]),
        ("rule=reading%20is%20free", []),
    ],
)
async def test_entries_are_found_by_what_they_are_about(
    served: ServedApi, olga: ApiUser, query: str, found: list[str]
) -> None:
    async with served.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, Person("slack:T1:U1", "Uma", email="uma@example.com"), served.clock())
    answer = await olga.get(f"operator/audit?{query}")
    assert answer.status == 200, answer
    assert calls(answer.body["entries"]) == found
    assert answer.body["whole"]


@pytest.mark.usefixtures("log")
async def test_pages_follow_one_another(served: ServedApi, olga: ApiUser) -> None:
    seen, before = [], ""
    while True:
        page = (await olga.get(f"operator/audit?server=workshop&limit=1&before={before}")).body
        seen += calls(page["entries"])
        if not (before := page["next"]):
            break
        await write(served, ended(len(seen) + 10))
    assert seen == ["m3.0.0", "m2.0.0", "m1.0.0"], "what was written meanwhile changes nothing"


async def test_a_search_that_looks_through_much_goes_on_where_it_ended(
    served: ServedApi, olga: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_terms, "MOST_LOOKED_AT", 4)
    await write(served, ended(1, tool("look")), *(ended(number, requester="web:ben") for number in range(2, 9)))
    await write(served, *(ended(number, tool("look"), requester="web:chloe") for number in range(9, 16)))
    pages, before = [], ""
    while len(pages) < 9:
        page = (await olga.get(f"operator/audit?person=ana&tool=look&before={before}")).body
        pages.append(calls(page["entries"]))
        if not (before := page["next"]):
            break
    assert [call for page in pages for call in page] == ["m1.0.0"]


@pytest.mark.usefixtures("log")
async def test_what_is_found_is_handed_on_whole_and_the_log_says_so(olga: ApiUser, chloe: ApiUser) -> None:
    lines = await olga.get("operator/audit/export?server=workshop")
    assert lines.headers["Content-Type"] == "application/jsonl; charset=utf-8"
    entries = [json.loads(line) for line in lines.body.splitlines()]
    assert [(each["seq"], each["call"]) for each in entries] == [(1, "m1.0.0"), (2, "m2.0.0"), (3, "m3.0.0")]
    assert entries[1]["previous"] == entries[0]["hash"]
    table = await olga.get("operator/audit/export?format=csv&tool=look")
    assert table.headers["Content-Disposition"] == 'attachment; filename="audit.csv"'
    (row,) = csv.DictReader(io.StringIO(table.body))
    assert (row["call"], row["status"], row["rule"]) == ("m1.0.0", "done", "no rule matched")
    assert (await chloe.get("operator/audit/export")).status == 403
    (read,) = (await olga.get("operator/audit?outcome=read&person=olga")).body["entries"]
    assert read["entry"]["settled"]["choice"] == "looked at the audit log"


async def test_an_export_has_also_what_a_search_cannot_find_yet(served: ServedApi, olga: ApiUser) -> None:
    await write(served, *(ended(number) for number in range(500)))
    assert not (await olga.get("operator/audit?tool=make")).body["whole"]
    exported = (await olga.get("operator/audit/export?tool=make")).body
    assert len(exported.splitlines()) == 500


async def test_an_export_verifies_although_processes_say_the_time_before_they_know_the_number(
    served: ServedApi, olga: ApiUser
) -> None:
    await write(served, ended(1), ended(4), ended(2), ended(5), ended(3), ended(6))
    whole = (await olga.get("operator/audit/export")).body
    assert [json.loads(line)["call"] for line in whole.splitlines()[:6]] == [f"m{n}.0.0" for n in (1, 4, 2, 5, 3, 6)]
    assert verified_by_an_auditor(whole, "--whole") == 0
    between = (await olga.get(f"operator/audit/export?since={NOON + 2}&until={NOON + 4}")).body
    assert [json.loads(line)["seq"] for line in between.splitlines()] == [2, 3, 4, 5, 6, 7], "7: she has looked before"
    assert verified_by_an_auditor(between) == 0
    assert (await olga.get(f"operator/audit/export?since={NOON + 3e6}")).body == ""


async def test_what_is_written_while_an_export_is_handed_on_leaves_no_gap_in_it(served: ServedApi) -> None:
    await write(served, *(ended(number) for number in range(2 * AT_A_TIME)))
    pieces = await served.services.console.audit.exported(OLGA, AuditQuestion(), "jsonl")
    assert pieces is not None
    text = await anext(pieces)
    await write(served, ended(-1), ended(2 * AT_A_TIME))
    text += "".join([piece async for piece in pieces])
    assert len(text.splitlines()) >= 2 * AT_A_TIME
    assert verified_by_an_auditor(text, "--whole") == 0


def verified_by_an_auditor(exported: str, *options: str) -> int:
    """The exit code of the verifier."""
    command = [sys.executable, "-I", str(ROOT / "deploy/verify_audit.py"), "-", *options]
    return subprocess.run(command, input=exported, check=False, capture_output=True, text=True, timeout=60).returncode


async def test_others_have_their_turn_while_the_ledger_is_held_against_the_log(served: ServedApi) -> None:
    """It held the event loop for 25 seconds after a year with 300,000 calls."""
    async with served.database.writing(UNLOCKED) as tx:
        for number in range(3 * AT_A_TIME):
            record = CallRecord("web:t", f"c{number}", "web:ana", tool(), {}, "d" * 64, None)
            await attempts.add(tx, f"a{number}", 1, record, approval_id=None, judged=None, now=NOON)
    steps = await served.services.console.verification.verified(OLGA)
    assert steps is not None
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(work())
    seen = [turns async for _ in steps]
    others.cancel()
    assert len(seen) > 3
    assert len(set(seen)) == len(seen)


async def test_long_entries_are_written_out_elsewhere_than_on_the_event_loop(served: ServedApi) -> None:
    """Rule 13: a page of them took it 0.16 s."""
    await write(served, ended(1), ended(2))
    assert await served.services.console.audit.page(OLGA, AuditQuestion()), "they can be found by now"
    pieces = await served.services.console.audit.exported(OLGA, AuditQuestion(), "csv")
    assert pieces is not None
    with threads_that_parse_json() as threads:
        text = "".join([piece async for piece in pieces])
    assert len(text.splitlines()) == 1 + 2 + 1, "a heading, the calls, and that she looked"
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.usefixtures("log")
async def test_a_log_as_it_was_written_has_no_faults_and_a_changed_one_has(served: ServedApi, olga: ApiUser) -> None:
    last = await verified(olga)
    assert (last["done"], last["fault_count"], last["faults"], last["checked"]) == (True, 0, [], 4)
    anchor = f"{last['last']['seq']}:{last['last']['hash']}"
    assert (await verified(olga, anchor))["faults"] == []
    async with served.database.writing(UNLOCKED) as tx:
        entry = (await audit.links(tx, None, None, after=1, limit=1))[0].entry
        changed = entry.replace("slack:T1:U1", "web:chloe")
        await tx.run(sa.update(audit_table).where(audit_table.c.seq == 2).values(entry=changed))
        await tx.run(sa.delete(audit_table).where(audit_table.c.seq >= 3))
    told = await verified(olga, anchor)
    assert [fault["what"] for fault in told["faults"]] == [
        "entry 2 was changed",
        "entry 4 is not the one whose hash was kept: it is missing or was changed",
    ]
    assert (await olga.post("operator/audit/verification", {"anchor": "4"})).status == 422


def with_more(**more: Any) -> str:
    """An entry that somebody has changed."""
    return json.dumps({**json.loads(entry_of(ended(1), PLAIN)), **more})


@pytest.mark.parametrize(
    "changed",
    [
        "gone",
        "[]",
        "{}",
        with_more(note="half of \ud800"),
        with_more(call="m\ud800.0.0"),
        with_more(call="m\0.0.0"),
        with_more(call=7),
        with_more(settled={"a": 1}),
        with_more(votes="abc"),
        with_more(votes=[None]),
        with_more(rule=["a"]),
        with_more()[:-1] + f', "more": {"[" * 300 + "]" * 300}}}',
        with_more()[:-1] + f', "more": {"[" * 99_000 + "]" * 99_000}}}',
        with_more()[:-1] + f', "more": {"9" * 9_000}}}',
    ],
    ids=range(14),
)
async def test_an_entry_that_cannot_be_read_any_more_keeps_nothing_else_from_being_found(
    served: ServedApi, olga: ApiUser, changed: str
) -> None:
    await write(served, ended(1), ended(2))
    async with served.database.writing(UNLOCKED) as tx:
        await tx.run(sa.update(audit_table).where(audit_table.c.seq == 1).values(entry=changed))
    assert calls((await olga.get("operator/audit?tool=make")).body["entries"]) == ["m2.0.0"]
    page = (await olga.get(f"operator/audit?until={NOON + 2}")).body
    assert {each["seq"]: each["entry"] for each in page["entries"]}[1] is None
    exported = (await olga.get(f"operator/audit/export?until={NOON + 2}")).body
    lines = {line["seq"]: line for line in map(json.loads, exported.splitlines())}
    assert lines[1]["note"] == "this entry was changed and cannot be read"
    table = (await olga.get(f"operator/audit/export?until={NOON + 2}&format=csv")).body
    assert {row["seq"]: row["note"] for row in csv.DictReader(io.StringIO(table))}["1"] == lines[1]["note"]
    assert [each["entry"] is None for each in (await olga.get("audit?limit=2")).body["entries"]] == [True, False]
    for path in ("rules", "fatigue", "suggestions"):
        assert (await olga.get(f"operator/{path}")).status == 200
    assert "entry 1 was changed" in [fault["what"] for fault in (await verified(olga))["faults"]]


async def verified(olga: ApiUser, anchor: str | None = None) -> dict[str, Any]:
    """The last line of a verification."""
    answer = await olga.post("operator/audit/verification", {"anchor": anchor} if anchor else {})
    assert answer.status == 200, answer
    *earlier, last = [json.loads(line) for line in answer.body.splitlines()]
    assert not any(each["done"] for each in earlier)
    found: dict[str, Any] = last
    return found


def test_an_entry_is_found_by_everybody_who_took_part() -> None:
    by = looker_of("web:chloe", "Chloe <web:dan> (operator)", "finance")
    looked = ended(1, status=LOOKED, attempt=None, settled={"choice": "c", "by": by}, votes=(BEN_APPROVED,))
    entry = json.loads(entry_of(looked, PLAIN))
    terms = terms_of(entry)
    assert len(set(terms)) == len(terms)
    assert {text for kind, text in terms if kind == "person"} == {"web:ana", "web:ben", "web:chloe"}
    assert terms_of({"requester": 3, "votes": [None, {"person": []}], "tool": "t" * 900}) == [("tool", "t" * 500)]


@pytest.mark.parametrize(
    ("rule", "agent"),
    [
        ("looking; workshop requires approval for look", ""),
        ("looking; the default agent requires approval for look of workshop", ""),
        ("looking; the clerk agent requires approval for look of workshop", "clerk"),
    ],
)
def test_a_call_is_found_by_its_rule_also_where_more_than_that_had_it_asked_about(rule: str, agent: str) -> None:
    entry = {"rule": rule, "server": "workshop", "tool": "look", "agent": agent}
    assert [text for kind, text in terms_of(entry) if kind == "rule"] == [rule, "looking"]


@settings(max_examples=examples(100))
@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=8))
def test_whatever_is_written_meanwhile_all_entries_get_their_terms_and_the_newest_first(written: list[int]) -> None:
    newest, indexed, done = 0, None, set[int]()
    for more in written:
        newest += more
        if (following := next_to_index(newest, indexed)) is not None:
            first, last, indexed = following
            done |= set(range(first, last + 1))
            assert more == 0 or newest - last <= 10_000
    while (following := next_to_index(newest, indexed)) is not None:
        first, last, indexed = following
        assert 1 <= first <= last <= newest
        done |= set(range(first, last + 1))
    assert done == set(range(1, newest + 1))
    assert newest == 0 or indexed == Indexed(1, newest)


@pytest.mark.parametrize(
    "asked",
    [
        "audit?person=%00",
        "audit?before=1:\u0663",
        "turns?before=\U00011f50",
        "waiting?after=\U00011f50:a",
        "parked?before=\u0663",
    ],
)
async def test_what_no_record_has_is_refused_before_any_is_read(olga: ApiUser, asked: str) -> None:
    assert (await olga.get(f"operator/{asked}")).status == 422
    assert (await olga.get("operator/turns/a%00b")).status == 404
