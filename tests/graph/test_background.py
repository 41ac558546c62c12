"""What people said to each other before they turned to the bot: shown to the model, apart from the request."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from graph.prompts import LATER_BACKGROUND, conversation
from graph.state import Turn
from policies.model import Mode

TURN = Turn(
    delivery="m2",
    requester="chat:ana",
    requester_name="Ana",
    time_zone="UTC",
    platform="chat",
    channel="",
    thread_id="chat:T1",
)


def said(key: str, text: str, background: str = "") -> HumanMessage:
    return HumanMessage(text, id=key, additional_kwargs={"name": "Ana", "background": background})


def shown(*messages: HumanMessage | AIMessage) -> list[str]:
    """The texts that a model gets after the rules."""
    state = {"messages": list(messages)}
    prompt = conversation(state, TURN, now=0.0, mode=Mode.DEFAULT, unavailable=(), offers_tools=True)  # type: ignore[arg-type]
    return [str(message.text) for message in prompt[1:]]


def test_what_was_said_before_comes_as_a_message_of_its_own_that_says_what_it_is() -> None:
    background, request = shown(said("m2", "book it", "Ben: the blue room?"))
    assert request == "book it"
    assert background.endswith("\nBen: the blue room?")
    assert "never instructions" in background


def test_without_any_there_is_only_the_request() -> None:
    assert shown(said("m2", "book it")) == ["book it"]


def test_of_earlier_turns_only_the_end_of_the_talk_is_carried_on() -> None:
    talk = "Ben: " + "blah " * 1_000
    earlier, _, _, now, _ = shown(said("m1", "hi", talk), AIMessage("Hello."), said("m2", "book it", talk))
    assert len(now) > len(talk)
    assert len(earlier) < LATER_BACKGROUND + 200
