"""What an entry says, and what it must not say."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.audit.entries import CallEnd, VoteCast, entry_of, judged_again
from policies.judging import judge
from policies.masking import Masked, Masker, exceeds
from policies.model import Mode
from policies.secret_shapes import EMAILS, TOKENS
from tests.audit.calls import NOON, POLICY, READING, TOKEN, ended, judged, tool
from tests.support.cpu import at_most_cpu


def said(end: CallEnd, masker: Masker | None = None) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(entry_of(end, masker or Masker()))
    return read


def test_an_entry_says_who_did_what_when_and_by_which_rule() -> None:
    entry = said(ended(1, READING, {"what": "lamp"}))
    assert entry["at"] == datetime.fromtimestamp(NOON + 1, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert (entry["thread"], entry["requester"], entry["server"], entry["tool"]) == (
        "web:t1",
        "web:ana",
        "workshop",
        "look",
    )
    assert (entry["mode"], entry["decision"], entry["rule"]) == ("default", "allow", "reading is free")
    assert entry["source"] == "then.yaml:4"
    assert entry["version"] == POLICY.version
    assert (entry["status"], entry["duration"], entry["digest"]) == ("done", 0.25, "d" * 64)
    assert entry["input"] == '{"what":"lamp"}'


def test_an_entry_says_who_voted_what_and_under_which_authority() -> None:
    vote = VoteCast(1, "slack:T1:U2", "Ben", "approve", "member of slack-group:T1:S1", "", NOON)
    (kept,) = said(ended(votes=[vote]))["votes"]
    assert (kept["person"], kept["verb"], kept["authority"]) == (
        "slack:T1:U2",
        "approve",
        "member of slack-group:T1:S1",
    )


def test_the_output_is_hashed_by_its_first_four_kilobytes() -> None:
    long = "ä" * 5_000
    assert said(ended(output=long))["output"] == hashlib.sha256(long.encode()[:4096]).hexdigest()
    assert said(ended(output=None))["output"] is None


@pytest.mark.parametrize("size", [10, 199, 200, 201, 10_000])
def test_the_short_input_has_200_characters_at_most(size: int) -> None:
    assert len(said(ended(arguments={"what": "x" * size}))["input"]) <= 200


def test_long_arguments_are_cut_and_it_says_so() -> None:
    entry = said(ended(arguments={"what": "lamp", "text": "x" * 9_000}))
    assert entry["arguments_cut"]
    assert entry["arguments"]["what"] == "lamp"
    assert len(entry["arguments"]["text"]) == 300
    assert not said(ended())["arguments_cut"]


def test_too_many_arguments_are_left_out() -> None:
    entry = said(ended(arguments={f"field{n}": 10**15 + n for n in range(2_000)}))
    assert entry["arguments_cut"]
    assert entry["arguments"] is None


def test_no_secret_is_in_an_entry_wherever_it_stood() -> None:
    arguments = {"what": TOKEN, "nested": {"list": [TOKEN, 1]}, TOKEN: 1}
    about = tool(input_schema={"properties": {"left_out": {"default": TOKEN}}})
    vote = VoteCast(1, "web:ana", "Ana", "reject", "", f"not with {TOKEN}", NOON)
    end = ended(1, about, arguments, votes=[vote], note=f"blocked {TOKEN}", output=TOKEN)
    end = ended(
        1, about, arguments, votes=[vote], note=f"blocked {TOKEN}", judged=judged(about, arguments, said=(TOKEN,))
    )
    text = entry_of(end, Masker())
    assert TOKEN not in text
    assert "[secret: github token]" in text
    assert json.loads(text)["arguments_masked"]


def test_a_secret_at_the_edge_of_the_short_input_is_not_cut_in_half() -> None:
    text = entry_of(ended(arguments={"what": "x" * 180 + " " + TOKEN}), Masker())
    assert TOKEN[:12] not in text


def test_what_the_operator_wants_masked_is_masked() -> None:
    end = ended(arguments={"to": "ana@example.com"})
    assert "ana@example.com" in entry_of(end, Masker())
    assert "ana@example.com" not in entry_of(end, Masker((*TOKENS, EMAILS)))


@pytest.mark.parametrize("mode", list(Mode))
def test_a_judgement_comes_back_as_the_same_judgement(mode: Mode) -> None:
    command = tool("cli", input_schema={"properties": {"command": {"type": "string"}}, "required": ["command"]})
    for about, arguments in ((READING, {}), (command, {"command": "list teams"}), (tool("wipe"), {"what": "all"})):
        kept = json.loads(json.dumps(judged(about, arguments, mode=mode, said=("please do make a lamp",))))
        call, facts, verdict = judged_again(kept, arguments)
        assert judge(POLICY, call, facts) == verdict


def test_an_entry_says_which_program_called_and_nothing_of_one_where_our_own_agent_did() -> None:
    kept = json.loads(json.dumps(judged(READING, {}, platform="mcp", client=f"Cursor {TOKEN}")))
    assert judged_again(kept, {})[1].client == f"Cursor {TOKEN}"
    entry = said(ended(1, READING, {}, judged=kept))
    assert entry["client"] == entry["judged"]["client"]
    assert entry["client"].startswith("Cursor [secret: github token")
    assert entry["judged"]["platform"] == "mcp"
    own = said(ended(1, READING, {}))
    assert "client" not in own
    assert "client" not in own["judged"], "entries stay what they were, and so do their hashes"
    assert judged_again(own["judged"], {})[1].client == ""


def test_an_entry_says_which_agent_called_and_nothing_of_the_default_one() -> None:
    kept = json.loads(json.dumps(judged(READING, {}, agent="finance", agent_asks=True)))
    _, facts, verdict = judged_again(kept, {})
    assert (facts.agent, facts.agent_asks, verdict.verdict) == ("finance", True, "ask")
    entry = said(ended(1, READING, {}, judged=kept))
    assert (entry["agent"], entry["judged"]["agent"]) == ("finance", "finance")
    own = said(ended(1, READING, {}, judged=json.loads(json.dumps(judged(READING, {}, agent="default")))))
    assert "agent" not in own
    assert "agent" not in own["judged"], "entries stay what they were, and so do their hashes"
    assert judged_again(own["judged"], {})[1].agent == "default"


def test_of_a_large_call_only_so_much_is_looked_through_as_may_be_kept() -> None:
    """Rule 13: a megabyte of arguments does not hold up the end of its call."""
    looked_through: list[int] = []

    class Counting(Masker):
        def for_audit(self, value: Any) -> Masked:
            looked_through.append(len(json.dumps(value)))
            return super().for_audit(value)

        def mask(self, text: str) -> str:
            looked_through.append(len(text))
            return super().mask(text)

    text = entry_of(ended(arguments={"a": f"x {TOKEN} " + "y" * 1_000_000, "b": ["z" * 10_000] * 100}), Counting())
    assert 4_000 < sum(looked_through) < 50_000
    entry = json.loads(text)
    assert TOKEN not in text
    assert entry["arguments_cut"]
    assert entry["arguments"]["a"].startswith("x [secret: github token, 40 characters, #")
    assert len(text) < 8_000


@pytest.mark.timed
@pytest.mark.parametrize(
    "many",
    [["x"] * 9_900, {f"{number}": number for number in range(9_900)}, {f"{'k' * 90}{n}": 1 for n in range(9_900)}],
    ids=["texts", "names", "long names"],
)
def test_of_a_call_with_very_many_values_no_more_is_looked_through_either(many: Any) -> None:
    """Rule 13: each text costs more than its characters, and none is too short for that."""
    entry_of(ended(), Masker())  # the patterns are compiled once
    with at_most_cpu(0.2):  # 0.7 s where all are looked through, now 20 ms
        entry = json.loads(entry_of(ended(arguments={"a": many}), Masker()))
    assert entry["arguments_cut"]


@pytest.mark.parametrize("many", [["x"] * 9_900, {f"{number}": number for number in range(9_900)}, ["x" * 20_001]])
def test_what_takes_long_to_look_through_is_large(many: Any) -> None:
    """Rule 13: what is large is looked through in a thread."""
    assert exceeds({"a": many})
    assert not exceeds({"a": ["some words"] * 50, "b": "word " * 1_000})


@pytest.mark.timed
@pytest.mark.parametrize("unit", ["\uff50\uff41\uff53\uff53\uff1d", '\\"', "https://a:b@", "password=abc123 "])
def test_rule_13_a_call_that_is_made_to_take_long_holds_up_nobody(unit: str) -> None:
    arguments = {f"a{number}": unit * (3_900 // len(unit)) for number in range(5)}
    end = ended(arguments=arguments, note=unit * 400_000)
    entry_of(end, Masker())  # the patterns are compiled once
    with at_most_cpu(0.3):  # 0.8 s and more before, now 40 ms at most
        entry_of(end, Masker())


def test_of_the_defaults_of_a_schema_no_more_is_kept_and_looked_through_than_of_arguments() -> None:
    """Rule 13: a schema of 50 kB that refers 500 times to one default made 15 MB that were kept with each call, and
    looked through for 14 seconds."""
    unit = '"password": "'
    large = {"properties": {f"a{number}": {"$ref": "#/$defs/x"} for number in range(500)}}
    large["$defs"] = {"x": {"type": "string", "default": unit * 2_300}}
    about = tool(input_schema=large)
    kept = judged(about, {})
    assert len(json.dumps(kept)) < 20_000
    assert list(kept["tool"]["defaults"]) == ["a0", "a1", "a2"]
    begun_by_an_earlier_version = {
        **kept,
        "tool": {**kept["tool"], "defaults": dict.fromkeys("abcdefgh", unit * 2_300)},
    }
    for each in (kept, begun_by_an_earlier_version):
        with at_most_cpu(0.3):  # now 16 ms
            entry_of(ended(1, about, {}, judged=each), Masker())
    ordinary = {"properties": {f"a{number}": {"default": number} for number in range(60)}}
    assert len(said(ended(1, tool(input_schema=ordinary), {}))["judged"]["tool"]["defaults"]) == 60
