from __future__ import annotations

import email.utils
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph.models.problems import ModelProblem, Trouble, explain_model_error
from graph.models.streaming import stream_message
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import KEY, ONCE, QUICK, Connect


def error(**fields: Any) -> dict[str, Any]:
    return fields


TABLE = [
    (Reply(status=401, error=error(code="invalid_api_key", message=f"Incorrect key: {KEY}")), Trouble.WRONG_KEY),
    (Reply(status=401, error="nope"), Trouble.WRONG_KEY),
    (Reply(status=403, error=error(code="unsupported_country_region_territory")), Trouble.NO_ACCESS),
    (Reply(status=403, error=error(code="model_not_found")), Trouble.UNKNOWN_MODEL),
    (Reply(status=404, error=error(code="model_not_found")), Trouble.UNKNOWN_MODEL),
    (Reply(status=404, error="<html>not here</html>"), Trouble.UNKNOWN_MODEL),
    (Reply(status=429, error=error(code="insufficient_quota", type="insufficient_quota")), Trouble.QUOTA_GONE),
    (Reply(status=402, error=error(message="pay")), Trouble.QUOTA_GONE),
    (Reply(status=429, error=error(code="rate_limit_exceeded", type="tokens")), Trouble.RATE_LIMITED),
    (Reply(status=429, error="slow down"), Trouble.RATE_LIMITED),
    (Reply(status=400, error=error(code="context_length_exceeded")), Trouble.TOO_LONG),
    (Reply(status=400, error=error(message="Your prompt is too long")), Trouble.TOO_LONG),
    (Reply(status=413, error="too large"), Trouble.TOO_LONG),
    (Reply(status=400, error=error(code="content_filter")), Trouble.FILTERED),
    (Reply(text="", finish_reason="content_filter"), Trouble.FILTERED),
    (Reply(status=400, error=error(message="temperature is not supported")), Trouble.REFUSED),
    (Reply(status=422, error=error(message="what")), Trouble.REFUSED),
    (Reply(status=408, error=""), Trouble.TIMED_OUT),
    (Reply(status=504, error="gateway"), Trouble.TIMED_OUT),
    (Reply(status=500, error=error(type="server_error")), Trouble.SERVER_FAILED),
    (Reply(status=502, error="<html>bad gateway</html>"), Trouble.SERVER_FAILED),
    (Reply(raw='data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'), Trouble.SERVER_FAILED),
    (Reply(raw='data: {"error": {"message": "something new"}}\n\n'), Trouble.SERVER_FAILED),
    (Reply(raw='data: {"error": {"message": "m", "code": "insufficient_quota"}}\n\n'), Trouble.QUOTA_GONE),
    (Reply(raw="data: {broken\n\n"), Trouble.MALFORMED),
    (Reply(raw='data: {"choices": null}\n\n'), Trouble.MALFORMED),
    (Reply(raw='data: {"choices": [{"index": 0}]}\n\n'), Trouble.MALFORMED),
    (Reply(raw="<html>a proxy's sign-in page</html>"), Trouble.MALFORMED),
    (Reply(raw=""), Trouble.MALFORMED),
    (Reply(text=""), Trouble.MALFORMED),
    (Reply(text="x", drop_after=1), Trouble.BROKE_OFF),
]


@pytest.mark.parametrize(("reply", "trouble"), TABLE, ids=lambda value: getattr(value, "value", None))
async def test_each_failure_of_a_service_has_its_own_sentence(connect: Connect, reply: Reply, trouble: Trouble) -> None:
    async with fake_openai([reply]) as server:
        with pytest.raises(ModelProblem) as caught:
            await stream_message(connect(server), [HumanMessage("hi")], lambda _: None, retry=ONCE)
        assert caught.value.trouble is trouble
        assert caught.value.sentence == str(caught.value) == ModelProblem(trouble).sentence
        assert KEY not in caught.value.sentence
        assert server.base_url not in caught.value.sentence


async def test_an_empty_account_is_not_asked_again(connect: Connect) -> None:
    async with fake_openai(lambda _: Reply(status=429, error=error(code="insufficient_quota"))) as server:
        with pytest.raises(ModelProblem):
            await stream_message(connect(server), [HumanMessage("hi")], lambda _: None, retry=QUICK)
        assert len(server.requests) == 1


def test_every_trouble_has_one_sentence_of_its_own() -> None:
    sentences = [ModelProblem(trouble).sentence for trouble in Trouble]
    assert len(set(sentences)) == len(Trouble)
    assert all(sentence.endswith(".") and "\n" not in sentence for sentence in sentences)


def test_a_problem_that_was_explained_stays_the_same() -> None:
    problem = ModelProblem(Trouble.QUOTA_GONE)
    assert explain_model_error(problem) is problem


class _Answer:
    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class _Busy(Exception):  # noqa: N818
    status_code = 429

    def __init__(self, **headers: str) -> None:
        self.response = _Answer(**headers)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_time_a_service_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert explain_model_error(_Busy(**headers)).retry_after == seconds


def test_the_time_may_be_given_as_a_date() -> None:
    after = explain_model_error(_Busy(retry_after=email.utils.formatdate(time.time() + 20, usegmt=True))).retry_after
    assert after is not None
    assert 15 < after <= 20


@given(text=st.text(max_size=40))
def test_any_header_and_any_exception_is_explained(text: str) -> None:
    explain_model_error(_Busy(retry_after=text))
    for made in (ValueError(text), OSError(text), RuntimeError(text), TimeoutError(text), KeyError(text)):
        assert isinstance(explain_model_error(made), ModelProblem)
