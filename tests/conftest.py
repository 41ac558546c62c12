"""For every test: how much is tried of what is random, and with which seed.

`make test` tries a few examples and kills, the same ones on every run: that it turns red is the doing of the change
under test. To find new failures is for `make test-long`, which tries many, with a seed of its own each time.
"""

from __future__ import annotations

import gc
import os
import shlex
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from execnet import XSpec

from tests.support import forks

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium

COLLECTED = pytest.StashKey[forks.ForkServer]()
"""What forks the workers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("countersign")
    group.addoption("--long", action="store_true", help="run what takes long too, and try more of what is random")
    group.addoption("--postgres", action="store_true", help="keep records in PostgreSQL")
    group.addoption("--seed", type=int, default=20261121, help="for kills at random moments; the first round's")
    group.addoption("--rounds", type=int, default=1, help="how often to kill at random moments, each with its own seed")


def pytest_configure(config: pytest.Config) -> None:
    # Reading the 150 certificates that the machine trusts takes 0.04 s of each HTTP client; no test calls anybody whom
    # it did not start.
    os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("support") / "nobody.pem")
    if config.getoption("--postgres"):
        start_postgres(config)
    if hands_tests_out(config):
        start_servers(config)


def hands_tests_out(config: pytest.Config) -> bool:
    """Whether this process runs no tests itself."""
    return bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")


def start_postgres(config: pytest.Config) -> None:
    """Start the one that all processes of the tests use, in the first of them."""
    from tests.support import postgres_cluster

    if not postgres_cluster.is_used():
        config.add_cleanup(postgres_cluster.start())


def start_servers(config: pytest.Config) -> None:
    """Start what workers and processes of the tests are forked from, in the process that hands tests out."""
    config.add_cleanup(forks.share())
    # What is measured has to be imported while it is measured.
    if config.invocation_params.dir == forks.ROOT and not config.getoption("cov_source", None):
        config.stash[COLLECTED] = forks.collected(config.invocation_params.args)
        config.add_cleanup(config.stash[COLLECTED].end)


@pytest.hookimpl(trylast=True)  # from here on it is measured what is imported and run (`make coverage`)
def pytest_sessionstart(session: pytest.Session) -> None:
    if not hands_tests_out(session.config):
        prepare_for_tests(session.config)


def prepare_for_tests(config: pytest.Config) -> None:
    """Set what all tests have in common, in a process that runs tests."""
    # Until all tests are collected, nearly nothing that is made is garbage: looking for some takes a quarter of it all.
    gc.disable()
    # Imported here, because they take two seconds, which the process that hands tests out need not wait.
    import structlog
    from hypothesis import settings

    from bot.identity import users
    from graph import card_facts
    from tests.support.examples import FEW, MANY

    # What a card would show is left out after two seconds, and a machine that runs many tests stands still for longer.
    card_facts.CARD_SECONDS = 30.0
    # To hash a password is meant to take long, and who knows one in a test proves the same with a cheap hash.
    users.HASH_COST = users.HashCost(memory_kib=8, rounds=1, lanes=1)
    # A coloured traceback with every local variable takes half a second to draw, and nobody reads it here.
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
    settings.load_profile(MANY if config.getoption("--long") else FEW)


def pytest_xdist_setupnodes(config: pytest.Config, specs: list[XSpec]) -> None:
    if COLLECTED in config.stash:
        for spec in specs:
            spec.python = shlex.join(config.stash[COLLECTED].python())


def pytest_xdist_auto_num_workers() -> int:
    # Tests wait for servers and browsers more than they compute: with one worker a core, the cores idle half the time.
    return (os.cpu_count() or 2) * 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from tests.support import postgres_cluster

    skipped = {}
    if not config.getoption("--long"):
        skipped["long"] = "only in make test-long"
    if postgres_cluster.is_used():
        skipped["sqlite"] = "about SQLite's own machinery"
    else:
        skipped["postgres"] = "only with --postgres"
    for item in items:
        for name, reason in skipped.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))

    if workers := getattr(config, "workerinput", {}).get("workercount"):
        items[:] = dealt(items, workers)


BEGUN_FIRST: tuple[Callable[[pytest.Item], bool], ...] = (
    lambda item: item.nodeid.startswith("tests/replicas/"),
    lambda item: item.get_closest_marker("kills") is not None,
    lambda item: item.get_closest_marker("browser") is not None,
)
"""Tests that take longest, each kind for workers of its own to begin with: those of one kind share a PostgreSQL or a
browser, which takes seconds to start, and wait while others compute. What is left for the end, when workers take over
from each other, is short."""


def dealt(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """The same tests so that some workers, each of which is given an equal stretch of them first, begin with what takes
    long.

    Args:
        items: in the order in which neighbours share what was started for them.
        workers: how many there are.
    """
    kinds: list[list[pytest.Item]] = [[] for _ in BEGUN_FIRST]
    others: list[pytest.Item] = []
    for item in items:
        kind = next((kind for is_of, kind in zip(BEGUN_FIRST, kinds, strict=True) if is_of(item)), others)
        kind.append(item)
    begins: list[list[pytest.Item]] = [[] for _ in range(workers)]
    shares = max(1, workers // (len(kinds) + 1))
    for number, kind in enumerate(kinds):
        for share in range(shares):
            begins[(number * shares + share) % workers] += kind[share::shares]
    ordered: list[pytest.Item] = []
    taken = 0
    for number, first in enumerate(begins):
        stretch = (len(items) - len(ordered)) // (workers - number)
        fill = max(0, stretch - len(first))
        ordered += [*first, *others[taken : taken + fill]]
        taken += fill
    return [*ordered, *others[taken:]]


def pytest_collection_finish() -> None:
    # Ten thousand tests and what they import are seven hundred thousand objects that stay: looking through them takes
    # 0.4 s of each full collection.
    gc.collect()
    gc.freeze()
    # What is looked through hundreds of times each second, as usual, takes a twentieth of all tests.
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, rounds = (metafunc.config.getoption(name) for name in ("--seed", "--rounds"))
        metafunc.parametrize("seed", range(first, first + rounds))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Chromium]:
    """A real browser: starting one takes two seconds of processor time, so all tests of a process share it. It lives
    on one event loop, hence the session's."""
    from tests.web.browsing import CHROMIUM, WITHOUT_CHROMIUM, chromium

    if CHROMIUM is None:
        pytest.skip(WITHOUT_CHROMIUM)
    async with chromium() as browser:
        yield browser


@pytest.fixture
def tries(pytestconfig: pytest.Config) -> Callable[[int, int], int]:
    """How often to try something random: `tries(few, many)`."""
    return lambda few, many: many if pytestconfig.getoption("--long") else few
