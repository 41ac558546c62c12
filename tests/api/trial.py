"""Requests that schemathesis makes up from the document of the API, and what it has against the answers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.generation import GenerationMode

from tests.api.serving import ANA, BEN, ServedApi
from tests.api.things import Things
from tests.support.examples import examples

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "/api/v1/threads/{id}/events"
"""Goes on until the client goes away, where there is such a thread."""
LONGEST_ADDRESS = 8_000
"""Characters. What is longer gets no answer of the API: the HTTP server takes no line of more than 8190 bytes."""
MADE_UP, WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE


class Trial:
    """Asks for everything, with ids that are made up and with those of what there is."""

    def __init__(self, served: ServedApi, things: Things, document: dict[str, Any]) -> None:
        self._url = served.url
        self._tokens = [served.tokens.of(person) for person in (ANA, BEN)]
        self._things = things
        self._schema = schemathesis.openapi.from_dict(document)
        self._asked = 0
        self.seen: Counter[str] = Counter()

    def run(self) -> None:
        """Ask; raises what schemathesis finds."""
        with requests.Session() as session:
            for found in self._schema.get_all_operations():
                for mode in (MADE_UP, WRONG):
                    self._try(found.ok(), mode, session)

    def _try(self, operation: Any, mode: GenerationMode, session: requests.Session) -> None:
        @settings(max_examples=examples(2), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def conforms(case: Any) -> None:
            self._asked += 1
            if self._asked % 2 and operation.path != ENDLESS:
                case.path_parameters |= self._things.of_path(operation.path)
            token = self._tokens[self._asked // 2 % 2]
            sent = {"Authorization": f"Bearer {token}"}
            response = case.call(base_url=self._url, session=session, headers=sent, timeout=20)
            assume(len(response.request.url) <= LONGEST_ADDRESS)
            self.seen[f"{operation.label} {response.status_code}"] += 1
            case.validate_response(response, checks=CHECKS)

        with suppress(Unsatisfiable):  # nothing of it could be wrong
            conforms()
