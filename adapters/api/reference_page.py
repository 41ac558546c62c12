"""The page of the API: its document as HTML, made on the server. It has no script and asks nobody else for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 62rem; padding: 1rem 1.25rem 4rem; }
h2 { border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); margin-top: 2.5rem; }
code, pre { font: 0.9em/1.45 ui-monospace, monospace; }
pre { background: color-mix(in srgb, currentColor 7%, transparent); border-radius: 6px; overflow-x: auto;
  padding: 0.75rem; }
details { border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 8px; margin: 0.6rem 0;
  padding: 0 0.9rem; }
summary { cursor: pointer; padding: 0.6rem 0; }
summary:focus-visible, a:focus-visible { outline: 2px solid; outline-offset: 2px; }
summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; margin: 0.5rem 0; width: 100%; }
th, td { border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent); padding: 0.3rem 0.6rem 0.3rem 0;
  text-align: left; vertical-align: top; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; list-style: none; padding: 0; }
"""
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_METHODS = ("get", "post", "put", "patch", "delete")
_CODE = re.compile(r"`([^`]+)`")

Json = Mapping[str, Any]


def reference_page(document: Json) -> tuple[str, str]:
    """Returns the page of a document, and the content security policy that goes with it."""
    info, components = document["info"], document["components"]
    tags = [each["name"] for each in document["tags"]]
    sections = "".join(_section(tag, document) for tag in tags)
    links = "".join(f'<li><a href="#{_anchor("tag", tag)}">{escape(tag)}</a></li>' for tag in tags)
    bearer = components["securitySchemes"]["bearer"]["description"]
    schemas = "".join(_schema(name, schema) for name, schema in components["schemas"].items())
    body = (
        f"<h1>{escape(info['title'])}: the API</h1>"
        f"<p>{_prose(info['description'])}</p>"
        f"<p>Send <code>Authorization: Bearer …</code>. {_prose(bearer)}</p>"
        '<p>The same for programs: <a href="/api/openapi.json">openapi.json</a>.</p>'
        f'<nav aria-label="Contents"><ul>{links}<li><a href="#schemas">schemas</a></li></ul></nav>'
        f'<main>{sections}<h2 id="schemas">schemas</h2>{schemas}</main>'
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}: the API</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )
    return page, POLICY


def _section(tag: str, document: Json) -> str:
    operations = "".join(
        _operation(method, path, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item and tag in item[method].get("tags", ())
    )
    return f'<h2 id="{_anchor("tag", tag)}">{escape(tag)}</h2>{operations}'


def _operation(method: str, path: str, operation: Json) -> str:
    scopes = [scope for each in operation["security"] for scope in each.get("bearer", ())]
    needed = f"Needs the scope <code>{escape(scopes[0])}</code>." if scopes else "Needs no token."
    parts = [
        f"<summary><b>{method.upper()}</b> <code>{escape(path)}</code> {_prose(operation['summary'])}</summary>",
        f"<p>{_prose(operation.get('description', ''))} {needed}</p>",
        _parameters(operation["parameters"]),
    ]
    if "requestBody" in operation:
        for kind, each in operation["requestBody"]["content"].items():
            named = "" if kind == "application/json" else f" ({escape(kind)})"
            parts.append(f"<p>Body{named}: {_of_schema(each['schema'])}</p>")
    rows = (_response(status, response) for status, response in operation["responses"].items())
    parts.append(_table(("Status", "Answer"), rows))
    return f'<details id="{_anchor("operation", operation["operationId"])}">{"".join(parts)}</details>'


def _parameters(parameters: Iterable[Json]) -> str:
    rows = [
        (
            f"<code>{escape(each['name'])}</code>",
            escape(each["in"] + ("" if each["required"] else ", optional")),
            f"{_prose(each['description'])} {_of_schema(each['schema'])}",
        )
        for each in parameters
    ]
    return _table(("Parameter", "Where", "What"), rows) if rows else ""


def _response(status: str, response: Json) -> tuple[str, str]:
    if "$ref" in response:
        return escape(status), 'A <a href="#schema-Problem">problem</a>.'
    content = " ".join(
        f"<code>{escape(media)}</code> {_of_schema(each['schema'])}"
        for media, each in response.get("content", {}).items()
    )
    return escape(status), f"{_prose(response['description'])} {content}"


def _of_schema(schema: Json) -> str:
    """A link to a schema that has a name, or the schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{_anchor("schema", name)}">{escape(name)}</a>'
    return f"<code>{escape(json.dumps(schema, ensure_ascii=False))}</code>" if set(schema) - {"title"} else ""


def _schema(name: str, schema: Json) -> str:
    written = escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return (
        f'<details id="{_anchor("schema", name)}"><summary><code>{escape(name)}</code> '
        f"{_prose(schema.get('description', ''))}</summary><pre>{written}</pre></details>"
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _anchor(kind: str, name: str) -> str:
    return f"{kind}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}"
