"""`/api/v1/operator/stop` and `/resumption`: the switch that stops everything; for operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.results import ONLY_OPERATORS, SETTLING, ResultShape, settled
from adapters.shared.problems import Problem
from bot.domain import ClickResult
from bot.halting import LONGEST_WHY
from bot.records.halts import HaltRow
from bot.safe_text import visible, visible_line
from bot.services import Services


class StopShape(Shape):
    """Whether everything is stopped."""

    model_config = ConfigDict(frozen=True, title="Stop")
    stopped: bool
    id: str = Field(description="Of this stop; empty: it is not stopped.")
    person_id: str = Field(description="Of the operator who has stopped it; empty: it is not stopped.")
    name: str
    why: str
    since: float | None

    @classmethod
    def of(cls, halt: HaltRow | None) -> StopShape:
        """As operators see it."""
        if halt is None:
            return cls(stopped=False, id="", person_id="", name="", why="", since=None)
        return cls(
            stopped=True,
            id=halt.halt_id,
            person_id=halt.person_id,
            name=visible_line(halt.name, LONGEST_LINE),
            why=visible(halt.why),
            since=halt.at,
        )


class StopForm(Body):
    """Why everything is stopped."""

    why: Annotated[str, Field(min_length=1, max_length=LONGEST_WHY, pattern=r"\S")]


class ResumptionForm(Body):
    """Why everything goes on."""

    why: Annotated[str, Field(max_length=LONGEST_WHY)] = ""
    id: str = Field("", description="Of the stop that is meant: one made since stays (409). Empty: whichever there is.")


class OperatorStop:
    """The switch, for operators."""

    def __init__(self, services: Services) -> None:
        self._console = services.console
        self._is_operator = services.conversations.is_operator

    def operations(self) -> Sequence[Operation]:
        """What can be done with it."""
        return [
            Operation(
                "GET",
                "/api/v1/operator/stop",
                "getStop",
                "Says whether everything is stopped, by whom and why; for operators.",
                self.stop_now,
                {200: Answer("Whether it is.", StopShape)},
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/stop",
                "stopEverything",
                "Ends all turns and all calls of other agents, in all processes, until they are let go on; for "
                "operators. The audit log says who did and why.",
                self.stop,
                {200: Answer("Everything is stopped.", ResultShape)},
                scope="run",
                body=StopForm,
                problems=SETTLING,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/resumption",
                "letEverythingGoOn",
                "Lets everything go on; for operators. The audit log says who did and why.",
                self.go_on,
                {200: Answer("Everything goes on.", ResultShape)},
                scope="approve",
                body=ResumptionForm,
                problems=SETTLING,
                tag="operator",
            ),
        ]

    async def stop_now(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/stop`."""
        if not await self._is_operator(call.principal.person):
            raise Problem(403, ONLY_OPERATORS)
        return json_answer(StopShape.of(self._console.halts.current))

    async def stop(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/stop`."""
        return done(await self._console.halts.stop(call.principal.person, call.body(StopForm).why))

    async def go_on(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/resumption`."""
        form = call.body(ResumptionForm)
        return done(await self._console.halts.go_on(call.principal.person, form.why, form.id))


def done(result: ClickResult | None) -> web.Response:
    """What came of what an operator does; `None`: it was none. Raises `Problem`."""
    if result is None:
        raise Problem(403, "Only operators can do this.")
    return json_answer(settled(result))
