from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from graph.files import as_shown, carried
from tests.demo.chat import DOCUMENTS, Chat

FILE = "file_0123456789abcdef0123456789abcdef"


def handed_over(chat: Chat, *names: str) -> None:
    files = [(f"{FILE[:-1]}{number}", name, 9, "# Leave", 0, "") for number, name in enumerate(names)]
    chat.messages.append(HumanMessage(as_shown(carried(files), later=False)))


@pytest.mark.parametrize(
    ("said", "keep_for", "words"),
    [
        ("keep this file", "me", "for you"),
        ("Ana: please save the handbook for the channel", "channel", "for this channel"),
        ("store it for everyone!", "everybody", "for everybody"),
    ],
)
def test_a_file_is_kept_for_whom_it_is_said(said: str, keep_for: str, words: str) -> None:
    chat = Chat(DOCUMENTS)
    handed_over(chat, "handbook.pdf")
    chat.says(said)
    (call,) = chat.calls
    assert (call["name"], call["args"]) == (DOCUMENTS[0], {"file": f"{FILE[:-1]}0", "keep_for": keep_for})
    assert chat.text == f"I will keep the file **handbook.pdf** {words}."
    chat.results({"document_id": "d1", "name": "handbook.pdf", "kept_for": keep_for})
    assert chat.text == "Kept the file **handbook.pdf**."


def test_each_of_several_files_is_kept_also_a_message_later() -> None:
    chat = Chat(DOCUMENTS)
    handed_over(chat, "a.txt", "b.txt")
    chat.says("look at these")
    assert "“Keep this file” keeps it" in chat.text
    chat.says("keep them for everybody")
    assert [call["args"]["file"][-1] for call in chat.calls] == ["0", "1"]
    chat.results({"document_id": "d1", "name": "a.txt"}, "Rejected by Bob. Reason: not this one")
    assert "Kept the file **a.txt**." in chat.text
    assert "**b.txt** was not kept: Bob rejected it (“not this one”)." in chat.text


def test_without_a_file_nothing_is_kept() -> None:
    chat = Chat(DOCUMENTS)
    chat.says("keep this file for everybody")
    assert (chat.calls, chat.text) == ([], "Hand over a file first; then I can keep it.")


@pytest.mark.parametrize(
    "said",
    [
        "what does the handbook say about a train to Rome?",
        "search our documents for a train to Rome",
        "look in the policies for a train to Rome",
    ],
)
def test_what_is_found_is_quoted_and_cited(said: str) -> None:
    chat = Chat(DOCUMENTS)
    chat.says(said)
    (call,) = chat.calls
    assert (call["name"], call["args"]) == (DOCUMENTS[2], {"query": "a train to Rome"})
    passage = {"document_id": "d1", "name": "Handbook.pdf", "page": 2, "section": None, "text": "Book\nearly."}
    chat.results({"passages": [passage | {"cite": "[1]"}, passage], "note": ""})
    assert chat.text == "This stands in the documents:\n\n- “Book early.” [1]\n- “Book early.” **Handbook.pdf**"


def test_nothing_that_fits_is_told_as_nothing() -> None:
    chat = Chat(DOCUMENTS)
    chat.says("search the documents for {braces}")
    chat.results({"passages": [], "note": "Nothing."})
    assert chat.text == "I found nothing in the documents about “{braces}”."


def test_the_documents_are_listed() -> None:
    chat = Chat(DOCUMENTS)
    chat.says("list my documents")
    chat.results({"documents": [{"document_id": "d1", "name": "Handbook.pdf", "kept_for": "me"}], "left_out": 2})
    assert chat.text == "Documents:\n\n- **Handbook.pdf**\n\nThere are 2 more."
