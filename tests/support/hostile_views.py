"""Views that mean harm, or that are huge (hypothesis), out of texts that a platform might take for something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from bot.domain import (
    ApprovalView,
    CallActivity,
    ClarificationView,
    ConnectionView,
    Content,
    Form,
    Notice,
    OutcomeView,
    Overview,
    PlanTaskView,
    PlanView,
    Post,
    Said,
    ServiceView,
    Shown,
    SignInView,
    Vote,
)
from bot.platform import Reference
from graph.interrupts import FieldType, FormField
from graph.plans import MOST_TASKS

times = st.floats() | st.floats(1.7e9, 1.9e9)


def one_of(kind: type, name: str) -> st.SearchStrategy[Any]:
    """One of the words of a `Literal` field."""
    return st.sampled_from(get_args(get_type_hints(kind)[name]))


class HostileViews:
    """Strategies for every view.

    Args:
        tricks: Texts.
        short: How many of them, from the beginning, are short enough for several in one text.
        huge: Arguments that do not fit on a card.
        people: Ids of requesters and owners.
        approvers: Ids of approvers, beside texts.
        a_post: Makes a post of what is shown and its id.
        references: What posts are called where they were sent.
    """

    def __init__(
        self,
        tricks: Sequence[str],
        *,
        short: int,
        huge: Sequence[dict[str, str]],
        people: Sequence[str],
        approvers: Sequence[str],
        a_post: Callable[[Content, str], Post],
        references: st.SearchStrategy[Reference | None],
    ) -> None:
        few = st.lists(st.sampled_from(tricks[:short]))
        self.texts = texts = st.sampled_from(tricks) | st.text(max_size=60) | st.builds("".join, few)
        self.values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | texts,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        )
        keys = texts.map(lambda text: text[:200])
        self.arguments = st.dictionaries(keys, self.values, max_size=14) | st.sampled_from(huge)
        names = st.lists(texts, max_size=3).map(tuple)
        person = st.sampled_from(people)
        self.fields = st.builds(
            FormField,
            name=st.text(min_size=1, max_size=100),
            label=texts,
            type=st.sampled_from(FieldType),
            required=st.booleans(),
            options=st.lists(texts, max_size=4).map(tuple)
            | st.just(tuple(f"option {'x' * 80} {number}" for number in range(120))),
            help=texts,
            multiline=st.booleans(),
            default=self.values,
        )
        fields = st.lists(self.fields, max_size=12).map(tuple)
        self.approvals = st.builds(
            ApprovalView,
            approval_id=st.text("abc123.:", min_size=1, max_size=120),
            status=one_of(ApprovalView, "status"),
            server=texts,
            tool=texts,
            title=texts,
            arguments=self.arguments,
            asked_arguments=st.none() | self.arguments,
            risk=names | st.sampled_from([("destroys", "writes"), ("writes",), ("reads",)]),
            requester=texts,
            may_decide=texts,
            approvers=st.lists(st.sampled_from(approvers) | texts, max_size=30).map(tuple),
            rule=texts,
            quorum=st.integers(1, 5),
            votes=st.lists(st.builds(Vote, texts, one_of(Vote, "verb"), times), max_size=3).map(tuple),
            asked_at=times,
            expires_at=st.none() | times,
            reason_required=st.booleans(),
            editable=st.booleans(),
            decided_by=names,
            decided_at=st.none() | times,
            reason=texts,
            result=texts,
            result_tone=one_of(ApprovalView, "result_tone"),
            together=st.integers(1, 10**6),
            quote=texts,
            always_offered=st.booleans(),
            rejections=st.integers(1, 3),
            escalates_at=st.none() | times,
            handed_to=names,
            client=st.just("") | texts,
            agent=st.just("") | texts,
        )
        self.questions = st.builds(
            ClarificationView,
            clarification_id=st.just("q1"),
            status=one_of(ClarificationView, "status"),
            question=texts,
            context=texts,
            fields=fields,
            requester=texts,
            requester_id=person,
            answer=texts,
            server=st.just("") | texts,
            tool=st.just("") | texts,
            arguments=self.arguments,
            fingerprint=st.just("") | st.just("#0123456789ab"),
            unread=st.just(0) | st.integers(1, 10**6),
            client=st.just("") | texts,
            agent=st.just("") | texts,
        )
        self.sign_ins = st.builds(
            SignInView,
            sign_in_id=st.just("s1"),
            status=one_of(SignInView, "status"),
            server=texts,
            host=texts,
            message=texts,
            owner=texts,
            owner_id=person,
            service=st.just("") | texts,
            code_wanted=st.booleans(),
            client=st.just("") | texts,
            agent=st.just("") | texts,
        )
        self.accounts = st.builds(
            ConnectionView,
            connection_id=st.text("abc123-", min_size=1, max_size=80),
            service=texts,
            account=texts,
            scopes=names,
            since=times,
            used_at=st.none() | times,
            status=one_of(ConnectionView, "status"),
            provider=texts,
        )
        self.services = st.builds(
            ServiceView, provider=st.text("abc123-", min_size=1, max_size=80), service=texts, scopes=names
        )
        self.outcomes = st.builds(
            OutcomeView,
            outcome_id=st.just("o1"),
            status=one_of(OutcomeView, "status"),
            server=texts,
            tool=texts,
            title=texts,
            arguments=self.arguments,
            requester=texts,
            requester_id=person,
            settled_by=texts,
            known=texts,
            client=st.just("") | texts,
            agent=st.just("") | texts,
        )
        ids = texts.map(lambda text: text[:40])
        tasks = st.builds(
            PlanTaskView,
            task_id=ids,
            agent=texts,
            instruction=texts,
            status=one_of(PlanTaskView, "status"),
            depends_on=st.lists(ids, max_size=MOST_TASKS).map(tuple),
            result=texts,
            began_at=st.none() | times,
            ended_at=st.none() | times,
        )
        self.plans = st.builds(
            PlanView,
            plan_id=st.text("abc123.:", min_size=1, max_size=120),
            status=one_of(PlanView, "status"),
            tasks=st.lists(tasks, min_size=1, max_size=MOST_TASKS).map(tuple)
            | tasks.map(lambda task: (task,) * MOST_TASKS),
            requester=texts,
            requester_id=person,
        )
        state, when = one_of(CallActivity, "state"), st.floats(1.7e9, 1.9e9)
        calls = st.builds(CallActivity, st.just("1.1"), texts, texts, texts, state, when, st.none() | when, texts)
        activity = st.lists(calls, max_size=4).map(tuple)
        self.said = st.builds(Said, texts, st.booleans(), activity, st.integers(0, 10**6))
        self.cards = self.approvals | self.questions | self.sign_ins | self.outcomes
        notices = st.builds(Notice, texts, one_of(Notice, "tone"))
        contents = st.one_of(self.said, notices, self.approvals, self.cards, self.plans)
        self.posts = st.builds(a_post, contents, st.text("abc:", min_size=1, max_size=200))
        self.forms = st.builds(
            lambda title, fields, values: Form(
                title, fields, dict(zip((f.name for f in fields), values, strict=False))
            ),
            texts,
            fields,
            st.lists(self.values, max_size=12),
        )
        shown = st.lists(st.builds(Shown, self.posts, references), max_size=6).map(lambda each: tuple(each) * 3)
        self.overviews = st.builds(Overview, shown, shown, shown)
