"""What the settings want masked is masked where it is shown and logged."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from bot.card_masks import log_masker_of, masked, masker_of
from bot.domain import Notice, OutcomeView
from bot.logs import configure_logs
from bot.settings import Settings, SettingsError, load_settings
from tests.audit.calls import TOKEN
from tests.support.views import an_approval

GUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    """Gives the process its logging back as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("REDACT_PATTERNS", "REDACT_GUIDS", "REDACT_EMAILS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def settings(variables: pytest.MonkeyPatch, **values: str) -> Settings:
    for name, value in values.items():
        variables.setenv(name, value)
    return load_settings(None)


def outcome(**arguments: Any) -> OutcomeView:
    return OutcomeView("o1", "open", "workshop", "make", "", arguments, "Ana", "web:ana")


def test_tokens_are_masked_without_any_setting(variables: pytest.MonkeyPatch) -> None:
    assert TOKEN not in masker_of(settings(variables)).mask(f"it is {TOKEN}.")


def test_patterns_of_ones_own_are_masked_by_their_kind(variables: pytest.MonkeyPatch) -> None:
    masker = masker_of(settings(variables, REDACT_PATTERNS='{"badge": "B-[0-9]{6}"}'))
    assert masker.mask("badge B-123456 of Ana") == "badge [secret: badge] of Ana"


def test_ids_and_addresses_are_masked_only_where_that_is_wanted(variables: pytest.MonkeyPatch) -> None:
    text = f"{GUID} of ana@example.com"
    assert masker_of(settings(variables)).mask(text) == text
    wanted = settings(variables, REDACT_GUIDS="true", REDACT_EMAILS="true")
    assert masker_of(wanted).mask(text) == "[secret: guid] of [secret: e-mail address]"
    assert log_masker_of(wanted).mask(text) == text  # people and threads are found by them there


def test_secrets_of_the_settings_and_of_the_process_are_masked(variables: pytest.MonkeyPatch) -> None:
    masker = masker_of(settings(variables, WEB_PASSWORD="open-sesame-17"), ["handed-to-a-server"])
    assert masker.mask("open-sesame-17, handed-to-a-server") == "[secret: known value], [secret: known value]"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("B-[0-9]+", "is not JSON"),
        ('["B-[0-9]+"]', "is not an object"),
        ('{"badge": 3}', "is not an object"),
        ('{"badge": "B-("}', "cannot be used"),
        ('{"badge": ".*"}', "cannot be used"),
        ('{"BADGE!": "B-[0-9]+"}', "cannot be used"),
    ],
)
def test_a_pattern_that_is_none_stops_the_start_with_the_variable(
    variables: pytest.MonkeyPatch, value: str, said: str
) -> None:
    with pytest.raises(SettingsError, match=f"REDACT_PATTERNS: .*{said}"):
        settings(variables, REDACT_PATTERNS=value)


def test_arguments_are_shown_without_their_secrets_and_all_else_as_it_is(variables: pytest.MonkeyPatch) -> None:
    masker = masker_of(settings(variables))
    shown = masked(outcome(what=["lamp", {"note": f"use {TOKEN}"}], count=3), masker)
    (lamp, note), count = shown.arguments["what"], shown.arguments["count"]
    assert (lamp, count, shown.masks) == ("lamp", 3, 1)
    assert re.fullmatch(r"use \[secret: github token, 40 characters, #[0-9a-f]{8}\]", note["note"])
    assert masked(Notice("hello"), masker) == Notice("hello")


def test_what_people_wrote_with_a_decision_is_shown_without_its_secrets(variables: pytest.MonkeyPatch) -> None:
    """A note is typed for the assistant, and everybody who sees the card reads it."""
    view = an_approval(status="approved", notes=(("Ben", f"use {TOKEN}"), ("Cem", "in red")), reason=f"not {TOKEN}")
    shown = masked(view, masker_of(settings(variables)))
    (of_ben, of_cem) = shown.notes
    assert re.fullmatch(r"use \[secret: github token, 40 characters, #[0-9a-f]{8}\]", of_ben[1])
    assert (of_ben[0], of_cem, shown.masks) == ("Ben", ("Cem", "in red"), 0)
    assert TOKEN not in shown.reason


@pytest.mark.parametrize("form", ["json", "console"])
def test_logs_are_written_without_what_is_masked(variables: pytest.MonkeyPatch, form: Any) -> None:
    stream = io.StringIO()
    masker = log_masker_of(settings(variables, REDACT_PATTERNS='{"badge": "B-[0-9]{6}"}'))
    configure_logs(form=form, masker=masker, stream=stream)
    structlog.get_logger("test").warning("seen", badge="B-123456", nested={"token": TOKEN})
    assert "B-123456" not in stream.getvalue()
    assert TOKEN not in stream.getvalue()
    assert "[secret: badge]" in stream.getvalue()
