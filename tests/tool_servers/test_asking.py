"""Tools that ask in the middle of a call: the call waits, and goes on with the answer of whoever made it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.tool_servers import elicitation
from adapters.tool_servers.elicitation import Completed
from adapters.tool_servers.servers import ToolServers
from adapters.tool_servers.sessions import Timings
from graph.ports import Caller, Failed, Given, OutcomeUnknown, QuestionPut, SignInNeeded, Succeeded, ToolOutcome

from .conftest import CALLER, QUICK, Heard, call, lines, listening, running, server, until

BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])
ALL = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
BEN = Caller(person="web:ben", thread_id="web:2", call_id="d2.0.0")


@asynccontextmanager
async def asking(
    folder: Path, transport: str, *, timings: Timings = QUICK, completed: Completed | None = None, **more: Any
) -> AsyncIterator[tuple[ToolServers, Path]]:
    """The server, and the file of what it did."""
    done = folder / "done"
    async with (
        entry_for(done, transport) as entry,
        running(folder, {"shop": {**entry, **more}}, timings=timings, completed=completed) as it,
    ):
        yield it, done


@asynccontextmanager
async def entry_for(done: Path, transport: str) -> AsyncIterator[Mapping[str, Any]]:
    if transport == "stdio":
        yield server("asking.py", done, "stdio")
        return
    async with listening("asking.py", done, transport) as (_, port):
        path = "sse" if transport == "sse" else "mcp"
        yield {"type": transport, "url": f"http://127.0.0.1:{port}/{path}"}


def put(outcome: ToolOutcome) -> QuestionPut:
    assert isinstance(outcome, QuestionPut), outcome
    return outcome


def given(outcome: ToolOutcome, **values: Any) -> Given:
    question = put(outcome)
    return Given(question.number, "accept", values, question.digest)


@ALL
async def test_a_call_that_asks_waits_and_goes_on_with_the_answer(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, done):
        question = put(await call(servers, "shop__order", item="tea"))
        assert (question.number, question.message) == (1, "Which size of tea?")
        assert [(field.name, field.label, field.type) for field in question.fields] == [("size", "Size", "integer")]
        assert question.schema["properties"]["size"]["maximum"] == 10
        assert lines(done) == []
        got = await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert got == Succeeded("ordered tea in 4")
        assert lines(done) == ["order tea 4"]


async def test_a_question_is_read_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 13: 60 kB of short texts, each looked through for secrets, took 0.3 s for each question."""
    read, threads = elicitation.form_question, set[int]()

    def noting(*of: Any) -> Any:
        threads.add(threading.get_ident())
        return read(*of)

    monkeypatch.setattr(elicitation, "form_question", noting)
    async with asking(tmp_path, "stdio") as (servers, _done):
        put(await call(servers, "shop__order", item="tea"))
    assert threads
    assert threading.get_ident() not in threads


@ALL
async def test_meanwhile_others_are_served_and_the_time_of_a_call_does_not_run(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport, timeoutSeconds=0.8) as (servers, _done):
        question = await call(servers, "shop__order", item="tea")
        clock, count = asyncio.get_running_loop().time, 0
        until_then = clock() + 1.2
        while clock() < until_then:
            count += 1
            assert await call(servers, "shop__echo", caller=BEN, text=str(count)) == Succeeded(str(count))
        got = await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert got == Succeeded("ordered tea in 4")


@ALL
async def test_ten_people_are_each_asked_for_their_own_call(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, done):
        people = [Caller(f"web:{n}", f"web:t{n}", f"c{n}") for n in range(1, 11)]
        first, *rest = people
        questions = {first: await call(servers, "shop__order", caller=first, item="1")}

        async def ask(person: Caller) -> None:
            questions[person] = await call(servers, "shop__order", caller=person, item=person.call_id[1:])

        await asyncio.gather(*map(ask, rest))
        for n, person in enumerate(people, 1):
            assert put(questions[person]).message == f"Which size of {n}?"
        answered = (
            call(servers, "shop__order", caller=person, item=str(n), answers=(given(questions[person], size=n),))
            for n, person in enumerate(people, 1)
        )
        assert await asyncio.gather(*answered) == [Succeeded(f"ordered {n} in {n}") for n in range(1, 11)]
        assert sorted(lines(done)) == sorted(f"order {n} {n}" for n in range(1, 11))


@pytest.mark.parametrize("transport", ["stdio", "sse"])
async def test_a_question_that_might_be_somebody_elses_is_put_to_nobody(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, done):
        ana = asyncio.create_task(call(servers, "shop__slow_order", item="tea"))
        ben = asyncio.create_task(call(servers, "shop__slow_order", caller=BEN, item="rum"))
        await until(lambda: sorted(lines(done)) == ["begun rum", "begun tea"], "both calls")
        with done.open("a") as file:
            file.write("ask\n")
        outcomes = await asyncio.gather(ana, ben)
        # The first one to ask is cancelled; the other is then alone, and may be asked.
        assert Succeeded("no order: cancel") in outcomes
        for outcome, item in zip(outcomes, ["tea", "rum"], strict=True):
            if isinstance(outcome, QuestionPut):
                assert outcome.message == f"Which size of {item}?"


@ALL
async def test_a_no_is_told_to_the_tool(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, _done):
        question = put(await call(servers, "shop__order", item="tea"))
        no = Given(question.number, "decline", {}, question.digest)
        assert await call(servers, "shop__order", item="tea", answers=(no,)) == Succeeded("no order: decline")


async def test_a_tool_may_ask_twice(tmp_path: Path) -> None:
    async with asking(tmp_path, "http") as (servers, done):
        first = await call(servers, "shop__paint", item="door")
        second = await call(servers, "shop__paint", item="door", answers=(given(first, size=3),))
        assert put(second).number == 2
        answers = (given(first, size=3), given(second, colour="red"))
        assert await call(servers, "shop__paint", item="door", answers=answers) == Succeeded("painted door red")
        assert lines(done) == ["paint door 3 red"]


async def test_asked_again_before_an_answer_it_is_the_same_question(tmp_path: Path) -> None:
    async with asking(tmp_path, "http") as (servers, done):
        question = await call(servers, "shop__order", item="tea")
        assert await call(servers, "shop__order", item="tea") == question
        await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert lines(done) == ["order tea 4"]


@pytest.mark.parametrize("other", [replace(CALLER, person="web:eve"), CALLER])
async def test_an_answer_reaches_only_the_call_it_is_for(tmp_path: Path, other: Caller) -> None:
    async with asking(tmp_path, "http") as (servers, done):
        question = put(await call(servers, "shop__order", item="tea"))
        item = "tea" if other.person != CALLER.person else "gold"
        stray = replace(given(question, size=4), digest="")
        got = await call(servers, "shop__order", caller=other, item=item, answers=(stray,))
        assert isinstance(got, OutcomeUnknown)  # not the call that waits
        await until(lambda: lines(done) == ["cancel tea"], "the end of the first call")


@BOTH
async def test_after_a_restart_a_call_that_asked_is_not_made_again(tmp_path: Path, transport: str) -> None:
    """Rule 4: nothing says that it did not act before it asked."""
    async with asking(tmp_path, transport) as (servers, done):
        question = await call(servers, "shop__act_and_ask", item="tea")
        assert lines(done) == ["acted on tea"]
    async with asking(tmp_path, transport) as (servers, done):
        got = await call(servers, "shop__act_and_ask", item="tea", answers=(given(question, size=4),))
        assert isinstance(got, OutcomeUnknown)
        assert "was gone when the answer came" in got.text
        assert lines(done).count("acted on tea") == 1


@BOTH
async def test_after_a_restart_the_first_question_of_a_repeatable_call_is_answered_by_itself(
    tmp_path: Path, transport: str
) -> None:
    async with asking(tmp_path, transport, idempotentTools=["order"]) as (servers, done):
        question = await call(servers, "shop__order", item="tea")
    async with asking(tmp_path, transport, idempotentTools=["order"]) as (servers, done):
        done.unlink(missing_ok=True)  # the first life was told that nobody answers
        got = await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert got == Succeeded("ordered tea in 4")
        assert lines(done) == ["order tea 4"]


async def test_after_a_restart_another_question_is_asked_again(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio", idempotentTools=["changing"]) as (servers, _):
        question = await call(servers, "shop__changing")
    async with asking(tmp_path, "stdio", idempotentTools=["changing"]) as (servers, _):
        answer = given(question, size=4)
        other = put(await call(servers, "shop__changing", answers=(answer,)))
        assert other.number == 2
        got = await call(servers, "shop__changing", answers=(answer, given(other, size=5)))
        assert got == Succeeded("accept")


async def test_after_a_restart_nobody_knows_what_a_call_did_between_its_questions(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio") as (servers, _):
        first = await call(servers, "shop__paint", item="door")
        second = await call(servers, "shop__paint", item="door", answers=(given(first, size=3),))
    answers = (given(first, size=3), given(second, colour="red"))
    async with asking(tmp_path, "stdio") as (servers, done):
        assert isinstance(await call(servers, "shop__paint", item="door", answers=answers), OutcomeUnknown)
        assert lines(done) == []
    async with asking(tmp_path, "stdio", idempotentTools=["paint"]) as (servers, done):
        assert await call(servers, "shop__paint", item="door", answers=answers) == Succeeded("painted door red")
        assert lines(done) == ["paint door 3 red"]


async def test_after_a_restart_a_no_needs_no_call(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio", idempotentTools=["order"]) as (servers, done):
        got = await call(servers, "shop__order", item="tea", answers=(Given(1, "decline"),))
        assert got == Failed("shop’s question wasn’t answered, so shop__order wasn’t called again.")
        got = await call(servers, "shop__paint", item="door", answers=(Given(1, "decline"),))
        assert isinstance(got, OutcomeUnknown), "this one may have acted before it asked"
        assert lines(done) == []


@ALL
async def test_a_call_that_is_given_up_is_cancelled(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, done):
        await call(servers, "shop__order", item="tea")
        await servers.give_up(CALLER.call_id)
        await until(lambda: lines(done) == ["cancel tea"], "the cancellation")
        await servers.give_up(CALLER.call_id)
        await servers.give_up("unknown")


@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_call_does_not_wait_for_ever_and_is_then_made_anew_only_if_it_may_be(
    tmp_path: Path,
    repeatable: bool,  # noqa: FBT001
) -> None:
    more = {"idempotentTools": ["order"]} if repeatable else {}
    async with asking(tmp_path, "http", timings=replace(QUICK, parked=0.5), **more) as (servers, done):
        question = await call(servers, "shop__order", item="tea")
        await until(lambda: lines(done) == ["cancel tea"], "the end of the patience")
        got = await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert isinstance(got, Succeeded if repeatable else OutcomeUnknown)
        assert lines(done) == (["cancel tea", "order tea 4"] if repeatable else ["cancel tea"])


async def test_too_many_waiting_calls_let_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.tool_servers.elicitation.MOST_PARKED", 2)
    async with asking(tmp_path, "http") as (servers, done):
        questions = [
            await call(servers, "shop__order", caller=replace(CALLER, call_id=f"c{n}"), item=str(n)) for n in range(3)
        ]
        await until(lambda: lines(done) == ["cancel 0"], "the first one's end")
        first = replace(CALLER, call_id="c0")
        got = await call(servers, "shop__order", caller=first, item="0", answers=(given(questions[0], size=4),))
        assert isinstance(got, OutcomeUnknown), "rule 4: it is not made again"
        assert lines(done) == ["cancel 0"]


@BOTH
async def test_a_form_that_asks_for_a_secret_is_refused_with_a_notice(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, _):
        heard = Heard()
        got = await call(servers, "shop__log_in", heard)
        assert isinstance(got, Succeeded)
        assert got.text.startswith("shop asked for what looks like a secret (Password).")
        assert got.text.endswith("log in: decline")
        assert any("looks like a secret" in said for said, _ in heard.steps)


@ALL
async def test_a_call_that_asks_again_and_again_is_answered_so_often_and_told_of_once(
    tmp_path: Path, transport: str
) -> None:
    """Rule 13: what the model reads of it, and how long it may last, does not grow with what is asked."""
    async with asking(tmp_path, transport) as (servers, _):
        got = await call(servers, "shop__insist", times=60)
        assert isinstance(got, Succeeded)
        assert got.text.endswith("declined 50, cancelled 10")
        assert got.text.count("looks like a secret") == 1


@BOTH
async def test_what_a_call_asks_while_it_waits_is_kept_only_so_far(tmp_path: Path, transport: str) -> None:
    """Rule 13: a call waits for half an hour, in which its server may go on asking."""
    async with asking(tmp_path, transport) as (servers, done):
        put(await call(servers, "shop__ask_at_once", times=20))
        await until(lambda: lines(done).count("cancel") >= 15, "the answers to what nobody will read")


@ALL
async def test_a_link_in_the_middle_of_a_call_is_waited_for(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, done):
        got = await call(servers, "shop__link")
        assert got == SignInNeeded("https://pay.test/bill?id=7", "Pay here", "bill-7", 1)
        assert await call(servers, "shop__link") == got  # nobody has opened it yet
        assert lines(done) == []
        assert await call(servers, "shop__link", answers=(Given(1, "accept"),)) == Succeeded("link: accept")
        assert lines(done) == ["link accept"]


async def test_a_server_may_say_that_the_link_was_used(tmp_path: Path) -> None:
    told: list[str] = []

    async def completed(call_id: str) -> None:
        told.append(call_id)

    async with asking(tmp_path, "http", completed=completed) as (servers, _):
        await call(servers, "shop__paid", caller=BEN)
        await call(servers, "shop__link")
        await call(servers, "shop__paid", caller=BEN)
        await until(lambda: told == [CALLER.call_id], "the notice")


async def test_a_link_in_a_result_is_one_to_sign_in_with_only_where_the_operator_says_so(tmp_path: Path) -> None:
    async with asking(tmp_path, "http") as (servers, _):
        assert isinstance(await call(servers, "shop__please_sign_in"), Succeeded)
    rule = {"pattern": "(?i)sign in first", "host": "accounts.test"}
    async with asking(tmp_path, "http", signIn=rule) as (servers, _):
        got = await call(servers, "shop__please_sign_in")
        assert isinstance(got, SignInNeeded)
        assert got.url.endswith("state=s3cr3t-st4te")
        assert not got.did_nothing
        assert "s3cr3t" not in repr(got)


async def test_a_program_in_which_a_call_waits_is_left_to_it_and_ends_with_it(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio") as (servers, _):
        before = await call(servers, "shop__process", caller=BEN)
        question = await call(servers, "shop__order", item="tea")
        after = await call(servers, "shop__process", caller=BEN)
        assert before != after
        await call(servers, "shop__order", item="tea", answers=(given(question, size=4),))
        assert await call(servers, "shop__process", caller=BEN) == after
