from __future__ import annotations

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
@pytest.mark.imports
def test_the_start_ends_with_what_to_install_where_an_extra_is_missing(
    tmp_path: Path, prefix: str, module: str
) -> None:
    """In an environment that has everything but the extra."""
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


@pytest.mark.parametrize("name", ["graph.models", "graph.models.problems"])
@pytest.mark.imports
def test_no_provider_is_imported_before_it_is_chosen(name: str) -> None:
    providers = {"langchain_core", "openai", "google", "anthropic"}
    code = f"import sys, {name}; sys.exit(' '.join({providers!r} & set(sys.modules)) or 0)"
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


@pytest.mark.parametrize(
    ("model", "others"),
    [
        ("anthropic:claude-sonnet-5", {"openai", "langchain_google_genai"}),
        ("google:gemini-3-flash", {"openai", "anthropic"}),
        ("gpt-5.4-mini", {"anthropic", "langchain_google_genai"}),
    ],
)
@pytest.mark.imports
def test_a_provider_is_imported_alone(model: str, others: set[str]) -> None:
    code = f"""
import sys
from pydantic import SecretStr
from graph.models import ModelSpec, create_model
create_model(ModelSpec({model!r}, api_key=SecretStr("k")))
sys.exit(" ".join({others!r} & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
