"""Calls that wait in the middle, and what they did before: nothing happens twice, nothing reaches somebody else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from graph.ports import Given, OutcomeUnknown, QuestionPut, SignInNeeded, Succeeded

from .conftest import CALLER, Heard, call, lines, made, until
from .test_asking import BEN, asking, given, put


async def test_after_a_link_and_a_restart_nobody_knows_what_a_call_did(tmp_path: Path) -> None:
    opened = Given(1, "accept")
    async with asking(tmp_path, "stdio") as (servers, done):
        assert isinstance(await call(servers, "shop__pay_and_paint", item="door"), SignInNeeded)
        question = put(await call(servers, "shop__pay_and_paint", item="door", answers=(opened,)))
        assert (question.number, lines(done)) == (2, ["charged for door"])
    async with asking(tmp_path, "stdio") as (servers, done):
        answers = (opened, given(question, colour="red"))
        assert isinstance(await call(servers, "shop__pay_and_paint", item="door", answers=answers), OutcomeUnknown)
        assert lines(done) == ["charged for door"]


async def test_after_a_refused_question_and_a_restart_nobody_knows_either(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio") as (servers, done):
        question = put(await call(servers, "shop__log_in_and_paint", item="door"))
    async with asking(tmp_path, "stdio") as (servers, done):
        answers = (given(question, colour="red"),)
        assert isinstance(await call(servers, "shop__log_in_and_paint", item="door", answers=answers), OutcomeUnknown)
        assert lines(done) == ["begun door"]


async def test_a_call_that_waits_is_no_other_one_that_python_takes_for_equal(tmp_path: Path) -> None:
    """Rule 12: the server has `rush: 1`, and `rush: true` was approved since."""
    async with asking(tmp_path, "stdio") as (servers, done):
        question = put(await call(servers, "shop__order", item="tea", rush=1))
        answers = (given(question, size=4),)
        assert isinstance(await call(servers, "shop__order", item="tea", rush=True, answers=answers), OutcomeUnknown)
        assert lines(done) == []


async def test_who_chose_to_try_again_gets_another_try(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio") as (servers, _):
        first = await call(servers, "shop__paint", item="door")
        second = await call(servers, "shop__paint", item="door", answers=(given(first, size=3),))
    answers = (given(first, size=3), given(second, colour="red"))
    async with asking(tmp_path, "stdio") as (servers, done):
        assert isinstance(await call(servers, "shop__paint", item="door", answers=answers), OutcomeUnknown)
        tool = await servers.find("shop__paint")
        assert tool
        again = replace(CALLER, answers=answers, over=2)
        assert await made(servers, tool, {"item": "door"}, again) == Succeeded("painted door red")
        assert lines(done) == ["paint door 3 red"]


async def test_a_late_question_of_a_call_that_was_left_is_not_put_to_somebody_else(tmp_path: Path) -> None:
    async with asking(tmp_path, "stdio", timeoutSeconds=1.5) as (servers, done):
        assert isinstance(await call(servers, "shop__deaf_order", item="tea"), OutcomeUnknown)
        ben = asyncio.create_task(call(servers, "shop__slow_order", caller=BEN, item="rum"))
        await until(lambda: "begun rum" in lines(done), "the other call")
        with done.open("a") as file:
            file.write("ask\n")
        got = await ben
        assert not isinstance(got, QuestionPut) or got.message == "Which size of rum?"
        # and over another session all is certain again
        assert put(await call(servers, "shop__order", caller=BEN, item="gin")).message == "Which size of gin?"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_link_in_what_a_tool_says_of_its_progress_is_shown_to_nobody(tmp_path: Path, transport: str) -> None:
    async with asking(tmp_path, transport) as (servers, _):
        heard = Heard()
        assert await call(servers, "shop__tell_link", heard) == Succeeded("told")
        assert [said for said, _ in heard.steps] == ["Open (link)"]
