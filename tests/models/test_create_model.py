from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from graph.models import PROVIDERS, ModelProblem, ModelSpec, Trouble, close_model, create_model, provider_of
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


@pytest.mark.parametrize(("prefix", "module"), PROVIDERS.items())
def test_a_model_whose_extra_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, prefix: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as where it is not installed
    with pytest.raises(ModelProblem) as caught:
        create_model(ModelSpec(f"{prefix}:any", api_key=SecretStr("k")))
    assert caught.value.trouble is Trouble.NOT_CONFIGURED
    assert f"LLM_MODEL is {prefix}:any" in caught.value.sentence
    assert f"`uv sync --extra {prefix}`" in caught.value.sentence


@pytest.mark.imports
def test_the_start_ends_with_what_to_install_where_an_extra_is_missing(tmp_path: Path) -> None:
    """In an environment that has everything but the extra. Each of them: see above."""
    prefix, module = next(iter(PROVIDERS.items()))
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not installed.name.startswith((module, "__pycache__")) and installed.suffix != ".pth":
            (tmp_path / installed.name).symlink_to(installed)
    for needed in ("mcp.json", "policies"):
        (tmp_path / needed).symlink_to(ROOT / needed)
    variables = {
        "LLM_MODEL": f"{prefix}:any",
        f"{prefix.upper()}_API_KEY": "sk-nobody-reads",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [sys.executable, "-S", ROOT / "app.py"],
        cwd=tmp_path,
        env=variables | {"PYTHONPATH": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert f"LLM_MODEL is {prefix}:any" in done.stderr
    assert f"`uv sync --extra {prefix}`" in done.stderr
    assert "sk-nobody-reads" not in done.stdout + done.stderr


@pytest.mark.parametrize("prefix", PROVIDERS)
def test_a_service_of_its_own_needs_a_key_or_an_address(prefix: str) -> None:
    with pytest.raises(ModelProblem, match=f"there is no {prefix.upper()}_API_KEY"):
        create_model(ModelSpec(f"{prefix}:any"))


def test_only_these_prefixes_name_another_service() -> None:
    assert provider_of("anthropic:claude") == "anthropic"
    assert [provider_of(name) for name in ("qwen3:8b", "anthropic", "anthropic/claude", "demo")] == [None] * 4


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


ALONE = """
import json, os, sys
import graph.models.problems
providers = {"langchain_core", "openai", "anthropic", "google", "langchain_google_genai"}
unchosen = sorted(providers & sys.modules.keys())
import langchain_core.language_models.chat_models
from pydantic import SecretStr
from graph.models import ModelSpec, create_model
unchosen += sorted(providers & sys.modules.keys() - {"langchain_core"})
print(json.dumps(unchosen), flush=True)
for model in sys.argv[1:]:
    if os.fork() == 0:
        create_model(ModelSpec(model, api_key=SecretStr("k")))
        print(json.dumps(sorted(providers & sys.modules.keys())), flush=True)
        os._exit(0)
    os.wait()
"""
"""What all providers have in common is imported once; each is chosen in a process of its own."""


@pytest.mark.imports
def test_no_provider_is_imported_before_it_is_chosen_and_then_it_is_alone() -> None:
    chosen = {
        "anthropic:claude-sonnet-5": ["anthropic", "langchain_core"],
        "google:gemini-3-flash": ["google", "langchain_core", "langchain_google_genai"],
        "gpt-5.4-mini": ["langchain_core", "openai"],
    }
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *chosen], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, [json.loads(line) for line in done.stdout.splitlines()]) == (
        0,
        [[], *chosen.values()],
    ), done.stderr


async def test_a_model_that_is_closed_takes_no_other_with_it() -> None:
    """Not even one at the same address: each is closed by whoever opened it."""
    async with fake_openai(lambda _: Reply(text="Hello")) as server:
        closed, kept = (create_model(ModelSpec("m", server.base_url, SecretStr("k"))) for _ in range(2))
        await close_model(closed)
        answer = await stream_message(kept, [HumanMessage("hi")], lambda _: None, retry=ONCE)
        await close_model(kept)
    assert answer.text == "Hello"
