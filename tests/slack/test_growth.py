"""Rule 13: what is remembered of threads does not grow with every thread that there ever was."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.recovery import LOOK_BACK, Orphans
from adapters.slack.outbound.status import MOST_MET, StatusLines, StatusPace


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class NothingThere:
    """Slack, where every thread is empty and everything can be set."""

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, *_: Any, **__: Any) -> Any:
        self.calls += 1
        return {"ok": True, "user_id": "U0", "bot_id": "B0", "messages": [], "has_more": False}


def remembered(of: object) -> int:
    """Entries of all that it keeps."""
    names = [field.name for field in fields(of)] if is_dataclass(of) else vars(of)
    return sum(len(kept) for name in names if isinstance(kept := getattr(of, name), dict | set | list))


def old_thread(number: int) -> SlackLocation:
    return SlackLocation("T1", "C1", f"1700000000.{number:06d}")


async def test_when_no_half_written_message_can_be_found_any_more_none_is_looked_for_and_nothing_is_remembered() -> (
    None
):
    clock, slack = Clock(), NothingThere()
    orphans = Orphans(slack, clock)  # type: ignore[arg-type]
    for number in range(20):
        await orphans.claim(old_thread(number), "text")
    assert remembered(orphans._found) >= 20
    clock.now += LOOK_BACK + 1
    looked = slack.calls
    for number in range(20, 40):
        assert await orphans.claim(old_thread(number), "text") == ""
        orphans.take([f"1800000000.{number:06d}"])
    assert slack.calls == looked
    assert remembered(orphans) + remembered(orphans._found) == 0


async def test_of_threads_in_which_a_status_was_set_the_latest_are_remembered() -> None:
    lines = StatusLines(NothingThere(), Clock(), StatusPace(0.0, 0.0, 90.0))  # type: ignore[arg-type]
    for number in range(MOST_MET + 50):
        lines.rest(old_thread(number), waiting=False)
    await lines.close()
    assert remembered(lines) <= MOST_MET + 2  # and which ways were refused
