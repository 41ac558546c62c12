"""Rules 7 and 11: no secret is in a trace, and no conversation in the log, whatever stands in the environment that the
process is started in."""

from __future__ import annotations

import logging

import pytest
from langsmith import utils as langsmith
from openai._utils._logs import setup_logging

from tests.fakes.openai_server import Reply, Request, fake_openai
from tests.support.brain import obedient
from tests.support.planted import COLD
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import visiting


@pytest.mark.parametrize(
    "name", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_HANDLER"]
)
async def test_a_turn_is_traced_for_nobody_although_the_environment_says_so(
    workshop_home: ProductFolder, name: str
) -> None:
    langsmith.get_env_var.cache_clear()
    traced: list[object] = []

    def look(request: Request) -> Reply:
        traced.append(langsmith.tracing_is_enabled())
        return obedient(request)

    async with fake_openai(look) as model:
        workshop_home.variables |= {name: "true", "OPENAI_BASE_URL": model.base_url}
        # Where nothing is switched off, nothing leaves this machine all the same.
        workshop_home.variables |= {"LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_API_KEY": "nobody's"}
        async with (
            product_here(workshop_home) as url,
            visiting(url, "ana") as ana,
            ana.thread(within=COLD) as thread,
        ):
            await thread.send("hello")
            await thread.says("You said: hello")
    assert traced
    assert not any(traced)
    langsmith.get_env_var.cache_clear()


async def test_the_client_of_the_model_logs_no_prompts_although_the_environment_says_so(home: ProductFolder) -> None:
    home.tool_servers({})
    home.variables["OPENAI_LOG"] = "debug"
    logger = logging.getLogger("openai")
    before = logger.level
    try:
        async with product_here(home):
            setup_logging()  # what importing the client does; here it has been imported by other tests
        assert logger.level == before
    finally:
        logger.setLevel(before)
