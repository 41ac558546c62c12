"""The OpenAPI document and its page say what the API does."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from tests.api.serving import ApiUser, ServedApi


async def test_the_document_is_valid_openapi_3_1(served: ServedApi, nobody: ApiUser) -> None:
    answer = await nobody.ask("GET", "/api/openapi.json")
    assert (answer.status, answer.body["openapi"]) == (200, "3.1.0")
    validate(answer.body, cls=OpenAPIV31SpecValidator)
    described = {(method, path) for path, item in answer.body["paths"].items() for method in item}
    assert described == {(each.method.lower(), each.path) for each in served.operations}
    names = [each.name for each in served.operations]
    assert len(names) == len(set(names))


async def test_every_answer_that_is_no_stream_has_a_schema(nobody: ApiUser) -> None:
    document = (await nobody.ask("GET", "/api/openapi.json")).body
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for status, response in operation["responses"].items():
                content = response.get("content") or document["components"]["responses"][f"Problem{status}"]["content"]
                assert all("schema" in each for each in content.values()), (method, path, status)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links |= {value or "" for name, value in attrs if name in {"href", "src"}}
        self.ids |= {value or "" for name, value in attrs if name == "id"}


async def test_the_page_shows_every_operation_and_asks_nobody_else_for_anything(
    served: ServedApi, nobody: ApiUser
) -> None:
    answer = await nobody.ask("GET", "/api/docs")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert re.match(r"default-src 'none'; style-src 'sha256-\S+';", answer.headers["Content-Security-Policy"])
    tags = _Tags()
    tags.feed(answer.body)
    assert not tags.seen & {"script", "img", "iframe", "link", "form"}
    assert tags.links - {"/api/openapi.json"} <= {f"#{each}" for each in tags.ids}
    assert {f"operation-{each.name}" for each in served.operations} <= tags.ids
