"""What passes between a model and its tools."""

from __future__ import annotations

from typing import Any

import pytest

from wellhead import BackendError, UsageError
from wellhead.agent.messages import Message, Reply, ToolCall, Usage, message_of, reply_of


@pytest.mark.promise("G37")
def test_a_message_is_a_role_and_its_content() -> None:
    message = Message("user", "Can I get a refund?")
    assert (message.role, message.content, message.text) == ("user", "Can I get a refund?", "Can I get a refund?")
    assert message.to_dict() == {"role": "user", "content": "Can I get a refund?"}
    asking = Message("assistant", "", (ToolCall(id="1", name="echo", arguments={"text": "x"}),))
    assert message_of(asking.to_dict()) == asking


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "robot", "content": "x"},
        {"content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "text": "x"},
        "hello",
        None,
    ],
)
def test_what_is_no_message_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="no message"):
        message_of(wrong)


@pytest.mark.parametrize(
    ("made", "reply"),
    [
        ("hello", Reply(text="hello")),
        (iter(["hel", "lo"]), Reply(text="hello")),
        (Reply(text="x"), Reply(text="x")),
        ({"text": "x", "usage": {"input_tokens": 3}}, Reply(text="x", usage=Usage(input_tokens=3))),
        ({"text": None, "tool_calls": None}, Reply()),
        (
            {"tool_calls": [{"name": "echo", "arguments": '{"text": "x"}'}, {"name": "echo", "arguments": "{oops"}]},
            Reply(
                tool_calls=(
                    ToolCall(name="echo", arguments={"text": "x"}),
                    ToolCall(name="echo", arguments="{oops"),
                )
            ),
        ),
        (
            {"tool_calls": [{"name": "echo", "arguments": "[1]"}]},
            Reply(tool_calls=(ToolCall(name="echo", arguments="[1]"),)),
        ),
        ({"tool_calls": [{"name": "echo", "arguments": ""}]}, Reply(tool_calls=(ToolCall(name="echo"),))),
    ],
)
def test_a_reply_may_come_in_several_forms(made: Any, reply: Reply) -> None:
    assert reply_of(made, "m") == reply


@pytest.mark.parametrize(
    "made", [None, 5, {"text": 5}, {"tool_calls": [{"arguments": {}}]}, {"tool_calls": "echo"}, [1]]
)
def test_what_is_no_reply_is_the_models_fault(made: object) -> None:
    with pytest.raises(BackendError, match="cannot be read"):
        reply_of(made, "m")


def test_usage_adds_up() -> None:
    assert Usage(input_tokens=1, calls=1) + Usage(output_tokens=2, calls=1) == Usage(
        input_tokens=1, output_tokens=2, calls=2
    )
