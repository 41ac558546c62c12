from __future__ import annotations

import pytest

from tests.demo.chat import CLARIFY, Chat, task, tasks

MILK = task("buy milk")


def test_a_task_is_proposed_and_told_as_added_only_by_its_result() -> None:
    chat = Chat()
    chat.says("add a task to buy milk")
    assert chat.names == ["tasks__add_task"]
    assert chat.calls[0]["args"] == {"title": "buy milk"}
    assert "Added" not in chat.text
    chat.results(MILK)
    assert chat.text == "Added the task **buy milk**."


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("add a task: buy milk by Friday", {"title": "buy milk", "due": "2026-11-27"}),
        ("remind me tomorrow to call Bob", {"title": "call Bob", "due": "2026-11-22"}),
        ("add a task to update the agenda and calendar", {"title": "update the agenda and calendar"}),
        ("add buy milk to my tasks", {"title": "buy milk"}),
        ("add a task to buy milk and call Bob", {"title": "buy milk and call Bob"}),
        ("todo: water the plants", {"title": "water the plants"}),
    ],
)
def test_tasks_are_understood_in_several_wordings(said: str, arguments: dict[str, str]) -> None:
    chat = Chat()
    chat.says(said)
    assert [call["args"] for call in chat.calls] == [arguments]


def test_a_rejected_task_is_proposed_again_as_corrected() -> None:
    chat = Chat()
    chat.says("add a task to buy milk")
    chat.results("Rejected by Bob. Reason: call it buy oat milk")
    assert chat.calls[0]["args"] == {"title": "buy oat milk"}


def test_the_task_list_is_told() -> None:
    chat = Chat()
    chat.says("list my tasks")
    assert (chat.names, chat.calls[0]["args"]) == (["tasks__list_tasks"], {"status": "open"})
    chat.results(tasks(MILK, task("write report", due="2026-11-30", notes="short")))
    assert chat.text == "Your open tasks:\n\n- **buy milk**\n- **write report**, due 2026-11-30 (short)"


def test_no_tasks_are_told_as_none() -> None:
    chat = Chat()
    chat.says("list my tasks")
    chat.results(tasks())
    assert chat.text == "You have no open tasks."


def test_a_task_is_found_by_its_title_and_completed() -> None:
    chat = Chat()
    chat.says("complete the task buy milk")
    assert chat.names == ["tasks__list_tasks"]
    chat.results(tasks(task("buy milk and eggs", task_id="t-2"), task("Buy milk", task_id="t-1")))
    assert (chat.names, chat.calls[0]["args"]) == (["tasks__complete_task"], {"task_id": "t-1"})
    chat.results({**MILK, "status": "done"})
    assert chat.text == "Completed the task **buy milk**."


def test_a_task_that_is_not_there_is_said_not_to_be_there() -> None:
    chat = Chat()
    chat.says("complete the task buy milk")
    chat.results(tasks(task("write report")))
    assert not chat.calls
    assert chat.text == "I found no open task called **buy milk**, so I have changed nothing."


def test_among_several_matching_tasks_it_asks_which() -> None:
    chat = Chat()
    chat.says("complete the task milk")
    chat.results(tasks(task("buy milk", task_id="t-1"), task("boil milk", task_id="t-2")))
    assert chat.names == [CLARIFY]
    assert chat.calls[0]["args"]["fields"][0]["options"] == ["buy milk", "boil milk"]
    chat.results({"answer": "the boil milk one"})
    assert (chat.names, chat.calls[0]["args"]) == (["tasks__complete_task"], {"task_id": "t-2"})


def test_a_task_is_deleted_whatever_its_status() -> None:
    chat = Chat()
    chat.says("delete the task buy milk")
    assert chat.calls[0]["args"] == {"status": "all"}
    chat.results(tasks(MILK))
    assert chat.names == ["tasks__delete_task"]
    chat.results(MILK)
    assert chat.text == "Deleted the task **buy milk**."


def test_two_things_in_one_message_are_both_done() -> None:
    chat = Chat()
    chat.says("complete the task buy milk and add a task to buy eggs")
    assert chat.names == ["tasks__list_tasks"]
    chat.results(tasks(MILK))
    assert chat.names == ["tasks__complete_task", "tasks__add_task"]
    chat.results("Rejected by Ana. No reason was given.", task("buy eggs"))
    assert "**buy milk** was not completed: Ana rejected it and gave no reason." in chat.text
    assert "Added the task **buy eggs**." in chat.text


@pytest.mark.parametrize(
    ("said", "titles"),
    [
        ("add tasks: buy milk, call Bob and pay rent", ["buy milk", "call Bob", "pay rent"]),
        ("create 2 tasks: buy milk and eggs, call Bob", ["buy milk and eggs", "call Bob"]),
    ],
)
def test_several_tasks_are_proposed_at_once(said: str, titles: list[str]) -> None:
    chat = Chat()
    chat.says(said)
    assert [call["args"]["title"] for call in chat.calls] == titles


@pytest.mark.parametrize(
    ("said", "status"), [("show all my tasks", "all"), ("which tasks are done", "done"), ("tasks", "open")]
)
def test_the_tasks_that_are_asked_for_are_looked_up(said: str, status: str) -> None:
    chat = Chat()
    chat.says(said)
    assert (chat.names, chat.calls[0]["args"]) == (["tasks__list_tasks"], {"status": status})


@pytest.mark.parametrize("said", ["delete the milk task", "remove milk from my tasks", "drop the task milk"])
def test_a_task_to_delete_is_named_in_several_wordings(said: str) -> None:
    chat = Chat()
    chat.says(said)
    chat.results(tasks(MILK))
    assert (chat.names, chat.calls[0]["args"]) == (["tasks__delete_task"], {"task_id": MILK["id"]})
