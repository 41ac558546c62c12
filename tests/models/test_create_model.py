from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.models import ModelProblem, ModelSpec, Trouble, close_model, create_model
from graph.models.openai import create_openai_model
from graph.models.streaming import stream_message
from tests.fakes.openai_server import Reply, fake_openai
from tests.models.conftest import ONCE

ROOT = Path(__file__).parents[2]


def test_any_other_name_is_a_model_at_the_given_address() -> None:
    model = create_model(ModelSpec("qwen3", base_url="http://127.0.0.1:9/v1", timeout=7.0))
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.openai_api_base) == ("qwen3", "http://127.0.0.1:9/v1")


def test_openais_models_need_a_key() -> None:
    with pytest.raises(ModelProblem) as caught:
        create_model(ModelSpec("gpt-5.4-mini"))
    assert caught.value.trouble is Trouble.NOT_CONFIGURED
    assert "OPENAI_API_KEY" in caught.value.sentence


def test_googles_models_say_how_to_install_them() -> None:
    try:
        import langchain_google_genai  # noqa: F401
    except ImportError:
        with pytest.raises(ModelProblem, match="uv sync --extra google"):
            create_model(ModelSpec("google:gemini-3", api_key=SecretStr("k")))
    else:
        pytest.skip("the support for Google's models is installed here")


async def test_the_key_of_the_environment_goes_nowhere_it_was_not_configured_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
    async with fake_openai([Reply(text="ok")]) as server:
        model = create_model(ModelSpec("local", base_url=server.base_url))
        await stream_message(model, [HumanMessage("hi")], lambda _: None)
        assert "sk-of-somebody" not in str(server.headers)


@pytest.mark.parametrize(
    ("name", "base_url", "responses"),
    [
        ("gpt-5.4-mini", None, None),
        ("gpt-4.1", None, None),
        ("gpt-5.6-terra", None, True),
        ("gpt-6-luna", None, True),
        ("gpt-6-luna", "http://127.0.0.1:9/v1", False),
    ],
)
def test_openais_newest_models_use_the_api_that_takes_their_tools(
    name: str, base_url: str | None, *, responses: bool | None
) -> None:
    model = create_openai_model(name, base_url=base_url, api_key=SecretStr("k"), timeout=1.0)
    assert isinstance(model, ChatOpenAI)
    assert model.use_responses_api is responses
    assert model.store is (False if responses else None)


@pytest.mark.parametrize("name", ["graph.models", "graph.models.problems"])
def test_no_provider_is_imported_before_it_is_chosen(name: str) -> None:
    code = f"import sys, {name}; sys.exit(' '.join({{'langchain_core', 'openai', 'google'}} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


async def test_a_model_that_is_closed_takes_no_other_with_it() -> None:
    """Not even one at the same address: each is closed by whoever opened it."""
    async with fake_openai(lambda _: Reply(text="Hello")) as server:
        closed, kept = (create_model(ModelSpec("m", server.base_url, SecretStr("k"))) for _ in range(2))
        await close_model(closed)
        answer = await stream_message(kept, [HumanMessage("hi")], lambda _: None, retry=ONCE)
        await close_model(kept)
    assert answer.text == "Hello"
