"""What is done next with a delivery, over every combination of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pytest

from bot.domain import Unwelcome
from bot.limits import TooMany
from bot.records.deliveries import Delivery, DeliveryKind
from bot.records.posts import NewPost
from bot.turns.decision import (
    MOST_DEATHS,
    MOST_STEPS,
    Action,
    Announce,
    Begin,
    Conclude,
    Continue,
    Expire,
    Kept,
    Park,
    RecordAnswer,
    Remind,
    ReportLoss,
    Resume,
    Say,
    Settle,
    Supersede,
    TakeUp,
    Timer,
    TurnAway,
    TurnEnding,
    TurnFacts,
    TurnProgress,
    Void,
    next_action,
)
from bot.turns.messages import (
    AnswersClarification,
    Ignored,
    Meaning,
    NewTurn,
    Supersedes,
    ToldToWait,
    announcement,
)
from graph.interrupts import Approved
from graph.ports import Spoken

DECIDED = {"i1": Approved(by=("Ana",))}
MEANINGS: dict[str, tuple[Meaning, TooMany | None]] = {
    "new": (NewTurn(), None),
    "new, too many": (NewTurn(), TooMany("Please wait.")),
    "new, too many, told": (NewTurn(), TooMany(None)),
    "supersedes": (Supersedes(), None),
    "supersedes, too many": (Supersedes(), TooMany("Please wait.")),
    "answers": (AnswersClarification("c1"), None),
    "told to wait": (ToldToWait("This conversation waits."), None),
    "ignored": (Ignored(), None),
}
BOTH = (False, True)


class Case(NamedTuple):
    """A combination of facts, in words."""

    kind: DeliveryKind = "message"
    begins: str | None = None
    tries: int = 0
    taken_up: bool = False
    ran: bool = False
    settled: bool = False
    timer: Timer = "reminds"
    left_over: bool = False
    stopped_answer: bool = False
    progress: TurnProgress = "not begun"
    turn: str = "known"
    at_rest: bool = True
    ending: bool = False
    kept: Kept = "before"
    waits: bool = False
    decided: bool = False
    answered: bool = False
    gave_way: bool = False
    welcome: bool = True
    announced: bool = False
    objection: bool = False
    means: str = "ignored"

    @property
    @cache  # noqa: B019  # cases are compared by value and live as long as the tests
    def decides(self) -> Action:
        means, refused = MEANINGS[self.means]
        delivery = delivered(self.kind, self.begins, self.tries)
        return next_action(
            TurnFacts(
                delivery,
                taken_up=self.taken_up,
                ran=self.ran,
                settled=self.settled,
                timer=self.timer,
                left_over=self.left_over,
                broken_off=Spoken("m0.0", "half") if self.stopped_answer else None,
                progress=self.progress,
                turn=self.turn,  # type: ignore[arg-type]
                at_rest=self.at_rest,
                ending=self.ending,
                kept=self.kept,
                waits=self.waits,
                decided=DECIDED if self.decided else {},
                answered=self.answered,
                gave_way=self.gave_way,
                unwelcome=None if self.welcome else Unwelcome("Guests may not."),
                announcement=None if self.announced else announces(self.kind, self.begins, self.tries),
                objection="Which one?" if self.objection else "",
                meaning=means,
                refused=refused,
            )
        )


@cache
def delivered(kind: DeliveryKind, begins: str | None = None, tries: int = 0) -> Delivery:
    body = {"person": "chat:ana", "name": "Ana", "begins": begins}
    return Delivery("m1", "chat:T1", kind, body, False, 0.0, 0.0, tries)


@cache
def announces(kind: DeliveryKind, begins: str | None, tries: int) -> NewPost | None:
    return announcement(delivered(kind, begins, tries))


EFFORT = (
    {"taken_up": False, "ran": False, "tries": 0},
    {"taken_up": False, "ran": False, "tries": MOST_DEATHS},
    {"taken_up": False, "ran": True, "tries": MOST_DEATHS},
    {"taken_up": True, "ran": False, "tries": MOST_DEATHS - 1},
    {"taken_up": True, "ran": False, "tries": MOST_DEATHS},
    {"taken_up": True, "ran": True, "tries": MOST_DEATHS - 1},
    {"taken_up": False, "ran": False, "left_over": True, "tries": 0},
    {"taken_up": False, "ran": True, "left_over": True, "tries": MOST_DEATHS},
    {"taken_up": True, "ran": False, "left_over": True, "tries": MOST_DEATHS - 1},
    {"taken_up": True, "ran": False, "left_over": True, "tries": MOST_DEATHS},
)
GRAPH = ("waits", "decided", "gave_way")
"""What is decided waits, and so does what this message has superseded."""
THREADS: list[dict[str, Any]] = [
    {**dict(zip(GRAPH, graph, strict=True)), "turn": turn, "at_rest": at_rest, "ending": ending, "kept": kept, **more}
    for graph in ((False, False, False), (True, False, False), (True, True, False), (True, True, True))
    for turn, kept in product(("known", "none", "lost"), ("before", "perhaps", "now"))
    for at_rest, ending in product(BOTH, BOTH)
    for more in ({"answered": False}, {"answered": True})
]
OPENINGS = (
    {},
    {"welcome": False},
    {"begins": "quiet"},
    {"begins": "asked"},
)


@cache
def new_messages() -> list[tuple[Case, Action]]:
    """Every message that has not begun, with what is done about it."""
    cases = [
        Case(**effort, **thread, **opening, objection=objection, means=means)
        for effort, thread in product(EFFORT, THREADS)
        for objection, means in [*product([False], MEANINGS), (True, "answers"), (True, "new")]
        for opening in (OPENINGS if means == "new" else OPENINGS[:1])
    ]
    return [(case, case.decides) for case in cases]


@cache
def begun_messages() -> list[tuple[Case, Action]]:
    """Every message that has begun or was being given up, with what is done about it."""
    cases = [
        Case(progress=progress, **effort, **thread, **opening, means=means)  # type: ignore[arg-type]
        for effort, thread, opening in product(EFFORT, THREADS, OPENINGS)
        for means in ("new", "supersedes")
        for progress in ("begun", "given up")
    ]
    return [(case, case.decides) for case in cases]


@cache
def resumes() -> list[tuple[Case, Action]]:
    """Every decision, and every timer by which an approval has expired."""
    cases = [
        Case(kind=kind, timer="expired", **effort, **thread)  # type: ignore[arg-type]
        for kind in ("resume", "timer")
        for effort, thread in product(EFFORT, THREADS)
    ]
    return [(case, case.decides) for case in cases]


def everything() -> Iterator[tuple[Case, Action]]:
    yield from new_messages()
    yield from begun_messages()
    yield from resumes()
    for timer in ("reminds", "expires", "over"):
        for thread in THREADS:
            case = Case(kind="timer", timer=timer, **thread)  # type: ignore[arg-type]
            yield case, case.decides
    for settled, stopped_answer in product(BOTH, BOTH):
        for thread in THREADS:
            case = Case(kind="stop", settled=settled, stopped_answer=stopped_answer, **thread)
            yield case, case.decides


def never(cases: list[tuple[Case, Action]], kinds: type | tuple[type, ...], when: Callable[[Case], bool]) -> None:
    wrong = [(case, action) for case, action in cases if isinstance(action, kinds) and when(case)]
    assert not wrong, wrong[0]


# ------------------------------------------------------------------------------------------------ messages


def test_a_message_that_has_begun_is_never_begun_again_and_only_seen_through() -> None:
    assert {type(action) for _, action in begun_messages()} == {TakeUp, Continue, Conclude, Park}
    assert {action.verb for _, action in begun_messages() if isinstance(action, Continue)} == {"run"}
    assert all(isinstance(action, Park) for case, action in begun_messages() if case.progress == "given up")


def test_nothing_begins_while_anything_is_unfinished_open_or_unsaid() -> None:
    never(
        new_messages(),
        Begin,
        lambda c: not c.at_rest or c.waits or c.gave_way or c.kept == "perhaps" or c.answered or c.turn == "lost",
    )
    never(new_messages(), Begin, lambda c: c.means != "new" or c.objection)


def test_what_waits_is_recorded_first_and_settled_only_if_nobody_can_decide_it() -> None:
    """The records know what is open or decided, unless they are older than the checkpoints."""
    over = {kept: Case(means="new", waits=True, kept=kept).decides for kept in ("before", "perhaps", "now")}
    assert {kept: type(action) for kept, action in over.items()} == {"before": Say, "perhaps": Say, "now": Settle}


def test_nothing_begins_for_whom_it_may_not_or_before_a_new_session_is_announced() -> None:
    never(new_messages(), Begin, lambda c: not c.welcome or (c.begins is not None and not c.announced))
    assert all(isinstance(action, TurnAway) for case, action in new_messages() if not case.welcome)
    only_asked = [a for c, a in new_messages() if c.welcome and c.begins == "asked" and not c.announced]
    assert {type(action) for action in only_asked} == {Conclude}
    never(new_messages(), Announce, lambda c: c.begins != "quiet" or c.announced)


def test_what_is_decided_is_always_resumed_before_anything_new() -> None:
    waiting = [
        (c, a)
        for c, a in new_messages()
        if c.decided and c.at_rest and not c.gave_way and not (c.answered and c.turn != "known")
        if c.welcome and (c.begins is None or c.announced)
    ]
    assert {type(action) for case, action in waiting if not case.left_over or case.ran} == {Say, Resume}
    assert {type(action) for _, action in waiting} == {Say, Resume, TakeUp, Park}
    never(waiting, Resume, lambda c: c.kept == "perhaps")
    assert all(action.answers == DECIDED for _, action in waiting if isinstance(action, Resume))
    never(new_messages(), (Supersede, RecordAnswer, Void), lambda c: c.decided or c.kept == "perhaps" or not c.at_rest)


def test_what_was_broken_off_is_ended_where_it_was_being_ended_and_seen_through_otherwise() -> None:
    broken = [(c, a) for c, a in new_messages() if not c.at_rest and c.welcome and (c.begins is None or c.announced)]
    assert {type(a) for c, a in broken if c.ending and not c.answered} == {Settle}
    assert {type(a) for c, a in broken if not c.ending and not c.answered} == {TakeUp, Continue, Park}
    assert {type(a) for c, a in broken if c.answered} == {TakeUp, Continue, Park, ReportLoss}
    assert {a.verb for _, a in broken if isinstance(a, Continue)} == {"resume"}
    at_rest = [(c, a) for c, a in new_messages() if c.at_rest]
    never(at_rest, Settle, lambda c: c.answered or not (c.gave_way or (c.waits and c.kept == "now")))
    never(new_messages(), Settle, lambda c: c.answered or not (c.at_rest or c.ending))


def test_the_graph_goes_on_only_after_that_was_counted_and_not_without_end() -> None:
    both = [*new_messages(), *begun_messages(), *resumes()]
    never(both, Continue, lambda c: c.at_rest or not (c.taken_up or c.ran))
    never(both, TakeUp, lambda c: c.taken_up or c.ran)
    never(both, (Begin, Resume), lambda c: c.left_over and not (c.taken_up or c.ran))
    never(both, (Begin, Resume), lambda c: c.left_over and not c.ran and c.tries >= MOST_DEATHS)
    never(both, (Continue, Conclude), lambda c: c.progress == "begun" and c.taken_up and c.tries >= MOST_DEATHS)
    never(both, Park, lambda c: c.progress != "given up" and not (c.taken_up and c.tries >= MOST_DEATHS))


def test_an_answer_is_no_message_of_its_own() -> None:
    answered = [(c, a) for c, a in new_messages() if c.answered]
    never(answered, (Begin, Supersede, RecordAnswer, Settle, Void), lambda _: True)


def test_what_a_message_means_decides_only_when_all_else_is_done() -> None:
    quiet = {c.means: a for c, a in new_messages() if c == Case(means=c.means)}
    assert {means: type(action) for means, action in quiet.items()} == {
        "new": Begin,
        "new, too many": Conclude,
        "new, too many, told": Conclude,
        "supersedes": Supersede,
        "supersedes, too many": Conclude,
        "answers": RecordAnswer,
        "told to wait": Conclude,
        "ignored": Conclude,
    }
    told = {m: [p.content["text"] for p in a.posts] for m, a in quiet.items() if isinstance(a, Conclude)}
    assert told == {
        "new, too many": ["Please wait."],
        "new, too many, told": [],
        "supersedes, too many": ["Please wait."],
        "told to wait": ["This conversation waits."],
        "ignored": [],
    }
    never(new_messages(), (Begin, Supersede), lambda c: "too many" in c.means)


def test_what_a_message_means_need_not_be_read_before_all_else_is_done() -> None:
    """It is not: that a turn may begin is counted."""
    first: dict[Case, Action] = {}
    for case, action in new_messages():
        done = case.at_rest and case.welcome and (case.begins is None or case.announced) and case.turn != "lost"
        if not done or case.answered or case.gave_way or case.decided or case.objection or case.kept == "perhaps":
            assert first.setdefault(case._replace(means=""), action) == action
    assert first


def test_what_is_told_to_an_author_is_told_to_nobody_else_and_once() -> None:
    for case, action in new_messages():
        posts = action.posts if isinstance(action, Conclude) else (action.post,) if isinstance(action, TurnAway) else ()
        for post in posts:
            assert post.key.endswith(":m1")
            assert post.only_for == (None if post.key == "begins:m1" else "chat:ana"), case


# ------------------------------------------------------------------------------------------------ the others


def test_a_decision_is_resumed_or_its_loss_is_reported() -> None:
    for case, action in resumes():
        if case.turn != "known":
            assert isinstance(action, ReportLoss)
        elif not case.at_rest:
            assert isinstance(action, TakeUp | Continue | Park)
        elif case.decided:
            counted = (TakeUp, Park) if case.left_over and not case.ran else ()
            assert isinstance(action, Say if case.kept == "perhaps" else (Resume, *counted))
        else:
            assert action == Conclude()


@pytest.mark.parametrize(("timer", "done"), [("reminds", Remind), ("over", Remind), ("expires", Expire)])
def test_a_timer_runs_nothing_unless_its_approval_expires_by_it(timer: Timer, done: type[Action]) -> None:
    assert all(isinstance(Case(kind="timer", timer=timer, **thread).decides, done) for thread in THREADS)  # type: ignore[arg-type]


def test_a_stop_settles_once_with_what_was_being_said_and_says_so() -> None:
    for thread in THREADS:
        settle = Case(kind="stop", stopped_answer=True, **thread).decides  # type: ignore[arg-type]
        assert isinstance(settle, Settle) and settle.unfinished is not None
        assert (settle.unfinished.said.text, settle.unfinished.note) == ("half", "stopped here")
        assert settle.why == "Ana stopped it"
        concluded = Case(kind="stop", settled=True, **thread).decides  # type: ignore[arg-type]
        assert isinstance(concluded, Conclude)
        assert [post.content["text"] for post in concluded.posts] == ["Stopped."]


# ------------------------------------------------------------------------------------------------ the end


def after(case: Case, step: Action) -> list[Case]:
    """What the facts may be after a step, when nobody else does anything meanwhile."""
    either = [case._replace(at_rest=at_rest, ran=True) for at_rest in BOTH]
    match step:
        case TakeUp():
            return [case._replace(taken_up=True)]
        case Continue():  # until it is at rest; the limit of steps is for a graph that never is
            rested = case._replace(at_rest=True, ran=True, kept="perhaps")
            return [rested] if case.ran else [rested, rested._replace(waits=True, decided=True)]
        case Settle():
            nothing = {"waits": False, "decided": False, "gave_way": False, "ending": False}
            return [case._replace(at_rest=True, settled=True, **nothing)]
        case Announce():
            return [case._replace(announced=True)]
        case Say():
            return [case._replace(kept="now"), case._replace(kept="now", means="supersedes")]
        case Resume():  # which may have been all that the thread waited for
            rest = [each._replace(decided=False, kept="perhaps") for each in either]
            return [*rest, *(each._replace(waits=False, means="new") for each in rest)]
        case Void():
            return [case._replace(turn="none")]
        case RecordAnswer():
            return [case._replace(answered=True, waits=True, decided=True), case._replace(objection=True)]
        case Supersede():
            gave_way = case._replace(gave_way=True, waits=True, decided=True, means="new")
            return [gave_way, case._replace(waits=False, means="new")]
        case Expire():
            return [case._replace(timer=timer) for timer in ("expired", "over")]
        case Begin():
            return [each._replace(progress="begun") for each in either]
        case _:
            raise AssertionError(step)


def test_every_step_gets_nearer_to_an_ending() -> None:
    """No way through the facts comes back to where it was, and none is long."""
    steps: dict[Case, int | None] = {}

    def longest(case: Case) -> int:
        if case in steps:
            known = steps[case]
            assert known is not None, f"a circle: {case}"
            return known
        steps[case] = None
        action = case.decides
        nexts = [] if isinstance(action, TurnEnding) else after(case, action)
        steps[case] = result = 1 + max((longest(each) for each in nexts), default=0)
        return result

    assert max(longest(case) for case, _ in everything()) <= 13


def test_what_goes_round_in_circles_nevertheless_is_parked() -> None:
    facts = TurnFacts(delivered("message"), steps=MOST_STEPS, meaning=NewTurn())
    assert isinstance(next_action(facts), Park)
