"""The OpenAPI 3.1 document of the API, made of its operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, RootModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from adapters.api.models import ProblemShape
from adapters.api.operations import ANY_SCOPE, Answer, Operation
from adapters.shared.problems import CONTENT_TYPE
from adapters.shared.server_sent import EVENT_STREAM

Json = dict[str, Any]
COMPONENTS = "#/components/schemas/"
RESPONSES = "#/components/responses/"
SUFFIX = "Shape"
"""Of the names of our models of answers; it is left out where nothing else has the rest as its name."""
PARTS = {
    "id": "Its id.",
    "message_id": "Id of a message, as sending it answered.",
    "provider": "Name of a service, as in the list of providers.",
    "user_id": "`sub` of the token.",
}
"""What stands for the parts of paths."""
ABOUT = (
    "Threads, messages, approvals, questions and accounts, for programs. Every request acts for a person, and may do "
    "what that person may. Times are seconds since the epoch, UTC. What goes wrong is a problem (RFC 9457) with a "
    "reference that stands in the server's log, too."
)
BEARER = (
    "A service token (`cs_…`), a JWT of the configured issuer or of the shared secret, or one that `POST /login` gave. "
    "Its scopes are `read`, `run` and `approve`."
)
AGAIN = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}}
EVENT = {
    "type": "object",
    "description": "Each of the events.",
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string"},
        "id": {"type": "string"},
        "retry": {"type": "integer"},
    },
}
WITH_RETRY_AFTER = (429, 503)
_PART = re.compile(r"\{(\w+)(?::[^}]*)?\}")


class DocumentShape(RootModel[dict[str, Any]]):
    """An OpenAPI document."""

    model_config = ConfigDict(frozen=True)


def openapi_document(operations: Sequence[Operation], *, without_token: bool = False) -> Json:
    """Returns the document. `without_token`: requests of this machine need none."""
    names, schemas = _schemas(operations)
    paths: dict[str, Json] = {}
    statuses: set[int] = set()
    for operation in operations:
        paths.setdefault(template_of(operation.path), {})[operation.method.lower()] = {
            **_operation(operation, names),
            "security": _security(operation, without_token=without_token),
        }
        statuses |= operation.may_answer() - set(operation.answers)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Countersign", "version": "1", "description": ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in operations if each.tag)],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {f"Problem{status}": _problem(status, names) for status in sorted(statuses)},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": BEARER}},
        },
    }


def template_of(path: str) -> str:
    """A path of a route without the patterns of its parts."""
    return _PART.sub(r"{\1}", path)


Ref = Callable[[type[BaseModel], JsonSchemaMode], Json]


def _operation(operation: Operation, ref: Ref) -> Json:
    problems = operation.may_answer() - set(operation.answers)
    made: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_of_path(operation), *_of_query(operation), *_of_headers(operation)],
        "responses": {
            **{str(status): _answer(answer, ref) for status, answer in sorted(operation.answers.items())},
            **{str(status): {"$ref": f"{RESPONSES}Problem{status}"} for status in sorted(problems)},
        },
    }
    if operation.tag:
        made["tags"] = [operation.tag]
    if operation.description:
        made["description"] = operation.description
    if operation.body is not None:
        schema = ref(operation.body, "validation")
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.takes_file:
        made["requestBody"] = {"required": True, "content": _FILE}
        named = {"type": "string"}
        told = "What the file is called, where it is the body itself."
        made["parameters"].append(
            {"name": "name", "in": "query", "required": False, "description": told, "schema": named}
        )
    return made


_FILE = {
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "properties": {"file": {"type": "string", "format": "binary"}},
            "required": ["file"],
        }
    },
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
}
"""The body of an operation that takes a file."""


def _security(operation: Operation, *, without_token: bool) -> list[Json]:
    if operation.scope is None:
        return []
    return [{"bearer": [] if operation.scope == ANY_SCOPE else [operation.scope]}, *([{}] if without_token else [])]


def _of_path(operation: Operation) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PARTS.get(name, ""),
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _PART.findall(operation.path)
    ]


def _of_query(operation: Operation) -> list[Json]:
    if operation.query is None:
        return []
    schema = operation.query.model_json_schema(mode="validation")
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": each.pop("description", ""),
            "schema": _without_null(each),
        }
        for name, each in schema["properties"].items()
    ]


def _without_null(schema: Json) -> Json:
    """A query has no null: what may be left out is left out."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    others = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return {**others, **{name: value for name, value in kinds[0].items() if name != "description"}}


def _of_headers(operation: Operation) -> list[Json]:
    return [
        {"name": name, "in": "header", "required": False, "description": what, "schema": {"type": "string"}}
        for name, what in operation.headers.items()
    ]


def _answer(answer: Answer, ref: Ref) -> Json:
    made: Json = {"description": answer.description}
    if answer.body is not None:
        made["content"] = {answer.media: {"schema": ref(answer.body, "serialization")}}
    elif answer.media != "application/json":
        made["content"] = {answer.media: {"schema": EVENT if answer.media == EVENT_STREAM else {"type": "string"}}}
    if answer.headers:
        made["headers"] = {
            name: {"description": what, "schema": {"type": "string"}} for name, what in answer.headers.items()
        }
    return made


def _problem(status: int, ref: Ref) -> Json:
    made: Json = {
        "description": HTTPStatus(status).phrase,
        "content": {CONTENT_TYPE: {"schema": ref(ProblemShape, "serialization")}},
    }
    return made | ({"headers": AGAIN} if status in WITH_RETRY_AFTER else {})


def _schemas(operations: Sequence[Operation]) -> tuple[Ref, Json]:
    """A function that gives the reference to a model, and the schemas that these lead to."""
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {(ProblemShape, "serialization"): None}
    for operation in operations:
        if operation.body is not None:
            wanted[operation.body, "validation"] = None
        for answer in operation.answers.values():
            if answer.body is not None:
                wanted[answer.body, "serialization"] = None
    found, whole = models_json_schema(list(wanted), ref_template=f"{COMPONENTS}{{model}}")
    defined: Json = whole.get("$defs", {})
    renamed = {name: name.removesuffix(SUFFIX) for name in defined if name.removesuffix(SUFFIX) not in defined}
    refs: Mapping[Any, Json] = {key: _renamed(schema, renamed) for key, schema in found.items()}
    schemas = {renamed.get(name, name): _renamed(schema, renamed) for name, schema in defined.items()}
    return lambda model, mode: refs[model, mode], dict(sorted(schemas.items()))


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """The schema with references to the new names."""
    if isinstance(schema, dict):
        made = {key: _renamed(value, names) for key, value in schema.items()}
        target = made.get("$ref")
        if isinstance(target, str):
            name = target.removeprefix(COMPONENTS)
            made["$ref"] = f"{COMPONENTS}{names.get(name, name)}"
        return made
    return [_renamed(each, names) for each in schema] if isinstance(schema, list) else schema


class DocumentResources:
    """`/api/openapi.json` and `/api/docs`.

    Args:
        operations: gives all operations, these among them, once they are known.
        page: makes the page of the document, and the policy that lets browsers show it.
        without_token: requests of this machine need none.
    """

    def __init__(
        self,
        operations: Callable[[], Sequence[Operation]],
        page: Callable[[Mapping[str, Any]], tuple[str, str]],
        *,
        without_token: bool,
    ) -> None:
        self._operations = operations
        self._without_token = without_token
        self._make_page = page
        self._document: DocumentShape | None = None
        self._written = ""
        self._page: tuple[str, str] | None = None

    def operations(self) -> Sequence[Operation]:
        """What can be read."""
        return [
            Operation(
                "GET",
                "/api/openapi.json",
                "getDocument",
                "Gives this document.",
                self.document,
                {200: Answer("The document.", DocumentShape)},
                scope=None,
                tag="document",
            ),
            Operation(
                "GET",
                "/api/docs",
                "getDocs",
                "Shows this document as a page.",
                self.page,
                {200: Answer("The page.", media="text/html")},
                scope=None,
                tag="document",
            ),
        ]

    def whole(self) -> DocumentShape:
        """The document, which is made once."""
        if self._document is None:
            self._document = DocumentShape(openapi_document(self._operations(), without_token=self._without_token))
        return self._document

    async def document(self, _call: object) -> web.Response:
        """`GET /api/openapi.json`."""
        self._written = self._written or self.whole().model_dump_json()
        headers = {"Cache-Control": "no-cache"}
        return web.Response(text=self._written, content_type="application/json", headers=headers)

    async def page(self, _call: object) -> web.Response:
        """`GET /api/docs`."""
        self._page = self._page or self._make_page(self.whole().root)
        text, policy = self._page
        headers = {"Cache-Control": "no-cache", "Content-Security-Policy": policy}
        return web.Response(text=text, content_type="text/html", headers=headers)
