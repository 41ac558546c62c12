"""What the API can do: each operation with all that routes, checks and the OpenAPI document need to know of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel

from adapters.shared.problems import Problem
from bot.identity.principal import Principal, Scope
from graph.json_values import storable

ModelT = TypeVar("ModelT", bound=BaseModel)
AnyScope = Literal["any"]
ANY_SCOPE: AnyScope = "any"
"""What the operation asks for depends on its body: it looks at the scopes itself."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request that was let in: who it acts for, and what it says, checked."""

    request: web.Request
    signed_in: Principal | None
    """`None`: nobody has to sign in for it."""
    given: BaseModel | None = None
    """The body, where the operation takes one."""
    asked: BaseModel | None = None
    """The query, where the operation takes one."""

    @property
    def principal(self) -> Principal:
        """Who it acts for."""
        assert self.signed_in is not None  # noqa: S101  # `Operation.scope` says so
        return self.signed_in

    def body(self, kind: type[ModelT]) -> ModelT:
        """The body, which the operation says is of this kind."""
        assert isinstance(self.given, kind)  # noqa: S101  # `Operation.body` names it
        return self.given

    def query(self, kind: type[ModelT]) -> ModelT:
        """The query, likewise."""
        assert isinstance(self.asked, kind)  # noqa: S101  # `Operation.query` names it
        return self.asked

    def path(self, name: str) -> str:
        """A part of the path. Raises `Problem` (404) where it is none that anything has."""
        part = self.request.match_info[name]
        if part != storable(part):
            raise Problem(404, "There’s nothing at this address.")
        return part


Handle = Callable[[ApiCall], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One of the answers that an operation may give."""

    description: str
    body: type[BaseModel] | None = None
    """`None`: none, or it is no JSON."""
    media: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header → what it says."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method at a path."""

    method: str
    path: str
    name: str
    """`operationId` of the document."""
    summary: str
    handle: Handle
    answers: Mapping[int, Answer]
    """Those that are no problems."""
    scope: Scope | AnyScope | None = "read"
    """What a token must allow; `None`: nobody has to sign in."""
    body: type[BaseModel] | None = None
    takes_file: bool = False
    """Whether its body is a file, or a form with one."""
    query: type[BaseModel] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Request header → what it is for."""
    problems: tuple[int, ...] = ()
    """Statuses of its problems, besides those that come of its scope, its body, its query and its path."""
    tag: str = ""
    description: str = ""
    waits: bool = False
    """Whether it may wait for what comes of a turn: one person has only so many of these open at a time."""

    def may_answer(self) -> set[int]:
        """All statuses that it may answer with."""
        statuses = {*self.answers, *self.problems, 500, 503}
        if self.scope is not None:
            statuses |= {401, 403, 429}
        if self.body is not None:
            statuses |= {400, 408, 413, 415, 422}
        if self.takes_file:
            statuses |= {400, 408, 413}
        if self.query is not None:
            statuses |= {422}
        if "{" in self.path:
            statuses |= {404}
        return statuses


def json_answer(body: BaseModel | Mapping[str, Any], *, status: int = 200) -> web.Response:
    """Returns a JSON answer that nobody keeps."""
    text = body.model_dump_json(by_alias=True) if isinstance(body, BaseModel) else None
    headers = {"Cache-Control": "no-store"}
    if text is not None:
        return web.Response(text=text, status=status, content_type="application/json", headers=headers)
    return web.json_response(body, status=status, headers=headers)
