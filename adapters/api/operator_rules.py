"""`/api/v1/operator/rules`, `/api/v1/operator/fatigue`, `/api/v1/operator/suggestions`: the rules, for operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.bodies import Body
from adapters.api.models import LONGEST_LINE, ModeName, Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.api.results import Found, for_operators
from adapters.shared.problems import Problem
from adapters.shared.requests import is_there
from bot.rules.replay import ReplayedCall, Side
from bot.rules.reports import (
    MOST_DAYS,
    MOST_PAST,
    MOST_REPLAYED,
    RECENT_DAYS,
    Decided,
    DecidedBesides,
    FatigueLine,
    NobodyWaitsError,
    ReplayBusyError,
    ReplayReport,
    RuleAnswer,
    RuleInForce,
    RuleQuestion,
    RuleQuestionError,
    RulesInForce,
)
from bot.safe_text import visible, visible_line
from bot.services import Services
from bot.task_threads import turn_of_call
from policies.model import LONGEST_CLIENT, Mode, canonical_json
from policies.suggestions import LEAST_APPROVED, LEAST_REJECTED, HistoricCall, Suggestion
from translations import ngettext

LONGEST_POLICY = 200_000
"""Characters of a policy that is sent: some thousand rules."""
LARGEST_ARGUMENTS = 50_000
"""Characters of the arguments of a question, as JSON."""
MOST_GROUPS = 100
MOST_EXAMPLES = 10
"""Calls that stand for all that a suggestion would have changed, the newest."""
LONGEST_REFERENCE = 500
LONGEST_SENTENCE = 2_000
VerdictWord = Literal["allow", "ask", "deny"]


class RuleMatchShape(Shape):
    """One thing that a rule wants of a call."""

    model_config = ConfigDict(frozen=True, title="RuleMatch")
    field: str
    wanted: str


class RuleShape(Shape):
    """A rule, and how often it decided."""

    model_config = ConfigDict(frozen=True, title="Rule")
    name: str
    source: str = Field(description="Where it stands: file:line.")
    decides: VerdictWord
    match: list[RuleMatchShape] = Field(description="Empty: it fits every call.")
    approvers: str = Field(description="Who is asked, in words; empty: nobody.")
    reason: str = Field(description="Of a deny: what people are told.")
    reads: bool
    allowed: int
    asked: int
    denied: int

    @classmethod
    def of(cls, rule: RuleInForce) -> RuleShape:
        """As operators see it."""
        return cls(
            name=visible_line(rule.name, LONGEST_LINE),
            source=rule.source,
            decides=rule.decides,
            match=[RuleMatchShape(field=name, wanted=visible(wanted)) for name, wanted in rule.match],
            approvers=visible(rule.approvers),
            reason=visible(rule.reason),
            reads=rule.reads,
            **_counts(rule.decided),
        )


class DecidedBesidesShape(Shape):
    """What decided calls, and is no rule in force."""

    model_config = ConfigDict(frozen=True, title="DecidedBesides")
    decided_by: Literal["none", "mode", "standing", "former"] = Field(
        description="No rule fitted; the mode; a standing approval; a rule that there is no more."
    )
    rule: str = Field(description="Name of the former rule; else empty.")
    allowed: int
    asked: int
    denied: int

    @classmethod
    def of(cls, each: DecidedBesides) -> DecidedBesidesShape:
        """As operators see it."""
        return cls(decided_by=each.decided_by, rule=visible_line(each.rule, LONGEST_LINE), **_counts(each.decided))


class RulesShape(Shape):
    """The rules in force, and how often each decided."""

    model_config = ConfigDict(frozen=True, title="Rules")
    source: str
    version: str
    mode: ModeName
    text: str = Field(description="The policy file, as it is in force.")
    since: str = Field(description="The first day (UTC) that is counted.")
    counted: bool = Field(description="False: older entries of the audit log are still being counted.")
    rules: list[RuleShape]
    besides: list[DecidedBesidesShape]

    @classmethod
    def of(cls, found: RulesInForce) -> RulesShape:
        """As operators see them."""
        return cls(
            source=found.source,
            version=found.version,
            mode=found.mode.value,
            text=found.text,
            since=found.since,
            counted=found.is_counted,
            rules=[RuleShape.of(rule) for rule in found.rules],
            besides=[DecidedBesidesShape.of(each) for each in found.besides],
        )


class DaysQuery(Body):
    """How far back."""

    days: Annotated[int, Field(ge=1, le=MOST_DAYS, description="Days (UTC), today among them.")] = RECENT_DAYS


class RuleQuestionForm(Body):
    """A call that may be made one day."""

    tool: Annotated[str, Field(min_length=1, max_length=LONGEST_LINE, description="{server}__{tool}.")]
    person: Annotated[str, Field(min_length=1, max_length=LONGEST_REFERENCE, description="slack:T1:U2, web:ana, …")]
    arguments: dict[str, Any] = Field(default_factory=dict)
    place: Annotated[str, Field(max_length=LONGEST_REFERENCE, description="A channel; empty: a direct chat.")] = ""
    platform: Annotated[str, Field(description="When left out, that of the person.")] | None = None
    agent: (
        Annotated[str, Field(max_length=LONGEST_LINE, description="When left out, the one that answers there.")] | None
    ) = None
    client: Annotated[str, Field(max_length=LONGEST_CLIENT, description="The program that calls at /mcp.")] = ""
    at: Annotated[float, Field(ge=0, le=1e11, description="Seconds since the epoch; when left out, now.")] | None = None
    mode: Annotated[ModeName, Field(description="When left out, the one in force.")] | None = None
    quote: Annotated[str, Field(max_length=LONGEST_SENTENCE, description="The person’s words that ask for it.")] = ""
    groups: Annotated[
        dict[str, bool],
        Field(max_length=MOST_GROUPS, description="Groups that are not to be looked up → whether the person is in it."),
    ] = Field(default_factory=dict)
    policy: (
        Annotated[str, Field(max_length=LONGEST_POLICY, description="Text of other rules than those in force.")] | None
    ) = None


class TriedRuleShape(Shape):
    """A rule that was held against the call."""

    model_config = ConfigDict(frozen=True, title="TriedRule")
    name: str
    source: str
    fit: Literal["yes", "no", "unknown"]
    because: list[str] = Field(description="What did not fit, or could not be found out; in English.")


class RuleAnswerShape(Shape):
    """What would happen if."""

    model_config = ConfigDict(frozen=True, title="RuleAnswer")
    verdict: VerdictWord
    why: str = Field(description="The sentence that people are told.")
    rule: str = Field(description="The rule that decides; empty: none fits.")
    source: str
    version: str
    reason: str = Field(description="Of a deny: what people are told.")
    approvers: str = Field(description="Who could approve, in words; empty: nobody is asked.")
    beyond: list[str] = Field(description="What the server, the agent and the mode change; in English.")
    known_tool: bool = Field(description="False: its server is out of reach, or has no such tool.")
    groups: dict[str, bool | None] = Field(description="What it was judged on; null: could not be found out.")
    mode: ModeName
    platform: str
    agent: str = Field(description="Whose call it would be; empty: another agent’s, by /mcp.")
    at: float
    tried: list[TriedRuleShape] = Field(description="The rules in order, down to the one that decided.")

    @classmethod
    def of(cls, answer: RuleAnswer) -> RuleAnswerShape:
        """As operators see it."""
        found, facts = answer.explanation, answer.facts
        return cls(
            verdict=found.verdict.verdict,
            why=visible(found.why),
            rule=visible_line(found.decided_by, LONGEST_LINE),
            source=found.verdict.source,
            version=answer.version,
            reason=visible(getattr(found.verdict, "reason", "")),
            approvers=visible(found.approvers),
            beyond=[
                visible(each) for each in (found.server_requirement, found.agent_requirement, found.ceiling) if each
            ],
            known_tool=answer.knows_tool,
            groups=dict(facts.groups),
            mode=facts.mode.value,
            platform=facts.platform,
            agent=facts.agent,
            at=facts.at.timestamp(),
            tried=[
                TriedRuleShape(
                    name=visible_line(each.name, LONGEST_LINE),
                    source=each.source,
                    fit=each.fit.value,
                    because=[visible_line(why, LONGEST_SENTENCE) for why in each.because],
                )
                for each in found.tried
            ],
        )


class RuleReplayForm(Body):
    """A changed policy, and the time whose calls it is held against."""

    policy: Annotated[str, Field(min_length=1, max_length=LONGEST_POLICY, description="The file’s text.")]
    since: (
        Annotated[float, Field(ge=0, le=1e11, description="Seconds since the epoch; when left out, 30 days.")] | None
    ) = None
    until: Annotated[float, Field(ge=0, le=1e11, description="Not included; when left out, now.")] | None = None


class RuleChangeShape(Shape):
    """How many calls are judged otherwise in one way."""

    model_config = ConfigDict(frozen=True, title="RuleChange")
    before: VerdictWord
    after: VerdictWord
    calls: int


class RuleSideShape(Shape):
    """What is said of a call: as it was recorded, by the rules in force, or by the changed ones."""

    model_config = ConfigDict(frozen=True, title="RuleSide")
    verdict: VerdictWord
    rule: str
    source: str
    why: str = Field(description="The sentence; of what is recorded in English, and empty in old entries.")
    approvers: str
    text: str = Field(description="All of it in one line.")

    @classmethod
    def of(cls, side: Side) -> RuleSideShape:
        """As operators see it."""
        return cls(
            verdict=side.verdict,
            rule=visible_line(side.rule, LONGEST_LINE),
            source=side.source,
            why=visible(side.why),
            approvers=visible(side.approvers),
            text=visible_line(side.text, LONGEST_SENTENCE),
        )


class ReplayedCallShape(Shape):
    """A call that the changed rules judge otherwise than what is recorded, or than the rules in force."""

    model_config = ConfigDict(frozen=True, title="ReplayedCall")
    at: str
    requester: str
    client: str
    agent: str
    server: str
    tool: str
    input: str = Field(description="Its arguments, short and without secrets.")
    turn: str
    call: str
    recorded: RuleSideShape
    now: RuleSideShape
    changed: RuleSideShape
    doubt: str = Field(description="Why the changed rules may have judged otherwise then; in English.")

    @classmethod
    def of(cls, call: ReplayedCall) -> ReplayedCallShape:
        """As operators see it."""
        return cls(
            at=call.at,
            requester=visible_line(call.requester, LONGEST_LINE),
            client=visible_line(call.client, LONGEST_CLIENT),
            agent=call.agent,
            server=call.server,
            tool=visible_line(call.tool, LONGEST_LINE),
            input=visible_line(call.input, LONGEST_LINE),
            turn=turn_of_call(call.call_id),
            call=call.call_id,
            recorded=RuleSideShape.of(call.recorded),
            now=RuleSideShape.of(call.now),
            changed=RuleSideShape.of(call.changed),
            doubt=visible_line(call.doubt, LONGEST_SENTENCE),
        )


class RuleReplayShape(Shape):
    """What a changed policy would have decided."""

    model_config = ConfigDict(frozen=True, title="RuleReplay")
    version: str
    since: float
    until: float
    calls: int
    different: int = Field(description="From what is recorded.")
    different_from_now: int = Field(description="From what the rules in force say.")
    doubtful: int = Field(description="Calls of which not all is kept that rules look at.")
    unreadable: int
    most: int = Field(description="Entries of the audit log that are read at most, the newest.")
    is_cut: bool = Field(description="There were more: the older ones were not read.")
    changes: list[RuleChangeShape] = Field(description="From what is recorded, the most first.")
    differences: list[ReplayedCallShape] = Field(description="The newest first; at most 200.")
    more: int = Field(description="Differences that are not listed.")

    @classmethod
    def of(cls, found: ReplayReport) -> RuleReplayShape:
        """As operators see it."""
        replay = found.replay
        return cls(
            version=found.version,
            since=found.since,
            until=found.until,
            calls=replay.calls,
            different=replay.different,
            different_from_now=replay.different_from_now,
            doubtful=replay.doubtful,
            unreadable=replay.unreadable,
            most=MOST_REPLAYED,
            is_cut=found.is_cut,
            changes=[
                RuleChangeShape(before=before, after=after, calls=calls)
                for (before, after), calls in replay.changes.most_common()
            ],
            differences=[ReplayedCallShape.of(call) for call in reversed(replay.differences)],
            more=replay.listed - len(replay.differences),
        )


class FatigueLineShape(Shape):
    """What became of the calls of one tool that people were asked about because of one rule."""

    model_config = ConfigDict(frozen=True, title="FatigueLine")
    decided_by: str = Field(description="rule; none: no rule fitted; server or agent: it has it asked about.")
    rule: str
    server: str
    tool: str
    asked: int
    unchanged: int = Field(description="Approved as they were.")
    edited: int
    rejected: int
    contested: int = Field(description="Approved, though someone had rejected it.")
    expired: int
    other: int = Field(description="Replaced, withdrawn or void.")
    median_wait: float | None = Field(description="Seconds until people had decided, right to a tenth.")
    candidate: Literal["allow", "deny", ""] = Field(
        description="Always approved unchanged, or always rejected, often enough."
    )

    @classmethod
    def of(cls, line: FatigueLine) -> FatigueLineShape:
        """As operators see it."""
        told = ("unchanged", "edited", "rejected", "contested", "expired")
        return cls(
            decided_by=line.decided_by,
            rule=visible_line(line.rule, LONGEST_LINE),
            server=line.server,
            tool=visible_line(line.tool, LONGEST_LINE),
            asked=line.asked,
            other=line.of["other"] + line.of["withdrawn"],
            median_wait=line.median_wait,
            candidate=line.candidate,
            **{name: line.of[name] for name in told},
        )


class FatigueShape(Shape):
    """What people are asked about, the most first; at most 500 lines."""

    model_config = ConfigDict(frozen=True, title="Fatigue")
    since: str
    counted: bool = Field(description="False: older entries of the audit log are still being counted.")
    least_approved: int = Field(description="Approvals without a change that make a candidate for an allow.")
    least_rejected: int = Field(description="Rejections that make one for a deny.")
    lines: list[FatigueLineShape]
    more: bool = Field(description="There are more lines.")


class SuggestionExampleShape(Shape):
    """A call that would have been decided otherwise."""

    model_config = ConfigDict(frozen=True, title="SuggestionExample")
    at: str
    requester: str
    input: str
    turn: str
    call: str
    outcome: str

    @classmethod
    def of(cls, past: HistoricCall) -> SuggestionExampleShape:
        """As operators see it."""
        return cls(
            at=past.at,
            requester=visible_line(past.recorded.facts.requester, LONGEST_LINE),
            input=visible_line(past.input, LONGEST_LINE),
            turn=turn_of_call(past.call_id),
            call=past.call_id,
            outcome=past.outcome,
        )


class SuggestionProofShape(Shape):
    """The replay of a suggestion."""

    model_config = ConfigDict(frozen=True, title="SuggestionProof")
    calls: int = Field(description="Calls of the tool that were judged again.")
    changed: int = Field(description="Those that would have been decided otherwise, all as `changes` says.")
    changes: list[RuleChangeShape]
    first: str
    last: str
    requesters: int
    examples: list[SuggestionExampleShape] = Field(description="The newest of them; at most 10.")


class SuggestionShape(Shape):
    """A rule that history speaks for."""

    model_config = ConfigDict(frozen=True, title="RuleSuggestion")
    kind: VerdictWord
    looser: bool
    name: str
    rule: str = Field(description="YAML, indented as in the file.")
    before: str = Field(description="The rule that it goes before; empty: it goes last.")
    policy: str = Field(description="The whole file with it.")
    server: str
    tool: str
    because: str
    open_arguments: list[str] = Field(description="Arguments that an allow does not limit.")
    risks: list[str]
    proof: SuggestionProofShape

    @classmethod
    def of(cls, found: Suggestion) -> SuggestionShape:
        """As operators see it."""
        before: VerdictWord = "allow" if found.kind == "ask" else "ask"
        change = RuleChangeShape(before=before, after=found.kind, calls=len(found.changed))
        return cls(
            kind=found.kind,
            looser=found.is_looser,
            name=visible_line(found.name, LONGEST_LINE),
            rule=found.rule,
            before=visible_line(found.before, LONGEST_LINE),
            policy=found.policy,
            server=found.server,
            tool=visible_line(found.tool, LONGEST_LINE),
            because=because(found),
            open_arguments=[visible_line(name, LONGEST_LINE) for name in found.open_arguments],
            risks=[risk.value for risk in found.risks],
            proof=SuggestionProofShape(
                calls=found.replayed,
                changed=len(found.changed),
                changes=[change],
                first=found.changed[0].at,
                last=found.changed[-1].at,
                requesters=len({past.recorded.facts.requester for past in found.changed}),
                examples=[SuggestionExampleShape.of(past) for past in found.changed[: -MOST_EXAMPLES - 1 : -1]],
            ),
        )


class SuggestionsShape(Shape):
    """Rules that history speaks for, the looser ones first."""

    model_config = ConfigDict(frozen=True, title="RuleSuggestions")
    state: Literal["ready", "computing", "counting"] = Field(
        description="computing: what is here is from before, or nothing yet: ask again in a few seconds. counting: the "
        "audit log is still being counted, which has to be done first."
    )
    computed_at: float | None
    version: str = Field(description="Of the policy that they are made for.")
    calls: int
    since: str = Field(description="When the first of these calls was.")
    most: int = Field(description="Entries of the audit log that they are made from, the newest.")
    suggestions: list[SuggestionShape]


def because(found: Suggestion) -> str:
    """Why a rule is suggested, in a sentence."""
    told = {
        "allow": ngettext(
            "Approved unchanged {count} time, never edited, rejected or withdrawn.",
            "Approved unchanged {count} times, never edited, rejected or withdrawn.",
            found.decided,
        ),
        "deny": ngettext(
            "Rejected {count} time, never approved.", "Rejected {count} times, never approved.", found.decided
        ),
        "ask": ngettext(
            "Ran {count} time without anyone being asked, though it may delete data.",
            "Ran {count} times without anyone being asked, though it may delete data.",
            found.decided,
        ),
    }
    return told[found.kind].format(count=found.decided)


def _counts(decided: Decided) -> dict[str, int]:
    return {"allowed": decided.allowed, "asked": decided.asked, "denied": decided.denied}


class OperatorRules:
    """The rules, for operators."""

    def __init__(self, services: Services) -> None:
        self._rules = services.rules

    def operations(self) -> Sequence[Operation]:
        """What can be done with them."""
        return [
            Operation(
                "GET",
                "/api/v1/operator/rules",
                "getRules",
                "Says which rules are in force, and how often each decided; for operators.",
                self.in_force,
                {200: Answer("The rules.", RulesShape)},
                query=DaysQuery,
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/rules/question",
                "askRules",
                "Says how a call would be judged, and why; for operators. Nothing is called.",
                self.ask,
                {200: Answer("How it would be judged.", RuleAnswerShape)},
                body=RuleQuestionForm,
                problems=(409,),
                tag="operator",
            ),
            Operation(
                "POST",
                "/api/v1/operator/rules/replay",
                "replayRules",
                "Says what a changed policy would have decided otherwise; for operators. Nothing is called or changed.",
                self.replay,
                {200: Answer("What would have been decided otherwise.", RuleReplayShape)},
                body=RuleReplayForm,
                problems=(409,),
                tag="operator",
                description=f"Reads the newest {MOST_REPLAYED:,} entries of the time at most, one replay at a time; "
                "that takes up to half a minute.",
            ),
            Operation(
                "GET",
                "/api/v1/operator/fatigue",
                "getFatigue",
                "Says what people are asked about, and what became of it, by rule and tool; for operators.",
                self.fatigue,
                {200: Answer("What became of it.", FatigueShape)},
                query=DaysQuery,
                tag="operator",
            ),
            Operation(
                "GET",
                "/api/v1/operator/suggestions",
                "getRuleSuggestions",
                "Says which looser and stricter rules history speaks for, with proof; for operators.",
                self.suggestions,
                {200: Answer("The rules.", SuggestionsShape)},
                tag="operator",
            ),
        ]

    async def in_force(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/rules`."""
        found = _seen(await self._rules.in_force(call.principal.person, call.query(DaysQuery).days))
        return json_answer(RulesShape.of(found))

    async def ask(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/rules/question`."""
        form = call.body(RuleQuestionForm)
        if len(canonical_json(form.arguments)) > LARGEST_ARGUMENTS:
            raise _unanswerable("arguments", "are too long")
        question = RuleQuestion(
            tool=form.tool,
            person=form.person,
            arguments=form.arguments,
            place=form.place,
            platform=form.platform,
            agent=form.agent,
            client=form.client,
            at=form.at,
            mode=None if form.mode is None else Mode(form.mode),
            quote=form.quote,
            groups=form.groups,
            policy=form.policy,
        )
        try:
            answer = _seen(await self._rules.ask(call.principal.person, question))
        except RuleQuestionError as error:
            raise _unanswerable(error.what, error.reason) from None
        except ReplayBusyError:
            raise _busy() from None
        return json_answer(RuleAnswerShape.of(answer))

    async def replay(self, call: ApiCall) -> web.Response:
        """`POST /api/v1/operator/rules/replay`."""
        form, person = call.body(RuleReplayForm), call.principal.person
        is_waited_for = partial(is_there, call.request)
        try:
            found = _seen(
                await self._rules.replay(person, form.policy, form.since, form.until, is_waited_for=is_waited_for)
            )
        except RuleQuestionError as error:
            raise _unanswerable(error.what, error.reason) from None
        except ReplayBusyError:
            raise _busy() from None
        except NobodyWaitsError:
            raise Problem(408, "The replay was given up: nobody waits for it.") from None
        return json_answer(RuleReplayShape.of(found))

    async def fatigue(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/fatigue`."""
        found = _seen(await self._rules.fatigue(call.principal.person, call.query(DaysQuery).days))
        return json_answer(
            FatigueShape(
                since=found.since,
                counted=found.is_counted,
                least_approved=LEAST_APPROVED,
                least_rejected=LEAST_REJECTED,
                lines=[FatigueLineShape.of(line) for line in found.lines],
                more=found.is_cut,
            )
        )

    async def suggestions(self, call: ApiCall) -> web.Response:
        """`GET /api/v1/operator/suggestions`."""
        found = _seen(await self._rules.suggested(call.principal.person))
        return json_answer(
            SuggestionsShape(
                state=found.state,
                computed_at=found.computed_at,
                version=found.version,
                calls=found.calls,
                since=found.since,
                most=MOST_PAST,
                suggestions=[SuggestionShape.of(each) for each in found.suggestions],
            )
        )


def _seen(found: Found | None) -> Found:
    return for_operators(found, "Only operators can look at the rules.")


def _busy() -> Problem:
    return Problem(409, "A changed policy is being tried for someone already. Try again in a moment.")


def _unanswerable(what: str, reason: str) -> Problem:
    return Problem(422, "The request isn’t valid.", errors={what: reason})
