from __future__ import annotations

import heapq
from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from adapters.shared.calls import RateLimits, Slot
from adapters.slack.web_api.client import INTERVALS, QUIET_SECONDS, line_of, pace_of

LINE = line_of("T1", "chat.postMessage", "C1")
INTERVAL = INTERVALS["chat.postMessage"]
FAR = 1e9


def test_channels_workspaces_and_methods_do_not_wait_for_each_other() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 60)
    others = [("T2", "chat.postMessage", "C1"), ("T1", "chat.postMessage", "C2"), ("T1", "chat.update", "C1")]
    assert [limits.reserve(line_of(*other), 0, FAR).at for other in others] == [0, 0, 0]
    assert limits.reserve(LINE, 0, FAR).at == 60


def test_until_slack_refuses_one_nobody_waits() -> None:
    limits = RateLimits(pace_of)
    assert {limits.reserve(LINE, 0, FAR).at for _ in range(1_000)} == {0}


def test_a_time_that_is_too_late_is_not_taken() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 5)
    assert [limits.reserve(LINE, 0, 4.5).at for _ in range(3)] == [5] * 3
    assert [limits.reserve(LINE, 0, FAR).at for _ in range(2)] == [5, 5 + INTERVAL]


def test_after_a_refusal_calls_are_paced_until_nobody_had_to_wait_for_a_while() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 5)
    late = 5 + QUIET_SECONDS - 1
    assert [limits.reserve(LINE, late, FAR).at for _ in range(3)] == [late, late + INTERVAL, late + 2 * INTERVAL]
    still = late + 2 * INTERVAL + QUIET_SECONDS - 1  # the last one that waited went out so long ago
    assert limits.reserve(LINE, still, FAR).at == still
    assert limits.reserve(LINE, still + INTERVAL / 2, FAR).at == still + INTERVAL
    quiet = still + INTERVAL + QUIET_SECONDS
    assert [limits.reserve(LINE, quiet, FAR).at for _ in range(50)] == [quiet] * 50


def test_updates_are_paced_slower_and_what_is_not_posted_waits_as_long_as_slack_says() -> None:
    limits = RateLimits(pace_of)
    for method in ("chat.update", "users.info"):
        limits.pause(line_of("T1", method, "C1"), 0, 5)
    assert [limits.reserve(line_of("T1", "chat.update", "C1"), 0, FAR).at for _ in range(2)] == [5, 6.2]
    assert [limits.reserve(line_of("T1", "users.info", ""), 0, FAR).at for _ in range(2)] == [5, 5]


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 60)
    limits.pause(LINE, 1, 5)
    assert limits.reserve(LINE, 2, FAR).at == 60


def test_lines_that_lie_idle_are_forgotten_and_paused_ones_are_not() -> None:
    limits = RateLimits(pace_of)
    limits.pause(LINE, 0, 10_000)
    for number in range(5_000):
        limits.reserve(line_of("T1", "chat.postMessage", f"D{number}"), number, FAR)
    assert limits.reserve(LINE, 5, FAR).at == 10_000
    assert len(limits._states) < 2_000


def departures(arrivals: list[float], pauses: dict[float, float]) -> list[tuple[float, int]]:
    """When each caller goes out, by number, if pauses of so many seconds come at those times."""
    limits = RateLimits(pace_of)
    order = count()
    events: list[tuple[float, int, int | None, Slot | None]] = []
    for number, at in enumerate(arrivals):
        heapq.heappush(events, (at, next(order), number, None))
    for at in pauses:
        heapq.heappush(events, (at, next(order), None, None))
    left = []
    while events:
        now, _, caller, slot = heapq.heappop(events)
        if caller is None:
            limits.pause(LINE, now, pauses[now])
        elif slot is not None and not limits.is_void(LINE, slot):
            left.append((now, caller))
        else:
            given_slot = limits.reserve(LINE, now, FAR)
            heapq.heappush(events, (given_slot.at, next(order), caller, given_slot))
    return left


@given(
    st.lists(st.floats(0, 20), max_size=30),
    st.dictionaries(st.floats(0, 20), st.floats(0.1, 10), max_size=5),
)
def test_after_a_refusal_posts_leave_never_faster_than_slack_allows(
    arrivals: list[float], pauses: dict[float, float]
) -> None:
    left = departures(sorted(arrivals), pauses)
    times = [at for at, _ in left]
    assert len(left) == len(arrivals)
    for began, seconds in pauses.items():
        assert not [at for at in times if began < at < began + seconds]
    refused = min(pauses, default=FAR)
    paced = [at for at in times if at > refused]
    for first, later in pairwise(paced):
        assert later - first >= INTERVAL - 1e-6 or any(first <= began <= later for began in pauses)
    assert sorted(at for at in times if at < refused) == sorted(at for at in arrivals if at < refused)


def test_who_came_first_leaves_first_after_a_pause_too() -> None:
    left = departures([0.0, 0.0, *(1.0 for _ in range(6))], {0.5: 3.0, 5.0: 3.0})
    assert [caller for _, caller in left] == list(range(8))
    assert [at for at, _ in left] == [0, 0, 3.5, 4.5, 8, 9, 10, 11]
