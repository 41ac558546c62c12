"""Answers that say what went wrong: problems as RFC 9457 has them, each with a reference that the log repeats."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

from aiohttp import web

CONTENT_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818  # an answer
    """Ends a request with a status and a sentence; nothing has been changed.

    Args:
        status: of HTTP.
        detail: what is wrong and what to do, for whoever wrote the client.
        errors: parameter or path within the body → what is wrong with it.
        retry_after: seconds after which trying again makes sense; `None`: at no particular time.
        more: further members of the problem.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = dict(errors or {})
        self.retry_after = retry_after
        self.more = dict(more or {})


def new_reference() -> str:
    """Returns what whoever sees a problem can quote, and an operator can search the log for."""
    return secrets.token_hex(4)


def problem_answer(problem: Problem, reference: str) -> web.Response:
    """Returns the answer."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "reference": reference,
        **({"errors": problem.errors} if problem.errors else {}),
        **problem.more,
    }
    answer = web.json_response(body, status=problem.status, content_type=CONTENT_TYPE)
    if problem.retry_after is not None:
        answer.headers["Retry-After"] = str(max(1, ceil(problem.retry_after)))
    if problem.status == HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="countersign"'
    return answer
