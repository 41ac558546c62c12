"""One run: the set, held with the product and one model."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import aiohttp

from bot.settings import DEMO, OPENAI, Settings, plain
from evals.conversations import Conversation, EvalSet, Injection
from evals.data import ROOT, DataError, opened_data
from evals.playing import ApiError, Player, utc_now
from evals.product import started_product
from evals.reading import SET
from evals.recording import (
    ANSWERS_WITHIN,
    Recorder,
    Recording,
    RecordingError,
    Replayer,
    answering_server,
    read_recording,
)
from evals.results import ConversationResult, InjectionResult, RunResult, conversation_result, injection_result
from evals.scoring import InjectionScore, Score, score, score_injection

Begin = Callable[[str], datetime]
"""Told which conversation begins; says from which moment its days are counted."""


@dataclass(frozen=True, slots=True)
class AskedModel:
    """The model that is tried.

    Attributes:
        variables: with which the product is started, so that it asks this model.
        begin: called before each conversation.
        recorded: the conversations that there are answers for; `None`: any.
    """

    name: str
    router: str
    variables: Mapping[str, str]
    begin: Begin
    recorded: frozenset[str] | None = None
    recording: str = ""


def variables_of(settings: Settings) -> Mapping[str, str]:
    """The variables by which the product asks the model of these settings."""
    given = {
        "LLM_MODEL": settings.model_name,
        "ROUTER_MODEL": settings.router_model,
        "OPENAI_API_KEY": plain(settings.openai_api_key),
        "OPENAI_BASE_URL": settings.openai_base_url,
        "ANTHROPIC_API_KEY": plain(settings.anthropic_api_key),
        "ANTHROPIC_BASE_URL": settings.anthropic_base_url,
        "GOOGLE_API_KEY": plain(settings.google_api_key),
        "GOOGLE_BASE_URL": settings.google_base_url,
        "MODEL_TIMEOUT_SECONDS": str(settings.model_timeout_seconds),
        "MODEL_RETRIES": str(settings.model_retries),
    }
    return {name: value for name, value in given.items() if value}


@asynccontextmanager
async def configured(settings: Settings) -> AsyncIterator[AskedModel]:
    """The model of the settings itself."""
    router = settings.router_model or settings.model_name
    yield AskedModel(settings.model_name, router, variables_of(settings), lambda _name: utc_now())


@asynccontextmanager
async def recorded(settings: Settings, file: Path) -> AsyncIterator[AskedModel]:
    """The model of the settings, whose answers are written into a file at the end. Raises `RecordingError`."""
    name, router = settings.model_name, settings.router_model or settings.model_name
    for model in (name, router):
        if model == DEMO or model.startswith(("anthropic:", "google:")):
            raise RecordingError(f"{model} cannot be recorded: only models at OPENAI_BASE_URL can")
    recording = Recording(name, router)
    timeout = aiohttp.ClientTimeout(total=ANSWERS_WITHIN)
    async with aiohttp.ClientSession(timeout=timeout) as http:
        recorder = Recorder(settings.openai_base_url or OPENAI, http, recording)

        def begin(conversation: str) -> datetime:
            now = utc_now()
            recorder.begin(conversation, now)
            return now

        try:
            async with answering_server(recorder) as url:
                yield AskedModel(name, router, {**variables_of(settings), "OPENAI_BASE_URL": url}, begin)
        finally:
            write_file(file, recording.written())  # what was paid for is not lost where the run ends early


@asynccontextmanager
async def replayed(file: Path) -> AsyncIterator[AskedModel]:
    """What is recorded in a file. Raises `RecordingError`."""
    recording = read_recording(file)
    replayer = Replayer(recording)

    def begin(conversation: str) -> datetime:
        now = recording.conversations[conversation].now
        replayer.begin(conversation, now)
        return now

    async with answering_server(replayer) as url:
        variables = {
            "LLM_MODEL": recording.model,
            "ROUTER_MODEL": recording.router,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": url,
            "MODEL_RETRIES": "0",
        }
        names = frozenset(recording.conversations)
        yield AskedModel(recording.model, recording.router, variables, begin, names, file.name)


async def run(
    model: AskedModel,
    tried: EvalSet,
    say: Callable[[str], None],
    policies: Path = SET,
    python: Sequence[str] = (sys.executable,),
) -> RunResult:
    """Hold all conversations, one after the other. Raises `StartError`.

    Args:
        say: told how it goes, a line each.
        policies: the folder with the policy of the set.
        python: what begins the command lines of the processes that are started.
    """
    conversations: list[ConversationResult] = []
    injections: list[InjectionResult] = []
    at = utc_now().isoformat()
    timeout = aiohttp.ClientTimeout(total=ANSWERS_WITHIN)
    with tempfile.TemporaryDirectory(prefix="countersign-evals-") as name:
        folder = Path(name)
        async with (
            started_product(folder, policies, model.variables, python) as product,
            opened_data(folder, python) as data,
            aiohttp.ClientSession(timeout=timeout) as http,
        ):
            player = Player(product, http, data)
            for number, conversation in enumerate(tried.conversations, 1):
                if model.recorded is None or conversation.name in model.recorded:
                    found = await _held(player, conversation, f"person{number}", model.begin)
                    conversations.append(conversation_result(conversation.name, conversation.fingerprint, found))
                    say(f"{conversation.name}: {'right' if found.passed else ' '.join(found.problems)}")
            for number, injection in enumerate(tried.injections, 1):
                if model.recorded is None or injection.name in model.recorded:
                    came = await _exposed(player, injection, f"reader{number}", model.begin)
                    injections.append(injection_result(injection.name, injection.fingerprint, came))
                    say(f"{injection.name}: {_in_words(came)}")
    return RunResult(
        tried.fingerprint, model.name, model.router, commit(), at, model.recording, conversations, injections
    )


async def _held(player: Player, conversation: Conversation, person: str, begin: Begin) -> Score:
    try:
        held = await player.hold(conversation, person, begin(conversation.name))
    except (ApiError, DataError, aiohttp.ClientError, TimeoutError) as error:
        empty = score(conversation, [], 0)
        return Score(empty.counts, [f"It could not be held: {error or type(error).__name__}"])
    return score(conversation, held.observed, held.tokens)


async def _exposed(player: Player, injection: Injection, person: str, begin: Begin) -> InjectionScore:
    try:
        return score_injection(injection, await player.expose(injection, person, begin(injection.name)))
    except (ApiError, DataError, aiohttp.ClientError, TimeoutError) as error:
        return InjectionScore(False, [], [], f"It could not be tried: {error or type(error).__name__}")


def _in_words(came: InjectionScore) -> str:
    read = came.trouble or ("read" if came.seen else "not read")
    return f"{read}, {'proposed ' + ', '.join(came.proposed) if came.proposed else 'nothing proposed'}"


def write_file(file: Path, text: str) -> None:
    """Write a file, and make its folder where that is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def only(tried: EvalSet, names: Sequence[str]) -> EvalSet:
    """Those of these names. Raises `ValueError` with a sentence where there is none of a name."""
    known = {each.name for each in tried.conversations} | {each.name for each in tried.injections}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no conversation and no injection with the name “{unknown[0]}”")
    return EvalSet(
        [each for each in tried.conversations if each.name in names],
        [each for each in tried.injections if each.name in names],
        tried.fingerprint,
    )


def commit() -> str:
    """Of the project, shortened; with a `+` where files were changed since. Empty: it is not known."""
    try:
        head, changed = (
            subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603, S607  # our own arguments; git is where PATH says
            for arguments in (["rev-parse", "--short=8", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head}+" if changed else head
